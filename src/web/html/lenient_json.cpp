#include "web/html/internal/lenient_json.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "web/html/internal/html_entities.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/json_escapes.hpp"

namespace argiope {
namespace {

constexpr std::string_view kCdataBegins = "<![CDATA[";
// Characters that may stand around JSON and within it, and say nothing.
constexpr std::string_view kSaysNothing[] = {"\xef\xbb\xbf", "\xc2\xa0", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\x8b",
                                             "<!--",         "-->",      kCdataBegins,   "<!",           "]]>",
                                             "*/",           ";",        "\xef\xbf\xbd"};

bool is_in_json_word(char c) noexcept { return is_alnum(c) || c == '+' || c == '-' || c == '.' || c == '_'; }

class JsonMender {
 public:
  explicit JsonMender(std::string_view text) : text_(text) { out_.reserve(text.size()); }

  std::string mend() {
    while (at_ < text_.size()) {
      const std::size_t nothing = json_nothing_at(rest());
      if (nothing == 0) take();
      at_ += nothing;
    }
    return has_several_ ? "[" + out_ + "]" : std::move(out_);
  }

 private:
  std::string_view rest() const noexcept { return text_.substr(at_); }

  void put(std::string_view what) {
    out_ += what;
    last_ = what.back();
  }

  void take() {
    const char c = text_[at_];
    if (c == '"') return take_string();
    if (is_in_json_word(c)) return take_word();
    ++at_;
    if (static_cast<unsigned char>(c) <= 0x20) {
      out_ += ' ';
    } else if (c == '{' || c == '[') {
      open(c);
    } else if (c == '}' || c == ']') {
      close(c);
    } else if (c == ',') {
      take_comma();
    } else {
      put({&c, 1});
    }
  }

  void open(char c) {
    if (depth_ == 0 && is_complete_) {
      has_several_ = true;
      put(",");
    }
    ++depth_;
    put({&c, 1});
  }
  void close(char c) {
    if (depth_ == 0) return;
    if (last_ == ',') out_.resize(out_.find_last_not_of(' '));
    if (last_ == ':') put("null");
    put({&c, 1});
    is_complete_ = --depth_ == 0;
  }
  void take_comma() {
    if (last_ == ':') put("null");
    const bool is_needless = depth_ == 0 || last_ == ',' || last_ == '{' || last_ == '[';
    if (!is_needless) put(",");
  }

  void take_word() {
    const auto end = std::ranges::find_if_not(rest(), is_in_json_word);
    const std::string_view word = rest().substr(0, static_cast<std::size_t>(end - rest().begin()));
    at_ += word.size();
    const bool is_number = !is_alpha(word[0]) && word[0] != '_';
    if (word == "NaN" || word == "undefined" || word.ends_with("Infinity")) {
      put("null");
    } else if (is_number && !JsonText::parse(word)) {
      out_.append("\"").append(word);
      put("\"");
    } else {
      put(word);
    }
  }

  void take_string() {
    out_ += '"';
    ++at_;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') {
        at_ += append_mended_escape(rest(), out_);
      } else {
        const char c = text_[at_++];
        out_ += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
      }
    }
    if (at_ == text_.size()) return;  // a string without an end is none
    ++at_;
    put("\"");
  }

  const std::string_view text_;
  std::string out_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  char last_ = '\0';  // the last character that is no space
  bool is_complete_ = false;
  bool has_several_ = false;
};

std::size_t append_mended_unit(std::string_view rest, unsigned unit, std::string& out) {
  const auto second = is_high_half(unit) ? unit_at_front(rest.substr(kUnitEscapeBytes)) : std::nullopt;
  const bool is_pair = second && is_low_half(*second);
  const std::size_t size = is_pair ? 2 * kUnitEscapeBytes : kUnitEscapeBytes;
  out += is_pair || !(is_high_half(unit) || is_low_half(unit)) ? rest.substr(0, size) : kReplacementEscape;
  return size;
}

}  // namespace

// A comment that opens a CDATA section ends there: what it wraps may be in the same line.
std::size_t json_nothing_at(std::string_view text) noexcept {
  const bool is_line = text.starts_with("//");
  if (is_line || text.starts_with("/*")) {
    const std::string_view ending = is_line ? "\n" : "*/";
    const std::size_t end = text.find(ending, 2);
    const std::size_t cdata = text.substr(0, end).rfind(kCdataBegins);
    if (cdata != std::string_view::npos) return cdata + kCdataBegins.size();
    return end == std::string_view::npos ? text.size() : end + ending.size();
  }
  const auto* const nothing =
      std::ranges::find_if(kSaysNothing, [&](std::string_view one) { return text.starts_with(one); });
  return nothing == std::end(kSaysNothing) ? 0 : nothing->size();
}

std::size_t append_mended_escape(std::string_view rest, std::string& out) {
  constexpr std::string_view kKnown = "\"\\/bfnrt";
  const char next = rest.size() > 1 ? rest[1] : ' ';
  if (kKnown.contains(next)) {
    out += rest.substr(0, 2);
    return std::min<std::size_t>(rest.size(), 2);
  }
  if (const auto unit = unit_at_front(rest)) return append_mended_unit(rest, *unit, out);
  // Before an apostrophe or a line break it was to be no part of the text.
  if (next != '\'' && next != '\n' && next != '\r') out += "\\\\";
  return 1;
}

// "{&quot;a&quot;:1}", which a template has escaped as if it were in an attribute; some do it again.
std::string with_quotes_read(std::string_view text) {
  constexpr int kMostTimes = 3;
  std::string read(text);
  for (int times = 0; times < kMostTimes; ++times) {
    const std::size_t reference = read.find('&');
    if (reference == std::string::npos || read.find('"') < reference) break;
    std::vector<char> plain;
    append_attribute_value(read, plain);
    read.assign(plain.begin(), plain.end());
  }
  return read;
}

std::string mended_json(std::string_view text) {
  const std::string read = with_quotes_read(text);
  return read != text && JsonText::parse(read) ? read : JsonMender(read).mend();
}

Result<JsonText> parse_lenient_json(std::string_view text) {
  auto parsed = JsonText::parse(text);
  if (parsed) return parsed;
  auto mended = JsonText::parse(mended_json(text));
  return mended ? std::move(mended) : std::move(parsed);
}

}  // namespace argiope
