#include "web/session/cookie_date.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::array<std::string_view, 12> kCookieMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                            "jul", "aug", "sep", "oct", "nov", "dec"};

// All but digits, letters, ":", control characters and what is not ASCII.
constexpr bool is_date_delimiter(char c) noexcept {
  return c == '\t' || (c >= ' ' && c <= '~' && !is_alnum(c) && c != ':');
}

// Takes `least` to `most` digits off the front of `text`; nullopt when there are fewer, or more.
std::optional<int> take_digits(std::string_view& text, std::size_t least, std::size_t most) {
  std::size_t count = 0;
  int number = 0;
  while (count < text.size() && is_digit(text[count])) {
    if (count == most) return std::nullopt;
    number = 10 * number + (text[count++] - '0');
  }
  if (count < least) return std::nullopt;
  text.remove_prefix(count);
  return number;
}

struct TimeOfDay {
  int hour, minute, second;
};
std::optional<TimeOfDay> time_of_token(std::string_view token) {
  std::array<int, 3> parts{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) {
      if (!token.starts_with(':')) return std::nullopt;
      token.remove_prefix(1);
    }
    const auto number = take_digits(token, 1, 2);
    if (!number) return std::nullopt;
    parts[i] = *number;
  }
  return TimeOfDay{parts[0], parts[1], parts[2]};
}

// 1 to 12.
std::optional<int> month_of_token(std::string_view token) {
  const auto found = std::ranges::find_if(
      kCookieMonths, [&](std::string_view name) { return equals_lower(token.substr(0, 3), name); });
  if (found == kCookieMonths.end()) return std::nullopt;
  return static_cast<int>(found - kCookieMonths.begin()) + 1;
}

// The parts of a date, each of the first token that can be it.
struct DateParts {
  std::optional<TimeOfDay> time;
  std::optional<int> day;
  std::optional<int> month;
  std::optional<int> year;

  void take(std::string_view token) {
    if (!time && (time = time_of_token(token))) return;
    std::string_view rest = token;
    if (!day && (day = take_digits(rest, 1, 2))) return;
    if (!month && (month = month_of_token(token))) return;
    rest = token;
    if (!year) year = take_digits(rest, 2, 4);
  }
};

WallTime nearest_wall_time(std::chrono::sys_seconds time) {
  using std::chrono::floor;
  using std::chrono::seconds;
  if (time <= floor<seconds>(WallTime::min()) + seconds{1}) return WallTime::min();
  if (time >= floor<seconds>(WallTime::max())) return WallTime::max();
  return time;
}

}  // namespace

std::optional<WallTime> parse_cookie_date(std::string_view text) {
  DateParts parts;
  for_each_token(text, is_date_delimiter, [&](std::string_view token) { parts.take(token); });
  if (!parts.time || !parts.day || !parts.month || !parts.year) return std::nullopt;
  int year = *parts.year;
  if (year < 70) year += 2000;
  if (year < 100) year += 1900;
  const auto [hour, minute, second] = *parts.time;
  if (year < 1601 || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{year},
                                         std::chrono::month{static_cast<unsigned>(*parts.month)},
                                         std::chrono::day{static_cast<unsigned>(*parts.day)}};
  if (!date.ok()) return std::nullopt;
  return nearest_wall_time(std::chrono::sys_days{date} + std::chrono::hours{hour} + std::chrono::minutes{minute} +
                           std::chrono::seconds{second});
}

}  // namespace argiope
