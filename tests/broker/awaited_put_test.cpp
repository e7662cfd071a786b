// Jobs for which a caller waits when they are put: put and leased in one transaction.
#include "argiope/async/sleep.hpp"
#include "broker/broker_fixture.hpp"
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
      co_await engine_->book().configure("q", {});
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
    const auto listener =
        engine_->add_listener(kAllJobEvents, [&](const JobEvent& event) { told += std::string(to_string(event.kind)) + ' '; });
    Leasing leasing = co_await caller();
    co_await put(job("q"));
    const auto leased = value_or_throw(co_await leasing);
    EXPECT_TRUE(co_await settle(leased.at(0).token));
    EXPECT_EQ(told, "added leased done ");
    engine_->remove_listener(listener);
  });
}

TEST_F(AwaitedPutTest, LimitsAreKept) {
  for (const QueueConfig& config : {QueueConfig{.limits = {.rate = 1, .burst = 1}},
                                    QueueConfig{.limits = {.concurrency = 1}}, QueueConfig{.limits = {.paused = true}},
                                    QueueConfig{.key_limits = {.rate = 1}}, QueueConfig{.key_limits = {.concurrency = 1}},
                                    QueueConfig{.key_limits = {.delay = 1s}}}) {
    with_slow_broker([&]() -> Coro<void> {
      EXPECT_TRUE(co_await engine_->book().configure("q", config));
      Leasing leasing = co_await caller({"q"}, 9);
      for (int i = 0; i < 2; ++i) co_await put(job("q"));
      EXPECT_EQ(slow_.leased_at_put, 0u);
      EXPECT_EQ(engine_->running().size(), config.limits.paused ? 0u : 1u);
      leasing.cancel();
      for (int i = 0; i < 9; ++i) co_await yield_now();
      for (const RunningJob& run : engine_->running()) EXPECT_TRUE(co_await settle(run.token));
      EXPECT_TRUE(co_await engine_->book().configure("q", {}));
      co_await payloads("q");
      for (const std::uint64_t token : std::exchange(tokens_, {})) EXPECT_TRUE(co_await settle(token));
    });
  }
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

TEST_F(AwaitedPutTest, OneThatIsRefusedLeavesTheCallerWaiting) {
  with_slow_broker([&]() -> Coro<void> {
    Leasing leasing = co_await caller({"q"}, 2);
    std::vector<NewJob> jobs{job("q", "good"), job("q", "bad")};
    jobs[1].key = std::string(kMostNameBytes + 1, 'k');
    const auto replies = value_or_throw(co_await engine_->book().put_each(std::move(jobs)));
    EXPECT_TRUE(replies[0]);
    EXPECT_EQ(replies[1].error().code, Errc::invalid_input);
    EXPECT_EQ(co_await payloads_of(leasing), "good ");
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

TEST_F(AwaitedPutTest, ACallerWhoseOtherQueueHasAJobTakesTheMoreImportant) {
  with_slow_broker([&]() -> Coro<void> {
    EXPECT_TRUE(co_await engine_->book().configure("other", {}));
    auto leasing = loop_.create_task(
        engine_->lease({.queues = {"q", "other"}, .most_important_first = true, .worker = "w"}));
    co_await sleep(1s);
    auto high = loop_.create_task(put(job("other", "high", 9)));
    auto low = loop_.create_task(put(job("q", "low", 1)));
    EXPECT_EQ(co_await payloads_of(leasing), "high ");
    co_await high;
    co_await low;
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

TEST_F(AwaitedPutTest, WhoHearsOfItFirstMayCancelIt) {
  with_slow_broker([&]() -> Coro<void> {
    std::vector<Task<Result<void>>> cancels;
    const auto listener = engine_->add_listener(kAllJobEvents, [&](const JobEvent& event) {
      if (event.kind == JobEventKind::added) cancels.push_back(loop_.create_task(engine_->book().cancel(event.id)));
    });
    Leasing leasing = co_await caller();
    const JobId id = co_await put(job("q", "x"));
    co_await sleep(1s);
    EXPECT_TRUE(co_await cancels.at(0));
    if (leasing.done()) {
      EXPECT_TRUE(co_await settle(leasing.result()->at(0).token, {.outcome = Outcome::release}));
    }
    EXPECT_EQ(value_or_throw(co_await store_.get(id)), std::nullopt);
    leasing.cancel();
    engine_->remove_listener(listener);
  });
}

}  // namespace
}  // namespace argiope
