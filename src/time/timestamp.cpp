#include <fmt/format.h>

#include <chrono>

#include "argiope/time/time_zone.hpp"
#include "base/internal/date_text.hpp"
#include "time/calendar.hpp"
#include "time/cron_parser.hpp"

namespace argiope {
namespace {

using namespace std::chrono;
using detail::trim;

std::unexpected<Error> bad_time(std::string_view text, std::string_view why) {
  return detail::bad_field("time", text, why);
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
  DateText text(trim(given));
  const auto bad = [&] { return bad_time(given, "a time such as 2026-03-29T02:30:00+01:00"); };
  const int year = text.digits(4);
  text.expect("-");
  const int month = text.digits(2);
  text.expect("-");
  const int day = text.digits(2);
  if (!text.is_good()) return bad();
  if (month < 1 || month > 12 || day < 1 || day > detail::month_length(year, month)) {
    return bad_time(given, "there is no such date");
  }
  if (year < 1678 || year > 2261) return bad_time(given, "years 1678 to 2261");
  const bool has_hour = text.take_any("Tt ");
  const int hour = has_hour ? text.digits(2) : 0;
  const bool has_minute = has_hour && text.take(':');
  const int minute = has_minute ? text.digits(2) : 0;
  const bool has_second = has_minute && text.take(':');
  const int second = has_second ? text.digits(2) : 0;
  const Duration fraction = has_second && text.take('.') ? text.fraction() : Duration{};
  if (!text.is_good()) return bad();
  if (hour > 23 || minute > 59 || second > 59) return bad_time(given, "there is no such time of day");
  const LocalTime local{detail::day_number(year, month, day) * detail::kDay + hours{hour} + minutes{minute} +
                        seconds{second} + fraction};
  text = DateText(trim(text.rest()));
  if (!text.is_over()) {
    const auto offset = text.take_any("Zz") ? minutes{0} : text.offset(DateText::Offset::without_colon);
    if (!offset || !text.is_over()) return bad();
    return WallTime{local.time_since_epoch() - *offset};
  }
  const TimeZone::LocalInstants at = zone.resolve(local);
  return at.kind == TimeZone::LocalKind::gap ? at.transition : at.first;
}

}  // namespace argiope
