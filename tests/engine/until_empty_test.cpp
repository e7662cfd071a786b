// When a worker ends that works until its queues are empty: what it waits for, and what it leaves.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "argiope/engine/worker.hpp"
#include "engine/broker_fixture.hpp"

namespace argiope {
namespace {

class UntilEmptyTest : public BrokerTest {
 protected:
  Coro<void> configure(QueueConfig config) {
    value_or_throw(co_await engine_->book().configure("q", std::move(config)));
  }
  // Runs a worker of `q` to its end; how long that took.
  Coro<Duration> work(JobFunction function, WorkerOptions options = {.queues = {"q"}, .until_empty = true}) {
    Worker worker(*engine_, std::move(options));
    worker.add("q", std::move(function));
    const TimePoint begun = loop_.time();
    EXPECT_TRUE(co_await worker.run());
    counts_ = worker.counts();
    later_ = worker.due_later();
    co_return loop_.time() - begun;
  }
  static Coro<void> do_nothing(JobContext&) { co_return; }

  Worker::Counts counts_;
  Worker::DueLater later_;
};

TEST_F(UntilEmptyTest, EndsAtOnceWhereNothingIs) {
  with_broker([&]() -> Coro<void> {
    EXPECT_EQ(co_await work(do_nothing), 0s);
    co_await put(job("q"));
    EXPECT_EQ(co_await work(do_nothing), 0s);
    EXPECT_EQ(counts_.done, 1u);
    EXPECT_EQ(later_.jobs, 0u);
  });
}

TEST_F(UntilEmptyTest, WaitsForTheRateOfItsQueue) {
  with_broker([&]() -> Coro<void> {
    co_await configure({.limits = {.rate = 1, .burst = 1}});
    for (int i = 0; i < 5; ++i) co_await put(job("q"));
    const Duration took = co_await work(do_nothing);
    EXPECT_EQ(counts_.done, 5u);
    EXPECT_GE(took, 4s);
    EXPECT_LT(took, 5s);
  });
}

TEST_F(UntilEmptyTest, WaitsForARetryThatIsDueBeforeLong) {
  with_broker([&]() -> Coro<void> {
    co_await put(job("q"));
    const Duration took = co_await work([](JobContext& context) -> Coro<void> {
      if (context.attempt() < 3) throw RetryJob("busy", 30s);
      co_return;
    });
    EXPECT_EQ(took, 60s);
    EXPECT_EQ(counts_.done, 1u);
    EXPECT_EQ(counts_.failed, 2u);
  });
}

TEST_F(UntilEmptyTest, LeavesARetryThatIsDueLaterAndTellsOfIt) {
  with_broker([&]() -> Coro<void> {
    co_await put(job("q"));
    const WallTime begun = loop_.clock().wall_now();
    const JobFunction fails = [](JobContext&) -> Coro<void> {
      throw RetryJob("busy", 2min);
      co_return;
    };
    EXPECT_EQ(co_await work(fails), 0s);
    EXPECT_EQ(later_.jobs, 1u);
    EXPECT_EQ(later_.first, begun + 2min);
    co_await work(do_nothing, {.queues = {"q"}, .until_empty = true, .linger = 3min});
    EXPECT_EQ(loop_.clock().wall_now(), begun + 2min);
    EXPECT_EQ(counts_.done, 1u);
    EXPECT_EQ(later_.jobs, 0u);
  });
}

TEST_F(UntilEmptyTest, LeavesWhatWasPutWithALaterTime) {
  with_broker([&]() -> Coro<void> {
    const WallTime begun = loop_.clock().wall_now();
    co_await put(delayed("q", 1s));
    co_await put(delayed("q", 1h));
    EXPECT_EQ(co_await work(do_nothing), 0s);
    EXPECT_EQ(later_.jobs, 2u);
    EXPECT_EQ(later_.first, begun + 1s);
  });
}

TEST_F(UntilEmptyTest, LeavesQueuesThatArePausedOrHaveARateOfNothing) {
  with_broker([&]() -> Coro<void> {
    co_await put(job("q"));
    co_await configure({.limits = {.rate = 0}});
    EXPECT_EQ(co_await work(do_nothing), 0s);
    co_await configure({.limits = {.paused = true}});
    EXPECT_EQ(co_await work(do_nothing), 0s);
    EXPECT_EQ(counts_.done, 0u);
    co_await configure({});
    co_await work(do_nothing);
    EXPECT_EQ(counts_.done, 1u);
  });
}

TEST_F(UntilEmptyTest, WaitsForWhatRunsAtAnotherWorker) {
  with_broker([&]() -> Coro<void> {
    co_await put(job("q"));
    const LeasedJob elsewhere = co_await one("q");
    const Verdict failed{.outcome = Outcome::retry, .error = "broken", .delay = 0s};
    loop_.call_later(10s, [&] { loop_.create_task(settle(elsewhere.token, failed)); });
    EXPECT_EQ(co_await work(do_nothing), 10s);
    EXPECT_EQ(counts_.done, 1u);
  });
}

TEST_F(UntilEmptyTest, EndsWithItsLastRunAndWhatFollowsFromIt) {
  with_broker([&]() -> Coro<void> {
    co_await put(job("q", "first"));
    std::vector<std::string> ran;
    const Duration took = co_await work([&](JobContext& context) -> Coro<void> {
      ran.push_back(context.payload());
      co_await sleep(1234ms);
      if (context.payload() == "first") context.follow_up(job("q", "second"));
    });
    EXPECT_EQ(took, 2468ms);
    EXPECT_EQ(ran, (std::vector<std::string>{"first", "second"}));
  });
}

TEST_F(UntilEmptyTest, TakesWhatComesWhileAnotherRuns) {
  with_broker([&]() -> Coro<void> {
    co_await put(job("q", "slow"));
    loop_.call_later(5s, [&] { loop_.create_task(put(job("q", "quick"))); });
    TimePoint quick{};
    const TimePoint begun = loop_.time();
    const Duration took = co_await work([&](JobContext& context) -> Coro<void> {
      if (context.payload() == "quick") quick = loop_.time();
      if (context.payload() == "slow") co_await sleep(60s);
    });
    EXPECT_EQ(quick - begun, 5s);
    EXPECT_EQ(took, 60s);
  });
}

TEST_F(UntilEmptyTest, IsStoppedWhileItWaits) {
  with_broker([&]() -> Coro<void> {
    co_await put(job("q"));
    Worker worker(*engine_, {.queues = {"q"}, .until_empty = true});
    worker.add("q", [](JobContext&) -> Coro<void> {
      throw RetryJob("busy", 30s);
      co_return;
    });
    loop_.call_later(10s, [&] { worker.stop(); });
    const TimePoint begun = loop_.time();
    EXPECT_TRUE(co_await worker.run());
    EXPECT_EQ(loop_.time() - begun, 10s);
  });
}

TEST_F(UntilEmptyTest, EndsWhenItsEngineClosesWhileItWaits) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    engine_ = co_await open_engine(store_);
    co_await put(job("q"));
    Worker worker(*engine_, {.queues = {"q"}, .until_empty = true});
    worker.add("q", [](JobContext&) -> Coro<void> {
      throw RetryJob("busy", 30s);
      co_return;
    });
    auto working = loop_.create_task(worker.run());
    const TimePoint begun = loop_.time();
    co_await sleep(10s);
    EXPECT_TRUE(co_await engine_->close());
    EXPECT_TRUE(co_await working);
    EXPECT_EQ(loop_.time() - begun, 10s);
    engine_.reset();
  }));
}

}  // namespace
}  // namespace argiope
