// What a look at a schedule does, by itself: no store, no loop, no clock.
#include "jobs/internal/plan.hpp"

#include <gtest/gtest.h>

#include "argiope/time/time_zone.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

WallTime at(std::string_view text) { return parse_timestamp(text).value(); }

// Every ten minutes from midnight, unless said otherwise.
class PlanTest : public ::testing::Test {
 protected:
  Plan look(std::string_view now, std::uint32_t active = 0, std::vector<JobId> jobs = {},
            const ScheduleRun* last = nullptr, std::uint32_t newest_left_out = 0) {
    PlanInput input{.trigger = schedule_.trigger,
                    .policies = schedule_,
                    .place = place_,
                    .active = active,
                    .active_jobs = jobs,
                    .newest_left_out = newest_left_out,
                    .last_entry = last,
                    .now = at(now),
                    .step_back = step_back_};
    return make_plan(input);
  }
  // "run 00:10", "missed 00:10-00:20 x2" …, in the order of the history.
  static std::vector<std::string> told(const Plan& plan) {
    std::vector<std::string> lines;
    for (const ScheduleRun& entry : plan.entries) {
      const auto time = [](WallTime when) { return format_timestamp(when).substr(11, 5); };
      std::string line(to_string(entry.outcome));
      line += ' ' + time(entry.planned);
      if (entry.last_planned != entry.planned) line += '-' + time(entry.last_planned);
      if (entry.count > 1) line += " x" + std::to_string(entry.count);
      lines.push_back(std::move(line));
    }
    return lines;
  }
  using Lines = std::vector<std::string>;

  Schedule schedule_{.name = "s", .trigger = Trigger::every(10min, at("2026-01-01")).value()};
  SchedulePlace place_{.next = at("2026-01-01T00:10:00Z"), .last = at("2026-01-01T00:00:00Z")};
  Duration step_back_ = 3h;
};

TEST_F(PlanTest, NothingIsDoneBeforeItIsDue) {
  const Plan plan = look("2026-01-01T00:09:59.999Z");
  EXPECT_FALSE(plan.changes);
  EXPECT_EQ(plan.look_at, at("2026-01-01T00:10:00Z"));
}

TEST_F(PlanTest, WhatIsDueRunsAndTheScheduleMovesOn) {
  const Plan plan = look("2026-01-01T00:10:00Z");
  EXPECT_EQ(told(plan), Lines{"running 00:10"});
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].entry, 1u);
  EXPECT_EQ(plan.place.next, at("2026-01-01T00:20:00Z"));
  EXPECT_EQ(plan.place.last, at("2026-01-01T00:10:00Z"));
  EXPECT_EQ(plan.place.fired, 1u);
  EXPECT_EQ(plan.place.missed, 0u);
  EXPECT_EQ(plan.look_at, at("2026-01-01T00:20:00Z"));
}

TEST_F(PlanTest, HoweverLateARunIsItRunsUnlessAGraceIsGiven) {
  EXPECT_EQ(told(look("2026-01-01T00:19:59Z")), Lines{"running 00:10"});
  schedule_.misfire_grace = 1min;
  EXPECT_EQ(told(look("2026-01-01T00:11:00Z")), Lines{"running 00:10"});
  const Plan late = look("2026-01-01T00:11:00.001Z");
  EXPECT_EQ(told(late), Lines{"missed 00:10"});
  EXPECT_EQ(late.entries[0].error, "later than its misfire_grace of 1m");
  EXPECT_EQ(late.place.missed, 1u);
  EXPECT_EQ(late.place.fired, 0u);
  EXPECT_EQ(late.place.next, at("2026-01-01T00:20:00Z"));
}

TEST_F(PlanTest, GraceAppliesToEachOfThoseThatAreDue) {
  schedule_.misfire_grace = 25min;
  schedule_.coalesce = Coalesce::all;
  EXPECT_EQ(told(look("2026-01-01T01:00:30Z")),
            (Lines{"missed 00:10-00:30 x3", "running 00:40", "running 00:50", "running 01:00"}));
}

TEST_F(PlanTest, CoalesceLatestRunsTheLastOfThemOnce) {
  const Plan plan = look("2026-01-01T01:05:00Z");
  EXPECT_EQ(told(plan), (Lines{"missed 00:10-00:50 x5", "running 01:00"}));
  EXPECT_EQ(plan.entries[0].error, "several have come due together, and only the latest is run");
  EXPECT_EQ(plan.place.missed, 5u);
  EXPECT_EQ(plan.place.entries, 2u);
  EXPECT_EQ(plan.place.next, at("2026-01-01T01:10:00Z"));
}

TEST_F(PlanTest, CoalesceEarliestRunsTheFirstOfThemOnce) {
  schedule_.coalesce = Coalesce::earliest;
  const Plan plan = look("2026-01-01T01:05:00Z");
  EXPECT_EQ(told(plan), (Lines{"running 00:10", "missed 00:20-01:00 x5"}));
  EXPECT_EQ(plan.place.last, at("2026-01-01T01:00:00Z"));
}

TEST_F(PlanTest, CoalesceAllRunsEachOfThemInOrderSoManyAtATime) {
  schedule_.coalesce = Coalesce::all;
  const Plan one = look("2026-01-01T00:35:00Z");
  EXPECT_EQ(told(one), (Lines{"running 00:10", "running 00:20", "running 00:30"}));
  EXPECT_EQ(one.runs[0].after_run, 0u);
  EXPECT_EQ(one.runs[1].after_run, 1u);
  EXPECT_EQ(one.runs[2].after_run, 2u);
  schedule_.max_instances = 2;
  const Plan two = look("2026-01-01T00:35:00Z");
  EXPECT_EQ(two.runs[1].after_run, 0u);
  EXPECT_EQ(two.runs[2].after_run, 1u);
}

TEST_F(PlanTest, CatchingUpIsBoundedToTheLatest) {
  schedule_.coalesce = Coalesce::all;
  schedule_.most_catch_up = 3;
  const Plan plan = look("2026-01-01T01:05:00Z");
  EXPECT_EQ(told(plan), (Lines{"missed 00:10-00:30 x3", "running 00:40", "running 00:50", "running 01:00"}));
  EXPECT_EQ(plan.entries[0].error, "more than 3 have come due together");
}

TEST_F(PlanTest, AYearOfMissedSecondsCostsNoWalk) {
  schedule_.trigger = Trigger::every(1ms, at("2026-01-01")).value();
  schedule_.coalesce = Coalesce::all;
  const Plan plan = look("2027-01-01T00:00:00Z");
  EXPECT_EQ(plan.runs.size(), 100u);
  EXPECT_EQ(plan.place.missed + plan.place.fired, 31'535'400'001u);  // a year without ten minutes, in milliseconds
  // Of a cron expression so many are counted as need no walk.
  schedule_.trigger = Trigger::parse("* * * * * *").value();
  const Plan cron = look("2027-01-01T00:00:00Z");
  EXPECT_EQ(cron.entries[0].count, kMostCounted);
  EXPECT_EQ(cron.entries[0].last_planned, at("2026-12-31T23:58:20Z"));
}

TEST_F(PlanTest, OverlapSkipLeavesOutWhatComesWhileItRuns) {
  const Plan plan = look("2026-01-01T00:10:00Z", 1);
  EXPECT_EQ(told(plan), Lines{"skipped 00:10"});
  EXPECT_EQ(plan.entries[0].error, "1 of its runs had not ended");
  EXPECT_EQ(plan.place.missed, 1u);
  EXPECT_EQ(plan.place.next, at("2026-01-01T00:20:00Z"));
  schedule_.max_instances = 2;
  EXPECT_EQ(told(look("2026-01-01T00:10:00Z", 1)), Lines{"running 00:10"});
  EXPECT_EQ(told(look("2026-01-01T00:10:00Z", 2)), Lines{"skipped 00:10"});
}

TEST_F(PlanTest, SeveralThatAreAddedToASkippedEntryAreAllTold) {
  schedule_.coalesce = Coalesce::all;
  const Plan first = look("2026-01-01T00:10:00Z", 1);
  EXPECT_EQ(first.amended_count, 0u);
  place_ = first.place;
  const Plan second = look("2026-01-01T00:40:00Z", 1, {}, &first.entries[0]);
  ASSERT_TRUE(second.amended);
  EXPECT_EQ(second.amended->planned, at("2026-01-01T00:10:00Z"));
  EXPECT_EQ(second.amended_from, at("2026-01-01T00:20:00Z"));
  EXPECT_EQ(second.amended->last_planned, at("2026-01-01T00:40:00Z"));
  EXPECT_EQ(second.amended_count, 3u);
  EXPECT_EQ(second.amended->count, 4u);
}

TEST_F(PlanTest, WhatIsSkippedInARowIsOneEntry) {
  const Plan first = look("2026-01-01T00:10:00Z", 1);
  place_ = first.place;
  const Plan second = look("2026-01-01T00:20:00Z", 1, {}, &first.entries[0]);
  EXPECT_TRUE(second.entries.empty());
  ASSERT_TRUE(second.amended);
  EXPECT_EQ(second.amended->number, first.entries[0].number);
  EXPECT_EQ(second.amended->planned, at("2026-01-01T00:10:00Z"));
  EXPECT_EQ(second.amended->last_planned, at("2026-01-01T00:20:00Z"));
  EXPECT_EQ(second.amended->count, 2u);
  EXPECT_EQ(second.place.entries, 1u);
  EXPECT_EQ(second.place.missed, 2u);
  // Not with what is there for another reason, or with an entry that is not the last.
  ScheduleRun other = first.entries[0];
  other.outcome = RunOutcome::missed;
  EXPECT_EQ(told(look("2026-01-01T00:20:00Z", 1, {}, &other)), Lines{"skipped 00:20"});
}

TEST_F(PlanTest, OverlapQueueOneWaitsForTheRunAndSkipsWhenOneWaits) {
  schedule_.overlap = Overlap::queue_one;
  const Plan waits = look("2026-01-01T00:10:00Z", 1, {7});
  EXPECT_EQ(told(waits), Lines{"running 00:10"});
  EXPECT_EQ(waits.runs[0].waits_for, std::vector<JobId>{7});
  const Plan skips = look("2026-01-01T00:10:00Z", 2, {7, 8});
  EXPECT_EQ(told(skips), Lines{"skipped 00:10"});
  EXPECT_EQ(skips.entries[0].error, "a run waits already");
}

TEST_F(PlanTest, OverlapQueueAllStandsInLine) {
  schedule_.overlap = Overlap::queue_all;
  EXPECT_EQ(look("2026-01-01T00:10:00Z", 3, {7, 8, 9}).runs.at(0).waits_for, std::vector<JobId>{9});
  schedule_.max_instances = 2;
  EXPECT_EQ(look("2026-01-01T00:10:00Z", 3, {7, 8, 9}).runs.at(0).waits_for, std::vector<JobId>{8});
  EXPECT_TRUE(look("2026-01-01T00:10:00Z", 1, {7}).runs.at(0).waits_for.empty());
  // Several that have come due together line up behind those there are, and then behind one another.
  schedule_.coalesce = Coalesce::all;
  const Plan plan = look("2026-01-01T00:45:00Z", 3, {7, 8, 9});
  ASSERT_EQ(plan.runs.size(), 4u);
  EXPECT_EQ(plan.runs[0].waits_for, std::vector<JobId>{8});
  EXPECT_EQ(plan.runs[1].waits_for, std::vector<JobId>{9});
  EXPECT_EQ(plan.runs[2].after_run, 1u);
  EXPECT_EQ(plan.runs[3].after_run, 2u);
}

// However many runs are active, a plan asks for as few as it needs.
TEST_F(PlanTest, WhatIsAskedForIsEnoughForEveryPolicy) {
  for (const Overlap overlap : {Overlap::skip, Overlap::queue_one, Overlap::queue_all, Overlap::cancel_running}) {
    for (const Coalesce coalesce : {Coalesce::latest, Coalesce::all}) {
      for (const std::uint32_t most : {1u, 2u, 3u, 7u, 50u}) {
        for (const std::uint32_t active : {0u, 1u, 2u, 3u, 6u, 7u, 8u, 49u, 50u, 51u, 90u}) {
          schedule_.overlap = overlap;
          schedule_.coalesce = coalesce;
          schedule_.most_catch_up = 5;
          schedule_.max_instances = most;
          std::vector<JobId> all;
          for (JobId id = 1; id <= active; ++id) all.push_back(id);
          const Plan known = look("2026-01-01T01:15:00Z", active, all);
          const auto needed = what_is_needed(1, schedule_, active).value_or(ScheduleLook{.most = 0});
          const std::size_t there = active - std::min(needed.newest_left_out, active);
          const std::size_t taken = std::min(needed.most, there);
          const std::vector<JobId> some(all.begin() + static_cast<std::ptrdiff_t>(there - taken),
                                        all.begin() + static_cast<std::ptrdiff_t>(there));
          if (overlap != Overlap::cancel_running) EXPECT_LE(some.size(), 5u);
          const Plan plan = look("2026-01-01T01:15:00Z", active, some, nullptr, needed.newest_left_out);
          EXPECT_EQ(told(plan), told(known));
          EXPECT_EQ(plan.cancel, known.cancel);
          ASSERT_EQ(plan.runs.size(), known.runs.size());
          for (std::size_t i = 0; i < plan.runs.size(); ++i) {
            EXPECT_EQ(plan.runs[i].waits_for, known.runs[i].waits_for)
                << to_string(overlap) << ' ' << most << ' ' << active;
            EXPECT_EQ(plan.runs[i].after_run, known.runs[i].after_run);
            // At any moment no more than `most` are free to run.
            const bool waits = !plan.runs[i].waits_for.empty() || plan.runs[i].after_run != 0;
            EXPECT_EQ(waits, active + i >= most);
          }
        }
      }
    }
  }
}

TEST_F(PlanTest, OverlapCancelRunningCancelsTheOldestAndWaitsForTheirEnd) {
  schedule_.overlap = Overlap::cancel_running;
  const Plan one = look("2026-01-01T00:10:00Z", 1, {7});
  EXPECT_EQ(one.cancel, std::vector<JobId>{7});
  EXPECT_EQ(one.runs.at(0).waits_for, std::vector<JobId>{7});
  schedule_.max_instances = 2;
  const Plan two = look("2026-01-01T00:10:00Z", 3, {7, 8, 9});
  EXPECT_EQ(two.cancel, (std::vector<JobId>{7, 8}));
  EXPECT_EQ(two.runs.at(0).waits_for, (std::vector<JobId>{7, 8}));
  EXPECT_TRUE(look("2026-01-01T00:10:00Z", 1, {7}).cancel.empty());
  // Those that come together need room for all of them.
  schedule_.coalesce = Coalesce::all;
  const Plan many = look("2026-01-01T00:35:00Z", 2, {7, 8});
  EXPECT_EQ(many.cancel, (std::vector<JobId>{7, 8}));
  EXPECT_EQ(many.runs.at(1).waits_for, (std::vector<JobId>{7, 8}));
  EXPECT_EQ(many.runs.at(2).after_run, 1u);
}

TEST_F(PlanTest, MaxRunsEndsIt) {
  schedule_.max_runs = 3;
  schedule_.coalesce = Coalesce::all;
  place_.fired = 1;
  const Plan plan = look("2026-01-01T01:05:00Z");
  EXPECT_EQ(told(plan), (Lines{"running 00:10", "running 00:20"}));
  EXPECT_EQ(plan.place.next, WallTime::max());
  EXPECT_EQ(plan.look_at, WallTime::max());
  EXPECT_TRUE(plan.finished);
}

TEST_F(PlanTest, StartAndEndBoundIt) {
  schedule_.trigger = schedule_.trigger.ending(at("2026-01-01T00:20:00Z"));
  const Plan plan = look("2026-01-01T05:00:00Z");
  EXPECT_EQ(told(plan), (Lines{"missed 00:10", "running 00:20"}));
  EXPECT_TRUE(plan.finished);
  EXPECT_EQ(plan.place.next, WallTime::max());
  place_ = plan.place;
  EXPECT_FALSE(look("2026-01-01T06:00:00Z").changes);
  schedule_.trigger = Trigger::every(10min, at("2026-01-01")).value().starting(at("2026-01-02"));
  place_ = {.next = at("2026-01-02")};
  EXPECT_FALSE(look("2026-01-01T23:59:59Z").changes);
  EXPECT_EQ(told(look("2026-01-02T00:00:00Z")), Lines{"running 00:00"});
}

TEST_F(PlanTest, PausedNothingIsDueUntilItGoesOn) {
  place_.paused = true;
  const Plan plan = look("2026-01-01T01:05:00Z");
  EXPECT_FALSE(plan.changes);
  EXPECT_EQ(plan.look_at, WallTime::max());
  place_.paused = false;  // from where it was
  EXPECT_EQ(told(look("2026-01-01T01:05:00Z")), (Lines{"missed 00:10-00:50 x5", "running 01:00"}));
}

TEST_F(PlanTest, AClockSetBackRepeatsNothing) {
  const Plan ran = look("2026-01-01T00:10:00Z");
  place_ = ran.place;
  const Plan back = look("2026-01-01T00:05:00Z");
  EXPECT_FALSE(back.changes);
  EXPECT_EQ(back.look_at, at("2026-01-01T00:20:00Z"));
  EXPECT_FALSE(look("2026-01-01T00:10:00Z").changes);
  EXPECT_EQ(told(look("2026-01-01T00:20:00Z")), Lines{"running 00:20"});
}

TEST_F(PlanTest, OneThatWasAddedWhileTheClockWasAheadBeginsAnew) {
  place_ = {.next = at("2031-06-01T00:10:00Z")};
  const Plan plan = look("2026-01-01T00:05:00Z");
  EXPECT_TRUE(plan.changes && plan.began_anew);
  EXPECT_EQ(plan.place.next, at("2026-01-01T00:10:00Z"));
  EXPECT_EQ(plan.look_at, at("2026-01-01T00:10:00Z"));
  // One that is right is left as it is.
  place_ = {.next = at("2026-01-01T00:10:00Z")};
  EXPECT_FALSE(look("2026-01-01T00:05:00Z").changes);
  schedule_.trigger = Trigger::at(at("2031-06-01"));
  place_ = {.next = at("2031-06-01")};
  EXPECT_FALSE(look("2026-01-01T00:05:00Z").changes);
}

TEST_F(PlanTest, AClockSetBackALittleSilencesNoneThatFollowsElapsedTime) {
  schedule_.trigger = Trigger::every(1s, at("2026-01-01")).value();
  place_ = {.next = at("2026-01-01T01:00:01Z"), .last = at("2026-01-01T01:00:00Z")};
  EXPECT_FALSE(look("2026-01-01T00:59:51Z").began_anew) << "ten of its times at most";
  const Plan plan = look("2026-01-01T00:58:00.5Z");
  EXPECT_TRUE(plan.began_anew);
  EXPECT_EQ(plan.place.next, at("2026-01-01T00:58:01Z"));
  // A fixed time of day is not run twice.
  schedule_.trigger = Trigger::parse("0 1 * * *").value();
  place_ = {.next = at("2026-01-02T01:00:00Z"), .last = at("2026-01-01T01:00:00Z")};
  EXPECT_FALSE(look("2026-01-01T00:10:00Z").changes);
}

TEST_F(PlanTest, WhatASearchHasNotFoundYetIsSearchedOnAndNotRun) {
  schedule_.trigger =
      Trigger::all_of({Trigger::parse("0 8 * * *").value(), Trigger::parse("0 9 * * *").value()}).value();
  place_ = {.next = at("2026-01-01T00:10:00Z"), .last = at("2025-12-31")};
  const Plan plan = look("2026-01-01T00:10:00Z");
  EXPECT_TRUE(plan.entries.empty() && plan.runs.empty());
  EXPECT_TRUE(plan.changes);
  EXPECT_FALSE(plan.finished);
  EXPECT_GT(plan.place.next, at("2026-01-02")) << "nothing comes before that";
  EXPECT_EQ(plan.look_at, plan.place.next);
}

TEST_F(PlanTest, TimesWithinAMillisecondAreOne) {
  CronOptions systemd = CronOptions::of(CronDialect::systemd);
  schedule_.trigger = Trigger::parse("*:*:0/0.0001", systemd).value();
  place_ = {.next = at("2026-01-01T00:00:00.001Z"), .last = at("2026-01-01")};
  const Plan plan = look("2026-01-01T00:00:00.001Z");
  EXPECT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.place.next, at("2026-01-01T00:00:00.002Z"));
}

TEST_F(PlanTest, WhatAWrongClockLedIntoTheFutureBeginsAnew) {
  place_ = {.next = at("2099-01-01T00:10:00Z"), .last = at("2099-01-01T00:00:00Z"), .fired = 5, .entries = 5};
  const Plan plan = look("2026-01-01T00:05:00Z");
  EXPECT_TRUE(plan.began_anew);
  EXPECT_TRUE(plan.changes);
  EXPECT_TRUE(plan.entries.empty());
  EXPECT_EQ(plan.place.next, at("2026-01-01T00:10:00Z"));
  EXPECT_EQ(plan.place.fired, 5u);
  place_ = plan.place;
  EXPECT_FALSE(look("2026-01-01T00:06:00Z").changes);
  // One that is over, by the wrong clock, is not.
  schedule_.trigger = schedule_.trigger.ending(at("2030-01-01"));
  place_ = {.next = WallTime::max(), .last = at("2029-12-31T23:50:00Z")};
  EXPECT_EQ(look("2026-01-01T00:05:00Z").place.next, at("2026-01-01T00:10:00Z"));
}

TEST_F(PlanTest, JitterPutsTheRunOffAndNotThePlan) {
  schedule_.trigger = schedule_.trigger.with_jitter(5min, 42);
  const WallTime due = schedule_.trigger.due_at(at("2026-01-01T00:10:00Z"));
  ASSERT_GT(due, at("2026-01-01T00:10:00Z"));
  PlanInput input{
      .trigger = schedule_.trigger, .policies = schedule_, .place = place_, .active_jobs = {}, .now = due - 1ns};
  EXPECT_FALSE(make_plan(input).changes);
  EXPECT_EQ(make_plan(input).look_at, due);
  input.now = due;
  const Plan plan = make_plan(input);
  EXPECT_EQ(told(plan), Lines{"running 00:10"});
  EXPECT_EQ(plan.place.next, at("2026-01-01T00:20:00Z"));
}

TEST_F(PlanTest, GraceCountsFromWhenARunWasDueWithItsJitter) {
  schedule_.trigger = schedule_.trigger.with_jitter(5min, 42);
  schedule_.misfire_grace = 1s;
  const WallTime due = schedule_.trigger.due_at(at("2026-01-01T00:10:00Z"));
  PlanInput input{
      .trigger = schedule_.trigger, .policies = schedule_, .place = place_, .active_jobs = {}, .now = due + 1s};
  EXPECT_EQ(told(make_plan(input)), Lines{"running 00:10"});
  input.now += 1ms;
  EXPECT_EQ(told(make_plan(input)), Lines{"missed 00:10"});
}

TEST_F(PlanTest, APlannedTimeBetweenTwoMillisecondsIsFoundAgain) {
  schedule_.trigger = Trigger::every(10min, at("2026-01-01") + 300us).value();
  place_.next = at("2026-01-01T00:10:00Z");  // as a store gives it back
  EXPECT_FALSE(look("2026-01-01T00:10:00Z").changes);
  const Plan plan = look("2026-01-01T00:10:00.001Z");
  EXPECT_EQ(told(plan), Lines{"running 00:10"});
  EXPECT_EQ(plan.place.next, at("2026-01-01T00:20:00Z") + 300us);
}

TEST_F(PlanTest, RunNowRunsAtOnceAndMovesNothing) {
  place_.paused = true;
  const std::vector<JobId> jobs{7};
  const PlanInput input{.trigger = schedule_.trigger,
                        .policies = schedule_,
                        .place = place_,
                        .active = 1,
                        .active_jobs = jobs,
                        .now = at("2026-01-01T00:03:00Z")};
  const Plan plan = make_plan_now(input);
  EXPECT_EQ(told(plan), Lines{"running 00:03"});
  EXPECT_TRUE(plan.runs.at(0).waits_for.empty());
  EXPECT_EQ(plan.place.next, place_.next);
  EXPECT_EQ(plan.place.last, place_.last);
  EXPECT_TRUE(plan.place.paused);
  EXPECT_EQ(plan.place.fired, 1u);
}

TEST(FillIn, PutsWhatIsKnownOfARunIntoItsPayload) {
  Schedule schedule{.name = "the \"nightly\" one",
                    .trigger = Trigger::parse("CRON_TZ=Europe/Berlin 0 3 * * *").value()};
  schedule.job.payload = R"({"who":"{name}","day":"{planned_at}","n":{run},"late":"{fired_at}","x":"{other}"})";
  const WallTime planned = at("2026-07-01T01:00:00Z");
  EXPECT_EQ(fill_in(schedule.job, schedule.name, schedule.trigger.zone(), 12, planned, planned + 1s),
            schedule.job.payload);
  schedule.job.fill_in = true;
  const std::string filled = fill_in(schedule.job, schedule.name, schedule.trigger.zone(), 12, planned, planned + 1s);
  EXPECT_TRUE(filled.starts_with(R"({"who":"the \"nightly\" one","day":"2026-07-01T)")) << filled;
  EXPECT_TRUE(filled.ends_with(R"(,"x":"{other}"})")) << filled;
  EXPECT_NE(filled.find(R"("n":12,)"), std::string::npos);
}

}  // namespace
}  // namespace argiope
