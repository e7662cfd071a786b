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

TEST_F(QueueWindowTest, ReadsOnOfAKeyWhoseJobsHereAreAllForgotten) {
  const auto aside = [](JobId id) { return WaitingJob{.id = id, .key = "k", .shelf = Shelf::set_aside}; };
  const auto wanted_of_key = [&]() -> std::optional<QueueWindow::Load> {
    for (const QueueWindow::Load& load : window.loads(clock.now())) {
      if (!load.keys && load.read.shelf == Shelf::set_aside && load.key == "k") return load;
    }
    return std::nullopt;
  };
  for (JobId id = 1; id <= 20; ++id) window.left_in_store(aside(id));
  const auto first = wanted_of_key();
  ASSERT_TRUE(first);
  ASSERT_GT(first->read.limit, 1u);
  std::vector<WaitingJob> rows;
  for (JobId id = 1; id <= first->read.limit; ++id) rows.push_back(aside(id));
  window.loaded(*first, rows, clock.now());
  EXPECT_FALSE(wanted_of_key());  // there are enough of it
  // What was read was older than what had become of them meanwhile.
  for (const WaitingJob& row : rows) window.forget(row.id, clock.now());
  EXPECT_TRUE(window.wants_load(clock.now()));
  EXPECT_TRUE(wanted_of_key());
}

}  // namespace
}  // namespace argiope
