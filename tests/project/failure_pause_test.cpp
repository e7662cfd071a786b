// Pausing after failures, and probing: each arrow of the drawing, and what holds whatever happens.
#include "project/rules/internal/failure_pause.hpp"

#include <gmock/gmock.h>

#include <vector>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using State = FailurePause::State;

constexpr WallTime kStart = std::chrono::sys_days{std::chrono::year{2026} / 11 / 23};

struct PausedProject {
  FailurePause pause{PauseRules{}};
  WallTime now = kStart;

  void visit(std::uint64_t host, bool succeeds) {
    const auto pass = pause.begin(now);
    ASSERT_TRUE(pass);
    pause.ended(*pass, host, succeeds, now);
  }
  void fail(int times, int hosts = 2) {
    for (int i = 0; i < times; ++i) visit(static_cast<std::uint64_t>(i % hosts), false);
  }
  State state() const { return pause.state(now); }
};

TEST(FailurePauseTest, PausesAfterTenFailuresInARow) {
  PausedProject project;
  project.fail(9);
  EXPECT_EQ(project.state(), State::running);
  project.visit(1, true);
  project.fail(9);
  EXPECT_EQ(project.state(), State::running);
  project.fail(1);
  EXPECT_EQ(project.state(), State::paused);
  EXPECT_FALSE(project.pause.may_begin(project.now));
  EXPECT_EQ(project.pause.begin(project.now), std::nullopt);
  EXPECT_EQ(project.pause.next_change(), kStart + 5min);
}

TEST(FailurePauseTest, TheNumberOfFailuresCountsAsItIsSetLast) {
  PausedProject project;
  project.fail(8);
  project.pause.set_after(3);
  EXPECT_EQ(project.state(), State::running) << "what has happened pauses nothing";
  project.fail(1);
  EXPECT_EQ(project.state(), State::paused);
  project.pause.set_after(0);
  project.fail(100);
  EXPECT_EQ(project.state(), State::running);
  project.pause.set_after(10);
  project.fail(9);
  EXPECT_EQ(project.state(), State::running);
  project.fail(1);
  EXPECT_EQ(project.state(), State::paused);
}

TEST(FailurePauseTest, NoMoreAreUnderWayThanItTakesToPauseOnceOneHasFailed) {
  PausedProject project;
  std::vector<VisitPass> passes;
  for (int i = 0; i < 8; ++i) passes.push_back(project.pause.begin(project.now).value());
  project.pause.ended(passes[0], 1, false, project.now);
  passes.push_back(project.pause.begin(project.now).value());
  passes.push_back(project.pause.begin(project.now).value());
  EXPECT_FALSE(project.pause.may_begin(project.now)) << "one has failed and nine may";
  project.pause.give_back(passes[9]);
  EXPECT_TRUE(project.pause.may_begin(project.now));
  passes[9] = project.pause.begin(project.now).value();
  for (std::size_t i = 1; i < 9; ++i) {
    project.pause.ended(passes[i], i, false, project.now);
    EXPECT_FALSE(project.pause.may_begin(project.now));
  }
  project.pause.ended(passes[9], 1, true, project.now);
  EXPECT_TRUE(project.pause.may_begin(project.now)) << "a success begins the count anew";
  EXPECT_EQ(project.state(), State::running);
}

TEST(FailurePauseTest, FailuresOfOneHostOfSeveralHoldUpNoVisit) {
  PausedProject project;
  project.visit(2, true);
  project.fail(8, 1);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(project.pause.begin(project.now));
}

TEST(FailurePauseTest, OneBadHostOfSeveralPausesNothing) {
  PausedProject project;
  project.visit(2, true);
  project.fail(1000, 1);
  EXPECT_EQ(project.state(), State::running);
  project.visit(2, false);
  EXPECT_EQ(project.state(), State::paused);
}

TEST(FailurePauseTest, TheOnlyHostOfAProjectPausesIt) {
  PausedProject project;
  project.fail(10, 1);
  EXPECT_EQ(project.state(), State::paused);
}

TEST(FailurePauseTest, ProbingLetsExactlyThreeThrough) {  // F6
  PausedProject project;
  project.fail(10);
  project.now += 5min;
  EXPECT_EQ(project.state(), State::probing);
  std::vector<VisitPass> passes;
  for (int i = 0; i < 3; ++i) passes.push_back(project.pause.begin(project.now).value());
  EXPECT_FALSE(project.pause.may_begin(project.now));
  EXPECT_FALSE(project.pause.begin(project.now));
  project.pause.give_back(passes.back());
  passes.back() = project.pause.begin(project.now).value();
  EXPECT_FALSE(project.pause.begin(project.now));
  project.pause.ended(passes[0], 1, false, project.now);
  project.pause.ended(passes[1], 1, false, project.now);
  EXPECT_FALSE(project.pause.begin(project.now));
  project.pause.ended(passes[2], 2, true, project.now);
  EXPECT_EQ(project.state(), State::running);
  project.fail(9);
  EXPECT_EQ(project.state(), State::running);  // it counts from nothing
}

TEST(FailurePauseTest, PausesDoubleToAnHour) {
  PausedProject project;
  project.fail(10);
  std::vector<Duration> lengths;
  for (int i = 0; i < 6; ++i) {
    lengths.push_back(*project.pause.next_change() - project.now);
    project.now = *project.pause.next_change();
    project.fail(3);
    EXPECT_EQ(project.state(), State::paused);
  }
  EXPECT_THAT(lengths, testing::ElementsAre(5min, 10min, 20min, 40min, 1h, 1h));
  project.now += 1h;
  project.visit(1, true);
  project.fail(10);
  EXPECT_EQ(*project.pause.next_change() - project.now, 5min);
}

TEST(FailurePauseTest, AProbeThatDoesNotEndHasFailedWhenTheTimeIsUp) {  // F6
  PausedProject project;
  project.fail(10);
  project.now += 5min;
  const VisitPass pass = project.pause.begin(project.now).value();
  project.now += 5min - 1ns;
  EXPECT_EQ(project.state(), State::probing);
  project.now += 1ns;
  EXPECT_EQ(project.state(), State::paused);
  project.pause.ended(pass, 1, true, project.now);  // too late to count
  EXPECT_EQ(project.state(), State::paused);
  EXPECT_EQ(project.pause.next_change(), project.now + 10min);
}

TEST(FailurePauseTest, WithNothingToProbeItRunsAndThreeFailuresPauseItAgainForTwiceAsLong) {  // F6
  PausedProject project;
  project.fail(10);
  project.now += 5min;
  EXPECT_EQ(project.state(), State::probing);
  EXPECT_TRUE(project.pause.may_begin(project.now));
  FailurePause waited = project.pause;
  (void)waited.begin(project.now + 1min);  // the probing begins when somebody looks
  project.pause = waited;
  project.pause.give_back({});  // a stranger's pass counts for nothing
  project.now += 6min;
  EXPECT_EQ(project.state(), State::paused);

  PausedProject idle;
  idle.fail(10);
  idle.pause.ended({}, 1, false, idle.now += 5min);  // time passes, nothing waits
  EXPECT_EQ(idle.state(), State::probing);
  idle.now += 5min;
  EXPECT_EQ(idle.state(), State::running);
  idle.fail(3);
  EXPECT_EQ(idle.state(), State::paused);
  EXPECT_EQ(idle.pause.last_pause(), 10min);
}

TEST(FailurePauseTest, VisitsBegunBeforeThePauseSayNothingNew) {
  PausedProject project;
  std::vector<VisitPass> passes;
  for (int i = 0; i < 11; ++i) passes.push_back(project.pause.begin(project.now).value());
  for (std::size_t i = 0; i < 10; ++i) project.pause.ended(passes[i], i % 2, false, project.now);
  EXPECT_EQ(project.state(), State::paused);
  project.pause.ended(passes[10], 1, true, project.now);
  EXPECT_EQ(project.state(), State::paused);
}

TEST(FailurePauseTest, ResumeAndZeroFailures) {
  PausedProject project;
  project.fail(10);
  project.pause.resume();
  EXPECT_EQ(project.state(), State::running);
  project.fail(9);
  EXPECT_EQ(project.state(), State::running);
  PausedProject never{.pause = FailurePause(PauseRules{.after = 0})};
  never.fail(1000);
  EXPECT_EQ(never.state(), State::running);
}

TEST(FailurePauseTest, AClockThatWasSetBackProlongsNoPauseBeyondItsLength) {
  PausedProject project;
  project.fail(10);
  project.now -= 48h;
  EXPECT_EQ(project.state(), State::paused);
  (void)project.pause.begin(project.now);
  EXPECT_EQ(project.pause.next_change(), project.now + 5min);
}

TEST(FailurePauseTest, IsStoredAndReadBack) {
  PausedProject project;
  project.fail(10);
  project.now += 1min;
  const std::string stored = project.pause.stored();
  auto read = FailurePause::read(stored);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->stored(), stored);
  EXPECT_EQ(read->next_change(), kStart + 5min);
  project.now += 4min;
  (void)project.pause.begin(project.now);
  read = FailurePause::read(project.pause.stored());
  EXPECT_EQ(read->state(project.now), State::probing);  // anew: three may begin
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(read->begin(project.now));
  EXPECT_FALSE(read->begin(project.now));
}

TEST(FailurePauseTest, RefusesWhatItHasNotWritten) {
  for (const char* text :
       {"", "[]", "{\"state\":\"asleep\"}", "{\"failures\":-1}", "{\"lenght_ns\":1}", "{\"length_ns\":1e99}"}) {
    EXPECT_FALSE(FailurePause::read(text)) << text;
  }
  EXPECT_TRUE(FailurePause::read("{}"));
  EXPECT_THROW(FailurePause(PauseRules{.probes = 0}), std::invalid_argument);
}

// Whatever happens in whatever order: nothing begins in a pause, at most three in a probing, no probing outlasts its
// time, and nothing pauses a project but ten failures in a row or a probing that failed.
TEST(FailurePauseTest, KeepsItsPromisesWhateverHappens) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    FailurePause pause;
    WallTime now = kStart, state_since = kStart;
    std::vector<VisitPass> out;
    std::uint32_t begun = 0, failures = 0;
    State last = State::running;
    const double luck = random.unit();
    for (int step = 0; step < 2000; ++step) {
      if (random.chance(0.3)) now += std::chrono::seconds{random.between(0, 90)};
      const State before = pause.state(now);
      if (before != last) begun = 0, state_since = now;
      last = before;
      if (before == State::probing) {
        ASSERT_LE(now - state_since, 5min * 2);
      }
      if (out.empty() || random.chance(0.5)) {
        const auto pass = pause.begin(now);
        const bool may_begin = before == State::running || (before == State::probing && begun < 3);
        // While it is running, what is under way may have to end first.
        ASSERT_TRUE(may_begin ? pass || (before == State::running && !out.empty()) : !pass) << seed;
        if (pass) out.push_back(*pass), ++begun;
      } else {
        const std::size_t one = random.below(out.size());
        const bool succeeds = random.chance(luck);
        const auto pass = out[one];
        out.erase(out.begin() + static_cast<std::ptrdiff_t>(one));
        pause.ended(pass, random.below(3), succeeds, now);
        failures = succeeds ? 0 : failures + 1;
      }
      const State after = pause.state(now);
      if (before == State::running && after == State::paused) {
        ASSERT_GE(failures, 3u) << seed;
      }
      if (after != last) begun = 0, state_since = now;
      last = after;
      if (random.chance(0.01)) {
        const auto read = FailurePause::read(pause.stored());
        ASSERT_TRUE(read) << read.error().message;
        ASSERT_EQ(read->stored(), pause.stored());
      }
    }
  }
}

}  // namespace
}  // namespace argiope
