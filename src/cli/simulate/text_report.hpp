// The findings of a simulation, for a terminal.
#pragma once

#include <string>

#include "simulate/internal/report.hpp"

namespace argiope {

std::string text_report(const SimulationReport& report);

}  // namespace argiope
