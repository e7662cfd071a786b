// The Gregorian calendar in plain numbers: days are counted from 1970-01-01, weekdays from Sunday, 0.
#pragma once

#include <chrono>
#include <compare>

#include "argiope/base/clock.hpp"

namespace argiope::detail {

constexpr bool is_leap(int year) noexcept { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

constexpr int month_length(int year, int month) noexcept {
  return month == 2 ? (is_leap(year) ? 29 : 28) : 30 + ((month + (month > 7)) & 1);
}

constexpr int day_number(int year, int month, int day) noexcept {
  using namespace std::chrono;
  return sys_days{std::chrono::year{year} / month / day}.time_since_epoch().count();
}

struct Date {
  int year, month, day;
  friend constexpr auto operator<=>(const Date&, const Date&) = default;
};

constexpr Date date_of(int day_number) noexcept {
  using namespace std::chrono;
  const year_month_day ymd{sys_days{days{day_number}}};
  return {int{ymd.year()}, static_cast<int>(unsigned{ymd.month()}), static_cast<int>(unsigned{ymd.day()})};
}

constexpr int weekday_of(int day_number) noexcept {
  const int since_sunday = (day_number + 4) % 7;
  return since_sunday < 0 ? since_sunday + 7 : since_sunday;
}

inline constexpr Duration kDay = std::chrono::hours{24};

// The day a local time lies in.
constexpr int day_of(Duration local) noexcept {
  return static_cast<int>(std::chrono::floor<std::chrono::days>(local).count());
}

}  // namespace argiope::detail
