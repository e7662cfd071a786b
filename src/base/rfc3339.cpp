#include "base/internal/rfc3339.hpp"

#include <chrono>
#include <cstdint>

#include "base/internal/date_text.hpp"

namespace argiope {
using namespace std::chrono;

static void append(std::string& out, WallTime time, bool milliseconds_always) {
  const auto day = floor<days>(time);
  const year_month_day date{day};
  const hh_mm_ss clock{floor<milliseconds>(time - day)};
  // A WallTime's year has four digits.
  char text[] = "0000-00-00T00:00:00.000Z";
  const auto put = [&](std::size_t end, int digits, std::int64_t number) {
    for (; digits > 0; --digits, number /= 10) text[--end] = static_cast<char>('0' + number % 10);
  };
  put(4, 4, static_cast<int>(date.year()));
  put(7, 2, static_cast<unsigned>(date.month()));
  put(10, 2, static_cast<unsigned>(date.day()));
  put(13, 2, clock.hours().count());
  put(16, 2, clock.minutes().count());
  put(19, 2, clock.seconds().count());
  if (milliseconds_always || clock.subseconds().count() != 0) {
    put(23, 3, clock.subseconds().count());
    out += text;
  } else {
    out.append(text, 19);
    out += 'Z';
  }
}

static std::string to_text(WallTime time, bool milliseconds_always) {
  std::string text;
  append(text, time, milliseconds_always);
  return text;
}

std::string to_rfc3339(WallTime time) { return to_text(time, false); }
std::string to_rfc3339_ms(WallTime time) { return to_text(time, true); }
void append_rfc3339(std::string& out, WallTime time) { append(out, time, false); }

std::optional<WallTime> parse_rfc3339(std::string_view text) noexcept {
  DateText in(text);
  const int year = in.digits(4);
  in.expect("-");
  const int month = in.digits(2);
  in.expect("-");
  const int day = in.digits(2);
  in.expect_any("Tt ");
  const int hour = in.digits(2);
  in.expect(":");
  const int minute = in.digits(2);
  in.expect(":");
  const int second = in.digits(2);
  const Duration fraction = in.take('.') ? in.fraction() : Duration{};
  const auto offset = in.take_any("Zz") ? minutes{0} : in.offset(DateText::Offset::with_colon);
  const year_month_day date{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                            std::chrono::day{static_cast<unsigned>(day)}};
  if (!in.is_over() || !offset || !date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const auto whole = sys_days{date}.time_since_epoch() + hours{hour} + minutes{minute} - *offset + seconds{second};
  // One second of room for the fraction.
  if (whole < seconds{0} || whole >= duration_cast<seconds>(Duration::max())) return std::nullopt;
  return WallTime{Duration{whole} + fraction};
}

}  // namespace argiope
