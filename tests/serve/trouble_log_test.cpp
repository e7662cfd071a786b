// Which troubles were told, and whose all-clear is due: the states of TroubleLog, without a clock or a store.
#include "serve/notify/trouble_log.hpp"

#include <gtest/gtest.h>

namespace argiope {
namespace {

const TroubleKey kFailed{Trouble::failed, "backup"};
constexpr WallTime kNoon{std::chrono::hours{12}}, kLater{std::chrono::hours{18}};

TroubleStart of_run(std::uint64_t run) { return {.at = kNoon, .run = run, .job = run + 100}; }

TEST(TroubleLogs, KnowTheJobsOfRunsThatHaveFailedAsLongAsTheTroubleIsOpen) {
  TroubleLog log;
  const TroubleKey other{Trouble::failed, "report"}, missed{Trouble::missed, "backup"};
  log.began(kFailed, of_run(1));
  log.began(other, of_run(1));
  log.began(missed, of_run(1));
  EXPECT_EQ(log.failed_as(101), (std::vector<TroubleKey>{kFailed, other}));
  EXPECT_TRUE(log.failed_as(1).empty());
  log.began(kFailed, of_run(2));
  EXPECT_EQ(log.failed_as(101), std::vector<TroubleKey>{other});
  EXPECT_EQ(log.failed_as(102), std::vector<TroubleKey>{kFailed});
  log.erase(other);
  EXPECT_TRUE(log.failed_as(101).empty());
  EXPECT_FALSE(log.told(kFailed, 7));
  EXPECT_TRUE(log.ended(kFailed, {}));
  log.closed(kFailed);
  EXPECT_TRUE(log.failed_as(102).empty());
  log.recall(kFailed, {.start = of_run(3), .is_told = true});
  log.recall(kFailed, {.start = of_run(4), .is_told = true});
  EXPECT_TRUE(log.failed_as(103).empty());
  EXPECT_EQ(log.failed_as(104), std::vector<TroubleKey>{kFailed}) << "that the process before has left";
}

TEST(TroubleLogs, GoByTheNumbersOfRunsWhereTheCalendarWasSetBack) {
  using std::chrono::hours;
  const TroubleStart failed = of_run(5), state{.at = kNoon, .is_event = false};
  const auto run = [](std::uint64_t number, hours at) {
    return ScheduleRun{
        .number = number, .fired_at = WallTime{at}, .ended_at = WallTime{at}, .outcome = RunOutcome::done};
  };
  const WallTime evening{hours{18}}, morning{hours{6}};
  EXPECT_TRUE(is_ended_by(run(6, hours{13}), Trouble::failed, failed, evening));
  EXPECT_FALSE(is_ended_by(run(6, hours{11}), Trouble::failed, failed, evening))
      << "which ended before that one failed";
  EXPECT_TRUE(is_ended_by(run(6, hours{5}), Trouble::failed, failed, morning))
      << "a later run, though the calendar says earlier";
  EXPECT_TRUE(is_ended_by(run(5, hours{5}), Trouble::failed, failed, morning)) << "that run, which was kicked";
  EXPECT_FALSE(is_ended_by(run(4, hours{5}), Trouble::failed, failed, morning));
  EXPECT_FALSE(is_ended_by(run(9, hours{5}), Trouble::failed, state, morning)) << "a state has no number";
  TroubleLog log;
  log.began(kFailed, state);
  log.began({Trouble::missed, "backup"}, failed);
  log.keep_up_to(morning);
  EXPECT_EQ(log.find(kFailed)->start.at, morning) << "what is known by its time alone has not begun later than now";
  EXPECT_EQ(log.find({Trouble::missed, "backup"})->start.at, kNoon);
  EXPECT_TRUE(is_ended_by(run(9, hours{7}), Trouble::failed, log.find(kFailed)->start, evening));
}

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
  EXPECT_TRUE(is_ended_by(run(6, minutes{1}, minutes{2}), Trouble::failed, fifth, kLater));
  EXPECT_TRUE(is_ended_by(run(6, minutes{-9}, minutes{2}), Trouble::failed, fifth, kLater)) << "it ran beside it";
  EXPECT_FALSE(is_ended_by(run(6, minutes{-9}, minutes{-2}), Trouble::failed, fifth, kLater)) << "that was before";
  EXPECT_FALSE(is_ended_by(run(4, minutes{-9}, minutes{2}), Trouble::failed, fifth, kLater)) << "an older one";
  EXPECT_TRUE(is_ended_by(run(1, minutes{1}, minutes{2}), Trouble::failed, fifth, kLater))
      << "of a schedule that was made anew";
  for (const RunOutcome outcome :
       {RunOutcome::running, RunOutcome::failed, RunOutcome::cancelled, RunOutcome::missed, RunOutcome::skipped}) {
    EXPECT_FALSE(is_ended_by(run(6, minutes{1}, minutes{2}, outcome), Trouble::failed, fifth, kLater))
        << to_string(outcome);
  }
  const TroubleStart state{.at = kNoon, .is_event = false};
  EXPECT_FALSE(is_ended_by(run(6, minutes{-1}, minutes{2}), Trouble::failed, state, kLater)) << "it began before";
  EXPECT_TRUE(is_ended_by(run(6, minutes{1}, minutes{2}), Trouble::failed, state, kLater));
}

TEST(RunsThatEndATrouble, HaveFoundNothingWhereItWasAFinding) {
  ScheduleRun run{
      .number = 6, .fired_at = kNoon, .ended_at = kNoon, .outcome = RunOutcome::done, .error = "2 broken links"};
  EXPECT_FALSE(is_ended_by(run, Trouble::findings, of_run(5), kLater));
  EXPECT_TRUE(is_ended_by(run, Trouble::failed, of_run(5), kLater));
  run.error.clear();
  EXPECT_TRUE(is_ended_by(run, Trouble::findings, of_run(5), kLater));
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
