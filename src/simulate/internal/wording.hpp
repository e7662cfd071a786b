// How the reports for people say things.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/internal/report.hpp"

namespace argiope {

std::string grouped(std::uint64_t number);                    // 1,234,567
std::string short_duration(Duration span);                    // 0, 340 ms, 1.5 s, 2 h 10 min, 3 d 4 h
std::string short_time(WallTime time, const TimeZone& zone);  // 2026-03-29 02:30, with seconds where there are any
// To stand under a time line of that length: 29 Mar, 29 Mar 12:00 or 12:00:30.
std::string axis_label(WallTime time, Duration span, const TimeZone& zone);
std::string local_time_text(LocalTime local);                                     // 02:30
std::string count_of(std::uint64_t count, std::string_view what);                 // 1 run, 2 runs
std::string verdict(const QueueFindings& queue, const SimulationReport& report);  // piles up: +40 a day
std::string names_of(const Collision& collision, const SimulationReport& report, std::size_t most);  // a, b and 98 more
std::string shortened(std::string_view text, std::size_t most);  // characters, and … for those left out
std::string sentence(const DaylightSurprise& surprise);

// The numbers of a time line, brought to at most `columns`.
struct Columns {
  std::size_t steps = 1;  // in each
  std::vector<double> values;
  double most = 0;
};
Columns sums(const std::vector<std::uint64_t>& steps, std::size_t columns);
Columns highest(const std::vector<Level>& steps, std::size_t columns);

}  // namespace argiope
