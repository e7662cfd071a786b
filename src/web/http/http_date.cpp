#include "web/http/internal/http_date.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <limits>

#include "base/internal/date_text.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/feed_date.hpp"

namespace argiope {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};

constexpr int kFirstYearHeld = 1678, kLastYearHeld = 2261;

struct Civil {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
};

// A leading space counts as a zero (asctime).
int digits_of(DateText& text, std::size_t width) { return text.digits(text.take(' ') ? width - 1 : width); }

int month_of(DateText& text) {
  const int month = month_named(text.rest());
  if (month > 0) text.expect(kMonthNames[static_cast<std::size_t>(month - 1)]);  // in just these letters
  return month;
}

void time_of_day(DateText& text, Civil& civil) {
  civil.hour = digits_of(text, 2);
  text.expect(":");
  civil.minute = digits_of(text, 2);
  text.expect(":");
  civil.second = digits_of(text, 2);
}

std::optional<WallTime> to_wall(const Civil& civil) {
  using namespace std::chrono;
  const year_month_day date{year{civil.year}, month{static_cast<unsigned>(civil.month)},
                            day{static_cast<unsigned>(civil.day)}};
  // 60 is a leap second.
  if (!date.ok() || civil.hour > 23 || civil.minute > 59 || civil.second > 60) return std::nullopt;
  // Nanoseconds count no other years: what is beyond them is their first or last.
  if (civil.year < kFirstYearHeld) return WallTime{sys_days{year{kFirstYearHeld} / 1 / 1}};
  if (civil.year > kLastYearHeld) return WallTime{sys_days{year{kLastYearHeld} / 12 / 31}};
  return WallTime{sys_days{date}} + hours{civil.hour} + minutes{civil.minute} + seconds{civil.second};
}

// "120", and as some servers write it: "120.0", "120s", "120 seconds", "120, 120". nullopt for what is none, as a date
// is. A part of a second counts as a whole one.
std::optional<std::uint64_t> seconds_of(std::string_view text) {
  const auto count_digits = [](std::string_view from) {
    return static_cast<std::size_t>(std::ranges::find_if_not(from, is_digit) - from.begin());
  };
  const std::size_t digits = count_digits(text);
  if (digits == 0) return std::nullopt;
  std::string_view rest = text.substr(digits);
  bool has_part = false;
  if (rest.starts_with('.')) {
    const std::string_view part = rest.substr(1, count_digits(rest.substr(1)));
    has_part = part.find_first_not_of('0') != std::string_view::npos;
    rest.remove_prefix(1 + part.size());
  }
  rest = trim_space(rest);
  constexpr std::string_view kUnits[] = {"s", "sec", "secs", "second", "seconds"};
  const bool has_unit = std::ranges::any_of(kUnits, [&](std::string_view unit) { return equals_lower(rest, unit); });
  if (!rest.empty() && !rest.starts_with(',') && !has_unit) return std::nullopt;
  std::uint64_t seconds = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + digits, seconds);
  if (ec == std::errc::result_out_of_range) return std::numeric_limits<std::uint64_t>::max();
  return has_part && seconds < std::numeric_limits<std::uint64_t>::max() ? seconds + 1 : seconds;
}

}  // namespace

std::optional<WallTime> parse_http_date(std::string_view text) {
  Civil civil;
  DateText in(text);
  if (const std::size_t comma = text.find(','); comma == std::string_view::npos) {  // asctime: Sun Nov  6 08:49:37 1994
    in.skip(text.find(' '));
    in.expect(" ");
    civil.month = month_of(in);
    in.expect(" ");
    civil.day = digits_of(in, 2);
    in.expect(" ");
    time_of_day(in, civil);
    in.expect(" ");
    civil.year = digits_of(in, 4);
  } else {
    const bool is_rfc850 = text.contains('-');  // Sunday, 06-Nov-94 08:49:37 GMT
    const std::string_view between = is_rfc850 ? "-" : " ";
    in.skip(comma + 1);
    in.expect(" ");
    civil.day = digits_of(in, 2);
    in.expect(between);
    civil.month = month_of(in);
    in.expect(between);
    civil.year = digits_of(in, is_rfc850 ? 2 : 4);
    if (is_rfc850) civil.year += civil.year >= 70 ? 1900 : 2000;
    in.expect(" ");
    time_of_day(in, civil);
    in.expect(" GMT");
  }
  return in.is_over() ? to_wall(civil) : std::nullopt;
}

std::string format_http_date(WallTime time) {
  using namespace std::chrono;
  const auto days_since = floor<days>(time);
  const year_month_day date{days_since};
  const hh_mm_ss clock{floor<seconds>(time - days_since)};
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[weekday{days_since}.c_encoding()],
                     static_cast<unsigned>(date.day()), kMonthNames[static_cast<unsigned>(date.month()) - 1],
                     static_cast<int>(date.year()), clock.hours().count(), clock.minutes().count(),
                     clock.seconds().count());
}

std::optional<Duration> parse_retry_after(std::string_view value, WallTime now) {
  value = trim_space(value);
  if (value.empty()) return std::nullopt;
  if (const auto seconds = seconds_of(value)) {
    const auto longest =
        static_cast<std::uint64_t>(std::chrono::floor<std::chrono::seconds>(kLongestRetryAfter).count());
    if (*seconds > longest) return kLongestRetryAfter;
    if (*seconds == 0) return std::nullopt;
    return std::chrono::seconds{*seconds};
  }
  auto date = parse_http_date(value);
  // As others write dates: with another zone, or none, or by ISO 8601.
  if (const auto other = date ? std::nullopt : parse_feed_date(value)) date = other->at;
  if (!date) return std::nullopt;
  if (*date <= now) return std::nullopt;  // the difference to a date long past may be more than a Duration holds
  return std::clamp<Duration>(*date - now, std::chrono::seconds{1}, kLongestRetryAfter);
}

}  // namespace argiope
