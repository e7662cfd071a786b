#include "time/calendar_series.hpp"

#include <algorithm>

#include "time/calendar.hpp"

namespace argiope::detail {
namespace {

constexpr int kMonthsEnd = (CronExpression::kLastYear + 1) * 12;

std::optional<int> day_in(int month_number, int day_of_month) noexcept {
  const int year = month_number / 12, month = month_number % 12 + 1;
  if (day_of_month > month_length(year, month)) return std::nullopt;
  return day_number(year, month, day_of_month);
}

}  // namespace

CalendarSeries::CalendarSeries(const CalendarInterval& interval) noexcept
    : start_(std::chrono::sys_days{interval.start}.time_since_epoch().count()),
      start_month_(int{interval.start.year()} * 12 + static_cast<int>(unsigned{interval.start.month()}) - 1),
      start_day_of_month_(static_cast<int>(unsigned{interval.start.day()})),
      months_(interval.years * 12 + interval.months),
      days_(interval.weeks * 7 + interval.days),
      time_(std::chrono::hours{interval.hour} + std::chrono::minutes{interval.minute} +
            std::chrono::seconds{interval.second}) {}

std::optional<int> CalendarSeries::day_after_months(int months) const noexcept {
  return day_in(start_month_ + months, start_day_of_month_);
}

// In years, months and days all the way: this is the step of a walk of up to 2,760 of them.
std::optional<Date> CalendarSeries::date_after(Date date) const noexcept {
  int month = date.year * 12 + date.month - 1;
  do {
    month += months_;
    if (month >= kMonthsEnd) return std::nullopt;
  } while (date.day > 28 && date.day > month_length(month / 12, month % 12 + 1));
  int day = date.day + days_;
  if (days_ > 366) return date_of(day_number(month / 12, month % 12 + 1, 1) + day - 1);
  for (;; ++month) {
    const int length = month_length(month / 12, month % 12 + 1);
    if (day <= length) return Date{month / 12, month % 12 + 1, day};
    day -= length;
  }
}

std::optional<int> CalendarSeries::first_day(int from) const noexcept {
  if (from <= start_) return start_;
  if (months_ == 0) return start_ + (from - start_ + days_ - 1) / days_ * days_;
  if (days_ == 0) {
    const Date date = date_of(from);
    const int wanted = date.year * 12 + date.month - 1 - start_month_;
    for (int months = wanted / months_ * months_; start_month_ + months < kMonthsEnd; months += months_) {
      const auto day = day_after_months(months);
      if (day && *day >= from) return day;
    }
    return std::nullopt;
  }
  // Months and days together have no closed form: the day of the month moves with every step.
  const Date wanted = date_of(from);
  std::optional<Date> date = date_of(start_);
  while (date && *date < wanted) date = date_after(*date);
  return date ? std::optional(day_number(date->year, date->month, date->day)) : std::nullopt;
}

std::optional<int> CalendarSeries::last_day(int until) const noexcept {
  if (until < start_) return std::nullopt;
  if (months_ == 0) return start_ + (until - start_) / days_ * days_;
  if (days_ == 0) {
    const Date date = date_of(until);
    const int wanted = date.year * 12 + date.month - 1 - start_month_;
    for (int months = wanted / months_ * months_; months >= 0; months -= months_) {
      const auto day = day_after_months(months);
      if (day && *day <= until) return day;
    }
    return std::nullopt;
  }
  const Date wanted = date_of(until);
  Date last = date_of(start_);
  for (auto date = date_after(last); date && *date <= wanted; date = date_after(last)) last = *date;
  return day_number(last.year, last.month, last.day);
}

std::optional<LocalTime> CalendarSeries::first_at_or_after(LocalTime from) const noexcept {
  const Duration time = from.time_since_epoch();
  const int today = day_of(time);
  const auto day = first_day(time - today * kDay <= time_ ? today : today + 1);
  if (!day || date_of(*day).year > CronExpression::kLastYear) return std::nullopt;
  return LocalTime{*day * kDay + time_};
}

std::optional<LocalTime> CalendarSeries::last_at_or_before(LocalTime until) const noexcept {
  const Duration time = until.time_since_epoch();
  const int today = std::min(day_of(time), day_number(CronExpression::kLastYear + 1, 1, 1));
  const auto day = last_day(time - today * kDay >= time_ ? today : today - 1);
  if (!day) return std::nullopt;
  return LocalTime{*day * kDay + time_};
}

}  // namespace argiope::detail
