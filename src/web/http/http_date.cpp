#include "web/http/internal/http_date.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <limits>

#include "web/text/internal/ascii.hpp"
#include "web/text/internal/feed_date.hpp"

namespace argiope {
namespace {

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};

// Takes fields off the front of a text; any mismatch makes it fail for good.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}
  bool ok() const noexcept { return ok_; }
  bool at_end() const noexcept { return ok_ && rest_.empty(); }

  void literal(std::string_view text) {
    if (!rest_.starts_with(text)) return fail();
    rest_.remove_prefix(text.size());
  }
  void skip_past(char c) {
    const std::size_t found = rest_.find(c);
    if (found == std::string_view::npos) return fail();
    rest_.remove_prefix(found + 1);
  }
  // Exactly `width` digits; a leading space counts as a zero (asctime).
  unsigned number(std::size_t width) {
    if (rest_.size() < width) {
      fail();
      return 0;
    }
    std::string_view digits = rest_.substr(0, width);
    if (digits.front() == ' ') digits.remove_prefix(1);
    unsigned value = 0;
    const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (ec != std::errc{} || end != digits.data() + digits.size()) fail();
    rest_.remove_prefix(width);
    return value;
  }
  unsigned month() {
    const auto found = std::ranges::find(kMonths, rest_.substr(0, 3));
    if (found == kMonths.end()) {
      fail();
      return 1;
    }
    rest_.remove_prefix(3);
    return static_cast<unsigned>(found - kMonths.begin()) + 1;
  }

 private:
  void fail() noexcept { ok_ = false; }
  std::string_view rest_;
  bool ok_ = true;
};

constexpr int kFirstYearHeld = 1678, kLastYearHeld = 2261;

struct Civil {
  unsigned year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0;
};

void time_of_day(Cursor& cursor, Civil& civil) {
  civil.hour = cursor.number(2);
  cursor.literal(":");
  civil.minute = cursor.number(2);
  cursor.literal(":");
  civil.second = cursor.number(2);
}

std::optional<WallTime> to_wall(const Civil& civil) {
  using namespace std::chrono;
  const year_month_day date{year{static_cast<int>(civil.year)}, month{civil.month}, day{civil.day}};
  // 60 is a leap second.
  if (!date.ok() || civil.hour > 23 || civil.minute > 59 || civil.second > 60) return std::nullopt;
  // Nanoseconds count no other years: what is beyond them is their first or last.
  if (static_cast<int>(civil.year) < kFirstYearHeld) return WallTime{sys_days{year{kFirstYearHeld} / 1 / 1}};
  if (static_cast<int>(civil.year) > kLastYearHeld) return WallTime{sys_days{year{kLastYearHeld} / 12 / 31}};
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
  Cursor cursor(text);
  if (text.find(',') == std::string_view::npos) {  // asctime: Sun Nov  6 08:49:37 1994
    cursor.skip_past(' ');
    civil.month = cursor.month();
    cursor.literal(" ");
    civil.day = cursor.number(2);
    cursor.literal(" ");
    time_of_day(cursor, civil);
    cursor.literal(" ");
    civil.year = cursor.number(4);
  } else {
    cursor.skip_past(',');
    cursor.literal(" ");
    civil.day = cursor.number(2);
    const bool rfc850 = text.find('-') != std::string_view::npos;  // Sunday, 06-Nov-94 08:49:37 GMT
    cursor.literal(rfc850 ? "-" : " ");
    civil.month = cursor.month();
    cursor.literal(rfc850 ? "-" : " ");
    civil.year = cursor.number(rfc850 ? 2 : 4);
    if (rfc850) civil.year += civil.year >= 70 ? 1900 : 2000;
    cursor.literal(" ");
    time_of_day(cursor, civil);
    cursor.literal(" GMT");
  }
  if (!cursor.at_end()) return std::nullopt;
  return to_wall(civil);
}

std::string format_http_date(WallTime time) {
  using namespace std::chrono;
  const auto days_since = floor<days>(time);
  const year_month_day date{days_since};
  const hh_mm_ss clock{floor<seconds>(time - days_since)};
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[weekday{days_since}.c_encoding()],
                     static_cast<unsigned>(date.day()), kMonths[static_cast<unsigned>(date.month()) - 1],
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
