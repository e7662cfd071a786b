// Which troubles were told, and whose all-clear is due: the states of TroubleLog, without a clock or a store.
#include "serve/notify/trouble_log.hpp"

#include <gtest/gtest.h>

namespace argiope {
namespace {

const TroubleKey kFailed{Trouble::failed, "backup"};
constexpr WallTime kNoon{std::chrono::hours{12}};

TroubleStart of_run(std::uint64_t run) { return {.at = kNoon, .run = run, .job = run + 100}; }

TEST(TroubleLogs, OweAnAllClearOnceTheTroubleWasTold) {
  TroubleLog log;
  log.began(kFailed, of_run(1));
  EXPECT_EQ(log.lasting(), 0u);
  EXPECT_FALSE(log.told(kFailed, 7));
  EXPECT_EQ(log.lasting(), 1u);
  EXPECT_TRUE(log.ended(kFailed, {.text = {}, .run = 2}));
  EXPECT_FALSE(log.ended(kFailed, {.text = {}, .run = 3})) << "once";
  EXPECT_EQ(log.find(kFailed)->over->run, 2u);
  EXPECT_EQ(log.find(kFailed)->message, 7u);
  log.closed(kFailed);
  EXPECT_TRUE(log.empty());
  EXPECT_FALSE(log.ended(kFailed, {}));
}

TEST(TroubleLogs, TellOfAnEndAfterTheTroubleItself) {
  TroubleLog log;
  log.began(kFailed, of_run(1));
  EXPECT_FALSE(log.ended(kFailed, {})) << "nobody knows of it yet";
  log.closed(kFailed);
  EXPECT_TRUE(log.told(kFailed, 7)) << "now it is due";
  log.closed(kFailed);
  EXPECT_TRUE(log.empty());
}

TEST(TroubleLogs, TellOfNoEndWhereItHasBegunAgain) {
  TroubleLog log;
  log.began(kFailed, of_run(1));
  EXPECT_FALSE(log.told(kFailed, 7));
  EXPECT_TRUE(log.ended(kFailed, {}));
  log.began(kFailed, of_run(3));
  log.closed(kFailed);
  ASSERT_NE(log.find(kFailed), nullptr) << "what is told to be over is the one before";
  EXPECT_FALSE(log.told(kFailed, 8));
  EXPECT_EQ(log.find(kFailed)->start.run, 3u);
  EXPECT_EQ(log.find(kFailed)->message, 8u);
}

TEST(TroubleLogs, KeepAStateThatIsThereAgainBeforeItsEndWasTold) {
  TroubleLog log;
  log.began(kFailed, {.at = kNoon, .is_event = false});
  EXPECT_FALSE(log.told(kFailed, 7));
  EXPECT_TRUE(log.ended(kFailed, {}));
  log.still(kFailed, kNoon + std::chrono::hours{1});
  EXPECT_FALSE(log.find(kFailed)->over);
  EXPECT_TRUE(log.ended(kFailed, {})) << "it is told later";
}

TEST(TroubleLogs, TellAnEventThatAStateFollows) {
  TroubleLog log;
  log.began(kFailed, of_run(1));
  log.began(kFailed, {.at = kNoon, .is_event = false});
  EXPECT_TRUE(log.find(kFailed)->start.is_event);
  EXPECT_FALSE(log.told(kFailed, 7));
  log.began(kFailed, {.at = kNoon, .is_event = false});
  EXPECT_FALSE(log.find(kFailed)->start.is_event);
}

TEST(TroubleLogs, KnowTheJobOfARunThatHasFailed) {
  TroubleLog log;
  log.began(kFailed, of_run(1));
  log.began({Trouble::findings, "links"}, of_run(2));
  EXPECT_EQ(log.failed_as(101), std::vector{kFailed});
  EXPECT_TRUE(log.failed_as(102).empty());
}

TEST(RunsThatEndATrouble, HaveGoneWellSinceItBegan) {
  using std::chrono::minutes;
  const auto run = [](std::uint64_t number, minutes fired, minutes ended, RunOutcome outcome = RunOutcome::done) {
    return ScheduleRun{
        .number = number, .fired_at = kNoon + fired, .ended_at = kNoon + ended, .outcome = outcome, .error = {}};
  };
  const TroubleStart fifth = of_run(5);
  EXPECT_TRUE(is_ended_by(run(6, minutes{1}, minutes{2}), Trouble::failed, fifth));
  EXPECT_TRUE(is_ended_by(run(6, minutes{-9}, minutes{2}), Trouble::failed, fifth)) << "it ran beside it";
  EXPECT_FALSE(is_ended_by(run(6, minutes{-9}, minutes{-2}), Trouble::failed, fifth)) << "that was before";
  EXPECT_FALSE(is_ended_by(run(4, minutes{-9}, minutes{2}), Trouble::failed, fifth)) << "an older one";
  EXPECT_TRUE(is_ended_by(run(1, minutes{1}, minutes{2}), Trouble::failed, fifth))
      << "of a schedule that was made anew";
  for (const RunOutcome outcome :
       {RunOutcome::running, RunOutcome::failed, RunOutcome::cancelled, RunOutcome::missed, RunOutcome::skipped}) {
    EXPECT_FALSE(is_ended_by(run(6, minutes{1}, minutes{2}, outcome), Trouble::failed, fifth)) << to_string(outcome);
  }
  const TroubleStart state{.at = kNoon, .is_event = false};
  EXPECT_FALSE(is_ended_by(run(6, minutes{-1}, minutes{2}), Trouble::failed, state)) << "it began before";
  EXPECT_TRUE(is_ended_by(run(6, minutes{1}, minutes{2}), Trouble::failed, state));
}

TEST(RunsThatEndATrouble, HaveFoundNothingWhereItWasAFinding) {
  ScheduleRun run{
      .number = 6, .fired_at = kNoon, .ended_at = kNoon, .outcome = RunOutcome::done, .error = "2 broken links"};
  EXPECT_FALSE(is_ended_by(run, Trouble::findings, of_run(5)));
  EXPECT_TRUE(is_ended_by(run, Trouble::failed, of_run(5)));
  run.error.clear();
  EXPECT_TRUE(is_ended_by(run, Trouble::findings, of_run(5)));
}

TEST(Troubles, AreEventsOrAreOverAtSomeTime) {
  for (const Trouble trouble : {Trouble::buried, Trouble::expired}) EXPECT_EQ(over_by(trouble), OverBy::nothing);
  for (const Trouble trouble : {Trouble::depth, Trouble::age, Trouble::daemon, Trouble::paused})
    EXPECT_EQ(over_by(trouble), OverBy::look);
  for (const Trouble trouble : {Trouble::missed, Trouble::failed, Trouble::findings})
    EXPECT_EQ(over_by(trouble), OverBy::run);
  EXPECT_EQ(over_by(Trouble::alarm), OverBy::round);
}

}  // namespace
}  // namespace argiope
