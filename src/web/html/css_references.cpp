#include "web/html/internal/css_references.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "web/text/internal/ascii.hpp"
#include "web/text/internal/code_points.hpp"

namespace argiope {
namespace {

constexpr std::uint8_t kCssSpace = 1;        // newlines too
constexpr std::uint8_t kCssNewline = 2;      // as written, before "preprocessing the input stream" makes them one
constexpr std::uint8_t kCssName = 4;         // letter, digit, '-', '_', and what is not ASCII; NUL becomes U+FFFD
constexpr std::uint8_t kCssUnprintable = 8;  // what an unquoted URL may not hold
constexpr std::array<std::uint8_t, 256> kCssClass = [] {
  std::array<std::uint8_t, 256> table{};
  for (int c = 0; c < 256; ++c) {
    std::uint8_t what = 0;
    const char as_char = static_cast<char>(c);
    if (is_space(as_char)) what |= kCssSpace;
    if (c == '\n' || c == '\r' || c == '\f') what |= kCssNewline;
    if (is_alnum(as_char) || c == '-' || c == '_' || c >= 0x80 || c == 0) what |= kCssName;
    if ((c > 0 && c <= 8) || c == 0x0b || (c >= 0x0e && c <= 0x1f) || c == 0x7f) what |= kCssUnprintable;
    table[static_cast<std::size_t>(c)] = what;
  }
  return table;
}();
constexpr bool is_css(char c, std::uint8_t what) noexcept {
  return (kCssClass[static_cast<unsigned char>(c)] & what) != 0;
}

// Of a name that is compared: no keyword that matters is as long.
constexpr std::size_t kLongestKeyword = 24;

// The length of the escape whose backslash is in front of `text`: the backslash, and what it stands before. One digit
// run and a space behind it, or one character; of a character that is not ASCII its first byte, since the others are as
// any.
std::size_t escape_length(std::string_view text) noexcept {
  std::size_t at = 1;
  while (at < text.size() && at <= 6 && hex_value(text[at]) >= 0) ++at;
  if (at == 1) return std::min<std::size_t>(2, text.size());
  if (at < text.size() && is_css(text[at], kCssSpace)) at += text.substr(at).starts_with("\r\n") ? 2 : 1;
  return at;
}

// Whether the backslash in front of `text` begins an escape (4.3.8). At the end of the text it stands for U+FFFD.
bool is_escape(std::string_view text) noexcept { return text.size() < 2 || !is_css(text[1], kCssNewline); }

// Appends what an escape of that length stands for.
void append_escape(std::string_view escape, std::string& out) {
  if (escape.size() < 2) return append_utf8(0xFFFD, out);
  if (hex_value(escape[1]) < 0) {
    out += escape[1];
    return;
  }
  std::uint32_t value = 0;
  for (std::size_t i = 1; i < escape.size() && hex_value(escape[i]) >= 0; ++i) {
    value = value << 4 | static_cast<std::uint32_t>(hex_value(escape[i]));
  }
  const bool is_character = value != 0 && value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF);
  append_utf8(is_character ? value : 0xFFFD, out);
}

// One pass over the tokens (4.3.1). `at_` is behind the last one.
class CssScan {
 public:
  CssScan(std::string_view css, std::vector<CssReference>& urls) noexcept : css_(css), urls_(urls) {}

  void run() {
    while (at_ < css_.size()) token();
  }

 private:
  // The meaning of a string, if it comes next.
  enum class Expects : std::uint8_t {
    nothing,
    url,          // url( stands before it
    import_url,   // @import
    no_url,       // @namespace, up to its semicolon
    import_both,  // @import url(
  };

  char peek(std::size_t ahead = 0) const noexcept {
    return at_ + ahead < css_.size() ? css_[at_ + ahead] : '\n';  // as good as any that begins nothing
  }
  std::string_view rest() const noexcept { return css_.substr(at_); }
  bool at_escape() const noexcept { return peek() == '\\' && is_escape(rest()); }

  void token() {
    const char c = css_[at_];
    if (is_css(c, kCssSpace)) {
      ++at_;
    } else if (c == '/' && peek(1) == '*') {
      comment();
    } else if (c == '"' || c == '\'') {
      string(c);
    } else if (c == '@') {
      ++at_;
      at_keyword(name());
    } else if (c == '#') {
      ++at_;
      (void)name();
      expects_ = kept();
    } else if (begins_number()) {
      number();
      expects_ = kept();
    } else if (is_css(c, kCssName) || at_escape()) {
      word(name());
    } else {
      ++at_;
      sign(c);
    }
  }

  void comment() {
    const std::size_t end = css_.find("*/", at_ + 2);
    at_ = end == std::string_view::npos ? css_.size() : end + 2;
  }

  // A parenthesis, a semicolon and so on.
  void sign(char c) {
    if (c == '(') {
      ++depth_;
    } else if (c == ')') {
      if (depth_ == image_set_depth_) image_set_depth_ = -1;
      depth_ = std::max(depth_ - 1, 0);
    }
    expects_ = c == ';' || c == '{' || c == '}' ? Expects::nothing : kept();
  }
  // The string that is still expected behind a token that was not it: a prefix may stand before the URL of @namespace.
  Expects kept() const noexcept { return expects_ == Expects::no_url ? Expects::no_url : Expects::nothing; }

  bool begins_number() const noexcept {
    const bool is_signed = peek() == '+' || peek() == '-';
    const std::size_t first = is_signed ? 1 : 0;
    return is_digit(peek(first)) || (peek(first) == '.' && is_digit(peek(first + 1)));
  }
  // With its unit, which may look like the name of a function and is none.
  void number() {
    if (peek() == '+' || peek() == '-') ++at_;
    while (is_digit(peek())) ++at_;
    if (peek() == '.' && is_digit(peek(1))) {
      ++at_;
      while (is_digit(peek())) ++at_;
    }
    (void)name();
  }

  // A run of name characters and escapes, without the escapes and in lower case, as far as it matters.
  std::string_view name() {
    keyword_.clear();
    while (at_ < css_.size()) {
      if (is_css(css_[at_], kCssName)) {
        if (keyword_.size() < kLongestKeyword) keyword_ += to_lower(css_[at_]);
        ++at_;
      } else if (at_escape()) {
        const std::string_view escape = rest().substr(0, escape_length(rest()));
        if (keyword_.size() < kLongestKeyword) append_escape(escape, keyword_);
        at_ += escape.size();
      } else {
        break;
      }
    }
    std::ranges::transform(keyword_, keyword_.begin(), to_lower);
    return keyword_;
  }

  void at_keyword(std::string_view keyword) {
    expects_ = keyword == "import" ? Expects::import_url : keyword == "namespace" ? Expects::no_url : Expects::nothing;
  }

  // A name, or a function (4.3.4).
  void word(std::string_view keyword) {
    if (peek() != '(' || at_ == css_.size()) {
      expects_ = kept();
      return;
    }
    ++at_;
    const bool is_url = keyword == "url";
    if (is_url || keyword == "src") {
      std::size_t ahead = 0;
      while (at_ + ahead < css_.size() && is_css(peek(ahead), kCssSpace)) ++ahead;
      const bool quoted = at_ + ahead < css_.size() && (peek(ahead) == '"' || peek(ahead) == '\'');
      if (is_url && !quoted) return unquoted_url();
      ++depth_;
      expects_ = expects_ == Expects::import_url ? Expects::import_both
                 : expects_ == Expects::no_url   ? Expects::no_url
                                                 : Expects::url;
      return;
    }
    ++depth_;
    if (keyword == "image-set" || keyword == "-webkit-image-set") image_set_depth_ = depth_;
    expects_ = kept();
  }

  // Behind `url(` (4.3.6).
  void unquoted_url() {
    while (at_ < css_.size() && is_css(css_[at_], kCssSpace)) ++at_;
    const std::size_t begin = at_;
    std::size_t end = begin;
    while (at_ < css_.size() && css_[at_] != ')') {
      const char c = css_[at_];
      if (is_css(c, kCssSpace)) {
        while (at_ < css_.size() && is_css(css_[at_], kCssSpace)) ++at_;
        if (at_ < css_.size() && css_[at_] != ')') return bad_url();
        break;
      }
      if (c == '"' || c == '\'' || c == '(' || is_css(c, kCssUnprintable)) return bad_url();
      if (c == '\\' && !is_escape(rest())) return bad_url();
      at_ += c == '\\' ? escape_length(rest()) : 1;
      end = at_;
    }
    if (at_ < css_.size()) ++at_;
    add(begin, end, 0, expects_ == Expects::import_url);
    expects_ = kept();
  }
  // Up to its parenthesis (4.3.14).
  void bad_url() {
    while (at_ < css_.size() && css_[at_] != ')') at_ += at_escape() ? escape_length(rest()) : 1;
    if (at_ < css_.size()) ++at_;
    expects_ = kept();
  }

  // At its first quote (4.3.5). One that a newline ends is bad, and no URL; the newline is not part of it.
  void string(char quote) {
    const std::size_t begin = ++at_;
    while (at_ < css_.size() && css_[at_] != quote) {
      const char c = css_[at_];
      if (is_css(c, kCssNewline)) {
        expects_ = kept();
        return;
      }
      if (c != '\\') {
        ++at_;
      } else if (is_escape(rest())) {
        at_ += escape_length(rest());
      } else {
        at_ += rest().substr(1).starts_with("\r\n") ? 3 : 2;
      }
    }
    const std::size_t end = std::min(at_, css_.size());
    at_ = std::min(at_ + 1, css_.size());
    const bool is_import = expects_ == Expects::import_url || expects_ == Expects::import_both;
    const bool in_image_set = depth_ == image_set_depth_ && expects_ != Expects::no_url;
    if (is_import || expects_ == Expects::url || in_image_set) add(begin, end, quote, is_import);
    expects_ = kept();
  }

  void add(std::size_t begin, std::size_t end, char quote, bool is_import) {
    // A fragment alone is a part of the page, or a behaviour of old browsers (#default#VML), and nothing to be fetched.
    const bool is_fragment = begin < end && css_[begin] == '#';
    if (expects_ != Expects::no_url && !is_fragment) urls_.push_back({begin, end - begin, quote, is_import});
  }

  std::string_view css_;
  std::vector<CssReference>& urls_;
  std::size_t at_ = 0;
  std::string keyword_;
  Expects expects_ = Expects::nothing;
  int depth_ = 0;             // of parentheses
  int image_set_depth_ = -1;  // within image-set( at that depth, where strings are URLs
};

}  // namespace

void find_css_references(std::string_view css, std::vector<CssReference>& urls) {
  urls.clear();
  CssScan(css, urls).run();
}

std::string unescape_css(std::string_view raw) {
  std::string text;
  text.reserve(raw.size());
  while (!raw.empty()) {
    std::size_t used = 1;
    if (raw.front() == '\0') {
      append_utf8(0xFFFD, text);
    } else if (raw.front() != '\\') {
      text += raw.front();
    } else if (is_escape(raw)) {
      used = escape_length(raw);
      append_escape(raw.substr(0, used), text);
    } else {
      used = raw.substr(1).starts_with("\r\n") ? 3 : 2;  // a string goes on in the next line
    }
    raw.remove_prefix(used);
  }
  return text;
}

void append_css_escaped(std::string_view text, char quote, std::string& out) {
  constexpr std::string_view kUnquotedSpecials = "\"'()\\";
  for (const char c : text) {
    const bool is_special = quote != 0 ? c == quote || c == '\\' : kUnquotedSpecials.contains(c);
    // A '<' might end the style element that it stands in.
    const bool is_hidden = is_css(c, kCssNewline | kCssUnprintable) || c == '<' || (quote == 0 && is_css(c, kCssSpace));
    if (is_hidden) {
      constexpr std::string_view kHex = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      out += {'\\', kHex[byte >> 4], kHex[byte & 15], ' '};
      continue;
    }
    if (is_special) out += '\\';
    out += c;
  }
}

}  // namespace argiope
