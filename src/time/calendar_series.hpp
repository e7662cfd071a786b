// The local times of a calendar interval.
#pragma once

#include <optional>

#include "argiope/time/trigger.hpp"
#include "time/calendar.hpp"

namespace argiope::detail {

class CalendarSeries {
 public:
  explicit CalendarSeries(const CalendarInterval& interval) noexcept;
  std::optional<LocalTime> first_at_or_after(LocalTime from) const noexcept;
  std::optional<LocalTime> last_at_or_before(LocalTime until) const noexcept;

 private:
  // The date `months` months after the start's; nullopt when that month has no such day.
  std::optional<int> day_after_months(int months) const noexcept;
  // The date that follows, when there are months and days to add.
  std::optional<Date> date_after(Date date) const noexcept;
  std::optional<int> first_day(int from) const noexcept;
  std::optional<int> last_day(int until) const noexcept;

  int start_, start_month_, start_day_of_month_;  // the month is counted from year 0
  int months_, days_;
  Duration time_;
};

}  // namespace argiope::detail
