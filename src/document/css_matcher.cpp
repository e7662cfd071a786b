#include "document/css_matcher.hpp"

#include <algorithm>
#include <unordered_map>

#include "document/document_text.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/lower_case.hpp"

namespace argiope {
namespace {

// Counting on when there are no steps left costs nothing more.
void spend(std::uint64_t& steps, std::uint64_t cost) noexcept { steps -= std::min(steps, cost); }

bool compare_value(CssTest::Kind kind, std::string_view value, std::string_view wanted) {
  switch (kind) {
    case CssTest::Kind::equals: return value == wanted;
    case CssTest::Kind::not_equals: return value != wanted;
    case CssTest::Kind::dash:
      return value == wanted ||
             (value.starts_with(wanted) && value.size() > wanted.size() && value[wanted.size()] == '-');
    case CssTest::Kind::begins: return !wanted.empty() && value.starts_with(wanted);
    case CssTest::Kind::ends: return !wanted.empty() && value.ends_with(wanted);
    case CssTest::Kind::holds: return !wanted.empty() && value.contains(wanted);
    default: return true;
  }
}

bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }

// Whether `wanted` is one of the words of `list`.
bool holds_word(std::string_view list, std::string_view wanted) noexcept {
  if (wanted.empty() || list.size() < wanted.size()) return false;
  for (std::size_t at = list.find(wanted); at != std::string_view::npos; at = list.find(wanted, at + 1)) {
    const std::size_t end = at + wanted.size();
    if ((at == 0 || is_space(list[at - 1])) && (end == list.size() || is_space(list[end]))) {
      return std::ranges::none_of(wanted, is_space);
    }
  }
  return false;
}

// Whether `place` is one of step * n + offset, n from 0.
bool is_nth(std::int64_t place, std::int64_t step, std::int64_t offset) noexcept {
  const std::int64_t beyond = place - offset;
  return step == 0 ? beyond == 0 : beyond % step == 0 && beyond / step >= 0;
}

}  // namespace

// --- places among siblings ------------------------------------------------------------------------------------------

SiblingPlaces::Places SiblingPlaces::count(const DocumentTree& tree, bool of_type) {
  Places places;
  places.from_front.resize(tree.nodes.size());
  places.from_end.resize(tree.nodes.size());
  // How many children of a parent, of one name if asked for, have come so far.
  std::unordered_map<std::uint64_t, std::uint32_t> counts;
  const auto key = [&](NodeIndex node) {
    const TreeNode& row = tree.nodes[node];
    return std::uint64_t{row.parent} << 32 | (of_type ? row.name : 0);
  };
  for (NodeIndex node = 1; node < tree.nodes.size(); ++node) {
    if (tree.is_element(node)) places.from_front[node] = ++counts[key(node)];
  }
  for (NodeIndex node = 1; node < tree.nodes.size(); ++node) {
    if (tree.is_element(node)) places.from_end[node] = counts[key(node)] - places.from_front[node] + 1;
  }
  return places;
}

std::uint32_t SiblingPlaces::of(const DocumentTree& tree, NodeIndex element, bool of_type, bool from_end) {
  Places& places = of_type ? of_type_ : all_;
  if (places.from_front.empty()) places = count(tree, of_type);
  return (from_end ? places.from_end : places.from_front)[element];
}

// --- all that a selector selects ------------------------------------------------------------------------------------

CssMatcher::CssMatcher(const CssSelector& selector, const DocumentTree& tree, SiblingPlaces& places, NodeIndex scope,
                       std::uint64_t most_steps)
    : selector_(selector), tree_(tree), places_(places), scope_(scope), steps_left_(most_steps) {
  for (const std::string& name : selector.names) names_.push_back(places_of_name(name));
}

// HTML's elements have names in lower case, and some of SVG capitals within.
CssMatcher::NamePlaces CssMatcher::places_of_name(const std::string& name) const {
  const auto place = [&](auto same) {
    return static_cast<std::uint32_t>(std::ranges::find_if(tree_.names, same) - tree_.names.begin());
  };
  NamePlaces places;
  places.exact = place([&](std::string_view other) { return other == name; });
  places.lower = places.exact;
  if (tree_.is_xml) return places;
  places.lower = place([&](std::string_view other) {
    return equals_ignoring_case(other, name) && std::ranges::none_of(other, is_upper);
  });
  if (places.lower == tree_.names.size())
    places.lower = place([&](std::string_view other) { return equals_ignoring_case(other, name); });
  if (places.exact == tree_.names.size()) places.exact = places.lower;
  return places;
}

bool CssMatcher::may_match(const CssComplex& complex) const {
  return std::ranges::all_of(complex.compounds, [&](const CssCompound& compound) {
    return std::ranges::all_of(compound.tests, [&](const CssTest& test) {
      return test.kind != CssTest::Kind::name || names_[test.element].lower < tree_.names.size();
    });
  });
}

// Of a selector that is one element's name, which most are.
std::optional<std::uint32_t> CssMatcher::only_name(const CssComplex& complex) const noexcept {
  if (complex.compounds.size() != 1 || complex.compounds[0].tests.size() != 1) return std::nullopt;
  if (complex.compounds[0].relation != CssCompound::Relation::none) return std::nullopt;
  const CssTest& test = complex.compounds[0].tests[0];
  if (test.kind != CssTest::Kind::name || names_[test.element].exact != names_[test.element].lower) return std::nullopt;
  return names_[test.element].exact;
}

bool CssMatcher::select(std::size_t most, std::vector<TreePlace>& found) {
  std::vector<const CssComplex*> complexes;
  bool only_elements = true;
  for (const CssComplex& complex : selector_.list) {
    if (may_match(complex)) complexes.push_back(&complex);
    only_elements = only_elements && complex.part == CssComplex::Part::element;
  }
  if (complexes.empty()) return true;
  const auto name = complexes.size() == 1 ? only_name(*complexes[0]) : std::nullopt;
  const bool only_first = most == 1;
  const NodeIndex end = tree_.nodes[scope_].end;
  for (NodeIndex node = scope_; node < end && steps_left_ > 0; ++node) {
    // A text of an element that is yet to come may stand before those that are found, but not before that element.
    if (only_first && !found.empty() && found.front().node < node) break;
    if (!tree_.is_element(node)) continue;
    if (name) {
      spend(steps_left_, 1);
      if (tree_.nodes[node].name != *name || steps_left_ == 0) continue;
      add_parts(*complexes[0], node, found);
    } else {
      for (const CssComplex* const complex : complexes) {
        if (!matches(*complex, node, kNoNode)) continue;
        add_parts(*complex, node, found);
        if (only_elements) break;  // once is enough
      }
    }
    if (only_elements && found.size() >= most) break;
    if (only_first && found.size() > 1) found.assign(1, std::ranges::min(found));
  }
  if (!only_elements) keep_each_once(found);
  if (found.size() > most) found.resize(most);
  return steps_left_ > 0;
}

void CssMatcher::add_parts(const CssComplex& complex, NodeIndex element, std::vector<TreePlace>& found) const {
  switch (complex.part) {
    case CssComplex::Part::element: found.push_back({element, 0}); break;
    case CssComplex::Part::text:
      for (NodeIndex child = element + 1; child < tree_.nodes[element].end; child = tree_.nodes[child].end) {
        if (tree_.is_text(child)) found.push_back({child, 0});
      }
      break;
    case CssComplex::Part::attribute: {
      const auto* const attribute = find_attribute(element, complex.attribute, complex.lower);
      if (attribute == nullptr) break;
      found.push_back({element, static_cast<std::uint32_t>(attribute - tree_.attributes.data()) + 1});
      break;
    }
  }
}

// --- one element ----------------------------------------------------------------------------------------------------

bool CssMatcher::matches(const CssComplex& complex, NodeIndex element, NodeIndex anchor) {
  return fit(complex, complex.compounds.size() - 1, element, anchor) == Fit::fits;
}

CssMatcher::Fit CssMatcher::fit(const CssComplex& complex, std::size_t compound, NodeIndex element, NodeIndex anchor) {
  spend(steps_left_, 1);
  if (steps_left_ == 0) return Fit::fails;
  if (!matches_all(complex.compounds[compound], element)) return Fit::fails_here;
  return fit_before(complex, compound, element, anchor);
}

CssMatcher::Fit CssMatcher::fit_before(const CssComplex& complex, std::size_t compound, NodeIndex element,
                                       NodeIndex anchor) {
  const auto relation = complex.compounds[compound].relation;
  if (compound == 0) {
    return relation == CssCompound::Relation::none || relates(relation, element, anchor) ? Fit::fits : Fit::fails_here;
  }
  switch (relation) {
    case CssCompound::Relation::none: return Fit::fits;
    case CssCompound::Relation::parent: {
      const NodeIndex parent = parent_of(element);
      return parent == kNoNode ? Fit::fails : fit(complex, compound - 1, parent, anchor);
    }
    case CssCompound::Relation::ancestor:
      for (NodeIndex node = parent_of(element); node != kNoNode; node = parent_of(node)) {
        const Fit found = fit(complex, compound - 1, node, anchor);
        if (found == Fit::fits || found == Fit::fails) return found;
      }
      return Fit::fails;
    case CssCompound::Relation::sibling_right_before: {
      const NodeIndex before = element == scope_ ? kNoNode : element_before(element);
      return before == kNoNode ? Fit::fails_for_siblings : fit(complex, compound - 1, before, anchor);
    }
    case CssCompound::Relation::sibling_before:
      if (element == scope_) return Fit::fails_for_siblings;
      for (NodeIndex node = element_before(element); node != kNoNode; node = element_before(node)) {
        const Fit found = fit(complex, compound - 1, node, anchor);
        if (found != Fit::fails_here) return found;
      }
      return Fit::fails_for_siblings;
  }
  __builtin_unreachable();
}

// In :has(): how the first compound's element stands to the one that is asked.
bool CssMatcher::relates(CssCompound::Relation relation, NodeIndex element, NodeIndex anchor) const {
  const TreeNode& row = tree_.nodes[element];
  const bool are_siblings = row.parent == tree_.nodes[anchor].parent && element > anchor;
  switch (relation) {
    case CssCompound::Relation::none: return true;
    case CssCompound::Relation::parent: return row.parent == anchor;
    case CssCompound::Relation::ancestor: return element > anchor && element < tree_.nodes[anchor].end;
    case CssCompound::Relation::sibling_before: return are_siblings;
    case CssCompound::Relation::sibling_right_before: {
      NodeIndex between = tree_.nodes[anchor].end;
      while (are_siblings && between < element && !tree_.is_element(between)) between = tree_.nodes[between].end;
      return are_siblings && between == element;
    }
  }
  __builtin_unreachable();
}

bool CssMatcher::matches_all(const CssCompound& compound, NodeIndex element) {
  return std::ranges::all_of(compound.tests, [&](const CssTest& test) { return matches_one(test, element); });
}

bool CssMatcher::matches_one(const CssTest& test, NodeIndex element) {
  const TreeNode& row = tree_.nodes[element];
  switch (test.kind) {
    case CssTest::Kind::any: return true;
    case CssTest::Kind::name: return row.name == names_[test.element].lower || row.name == names_[test.element].exact;
    case CssTest::Kind::id: {
      const auto* const id = tree_.find_attribute(element, "id");
      return id != nullptr && id->value == test.value;
    }
    case CssTest::Kind::has_class: {
      const auto* const names = tree_.find_attribute(element, "class");
      return names != nullptr && holds_word(names->value, test.value);
    }
    case CssTest::Kind::root: return row.parent == 0;
    case CssTest::Kind::scope: return scope_ == 0 ? row.parent == 0 : element == scope_;
    case CssTest::Kind::empty: return is_empty(element);
    case CssTest::Kind::is: return matches_any_of(test.list, element);
    case CssTest::Kind::is_not: return !matches_any_of(test.list, element);
    case CssTest::Kind::has: return has(test, element);
    case CssTest::Kind::contains: return contains(test, element);
    case CssTest::Kind::lang: return is_in_language(test, element);
    case CssTest::Kind::any_link:
    case CssTest::Kind::checked:
    case CssTest::Kind::disabled:
    case CssTest::Kind::enabled: return is_control(test, element);
    case CssTest::Kind::only_child:
    case CssTest::Kind::only_of_type:
    case CssTest::Kind::nth_child:
    case CssTest::Kind::nth_last_child:
    case CssTest::Kind::nth_of_type:
    case CssTest::Kind::nth_last_of_type: return matches_place(test, element);
    default: return matches_attribute(test, element);
  }
}

bool CssMatcher::matches_attribute(const CssTest& test, NodeIndex element) const {
  const auto* const attribute = find_attribute(element, test.attribute, test.lower);
  if (attribute == nullptr) return test.kind == CssTest::Kind::not_equals;
  if (test.kind == CssTest::Kind::attribute) return true;
  const auto compare = [&](std::string_view value, std::string_view wanted) {
    return test.kind == CssTest::Kind::word ? holds_word(value, wanted) : compare_value(test.kind, value, wanted);
  };
  if (test.ignores_case) return compare(in_lower_case(attribute->value), test.value);
  if (test.has_html_case && !tree_.is_xml && !is_foreign(element))
    return compare(in_lower_case(attribute->value), in_lower_case(test.value));
  return compare(attribute->value, test.value);
}

// Of HTML the name in lower case, or as it is written: some of SVG have capitals.
const TreeAttribute* CssMatcher::find_attribute(NodeIndex element, const std::string& name,
                                                const std::string& lower) const {
  const auto* const found = tree_.find_attribute(element, tree_.is_xml ? name : lower);
  return found == nullptr && !tree_.is_xml && name != lower ? tree_.find_attribute(element, name) : found;
}

// Whether it is SVG's or MathML's, and not in HTML within those.
bool CssMatcher::is_foreign(NodeIndex element) const {
  const auto is_one_of = [](std::string_view name, std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, name) != names.end();
  };
  for (NodeIndex node = element; node != 0 && node != kNoNode; node = tree_.nodes[node].parent) {
    const std::string_view name = tree_.nodes[node].text;
    if (is_one_of(name, {"svg", "math"})) return true;
    if (node != element && is_one_of(name, {"foreignObject", "desc", "title", "annotation-xml", "mtext"})) return false;
  }
  return false;
}

bool CssMatcher::matches_place(const CssTest& test, NodeIndex element) {
  const auto place = [&](bool of_type, bool from_end) { return places_.of(tree_, element, of_type, from_end); };
  switch (test.kind) {
    case CssTest::Kind::only_child: return place(false, false) == 1 && place(false, true) == 1;
    case CssTest::Kind::only_of_type: return place(true, false) == 1 && place(true, true) == 1;
    case CssTest::Kind::nth_of_type: return is_nth(place(true, false), test.step, test.offset);
    case CssTest::Kind::nth_last_of_type: return is_nth(place(true, true), test.step, test.offset);
    default: break;
  }
  const bool from_end = test.kind == CssTest::Kind::nth_last_child;
  if (test.list.empty()) return is_nth(place(false, from_end), test.step, test.offset);
  if (!matches_any_of(test.list, element)) return false;
  std::int64_t among = 1;
  const auto count = [&](NodeIndex sibling) {
    spend(steps_left_, 1);
    if (tree_.is_element(sibling) && matches_any_of(test.list, sibling)) ++among;
    return steps_left_ > 0;
  };
  if (from_end) {
    for (NodeIndex node = tree_.next_sibling(element); node != kNoNode && count(node);) node = tree_.next_sibling(node);
  } else {
    for (NodeIndex node = tree_.nodes[element].previous; node != kNoNode && count(node);)
      node = tree_.nodes[node].previous;
  }
  return is_nth(among, test.step, test.offset);
}

bool CssMatcher::matches_any_of(const std::vector<CssComplex>& list, NodeIndex element) {
  return std::ranges::any_of(list, [&](const CssComplex& complex) { return matches(complex, element, kNoNode); });
}

bool CssMatcher::has(const CssTest& test, NodeIndex element) {
  for (const CssComplex& complex : test.list) {
    const auto relation = complex.compounds.front().relation;
    const bool inside = relation == CssCompound::Relation::ancestor || relation == CssCompound::Relation::parent;
    const NodeIndex first = inside ? element + 1 : tree_.nodes[element].end;
    const NodeIndex end = inside ? tree_.nodes[element].end : tree_.nodes[tree_.nodes[element].parent].end;
    for (NodeIndex node = first; node < end && steps_left_ > 0; ++node) {
      if (tree_.is_element(node) && matches(complex, node, element)) return true;
    }
  }
  return false;
}

bool CssMatcher::contains(const CssTest& test, NodeIndex element) {
  const TreeNode& row = tree_.nodes[element];
  const std::string text = raw_text(tree_, element);
  spend(steps_left_, row.end - element + text.size() / 16);
  return text.contains(test.value);
}

bool CssMatcher::is_in_language(const CssTest& test, NodeIndex element) const {
  for (NodeIndex node = element; node != 0 && node != kNoNode; node = tree_.nodes[node].parent) {
    const auto* attribute = tree_.find_attribute(node, "lang");
    if (attribute == nullptr) attribute = tree_.find_attribute(node, "xml:lang");
    if (attribute == nullptr) continue;
    return compare_value(CssTest::Kind::dash, in_lower_case(attribute->value), test.value);
  }
  return false;
}

bool CssMatcher::is_control(const CssTest& test, NodeIndex element) const {
  const auto has_attribute = [&](std::string_view name) { return tree_.find_attribute(element, name) != nullptr; };
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::any_of(names, [&](std::string_view name) { return is_named(element, name); });
  };
  switch (test.kind) {
    case CssTest::Kind::any_link: return has_attribute("href") && is_one_of({"a", "area"});
    case CssTest::Kind::checked: {
      if (is_named(element, "option")) return has_attribute("selected");
      const auto* const type = is_named(element, "input") ? tree_.find_attribute(element, "type") : nullptr;
      const bool is_box =
          type != nullptr && (equals_lower(type->value, "checkbox") || equals_lower(type->value, "radio"));
      return is_box && has_attribute("checked");
    }
    default:
      return is_one_of({"button", "input", "select", "textarea", "optgroup", "option", "fieldset"}) &&
             is_disabled(element) == (test.kind == CssTest::Kind::disabled);
  }
}

// By itself, by its group of options, or by a fieldset around it, whose first legend is not disabled with it (HTML,
// 4.10.19.5).
bool CssMatcher::is_disabled(NodeIndex control) const {
  const auto says_so = [&](NodeIndex node) { return tree_.find_attribute(node, "disabled") != nullptr; };
  if (says_so(control)) return true;
  if (is_named(control, "optgroup")) return false;
  NodeIndex below = control;
  NodeIndex node = tree_.nodes[control].parent;
  if (is_named(control, "option")) return is_named(node, "optgroup") && says_so(node);
  for (; node != 0 && node != kNoNode; below = node, node = tree_.nodes[node].parent) {
    const bool is_in_first_legend = is_named(below, "legend") && first_legend(node) == below;
    if (is_named(node, "fieldset") && says_so(node) && !is_in_first_legend) return true;
  }
  return false;
}

NodeIndex CssMatcher::first_legend(NodeIndex fieldset) const {
  for (NodeIndex child = fieldset + 1; child < tree_.nodes[fieldset].end; child = tree_.nodes[child].end) {
    if (tree_.is_element(child) && is_named(child, "legend")) return child;
  }
  return kNoNode;
}

bool CssMatcher::is_empty(NodeIndex element) const {
  for (NodeIndex child = element + 1; child < tree_.nodes[element].end; child = tree_.nodes[child].end) {
    if (tree_.is_element(child) || (tree_.is_text(child) && !tree_.nodes[child].text.empty())) return false;
  }
  return true;
}

NodeIndex CssMatcher::parent_of(NodeIndex element) const noexcept {
  const NodeIndex parent = tree_.nodes[element].parent;
  return element == scope_ || parent == 0 ? kNoNode : parent;
}

NodeIndex CssMatcher::element_before(NodeIndex node) {
  do {
    spend(steps_left_, 1);
    node = tree_.nodes[node].previous;
  } while (node != kNoNode && !tree_.is_element(node));
  return node;
}

}  // namespace argiope
