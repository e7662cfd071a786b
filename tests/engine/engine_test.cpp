// An engine that owns its store, and the book that is the same class in its process and beside it.
#include <gmock/gmock.h>

#include "argiope/time/time_zone.hpp"
#include "engine/broker_fixture.hpp"
#include "support/slow_store.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class EngineTest : public BrokerTest {
 protected:
  static Schedule every(Duration interval, std::string queue = "default") {
    Schedule schedule{.name = "s", .trigger = Trigger::every(interval, parse_timestamp("2026-01-01").value()).value()};
    schedule.job.queue = std::move(queue);
    return schedule;
  }
  TemporaryFolder folder_;
  std::string where_ = "sqlite:" + folder_.file("jobs.db");
};

// --- by name ---------------------------------------------------------------------------------------------------------

TEST_F(EngineTest, OwnsTheStoreItWasGivenTheNameOf) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    JobId id = 0;
    {
      Engine engine = value_or_throw(co_await Engine::open(where_));
      id = value_or_throw(co_await engine.book().put(job("q", "kept"))).id;
      EXPECT_TRUE(has_owner(where_));
      value_or_throw(co_await engine.close());
    }
    EXPECT_FALSE(has_owner(where_));
    {
      Engine engine = value_or_throw(co_await Engine::open(where_));
      EXPECT_EQ(value_or_throw(co_await engine.book().get(id)).payload, "kept");
    }  // not closed
    EXPECT_FALSE(has_owner(where_));
    EXPECT_EQ((co_await Engine::open("nothing:here")).error().code, Errc::invalid_input);
  }));
}

TEST_F(EngineTest, ASecondOneIsRefusedUnlessTheFirstEndsSoon) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    auto first = std::make_unique<Engine>(value_or_throw(co_await Engine::open(where_)));
    const TimePoint start = loop_.time();
    EXPECT_EQ((co_await Engine::open(where_, {.owner_limit = 3s})).error().code, Errc::busy);
    EXPECT_GE(loop_.time() - start, 3s);
    loop_.call_later(1s, [&] { first.reset(); });
    EXPECT_TRUE(co_await Engine::open(where_, {.owner_limit = 3s}));
  }));
}

TEST_F(EngineTest, AStandbyWaitsForAsLongAsThereIsAnOwner) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    auto first = std::make_unique<Engine>(value_or_throw(co_await Engine::open(where_)));
    loop_.call_later(1h, [&] { first.reset(); });
    const TimePoint start = loop_.time();
    EXPECT_TRUE(co_await Engine::open(where_, {.owner_limit = Duration::max()}));
    EXPECT_GE(loop_.time() - start, 1h);
    EXPECT_LE(loop_.time() - start, 1h + 2s);
  }));
}

TEST_F(EngineTest, MovesWithItsBookWhereItIs) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    Engine engine = value_or_throw(co_await Engine::open(store_));
    Book& book = engine.book();
    Engine moved = std::move(engine);
    EXPECT_EQ(&moved.book(), &book);
    value_or_throw(co_await book.put(job("q")));
    moved = value_or_throw(co_await Engine::open("memory:"));  // lets go of the first store
    store_.reopen();
    EXPECT_EQ(value_or_throw(co_await moved.book().queues()).size(), 0u);
    value_or_throw(co_await moved.close());
  }));
}

TEST_F(EngineTest, ABookBesideItIsOpenedByNameAndKnowsThatThereIsAnOwner) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    Book alone = value_or_throw(co_await Book::open(where_));
    const JobId id = value_or_throw(co_await alone.put(job("q"))).id;
    EXPECT_EQ(value_or_throw(co_await alone.explain(id)).reason, WaitReason::no_owner);
    Engine engine = value_or_throw(co_await Engine::open(where_));
    Book beside = value_or_throw(co_await Book::open(where_));
    EXPECT_TRUE(has_owner(where_));  // which the book's look has not ended
    EXPECT_EQ(value_or_throw(co_await beside.explain(id)).reason, WaitReason::none);
    EXPECT_EQ(value_or_throw(co_await engine.book().explain(id)).reason, WaitReason::no_worker);
    value_or_throw(co_await beside.pause("q"));
    EXPECT_EQ(value_or_throw(co_await beside.explain(id)).reason, WaitReason::queue_paused);
    value_or_throw(beside.close());
    EXPECT_EQ((co_await beside.get(id)).error().code, Errc::cancelled);
    value_or_throw(co_await engine.close());
  }));
}

TEST_F(EngineTest, WhatAnotherProcessDoesWhileAWaitingCallerIsPutFor) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    Engine engine = value_or_throw(co_await Engine::open(where_));
    value_or_throw(co_await engine.book().configure("q", {}));
    Book beside = value_or_throw(co_await Book::open(where_));
    Random random{20261123};
    QueueConfig limited;
    limited.limits.concurrency = limited.key_limits.concurrency = 1;
    JobId next = 1;
    for (int round = 0; round < 60; ++round) {
      Task<Result<std::vector<LeasedJob>>> leasing = loop_.create_task(engine.lease({.queues = {"q"}, .worker = "w"}));
      co_await sleep(1s);
      Task<Result<PutReply>> putting;
      Task<Result<void>> disturbing;
      const auto disturb = [&]() -> Coro<Result<void>> {
        switch (round % 3) {
          case 0: return beside.cancel(next);
          case 1: return beside.pause("q");
          default: return beside.configure("q", limited);
        }
      };
      const bool put_first = random.chance(0.5);
      if (put_first) putting = loop_.create_task(engine.book().put(job("q", "x", 0, "k")));
      disturbing = loop_.create_task(disturb());
      if (!put_first) putting = loop_.create_task(engine.book().put(job("q", "x", 0, "k")));
      const Result<void> disturbed = co_await disturbing;
      const JobId id = value_or_throw(co_await putting).id;
      EXPECT_EQ(id, next++);
      value_or_throw(co_await beside.resume("q"));

      const bool was_cancelled = round % 3 == 0 && disturbed.has_value();
      // Then the caller waits for the next one, and a run that has begun is told to stop.
      if (was_cancelled) value_or_throw(co_await engine.book().put(job("q", "y", 0, "k"))), ++next;
      const auto leased = value_or_throw(co_await leasing);
      EXPECT_EQ(leased.size(), 1u);
      EXPECT_EQ(engine.running().size(), 1u);
      EXPECT_EQ(value_or_throw(co_await engine.book().get(leased.at(0).job.id)).state, JobState::running);
      (void)value_or_throw(co_await engine.settle(leased.at(0).token, {}));
      if (was_cancelled && leased.at(0).job.id == id) {
        const auto other = value_or_throw(co_await engine.lease({.queues = {"q"}, .worker = "w"}));
        EXPECT_EQ(other.at(0).job.payload, "y");
        (void)value_or_throw(co_await engine.settle(other.at(0).token, {}));
      }
      value_or_throw(co_await beside.configure("q", {}));
      EXPECT_TRUE(value_or_throw(co_await beside.list({.queue = "q"})).empty()) << "round " << round;
    }
    value_or_throw(beside.close());
    value_or_throw(co_await engine.close());
  }));
}

// --- schedules -------------------------------------------------------------------------------------------------------

TEST_F(EngineTest, ReplacesSchedulesInOneTransactionAndThoseThatAreChangedMeanwhileAfterIt) {
  SlowStore slow(store_);
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    Book book = value_or_throw(co_await Book::open(slow));
    Book beside = value_or_throw(co_await Book::open(store_));
    const auto named = [](std::string name, Duration interval) {
      Schedule schedule = every(interval);
      schedule.name = std::move(name);
      return schedule;
    };
    (void)value_or_throw(co_await book.schedules().add_all({named("a", 1min), named("b", 1min)}));
    slow.times_schedules_put = 0;
    auto replies = value_or_throw(co_await book.schedules().add_all(
        {named("a", 2min), named("b", 2min), named("c", 2min)}, ConflictPolicy::replace));
    EXPECT_EQ(slow.times_schedules_put, 1u);
    EXPECT_EQ(replies[1].outcome, AddOutcome::replaced);
    EXPECT_EQ(replies[2].outcome, AddOutcome::added);

    // While "b" is looked at.
    slow.delay = 1s;
    Task<void> editing = loop_.create_task(keeping([&]() -> Coro<void> {
      co_await sleep(1500ms);
      (void)value_or_throw(co_await beside.schedules().pause("a"));
    }));
    replies = value_or_throw(
        co_await book.schedules().add_all({named("a", 3min), named("b", 3min)}, ConflictPolicy::replace));
    EXPECT_EQ(slow.times_schedules_put, 3u);
    EXPECT_EQ(replies[0].outcome, AddOutcome::replaced);
    EXPECT_EQ(replies[1].outcome, AddOutcome::replaced);
    const ScheduleStatus changed = value_or_throw(co_await beside.schedules().get("a"));
    EXPECT_EQ(changed.schedule->trigger, every(3min).trigger);
    EXPECT_TRUE(changed.place.paused) << "that it was paused meanwhile is not undone";
    co_await editing;
  }));
}

TEST_F(EngineTest, OfSchedulesOfOneNameTheLastOneIsThere) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    Book book = value_or_throw(co_await Book::open(store_));
    const auto replies =
        value_or_throw(co_await book.schedules().add_all({every(1min), every(2min)}, ConflictPolicy::replace));
    EXPECT_EQ(replies[0].outcome, AddOutcome::added);
    EXPECT_EQ(replies[1].outcome, AddOutcome::replaced);
    EXPECT_EQ(value_or_throw(co_await book.schedules().get("s")).schedule->trigger, every(2min).trigger);
  }));
}

// --- the same rules in both books ------------------------------------------------------------------------------------

class BothBooks : public EngineTest, public testing::WithParamInterface<bool> {
 protected:
  // `body` with the owner's book, or with one beside him.
  template <class Body>
  void with_book(Body body) {
    with_broker([&]() -> Coro<void> {
      Book beside = value_or_throw(co_await Book::open(store_));
      co_await body(GetParam() ? engine_->book() : beside);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Books, BothBooks, testing::Bool(),
                         [](const auto& about) { return about.param ? "owner" : "beside"; });

TEST_P(BothBooks, PutEachByItselfAndAllOrNone) {
  with_book([&](Book& book) -> Coro<void> {
    value_or_throw(co_await book.configure("q", {.max_payload_bytes = 3}));
    const auto each = value_or_throw(co_await book.put_each({job("q", "1"), job("q", "1234"), job(""), job("q", "2")}));
    EXPECT_TRUE(each[0]);
    EXPECT_EQ(each[1].error().message, "a payload of 4 bytes: queue \"q\" takes at most 3");
    EXPECT_EQ(each[2].error().code, Errc::invalid_input);
    EXPECT_TRUE(each[3]);
    EXPECT_EQ((co_await book.put_all({job("q", "3"), job("q", "1234")})).error().code, Errc::too_large);
    NewJob unknown = job("q");
    unknown.waits_for = {99};
    EXPECT_EQ((co_await book.put_all({job("q", "3"), unknown})).error().code, Errc::invalid_input);
    EXPECT_EQ(value_or_throw(co_await book.list({})).size(), 2u);
    const auto batch = value_or_throw(co_await book.put_batch({job("q", "4"), job("q", "5")}, job("q", "end")));
    EXPECT_EQ(batch.size(), 3u);
    EXPECT_EQ(value_or_throw(co_await book.get(batch[2].id)).pending, 2u);
    EXPECT_EQ(value_or_throw(co_await book.explain(batch[2].id)).reason, WaitReason::other_jobs);
  });
}

TEST_P(BothBooks, AFullQueueRefusesOrIsWaitedFor) {
  with_book([&](Book& book) -> Coro<void> {
    value_or_throw(co_await book.configure("full", {.capacity = 2, .at_capacity = CapacityPolicy::refuse}));
    value_or_throw(co_await book.put(job("full")));
    EXPECT_EQ((co_await book.put_all({job("full"), job("full")})).error().message,
              "queue \"full\" is full: it holds 1 jobs, and at most 2");
    value_or_throw(co_await book.put(job("full")));
    EXPECT_EQ((co_await book.put(job("full"))).error().code, Errc::refused);

    value_or_throw(co_await book.configure("waits", {.capacity = 2, .at_capacity = CapacityPolicy::wait}));
    EXPECT_EQ((co_await book.put_all({job("waits"), job("waits"), job("waits")})).error().code, Errc::refused);
    const JobId first = value_or_throw(co_await book.put(job("waits"))).id;
    auto both = loop_.create_task(book.put_all({job("waits"), job("waits")}));
    co_await sleep(1min);
    EXPECT_FALSE(both.done());
    value_or_throw(co_await book.erase(first));
    EXPECT_EQ(value_or_throw(co_await both).size(), 2u);
  });
}

TEST_P(BothBooks, ChangesSayWhatTheJobsStateDoesNotAllow) {
  with_book([&](Book& book) -> Coro<void> {
    value_or_throw(co_await book.configure("q", {.keep_done = 1h, .keep_cancelled = 1h}));
    const JobId id = value_or_throw(co_await book.put(job("q"))).id;
    EXPECT_EQ((co_await book.kick(id)).error().message, "job 1: it is ready");
    EXPECT_TRUE(co_await book.set_priority(id, 7));
    EXPECT_TRUE(co_await book.set_due(id, loop_.clock().wall_now() + 1h));
    EXPECT_EQ(value_or_throw(co_await book.explain(id)).until, loop_.clock().wall_now() + 1h);
    EXPECT_TRUE(co_await book.kick(id));
    co_await sleep(1s);  // the owner has heard of it
    const auto leased = value_or_throw(co_await engine_->lease({.queues = {"q"}, .worker = "w"}));
    EXPECT_EQ((co_await book.erase(id)).error().message, "job 1: it runs");
    EXPECT_TRUE(co_await book.cancel(id, "not wanted"));
    co_await sleep(1s);
    EXPECT_TRUE(value_or_throw(co_await engine_->settle(leased[0].token, {.outcome = Outcome::retry})));
    const JobRecord record = value_or_throw(co_await book.get(id));
    EXPECT_EQ(record.state, JobState::cancelled);
    EXPECT_EQ(record.error, "not wanted");
    EXPECT_EQ((co_await book.cancel(id)).error().message, "job 1: it is cancelled");
    EXPECT_TRUE(co_await book.erase(id));
    EXPECT_EQ((co_await book.erase(id)).error().message, "job 1: there is no such job");
    const auto several = value_or_throw(co_await book.change({{.id = 1, .kind = ChangeKind::kick}}));
    EXPECT_EQ(several.at(0).outcome, ChangeOutcome::not_found);
  });
}

TEST_P(BothBooks, ADelayedJobWhoseTimeHasComeIsReady) {
  with_book([&](Book& book) -> Coro<void> {
    for (int i = 0; i < 150; ++i) value_or_throw(co_await book.put(delayed("q", 10s)));
    value_or_throw(co_await book.put(delayed("q", 1h)));
    EXPECT_EQ(value_or_throw(co_await book.counts("q")).at(0).second.delayed, 151u);
    co_await sleep(10s);
    const StateCounts counts = value_or_throw(co_await book.counts()).at(0).second;
    EXPECT_EQ(counts.ready, 150u);
    EXPECT_EQ(counts.delayed, 1u);
    EXPECT_EQ(value_or_throw(co_await book.get(1)).state, JobState::ready);
    EXPECT_EQ(value_or_throw(co_await book.list({.state = JobState::delayed})).size(), 1u);
  });
}

TEST_P(BothBooks, RunASchedulesJobNow) {
  with_book([&](Book& book) -> Coro<void> {
    value_or_throw(co_await book.schedules().add(every(24h)));
    const JobId id = value_or_throw(co_await book.schedules().run_now("s"));
    const auto leased = value_or_throw(co_await engine_->lease({.queues = {"default"}, .worker = "w"}));
    EXPECT_EQ(leased.at(0).job.id, id);
    value_or_throw(co_await book.configure("small", {.max_payload_bytes = 1}));
    value_or_throw(co_await book.schedules().modify("s", [](Schedule& schedule) {
      schedule.job.queue = "small";
      schedule.job.payload = "too much";
    }));
    co_await sleep(1s);
    EXPECT_EQ((co_await book.schedules().run_now("s")).error().code, Errc::too_large);
    EXPECT_EQ((co_await book.schedules().run_now("t")).error().code, Errc::not_found);
  });
}

TEST_P(BothBooks, APutThatWaitsForRoomHearsOfAnotherCapacity) {
  with_book([&](Book& book) -> Coro<void> {
    value_or_throw(co_await book.configure("q", {.capacity = 1, .at_capacity = CapacityPolicy::wait}));
    value_or_throw(co_await book.put(job("q")));
    auto putting = loop_.create_task(book.put(job("q")));
    co_await sleep(1min);
    EXPECT_FALSE(putting.done());
    value_or_throw(co_await engine_->book().configure("q", {.capacity = 2, .at_capacity = CapacityPolicy::wait}));
    co_await sleep(1min);
    EXPECT_TRUE(putting.done());
    putting.cancel();  // where it still waits
  });
}

TEST_P(BothBooks, APauseKeepsWhatTheChangeBeforeItHasSet) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    SlowStore slow(store_);
    Engine engine = value_or_throw(co_await Engine::open(slow));
    Book beside = value_or_throw(co_await Book::open(slow));
    Book& book = GetParam() ? engine.book() : beside;
    value_or_throw(co_await book.configure("q", {}));
    slow.delay = 1s;
    auto configuring = loop_.create_task(book.configure("q", {.max_payload_bytes = 7}));
    auto pausing = loop_.create_task(book.pause("q"));
    value_or_throw(co_await configuring);
    value_or_throw(co_await pausing);
    const StoredQueue queue = value_or_throw(co_await book.queue("q"));
    EXPECT_EQ(queue.config.max_payload_bytes, 7u);
    EXPECT_TRUE(queue.config.limits.paused);
    value_or_throw(co_await engine.close());
  }));
}

TEST_P(BothBooks, ScheduledTimesAreExplainedInWholeMilliseconds) {
  with_book([&](Book& book) -> Coro<void> {
    Schedule schedule = every(1h);
    schedule.trigger = schedule.trigger.with_jitter(10min, 1);
    value_or_throw(co_await book.schedules().add(std::move(schedule)));
    const ScheduleExplanation why = value_or_throw(co_await book.schedules().explain("s"));
    EXPECT_NE(why.due_at, why.next);
    EXPECT_EQ(why.due_at, std::chrono::floor<std::chrono::milliseconds>(why.due_at.value()));
  });
}

// --- schedules -------------------------------------------------------------------------------------------------------

TEST_F(EngineTest, ItsSchedulerHearsOfChangesWhoseWaitsWereCancelled) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    SlowStore slow(store_);
    Engine engine = value_or_throw(co_await Engine::open(slow));
    ScheduleBook& schedules = engine.book().schedules();
    slow.delay = 2s;
    const auto cancelled_under_way = [&](auto call) -> Coro<void> {
      auto calling = loop_.create_task(std::move(call));
      co_await sleep(3s);  // an edit has looked, and is being written
      calling.cancel();
      co_await sleep(1min);
    };
    auto adding = loop_.create_task(schedules.add(every(1h)));
    co_await sleep(1s);
    adding.cancel();
    co_await sleep(1min);
    EXPECT_TRUE(adding.cancelled());
    EXPECT_EQ(engine.scheduler().size(), 1u);
    EXPECT_TRUE(engine.scheduler().next_due());
    co_await cancelled_under_way(schedules.pause("s"));
    EXPECT_FALSE(engine.scheduler().next_due());
    co_await cancelled_under_way(schedules.resume("s"));
    EXPECT_TRUE(engine.scheduler().next_due());
    co_await cancelled_under_way(schedules.remove("s"));
    EXPECT_EQ(engine.scheduler().size(), 0u);
    value_or_throw(co_await engine.close());
  }));
}

// A user's function is not called when whoever asked has gone.
TEST_F(EngineTest, AnEditThatIsCancelledBeforeItsFunctionIsCalledDoesNotCallIt) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    SlowStore slow(store_);
    Engine engine = value_or_throw(co_await Engine::open(slow));
    value_or_throw(co_await engine.book().schedules().add(every(1h)));
    slow.delay = 2s;
    bool called = false;
    auto editing = loop_.create_task(engine.book().schedules().modify("s", [&](Schedule&) { called = true; }));
    co_await sleep(1s);
    editing.cancel();
    co_await sleep(1min);
    EXPECT_FALSE(called);
    value_or_throw(co_await engine.close());
  }));
}

TEST_F(EngineTest, ThatFiresNoSchedulesStillPutsTheirRuns) {
  with_broker(
      [&]() -> Coro<void> {
        EXPECT_THROW((void)engine_->scheduler(), std::logic_error);
        value_or_throw(co_await engine_->book().schedules().add(every(24h)));
        EXPECT_EQ(value_or_throw(co_await engine_->book().schedules().explain("s")).reason,
                  ScheduleReason::scheduler_stopped);
        auto leasing = loop_.create_task(engine_->lease({.queues = {"default"}, .worker = "w"}));
        const JobId id = value_or_throw(co_await engine_->book().schedules().run_now("s"));
        EXPECT_EQ(value_or_throw(co_await leasing).at(0).job.id, id);  // it has heard of it at once
      },
      {.poll_interval = 24h, .fires_schedules = false});
}

TEST_F(EngineTest, MayBeDestroyedWhileItsSchedulesFire) {
  for (int steps = 0; steps < 60; ++steps) {
    auto inner = std::make_unique<MemoryStore>();
    auto store = std::make_unique<SlowStore>(*inner);
    loop_.run_until_complete(keeping([&]() -> Coro<void> {
      auto engine = co_await open_engine(*store);
      int begun = 0;
      value_or_throw(co_await engine->scheduler().add_executor("default"));
      value_or_throw(engine->scheduler().add_function("default", "", [&](JobContext&) -> Coro<void> {
        ++begun;
        co_await sleep(2s);
      }));
      engine->scheduler().add_listener(kAllScheduleEvents, [](const ScheduleEvent&) {});
      value_or_throw(co_await engine->book().schedules().add(every(1s)));
      store->delay = 300ms;
      engine->scheduler().start();
      std::vector<Task<void>> calls;
      const auto start = [&](auto call) {
        calls.push_back(loop_.create_task(
            [](auto under_way) -> Coro<void> { (void)co_await std::move(under_way); }(std::move(call))));
      };
      start(engine->book().schedules().add_all({every(1min)}, ConflictPolicy::replace));
      start(engine->book().schedules().pause("s"));
      start(engine->book().schedules().run_now("s"));
      start(engine->book().schedules().explain("s"));
      start(engine->book().schedules().remove_all());
      start(engine->scheduler().remove_executor("default"));
      for (int i = 0; i < steps; ++i) {
        if (i % 4 == 3) {
          co_await sleep(200ms);
        } else {
          co_await yield_now();
        }
      }
      if (steps % 3 == 0) start(engine->close());
      engine.reset();
      store.reset();
      inner.reset();
      const int before = begun;
      co_await sleep(1min);
      EXPECT_EQ(begun, before);
      for (const Task<void>& call : calls) EXPECT_TRUE(call.done()) << "after " << steps << " steps";
    }));
  }
}

TEST_F(EngineTest, AScheduleListenerMayDestroyIt) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    auto engine = co_await open_engine(store_);
    engine->scheduler().add_listener(static_cast<std::uint32_t>(ScheduleEventKind::job_submitted),
                                     [&](const ScheduleEvent&) { engine.reset(); });
    value_or_throw(co_await engine->book().schedules().add(every(1s)));
    engine->scheduler().start();
    co_await sleep(1min);
    EXPECT_EQ(engine, nullptr);
  }));
}

}  // namespace
}  // namespace argiope
