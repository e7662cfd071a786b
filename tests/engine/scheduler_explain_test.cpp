// Why a schedule does not run now, one fact a test; what cannot be run is marked and kept.
#include <gmock/gmock.h>

#include "engine/scheduler_fixture.hpp"
#include "support/open_engine.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ExplainScheduleTest : public SchedulerTest {};

TEST_F(ExplainScheduleTest, NotDueSaysWhenAndWithWhichJitter) {
  with_scheduler([&]() -> Coro<void> {
    co_await work();
    co_await start_with(every(10min), 1min);
    EXPECT_EQ(co_await sentence(), "not due; next planned for 2026-01-01T00:10:00Z");
    const Trigger jittery = every(10min).trigger.with_jitter(5min, 42);
    value_or_throw(co_await engine_->book().schedules().reschedule("s", jittery));
    const auto due_at = std::chrono::floor<std::chrono::milliseconds>(jittery.due_at(at("2026-01-01T00:10:00Z")));
    EXPECT_EQ(co_await sentence(), "not due; next planned for 2026-01-01T00:10:00Z, to run at " +
                                       format_timestamp(due_at) + " with its jitter");
  });
}

TEST_F(ExplainScheduleTest, TimesAreShownInTheZoneOfTheTrigger) {
  with_scheduler([&]() -> Coro<void> {
    co_await work();
    co_await start_with(cron("CRON_TZ=Asia/Tokyo 0 9 * * *"), 1min);
    EXPECT_THAT(co_await sentence(), HasSubstr("next planned for 2026-01-02T"));
    EXPECT_EQ(value_or_throw(co_await engine_->book().schedules().explain("s")).next, at("2026-01-02T00:00:00Z"));
  });
}

TEST_F(ExplainScheduleTest, PausedSaysByWhomAndSinceWhen) {
  with_scheduler([&]() -> Coro<void> {
    co_await add(every(10min));
    co_await sleep(30s);
    value_or_throw(co_await engine_->book().schedules().pause("s", "alice"));
    EXPECT_EQ(co_await reason(), ScheduleReason::paused);
    EXPECT_THAT(co_await sentence(), StartsWith("paused by alice since 2026-01-01T00:00:30Z; next planned for"));
  });
}

TEST_F(ExplainScheduleTest, FinishedAndMaxRunsSayThatThereIsNoMore) {
  with_scheduler([&]() -> Coro<void> {
    co_await work();
    co_await add({.name = "s", .trigger = Trigger::at(at("2026-01-01"))});
    Schedule twice = every(10min, "twice");
    twice.max_runs = 2;
    co_await add(std::move(twice));
    co_await add(cron("0 0 30 2 *", "never"));
    scheduler_->start();
    co_await sleep(1h);
    EXPECT_EQ(co_await sentence(), "over: no planned times are left");
    EXPECT_EQ(co_await sentence("twice"), "over: it has had all of its 2 runs");
    EXPECT_EQ(co_await sentence("never"), "over: no planned times are left");
  });
}

TEST_F(ExplainScheduleTest, TheSchedulerIsStoppedOrPaused) {
  with_scheduler([&]() -> Coro<void> {
    co_await add(every(10min));
    EXPECT_EQ(co_await reason(), ScheduleReason::scheduler_stopped);
    scheduler_->start(true);
    EXPECT_EQ(co_await reason(), ScheduleReason::scheduler_paused);
    EXPECT_THAT(co_await sentence(), StartsWith("the scheduler is paused; next planned for"));
  });
}

TEST_F(ExplainScheduleTest, UnknownFunctionIsKeptAndMarkedUntilItIsThere) {
  with_scheduler([&]() -> Coro<void> {
    co_await work();
    Schedule schedule = every(10min);
    schedule.job.function = "backup";
    co_await start_with(std::move(schedule), 15min);
    EXPECT_EQ(co_await reason(), ScheduleReason::unknown_function);
    EXPECT_THAT(co_await sentence(),
                StartsWith("cannot be run: executor \"default\" has no function \"backup\"; next"));
    EXPECT_THAT(events_, Contains("schedule_marked s: executor \"default\" has no function \"backup\""));
    EXPECT_THAT(co_await history(), ElementsAre());
    co_await work({}, "backup");
    co_await sleep(1s);
    EXPECT_THAT(co_await history(), ElementsAre("missed 00:00", "done 00:10"));
    EXPECT_THAT(events_, Contains("schedule_unmarked s"));
    EXPECT_EQ(co_await reason(), ScheduleReason::not_due);
  });
}

TEST_F(ExplainScheduleTest, UnknownExecutorIsKeptAndMarkedUntilItIsThere) {
  with_scheduler(
      [&]() -> Coro<void> {
        co_await start_with(every(10min), 1min);
        EXPECT_EQ(co_await reason(), ScheduleReason::unknown_executor);
        EXPECT_THAT(co_await sentence(), StartsWith("cannot be run: there is no executor \"default\" here"));
        co_await work();
        co_await sleep(1s);
        EXPECT_THAT(co_await history(), ElementsAre("done 00:00"));
      },
      {.foreign_queues = false});
}

TEST_F(ExplainScheduleTest, UnreadableIsKeptAndMarked) {
  with_scheduler([&]() -> Coro<void> {
    value_or_throw(co_await store_.put_schedules(
        {{.name = "s", .trigger = R"({"type":"moon"})", .definition = "{}", .place = {.next = at("2026-01-01")}},
         {.name = "t",
          .trigger = every(10min).trigger.to_json(),
          .definition = R"({"from_the_future":1})",
          .place = {.next = at("2026-01-01")}}}));
  });
  store_.reopen();
  with_scheduler([&]() -> Coro<void> {
    scheduler_->start();
    co_await sleep(1h);
    EXPECT_THAT(co_await sentence(), StartsWith("cannot be read: type \"moon\""));
    EXPECT_THAT(co_await sentence("t"), StartsWith("cannot be read: member \"from_the_future\""));
    const auto all = value_or_throw(co_await engine_->book().schedules().list());
    EXPECT_EQ(all.size(), 2u);
    EXPECT_FALSE(all.at(0).schedule);
    EXPECT_THAT(all.at(0).trouble, HasSubstr("moon"));
    EXPECT_EQ((co_await engine_->book().schedules().modify("s", [](Schedule&) {})).error().code, Errc::wrong_format);
    EXPECT_EQ((co_await engine_->book().schedules().run_now("s")).error().code, Errc::wrong_format);
    // A replace makes it whole again.
    co_await work();
    co_await add(every(10min), ConflictPolicy::replace);
    co_await sleep(11min);
    EXPECT_EQ(co_await reason(), ScheduleReason::not_due);
  });
}

TEST_F(ExplainScheduleTest, AFullQueueIsTriedAgain) {
  with_scheduler([&]() -> Coro<void> {
    QueueConfig config;
    config.capacity = 1;
    value_or_throw(co_await engine_->book().configure("q", config));
    const auto first = value_or_throw(co_await engine_->book().put({.queue = "q"}));
    Schedule schedule = every(10min);
    schedule.job.queue = "q";
    co_await start_with(std::move(schedule), 5min);
    EXPECT_EQ(co_await reason(), ScheduleReason::queue_full);
    EXPECT_THAT(co_await sentence(), HasSubstr("queue \"q\" is full"));
    value_or_throw(co_await engine_->book().cancel(first.id));
    co_await sleep(2s);
    EXPECT_THAT(co_await history(), ElementsAre("running 00:00"));
    EXPECT_EQ(co_await reason(), ScheduleReason::overlap);
  });
}

TEST_F(ExplainScheduleTest, APayloadThatItsQueueRefuses) {
  with_scheduler([&]() -> Coro<void> {
    QueueConfig config;
    config.max_payload_bytes = 3;
    value_or_throw(co_await engine_->book().configure("q", config));
    Schedule schedule = every(10min);
    schedule.job = {.queue = "q", .payload = "four"};
    co_await add(std::move(schedule));
    co_await add(every(10min, "other"));
    scheduler_->start();
    co_await sleep(1min);
    EXPECT_EQ(co_await reason(), ScheduleReason::job_refused);
    EXPECT_THAT(co_await history("other"), ElementsAre("running 00:00"));
    value_or_throw(
        co_await engine_->book().schedules().modify("s", [](Schedule& change) { change.job.payload = "3"; }));
    co_await sleep(1s);
    EXPECT_THAT(co_await history(), ElementsAre("running 00:00"));
  });
}

TEST_F(ExplainScheduleTest, FollowsARunThatNobodyTakes) {
  with_scheduler([&]() -> Coro<void> {
    Schedule schedule = every(10min);
    schedule.job.queue = "tick";
    co_await start_with(std::move(schedule), 15min);
    const auto why = value_or_throw(co_await engine_->book().schedules().explain("s"));
    EXPECT_EQ(why.active_run.value().planned, at("2026-01-01T00:00:00Z"));
    EXPECT_EQ(why.active_text, "no worker asks for jobs of queue \"tick\", and no executor has \"tick\"");
    EXPECT_EQ(co_await sentence(),
              "1 of at most 1 runs have not ended: a planned time that comes now is skipped; its run of "
              "2026-01-01T00:00:00Z is job 1: " +
                  why.active_text +
                  "; next planned for 2026-01-01T00:20:00Z; last not run: 2026-01-01T00:10:00Z (1 of its runs had not "
                  "ended)");
    // Of several the oldest; and it is said of a schedule that is not kept by it, too.
    value_or_throw(
        co_await engine_->book().schedules().modify("s", [](Schedule& change) { change.max_instances = 9; }));
    co_await sleep(10min);
    EXPECT_THAT(co_await sentence(), StartsWith("not due; its run of 2026-01-01T00:00:00Z is job 1: no worker asks"));
    value_or_throw(co_await engine_->book().pause("tick"));
    EXPECT_THAT(co_await sentence(), HasSubstr("is job 1: queue \"tick\" is paused; next planned for"));
    // Beside the owner nobody knows of workers.
    auto beside = value_or_throw(co_await Book::open(store_));
    EXPECT_THAT(to_sentence(value_or_throw(co_await beside.schedules().explain("s"))),
                HasSubstr("its run of 2026-01-01T00:00:00Z is job 1: "));
  });
}

TEST_F(ExplainScheduleTest, OverlapSaysHowManyRunAndWhatComesOfIt) {
  with_scheduler([&]() -> Coro<void> {
    co_await work(1h);
    co_await start_with(every(10min), 15min);
    const auto why = value_or_throw(co_await engine_->book().schedules().explain("s"));
    EXPECT_THAT(why.active_text, StartsWith("it runs (attempt 1 of "));
    EXPECT_EQ(co_await sentence(),
              "1 of at most 1 runs have not ended: a planned time that comes now is skipped; its run of "
              "2026-01-01T00:00:00Z is job 1: " +
                  why.active_text +
                  "; next planned for 2026-01-01T00:20:00Z; last not run: 2026-01-01T00:10:00Z (1 of its runs had not "
                  "ended)");
  });
}

TEST_F(ExplainScheduleTest, AsJson) {
  with_scheduler([&]() -> Coro<void> {
    co_await work(1h);
    co_await start_with(every(10min), 15min);
    const auto why = value_or_throw(co_await engine_->book().schedules().explain("s"));
    EXPECT_EQ(to_json(why),
              R"({"name":"s","id":1,"reason":"overlap","text":"","next":"2026-01-01T00:20:00Z",)"
              R"("due_at":"2026-01-01T00:20:00Z","zone":"UTC","paused_by":"","paused_at":null,"active":1,)"
              R"("max_instances":1,"overlap":"skip","runs":1,"missed":1,"last_misfire":{)"
              R"("planned":"2026-01-01T00:10:00Z","last_planned":"2026-01-01T00:10:00Z","count":1,)"
              R"("outcome":"skipped","why":"1 of its runs had not ended"},)"
              R"("active_run":{"run":1,"planned":"2026-01-01T00:00:00Z","job":1,"why":")" +
                  why.active_text + "\"}}");
    EXPECT_EQ((co_await engine_->book().schedules().explain("t")).error().code, Errc::not_found);
  });
}

// --- others on the same store ----------------------------------------------------------------------------------------

// In a file, which one process owns and others share.
class SharedScheduleTest : public OnVirtualLoop {
 protected:
  TemporaryFolder folder_;
  std::string where_ = "sqlite:" + folder_.file("jobs.db");
};

TEST_F(SharedScheduleTest, WhatOthersDoReachesTheScheduler) {
  auto own = open_store(where_, {.sync = SyncMode::off}).value();
  auto theirs = open_store(where_, {.access = StoreAccess::share, .sync = SyncMode::off}).value();
  std::vector<std::string> events;
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    auto engine = co_await open_engine(*own);
    Scheduler* const scheduler = &engine->scheduler();
    scheduler->add_listener(kAllScheduleEvents, [&](const ScheduleEvent& event) {
      events.push_back(std::string(to_string(event.kind)) + ' ' + std::string(event.name));
    });
    scheduler->start();
    auto beside = value_or_throw(co_await Book::open(*theirs));
    ScheduleBook& book = beside.schedules();
    const Schedule schedule{.name = "s", .trigger = Trigger::every(10min, at("2026-01-01")).value()};
    EXPECT_TRUE(co_await book.add(schedule));
    co_await sleep(1s);
    EXPECT_EQ(scheduler->size(), 1u);
    EXPECT_TRUE(co_await book.pause("s", "bob"));
    co_await sleep(1h);
    EXPECT_EQ((co_await engine->book().schedules().get("s")).value().place.fired, 1u);
    EXPECT_EQ((co_await engine->book().schedules().explain("s")).value().paused_by, "bob");
    EXPECT_TRUE(co_await book.run_now("s"));
    EXPECT_TRUE(co_await book.resume("s", ResumeFrom::now));
    co_await sleep(1s);
    EXPECT_EQ((co_await engine->lease_now({.queues = {"default"}, .most = 10, .worker = "w"})).value().size(), 2u);
    EXPECT_TRUE(co_await book.remove("s"));
    co_await sleep(1s);
    EXPECT_EQ(scheduler->size(), 0u);
    EXPECT_TRUE(co_await scheduler->shutdown());
    EXPECT_TRUE(co_await engine->close());
  }));
  EXPECT_THAT(events, Contains("schedule_added s"));
  EXPECT_THAT(events, Contains("schedule_modified s"));
  EXPECT_THAT(events, Contains("schedule_removed "));
  EXPECT_TRUE(theirs->close());
  EXPECT_TRUE(own->close());
}

}  // namespace
}  // namespace argiope
