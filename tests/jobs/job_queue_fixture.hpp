// A JobQueue, and the job that it gives next.
#pragma once

#include <gtest/gtest.h>

#include <chrono>

#include "argiope/jobs/job_queue.hpp"

namespace argiope {

using namespace std::chrono_literals;

class OfJobQueue : public testing::Test {
 protected:
  static constexpr Duration kLease = 1h;
  static constexpr TimePoint kNow{1000s};

  // 0: it gives none now.
  JobId next(TimePoint now = kNow) {
    const auto lease = queue_.lease(now, kLease);
    if (!lease) return 0;
    last_ = *lease;
    return lease->id;
  }

  JobQueue queue_;
  Lease last_;
};

}  // namespace argiope
