// What APScheduler 3 loses, doubles or keeps quiet about, each with a test that shows it absent here. The list is that
// of docs/from-apscheduler.md.
#include <gmock/gmock.h>

#include "engine/scheduler_fixture.hpp"
#include "support/open_engine.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ApschedulerFaults : public SchedulerTest {};

std::vector<std::string> first_times(const Trigger& trigger, std::string_view after, int count) {
  std::vector<std::string> times;
  WallTime time = at(after);
  for (int i = 0; i < count; ++i) {
    time = trigger.next(time).value();
    times.push_back(format_timestamp(time, trigger.zone()));
  }
  return times;
}

// There, a job is submitted, and the store is updated afterwards: a crash in between runs it again, or loses it.
TEST_F(ApschedulerFaults, AJobIsSubmittedAndTheStoreUpdatedInOneStep) {
  std::uint64_t with = 0, without = 0;
  for (int steps = 0; steps < 40; ++steps) {
    MemoryStore store;
    std::unique_ptr<Engine> engine;
    VirtualBackend backend;
    {
      EventLoop loop(backend);
      loop.run_until_complete(keeping([&]() -> Coro<void> {
        engine = co_await open_engine(store);
        value_or_throw(co_await engine->book().schedules().add(every(24h)));
      }));
      // Dies so many steps later.
      loop.call_soon([&] { engine->scheduler().start(); });
      for (int i = 0; i < steps; ++i) loop.run_once(TimePoint::min());
    }
    engine.reset();
    store.reopen();
    loop_.run_until_complete(keeping([&]() -> Coro<void> {
      const auto stored = value_or_throw(co_await store.find_schedule("s")).value();
      const auto counts = value_or_throw(co_await store.counts());
      const std::uint64_t jobs = counts.empty() ? 0 : counts[0].counts.ready;
      EXPECT_EQ(stored.place.fired, jobs) << "after " << steps << " steps";
      EXPECT_EQ(stored.place.next > at("2026-01-01"), jobs == 1);
      EXPECT_EQ(value_or_throw(co_await store.schedule_runs(stored.id, 20)).size(), jobs);
      ++(jobs == 1 ? with : without);
    }));
  }
  EXPECT_GT(with, 0u);
  EXPECT_GT(without, 0u);
}

// There, a job whose executor is unknown is deleted.
TEST_F(ApschedulerFaults, AnUnknownExecutorDeletesNothing) {
  with_scheduler(
      [&]() -> Coro<void> {
        Schedule schedule = every(10min);
        schedule.job.queue = "missing";
        co_await start_with(std::move(schedule), 1h);
        EXPECT_TRUE(co_await engine_->book().schedules().get("s"));
        EXPECT_THAT(co_await sentence(), HasSubstr("there is no executor \"missing\" here"));
      },
      {.foreign_queues = false});
}

// There, a run that comes more than a second late is dropped by default, and only an event says so.
TEST_F(ApschedulerFaults, ALateRunIsRunAndAMissedOneIsInTheHistory) {
  with_scheduler([&]() -> Coro<void> {
    co_await work();
    co_await add(every(24h));
    Schedule strict = every(24h, "strict");
    strict.misfire_grace = 1s;
    co_await add(std::move(strict));
    co_await sleep(5h);
    scheduler_->start();
    co_await sleep(1s);
    EXPECT_THAT(co_await history(), ElementsAre("done 00:00"));
    EXPECT_THAT(co_await history("strict"), ElementsAre("missed 00:00"));
    EXPECT_EQ(value_or_throw(co_await engine_->book().schedules().history("strict")).at(0).error,
              "later than its misfire_grace of 1s");
  });
}

// There, two schedulers on one store run everything twice.
TEST_F(ApschedulerFaults, TwoProcessesOnOneStoreDoNotRunAnythingTwice) {
  TemporaryFolder folder;
  const std::string where = "sqlite:" + folder.file("jobs.db");
  auto first = open_store(where, {.sync = SyncMode::off}).value();
  const auto second = open_store(where, {.sync = SyncMode::off});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::busy);
  // And were there two all the same: a step that was made from what is no more does nothing.
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    auto one = co_await open_engine(*first);
    auto two = co_await open_engine(*first);
    ScheduleBook& schedules = one->book().schedules();
    value_or_throw(co_await schedules.add(every(10min)));
    EXPECT_TRUE(co_await two->book().schedules().modify("s", [](Schedule&) {}));
    one->scheduler().start();
    two->scheduler().start();
    co_await sleep(35min);
    EXPECT_EQ(value_or_throw(co_await schedules.get("s")).place.fired +
                  value_or_throw(co_await schedules.get("s")).place.missed,
              4u);
    EXPECT_EQ(value_or_throw(co_await one->book().counts()).at(0).second.ready, 1u);
    value_or_throw(co_await one->scheduler().shutdown());
    value_or_throw(co_await two->scheduler().shutdown());
    value_or_throw(co_await one->close());
    value_or_throw(co_await two->close());
  }));
  EXPECT_TRUE(first->close());
}

// There, `last-3` is read as `last`.
TEST_F(ApschedulerFaults, ThreeDaysBeforeTheLastIsNotTheLast) {
  EXPECT_THAT(first_times(Trigger::parse("0 0 L-3 * *").value(), "2026-01-01", 2),
              ElementsAre("2026-01-28T00:00:00Z", "2026-02-25T00:00:00Z"));
  const auto fields = CronExpression::from_fields({{"day", "last-3"}});
  if (fields) {
    EXPECT_EQ(first_times(Trigger::cron(*fields), "2026-01-01", 1).at(0), "2026-01-28T00:00:00Z");
  } else {
    EXPECT_THAT(fields.error().message, HasSubstr("day \"last"));
  }
}

// There, `mon-fri/2` loses its step.
TEST_F(ApschedulerFaults, AStepOnARangeOfWeekdaysCounts) {
  EXPECT_THAT(
      first_times(Trigger::parse("0 0 * * mon-fri/2").value(), "2026-01-04", 4),
      ElementsAre("2026-01-05T00:00:00Z", "2026-01-07T00:00:00Z", "2026-01-09T00:00:00Z", "2026-01-12T00:00:00Z"));
}

// There, a time that the clocks skip in spring is planned all the same, at an instant that no clock shows.
TEST_F(ApschedulerFaults, ATimeInTheGapOfSpringRunsAtTheFirstInstantThatExists) {
  EXPECT_THAT(first_times(Trigger::parse("CRON_TZ=Europe/Berlin 30 2 * * *").value(), "2026-03-28T12:00:00Z", 2),
              ElementsAre(HasSubstr("2026-03-29T"), HasSubstr("2026-03-30T")));
  EXPECT_EQ(Trigger::parse("CRON_TZ=Europe/Berlin 30 2 * * *").value().next(at("2026-03-28T12:00:00Z")),
            at("2026-03-29T01:00:00Z"));
}

// There, a fixed time that comes twice in autumn runs twice.
TEST_F(ApschedulerFaults, AFixedTimeThatComesTwiceInAutumnRunsOnce) {
  const Trigger trigger = Trigger::parse("CRON_TZ=Europe/Berlin 30 2 * * *").value();
  EXPECT_EQ(trigger.next(at("2026-10-24T12:00:00Z")), at("2026-10-25T00:30:00Z"));
  EXPECT_EQ(trigger.next(at("2026-10-25T00:30:00Z")), at("2026-10-26T01:30:00Z"));
}

// There, a failed run is over.
TEST_F(ApschedulerFaults, AFailedRunIsTriedAgain) {
  with_scheduler([&]() -> Coro<void> {
    value_or_throw(co_await scheduler_->add_executor("default"));
    int tries = 0;
    value_or_throw(scheduler_->add_function("default", "", [&tries](JobContext&) -> Coro<void> {
      if (++tries < 3) throw std::runtime_error("not yet");
      co_return;
    }));
    co_await start_with(every(24h), 1h);
    EXPECT_EQ(tries, 3);
    EXPECT_THAT(co_await history(), ElementsAre("done 00:00"));
  });
}

// There, add_job(…, replace_existing=True) at each start counts from now, and what was due meanwhile is never run.
TEST_F(ApschedulerFaults, AReplaceAtEachStartLosesNoRun) {
  life([&]() -> Coro<void> {
    co_await work();
    co_await add(cron("0 3 * * *"), ConflictPolicy::replace);
    scheduler_->start();
    co_await sleep(1h);
  });
  backend_.manual_clock().advance(4h);  // nobody ran at three
  life([&]() -> Coro<void> {
    co_await work();
    co_await add(cron("0 3 * * *"), ConflictPolicy::replace);
    scheduler_->start();
    co_await sleep(1s);
    EXPECT_THAT(co_await history(), ElementsAre("done 03:00"));
  });
}

// There, a schedule that is over is deleted with all that was known of it.
TEST_F(ApschedulerFaults, AScheduleThatIsOverStaysWithItsHistory) {
  with_scheduler([&]() -> Coro<void> {
    co_await work();
    co_await start_with({.name = "s", .trigger = Trigger::at(at("2026-01-01T00:05:00Z"))}, 1h);
    EXPECT_THAT(co_await history(), ElementsAre("done 00:05"));
    EXPECT_THAT(events_, Contains("schedule_finished s"));
  });
}

}  // namespace
}  // namespace argiope
