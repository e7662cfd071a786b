// How the reports for people say things.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/internal/wording.hpp"
#include "simulate/internal/report.hpp"
#include "time/internal/time_labels.hpp"

namespace argiope {

std::string verdict(const QueueFindings& queue, const SimulationReport& report);  // piles up: +40 a day
std::string names_of(const Collision& collision, const SimulationReport& report, std::size_t most);  // a, b and 98 more
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
