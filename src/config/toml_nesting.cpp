#include "config/toml_nesting.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace argiope {
namespace {

class TomlNesting {
 public:
  explicit TomlNesting(std::string_view text) : text_(text) {}

  std::optional<std::uint32_t> find() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        skip_text(c);
        continue;
      }
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        continue;
      }
      ++at_;
      take(c);
      if (outer_ + dots_ + open_.size() > kMostTomlNesting) return line_;
    }
    return std::nullopt;
  }

 private:
  void take(char c) {
    switch (c) {
      case '.': ++dots_; break;
      case '=': key_dots_ = std::exchange(dots_, 0); break;
      case '[':
      case '{':
        open_.push_back(key_dots_);
        outer_ += std::exchange(key_dots_, 0);
        dots_ = 0;
        break;
      case ']':
      case '}':
        if (!open_.empty()) {
          outer_ -= open_.back();
          open_.pop_back();
        }
        dots_ = key_dots_ = 0;
        break;
      case '\n': ++line_; [[fallthrough]];
      case ',': dots_ = key_dots_ = 0; break;
      default: break;
    }
  }
  // The parser tells of a missing end of the text.
  void skip_text(char quote) {
    const bool has_lines = text_.substr(at_).starts_with(quote == '"' ? "\"\"\"" : "'''");
    at_ += has_lines ? 3 : 1;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n' && !has_lines) return;
      if (c == '\n') ++line_;
      if (c == '\\' && quote == '"') {
        if (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
        ++at_;
        continue;
      }
      ++at_;
      if (c != quote) continue;
      if (!has_lines) return;
      if (text_.substr(at_, 2).find_first_not_of(quote) != std::string_view::npos || at_ + 2 > text_.size()) continue;
      at_ += 2;
      // One or two quotes may stand right before the three.
      for (int more = 0; more < 2 && at_ < text_.size() && text_[at_] == quote; ++more) ++at_;
      return;
    }
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  std::size_t dots_ = 0, key_dots_ = 0;  // of what is being read; of the key before a value
  std::size_t outer_ = 0;                // dots of the keys of all that is open
  std::vector<std::size_t> open_;        // of each bracket that is open
};

}  // namespace

std::optional<std::uint32_t> too_deep_in_toml(std::string_view text) { return TomlNesting(text).find(); }

}  // namespace argiope
