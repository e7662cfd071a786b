#include <fmt/format.h>

#include <chrono>

#include "argiope/time/time_zone.hpp"
#include "time/calendar.hpp"
#include "time/cron_parser.hpp"

namespace argiope {
namespace {

using namespace std::chrono;
using detail::trim;

std::unexpected<Error> bad_time(std::string_view text, std::string_view why) {
  return detail::bad_field("time", text, why);
}

// Reads what stands at the front of `text` and takes it away.
bool take_digits(std::string_view& text, std::size_t count, int& out) {
  const auto number = text.size() < count ? std::nullopt : detail::parse_number(text.substr(0, count));
  if (!number) return false;
  out = *number;
  text.remove_prefix(count);
  return true;
}
bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// "Z", "+02:00", "-0130"
std::optional<Duration> take_offset(std::string_view& text) {
  if (take(text, 'Z') || take(text, 'z')) return Duration::zero();
  const int sign = take(text, '+') ? 1 : take(text, '-') ? -1 : 0;
  int hour = 0, minute = 0;
  if (sign == 0 || !take_digits(text, 2, hour)) return std::nullopt;
  take(text, ':');
  if (!take_digits(text, 2, minute) || hour > 23 || minute > 59) return std::nullopt;
  return sign * (hours{hour} + minutes{minute});
}

}  // namespace

std::string format_timestamp(WallTime time, const TimeZone& zone) {
  Duration offset = zone.offset_at(time);
  if (offset % minutes{1} != Duration::zero()) offset = Duration::zero();
  const Duration local = time.time_since_epoch() + offset;
  const int day = detail::day_of(local);
  const auto [year, month, day_of_month] = detail::date_of(day);
  const hh_mm_ss clock{local - day * detail::kDay};
  std::string out = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", year, month, day_of_month, clock.hours().count(),
                                clock.minutes().count(), clock.seconds().count());
  if (const auto ns = clock.subseconds().count(); ns != 0) {
    out += ns % 1'000'000 == 0 ? fmt::format(".{:03}", ns / 1'000'000)
           : ns % 1'000 == 0   ? fmt::format(".{:06}", ns / 1'000)
                               : fmt::format(".{:09}", ns);
  }
  if (zone.name() == "UTC" || offset != zone.offset_at(time)) return out + "Z";
  const auto in_minutes = duration_cast<minutes>(offset).count();
  const auto size = in_minutes < 0 ? -in_minutes : in_minutes;
  return out + fmt::format("{}{:02}:{:02}", in_minutes < 0 ? '-' : '+', size / 60, size % 60);
}

Result<WallTime> parse_timestamp(std::string_view given, const TimeZone& zone) {
  std::string_view text = trim(given);
  const auto bad = [&] { return bad_time(given, "a time such as 2026-03-29T02:30:00+01:00"); };
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (!take_digits(text, 4, year) || !take(text, '-') || !take_digits(text, 2, month) || !take(text, '-') ||
      !take_digits(text, 2, day)) {
    return bad();
  }
  if (month < 1 || month > 12 || day < 1 || day > detail::month_length(year, month)) {
    return bad_time(given, "there is no such date");
  }
  if (year < 1678 || year > 2261) return bad_time(given, "years 1678 to 2261");
  Duration fraction{};
  if (take(text, 'T') || take(text, 't') || take(text, ' ')) {
    if (!take_digits(text, 2, hour)) return bad();
    if (take(text, ':')) {
      if (!take_digits(text, 2, minute)) return bad();
      if (take(text, ':')) {
        if (!take_digits(text, 2, second)) return bad();
        if (take(text, '.')) {
          Duration unit = seconds{1};
          std::size_t digits = 0;
          for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; text.remove_prefix(1), ++digits) {
            unit /= 10;
            fraction += (text.front() - '0') * unit;
          }
          if (digits == 0) return bad();
        }
      }
    }
  }
  if (hour > 23 || minute > 59 || second > 59) return bad_time(given, "there is no such time of day");
  const LocalTime local{detail::day_number(year, month, day) * detail::kDay + hours{hour} + minutes{minute} +
                        seconds{second} + fraction};
  text = trim(text);
  if (!text.empty()) {
    const auto offset = take_offset(text);
    if (!offset || !text.empty()) return bad();
    return WallTime{local.time_since_epoch() - *offset};
  }
  const TimeZone::LocalInstants at = zone.resolve(local);
  return at.kind == TimeZone::LocalKind::gap ? at.transition : at.first;
}

}  // namespace argiope
