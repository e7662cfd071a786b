// Times as reports and plots say them.
#pragma once

#include <string>

#include "argiope/base/clock.hpp"
#include "argiope/time/time_zone.hpp"

namespace argiope {

std::string short_time(WallTime time, const TimeZone& zone);  // 2026-03-29 02:30, with seconds where there are any
// To stand under a time line of that length: 29 Mar, 29 Mar 12:00 or 12:00:30.
std::string axis_label(WallTime time, Duration span, const TimeZone& zone);
std::string local_time_text(LocalTime local);  // 02:30

}  // namespace argiope
