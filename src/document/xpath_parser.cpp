// XPath 1.0, section 3 and 2.5, by recursive descent: where an operand must be, "*" and "div" are names, and where an
// operator must be, they are operators (3.7), which is all there is to that rule.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/internal/printable.hpp"
#include "document/selector_mistake.hpp"
#include "document/xpath_terms.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

struct NamedAxis {
  std::string_view name;
  XPathAxis axis;
};
constexpr NamedAxis kAxes[] = {
    {"ancestor", XPathAxis::ancestor},
    {"ancestor-or-self", XPathAxis::ancestor_or_self},
    {"attribute", XPathAxis::attribute},
    {"child", XPathAxis::child},
    {"descendant", XPathAxis::descendant},
    {"descendant-or-self", XPathAxis::descendant_or_self},
    {"following", XPathAxis::following},
    {"following-sibling", XPathAxis::following_sibling},
    {"namespace", XPathAxis::name_space},
    {"parent", XPathAxis::parent},
    {"preceding", XPathAxis::preceding},
    {"preceding-sibling", XPathAxis::preceding_sibling},
    {"self", XPathAxis::self},
};

// The arguments that a function takes: how many, and whether the first must be nodes.
struct XPathSignature {
  std::string_view name;
  XPathFunction function;
  XPathType type;
  int least, most;
  bool of_nodes = false;
};
constexpr int kAnyNumber = 1000;
constexpr XPathSignature kFunctions[] = {
    {"boolean", XPathFunction::boolean, XPathType::truth, 1, 1},
    {"ceiling", XPathFunction::ceiling, XPathType::number, 1, 1},
    {"concat", XPathFunction::concat, XPathType::text, 2, kAnyNumber},
    {"contains", XPathFunction::contains, XPathType::truth, 2, 2},
    {"count", XPathFunction::count, XPathType::number, 1, 1, true},
    {"false", XPathFunction::false_, XPathType::truth, 0, 0},
    {"floor", XPathFunction::floor, XPathType::number, 1, 1},
    {"has-class", XPathFunction::has_class, XPathType::truth, 1, kAnyNumber},
    {"id", XPathFunction::id, XPathType::nodes, 1, 1},
    {"lang", XPathFunction::lang, XPathType::truth, 1, 1},
    {"last", XPathFunction::last, XPathType::number, 0, 0},
    {"local-name", XPathFunction::local_name, XPathType::text, 0, 1, true},
    {"name", XPathFunction::name, XPathType::text, 0, 1, true},
    {"namespace-uri", XPathFunction::namespace_uri, XPathType::text, 0, 1, true},
    {"normalize-space", XPathFunction::normalize_space, XPathType::text, 0, 1},
    {"not", XPathFunction::not_, XPathType::truth, 1, 1},
    {"number", XPathFunction::number, XPathType::number, 0, 1},
    {"position", XPathFunction::position, XPathType::number, 0, 0},
    {"re:test", XPathFunction::matches, XPathType::truth, 2, 3},
    {"round", XPathFunction::round, XPathType::number, 1, 1},
    {"starts-with", XPathFunction::starts_with, XPathType::truth, 2, 2},
    {"string", XPathFunction::string, XPathType::text, 0, 1},
    {"string-length", XPathFunction::string_length, XPathType::number, 0, 1},
    {"substring", XPathFunction::substring, XPathType::text, 2, 3},
    {"substring-after", XPathFunction::substring_after, XPathType::text, 2, 2},
    {"substring-before", XPathFunction::substring_before, XPathType::text, 2, 2},
    {"sum", XPathFunction::sum, XPathType::number, 1, 1, true},
    {"translate", XPathFunction::translate, XPathType::text, 3, 3},
    {"true", XPathFunction::true_, XPathType::truth, 0, 0},
};

struct NamedNodeTest {
  std::string_view name;
  XPathStep::Test test;
};
constexpr NamedNodeTest kNodeTests[] = {{"comment", XPathStep::Test::comment},
                                        {"node", XPathStep::Test::node},
                                        {"processing-instruction", XPathStep::Test::instruction},
                                        {"text", XPathStep::Test::text}};

struct XPathOperator {
  std::string_view sign;
  XPathTerm::Kind kind;
  XPathType type;
};
// Those of one precedence together, the weakest first; longer signs before those they begin with.
constexpr XPathOperator kEither[] = {{"or", XPathTerm::Kind::either, XPathType::truth}};
constexpr XPathOperator kBoth[] = {{"and", XPathTerm::Kind::both, XPathType::truth}};
constexpr XPathOperator kEqual[] = {{"!=", XPathTerm::Kind::not_equal, XPathType::truth},
                                    {"=", XPathTerm::Kind::equal, XPathType::truth}};
constexpr XPathOperator kOrder[] = {{"<=", XPathTerm::Kind::at_most, XPathType::truth},
                                    {">=", XPathTerm::Kind::at_least, XPathType::truth},
                                    {"<", XPathTerm::Kind::less, XPathType::truth},
                                    {">", XPathTerm::Kind::more, XPathType::truth}};
constexpr XPathOperator kAdd[] = {{"+", XPathTerm::Kind::plus, XPathType::number},
                                  {"-", XPathTerm::Kind::minus, XPathType::number}};
constexpr XPathOperator kMultiply[] = {{"*", XPathTerm::Kind::times, XPathType::number},
                                       {"div", XPathTerm::Kind::divide, XPathType::number},
                                       {"mod", XPathTerm::Kind::modulo, XPathType::number}};
struct XPathLevel {
  const XPathOperator* begin;
  const XPathOperator* end;
};
constexpr XPathLevel kLevels[] = {
    {std::begin(kEither), std::end(kEither)}, {std::begin(kBoth), std::end(kBoth)},
    {std::begin(kEqual), std::end(kEqual)},   {std::begin(kOrder), std::end(kOrder)},
    {std::begin(kAdd), std::end(kAdd)},       {std::begin(kMultiply), std::end(kMultiply)}};

// Whether the number, or its place, decides what a predicate lets through.
bool is_positional(const XPathTerm& predicate) { return predicate.type == XPathType::number || predicate.asks_place; }

class XPathParser {
 public:
  explicit XPathParser(std::string_view text) : text_(text) {}

  XPathTerms read() {
    XPathTerms terms;
    terms.root = read_level(0);
    skip_space();
    if (at_ < text_.size()) mistake(fmt::format("{} is not expected here", shown()));
    terms.names = std::move(names_);
    return terms;
  }

 private:
  [[noreturn]] void mistake(std::string why) const { throw SelectorMistake{at_, std::move(why)}; }
  std::string shown() const { return at_ < text_.size() ? in_quotes(text_.substr(at_, 1)) : "the end"; }

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  bool at(std::string_view sign) {
    skip_space();
    return text_.substr(at_).starts_with(sign);
  }
  bool take(std::string_view sign) {
    if (!at(sign)) return false;
    at_ += sign.size();
    return true;
  }
  void expect(std::string_view sign) {
    if (!take(sign)) mistake(fmt::format("{} is missing, and not {}", in_quotes(sign), shown()));
  }

  static bool begins_name(char c) noexcept { return is_alpha(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80; }
  static bool is_in_name(char c) noexcept { return begins_name(c) || is_digit(c) || c == '-' || c == '.'; }
  bool at_name() {
    skip_space();
    return at_ < text_.size() && begins_name(text_[at_]);
  }
  std::string_view peek_name() {
    if (!at_name()) return {};
    std::size_t end = at_;
    while (end < text_.size() && is_in_name(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }

  // --- operators

  XPathTerm read_level(std::size_t level) {
    if (level == std::size(kLevels)) return read_negative();
    XPathTerm left = read_level(level + 1);
    while (const XPathOperator* const found = take_operator(kLevels[level])) {
      XPathTerm term;
      term.kind = found->kind;
      term.type = found->type;
      term.operands.push_back(std::move(left));
      term.operands.push_back(read_level(level + 1));
      term.asks_place = term.operands[0].asks_place || term.operands[1].asks_place;
      left = std::move(term);
    }
    return left;
  }
  const XPathOperator* take_operator(const XPathLevel& level) {
    for (const XPathOperator* candidate = level.begin; candidate != level.end; ++candidate) {
      const bool is_word = is_alpha(candidate->sign.front());
      if (is_word ? peek_name() != candidate->sign : !at(candidate->sign)) continue;
      at_ += candidate->sign.size();
      return candidate;
    }
    return nullptr;
  }
  XPathTerm read_negative() {
    const Nesting nesting(*this);
    if (!take("-")) return read_union();
    XPathTerm term;
    term.kind = XPathTerm::Kind::negative;
    term.operands.push_back(read_negative());
    term.asks_place = term.operands[0].asks_place;
    return term;
  }
  XPathTerm read_union() {
    const std::size_t start = at_;
    XPathTerm left = read_path();
    while (take("|")) {
      XPathTerm term;
      term.kind = XPathTerm::Kind::unite;
      term.type = XPathType::nodes;
      term.operands.push_back(std::move(left));
      term.operands.push_back(read_path());
      for (const XPathTerm& operand : term.operands) require_nodes(operand, start, "\"|\"");
      left = std::move(term);
    }
    return left;
  }
  void require_nodes(const XPathTerm& term, std::size_t start, std::string_view what) {
    if (term.type == XPathType::nodes) return;
    at_ = start;
    mistake(fmt::format("{} needs nodes", what));
  }

  // --- paths

  // One level of nested expressions.
  struct Nesting {
    explicit Nesting(XPathParser& the_parser) : parser(the_parser) {
      if (++parser.nesting_ > kMostXPathNesting)
        parser.mistake(fmt::format("nested deeper than {}", kMostXPathNesting));
    }
    ~Nesting() { --parser.nesting_; }
    XPathParser& parser;
  };

  XPathTerm read_path() {
    skip_space();
    const std::size_t start = at_;
    if (!at_filter()) {
      XPathTerm path;
      path.kind = XPathTerm::Kind::path;
      path.type = XPathType::nodes;
      read_location(path);
      return path;
    }
    XPathTerm primary = read_primary();
    if (!at("[") && !at("/")) return primary;
    require_nodes(primary, start, at("[") ? "\"[\"" : "\"/\"");
    XPathTerm path;
    path.kind = XPathTerm::Kind::path;
    path.type = XPathType::nodes;
    path.asks_place = primary.asks_place;
    path.operands.push_back(std::move(primary));
    read_predicates(path.predicates);
    if (at("/")) read_steps_behind(path);
    return path;
  }
  // A literal, a number, a bracket, a variable or a call, which begin what is no location.
  bool at_filter() {
    skip_space();
    if (at_ >= text_.size()) return false;
    const char c = text_[at_];
    if (c == '"' || c == '\'' || c == '(' || c == '$' || is_digit(c)) return true;
    if (c == '.') return at_ + 1 < text_.size() && is_digit(text_[at_ + 1]);
    return at_call();
  }
  bool at_call() {
    const std::size_t start = at_;
    const std::string name = take_qualified_name();
    const bool is_call =
        !name.empty() && at("(") && std::ranges::find(kNodeTests, name, &NamedNodeTest::name) == std::end(kNodeTests);
    at_ = start;
    return is_call;
  }
  // "a" or "a:b"; empty where there is none.
  std::string take_qualified_name() {
    std::string name(peek_name());
    at_ += name.size();
    if (name.empty() || at_ + 1 >= text_.size() || text_[at_] != ':' || !begins_name(text_[at_ + 1])) return name;
    ++at_;
    const std::string_view local = peek_name();
    at_ += local.size();
    return name.append(":").append(local);
  }

  void read_location(XPathTerm& path) {
    if (at("//")) {
      path.absolute = true;
      return read_steps_behind(path);
    }
    if (take("/")) {
      path.absolute = true;
      if (!at_step()) return;
    }
    path.steps.push_back(read_step());
    if (at("/")) read_steps_behind(path);
  }
  // "/step", "//step"; at least one.
  void read_steps_behind(XPathTerm& path) {
    while (at("/")) {
      const bool deep = take("//");
      if (!deep) take("/");
      XPathStep step = read_step();
      const bool joins = step.axis == XPathAxis::child && !step.counts_places;
      if (deep && joins) {
        step.axis = XPathAxis::descendant;  // the same, found in one pass
      } else if (deep) {
        path.steps.emplace_back().axis = XPathAxis::descendant_or_self;
      }
      path.steps.push_back(std::move(step));
    }
  }
  bool at_step() {
    skip_space();
    return at_ < text_.size() &&
           (begins_name(text_[at_]) || text_[at_] == '*' || text_[at_] == '@' || text_[at_] == '.');
  }

  XPathStep read_step() {
    if (!at_step()) mistake(at_ < text_.size() ? fmt::format("{} begins no step", shown()) : "a step is missing");
    XPathStep step;
    if (take("..")) {
      step.axis = XPathAxis::parent;
      return step;
    }
    if (take(".")) {
      step.axis = XPathAxis::self;
      return step;
    }
    if (take("@")) {
      step.axis = XPathAxis::attribute;
    } else {
      take_axis(step);
    }
    read_test(step);
    read_predicates(step.predicates);
    step.counts_places = std::ranges::any_of(step.predicates, is_positional);
    return step;
  }
  void take_axis(XPathStep& step) {
    const std::size_t start = at_;
    const std::string_view name = peek_name();
    at_ += name.size();
    if (name.empty() || !take("::")) {
      at_ = start;
      return;
    }
    const auto* const found = std::ranges::find(kAxes, name, &NamedAxis::name);
    if (found == std::end(kAxes)) {
      at_ = start;
      mistake(fmt::format("there is no axis {}", printable(name)));
    }
    step.axis = found->axis;
  }
  void read_test(XPathStep& step) {
    if (take("*")) {
      step.test = XPathStep::Test::any_name;
      return;
    }
    if (!at_name()) mistake("a name is missing");
    const std::size_t start = at_;
    std::string name = take_qualified_name();
    const std::size_t behind = at_;
    if (text_.substr(at_).starts_with(":*")) {
      at_ += 2;
      step.test = XPathStep::Test::any_of_prefix;
      step.name = name + ':';
      return;
    }
    if (take("(")) {
      const auto* const found = std::ranges::find(kNodeTests, name, &NamedNodeTest::name);
      if (found == std::end(kNodeTests)) {
        at_ = start;
        mistake(fmt::format("{}() cannot be a step", printable(name)));
      }
      step.test = found->test;
      if (found->test == XPathStep::Test::instruction && !at(")")) (void)take_literal();
      return expect(")");
    }
    at_ = behind;
    step.test = XPathStep::Test::name;
    step.slot = static_cast<std::uint32_t>(names_.size());
    names_.push_back(name);
    step.name = std::move(name);
  }
  void read_predicates(std::vector<XPathTerm>& predicates) {
    while (take("[")) {
      const Nesting nesting(*this);
      predicates.push_back(read_level(0));
      expect("]");
    }
  }

  // --- what is no path

  XPathTerm read_primary() {
    const Nesting nesting(*this);
    const char c = text_[at_];
    if (c == '$') mistake("there are no variables");
    if (c == '"' || c == '\'') {
      XPathTerm term;
      term.kind = XPathTerm::Kind::text;
      term.type = XPathType::text;
      term.text = take_literal();
      return term;
    }
    if (take("(")) {
      XPathTerm inside = read_level(0);
      expect(")");
      return inside;
    }
    return is_digit(c) || c == '.' ? read_number() : read_call();
  }
  std::string take_literal() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '"' && quote != '\'') mistake("a text in quotes is missing");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) mistake("a text without its end");
    std::string literal(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return literal;
  }
  XPathTerm read_number() {
    XPathTerm term;
    std::size_t end = at_;
    while (end < text_.size() && (is_digit(text_[end]) || text_[end] == '.')) ++end;
    const auto [rest, trouble] =
        std::from_chars(text_.data() + at_, text_.data() + end, term.number, std::chars_format::fixed);
    if (trouble == std::errc::invalid_argument || rest != text_.data() + end) mistake("this is no number");
    at_ = end;
    return term;
  }
  XPathTerm read_call() {
    const std::size_t start = at_;
    const std::string name = take_qualified_name();
    const auto* const found = std::ranges::find(kFunctions, name, &XPathSignature::name);
    if (found == std::end(kFunctions)) {
      at_ = start;
      mistake(fmt::format("there is no function {}()", printable(name)));
    }
    XPathTerm term;
    term.kind = XPathTerm::Kind::call;
    term.type = found->type;
    term.function = found->function;
    term.asks_place = found->function == XPathFunction::position || found->function == XPathFunction::last;
    expect("(");
    while (!at(")")) {
      if (!term.operands.empty()) expect(",");
      term.operands.push_back(read_level(0));
      term.asks_place = term.asks_place || term.operands.back().asks_place;
    }
    expect(")");
    check_call(term, *found, start);
    return term;
  }
  void check_call(XPathTerm& term, const XPathSignature& signature, std::size_t start) {
    const auto given = static_cast<int>(term.operands.size());
    if (given < signature.least || given > signature.most) {
      at_ = start;
      mistake(fmt::format("{}() with {} arguments", signature.name, given));
    }
    if (signature.of_nodes && given > 0) require_nodes(term.operands[0], start, fmt::format("{}()", signature.name));
    if (term.function == XPathFunction::matches) compile_pattern(term, start);
  }
  void compile_pattern(XPathTerm& term, std::size_t start) {
    const auto is_written = [](const XPathTerm& operand) { return operand.kind == XPathTerm::Kind::text; };
    if (!std::all_of(term.operands.begin() + 1, term.operands.end(), is_written)) {
      at_ = start;
      mistake("re:test() needs its pattern and flags in quotes");
    }
    const bool any_case = term.operands.size() == 3 && term.operands[2].text.contains('i');
    RE2::Options options;
    options.set_log_errors(false);
    options.set_case_sensitive(!any_case);
    auto pattern = std::make_shared<RE2>(term.operands[1].text, options);
    if (!pattern->ok()) {
      at_ = start;
      mistake(fmt::format("the pattern of re:test(): {}", printable(pattern->error())));
    }
    term.pattern = std::move(pattern);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  std::vector<std::string> names_;
};

}  // namespace

Result<XPathTerms> parse_xpath(std::string_view text) {
  try {
    return XPathParser(text).read();
  } catch (const SelectorMistake& mistake) {
    return mistake.in("xpath", text);
  }
}

}  // namespace argiope
