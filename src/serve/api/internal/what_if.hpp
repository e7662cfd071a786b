// WhatIf: a question about queues and schedules that are there, or might be: how they would fare from now on. The
// daemon asks it of its own book (POST /v1/simulate). The answer comes from the module `simulate`, above this one, so
// the program hands it in as a function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/jobs/job_queue.hpp"
#include "argiope/jobs/schedule.hpp"
#include "argiope/time/time_zone.hpp"

namespace argiope {

// Jobs that no schedule puts.
struct ExpectedJobs {
  struct Waiting {
    std::string key;
    std::int32_t priority = 0;
    Duration due_in{};  // from the beginning
  };
  std::vector<Waiting> waiting;  // at the beginning; those that run then begin anew
  // And so many more, which are as those are, in turn.
  std::uint64_t more_waiting = 0;
  // Of those that come later: a Poisson process.
  double arrivals_per_second = 0;
};

struct WhatIfQueue {
  std::string name;
  QueueConfig config;
  std::size_t workers = 0;  // jobs that are worked on at once; 0: nobody does
  ExpectedJobs jobs;
  // How long a job runs: an exponential distribution with this mean. Not known: a second, always.
  std::optional<Duration> mean_duration;
  double failures = 0;  // the share of attempts that fail
  // From what the daemon reckons: jobs that no schedule has put, in how many minutes they came, and runs that have
  // ended.
  struct Counted {
    std::uint64_t put = 0, minutes = 0, runs = 0;
  };
  Counted counted;
};

struct WhatIf {
  WallTime from{};
  Duration span = std::chrono::days{1};
  TimeZone zone;  // to show times in
  std::uint64_t seed = 0;
  std::uint64_t most_jobs = 100'000;  // that have not ended; with more it ends early, and says so
  std::vector<WhatIfQueue> queues;
  std::vector<Schedule> schedules;    // as if they were added at `from`
  std::uint64_t counted_seconds = 0;  // for how long WhatIfQueue::counted was counted
  // Asked now and then: true ends it early.
  std::function<bool()> abandoned;
};

// The report of `argiope simulate --json`. Called on a thread of its own, and blocks for as long as it takes, which it
// bounds.
using WhatIfAnswerer = std::function<Result<std::string>(const WhatIf& question)>;

}  // namespace argiope
