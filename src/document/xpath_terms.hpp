// The terms of an XPath expression, between its reader (xpath_parser.cpp) and its evaluator (xpath.cpp).
#pragma once

#include <re2/re2.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"

namespace argiope {

enum class XPathType : std::uint8_t { nodes, number, text, truth };

enum class XPathAxis : std::uint8_t {
  ancestor,
  ancestor_or_self,
  attribute,
  child,
  descendant,
  descendant_or_self,
  following,
  following_sibling,
  name_space,
  parent,
  preceding,
  preceding_sibling,
  self,
};

enum class XPathFunction : std::uint8_t {
  boolean,
  ceiling,
  concat,
  contains,
  count,
  false_,
  floor,
  has_class,
  id,
  lang,
  last,
  local_name,
  name,
  namespace_uri,
  normalize_space,
  not_,
  number,
  position,
  matches,  // re:test
  round,
  starts_with,
  string,
  string_length,
  substring,
  substring_after,
  substring_before,
  sum,
  translate,
  true_,
};

struct XPathTerm;

// "axis::test[predicate]…"
struct XPathStep {
  enum class Test : std::uint8_t { node, text, comment, instruction, any_name, any_of_prefix, name };
  XPathAxis axis = XPathAxis::child;
  Test test = Test::node;
  std::string name;        // or the prefix with its colon
  std::uint32_t slot = 0;  // of `name`, the place in XPathTerms::names
  std::vector<XPathTerm> predicates;
  bool counts_places = false;  // one of the predicates does
};

struct XPathTerm {
  enum class Kind : std::uint8_t {
    number,
    text,
    either,  // or
    both,    // and
    equal,
    not_equal,
    less,
    at_most,
    more,
    at_least,
    plus,
    minus,
    times,
    divide,
    modulo,
    negative,
    unite,
    path,
    call,
  };
  Kind kind = Kind::number;
  XPathType type = XPathType::number;
  // Whether it asks for position() or last() of where it stands itself.
  bool asks_place = false;
  double number = 0;
  std::string text;
  XPathFunction function = XPathFunction::true_;
  std::shared_ptr<const RE2> pattern;  // of a call of re:test whose pattern is written there
  // Of a call its arguments; of a path nothing, or where it begins instead of the context.
  std::vector<XPathTerm> operands;
  std::vector<XPathTerm> predicates;  // of where a path begins
  bool absolute = false;
  std::vector<XPathStep> steps;
};

struct XPathTerms {
  XPathTerm root;
  std::vector<std::string> names;  // of elements
};

inline constexpr int kMostXPathNesting = 64;

// Errors: as XPathExpression::compile().
Result<XPathTerms> parse_xpath(std::string_view text);

}  // namespace argiope
