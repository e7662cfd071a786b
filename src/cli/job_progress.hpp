// The line that shows a worker at work: rewritten in place on a terminal, a plain log line now and then elsewhere.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "argiope/async/coro.hpp"
#include "argiope/broker/broker.hpp"
#include "argiope/broker/worker.hpp"

namespace argiope {

// What has happened to jobs since this worker began.
struct WorkCounts {
  std::uint64_t done = 0;
  std::uint64_t retried = 0;   // failed, and will be tried again
  std::uint64_t buried = 0;
  std::uint64_t released = 0;  // given back without having ended
  std::uint64_t cancelled = 0;
  std::uint64_t ended() const noexcept { return done + retried + buried + released + cancelled; }
};

class JobProgress {
 public:
  explicit JobProgress(std::FILE* out);
  ~JobProgress() { clear(); }
  // Shows them until cancelled.
  Coro<void> run(Broker& broker, const Worker& worker, const WorkCounts& counts);
  // Takes the live line away, so that something else can be printed.
  void clear();

 private:
  std::FILE* out_;
  bool terminal_;
  bool shown_ = false;
};

}  // namespace argiope
