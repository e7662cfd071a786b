// A cron expression as bit sets, and the search through them: what every dialect's parser makes, and all that the
// search knows. Local time only; zones come later.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "argiope/time/trigger.hpp"

namespace argiope::detail {

// Which days of a month one field names. Bit n of `days`, `nearest`: day n; of `last`, `last_nearest`: n days before
// the month's last. Weekday sets: bit 0 is Sunday.
struct DayRule {
  bool restricted = false;  // neither `*` nor `?`
  bool starred = false;     // begins with `*` or `?`
  std::uint32_t days = 0;
  std::uint32_t last = 0;
  std::uint32_t nearest = 0;       // 15W: the working day nearest to it, within the month
  std::uint32_t last_nearest = 0;  // LW, L-3W
  std::uint8_t weekdays = 0;
  std::array<std::uint8_t, 6> nth{};  // [k]: the k-th such weekday, k from 1
  std::uint8_t last_weekdays = 0;     // 5L

  // Bits 1 to 31. `first_weekday`: of the month's first day, Sunday 0.
  std::uint32_t mask(int length, int first_weekday) const noexcept;
};

// systemd's seconds with fractions: start, start + step … up to `stop`, all within a minute.
struct SecondSeries {
  Duration start, stop, step;  // step 0: only `start`
};

struct CompiledCron {
  std::string text;
  CronOptions options;
  std::optional<TimeZone> zone;

  std::uint64_t seconds = 1;
  std::uint64_t minutes = 0;
  std::uint32_t hours = 0;
  std::uint16_t months = 0;  // bits 1 to 12
  std::uint64_t weeks = 0;   // ISO weeks, bits 1 to 53; 0: any
  std::array<std::uint64_t, 4> years{};
  DayRule dom, dow;
  bool follows_elapsed_time = false;
  std::vector<SecondSeries> fractions;  // when there are any, they stand in for `seconds`

  // For each of the 14 kinds of year (common or leap, by the weekday of 1 January): the months that have a day at all.
  std::array<std::uint16_t, 14> months_of_kind{};

  void add_year(int year) noexcept { years[index(year) / 64] |= std::uint64_t{1} << index(year) % 64; }
  bool has_year(int year) const noexcept { return (years[index(year) / 64] >> index(year) % 64 & 1) != 0; }

  // Call it once all sets are made.
  void prepare() noexcept;
  std::optional<Duration> first_at_or_after(Duration local) const noexcept;
  std::optional<Duration> last_at_or_before(Duration local) const noexcept;

 private:
  static std::size_t index(int year) noexcept { return static_cast<std::size_t>(year - CronExpression::kFirstYear); }
  std::uint32_t days_of(int length, int first_weekday) const noexcept;
  std::uint32_t days_of_month(int year, int month) const noexcept;
  std::uint32_t days_of_weeks(int month, bool leap, bool leap_before, int new_year_weekday) const noexcept;
  std::optional<int> first_day(int from) const noexcept;
  std::optional<int> last_day(int until) const noexcept;
  std::optional<Duration> first_time(Duration from) const noexcept;
  std::optional<Duration> last_time(Duration until) const noexcept;
  std::optional<Duration> first_second(Duration from) const noexcept;
  std::optional<Duration> last_second(Duration until) const noexcept;
};

}  // namespace argiope::detail
