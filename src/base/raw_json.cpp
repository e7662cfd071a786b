#include "base/internal/raw_json.hpp"

namespace argiope {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n";

std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t begin = text.find_first_not_of(kWhiteSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhiteSpace) + 1 - begin);
}

// Takes a string, with its quotes, off the front.
void skip_string(std::string_view& rest) noexcept { rest.remove_prefix(end_of_json_string(rest, 1) + 1); }

// Takes a value off the front, up to the comma or bracket behind it.
std::string_view take_value(std::string_view& rest) noexcept {
  const std::string_view from = rest;
  for (int depth = 0; depth > 0 || rest.front() != ',';) {
    const char c = rest.front();
    if (c == '"') {
      skip_string(rest);
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && depth-- == 0) break;
    rest.remove_prefix(1);
  }
  return trimmed(from.substr(0, from.size() - rest.size()));
}

}  // namespace

std::size_t end_of_json_string(std::string_view text, std::size_t begin) noexcept {
  std::size_t at = begin;
  for (;; ++at) {
    at = text.find('"', at);
    if (at == std::string_view::npos) return at;
    // It is escaped by an odd number of backslashes.
    std::size_t first = at;
    while (first > begin && text[first - 1] == '\\') --first;
    if ((at - first) % 2 == 0) return at;
  }
}

RawJson::RawJson(std::string_view text) noexcept : text_(trimmed(text)) {}

std::string_view RawJson::text() {
  if (text_.empty() && parent_ != nullptr) text_ = parent_->value_at(place_);
  return text_;
}

std::string_view RawJson::value_at(std::size_t place) {
  const bool is_object = text().front() == '{';
  if (next_ == 0 || place + 1 < next_) {
    next_ = 0;
    rest_ = text_;
  }
  for (; next_ <= place; ++next_) {
    rest_.remove_prefix(1);  // a bracket or a comma
    if (is_object) {
      rest_.remove_prefix(rest_.find('"'));
      skip_string(rest_);
      rest_.remove_prefix(rest_.find(':') + 1);
    }
    last_ = take_value(rest_);
  }
  return last_;
}

}  // namespace argiope
