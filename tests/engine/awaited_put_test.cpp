// Jobs for which a caller waits when they are put: put and leased in one transaction.
#include <algorithm>

#include "argiope/async/event_loop.hpp"
#include "engine/broker_fixture.hpp"
#include "support/slow_store.hpp"

namespace argiope {
namespace {

class AwaitedPutTest : public BrokerTest {
 protected:
  using Leasing = Task<Result<std::vector<LeasedJob>>>;

  // As with_broker(), on the slow store.
  template <class Body>
  void with_slow_broker(Body body, EngineOptions options = {}) {
    loop_.run_until_complete(keeping([&]() -> Coro<void> {
      engine_ = co_await open_engine(slow_, options);
      value_or_throw(co_await engine_->book().configure("q", {}));
      co_await body();
      if (engine_) EXPECT_TRUE(co_await engine_->close());
      engine_.reset();
    }));
  }
  // One that waits.
  Coro<Leasing> caller(std::vector<std::string> queues = {"q"}, std::size_t most = 1) {
    Leasing leasing = loop_.create_task(engine_->lease({.queues = std::move(queues), .most = most, .worker = "w"}));
    co_await sleep(1s);
    EXPECT_FALSE(leasing.done());
    co_return leasing;
  }
  static Coro<std::string> payloads_of(Leasing leasing) {
    std::string all;
    for (const LeasedJob& leased : value_or_throw(co_await leasing)) all += leased.job.payload + ' ';
    co_return all;
  }
  Coro<JobState> state_of(JobId id) { co_return value_or_throw(co_await store_.get(id)).value().state; }

  SlowStore slow_{store_};
};

TEST_F(AwaitedPutTest, TheCallerHasItWhenThePutIsAnswered) {
  with_slow_broker([&]() -> Coro<void> {
    Leasing leasing = co_await caller();
    slow_.delay = 10ms;
    const TimePoint begun = loop_.time();
    const JobId id = co_await put(job("q", "x"));
    const auto leased = value_or_throw(co_await leasing);
    EXPECT_EQ(loop_.time() - begun, 10ms) << "one answer of the store, not one after the other";
    EXPECT_EQ(slow_.leased_at_put, 1u);
    EXPECT_EQ(leased.at(0).job.id, id);
    EXPECT_EQ(leased.at(0).job.payload, "x");
    EXPECT_EQ(leased.at(0).job.state, JobState::running);
    EXPECT_EQ(leased.at(0).attempt, 1u);
    EXPECT_EQ(co_await state_of(id), JobState::running);
    EXPECT_EQ(engine_->running().size(), 1u);
    EXPECT_TRUE(co_await settle(leased.at(0).token));
    EXPECT_EQ(value_or_throw(co_await store_.get(id)), std::nullopt);
  });
}

TEST_F(AwaitedPutTest, TheMostImportantGoToTheCallersInTheirOrder) {
  with_slow_broker([&]() -> Coro<void> {
    Leasing first = co_await caller();
    Leasing others = co_await caller({"other", "q"}, 2);
    std::vector<NewJob> jobs;
    for (const int priority : {1, 4, 2, 3}) jobs.push_back(job("q", std::to_string(priority), priority));
    for (const auto& reply : value_or_throw(co_await engine_->book().put_each(std::move(jobs)))) EXPECT_TRUE(reply);
    EXPECT_EQ(co_await payloads_of(first), "4 ");
    EXPECT_EQ(co_await payloads_of(others), "3 2 ");
    EXPECT_EQ(slow_.leased_at_put, 3u);
    EXPECT_EQ(co_await payloads("q"), "1 ");
  });
}

TEST_F(AwaitedPutTest, EventsComeInTheirOrder) {
  with_slow_broker([&]() -> Coro<void> {
    std::string told;
    const auto listener = engine_->add_listener(
        kAllJobEvents, [&](const JobEvent& event) { told += std::string(to_string(event.kind)) + ' '; });
    Leasing leasing = co_await caller();
    co_await put(job("q"));
    const auto leased = value_or_throw(co_await leasing);
    EXPECT_TRUE(co_await settle(leased.at(0).token));
    EXPECT_EQ(told, "added leased done ");
    engine_->remove_listener(listener);
  });
}

TEST_F(AwaitedPutTest, LimitsAreKept) {
  for (const QueueConfig& config :
       {QueueConfig{.limits = {.rate = 1, .burst = 1}}, QueueConfig{.limits = {.concurrency = 1}},
        QueueConfig{.limits = {.paused = true}}, QueueConfig{.key_limits = {.rate = 1}},
        QueueConfig{.key_limits = {.concurrency = 1}}, QueueConfig{.key_limits = {.delay = 1s}}}) {
    with_slow_broker([&]() -> Coro<void> {
      EXPECT_TRUE(co_await engine_->book().configure("q", config));
      Leasing leasing = co_await caller({"q"}, 9);
      Leasing other = co_await caller({"q"}, 9);
      EXPECT_TRUE(co_await engine_->book().put_each({job("q"), job("q")}));
      EXPECT_EQ(slow_.leased_at_put, 0u);
      const bool delays = config.key_limits.delay > Duration{};  // which counts from the end of a run
      EXPECT_EQ(engine_->running().size(), config.limits.paused ? 0u : delays ? 2u : 1u);
      leasing.cancel();
      other.cancel();
      for (int i = 0; i < 9; ++i) co_await yield_now();
      for (const RunningJob& run : engine_->running()) EXPECT_TRUE(co_await settle(run.token));
      EXPECT_TRUE(co_await engine_->book().configure("q", {}));
      co_await payloads("q");
      for (const std::uint64_t token : std::exchange(tokens_, {})) EXPECT_TRUE(co_await settle(token));
    });
  }
}

// Whatever comes while the put is on its way holds for its job, too.
TEST_F(AwaitedPutTest, LimitsThatAreSetMeanwhileAreKept) {
  with_slow_broker([&]() -> Coro<void> {
    Leasing leasing = co_await caller();
    slow_.delay = 10ms;
    auto putting = loop_.create_task(put(job("q", "x", 0, "k")));
    co_await sleep(5ms);
    EXPECT_EQ(slow_.leased_at_put, 1u);
    EXPECT_TRUE(engine_->rest_key("q", "k", loop_.time() + 1h));
    const JobId id = co_await putting;
    co_await sleep(1min);
    EXPECT_FALSE(leasing.done());
    EXPECT_EQ(co_await state_of(id), JobState::ready);
    EXPECT_EQ(co_await payloads_of(leasing), "x ") << "when the rest is over";
  });
}

TEST_F(AwaitedPutTest, AKeyThatRestsWaits) {
  with_slow_broker([&]() -> Coro<void> {
    EXPECT_TRUE(engine_->rest_key("q", "k", loop_.time() + 1h));
    Leasing leasing = co_await caller();
    co_await put(job("q", "rests", 9, "k"));
    co_await put(job("q", "free", 0, "other"));
    EXPECT_EQ(co_await payloads_of(leasing), "free ");
  });
}

TEST_F(AwaitedPutTest, PutsThatMayAddNoJobTakeTheLongWay) {
  with_slow_broker([&]() -> Coro<void> {
    NewJob unique = job("q", "unique");
    unique.unique = "u";
    unique.due_at = loop_.clock().wall_now() + 1h;
    co_await put(unique);
    Leasing leasing = co_await caller();
    unique.due_at = {};
    co_await put(unique);
    EXPECT_FALSE(leasing.done()) << "that one is kept";
    co_await put(delayed("q", 1h));
    NewJob waits = job("q", "waits");
    waits.waits_for = {1};
    co_await put(waits);
    NewJob named = job("q", "named");
    named.name = "n";
    co_await put(named);
    EXPECT_EQ(co_await payloads_of(leasing), "named ");
    EXPECT_EQ(slow_.leased_at_put, 0u);
  });
}

TEST_F(AwaitedPutTest, OneThatIsRefusedLeavesTheCallersWaitingInTheirOrder) {
  with_slow_broker([&]() -> Coro<void> {
    Leasing first = co_await caller();
    Leasing second = co_await caller();
    NewJob bad = job("q", "bad");
    bad.key = std::string(kMostNameBytes + 1, 'k');
    EXPECT_EQ((co_await engine_->book().put(bad)).error().code, Errc::invalid_input);
    EXPECT_FALSE(first.done());
    co_await put(job("q", "good"));
    EXPECT_EQ(co_await payloads_of(first), "good ");
    co_await put(job("q", "better"));
    EXPECT_EQ(co_await payloads_of(second), "better ");
  });
}

TEST_F(AwaitedPutTest, LeasesThatAreWrittenInOneTurnKeepTheOrderOfTheirTokens) {
  with_slow_broker([&]() -> Coro<void> {
    EXPECT_TRUE(co_await engine_->book().configure("other", {}));
    for (int turns = 0; turns < 8; ++turns) {
      const JobId waiting = co_await put(job("other", "waits"));
      Leasing leasing = co_await caller();
      auto putting = loop_.create_task(put(job("q", "x")));
      for (int i = 0; i < turns; ++i) co_await yield_now();
      auto others = loop_.create_task(lease_all("other"));
      EXPECT_EQ(co_await payloads_of(leasing), "x ") << turns;
      co_await putting;
      const auto found = co_await others;
      EXPECT_EQ(found.at(0).job.id, waiting) << turns;
      for (const RunningJob& run : engine_->running()) EXPECT_TRUE(co_await settle(run.token));
    }
    EXPECT_GT(slow_.leased_at_put, 5u);  // one whose turn the other lease shares takes the long way
  });
}

TEST_F(AwaitedPutTest, AMoreImportantOneThatIsOnItsWayComesFirst) {
  with_slow_broker([&]() -> Coro<void> {
    slow_.delay = 10ms;
    auto high = loop_.create_task(put(job("q", "high", 9)));
    co_await sleep(1ms);
    Leasing leasing = loop_.create_task(engine_->lease({.queues = {"q"}, .worker = "w"}));
    co_await sleep(1ms);
    auto low = loop_.create_task(put(job("q", "low", 1)));
    EXPECT_EQ(co_await payloads_of(leasing), "high ");
    co_await high;
    co_await low;
    EXPECT_EQ(co_await payloads("q"), "low ");
  });
}

// Of the same queue or another, by whatever call it comes.
TEST_F(AwaitedPutTest, WhatWasPutBeforeComesFirst) {
  with_slow_broker([&]() -> Coro<void> {
    EXPECT_TRUE(co_await engine_->book().configure("other", {}));
    NewJob named = job("other", "high", 9);
    named.name = "n";
    for (int way = 0; way < 3; ++way) {
      slow_.delay = {};
      Leasing leasing =
          loop_.create_task(engine_->lease({.queues = {"q", "other"}, .most_important_first = true, .worker = "w"}));
      co_await sleep(1s);
      slow_.delay = 10ms;
      std::vector<Task<bool>> puts;
      const auto keep = [&](auto putting) {
        puts.push_back(loop_.create_task(
            [](auto put) -> Coro<bool> { co_return (co_await std::move(put)).has_value(); }(std::move(putting))));
      };
      if (way == 0) keep(engine_->book().put_all({named, job("other", "more", 8)}));
      if (way == 1) keep(engine_->book().put(named));
      if (way == 2) keep(engine_->book().put_each({job("q", "low", 1), named}));
      co_await sleep(1ms);
      if (way != 2) keep(engine_->book().put(job("q", "low", 1)));
      EXPECT_EQ(co_await payloads_of(leasing), "high ") << way;
      for (auto& putting : puts) EXPECT_TRUE(co_await putting) << way;
      slow_.delay = {};
      for (const RunningJob& run : engine_->running()) EXPECT_TRUE(co_await settle(run.token));
      co_await lease_all("q");
      co_await lease_all("other");
      for (const RunningJob& run : engine_->running()) EXPECT_TRUE(co_await settle(run.token));
    }
    EXPECT_EQ(slow_.leased_at_put, 0u);
  });
}

TEST_F(AwaitedPutTest, OneThatTookTheLongWayDoesNotMakeThoseAfterItTakeItToo) {
  with_slow_broker([&]() -> Coro<void> {
    co_await sleep(1s);
    slow_.delay = 10ms;
    auto first = loop_.create_task(put(job("q", "first")));  // nobody waits yet
    co_await sleep(1ms);
    Leasing one = loop_.create_task(engine_->lease({.queues = {"q"}, .worker = "w"}));
    Leasing two = loop_.create_task(engine_->lease({.queues = {"q"}, .worker = "w"}));
    co_await sleep(1ms);
    auto second = loop_.create_task(put(job("q", "second")));
    EXPECT_EQ(co_await payloads_of(one), "first ");
    EXPECT_EQ(co_await payloads_of(two), "second ");
    EXPECT_EQ(slow_.leased_at_put, 1u);
    co_await first;
    co_await second;
  });
}

TEST_F(AwaitedPutTest, QueuesStillShareByTheirWeights) {
  with_slow_broker([&]() -> Coro<void> {
    EXPECT_TRUE(co_await engine_->book().configure("r", {}));
    for (int i = 0; i < 100; ++i) {
      Leasing leasing = loop_.create_task(engine_->lease({.queues = {"q"}, .worker = "w"}));
      co_await yield_now();
      co_await put(job("q"));
      EXPECT_TRUE(co_await settle(value_or_throw(co_await leasing).at(0).token));
    }
    EXPECT_EQ(slow_.leased_at_put, 100u);
    for (int i = 0; i < 20; ++i) {
      co_await put(job("q", "q"));
      co_await put(job("r", "r"));
    }
    const auto leased = value_or_throw(co_await engine_->lease_now({.queues = {"q", "r"}, .most = 20}));
    const auto of_q = std::ranges::count_if(leased, [](const LeasedJob& one) { return one.job.payload == "q"; });
    EXPECT_NEAR(static_cast<double>(of_q), 10, 1);
  });
}

TEST_F(AwaitedPutTest, WhereTheCallerGoesAwayMeanwhileTheJobIsGivenBack) {
  with_slow_broker([&]() -> Coro<void> {
    for (const Duration delay : {Duration{}, Duration{10ms}}) {
      for (int turns = 0; turns < 12; ++turns) {
        Leasing leasing = co_await caller();
        slow_.delay = delay;
        auto putting = loop_.create_task(put(job("q", "x")));
        for (int i = 0; i < turns; ++i) co_await yield_now();
        const bool gave = leasing.done();
        leasing.cancel();
        const JobId id = co_await putting;
        co_await sleep(1s);
        slow_.delay = {};
        if (gave) EXPECT_TRUE(co_await settle(leasing.result()->at(0).token, {.outcome = Outcome::release}));
        EXPECT_EQ(co_await state_of(id), JobState::ready) << turns;
        const LeasedJob again = co_await one("q");
        EXPECT_EQ(again.job.id, id);
        EXPECT_TRUE(co_await settle(again.token));
      }
    }
    EXPECT_GT(slow_.leased_at_put, 12u);
  });
}

TEST_F(AwaitedPutTest, WhereTheEngineClosesMeanwhileTheJobIsGivenBack) {
  std::size_t given_back = 0;
  for (int turns = 0; turns < 12; ++turns) {
    slow_.delay = {};
    with_slow_broker([&]() -> Coro<void> {
      Leasing leasing = co_await caller();
      slow_.delay = 10ms;
      auto putting = loop_.create_task(engine_->book().put(job("q", "x")));
      for (int i = 0; i < turns; ++i) co_await yield_now();
      EXPECT_TRUE(co_await engine_->close());
      const auto reply = co_await putting;
      EXPECT_EQ(co_await payloads_of(leasing), "") << turns;
      if (!reply) co_return;  // it came too late
      ++given_back;
      EXPECT_EQ(co_await state_of(reply->id), JobState::ready) << turns;
      EXPECT_TRUE(co_await store_.change({{.id = reply->id, .kind = ChangeKind::erase}}));
    });
  }
  EXPECT_GT(given_back, 8u);
  EXPECT_GT(slow_.leased_at_put, 8u);
}

// The lease goes on as if the process had died, until the next owner ends it.
TEST_F(AwaitedPutTest, WhereTheEngineIsDestroyedMeanwhileNothingIsLost) {
  for (int turns = 0; turns < 12; ++turns) {
    slow_.delay = {};
    std::size_t before = 0, after = 0;
    bool is_put = false;
    with_slow_broker([&]() -> Coro<void> {
      before = value_or_throw(co_await store_.list({})).size();
      Leasing leasing = loop_.create_task(engine_->lease({.queues = {"q"}, .worker = "w"}));
      co_await sleep(1s);
      slow_.delay = 10ms;
      auto putting = loop_.create_task(engine_->book().put(job("q", "x")));
      for (int i = 0; i < turns; ++i) co_await yield_now();
      engine_.reset();
      EXPECT_TRUE((co_await leasing)->empty()) << turns;
      is_put = (co_await putting).has_value();
      co_await sleep(1s);
      after = value_or_throw(co_await store_.list({})).size();
      for (const JobRecord& record : value_or_throw(co_await store_.list({.state = JobState::ready}))) {
        EXPECT_TRUE(co_await store_.change({{.id = record.id, .kind = ChangeKind::cancel}}));
      }
    });
    EXPECT_TRUE(!is_put || after == before + 1) << turns;
  }
}

TEST_F(AwaitedPutTest, WhoHearsOfItFirstMayCancelItOrDestroyTheEngine) {
  for (const bool destroys : {false, true}) {
    with_slow_broker([&]() -> Coro<void> {
      std::vector<Task<Result<void>>> cancels;
      engine_->add_listener(kAllJobEvents, [&](const JobEvent& event) {
        if (event.kind != JobEventKind::added) return;
        if (destroys) return engine_.reset();
        cancels.push_back(loop_.create_task(engine_->book().cancel(event.id)));
      });
      Leasing leasing = co_await caller();
      auto putting = loop_.create_task(engine_->book().put(job("q", "x")));
      (void)co_await putting;
      co_await sleep(1s);
      if (destroys) {
        EXPECT_TRUE(value_or_throw(co_await leasing).empty());
        co_return;
      }
      EXPECT_TRUE(co_await cancels.at(0));
      if (leasing.done()) {
        EXPECT_TRUE(co_await settle(leasing.result()->at(0).token, {.outcome = Outcome::release}));
      }
      EXPECT_TRUE(value_or_throw(co_await store_.list({})).empty());
      leasing.cancel();
    });
  }
}

}  // namespace
}  // namespace argiope
