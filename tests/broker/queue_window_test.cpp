// What a window keeps of a queue, and what it reads on from, as its owner sees it.
#include "engine/internal/queue_window.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace argiope {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMost = 8;

class QueueWindowTest : public testing::Test {
 protected:
  QueueWindowTest() {
    // Nothing is set aside, and all shelves are empty.
    for (int round = 0; round < 2; ++round) {
      for (const QueueWindow::Load& load : window.loads(clock.now())) {
        if (load.keys) {
          window.loaded_keys(load, {});
        } else {
          window.loaded(load, {}, clock.now());
        }
      }
    }
  }
  void place_delayed(JobId id, WallTime due_at) {
    window.place({.id = id, .due_at = due_at, .shelf = Shelf::delayed}, clock.now());
  }
  // Where the shelf of delayed jobs is read on; nullopt: it is not.
  std::optional<DueRank> reads_delayed_after() {
    for (const QueueWindow::Load& load : window.loads(clock.now())) {
      if (!load.keys && load.read.shelf == Shelf::delayed) return load.read.due_after;
    }
    return std::nullopt;
  }

  ManualClock clock;
  JobClock job_clock{clock, Duration::zero()};
  QueueWindow window{StoredQueue{.id = 1, .name = "q", .config = {}}, kMost, job_clock};
};

TEST_F(QueueWindowTest, ReadsAllDelayedJobsAgainThatItLetGoOfAlthoughTheClockWasCorrectedSince) {
  const WallTime start = clock.wall_now();
  for (const Duration correction : {1500ms, -1500ms, 700ms}) {
    constexpr JobId kJobs = 3 * kMost;
    for (JobId id = 1; id <= kJobs; ++id) place_delayed(id, start + 1h + id * 10ms);
    clock.set_wall(clock.wall_now() + correction);
    EXPECT_FALSE(job_clock.look());  // too little for a jump
    window.trim(clock.now());
    JobId first_gone = 1;
    while (window.jobs().contains(first_gone)) ++first_gone;
    ASSERT_LE(first_gone, kJobs);
    for (JobId id = 1; id <= kJobs; ++id) {
      if (id < first_gone) window.forget(id, clock.now());
    }
    const auto after = reads_delayed_after();
    ASSERT_TRUE(after);
    EXPECT_TRUE(comes_before(*after, DueRank{start + 1h + first_gone * 10ms, first_gone})) << to_seconds(correction);
    window.loaded({.read = {.shelf = Shelf::delayed, .limit = 1}}, {}, clock.now());
  }
}

}  // namespace
}  // namespace argiope
