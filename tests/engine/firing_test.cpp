// What the broker makes of a schedule's steps, and what it tells of their runs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "engine/broker_fixture.hpp"
#include "support/open_engine.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

class FiringTest : public BrokerTest {
 protected:
  Coro<ScheduleId> add(std::string name) {
    std::vector<PutSchedule> wanted;
    wanted.push_back({.name = std::move(name), .trigger = "every 1m", .place = {.next = loop_.clock().wall_now()}});
    auto replies = co_await store_.put_schedules(std::move(wanted));
    co_return replies.value().at(0).id;
  }
  Coro<StoredSchedule> get(ScheduleId id) {
    std::vector<ScheduleId> ids{id};
    auto found = co_await store_.load_schedules(std::move(ids));
    co_return found.value().at(0).value();
  }
  // One run more than the schedule has had.
  Coro<FireCall> step(ScheduleId id, std::string queue = "q") {
    const StoredSchedule now = co_await get(id);
    FireCall call{.id = id, .version = now.version, .place = now.place};
    ++call.place.fired;
    call.runs.push_back({.number = ++call.place.entries, .planned = now.place.next, .fired_at = now.place.next});
    call.place.next += 1min;
    call.jobs.push_back({.job = job(queue, now.name), .run = call.place.entries});
    co_return call;
  }
  Coro<std::vector<Result<FireReply>>> fire(std::vector<FireCall> calls) {
    auto replies = co_await engine_->fire(std::move(calls));
    co_return replies.value();
  }
  Coro<Result<FireReply>> fire(FireCall call) {
    std::vector<FireCall> calls;
    calls.push_back(std::move(call));
    auto replies = co_await fire(std::move(calls));
    co_return std::move(replies.at(0));
  }
  Coro<JobId> fired(ScheduleId id) {
    FireCall call = co_await step(id);
    auto reply = co_await fire(std::move(call));
    co_return reply.value().jobs.at(0).id;
  }
  Coro<ScheduleRun> last_run(ScheduleId id) {
    auto runs = co_await store_.schedule_runs(id, 1);
    co_return runs.value().at(0);
  }
  void listen() {
    engine_->add_listener(kAllJobEvents, [this](const JobEvent& event) {
      heard_ += fmt::format("{} {}/{} ", to_string(event.kind), event.schedule, event.run);
    });
  }
  static QueueConfig holding(std::uint64_t jobs) {
    QueueConfig config;
    config.capacity = jobs;
    return config;
  }

  std::string heard_;
};

TEST_F(FiringTest, JobsOfAStepAreHandedOutAsOthersAre) {
  with_broker([&]() -> Coro<void> {
    const ScheduleId id = co_await add("a");
    listen();
    co_await fired(id);
    EXPECT_EQ(heard_, "added 0/0 ");
    const LeasedJob leased = co_await one("q");
    EXPECT_EQ(leased.job.payload, "a");
    EXPECT_EQ(leased.job.schedule, id);
    EXPECT_EQ(leased.job.run, 1u);
    EXPECT_TRUE(co_await settle(leased.token));
    EXPECT_EQ((co_await last_run(id)).outcome, RunOutcome::done);
  });
}

TEST_F(FiringTest, AWorkerThatWaitsGetsItAtOnce) {
  with_broker([&]() -> Coro<void> {
    const ScheduleId id = co_await add("a");
    EXPECT_TRUE(co_await engine_->book().configure("q", {}));
    LeaseCall call{.queues = {"q"}, .worker = "w"};
    auto waiting = loop_.create_task(engine_->lease(std::move(call)));
    co_await fired(id);
    const auto leased = co_await waiting;
    EXPECT_EQ(leased.value().at(0).job.schedule, id);
  });
}

TEST_F(FiringTest, WhatEndsARunTellsWhoseItWas) {
  with_broker([&]() -> Coro<void> {
    const ScheduleId id = co_await add("a");
    co_await fired(id);
    const LeasedJob first = co_await one("q");
    listen();
    EXPECT_TRUE(co_await settle(first.token, {.outcome = Outcome::retry, .delay = Duration{}}));
    const LeasedJob again = co_await one("q");
    EXPECT_TRUE(co_await settle(again.token, {.outcome = Outcome::bury, .error = "broken"}));
    EXPECT_EQ(heard_, "retrying 0/0 leased 0/0 buried 1/1 ");
    const ScheduleRun run = co_await last_run(id);
    EXPECT_EQ(run.outcome, RunOutcome::failed);
    EXPECT_EQ(run.error, "broken");
    heard_.clear();
    const JobId second = co_await fired(id);
    EXPECT_TRUE(co_await engine_->book().cancel(second, "not wanted"));
    const JobId third = co_await fired(id);
    EXPECT_TRUE(co_await engine_->book().erase(third));
    EXPECT_EQ(heard_, "added 0/0 cancelled 1/2 added 0/0 erased 1/3 ");
  });
}

TEST_F(FiringTest, RunsThatAreCancelledWithOthersAreToldOf) {
  with_broker([&]() -> Coro<void> {
    const ScheduleId a = co_await add("a");
    const ScheduleId b = co_await add("b");
    const JobId first = co_await put(job("q"));
    NewJob plain = job("q");
    plain.waits_for = {first};
    co_await put(plain);
    for (const ScheduleId id : {a, b}) {
      FireCall call = co_await step(id);
      call.jobs.at(0).job.waits_for = {first};
      auto reply = co_await fire(std::move(call));
      EXPECT_TRUE(reply.value().fired);
    }
    listen();
    EXPECT_TRUE(co_await engine_->book().cancel(first));
    EXPECT_EQ(heard_, "cancelled 0/0 cancelled 0/0 cancelled 1/1 cancelled 2/1 ");
  });
}

TEST_F(FiringTest, AStaleStepIsNoErrorAndGivesItsRoomBack) {
  with_broker([&]() -> Coro<void> {
    const ScheduleId id = co_await add("a");
    EXPECT_TRUE(co_await engine_->book().configure("q", holding(2)));
    const FireCall call = co_await step(id);
    const auto first = co_await fire(call);
    EXPECT_TRUE(first.value().fired);
    for (int i = 0; i < 5; ++i) {
      const auto stale = co_await fire(call);
      EXPECT_FALSE(stale.value().fired);
    }
    co_await fired(id);
  });
}

TEST_F(FiringTest, AStepFindsNoRoomAndIsRefusedAloneWithoutWaiting) {
  with_broker([&]() -> Coro<void> {
    const ScheduleId a = co_await add("a");
    const ScheduleId b = co_await add("b");
    const ScheduleId c = co_await add("c");
    QueueConfig config = holding(2);
    config.at_capacity = CapacityPolicy::wait;
    EXPECT_TRUE(co_await engine_->book().configure("q", config));
    // Two jobs of one step, of which only one would fit.
    FireCall two = co_await step(b);
    two.runs.push_back({.number = ++two.place.entries});
    two.jobs.push_back({.job = job("q"), .run = two.place.entries});
    std::vector<FireCall> calls{co_await step(a), std::move(two), co_await step(c), co_await step(c, "other")};
    const auto replies = co_await fire(std::move(calls));
    EXPECT_TRUE(replies.at(0).value().fired);
    EXPECT_EQ(replies.at(1).error().code, Errc::refused);
    EXPECT_TRUE(replies.at(2).value().fired);
    EXPECT_FALSE(replies.at(3).value().fired);
    EXPECT_EQ((co_await get(b)).version, 1u);
  });
}

TEST_F(FiringTest, AMistakeInOneStepKeepsNoOtherBack) {
  with_broker(
      [&]() -> Coro<void> {
        const ScheduleId a = co_await add("a");
        const ScheduleId b = co_await add("b");
        const ScheduleId c = co_await add("c");
        const ScheduleId d = co_await add("d");
        EXPECT_TRUE(co_await engine_->book().configure("q", holding(3)));
        std::vector<FireCall> calls{co_await step(a), co_await step(b), co_await step(c), co_await step(d, "none"),
                                    co_await step(d)};
        calls[1].jobs.at(0).job.waits_for = {12345};
        calls[2].jobs.at(0).job.payload.assign(2'000'000, 'p');
        calls.push_back(co_await step(d));
        ++calls.back().place.entries;
        const auto replies = co_await fire(std::move(calls));
        EXPECT_TRUE(replies.at(0).value().fired);
        EXPECT_EQ(replies.at(1).error().code, Errc::invalid_input);
        EXPECT_EQ(replies.at(2).error().code, Errc::too_large);
        EXPECT_EQ(replies.at(3).error().code, Errc::not_found);
        EXPECT_TRUE(replies.at(4).value().fired);
        EXPECT_EQ(replies.at(5).error().code, Errc::invalid_input);
        co_await fired(a);  // the room of the refused one
        EXPECT_EQ((co_await lease_all("q")).size(), 3u);
      },
      {.create_queues = false});
}

TEST_F(FiringTest, ACallerThatStopsWaitingFiresAllTheSame) {
  with_broker([&]() -> Coro<void> {
    const ScheduleId id = co_await add("a");
    FireCall call = co_await step(id);
    auto firing = loop_.create_task(fire(std::move(call)));
    co_await sleep(0s);
    firing.cancel();
    try {
      (void)co_await firing;
    } catch (const CancelledError&) {
    }
    EXPECT_EQ((co_await one("q")).job.schedule, id);
  });
}

TEST_F(FiringTest, HistoriesSpeakOfTheCalendarWhateverItsJumps) {
  with_broker([&]() -> Coro<void> {
    const ScheduleId id = co_await add("a");
    co_await fired(id);
    backend_.manual_clock().set_wall(loop_.clock().wall_now() + 5h);
    co_await sleep(1s);
    const LeasedJob leased = co_await one("q");
    EXPECT_TRUE(co_await settle(leased.token));
    EXPECT_EQ((co_await last_run(id)).ended_at, loop_.clock().wall_now());
    EXPECT_EQ(engine_->calendar_now(), loop_.clock().wall_now());
  });
}

TEST_F(FiringTest, AJumpOfTheCalendarIsHeardOfBeforeItIsSeen) {
  with_broker([&]() -> Coro<void> {
    std::vector<Duration> jumps;
    const auto heard = static_cast<std::uint32_t>(ScheduleEventKind::calendar_jumped);
    const auto listener = engine_->scheduler().add_listener(heard, [&](const ScheduleEvent& event) {
      jumps.push_back(event.jump);
      EXPECT_EQ(engine_->calendar_now(), loop_.clock().wall_now());
    });
    const WallTime before = engine_->calendar_now();
    backend_.manual_clock().set_wall(loop_.clock().wall_now() - 3h);
    EXPECT_EQ(engine_->calendar_now(), before);
    engine_->look_at_calendar();
    EXPECT_EQ(jumps, std::vector{Duration{-3h}});
    co_await sleep(2s);
    EXPECT_EQ(jumps.size(), 1u);
    engine_->scheduler().remove_listener(listener);
    backend_.manual_clock().set_wall(loop_.clock().wall_now() + 3h);
    engine_->look_at_calendar();
    EXPECT_EQ(jumps.size(), 1u);
  });
}

TEST_F(FiringTest, WhenTheStoreFailsNothingIsFiredAndTheErrorIsItsOwn) {
  TemporaryFolder folder;
  const std::string where = "sqlite:" + folder.file("jobs.db");
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    auto small = std::move(open_store(where, {.sync = SyncMode::off, .max_bytes = 400 * 1024}).value());
    auto engine = co_await open_engine(*small);
    std::vector<PutSchedule> wanted(1, PutSchedule{.name = "a"});
    EXPECT_TRUE(co_await small->put_schedules(std::move(wanted)));
    std::uint64_t fired = 0;
    std::optional<Errc> error;
    while (!error && fired < 1'000) {
      FireCall call{.id = 1, .version = fired + 1, .place = {.entries = fired + 1}, .runs = {{.number = fired + 1}}};
      call.jobs.push_back({.job = job("q", std::string(5'000, 'p')), .run = fired + 1});
      std::vector<FireCall> calls(1, call);
      const auto replies = co_await engine->fire(std::move(calls));
      if (replies) {
        EXPECT_TRUE(replies->at(0).value().fired);
        ++fired;
      } else {
        error = replies.error().code;
      }
    }
    EXPECT_EQ(error, Errc::disk_full);
    std::vector<ScheduleId> ids{1};
    const auto there = co_await small->load_schedules(std::move(ids));
    EXPECT_EQ(there.value().at(0)->place.entries, fired);
    EXPECT_EQ(there.value().at(0)->active, fired);
    EXPECT_FALSE(co_await engine->close());
  }));
}

TEST_F(FiringTest, WhatOthersDoToSchedulesIsHeardOf) {
  TemporaryFolder folder;
  const std::string where = "sqlite:" + folder.file("jobs.db");
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    auto owned = std::move(open_store(where, {.sync = SyncMode::off}).value());
    auto engine = co_await open_engine(*owned);
    std::vector<ScheduleId> heard;
    engine->scheduler().add_listener(kAllScheduleEvents, [&](const ScheduleEvent& event) {
      if (event.schedule != 0) heard = {event.schedule};
    });
    auto shared = std::move(open_store(where, {.access = StoreAccess::share, .sync = SyncMode::off}).value());
    std::vector<PutSchedule> wanted(1, PutSchedule{.name = "a"});
    auto added = co_await shared->put_schedules(std::move(wanted));
    const ScheduleId id = added.value().at(0).id;
    // The loop's time flies while the store works in real time.
    const auto give_up_at = std::chrono::steady_clock::now() + 30s;
    const auto in_time = [&] { return std::chrono::steady_clock::now() < give_up_at; };
    while (heard.empty() && in_time()) co_await sleep(10ms);
    EXPECT_EQ(heard, std::vector{id});
    heard.clear();
    FireRequest request{.id = id, .version = 1, .place = {.entries = 1}, .runs = {{.number = 1}}};
    request.jobs.push_back({.job = {.queue = "q"}, .run = 1});
    std::vector<FireRequest> requests(1, request);
    EXPECT_TRUE(co_await shared->fire(std::move(requests), loop_.clock().wall_now()));
    // The job comes with the news, into a queue that the owner has not known.
    while (engine->queue_names().empty() && in_time()) co_await sleep(10ms);
    auto leased = co_await engine->lease({.queues = {"q"}});
    EXPECT_EQ(leased.value().at(0).job.schedule, id);
    EXPECT_EQ(heard, std::vector{id});
    EXPECT_TRUE(co_await engine->close());
  }));
}

}  // namespace
}  // namespace argiope
