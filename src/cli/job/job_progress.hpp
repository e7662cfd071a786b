// The line that shows a worker at work.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "argiope/async/coro.hpp"
#include "argiope/engine/worker.hpp"
#include "cli/live_line.hpp"

namespace argiope {

// How many jobs came to each end since this worker began.
struct WorkCounts {
  std::uint64_t done = 0;
  std::uint64_t retried = 0;  // failed, and will be tried again
  std::uint64_t buried = 0;
  std::uint64_t released = 0;  // given back without having ended
  std::uint64_t cancelled = 0;
  std::uint64_t ended() const noexcept { return done + retried + buried + released + cancelled; }
};

class JobProgress {
 public:
  explicit JobProgress(std::FILE* out) : line_(out) {}
  // Shows them until cancelled, and what `more` says, which ends with two spaces where it is not empty.
  Coro<void> run(const Worker& worker, const WorkCounts& counts, std::function<std::string()> more);
  // Takes the live line away, so that something else can be printed.
  void clear() { line_.clear(); }

 private:
  LiveLine line_;
};

}  // namespace argiope
