#include "web/session/cookie_date.hpp"

#include <chrono>

#include "base/internal/date_text.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

// All but digits, letters, ":", control characters and what is not ASCII.
constexpr bool is_date_delimiter(char c) noexcept {
  return c == '\t' || (c >= ' ' && c <= '~' && !is_alnum(c) && c != ':');
}

struct TimeOfDay {
  int hour, minute, second;
};
std::optional<TimeOfDay> time_of_token(std::string_view token) {
  DateText text(token);
  TimeOfDay time{};
  time.hour = text.number(1, 2);
  text.expect(":");
  time.minute = text.number(1, 2);
  text.expect(":");
  time.second = text.number(1, 2);
  return text.is_good() ? std::optional(time) : std::nullopt;
}

// Whatever follows the digits.
std::optional<int> number_of_token(std::string_view token, std::size_t least, std::size_t most) {
  DateText text(token);
  const int number = text.number(least, most);
  return text.is_good() ? std::optional(number) : std::nullopt;
}

// 1 to 12.
std::optional<int> month_of_token(std::string_view token) {
  const int month = month_named(token);
  return month == 0 ? std::nullopt : std::optional(month);
}

// The parts of a date, each of the first token that can be it.
struct DateParts {
  std::optional<TimeOfDay> time;
  std::optional<int> day;
  std::optional<int> month;
  std::optional<int> year;

  void take(std::string_view token) {
    if (!time && (time = time_of_token(token))) return;
    if (!day && (day = number_of_token(token, 1, 2))) return;
    if (!month && (month = month_of_token(token))) return;
    if (!year) year = number_of_token(token, 2, 4);
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
