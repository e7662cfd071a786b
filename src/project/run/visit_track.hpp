// A visit's track, as the page's row keeps it for people: times, results, last logs, and why it failed, with the trace.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "project/process/internal/processor.hpp"
#include "project/run/internal/page_engine.hpp"

namespace argiope {

inline constexpr std::size_t kMostTrackedLogs = 4 * 1024;   // bytes of texts: the last lines
inline constexpr std::size_t kMostTrackedTrace = 4 * 1024;  // bytes: the end of the trace

// {"fetch_ms":12.5,"process_ms":0.125,"pages":3,"results":1}, and where there are any "logs" with "logs_left_out", and
// "failure".
std::string track_of(const VisitNote& visit, const std::vector<PageLog>& logs, const ProcessorFailure* failure);

}  // namespace argiope
