// The scheduler on a engine, over simulated time: what fires when, what its edits do, what it tells.
#include <gmock/gmock.h>

#include <algorithm>

#include "argiope/async/group.hpp"
#include "engine/scheduler_fixture.hpp"

namespace argiope {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// --- firing ----------------------------------------------------------------------------------------------------------

TEST_F(SchedulerTest, FiresWhatIsDueWhenItIsDue) {
  with_scheduler([&]() -> Coro<void> {
    co_await work(1s);
    co_await start_with(every(10min), 35min);
    EXPECT_THAT(ran_, ElementsAre("00:00:00", "00:10:00", "00:20:00", "00:30:00"));
    EXPECT_THAT(co_await history(), ElementsAre("done 00:00", "done 00:10", "done 00:20", "done 00:30"));
    const auto status = value_or_throw(co_await engine_->book().schedules().get("s"));
    EXPECT_EQ(status.place.fired, 4u);
    EXPECT_EQ(status.place.next, at("2026-01-01T00:40:00Z"));
    EXPECT_EQ(status.active, 0u);
    EXPECT_EQ(scheduler_->next_due(), at("2026-01-01T00:40:00Z"));
  });
}

TEST_F(SchedulerTest, HistorySaysWhenARunWasPlannedFiredAndEnded) {
  with_scheduler([&]() -> Coro<void> {
    co_await work(90s);
    co_await add(every(10min));
    co_await sleep(30s);
    scheduler_->start();
    co_await sleep(5min);
    const auto runs = value_or_throw(co_await engine_->book().schedules().history("s"));
    EXPECT_EQ(runs.size(), 1u);
    EXPECT_EQ(runs.at(0).planned, at("2026-01-01T00:00:00Z"));
    EXPECT_EQ(runs.at(0).fired_at, at("2026-01-01T00:00:30Z"));
    EXPECT_EQ(runs.at(0).ended_at, at("2026-01-01T00:02:00Z"));
    EXPECT_EQ(runs.at(0).outcome, RunOutcome::done);
  });
}

TEST_F(SchedulerTest, AFailureIsInTheHistoryWithItsError) {
  with_scheduler([&]() -> Coro<void> {
    value_or_throw(co_await scheduler_->add_executor("default"));
    value_or_throw(scheduler_->add_function("default", "", [](JobContext&) -> Coro<void> {
      throw BuryJob("disk full");
      co_return;
    }));
    co_await start_with(every(10min), 1min);
    const auto runs = value_or_throw(co_await engine_->book().schedules().history("s"));
    EXPECT_EQ(runs.at(0).outcome, RunOutcome::failed);
    EXPECT_EQ(runs.at(0).error, "disk full");
    EXPECT_THAT(events_, Contains("job_error s 00:00: disk full"));
  });
}

TEST_F(SchedulerTest, AJobCarriesWhatItsTemplateSays) {
  with_scheduler([&]() -> Coro<void> {
    Schedule schedule = every(10min);
    schedule.job = {.queue = "theirs",
                    .function = "f",
                    .key = "k",
                    .payload = R"({"day":"{planned_at}","from":"{name}"})",
                    .fill_in = true,
                    .priority = 7,
                    .max_attempts = 2};
    co_await start_with(std::move(schedule), 1min);
    const auto leased = value_or_throw(co_await engine_->lease_now({.queues = {"theirs"}, .worker = "w"}));
    const JobRecord& job = leased.at(0).job;
    EXPECT_EQ(job.function, "f");
    EXPECT_EQ(job.key, "k");
    EXPECT_EQ(job.priority, 7);
    EXPECT_EQ(job.max_attempts, 2u);
    EXPECT_EQ(job.payload, R"({"day":"2026-01-01T00:00:00Z","from":"s"})");
    const auto run = value_or_throw(co_await scheduler_->run_of(job.id)).value();
    EXPECT_EQ(run.name, "s");
    EXPECT_EQ(run.run, 1u);
    EXPECT_EQ(run.planned, at("2026-01-01T00:00:00Z"));
    EXPECT_FALSE(value_or_throw(co_await scheduler_->run_of(12345)));
    value_or_throw(co_await engine_->settle(leased.at(0).token, {}));
  });
}

TEST_F(SchedulerTest, ThousandsThatAreDueTogetherAllFire) {
  with_scheduler(
      [&]() -> Coro<void> {
        std::vector<Schedule> many;
        for (int i = 0; i < 5000; ++i) many.push_back(every(1h, "s" + std::to_string(i)));
        value_or_throw(co_await engine_->book().schedules().add_all(std::move(many)));
        scheduler_->start();
        co_await sleep(1min);
        EXPECT_EQ(std::ranges::count_if(events_, [](auto& line) { return line.starts_with("job_submitted"); }), 5000);
        EXPECT_EQ(scheduler_->size(), 5000u);
      },
      {.batch = 300});
}

// --- what was missed -------------------------------------------------------------------------------------------------

TEST_F(SchedulerTest, AfterAStopWhatWasMissedIsCaughtUpByItsPolicy) {
  life([&]() -> Coro<void> {
    Schedule latest = every(10min, "latest");
    latest.max_instances = 2;
    co_await add(std::move(latest));
    Schedule all = every(10min, "all");
    all.coalesce = Coalesce::all;
    all.max_instances = 10;
    co_await add(std::move(all));
    Schedule strict = every(10min, "strict");
    strict.misfire_grace = 1s;
    co_await add(std::move(strict));
    scheduler_->start();
    co_await sleep(1min);
  });
  backend_.manual_clock().advance(34min);
  life([&]() -> Coro<void> {
    scheduler_->start();
    co_await sleep(1s);
    EXPECT_THAT(co_await history("latest"), ElementsAre("running 00:00", "missed 00:10-00:20 x2", "running 00:30"));
    EXPECT_THAT(co_await history("all"),
                ElementsAre("running 00:00", "running 00:10", "running 00:20", "running 00:30"));
    EXPECT_THAT(co_await history("strict"), ElementsAre("running 00:00", "missed 00:10-00:30 x3"));
  });
}

TEST_F(SchedulerTest, AMachineThatSleepsIsNoticedAndWhatItSleptThroughIsCaughtUp) {
  with_scheduler([&]() -> Coro<void> {
    co_await work();
    co_await start_with(every(10min), 5min);
    backend_.manual_clock().set_wall(at("2026-01-01T08:05:00Z"));
    co_await sleep(2s);
    EXPECT_THAT(events_, Contains("calendar_jumped"));
    EXPECT_THAT(co_await history(), ElementsAre("done 00:00", "missed 00:10-07:50 x47", "done 08:00"));
  });
}

TEST_F(SchedulerTest, AClockSetBackRepeatsNothing) {
  with_scheduler([&]() -> Coro<void> {
    co_await work();
    co_await start_with(every(10min), 25min);
    backend_.manual_clock().set_wall(at("2026-01-01T00:05:00Z"));
    co_await sleep(30min);
    EXPECT_THAT(co_await history(), ElementsAre("done 00:00", "done 00:10", "done 00:20", "done 00:30"));
  });
}

TEST_F(SchedulerTest, OneThatWasAddedWhileTheClockWasWrongRunsWhenTheClockIsRight) {
  with_scheduler([&]() -> Coro<void> {
    co_await work();
    scheduler_->start();
    backend_.manual_clock().set_wall(at("2031-01-01T00:00:30Z"));
    co_await sleep(2s);
    co_await add(every(1h));
    backend_.manual_clock().set_wall(at("2026-01-01T00:10:00Z"));
    co_await sleep(1h);
    EXPECT_THAT(ran_, ElementsAre("01:00:00"));
  });
}

TEST_F(SchedulerTest, OneThatWasAddedWhileTheClockWasWrongRunsAfterARestartToo) {
  life([&]() -> Coro<void> {
    EventLoop::current();
    Schedule late = every(1h);
    late.trigger = Trigger::every(1h, at("2026-01-01")).value();
    co_await add(std::move(late));
  });
  // As if it had been added in 2031.
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    auto stored = value_or_throw(co_await store_.find_schedule("s")).value();
    PutSchedule put{.name = "s",
                    .trigger = stored.trigger,
                    .definition = stored.definition,
                    .place = {.next = at("2031-01-01")},
                    .made_from = stored.version};
    (void)value_or_throw(co_await store_.put_schedules({put}));
  }));
  with_scheduler([&]() -> Coro<void> {
    co_await work();
    scheduler_->start();
    co_await sleep(61min);
    EXPECT_EQ(ran_.empty(), false);
  });
}

TEST_F(SchedulerTest, ARunThatBeginsLaterThanItsGraceIsMissed) {
  with_scheduler([&]() -> Coro<void> {
    value_or_throw(co_await scheduler_->add_executor("default", {.concurrency = 1}));
    co_await work(25min);
    Schedule patient = every(1h, "patient"), hasty = every(1h, "hasty");
    hasty.misfire_grace = 10min;
    co_await add(std::move(patient));
    co_await start_with(std::move(hasty), 3h);
    EXPECT_THAT(co_await history("patient"), ElementsAre("done 00:00", "done 01:00", "done 02:00"));
    EXPECT_THAT(co_await history("hasty"), ElementsAre("cancelled 00:00", "cancelled 01:00", "cancelled 02:00"));
    EXPECT_EQ(value_or_throw(co_await engine_->book().schedules().history("hasty")).at(1).error,
              "it began later than its misfire_grace");
    EXPECT_THAT(events_, Contains("job_missed hasty 00:00: it began later than its misfire_grace"));
    EXPECT_EQ(ran_.size(), 3u);
  });
}

TEST_F(SchedulerTest, WhatCannotBeDecidedOrEndsBeforeItStartsIsRefused) {
  with_scheduler([&]() -> Coro<void> {
    Schedule never = every(1h);
    never.trigger = Trigger::all_of({Trigger::parse("0 8 * * *").value(), Trigger::parse("0 9 * * *").value()}).value();
    const auto undecided = co_await engine_->book().schedules().add(never);
    EXPECT_FALSE(undecided);
    EXPECT_THAT(undecided ? "" : undecided.error().message, HasSubstr("trigger: no time was found until 20"));
    Schedule over = every(1h);
    over.trigger = over.trigger.starting(at("2026-03-01")).ending(at("2026-02-01"));
    const auto refused = co_await engine_->book().schedules().add(over);
    EXPECT_FALSE(refused);
    EXPECT_EQ(refused ? "" : refused.error().message,
              R"(trigger.end "2026-02-01T00:00:00Z": not before the start, 2026-03-01T00:00:00Z)");
    co_await add(every(1h));
    EXPECT_FALSE(co_await engine_->book().schedules().reschedule("s", never.trigger));
  });
}

TEST_F(SchedulerTest, WhatAWrongClockLedIntoTheFutureComesBack) {
  with_scheduler([&]() -> Coro<void> {
    co_await work();
    co_await start_with(every(1h), 1min);
    backend_.manual_clock().set_wall(at("2099-01-01T00:30:00Z"));
    co_await sleep(1min);
    backend_.manual_clock().set_wall(at("2026-01-01T00:10:00Z"));
    co_await sleep(1h);
    EXPECT_THAT(ran_, ElementsAre("00:00:00", testing::_, "01:00:00"));
    EXPECT_EQ(value_or_throw(co_await engine_->book().schedules().get("s")).place.next, at("2026-01-01T02:00:00Z"));
  });
}

// --- overlap ---------------------------------------------------------------------------------------------------------

TEST_F(SchedulerTest, OverlapSkipLetsARunEnd) {
  with_scheduler([&]() -> Coro<void> {
    co_await work(25min);
    co_await start_with(every(10min), 35min);
    EXPECT_THAT(co_await history(), ElementsAre("done 00:00", "skipped 00:10-00:20 x2", "running 00:30"));
    EXPECT_EQ(most_running_, 1);
    EXPECT_THAT(events_, Contains("job_max_instances s 00:10: 1 of its runs had not ended"));
    EXPECT_THAT(events_, Contains("job_max_instances s 00:20: 1 of its runs had not ended"));
  });
}

TEST_F(SchedulerTest, OverlapQueueOneKeepsOneWaiting) {
  with_scheduler([&]() -> Coro<void> {
    co_await work(35min);
    Schedule schedule = every(10min);
    schedule.overlap = Overlap::queue_one;
    co_await start_with(std::move(schedule), 45min);
    EXPECT_THAT(ran_, ElementsAre("00:00:00", "00:35:00"));
    EXPECT_THAT(co_await history(),
                ElementsAre("done 00:00", "running 00:10", "skipped 00:20-00:30 x2", "running 00:40"));
    EXPECT_EQ(most_running_, 1);
  });
}

TEST_F(SchedulerTest, OverlapQueueAllLosesNone) {
  with_scheduler([&]() -> Coro<void> {
    co_await work(25min);
    Schedule schedule = every(10min);
    schedule.overlap = Overlap::queue_all;
    schedule.trigger = schedule.trigger.ending(at("2026-01-01T00:40:00Z"));
    schedule.max_instances = 2;
    co_await start_with(std::move(schedule), 3h);
    EXPECT_THAT(ran_, ElementsAre("00:00:00", "00:10:00", "00:25:00", "00:35:00", "00:50:00"));
    EXPECT_EQ(most_running_, 2);
  });
}

TEST_F(SchedulerTest, OverlapCancelRunningMakesRoomForTheNewest) {
  with_scheduler([&]() -> Coro<void> {
    co_await work(25min);
    Schedule schedule = every(10min);
    schedule.overlap = Overlap::cancel_running;
    co_await start_with(std::move(schedule), 25min);
    EXPECT_THAT(ran_, ElementsAre("00:00:00", "00:10:00", "00:20:00"));
    EXPECT_THAT(co_await history(), ElementsAre("cancelled 00:00", "cancelled 00:10", "running 00:20"));
    EXPECT_EQ(most_running_, 1);
    EXPECT_THAT(events_, Contains(HasSubstr("job_cancelled s 00:00")));
  });
}

TEST_F(SchedulerTest, CatchingUpRunsFollowOneAnother) {
  with_scheduler([&]() -> Coro<void> {
    co_await work(1min);
    Schedule schedule = every(10min);
    schedule.coalesce = Coalesce::all;
    co_await add(std::move(schedule));
    co_await sleep(35min);
    scheduler_->start();
    co_await sleep(4min + 30s);
    EXPECT_THAT(ran_, ElementsAre("00:35:00", "00:36:00", "00:37:00", "00:38:00"));
    EXPECT_EQ(most_running_, 1);
  });
}

// --- ends ------------------------------------------------------------------------------------------------------------

TEST_F(SchedulerTest, EndsAfterSoManyRunsAndStaysToBeSeen) {
  with_scheduler([&]() -> Coro<void> {
    co_await work();
    Schedule schedule = every(10min);
    schedule.max_runs = 2;
    co_await start_with(std::move(schedule), 1h);
    EXPECT_THAT(ran_, ElementsAre("00:00:00", "00:10:00"));
    EXPECT_THAT(events_, Contains("schedule_finished s"));
    EXPECT_EQ(co_await reason(), ScheduleReason::max_runs);
    // More runs, and it goes on from now.
    value_or_throw(co_await engine_->book().schedules().modify("s", [](Schedule& change) { change.max_runs = 3; }));
    co_await sleep(1h);
    EXPECT_THAT(ran_, ElementsAre("00:00:00", "00:10:00", "01:00:00"));
  });
}

TEST_F(SchedulerTest, ADateRunsOnceThoughItIsPast) {
  with_scheduler([&]() -> Coro<void> {
    co_await work();
    co_await start_with({.name = "s", .trigger = Trigger::at(at("2025-12-24T18:00:00Z"))}, 1h);
    EXPECT_THAT(ran_, ElementsAre("00:00:00"));
    EXPECT_EQ(co_await reason(), ScheduleReason::finished);
  });
}

// --- edits -----------------------------------------------------------------------------------------------------------

TEST_F(SchedulerTest, ASecondOfTheSameNameIsRefusedKeptOrReplaces) {
  with_scheduler([&]() -> Coro<void> {
    co_await add(every(10min));
    EXPECT_EQ((co_await engine_->book().schedules().add(every(20min))).error().code, Errc::refused);
    EXPECT_EQ(value_or_throw(co_await engine_->book().schedules().add(every(20min), ConflictPolicy::keep)).outcome,
              AddOutcome::kept);
    EXPECT_EQ(value_or_throw(co_await engine_->book().schedules().get("s")).schedule->trigger, every(10min).trigger);
    EXPECT_EQ(value_or_throw(co_await engine_->book().schedules().add(every(20min), ConflictPolicy::replace)).outcome,
              AddOutcome::replaced);
    EXPECT_EQ(value_or_throw(co_await engine_->book().schedules().get("s")).schedule->trigger, every(20min).trigger);
    EXPECT_EQ(value_or_throw(co_await engine_->book().schedules().list()).size(), 1u);
  });
}

TEST_F(SchedulerTest, AReplaceWithAnotherTriggerGoesOnFromNow) {
  with_scheduler([&]() -> Coro<void> {
    co_await work();
    co_await start_with(every(10min), 15min);
    co_await add(every(7min), ConflictPolicy::replace);
    co_await sleep(10min);
    EXPECT_THAT(ran_, ElementsAre("00:00:00", "00:10:00", "00:21:00"));
  });
}

TEST_F(SchedulerTest, AModifiedScheduleKeepsItsPlaceItsHistoryAndItsName) {
  with_scheduler([&]() -> Coro<void> {
    co_await work();
    co_await start_with(every(10min), 15min);
    value_or_throw(
        co_await engine_->book().schedules().modify("s", [](Schedule& schedule) { schedule.job.payload = "new"; }));
    co_await sleep(10min);
    EXPECT_THAT(payloads_, ElementsAre("", "", "new"));
    EXPECT_EQ((co_await history()).size(), 3u);
    EXPECT_EQ((co_await engine_->book().schedules().modify("s", [](Schedule& schedule) { schedule.name = "t"; }))
                  .error()
                  .message,
              "name \"t\": a schedule keeps its name");
    const auto wrong =
        co_await engine_->book().schedules().modify("s", [](Schedule& schedule) { schedule.max_instances = 0; });
    EXPECT_EQ(wrong.error().message, "max_instances \"0\": a whole number, 1 to 1000000");
    EXPECT_EQ((co_await engine_->book().schedules().modify("t", [](Schedule&) {})).error().code, Errc::not_found);
    EXPECT_THAT(events_, Contains("schedule_modified s"));
  });
}

TEST_F(SchedulerTest, EditsAtTheSameMomentAllTakeEffect) {
  with_scheduler([&]() -> Coro<void> {
    Schedule schedule = every(10min);
    schedule.job.priority = 0;
    co_await add(std::move(schedule));
    std::vector<Task<Result<ScheduleStatus>>> edits;
    for (int i = 0; i < 20; ++i) {
      edits.push_back(
          loop_.create_task(engine_->book().schedules().modify("s", [](Schedule& change) { ++change.job.priority; })));
    }
    for (auto& edit : edits) EXPECT_TRUE(co_await edit);
    EXPECT_EQ(value_or_throw(co_await engine_->book().schedules().get("s")).schedule->job.priority, 20);
  });
}

TEST_F(SchedulerTest, ReschedulingTakesEffectAtOnce) {
  with_scheduler([&]() -> Coro<void> {
    co_await work();
    co_await start_with(every(24h), 1min);
    value_or_throw(co_await engine_->book().schedules().reschedule("s", every(1min).trigger));
    co_await sleep(2min + 1s);
    EXPECT_THAT(ran_, ElementsAre("00:00:00", "00:01:00", "00:02:00", "00:03:00"));
  });
}

TEST_F(SchedulerTest, APauseStopsItAndIsRememberedWithWhoMadeIt) {
  life([&]() -> Coro<void> {
    co_await start_with(every(10min), 5min);
    value_or_throw(co_await engine_->book().schedules().pause("s", "alice"));
    co_await sleep(30min);
  });
  life([&]() -> Coro<void> {
    scheduler_->start();
    co_await sleep(10min);
    EXPECT_THAT(co_await history(), ElementsAre("running 00:00"));
    const auto status = value_or_throw(co_await engine_->book().schedules().get("s"));
    EXPECT_EQ(status.paused_by, "alice");
    EXPECT_EQ(status.paused_at, at("2026-01-01T00:05:00Z"));
    // Not even a replace goes on with it.
    co_await add(every(10min), ConflictPolicy::replace);
    EXPECT_EQ(value_or_throw(co_await engine_->book().schedules().get("s")).paused_by, "alice");
  });
}

TEST_F(SchedulerTest, AResumeFromWhereItWasCatchesUp) {
  with_scheduler([&]() -> Coro<void> {
    co_await work();
    co_await start_with(every(10min), 5min);
    value_or_throw(co_await engine_->book().schedules().pause("s"));
    co_await sleep(30min);
    value_or_throw(co_await engine_->book().schedules().resume("s", ResumeFrom::where_it_was));
    co_await sleep(1s);
    EXPECT_THAT(co_await history(), ElementsAre("done 00:00", "missed 00:10-00:20 x2", "done 00:30"));
  });
}

TEST_F(SchedulerTest, AResumeFromNowSaysWhatWasMissed) {
  with_scheduler([&]() -> Coro<void> {
    co_await work();
    co_await start_with(every(10min), 5min);
    value_or_throw(co_await engine_->book().schedules().pause("s"));
    co_await sleep(30min);
    value_or_throw(co_await engine_->book().schedules().resume("s", ResumeFrom::now));
    co_await sleep(10min);
    EXPECT_THAT(co_await history(), ElementsAre("done 00:00", "missed 00:10-00:30 x3", "done 00:40"));
    EXPECT_EQ(value_or_throw(co_await engine_->book().schedules().history("s")).at(1).error, "it was paused");
  });
}

TEST_F(SchedulerTest, WhatIsRemovedIsGoneAndItsJobsStay) {
  with_scheduler([&]() -> Coro<void> {
    co_await work(1h);
    co_await add(every(10min));
    co_await add(every(10min, "t"));
    scheduler_->start();
    co_await sleep(1min);
    value_or_throw(co_await engine_->book().schedules().remove("s"));
    EXPECT_EQ((co_await engine_->book().schedules().get("s")).error().code, Errc::not_found);
    EXPECT_EQ((co_await engine_->book().schedules().remove("s")).error().code, Errc::not_found);
    EXPECT_EQ(now_running_, 2);
    value_or_throw(co_await engine_->book().schedules().remove_all());
    EXPECT_EQ(scheduler_->size(), 0u);
    co_await sleep(2h);
    EXPECT_EQ(ran_.size(), 2u);
    EXPECT_THAT(events_, Contains("schedule_removed s"));
    EXPECT_THAT(events_, Contains("all_schedules_removed"));
  });
}

TEST_F(SchedulerTest, RunNowRunsBesideThePlan) {
  with_scheduler([&]() -> Coro<void> {
    co_await work();
    co_await start_with(every(10min), 3min);
    value_or_throw(co_await engine_->book().schedules().pause("s"));
    EXPECT_GT(value_or_throw(co_await engine_->book().schedules().run_now("s")), 0u);
    value_or_throw(co_await engine_->book().schedules().resume("s"));
    co_await sleep(10min);
    EXPECT_THAT(ran_, ElementsAre("00:00:00", "00:03:00", "00:10:00"));
    EXPECT_THAT(co_await history(), ElementsAre("done 00:00", "done 00:03", "done 00:10"));
    EXPECT_EQ((co_await engine_->book().schedules().run_now("t")).error().code, Errc::not_found);
  });
}

TEST_F(SchedulerTest, ManyRunNowsAtOnceAllRun) {
  with_scheduler([&]() -> Coro<void> {
    co_await work();
    co_await start_with(every(10min), 1s);
    std::vector<Task<Result<JobId>>> runs;
    for (int i = 0; i < 10; ++i) runs.push_back(loop_.create_task(engine_->book().schedules().run_now("s")));
    for (auto& run : runs) EXPECT_TRUE(co_await run);
    co_await sleep(1s);
    EXPECT_EQ(ran_.size(), 11u);
    EXPECT_EQ(value_or_throw(co_await engine_->book().schedules().get("s")).place.fired, 11u);
  });
}

TEST_F(SchedulerTest, ANewScheduleIsFiredThoughNothingElseWakesTheLoop) {
  with_scheduler(
      [&]() -> Coro<void> {
        co_await work();
        scheduler_->start();
        co_await sleep(5min);
        co_await add(every(10min));
        co_await sleep(6min);
        EXPECT_THAT(ran_, ElementsAre("00:10:00"));
      },
      {.look_interval = 24h});
}

// --- the whole -------------------------------------------------------------------------------------------------------

TEST_F(SchedulerTest, TheWholeCanBePausedAndGoesOnByThePolicies) {
  with_scheduler([&]() -> Coro<void> {
    co_await work();
    co_await add(every(10min));
    EXPECT_EQ(scheduler_->state(), SchedulerState::stopped);
    scheduler_->start(true);
    EXPECT_EQ(scheduler_->state(), SchedulerState::paused);
    co_await sleep(25min);
    EXPECT_THAT(ran_, IsEmpty());
    scheduler_->resume();
    EXPECT_EQ(scheduler_->state(), SchedulerState::running);
    co_await sleep(6min);
    EXPECT_THAT(ran_, ElementsAre("00:25:00", "00:30:00"));
    scheduler_->pause();
    co_await sleep(1h);
    EXPECT_EQ(ran_.size(), 2u);
  });
  EXPECT_THAT(events_, Contains("scheduler_started"));
  EXPECT_THAT(events_, Contains("scheduler_paused"));
  EXPECT_THAT(events_, Contains("scheduler_resumed"));
  EXPECT_EQ(events_.back(), "scheduler_shutdown");
}

TEST_F(SchedulerTest, ShutdownWaitsForRunsOrGivesThemBack) {
  with_scheduler([&]() -> Coro<void> {
    co_await work(30min);
    co_await start_with(every(24h), 1min);
    value_or_throw(co_await scheduler_->shutdown(true));
    EXPECT_EQ(clock(), "00:30:00");
    EXPECT_THAT(co_await history(), ElementsAre("done 00:00"));
    EXPECT_EQ(scheduler_->state(), SchedulerState::stopped);
    EXPECT_THROW(scheduler_->start(), std::logic_error);
  });
  store_.reopen();
  with_scheduler([&]() -> Coro<void> {
    co_await work(30min);
    value_or_throw(co_await engine_->book().schedules().run_now("s"));
    co_await sleep(1min);
    value_or_throw(co_await scheduler_->shutdown(false));
    EXPECT_EQ(clock(), "00:31:00");
    EXPECT_THAT(co_await history(), ElementsAre("done 00:00", "running 00:30"));
  });
}

TEST_F(SchedulerTest, AShutdownThatDoesNotWaitEndsTheWaitingOfOneThatDoes) {
  with_scheduler([&]() -> Coro<void> {
    co_await work(30min);
    co_await start_with(every(24h), 1min);
    auto waiting = loop_.create_task(scheduler_->shutdown(true));
    co_await sleep(1min);
    EXPECT_FALSE(waiting.done());
    value_or_throw(co_await scheduler_->shutdown(false));
    value_or_throw(co_await waiting);
    EXPECT_EQ(clock(), "00:02:00");
    EXPECT_THAT(co_await history(), ElementsAre("running 00:00"));
  });
}

TEST_F(SchedulerTest, EventsComeInOrderAndOnlyThoseAskedFor) {
  Lines some;
  with_scheduler([&]() -> Coro<void> {
    const auto id = scheduler_->add_listener(static_cast<std::uint32_t>(ScheduleEventKind::job_executed),
                                             [&](const ScheduleEvent& event) { some.emplace_back(event.name); });
    co_await work(1s);
    co_await start_with(every(10min), 5min);
    scheduler_->remove_listener(id);
    co_await sleep(10min);
  });
  EXPECT_THAT(some, ElementsAre("s"));
  EXPECT_THAT(events_, ElementsAre("executor_added: default", "schedule_added s", "scheduler_started",
                                   "job_submitted s 00:00", "job_executed s 00:00", "job_submitted s 00:10",
                                   "job_executed s 00:10", "scheduler_shutdown"));
}

TEST_F(SchedulerTest, ExecutorsComeAndGo) {
  with_scheduler([&]() -> Coro<void> {
    co_await work(1h);
    EXPECT_EQ((co_await scheduler_->add_executor("default")).error().code, Errc::refused);
    EXPECT_EQ(scheduler_->add_function("other", "", {}).error().code, Errc::not_found);
    value_or_throw(co_await scheduler_->add_executor("other", {.concurrency = 1}));
    EXPECT_THAT(scheduler_->executors(), ElementsAre("default", "other"));
    value_or_throw(co_await scheduler_->remove_executor("other"));
    EXPECT_THAT(scheduler_->executors(), ElementsAre("default"));
    EXPECT_EQ((co_await scheduler_->remove_executor("other")).error().code, Errc::not_found);
    EXPECT_THAT(events_, Contains("executor_removed: other"));
  });
}

TEST_F(SchedulerTest, AnExecutorIsRemovedOnceWhoeverWaitsForItsEnd) {
  with_scheduler([&]() -> Coro<void> {
    co_await work(30min);
    co_await start_with(every(24h), 1min);
    auto first = loop_.create_task(scheduler_->remove_executor("default"));
    auto second = loop_.create_task(scheduler_->remove_executor("default"));
    co_await sleep(1min);
    value_or_throw(co_await scheduler_->shutdown(true));
    EXPECT_EQ(clock(), "00:30:00");
    value_or_throw(co_await first);
    value_or_throw(co_await second);
    EXPECT_THAT(scheduler_->executors(), ElementsAre());
    EXPECT_EQ(std::ranges::count(events_, "executor_removed: default"), 1);
  });
}

TEST_F(SchedulerTest, ARemovalThatIsCancelledCancelsTheRunsAndTheExecutorMayComeBack) {
  with_scheduler([&]() -> Coro<void> {
    co_await work(30min);
    co_await start_with(every(24h), 1min);
    auto removal = loop_.create_task(scheduler_->remove_executor("default"));
    co_await sleep(1min);
    removal.cancel();
    co_await wait(std::vector{removal});
    EXPECT_EQ(clock(), "00:02:00");
    EXPECT_THAT(scheduler_->executors(), ElementsAre());
    value_or_throw(co_await scheduler_->add_executor("default"));
  });
}

TEST_F(SchedulerTest, AnExecutorThatCannotWorkLeavesItsJobsAloneAndTriesAgain) {
  with_scheduler([&]() -> Coro<void> {
    int begun = 0;
    value_or_throw(co_await scheduler_->add_executor("default"));
    value_or_throw(scheduler_->add_function("default", "", [&begun](JobContext&) -> Coro<void> {
      if (++begun == 1) throw WorkerUnfit("no such program");
      co_return;
    }));
    const PutReply put = value_or_throw(co_await engine_->book().put({.queue = "default"}));
    co_await sleep(5s);
    EXPECT_EQ(begun, 1);
    EXPECT_EQ(value_or_throw(co_await engine_->book().get(put.id)).attempts, 0u);
    co_await sleep(10s);
    EXPECT_EQ(begun, 2);
  });
}

TEST_F(SchedulerTest, AnExecutorThatRestsIsRemovedAtOnce) {
  with_scheduler([&]() -> Coro<void> {
    value_or_throw(co_await scheduler_->add_executor("default"));
    value_or_throw(scheduler_->add_function("default", "", [](JobContext&) -> Coro<void> {
      throw WorkerUnfit("no such program");
      co_return;
    }));
    value_or_throw(co_await engine_->book().put({.queue = "default"}));
    co_await sleep(5s);
    const TimePoint before = loop_.time();
    EXPECT_EQ((co_await scheduler_->remove_executor("default")).error().message, "no such program");
    EXPECT_EQ(loop_.time(), before);
  });
}

}  // namespace
}  // namespace argiope
