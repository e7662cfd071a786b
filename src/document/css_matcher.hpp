// Which nodes of a tree a CSS selector selects. Private to the documents of this module.
//
// A selector is read from its right end, as browsers do it: each element is asked once, and its ancestors and siblings
// as far as needed. No choice is tried twice: where the part up to the nearest ancestor that fits fails for want of
// ancestors, no farther one helps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "document/document_tree.hpp"
#include "document/internal/css_selector.hpp"

namespace argiope {

// Where elements stand among their siblings, from 1: found out for all of a tree when it is first asked.
class SiblingPlaces {
 public:
  std::uint32_t of(const DocumentTree& tree, NodeIndex element, bool of_type, bool from_end);

 private:
  struct Places {
    std::vector<std::uint32_t> from_front, from_end;
  };
  static Places count(const DocumentTree& tree, bool of_type);
  Places all_, of_type_;
};

// One use of a selector. Lifetime: refers to all that it is given.
class CssMatcher {
 public:
  // `scope`: an element, or the root. Nothing above it counts.
  CssMatcher(const CssSelector& selector, const DocumentTree& tree, SiblingPlaces& places, NodeIndex scope,
             std::uint64_t most_steps);

  // Looks there from now on; the steps that are left stay.
  void look_within(NodeIndex scope) noexcept { scope_ = scope; }
  // The first `most` of them, in the order of the tree. False: it would have taken too many steps.
  bool select(std::size_t most, std::vector<TreePlace>& found);

 private:
  // Whether what is left of a compound fits: if not, whether another ancestor or sibling may help.
  enum class Fit : std::uint8_t { fits, fails_here, fails_for_siblings, fails };

  // Of a name in a selector, its places among the tree's names; each is their number where there is none.
  struct NamePlaces {
    std::uint32_t lower = 0;  // of HTML's elements
    std::uint32_t exact = 0;  // of those with capitals
  };

  NamePlaces places_of_name(const std::string& name) const;
  bool may_match(const CssComplex& complex) const;
  std::optional<std::uint32_t> only_name(const CssComplex& complex) const noexcept;
  void add_parts(const CssComplex& complex, NodeIndex element, std::vector<TreePlace>& found) const;
  bool matches(const CssComplex& complex, NodeIndex element, NodeIndex anchor);
  Fit fit(const CssComplex& complex, std::size_t compound, NodeIndex element, NodeIndex anchor);
  Fit fit_before(const CssComplex& complex, std::size_t compound, NodeIndex element, NodeIndex anchor);
  bool relates(CssCompound::Relation relation, NodeIndex element, NodeIndex anchor) const;
  bool matches_all(const CssCompound& compound, NodeIndex element);
  bool matches_one(const CssTest& test, NodeIndex element);
  bool matches_attribute(const CssTest& test, NodeIndex element) const;
  bool matches_place(const CssTest& test, NodeIndex element);
  bool matches_any_of(const std::vector<CssComplex>& list, NodeIndex element);
  bool has(const CssTest& test, NodeIndex element);
  bool contains(const CssTest& test, NodeIndex element);
  bool is_in_language(const CssTest& test, NodeIndex element) const;
  bool is_control(const CssTest& test, NodeIndex element) const;
  bool is_empty(NodeIndex element) const;
  bool is_named(NodeIndex element, std::string_view name) const noexcept { return tree_.nodes[element].text == name; }
  bool is_disabled(NodeIndex control) const;
  NodeIndex first_legend(NodeIndex fieldset) const;
  bool is_foreign(NodeIndex element) const;
  const TreeAttribute* find_attribute(NodeIndex element, const std::string& name, const std::string& lower) const;
  // The parent that counts, or none.
  NodeIndex parent_of(NodeIndex element) const noexcept;
  NodeIndex element_before(NodeIndex node);

  const CssSelector& selector_;
  const DocumentTree& tree_;
  SiblingPlaces& places_;
  NodeIndex scope_;
  std::uint64_t steps_left_;
  std::vector<NamePlaces> names_;  // of the selector's
};

}  // namespace argiope
