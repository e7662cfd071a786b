#include "base/internal/rfc3339.hpp"

#include <chrono>
#include <cstdint>
#include <limits>

namespace argiope {
namespace {

using namespace std::chrono;

// Takes what it has read from the front of its text. After a mistake it takes nothing more and `good` is false.
struct Reader {
  std::string_view rest;
  bool good = true;

  int digits(int count) {
    int number = 0;
    for (int i = 0; i < count; ++i) {
      if (!next_is_digit()) return good = false, 0;
      number = number * 10 + (rest.front() - '0');
      rest.remove_prefix(1);
    }
    return number;
  }
  bool next_is_digit() const { return good && !rest.empty() && rest.front() >= '0' && rest.front() <= '9'; }
  // The one of `allowed` that stands there.
  char one_of(std::string_view allowed) {
    if (!good || rest.empty() || allowed.find(rest.front()) == std::string_view::npos) return good = false, '\0';
    const char found = rest.front();
    rest.remove_prefix(1);
    return found;
  }
};

}  // namespace

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
  Reader in{text};
  const int year = in.digits(4);
  in.one_of("-");
  const int month = in.digits(2);
  in.one_of("-");
  const int day = in.digits(2);
  in.one_of("Tt ");
  const int hour = in.digits(2);
  in.one_of(":");
  const int minute = in.digits(2);
  in.one_of(":");
  const int second = in.digits(2);
  std::int64_t fraction = 0;
  if (in.good && in.rest.starts_with('.')) {
    in.rest.remove_prefix(1);
    if (!in.next_is_digit()) return std::nullopt;
    for (std::int64_t unit = 100'000'000; in.next_is_digit(); unit /= 10) fraction += unit * in.digits(1);
  }
  int offset = 0;
  if (const char sign = in.one_of("Zz+-"); sign == '+' || sign == '-') {
    const int hours_off = in.digits(2);
    in.one_of(":");
    const int minutes_off = in.digits(2);
    if (hours_off > 23 || minutes_off > 59) return std::nullopt;
    offset = (sign == '+' ? 1 : -1) * (hours_off * 60 + minutes_off);
  }
  const year_month_day date{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                            std::chrono::day{static_cast<unsigned>(day)}};
  if (!in.good || !in.rest.empty() || !date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const auto whole = sys_days{date}.time_since_epoch() + hours{hour} + minutes{minute - offset} + seconds{second};
  // One second of room for the fraction.
  if (whole < seconds{0} || whole >= duration_cast<seconds>(Duration::max())) return std::nullopt;
  return WallTime{Duration{whole} + Duration{fraction}};
}

}  // namespace argiope
