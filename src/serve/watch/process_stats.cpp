#include "serve/watch/process_stats.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "web/text/internal/ascii.hpp"

namespace argiope {

namespace {

// Counted from the field behind the name, which is in parentheses and may hold anything (proc(5)).
enum Field : std::size_t { utime = 11, stime = 12, num_threads = 17, vsize = 20, rss = 21, kFields = 22 };

std::uint64_t count_open_fds() {
  std::error_code failure;
  std::filesystem::directory_iterator entries("/proc/self/fd", failure);
  if (failure) return 0;
  std::uint64_t count = 0;
  for (; entries != std::filesystem::directory_iterator(); entries.increment(failure)) {
    if (failure) return count;
    ++count;
  }
  return count > 0 ? count - 1 : 0;  // that of the folder itself
}

}  // namespace

ProcessStats parse_process_stat(std::string_view stat, double ticks, std::uint64_t page) {
  std::array<std::uint64_t, kFields> fields{};
  std::size_t place = 0;
  for_each_token(stat.substr(std::min(stat.rfind(')') + 1, stat.size())), is_space, [&](std::string_view text) {
    if (place < fields.size()) std::from_chars(text.data(), text.data() + text.size(), fields[place]);
    ++place;
  });
  return {.cpu_seconds = static_cast<double>(fields[utime] + fields[stime]) / ticks,
          .resident_bytes = fields[rss] * page,
          .virtual_bytes = fields[vsize],
          .threads = fields[num_threads]};
}

ProcessStats read_process_stats() {
  std::ifstream file("/proc/self/stat");
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  ProcessStats stats = parse_process_stat(stat, static_cast<double>(::sysconf(_SC_CLK_TCK)),
                                          static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
  stats.open_fds = count_open_fds();
  ::rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) stats.most_fds = limit.rlim_cur;
  return stats;
}

}  // namespace argiope
