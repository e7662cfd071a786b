#include "document/internal/css_selector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/internal/printable.hpp"
#include "document/selector_mistake.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/code_points.hpp"
#include "web/text/internal/lower_case.hpp"

namespace argiope {
namespace {

// Attributes whose values are compared without case on HTML's elements (HTML, 4.16.2).
constexpr std::string_view kAnyCaseInHtml[] = {
    "accept",   "accept-charset", "align",    "alink",      "axis",   "bgcolor",  "charset",   "checked",  "clear",
    "codetype", "color",          "compact",  "declare",    "defer",  "dir",      "direction", "disabled", "enctype",
    "face",     "frame",          "hreflang", "http-equiv", "lang",   "language", "link",      "media",    "method",
    "multiple", "nohref",         "noresize", "noshade",    "nowrap", "readonly", "rel",       "rev",      "rules",
    "scope",    "scrolling",      "selected", "shape",      "target", "text",     "type",      "valign",   "valuetype",
    "vlink"};
static_assert(std::ranges::is_sorted(kAnyCaseInHtml));

// Pseudo-classes that say a thing of one element and have no arguments.
struct PlainPseudo {
  std::string_view name;
  CssTest::Kind kind;
  std::int64_t offset = 0;  // of the nth
};
constexpr PlainPseudo kPlainPseudos[] = {
    {"root", CssTest::Kind::root},
    {"empty", CssTest::Kind::empty},
    {"scope", CssTest::Kind::scope},
    {"first-child", CssTest::Kind::nth_child, 1},
    {"last-child", CssTest::Kind::nth_last_child, 1},
    {"only-child", CssTest::Kind::only_child},
    {"first-of-type", CssTest::Kind::nth_of_type, 1},
    {"last-of-type", CssTest::Kind::nth_last_of_type, 1},
    {"only-of-type", CssTest::Kind::only_of_type},
    {"link", CssTest::Kind::any_link},
    {"any-link", CssTest::Kind::any_link},
    {"checked", CssTest::Kind::checked},
    {"disabled", CssTest::Kind::disabled},
    {"enabled", CssTest::Kind::enabled},
};

struct NthPseudo {
  std::string_view name;
  CssTest::Kind kind;
};
constexpr NthPseudo kNthPseudos[] = {
    {"nth-child", CssTest::Kind::nth_child},
    {"nth-last-child", CssTest::Kind::nth_last_child},
    {"nth-of-type", CssTest::Kind::nth_of_type},
    {"nth-last-of-type", CssTest::Kind::nth_last_of_type},
};

// Selectors Level 3 and 4 by recursive descent, over the characters themselves: there are so few kinds of tokens that a
// tokeniser would be longer.
class CssParser {
 public:
  explicit CssParser(std::string_view text) : text_(text) {}

  CssSelector read() {
    CssSelector selector;
    selector.list = read_list(false);
    if (at_ < text_.size()) mistake(fmt::format("{} is not expected here", shown()));
    selector.names = std::move(names_);
    return selector;
  }

 private:
  [[noreturn]] void mistake(std::string why) const { throw SelectorMistake{at_, std::move(why)}; }
  [[noreturn]] static void mistake_at(std::size_t at, std::string why) { throw SelectorMistake{at, std::move(why)}; }

  char peek(std::size_t ahead = 0) const noexcept { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool take(char c) noexcept {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  std::string shown() const { return at_ < text_.size() ? in_quotes(text_.substr(at_, 1)) : "the end"; }
  // Space and comments; whether there was any.
  bool skip_space() {
    const std::size_t start = at_;
    while (at_ < text_.size()) {
      if (is_space(text_[at_])) {
        ++at_;
      } else if (text_.substr(at_).starts_with("/*")) {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) mistake("a comment without its end");
        at_ = end + 2;
      } else {
        break;
      }
    }
    return at_ != start;
  }

  // --- names and strings (CSS Syntax Level 3)

  static bool begins_name(char c) noexcept { return is_alpha(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80; }
  static bool is_in_name(char c) noexcept { return begins_name(c) || is_digit(c) || c == '-'; }
  bool at_name() const noexcept {
    const char c = peek();
    if (begins_name(c)) return true;
    if (c == '\\') return at_ + 1 < text_.size() && peek(1) != '\n';
    return c == '-' && (begins_name(peek(1)) || peek(1) == '-' || peek(1) == '\\');
  }

  void take_escape(std::string& out) {
    ++at_;
    if (at_ >= text_.size()) mistake("a character is missing behind \"\\\"");
    if (hex_value(peek()) < 0) {
      out += text_[at_++];
      return;
    }
    std::uint32_t code = 0;
    for (int digits = 0; digits < 6 && hex_value(peek()) >= 0; ++digits) {
      code = code * 16 + static_cast<std::uint32_t>(hex_value(text_[at_++]));
    }
    if (is_space(peek())) ++at_;
    // CSS Syntax, 4.3.7.
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) code = 0xfffd;
    append_utf8(code, out);
  }
  std::string take_name(std::string_view what) {
    if (!at_name()) mistake(fmt::format("{} is missing", what));
    return take_name_characters();
  }
  std::string take_name_characters() {
    std::string name;
    while (at_ < text_.size()) {
      if (peek() == '\\') {
        take_escape(name);
      } else if (is_in_name(peek())) {
        name += text_[at_++];
      } else {
        break;
      }
    }
    return name;
  }
  std::string take_string() {
    const char quote = text_[at_];
    const std::size_t start = at_++;
    std::string value;
    while (true) {
      if (at_ >= text_.size()) mistake_at(start, "a string without its end");
      if (take(quote)) return value;
      if (text_.substr(at_).starts_with("\\\n")) {
        at_ += 2;
      } else if (peek() == '\\') {
        take_escape(value);
      } else {
        value += text_[at_++];
      }
    }
  }
  std::string take_name_or_string(std::string_view what) {
    return peek() == '"' || peek() == '\'' ? take_string() : take_name(what);
  }

  // --- selectors

  // Up to the end, or to the ")" that ends the arguments of a pseudo-class. Relative: each may begin with a combinator.
  std::vector<CssComplex> read_list(bool relative) {
    std::vector<CssComplex> list;
    do {
      skip_space();
      list.push_back(read_complex(relative));
      skip_space();
    } while (take(','));
    return list;
  }

  std::optional<CssCompound::Relation> take_combinator() {
    if (take('>')) return CssCompound::Relation::parent;
    if (take('+')) return CssCompound::Relation::sibling_right_before;
    if (take('~')) return CssCompound::Relation::sibling_before;
    return std::nullopt;
  }
  bool at_end_of_complex() const noexcept { return at_ >= text_.size() || peek() == ',' || peek() == ')'; }

  CssComplex read_complex(bool relative) {
    CssComplex complex;
    auto relation = CssCompound::Relation::none;
    if (relative) {
      relation = take_combinator().value_or(CssCompound::Relation::ancestor);
      skip_space();
    }
    while (true) {
      read_compound(complex, relation);
      const std::size_t behind = at_;
      const bool spaced = skip_space();
      if (at_end_of_complex()) return complex;
      const auto combinator = take_combinator();
      if (!combinator && !spaced) mistake(fmt::format("{} is not expected here", shown()));
      if (complex.part != CssComplex::Part::element) mistake_at(behind, "nothing may follow ::text or ::attr()");
      relation = combinator.value_or(CssCompound::Relation::ancestor);
      skip_space();
      if (at_end_of_complex()) mistake("a selector is missing behind the combinator");
    }
  }

  void read_compound(CssComplex& complex, CssCompound::Relation relation) {
    CssCompound& compound = complex.compounds.emplace_back();
    compound.relation = relation;
    const std::size_t start = at_;
    read_element_name(compound);
    while (true) {
      if (take('#')) {
        CssTest& test = add(compound, CssTest::Kind::id);
        if (!is_in_name(peek()) && peek() != '\\') mistake("an id is missing behind \"#\"");
        test.value = take_name_characters();
      } else if (take('.')) {
        CssTest& test = add(compound, CssTest::Kind::has_class);
        test.value = take_name("a class behind \".\"");
      } else if (take('[')) {
        read_attribute(compound);
      } else if (text_.substr(at_).starts_with("::")) {
        read_part(complex);
        break;
      } else if (take(':')) {
        read_pseudo_class(compound);
      } else {
        break;
      }
    }
    if (at_ == start) mistake(at_ < text_.size() ? fmt::format("{} is no selector", shown()) : "a selector is missing");
    if (compound.tests.empty()) add(compound, CssTest::Kind::any);
  }
  static CssTest& add(CssCompound& compound, CssTest::Kind kind) {
    compound.tests.emplace_back().kind = kind;
    return compound.tests.back();
  }

  // "div", "*", "media|thumbnail", "*|a", "|a".
  void read_element_name(CssCompound& compound) {
    std::string name;
    bool any = false;
    if (take('*')) {
      any = true;
    } else if (at_name()) {
      name = take_name_characters();
    } else if (peek() != '|') {
      return;
    }
    if (peek() == '|' && peek(1) != '=') {
      ++at_;
      const std::string prefix = any || name.empty() ? std::string{} : name + ':';
      any = take('*');
      if (any && !prefix.empty()) mistake("write the name behind the prefix, and not *");
      if (!any) name = prefix + take_name("a name behind \"|\"");
    }
    CssTest& test = add(compound, any ? CssTest::Kind::any : CssTest::Kind::name);
    if (any) return;
    test.element = static_cast<std::uint32_t>(names_.size());
    names_.push_back(std::move(name));
  }

  void read_attribute(CssCompound& compound) {
    skip_space();
    CssTest& test = add(compound, CssTest::Kind::attribute);
    test.attribute = take_name("an attribute's name behind \"[\"");
    if (peek() == '|' && peek(1) != '=') {
      ++at_;
      test.attribute += ':' + take_name("a name behind \"|\"");
    }
    test.lower = in_lower_case(test.attribute);
    skip_space();
    if (take(']')) return;
    test.kind = take_operator();
    skip_space();
    // A number is no name, but nobody puts it in quotes.
    test.value = is_digit(peek()) ? take_name_characters() : take_name_or_string("a value");
    skip_space();
    if (is_alpha(peek())) {
      const char flag = to_lower(text_[at_]);
      if (flag != 'i' && flag != 's') mistake(fmt::format("{}: i (any case) or s are known behind a value", shown()));
      test.ignores_case = flag == 'i';
      test.keeps_case = flag == 's';
      ++at_;
      skip_space();
    }
    if (!take(']')) mistake(fmt::format("\"]\" is missing, and not {}", shown()));
    test.has_html_case =
        !test.ignores_case && !test.keeps_case && std::ranges::binary_search(kAnyCaseInHtml, test.lower);
    if (test.ignores_case) test.value = in_lower_case(test.value);
  }
  CssTest::Kind take_operator() {
    if (take('=')) return CssTest::Kind::equals;
    constexpr std::pair<char, CssTest::Kind> kOperators[] = {
        {'~', CssTest::Kind::word}, {'|', CssTest::Kind::dash},  {'^', CssTest::Kind::begins},
        {'$', CssTest::Kind::ends}, {'*', CssTest::Kind::holds}, {'!', CssTest::Kind::not_equals}};
    for (const auto& [sign, kind] : kOperators) {
      if (peek() != sign || peek(1) != '=') continue;
      at_ += 2;
      return kind;
    }
    mistake(fmt::format("{}: =, ~=, |=, ^=, $=, *= or != is missing", shown()));
  }

  // "::text", "::attr(href)".
  void read_part(CssComplex& complex) {
    const std::size_t start = at_;
    at_ += 2;
    const std::string name = in_lower_case(take_name("a name behind \"::\""));
    if (nesting_ > 0) mistake_at(start, fmt::format("::{} is for the end of a whole selector", printable(name)));
    if (name == "text") {
      complex.part = CssComplex::Part::text;
    } else if (name == "attr" && take('(')) {
      skip_space();
      complex.part = CssComplex::Part::attribute;
      complex.attribute = take_name_or_string("an attribute's name in ::attr()");
      complex.lower = in_lower_case(complex.attribute);
      close();
    } else {
      mistake_at(start, fmt::format("::{} is unknown; ::text and ::attr(name) are known", printable(name)));
    }
  }

  void close() {
    skip_space();
    if (!take(')')) mistake(fmt::format("\")\" is missing, and not {}", shown()));
  }

  void read_pseudo_class(CssCompound& compound) {
    const std::size_t start = at_ - 1;
    const std::string name = in_lower_case(take_name("a name behind \":\""));
    if (!take('(')) return read_plain_pseudo(compound, name, start);
    if (++nesting_ > kMostCssNesting) mistake_at(start, fmt::format("nested deeper than {}", kMostCssNesting));
    skip_space();
    read_arguments(compound, name, start);
    close();
    --nesting_;
  }
  void read_plain_pseudo(CssCompound& compound, const std::string& name, std::size_t start) {
    const auto* const found = std::ranges::find(kPlainPseudos, name, &PlainPseudo::name);
    if (found == std::end(kPlainPseudos)) {
      constexpr std::string_view kOfBrowsers[] = {"hover", "active", "focus", "visited", "target", "focus-within"};
      const bool known = std::ranges::find(kOfBrowsers, name) != std::end(kOfBrowsers);
      mistake_at(start, fmt::format(":{} {}", printable(name),
                                    known ? "says nothing of a page that nobody looks at" : "is unknown"));
    }
    CssTest& test = add(compound, found->kind);
    test.offset = found->offset;
  }
  void read_arguments(CssCompound& compound, const std::string& name, std::size_t start) {
    const auto* const nth = std::ranges::find(kNthPseudos, name, &NthPseudo::name);
    if (nth != std::end(kNthPseudos)) return read_nth(add(compound, nth->kind));
    if (name == "is" || name == "where" || name == "matches" || name == "not") {
      CssTest& test = add(compound, name == "not" ? CssTest::Kind::is_not : CssTest::Kind::is);
      test.list = read_list(false);
    } else if (name == "has") {
      CssTest& test = add(compound, CssTest::Kind::has);
      test.list = read_list(true);
    } else if (name == "contains" || name == "-argiope-contains") {
      CssTest& test = add(compound, CssTest::Kind::contains);
      test.value = take_name_or_string("a text in :contains()");
    } else if (name == "lang") {
      CssTest& test = add(compound, CssTest::Kind::lang);
      test.value = in_lower_case(take_name_or_string("a language in :lang()"));
    } else {
      mistake_at(start, fmt::format(":{}() is unknown", printable(name)));
    }
  }

  // "odd", "even", "3", "2n+1", "-n + 3", and "of S" behind it (Selectors 4, 13.4; CSS Syntax, 6).
  void read_nth(CssTest& test) {
    const std::size_t start = at_;
    if (is_alpha(peek()) && to_lower(peek()) != 'n') {
      const std::string word = in_lower_case(take_name_characters());
      if (word != "odd" && word != "even") mistake_at(start, "write it as 3, odd, even or 2n+1");
      test.step = 2;
      test.offset = word == "odd" ? 1 : 0;
    } else {
      const std::int64_t number = take_signed(1);
      if (to_lower(peek()) == 'n') {
        ++at_;
        test.step = number;
        skip_space();
        if (peek() == '+' || peek() == '-') test.offset = take_signed({});
      } else {
        if (at_ == start || !is_digit(text_[at_ - 1])) mistake_at(start, "write it as 3, odd, even or 2n+1");
        test.offset = number;
      }
    }
    const bool spaced = skip_space();
    const bool may_have_list = test.kind == CssTest::Kind::nth_child || test.kind == CssTest::Kind::nth_last_child;
    if (spaced && may_have_list && at_name() && in_lower_case(take_name_characters()) == "of")
      test.list = read_list(false);
  }
  // With space behind the sign; `usual` where there are no digits.
  std::int64_t take_signed(std::optional<std::int64_t> usual) {
    const bool minus = peek() == '-';
    if (minus || peek() == '+') {
      ++at_;
      skip_space();
    }
    const char* const begin = text_.data() + at_;
    std::int64_t number = 0;
    const auto [end, trouble] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (end == begin || number < 0) {
      if (!usual) mistake("a number is missing");
      number = *usual;
    } else if (trouble != std::errc{} || number > 1'000'000'000) {
      mistake("this number is too large");
    } else {
      at_ += static_cast<std::size_t>(end - begin);
    }
    return minus ? -number : number;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  std::vector<std::string> names_;
};

}  // namespace

Result<CssSelector> parse_css_selector(std::string_view text) {
  try {
    return CssParser(text).read();
  } catch (const SelectorMistake& mistake) {
    return mistake.in("css", text);
  }
}

}  // namespace argiope
