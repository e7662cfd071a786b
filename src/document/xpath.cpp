#include "document/xpath.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_set>
#include <utility>

#include "base/internal/utf8.hpp"
#include "document/document_text.hpp"
#include "document/xpath_terms.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

// Leaves an evaluation that takes too long.
struct XPathTooLong {};

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

// XPath 1.0, 4.4: digits with a point, a minus before them, space around them; nothing else.
double xpath_number(std::string_view text) {
  text = trim_space(text);
  const bool minus = text.starts_with('-');
  const std::string_view digits = text.substr(minus ? 1 : 0);
  const bool is_number = digits.find_first_not_of("0123456789.") == std::string_view::npos &&
                         digits.find_first_of("0123456789") != std::string_view::npos;
  double number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, trouble] = std::from_chars(digits.data(), end, number, std::chars_format::fixed);
  if (!is_number || rest != end) return kNotANumber;
  if (trouble == std::errc::result_out_of_range) number = digits.size() > 1 && digits.front() != '0' ? HUGE_VAL : 0;
  return minus ? -number : number;
}

// XPath 1.0, 4.2.
std::string xpath_text(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  if (number == 0) return "0";
  char digits[400];
  const auto [end, trouble] = std::to_chars(digits, std::end(digits), number, std::chars_format::fixed);
  return trouble == std::errc{} ? std::string(digits, end) : fmt::format("{}", number);
}

class XPathValue {
 public:
  XPathType type = XPathType::nodes;
  std::vector<TreePlace> nodes;  // each once, in order
  double number = 0;
  std::string text;
  bool truth = false;

  static XPathValue of(double number) {
    XPathValue value;
    value.type = XPathType::number;
    value.number = number;
    return value;
  }
  static XPathValue of(std::string text) {
    XPathValue value;
    value.type = XPathType::text;
    value.text = std::move(text);
    return value;
  }
  static XPathValue of(bool truth) {
    XPathValue value;
    value.type = XPathType::truth;
    value.truth = truth;
    return value;
  }
};

// Where a term is computed.
struct XPathContext {
  TreePlace place;
  std::size_t position = 1;
  std::size_t last = 1;
};

class XPathEvaluator {
 public:
  XPathEvaluator(const XPathTerms& terms, const DocumentTree& tree, std::uint64_t most_steps)
      : tree_(tree), steps_left_(most_steps) {
    for (const std::string& name : terms.names) names_.push_back(tree.find_name(name));
  }

  XPathValue evaluate(const XPathTerm& term, const XPathContext& context);
  std::string text_of(const XPathValue& value);

 private:
  // Throws XPathTooLong.
  void spend(std::uint64_t steps) {
    if (steps >= steps_left_) throw XPathTooLong{};
    steps_left_ -= steps;
  }

  // --- values
  std::string text_of(const TreePlace& place);
  double number_of(const XPathValue& value) {
    if (value.type == XPathType::number) return value.number;
    if (value.type == XPathType::truth) return value.truth ? 1 : 0;
    return xpath_number(text_of(value));
  }
  static bool truth_of(const XPathValue& value) {
    switch (value.type) {
      case XPathType::nodes: return !value.nodes.empty();
      case XPathType::number: return value.number != 0 && !std::isnan(value.number);
      case XPathType::text: return !value.text.empty();
      case XPathType::truth: return value.truth;
    }
    __builtin_unreachable();
  }

  // --- operators
  double compute(XPathTerm::Kind kind, double left, double right);
  bool compare(XPathTerm::Kind kind, const XPathValue& left, const XPathValue& right);
  bool compare_sets(XPathTerm::Kind kind, const std::vector<TreePlace>& left, const std::vector<TreePlace>& right);
  static bool compare_numbers(XPathTerm::Kind kind, double left, double right);

  // --- paths
  XPathValue follow(const XPathTerm& path, const XPathContext& context);
  std::vector<TreePlace> take_step(const XPathStep& step, const std::vector<TreePlace>& from);
  void walk(const XPathStep& step, TreePlace from, std::vector<TreePlace>& found);
  void walk_nodes(const XPathStep& step, NodeIndex from, std::vector<TreePlace>& found);
  void walk_range(const XPathStep& step, NodeIndex begin, NodeIndex end, std::vector<TreePlace>& found);
  void walk_attributes(const XPathStep& step, NodeIndex element, std::vector<TreePlace>& found);
  void add_if(const XPathStep& step, TreePlace place, std::vector<TreePlace>& found) {
    spend(1);
    if (passes(step, place)) found.push_back(place);
  }
  bool passes(const XPathStep& step, TreePlace place) const;
  std::string_view name_of(TreePlace place) const;
  // Of places in the order of an axis.
  void filter(const std::vector<XPathTerm>& predicates, std::vector<TreePlace>& places);
  void put_in_order(std::vector<TreePlace>& places) const;
  bool is_in_order(const std::vector<TreePlace>& places) const {
    return std::ranges::adjacent_find(places, std::greater_equal<>{}) == places.end();
  }

  // --- functions
  XPathValue call(const XPathTerm& term, const XPathContext& context);
  XPathValue call_on_nodes(const XPathTerm& term, const XPathContext& context);
  XPathValue call_on_texts(const XPathTerm& term, const XPathContext& context);
  std::string argument(const XPathTerm& term, std::size_t place, const XPathContext& context);
  std::string cut(const XPathTerm& term, const XPathContext& context);
  std::string translate(const XPathTerm& term, const XPathContext& context);
  bool has_classes(const XPathTerm& term, const XPathContext& context);
  bool is_in_language(std::string wanted, NodeIndex node) const;
  std::vector<TreePlace> with_ids(const std::string& ids);

  const DocumentTree& tree_;
  std::uint64_t steps_left_;
  std::vector<std::uint32_t> names_;  // of the expression's, their places among the tree's
};

// --- values
// --------------------------------------------------------------------------------------------------------------

std::string XPathEvaluator::text_of(const TreePlace& place) {
  if (place.attribute > 0) return std::string(tree_.attributes[place.attribute - 1].value);
  std::string text = raw_text(tree_, place.node);
  spend(tree_.nodes[place.node].end - place.node + text.size() / 16);
  return text;
}

std::string XPathEvaluator::text_of(const XPathValue& value) {
  switch (value.type) {
    case XPathType::nodes: return value.nodes.empty() ? std::string{} : text_of(value.nodes.front());
    case XPathType::number: return xpath_text(value.number);
    case XPathType::text: return value.text;
    case XPathType::truth: return value.truth ? "true" : "false";
  }
  __builtin_unreachable();
}

// --- operators
// -----------------------------------------------------------------------------------------------------------

XPathValue XPathEvaluator::evaluate(const XPathTerm& term, const XPathContext& context) {
  spend(1);
  const auto operand = [&](std::size_t place) { return evaluate(term.operands[place], context); };
  switch (term.kind) {
    case XPathTerm::Kind::number: return XPathValue::of(term.number);
    case XPathTerm::Kind::text: return XPathValue::of(term.text);
    case XPathTerm::Kind::either: return XPathValue::of(truth_of(operand(0)) || truth_of(operand(1)));
    case XPathTerm::Kind::both: return XPathValue::of(truth_of(operand(0)) && truth_of(operand(1)));
    case XPathTerm::Kind::negative: return XPathValue::of(-number_of(operand(0)));
    case XPathTerm::Kind::plus:
    case XPathTerm::Kind::minus:
    case XPathTerm::Kind::times:
    case XPathTerm::Kind::divide:
    case XPathTerm::Kind::modulo:
      return XPathValue::of(compute(term.kind, number_of(operand(0)), number_of(operand(1))));
    case XPathTerm::Kind::unite: {
      XPathValue value = operand(0);
      const XPathValue other = operand(1);
      value.nodes.insert(value.nodes.end(), other.nodes.begin(), other.nodes.end());
      put_in_order(value.nodes);
      return value;
    }
    case XPathTerm::Kind::path: return follow(term, context);
    case XPathTerm::Kind::call: return call(term, context);
    default: return XPathValue::of(compare(term.kind, operand(0), operand(1)));
  }
}

double XPathEvaluator::compute(XPathTerm::Kind kind, double left, double right) {
  switch (kind) {
    case XPathTerm::Kind::plus: return left + right;
    case XPathTerm::Kind::minus: return left - right;
    case XPathTerm::Kind::times: return left * right;
    case XPathTerm::Kind::divide: return left / right;
    default: return std::fmod(left, right);
  }
}

bool XPathEvaluator::compare_numbers(XPathTerm::Kind kind, double left, double right) {
  switch (kind) {
    case XPathTerm::Kind::equal: return left == right;
    case XPathTerm::Kind::not_equal: return left != right;
    case XPathTerm::Kind::less: return left < right;
    case XPathTerm::Kind::at_most: return left <= right;
    case XPathTerm::Kind::more: return left > right;
    default: return left >= right;
  }
}

// XPath 1.0, 3.4.
bool XPathEvaluator::compare(XPathTerm::Kind kind, const XPathValue& left, const XPathValue& right) {
  const bool for_equality = kind == XPathTerm::Kind::equal || kind == XPathTerm::Kind::not_equal;
  const bool wants_equal = kind == XPathTerm::Kind::equal;
  const bool left_is_set = left.type == XPathType::nodes;
  const bool right_is_set = right.type == XPathType::nodes;
  const bool has_truth = left.type == XPathType::truth || right.type == XPathType::truth;
  if (has_truth && (for_equality || left_is_set || right_is_set)) {
    const bool a = truth_of(left);
    const bool b = truth_of(right);
    return for_equality ? (a == b) == wants_equal : compare_numbers(kind, a ? 1 : 0, b ? 1 : 0);
  }
  if (left_is_set && right_is_set) return compare_sets(kind, left.nodes, right.nodes);
  if (!left_is_set && !right_is_set) {
    const bool as_texts = for_equality && left.type == XPathType::text && right.type == XPathType::text;
    if (as_texts) return (left.text == right.text) == wants_equal;
    return compare_numbers(kind, number_of(left), number_of(right));
  }
  // Whether one of the nodes compares so with the other side.
  const XPathValue& single = left_is_set ? right : left;
  const double number = single.type == XPathType::number || !for_equality ? number_of(single) : 0;
  return std::ranges::any_of(left_is_set ? left.nodes : right.nodes, [&](const TreePlace& place) {
    const std::string text = text_of(place);
    if (single.type == XPathType::text && for_equality) return (text == single.text) == wants_equal;
    const double own = xpath_number(text);
    return left_is_set ? compare_numbers(kind, own, number) : compare_numbers(kind, number, own);
  });
}

// Whether some pair compares so: found without looking at pairs.
bool XPathEvaluator::compare_sets(XPathTerm::Kind kind, const std::vector<TreePlace>& left,
                                  const std::vector<TreePlace>& right) {
  if (left.empty() || right.empty()) return false;
  if (kind == XPathTerm::Kind::equal || kind == XPathTerm::Kind::not_equal) {
    std::unordered_set<std::string> of_left, of_right;
    for (const TreePlace& place : left) of_left.insert(text_of(place));
    for (const TreePlace& place : right) {
      std::string text = text_of(place);
      if (kind == XPathTerm::Kind::equal && of_left.contains(text)) return true;
      of_right.insert(std::move(text));
    }
    return kind == XPathTerm::Kind::not_equal && (of_left.size() > 1 || of_right.size() > 1 || of_left != of_right);
  }
  double least[] = {HUGE_VAL, HUGE_VAL};
  double most[] = {-HUGE_VAL, -HUGE_VAL};
  bool is_there[] = {false, false};
  for (const int side : {0, 1}) {
    for (const TreePlace& place : side == 0 ? left : right) {
      const double number = xpath_number(text_of(place));
      if (std::isnan(number)) continue;
      is_there[side] = true;
      least[side] = std::min(least[side], number);
      most[side] = std::max(most[side], number);
    }
  }
  if (!is_there[0] || !is_there[1]) return false;
  const bool ascending = kind == XPathTerm::Kind::less || kind == XPathTerm::Kind::at_most;
  return ascending ? compare_numbers(kind, least[0], most[1]) : compare_numbers(kind, most[0], least[1]);
}

// --- paths
// ---------------------------------------------------------------------------------------------------------------

XPathValue XPathEvaluator::follow(const XPathTerm& path, const XPathContext& context) {
  XPathValue value;
  if (!path.operands.empty()) {
    value.nodes = evaluate(path.operands[0], context).nodes;
    filter(path.predicates, value.nodes);
  } else {
    value.nodes.push_back(path.absolute ? TreePlace{} : context.place);
  }
  for (const XPathStep& step : path.steps) value.nodes = take_step(step, value.nodes);
  return value;
}

std::vector<TreePlace> XPathEvaluator::take_step(const XPathStep& step, const std::vector<TreePlace>& from) {
  std::vector<TreePlace> all;
  std::vector<TreePlace> found;
  const bool covers = step.axis == XPathAxis::descendant || step.axis == XPathAxis::descendant_or_self;
  NodeIndex covered_until = 0;
  for (const TreePlace& place : from) {
    spend(1);
    // A node within one whose inside has been looked at already adds nothing, where a place does not count.
    if (covers && !step.counts_places && place.attribute == 0 && place.node < covered_until) continue;
    if (covers && place.attribute == 0) covered_until = tree_.nodes[place.node].end;
    found.clear();
    walk(step, place, found);
    filter(step.predicates, found);
    all.insert(all.end(), found.begin(), found.end());
    // No more than twice what there is.
    if (all.size() > 2 * (tree_.nodes.size() + tree_.attributes.size())) put_in_order(all);
  }
  put_in_order(all);
  return all;
}

void XPathEvaluator::walk(const XPathStep& step, TreePlace from, std::vector<TreePlace>& found) {
  if (from.attribute == 0) return walk_nodes(step, from.node, found);
  // An attribute has a parent, and nothing in it or beside it.
  switch (step.axis) {
    case XPathAxis::self:
    case XPathAxis::descendant_or_self: return add_if(step, from, found);
    case XPathAxis::parent: return add_if(step, {from.node, 0}, found);
    case XPathAxis::ancestor_or_self: add_if(step, from, found); [[fallthrough]];
    case XPathAxis::ancestor:
      for (NodeIndex node = from.node; node != kNoNode; node = tree_.nodes[node].parent) add_if(step, {node, 0}, found);
      return;
    case XPathAxis::following:
      return walk_range(step, from.node + 1, static_cast<NodeIndex>(tree_.nodes.size()), found);
    case XPathAxis::preceding: return walk_nodes(step, from.node, found);
    default: return;
  }
}

void XPathEvaluator::walk_nodes(const XPathStep& step, NodeIndex from, std::vector<TreePlace>& found) {
  const TreeNode& row = tree_.nodes[from];
  const auto size = static_cast<NodeIndex>(tree_.nodes.size());
  switch (step.axis) {
    case XPathAxis::self: return add_if(step, {from, 0}, found);
    case XPathAxis::attribute: return walk_attributes(step, from, found);
    case XPathAxis::child:
      for (NodeIndex node = from + 1; node < row.end; node = tree_.nodes[node].end) add_if(step, {node, 0}, found);
      return;
    case XPathAxis::descendant: return walk_range(step, from + 1, row.end, found);
    case XPathAxis::descendant_or_self: return walk_range(step, from, row.end, found);
    case XPathAxis::parent:
      if (row.parent != kNoNode) add_if(step, {row.parent, 0}, found);
      return;
    case XPathAxis::ancestor:
    case XPathAxis::ancestor_or_self:
      for (NodeIndex node = step.axis == XPathAxis::ancestor ? row.parent : from; node != kNoNode;
           node = tree_.nodes[node].parent) {
        add_if(step, {node, 0}, found);
      }
      return;
    case XPathAxis::following: return walk_range(step, row.end, size, found);
    case XPathAxis::following_sibling:
      for (NodeIndex node = tree_.next_sibling(from); node != kNoNode; node = tree_.next_sibling(node)) {
        add_if(step, {node, 0}, found);
      }
      return;
    case XPathAxis::preceding_sibling:
      for (NodeIndex node = row.previous; node != kNoNode; node = tree_.nodes[node].previous)
        add_if(step, {node, 0}, found);
      return;
    case XPathAxis::preceding:
      // From here to the front, but for what is around.
      for (NodeIndex node = from; node-- > 1;) {
        if (tree_.nodes[node].end <= from) add_if(step, {node, 0}, found);
      }
      return;
    case XPathAxis::name_space: return;
  }
}

void XPathEvaluator::walk_range(const XPathStep& step, NodeIndex begin, NodeIndex end, std::vector<TreePlace>& found) {
  if (begin >= end) return;
  spend(end - begin);
  for (NodeIndex node = begin; node < end; ++node) {
    if (passes(step, {node, 0})) found.push_back({node, 0});
  }
}

void XPathEvaluator::walk_attributes(const XPathStep& step, NodeIndex element, std::vector<TreePlace>& found) {
  const TreeNode& row = tree_.nodes[element];
  for (std::uint32_t i = 0; i < row.attributes; ++i) add_if(step, {element, row.first_attribute + i + 1}, found);
}

bool XPathEvaluator::passes(const XPathStep& step, TreePlace place) const {
  const TreeNode& row = tree_.nodes[place.node];
  const bool is_named = place.attribute > 0 ? step.axis == XPathAxis::attribute : row.kind == TreeNode::Kind::element;
  switch (step.test) {
    case XPathStep::Test::node: return true;
    case XPathStep::Test::text: return place.attribute == 0 && row.kind == TreeNode::Kind::text;
    case XPathStep::Test::comment: return place.attribute == 0 && row.kind == TreeNode::Kind::comment;
    case XPathStep::Test::instruction: return false;
    case XPathStep::Test::any_name: return is_named;
    case XPathStep::Test::any_of_prefix: return is_named && name_of(place).starts_with(step.name);
    case XPathStep::Test::name:
      if (!is_named) return false;
      return place.attribute > 0 ? name_of(place) == step.name : row.name == names_[step.slot];
  }
  __builtin_unreachable();
}

std::string_view XPathEvaluator::name_of(TreePlace place) const {
  if (place.attribute > 0) return tree_.attributes[place.attribute - 1].name;
  return tree_.is_element(place.node) ? tree_.nodes[place.node].text : std::string_view{};
}

void XPathEvaluator::filter(const std::vector<XPathTerm>& predicates, std::vector<TreePlace>& places) {
  for (const XPathTerm& predicate : predicates) {
    XPathContext context;
    context.last = places.size();
    std::size_t kept = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      context.place = places[i];
      context.position = i + 1;
      const XPathValue value = evaluate(predicate, context);
      const bool passes_it =
          value.type == XPathType::number ? value.number == static_cast<double>(i + 1) : truth_of(value);
      if (passes_it) places[kept++] = places[i];
    }
    places.resize(kept);
  }
}

void XPathEvaluator::put_in_order(std::vector<TreePlace>& places) const {
  if (is_in_order(places)) return;
  const bool has_attributes = std::ranges::any_of(places, [](const TreePlace& place) { return place.attribute > 0; });
  if (!has_attributes && places.size() > tree_.nodes.size() / 8) {
    std::vector<bool> is_there(tree_.nodes.size());
    for (const TreePlace& place : places) is_there[place.node] = true;
    places.clear();
    for (NodeIndex node = 0; node < is_there.size(); ++node) {
      if (is_there[node]) places.push_back({node, 0});
    }
    return;
  }
  std::ranges::sort(places);
  const auto again = std::ranges::unique(places);
  places.erase(again.begin(), again.end());
}

// --- functions (XPath 1.0, 4)
// --------------------------------------------------------------------------------------------

// The argument, or without one the text of the context.
std::string XPathEvaluator::argument(const XPathTerm& term, std::size_t place, const XPathContext& context) {
  return place < term.operands.size() ? text_of(evaluate(term.operands[place], context)) : text_of(context.place);
}

XPathValue XPathEvaluator::call(const XPathTerm& term, const XPathContext& context) {
  const auto number = [&] {
    return term.operands.empty() ? xpath_number(text_of(context.place))
                                 : number_of(evaluate(term.operands[0], context));
  };
  switch (term.function) {
    case XPathFunction::true_: return XPathValue::of(true);
    case XPathFunction::false_: return XPathValue::of(false);
    case XPathFunction::boolean: return XPathValue::of(truth_of(evaluate(term.operands[0], context)));
    case XPathFunction::not_: return XPathValue::of(!truth_of(evaluate(term.operands[0], context)));
    case XPathFunction::last: return XPathValue::of(static_cast<double>(context.last));
    case XPathFunction::position: return XPathValue::of(static_cast<double>(context.position));
    case XPathFunction::number: return XPathValue::of(number());
    case XPathFunction::ceiling: return XPathValue::of(std::ceil(number()));
    case XPathFunction::floor: return XPathValue::of(std::floor(number()));
    case XPathFunction::round: {
      const double value = number();
      return XPathValue::of(std::isfinite(value) ? std::floor(value + 0.5) : value);
    }
    case XPathFunction::count:
    case XPathFunction::sum:
    case XPathFunction::id:
    case XPathFunction::lang:
    case XPathFunction::has_class:
    case XPathFunction::name:
    case XPathFunction::local_name:
    case XPathFunction::namespace_uri: return call_on_nodes(term, context);
    default: return call_on_texts(term, context);
  }
}

XPathValue XPathEvaluator::call_on_nodes(const XPathTerm& term, const XPathContext& context) {
  if (term.function == XPathFunction::has_class) return XPathValue::of(has_classes(term, context));
  if (term.function == XPathFunction::lang)
    return XPathValue::of(is_in_language(argument(term, 0, context), context.place.node));
  XPathValue value;
  if (term.operands.empty()) {
    value.nodes.push_back(context.place);
  } else {
    value = evaluate(term.operands[0], context);
  }
  switch (term.function) {
    case XPathFunction::count: return XPathValue::of(static_cast<double>(value.nodes.size()));
    case XPathFunction::sum: {
      double sum = 0;
      for (const TreePlace& place : value.nodes) sum += xpath_number(text_of(place));
      return XPathValue::of(sum);
    }
    case XPathFunction::id: {
      std::string ids;
      if (value.type != XPathType::nodes) ids = text_of(value);
      for (const TreePlace& place : value.nodes) ids += text_of(place) + ' ';
      XPathValue found;
      found.nodes = with_ids(ids);
      return found;
    }
    default: break;
  }
  std::string_view name = value.nodes.empty() ? std::string_view{} : name_of(value.nodes.front());
  if (term.function == XPathFunction::namespace_uri) name = {};
  if (term.function == XPathFunction::local_name) name = name.substr(name.find(':') + 1);
  return XPathValue::of(std::string(name));
}

XPathValue XPathEvaluator::call_on_texts(const XPathTerm& term, const XPathContext& context) {
  std::string text = argument(term, 0, context);
  spend(text.size() / 16);
  switch (term.function) {
    case XPathFunction::string: return XPathValue::of(std::move(text));
    case XPathFunction::string_length: return XPathValue::of(static_cast<double>(characters_in(text)));
    case XPathFunction::concat:
      for (std::size_t i = 1; i < term.operands.size(); ++i) text += argument(term, i, context);
      return XPathValue::of(std::move(text));
    case XPathFunction::contains: return XPathValue::of(text.contains(argument(term, 1, context)));
    case XPathFunction::starts_with: return XPathValue::of(text.starts_with(argument(term, 1, context)));
    case XPathFunction::substring_before: {
      const std::size_t at = text.find(argument(term, 1, context));
      return XPathValue::of(at == std::string::npos ? std::string{} : text.substr(0, at));
    }
    case XPathFunction::substring_after: {
      const std::string mark = argument(term, 1, context);
      const std::size_t at = text.find(mark);
      return XPathValue::of(at == std::string::npos ? std::string{} : text.substr(at + mark.size()));
    }
    case XPathFunction::substring: return XPathValue::of(cut(term, context));
    case XPathFunction::translate: return XPathValue::of(translate(term, context));
    case XPathFunction::matches: return XPathValue::of(RE2::PartialMatch(text, *term.pattern));
    default: break;
  }
  // normalize-space()
  std::string normal;
  for_each_token(text, is_space, [&](std::string_view word) {
    if (!normal.empty()) normal += ' ';
    normal += word;
  });
  return XPathValue::of(std::move(normal));
}

// substring(): from a character on, which may be before the first, and so many; both rounded.
std::string XPathEvaluator::cut(const XPathTerm& term, const XPathContext& context) {
  const std::string text = argument(term, 0, context);
  const double first = std::floor(number_of(evaluate(term.operands[1], context)) + 0.5);
  const double end =
      term.operands.size() < 3 ? HUGE_VAL : first + std::floor(number_of(evaluate(term.operands[2], context)) + 0.5);
  std::string part;
  double place = 0;
  for (const char c : text) {
    if ((c & 0xc0) != 0x80) ++place;
    if (place >= first && place < end) part += c;
  }
  return part;
}

std::string XPathEvaluator::translate(const XPathTerm& term, const XPathContext& context) {
  const auto characters = [](std::string_view text) {
    std::vector<std::string_view> all;
    while (!text.empty()) {
      const std::size_t length = std::max<std::size_t>(utf8_length(text), 1);
      all.push_back(text.substr(0, length));
      text.remove_prefix(length);
    }
    return all;
  };
  const std::string text = argument(term, 0, context);
  const std::string from_text = argument(term, 1, context);
  const std::string to_text = argument(term, 2, context);
  const auto from = characters(from_text);
  const auto to = characters(to_text);
  spend((text.size() * from.size()) / 4);
  std::string out;
  for (const std::string_view character : characters(text)) {
    const auto at = static_cast<std::size_t>(std::ranges::find(from, character) - from.begin());
    if (at == from.size()) {
      out += character;
    } else if (at < to.size()) {
      out += to[at];
    }
  }
  return out;
}

bool XPathEvaluator::has_classes(const XPathTerm& term, const XPathContext& context) {
  const TreeAttribute* const classes = context.place.attribute == 0 && tree_.is_element(context.place.node)
                                           ? tree_.find_attribute(context.place.node, "class")
                                           : nullptr;
  if (classes == nullptr) return false;
  for (std::size_t i = 0; i < term.operands.size(); ++i) {
    const std::string wanted = argument(term, i, context);
    bool found = false;
    for_each_token(classes->value, is_space, [&](std::string_view word) { found = found || word == wanted; });
    if (!found) return false;
  }
  return true;
}

bool XPathEvaluator::is_in_language(std::string wanted, NodeIndex node) const {
  std::ranges::transform(wanted, wanted.begin(), to_lower);
  for (; node != kNoNode; node = tree_.nodes[node].parent) {
    const TreeAttribute* attribute = tree_.find_attribute(node, "xml:lang");
    if (attribute == nullptr) attribute = tree_.find_attribute(node, "lang");
    if (attribute == nullptr) continue;
    const std::string_view language = attribute->value;
    return starts_with_lower(language, wanted) && (language.size() == wanted.size() || language[wanted.size()] == '-');
  }
  return false;
}

std::vector<TreePlace> XPathEvaluator::with_ids(const std::string& ids) {
  std::unordered_set<std::string_view> wanted;
  for_each_token(ids, is_space, [&](std::string_view id) { wanted.insert(id); });
  spend(tree_.nodes.size());
  std::vector<TreePlace> found;
  for (NodeIndex node = 1; node < tree_.nodes.size() && !wanted.empty(); ++node) {
    if (!tree_.is_element(node)) continue;
    const TreeAttribute* const id = tree_.find_attribute(node, "id");
    if (id != nullptr && wanted.erase(id->value) > 0) found.push_back({node, 0});
  }
  return found;
}

}  // namespace

// --- expressions
// ---------------------------------------------------------------------------------------------------------

struct XPathExpression::Parsed {
  XPathTerms terms;
};

XPathExpression::XPathExpression(std::unique_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}
XPathExpression::~XPathExpression() = default;

Result<std::shared_ptr<const XPathExpression>> XPathExpression::compile(std::string_view text) {
  auto terms = parse_xpath(text);
  if (!terms) return std::unexpected(std::move(terms.error()));
  auto parsed = std::make_unique<const Parsed>(std::move(*terms));
  return std::shared_ptr<const XPathExpression>(new XPathExpression(std::move(parsed)));
}

std::optional<XPathExpression::Answer> XPathExpression::evaluate(const DocumentTree& tree,
                                                                 std::span<const NodeIndex> contexts,
                                                                 std::uint64_t most_steps) const {
  try {
    XPathEvaluator evaluator(parsed_->terms, tree, most_steps);
    Answer answer;
    FoundPlaces found(tree);
    for (const NodeIndex context : contexts) {
      XPathContext start;
      start.place.node = context;
      XPathValue value = evaluator.evaluate(parsed_->terms.root, start);
      if (value.type == XPathType::nodes) {
        if (contexts.size() == 1) return Answer{.nodes = std::move(value.nodes), .values = {}};
        found.add(value.nodes);
      } else {
        answer.values.push_back(evaluator.text_of(value));
      }
    }
    answer.nodes = found.take();
    return answer;
  } catch (const XPathTooLong&) {
    return std::nullopt;
  }
}

}  // namespace argiope
