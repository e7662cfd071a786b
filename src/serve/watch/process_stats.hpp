// The kernel's facts on this process, as /proc tells them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace argiope {

struct ProcessStats {
  double cpu_seconds = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t virtual_bytes = 0;
  std::uint64_t threads = 0;
  std::uint64_t open_fds = 0;
  std::uint64_t most_fds = 0;  // 0: no limit
};

// Blocks for some microseconds, and one more for every few open descriptors. A number that cannot be read is 0.
ProcessStats read_process_stats();
// Of /proc/self/stat; `ticks` a second and `page` bytes are the system's.
ProcessStats parse_process_stat(std::string_view stat, double ticks, std::uint64_t page);

}  // namespace argiope
