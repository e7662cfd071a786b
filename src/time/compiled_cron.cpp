#include "time/compiled_cron.hpp"

#include <algorithm>
#include <bit>

#include "time/calendar.hpp"

namespace argiope::detail {
namespace {

constexpr int kFirstYear = CronExpression::kFirstYear;
constexpr int kLastYear = CronExpression::kLastYear;
constexpr Duration kSecond = std::chrono::seconds{1};
constexpr Duration kMinute = std::chrono::minutes{1};

constexpr std::uint32_t days_through(int last) noexcept {
  return static_cast<std::uint32_t>((std::uint64_t{2} << last) - 2);
}

// Lowest bit at or above `from`, highest at or below `until`; −1 when there is none.
int lowest(std::uint64_t bits, int from) noexcept {
  if (from > 63) return -1;
  bits = from <= 0 ? bits : bits >> from << from;
  return bits == 0 ? -1 : std::countr_zero(bits);
}
int highest(std::uint64_t bits, int until) noexcept {
  if (until < 0) return -1;
  if (until < 63) bits &= (std::uint64_t{2} << until) - 1;
  return bits == 0 ? -1 : 63 - std::countl_zero(bits);
}

// The first of a month's days that fall on `weekday`.
int first_such_day(int weekday, int first_weekday) noexcept { return 1 + (weekday - first_weekday + 7) % 7; }

int nearest_working_day(int day, int length, int first_weekday) noexcept {
  const int weekday = (first_weekday + day - 1) % 7;
  if (weekday == 6) return day == 1 ? 3 : day - 1;
  if (weekday == 0) return day == length ? day - 2 : day + 1;
  return day;
}

template <class Visit>
void for_each_bit(std::uint32_t bits, Visit visit) {
  for (; bits != 0; bits &= bits - 1) visit(std::countr_zero(bits));
}

}  // namespace

std::uint32_t DayRule::mask(int length, int first_weekday) const noexcept {
  std::uint32_t found = days;
  const auto add = [&](int day) {
    if (day >= 1 && day <= length) found |= 1u << day;
  };
  if ((last | nearest | last_nearest) != 0) {
    for_each_bit(last, [&](int before) { add(length - before); });
    for_each_bit(nearest, [&](int day) {
      if (day <= length) add(nearest_working_day(day, length, first_weekday));
    });
    for_each_bit(last_nearest, [&](int before) {
      if (before < length) add(nearest_working_day(length - before, length, first_weekday));
    });
  }
  for_each_bit(weekdays, [&](int weekday) {
    found |= 0x10204081u << first_such_day(weekday, first_weekday);  // every seventh day
  });
  for (int k = 1; k <= 5; ++k) {
    for_each_bit(nth[k], [&](int weekday) { add(first_such_day(weekday, first_weekday) + 7 * (k - 1)); });
  }
  for_each_bit(last_weekdays, [&](int weekday) {
    const int first = first_such_day(weekday, first_weekday);
    add(first + 28 <= length ? first + 28 : first + 21);
  });
  return found & days_through(length);
}

std::uint32_t CompiledCron::days_of(int length, int first_weekday) const noexcept {
  if (!dom.restricted && !dow.restricted) return days_through(length);
  if (!dow.restricted) return dom.mask(length, first_weekday);
  if (!dom.restricted) return dow.mask(length, first_weekday);
  const std::uint32_t by_dom = dom.mask(length, first_weekday), by_dow = dow.mask(length, first_weekday);
  const bool either =
      options.dom_dow == DomDow::either || (options.dom_dow == DomDow::vixie && !dom.starred && !dow.starred);
  return either ? by_dom | by_dow : by_dom & by_dow;
}

// The days of a month whose ISO week is wanted. A week belongs to the year that has its Thursday, so the first days of
// January may be in the last week of the year before, whose number then depends on that year's length.
std::uint32_t CompiledCron::days_of_weeks(int month, bool leap, bool leap_before, int new_year_weekday) const noexcept {
  const int some_year = leap ? 2000 : 2001;
  const int first = day_number(some_year, month, 1) - day_number(some_year, 1, 1);
  const int length = month_length(some_year, month);
  int since_monday = (new_year_weekday + 6 + first) % 7;
  std::uint32_t found = 0;
  for (int day = 1; day <= length; day += 7 - since_monday, since_monday = 0) {
    const int thursday = first + day - 1 + 3 - since_monday;
    int week = 1 + thursday / 7;
    if (thursday < 0) week = new_year_weekday == 5 || (new_year_weekday == 6 && leap_before) ? 53 : 52;
    if (thursday >= (leap ? 366 : 365)) week = 1;
    if ((weeks >> week & 1) != 0) found |= days_through(7 - since_monday) << (day - 1);
  }
  return found & days_through(length);
}

std::uint32_t CompiledCron::days_of_month(int year, int month) const noexcept {
  const std::uint32_t found = days_of(month_length(year, month), weekday_of(day_number(year, month, 1)));
  if (weeks == 0 || found == 0) return found;
  return found & days_of_weeks(month, is_leap(year), is_leap(year - 1), weekday_of(day_number(year, 1, 1)));
}

void CompiledCron::prepare() noexcept {
  for (int kind = 0; kind < 14; ++kind) {
    const bool leap = kind >= 7;
    const int new_year_weekday = kind % 7;
    int first_weekday = new_year_weekday;
    for (int month = 1; month <= 12; ++month) {
      const int length = month_length(leap ? 2000 : 2001, month);
      std::uint32_t found = (months >> month & 1) != 0 ? days_of(length, first_weekday) : 0;
      if (weeks != 0 && found != 0) {
        found &=
            days_of_weeks(month, leap, false, new_year_weekday) | days_of_weeks(month, leap, true, new_year_weekday);
      }
      if (found != 0) months_of_kind[kind] |= static_cast<std::uint16_t>(1 << month);
      first_weekday = (first_weekday + length) % 7;
    }
  }
}

std::optional<int> CompiledCron::first_day(int from) const noexcept {
  Date at = date_of(std::max(from, day_number(kFirstYear, 1, 1)));
  for (int year = at.year; year <= kLastYear; ++year, at = {year, 1, 1}) {
    if (!has_year(year)) continue;
    const int kind = weekday_of(day_number(year, 1, 1)) + (is_leap(year) ? 7 : 0);
    for (int month = lowest(months_of_kind[kind], at.month); month > 0;
         month = lowest(months_of_kind[kind], month + 1)) {
      const int day = lowest(days_of_month(year, month), month == at.month ? at.day : 1);
      if (day > 0) return day_number(year, month, day);
    }
  }
  return std::nullopt;
}

std::optional<int> CompiledCron::last_day(int until) const noexcept {
  Date at = date_of(std::min(until, day_number(kLastYear, 12, 31)));
  for (int year = at.year; year >= kFirstYear; --year, at = {year, 12, 31}) {
    if (!has_year(year)) continue;
    const int kind = weekday_of(day_number(year, 1, 1)) + (is_leap(year) ? 7 : 0);
    for (int month = highest(months_of_kind[kind], at.month); month > 0;
         month = highest(months_of_kind[kind], month - 1)) {
      const int day = highest(days_of_month(year, month), month == at.month ? at.day : 31);
      if (day > 0) return day_number(year, month, day);
    }
  }
  return std::nullopt;
}

// Within a minute, from its begin.
std::optional<Duration> CompiledCron::first_second(Duration from) const noexcept {
  if (fractions.empty()) {
    const int second = lowest(seconds, static_cast<int>((from + kSecond - Duration{1}) / kSecond));
    return second < 0 ? std::nullopt : std::optional<Duration>{second * kSecond};
  }
  std::optional<Duration> found;
  for (const SecondSeries& series : fractions) {
    Duration at = series.start;
    if (at < from) {
      if (series.step == Duration::zero()) continue;
      at += (from - at + series.step - Duration{1}) / series.step * series.step;
    }
    if (at <= series.stop && (!found || at < *found)) found = at;
  }
  return found;
}

std::optional<Duration> CompiledCron::last_second(Duration until) const noexcept {
  if (fractions.empty()) {
    const int second = highest(seconds, static_cast<int>(until / kSecond));
    return second < 0 ? std::nullopt : std::optional<Duration>{second * kSecond};
  }
  std::optional<Duration> found;
  for (const SecondSeries& series : fractions) {
    if (until < series.start) continue;
    Duration at = series.start;
    if (series.step > Duration::zero()) at += (std::min(until, series.stop) - at) / series.step * series.step;
    if (!found || at > *found) found = at;
  }
  return found;
}

// Within a day, from its begin.
std::optional<Duration> CompiledCron::first_time(Duration from) const noexcept {
  int hour = static_cast<int>(from / std::chrono::hours{1});
  int minute = static_cast<int>(from / kMinute % 60);
  if ((hours >> hour & 1) != 0) {
    if ((minutes >> minute & 1) != 0) {
      if (const auto second = first_second(from % kMinute)) return from - from % kMinute + *second;
    }
    minute = lowest(minutes, minute + 1);
  } else {
    minute = -1;
  }
  if (minute < 0) {
    hour = lowest(hours, hour + 1);
    minute = lowest(minutes, 0);
  }
  const auto second = first_second(Duration::zero());
  if (hour < 0 || minute < 0 || !second) return std::nullopt;
  return std::chrono::hours{hour} + std::chrono::minutes{minute} + *second;
}

std::optional<Duration> CompiledCron::last_time(Duration until) const noexcept {
  int hour = static_cast<int>(until / std::chrono::hours{1});
  int minute = static_cast<int>(until / kMinute % 60);
  if ((hours >> hour & 1) != 0) {
    if ((minutes >> minute & 1) != 0) {
      if (const auto second = last_second(until % kMinute)) return until - until % kMinute + *second;
    }
    minute = highest(minutes, minute - 1);
  } else {
    minute = -1;
  }
  if (minute < 0) {
    hour = highest(hours, hour - 1);
    minute = highest(minutes, 59);
  }
  const auto second = last_second(kMinute - Duration{1});
  if (hour < 0 || minute < 0 || !second) return std::nullopt;
  return std::chrono::hours{hour} + std::chrono::minutes{minute} + *second;
}

std::optional<Duration> CompiledCron::first_at_or_after(Duration local) const noexcept {
  const int today = day_of(local);
  const auto later_today = first_time(local - today * kDay);
  const auto day = first_day(later_today ? today : today + 1);
  if (day == today) return today * kDay + *later_today;
  const auto time = first_time(Duration::zero());
  if (!day || !time) return std::nullopt;
  return *day * kDay + *time;
}

std::optional<Duration> CompiledCron::last_at_or_before(Duration local) const noexcept {
  const int today = day_of(local);
  const auto earlier_today = last_time(local - today * kDay);
  const auto day = last_day(earlier_today ? today : today - 1);
  if (day == today) return today * kDay + *earlier_today;
  const auto time = last_time(kDay - Duration{1});
  if (!day || !time) return std::nullopt;
  return *day * kDay + *time;
}

}  // namespace argiope::detail
