#include "time/internal/time_labels.hpp"

#include <fmt/format.h>

#include <chrono>

#include "argiope/time/time_zone.hpp"
#include "base/internal/date_text.hpp"

namespace argiope {

std::string short_time(WallTime time, const TimeZone& zone) {
  std::string text = format_timestamp(std::chrono::floor<std::chrono::seconds>(time), zone);
  text = text.substr(0, text.substr(17, 2) == "00" ? 16 : 19);
  text[10] = ' ';
  return text;
}

std::string axis_label(WallTime time, Duration span, const TimeZone& zone) {
  const LocalTime local = zone.to_local(time);
  const std::chrono::year_month_day date{std::chrono::floor<std::chrono::days>(local)};
  const std::string day = fmt::format("{} {}", unsigned{date.day()}, kMonthNames[unsigned{date.month()} - 1]);
  if (span >= std::chrono::days{12}) return day;
  const std::string clock = local_time_text(std::chrono::floor<std::chrono::seconds>(local));
  return span > std::chrono::days{1} ? day + ' ' + clock : clock;
}

std::string local_time_text(LocalTime local) {
  const std::string text = format_timestamp(WallTime{local.time_since_epoch()});
  return text.substr(11, text.substr(17, 2) == "00" ? 5 : 8);
}

}  // namespace argiope
