// Where a daemon listens and keeps its jobs, and where commands look for both, when nobody says otherwise.
#pragma once

#include <cstdint>
#include <string_view>

namespace argiope {

inline constexpr std::uint16_t kHttpPort = 7733;
inline constexpr std::string_view kUsualDaemon = "http://127.0.0.1:7733";
inline constexpr std::string_view kUsualJobs = "argiope-jobs.db";  // in the folder where it was started

}  // namespace argiope
