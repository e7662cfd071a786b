// The jobs left of some queues, for a worker that ends when nothing is: one rule for jobs of this process and of a
// daemon. The clients for Python and JavaScript have the same (docs/jobs-command.md).
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/jobs/job_queue.hpp"
#include "argiope/store/store.hpp"

namespace argiope {

struct Backlog {
  bool is_left = false;       // jobs that run, are ready, or are to be tried again before long
  std::size_t due_later = 0;  // where none is: those that wait for a time of their own
  WallTime next_due = WallTime::max();
};

struct BacklogLook {
  std::vector<std::string> queues;
  Duration linger{};  // how soon a retry has to be due to be waited for
};

// One of these queues, as it is now.
struct QueueFacts {
  StoredQueue queue;
  StateCounts counts;
};
inline constexpr std::size_t kMostDelayedLookedAt = 10'000;
// The delayed jobs of a queue that wait for their time, by that time; of very many kMostDelayedLookedAt.
using DelayedJobs = std::function<Coro<Result<std::vector<WaitingJob>>>(const StoredQueue& queue)>;

// Queues that are paused or have a rate of 0 have nothing but what runs. `delayed` is called until this ends. Errors:
// those of `delayed`.
Coro<Result<Backlog>> look_for_backlog(std::vector<QueueFacts> queues, DelayedJobs delayed, WallTime now,
                                       Duration linger);

}  // namespace argiope
