#include "web/session/set_cookie.hpp"

#include <algorithm>
#include <charconv>

#include "web/session/cookie_date.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/http_field.hpp"

namespace argiope {
namespace {

// Takes what stands before the first `separator`, and that with it.
std::string_view take_until(std::string_view& text, char separator) noexcept {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

// Seconds from now; nullopt for what is no number. At zero and below the cookie has expired.
std::optional<WallTime> time_of_max_age(std::string_view value, WallTime now) {
  const bool negative = value.starts_with('-');
  if (negative) value.remove_prefix(1);
  if (value.empty() || !std::ranges::all_of(value, is_digit)) return std::nullopt;
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (negative || (error == std::errc{} && seconds == 0)) return WallTime::min();
  constexpr std::int64_t kMost = std::chrono::duration_cast<std::chrono::seconds>(kLongestCookieLife).count();
  if (error != std::errc{} || seconds > kMost) seconds = kMost;
  return now + std::chrono::seconds{seconds};
}

// Of attributes that come several times the last counts.
class AttributeReader {
 public:
  AttributeReader(SetCookie& cookie, WallTime now) : cookie_(cookie), now_(now) {}

  void take(std::string_view name, std::string_view value) {
    if (value.size() > kMostAttributeBytes) return;
    if (equals_lower(name, "expires")) {
      if (const auto date = parse_cookie_date(value)) by_date_ = std::min<WallTime>(*date, now_ + kLongestCookieLife);
    } else if (equals_lower(name, "max-age")) {
      if (const auto time = time_of_max_age(value, now_)) by_age_ = *time;
    } else if (equals_lower(name, "domain")) {
      cookie_.domain = value.starts_with('.') ? value.substr(1) : value;
    } else if (equals_lower(name, "path")) {
      cookie_.path = value.starts_with('/') ? value : std::string_view{};
    } else if (equals_lower(name, "secure")) {
      cookie_.secure = true;
    } else if (equals_lower(name, "httponly")) {
      cookie_.http_only = true;
    }
  }
  void end() { cookie_.expires = by_age_ ? by_age_ : by_date_; }

 private:
  SetCookie& cookie_;
  const WallTime now_;
  std::optional<WallTime> by_date_;
  std::optional<WallTime> by_age_;
};

}  // namespace

std::optional<SetCookie> parse_set_cookie(std::string_view field, WallTime now) {
  if (has_controls(field)) return std::nullopt;
  std::string_view attributes = field;
  std::string_view pair = take_until(attributes, ';');
  SetCookie cookie;
  if (pair.contains('=')) cookie.name = trim_blanks(take_until(pair, '='));
  cookie.value = trim_blanks(pair);
  const std::size_t size = cookie.name.size() + cookie.value.size();
  if (size == 0 || size > kMostCookieBytes) return std::nullopt;
  AttributeReader reader(cookie, now);
  while (!attributes.empty()) {
    std::string_view value = take_until(attributes, ';');
    const std::string_view name = trim_blanks(take_until(value, '='));
    reader.take(name, trim_blanks(value));
  }
  reader.end();
  return cookie;
}

}  // namespace argiope
