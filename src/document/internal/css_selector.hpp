// CSS selectors: what they say (css_selector.cpp reads it), and whether an element is one (css_matcher.hpp). Private to
// the documents of this module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"

namespace argiope {

struct CssComplex;

// A condition on one element.
struct CssTest {
  enum class Kind : std::uint8_t {
    any,  // "*"
    name,
    id,
    has_class,
    attribute,  // is there
    equals,
    not_equals,
    word,    // ~=
    dash,    // |=
    begins,  // ^=
    ends,    // $=
    holds,   // *=
    root,
    empty,
    scope,
    only_child,
    only_of_type,
    nth_child,  // with a list: among those that match it
    nth_last_child,
    nth_of_type,
    nth_last_of_type,
    any_link,
    checked,
    disabled,
    enabled,
    lang,
    contains,  // its text
    is,        // one of the list
    is_not,
    has,  // what matches one of the list, relative to the element
  };
  Kind kind = Kind::any;
  bool ignores_case = false;   // of the value: asked for by "i"
  bool keeps_case = false;     // asked for by "s"
  bool has_html_case = false;  // an attribute whose values HTML compares without case, where nothing is asked for
  std::uint32_t element = 0;   // the place of the element's name in CssSelector::names
  std::string attribute;       // its name
  std::string lower;           // the same in lower case, as HTML has it
  std::string value;
  std::int64_t step = 0, offset = 0;  // "2n+1"
  std::vector<CssComplex> list;
};

// Conditions on one element, and how the element before it relates to it.
struct CssCompound {
  enum class Relation : std::uint8_t { none, ancestor, parent, sibling_before, sibling_right_before };
  std::vector<CssTest> tests;
  Relation relation = Relation::none;  // of the compound to the left; of the first one in :has(), of the element itself
};

// "ul > li a::text"
struct CssComplex {
  enum class Part : std::uint8_t { element, text, attribute };
  std::vector<CssCompound> compounds;  // as written; the last is what is selected
  Part part = Part::element;
  std::string attribute, lower;  // as CssTest's
};

// "h1, h2": any of them.
struct CssSelector {
  std::vector<CssComplex> list;
  std::vector<std::string> names;  // of elements; a prefix with its colon is a part of the name
};

inline constexpr int kMostCssNesting = 16;

// Errors: invalid_input, `css "h1 >": …, at character 5`.
Result<CssSelector> parse_css_selector(std::string_view text);

}  // namespace argiope
