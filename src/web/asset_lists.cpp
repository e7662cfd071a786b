#include "web/internal/asset_lists.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "web/internal/ascii.hpp"

namespace argiope {
namespace {

// Appends a code point in UTF-8; U+FFFD for what is none (CSS Syntax 4.3.7).
void append_code_point(std::string& out, std::uint32_t code) {
  if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) code = 0xfffd;
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    tail(12), tail(6), tail(0);
  }
}

// A style sheet, read from the front. What stands between references is passed over: comments and strings as a whole.
class CssReader {
 public:
  CssReader(std::string_view css, std::size_t most) : css_(css), most_(most) {}

  std::vector<CssUrl> read() {
    while (at_ < css_.size() && found_.size() < most_) {
      const char c = css_[at_];
      if (c == '/' && peek(1) == '*') {
        const std::size_t end = css_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? css_.size() : end + 2;
      } else if (c == '"' || c == '\'') {
        (void)string();
      } else if (c == '\\') {
        at_ = std::min(at_ + 2, css_.size());
      } else if (c == '@' && is_word(at_ + 1, "import")) {
        at_ += 7;
        import();
      } else if (is_name(c)) {
        word();
      } else {
        ++at_;
      }
    }
    return std::move(found_);
  }

 private:
  static bool is_name(char c) {
    return is_alnum(c) || c == '-' || c == '_' || static_cast<unsigned char>(c) >= 0x80;
  }
  char peek(std::size_t ahead) const { return at_ + ahead < css_.size() ? css_[at_ + ahead] : '\0'; }
  bool is_word(std::size_t at, std::string_view lower) const {
    return at <= css_.size() && starts_with_lower(css_.substr(at), lower) &&
           (at + lower.size() == css_.size() || !is_name(css_[at + lower.size()]));
  }
  void skip_space() {
    while (at_ < css_.size()) {
      if (is_space(css_[at_])) {
        ++at_;
      } else if (css_[at_] == '/' && peek(1) == '*') {
        const std::size_t end = css_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? css_.size() : end + 2;
      } else {
        return;
      }
    }
  }

  // A name; with what is in its brackets, if it is url.
  void word() {
    const std::size_t begin = at_;
    while (at_ < css_.size() && is_name(css_[at_])) ++at_;
    if (peek(0) != '(' || !equals_lower(css_.substr(begin, at_ - begin), "url")) return;
    ++at_;
    if (auto value = in_brackets()) found_.push_back({std::move(*value), begin, false});
  }

  // Behind "@import": a string, or a url().
  void import() {
    skip_space();
    const std::size_t begin = at_;
    if (peek(0) == '"' || peek(0) == '\'') {
      if (auto value = string()) found_.push_back({std::move(*value), begin, true});
      return;
    }
    const std::size_t known = found_.size();
    if (is_name(peek(0))) word();
    if (found_.size() > known) found_.back().is_import = true;
  }

  // Behind "url(": to behind its ")".
  std::optional<std::string> in_brackets() {
    while (is_space(peek(0))) ++at_;
    std::optional<std::string> value;
    if (peek(0) == '"' || peek(0) == '\'') {
      value = string();
    } else {
      value = unquoted();
    }
    while (is_space(peek(0))) ++at_;
    if (peek(0) != ')') return std::nullopt;
    ++at_;
    return value;
  }

  std::optional<std::string> unquoted() {
    std::string value;
    for (; at_ < css_.size(); ++at_) {
      const char c = css_[at_];
      if (c == ')' || is_space(c)) return value;
      if (c == '"' || c == '\'' || c == '(' || static_cast<unsigned char>(c) < 0x20) return std::nullopt;
      c == '\\' ? escape(value) : void(value += c);
    }
    return std::nullopt;
  }

  // From a quote to behind the one that ends it. One that meets the end of its line is none.
  std::optional<std::string> string() {
    const char quote = css_[at_++];
    std::string value;
    for (; at_ < css_.size(); ++at_) {
      const char c = css_[at_];
      if (c == quote) return ++at_, value;
      if (c == '\n' || c == '\r' || c == '\f') return std::nullopt;
      c == '\\' ? escape(value) : void(value += c);
    }
    return std::nullopt;
  }

  // At a backslash; stays on the last character of the escape.
  void escape(std::string& value) {
    std::uint32_t code = 0;
    std::size_t digits = 0;
    while (digits < 6 && hex_value(peek(1)) >= 0) {
      code = code << 4 | static_cast<std::uint32_t>(hex_value(peek(1)));
      ++at_, ++digits;
    }
    if (digits > 0) {
      append_code_point(value, code);
      if (is_space(peek(1))) ++at_;
    } else if (at_ + 1 < css_.size()) {
      ++at_;
      if (css_[at_] != '\n') value += css_[at_];  // a line goes on
    }
  }

  std::string_view css_;
  std::size_t most_;
  std::size_t at_ = 0;
  std::vector<CssUrl> found_;
};

}  // namespace

std::vector<CssUrl> css_urls(std::string_view css, std::size_t most) { return CssReader(css, most).read(); }

std::vector<std::string_view> srcset_urls(std::string_view srcset, std::size_t most) {
  std::vector<std::string_view> urls;
  std::size_t at = 0;
  while (urls.size() < most) {
    while (at < srcset.size() && (is_space(srcset[at]) || srcset[at] == ',')) ++at;
    if (at == srcset.size()) break;
    const std::size_t begin = at;
    while (at < srcset.size() && !is_space(srcset[at])) ++at;
    std::string_view url = srcset.substr(begin, at - begin);
    const bool has_descriptors = !url.ends_with(',');
    while (url.ends_with(',')) url.remove_suffix(1);
    urls.push_back(url);
    // A comma ends the descriptors, unless it is in brackets.
    for (bool in_brackets = false; has_descriptors && at < srcset.size(); ++at) {
      if (srcset[at] == '(') in_brackets = true;
      if (srcset[at] == ')') in_brackets = false;
      if (srcset[at] == ',' && !in_brackets) break;
    }
  }
  return urls;
}

}  // namespace argiope
