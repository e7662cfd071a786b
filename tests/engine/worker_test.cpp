// What a worker does with functions: runs them, tells how they ended, keeps their leases, stops in bounds.
#include "argiope/engine/worker.hpp"

#include <gmock/gmock.h>

#include "argiope/async/group.hpp"
#include "engine/broker_fixture.hpp"

namespace argiope {
namespace {

class WorkerTest : public BrokerTest {
 protected:
  // Runs `worker` until nothing is left.
  Coro<void> work(Worker& worker) {
    auto result = co_await worker.run();
    EXPECT_TRUE(result);
  }
  // It leaves retries that are not due.
  static WorkerOptions until_empty() { return {.queues = {"q"}, .until_empty = true, .linger = 0s}; }
};

TEST_F(WorkerTest, RunsTheFunctionThatAJobNamesOrThatOfItsQueue) {
  with_broker([&]() -> Coro<void> {
    Worker worker(*engine_, until_empty());
    std::vector<std::string> ran;
    worker.add("q", [&](JobContext& context) -> Coro<void> {
      ran.push_back("q:" + context.payload());
      co_return;
    });
    worker.add("resize", [&](JobContext& context) -> Coro<void> {
      ran.push_back("resize:" + context.payload());
      co_return;
    });
    co_await put(job("q", "1"));
    NewJob named = job("q", "2");
    named.function = "resize";
    co_await put(named);
    co_await work(worker);
    EXPECT_EQ(ran, (std::vector<std::string>{"q:1", "resize:2"}));
    EXPECT_EQ(worker.counts().done, 2u);
  });
}

TEST_F(WorkerTest, RunsAsManyAtOnceAsItMay) {
  with_broker([&]() -> Coro<void> {
    WorkerOptions options = until_empty();
    options.concurrency = 4;
    Worker worker(*engine_, options);
    std::size_t running = 0;
    std::size_t most = 0;
    worker.add("q", [&](JobContext&) -> Coro<void> {
      most = std::max(most, ++running);
      co_await sleep(1s);
      --running;
    });
    for (int i = 0; i < 10; ++i) co_await put(job("q"));
    const TimePoint start = loop_.time();
    co_await work(worker);
    EXPECT_EQ(most, 4u);
    EXPECT_EQ(loop_.time() - start, 3s);
  });
}

TEST_F(WorkerTest, EachErrorGetsItsVerdict) {
  with_broker([&]() -> Coro<void> {
    Worker worker(*engine_, until_empty());
    worker.add("q", [&](JobContext& context) -> Coro<void> {
      if (context.attempt() > 1) co_return;
      if (context.payload() == "retry") throw RetryJob("later", 1h);
      if (context.payload() == "bury") throw BuryJob("never");
      if (context.payload() == "snooze") throw SnoozeJob(2h);
      if (context.payload() == "fail") throw std::runtime_error("broken");
    });
    const JobId retried = co_await put(job("q", "retry"));
    const JobId buried = co_await put(job("q", "bury"));
    const JobId snoozed = co_await put(job("q", "snooze"));
    const JobId failed = co_await put(job("q", "fail"));
    const WallTime start = loop_.clock().wall_now();
    co_await work(worker);
    EXPECT_EQ((co_await engine_->book().get(retried))->due_at, start + 1h);
    EXPECT_EQ((co_await engine_->book().get(retried))->error, "later");
    EXPECT_EQ((co_await engine_->book().get(buried))->state, JobState::buried);
    EXPECT_EQ((co_await engine_->book().get(snoozed))->due_at, start + 2h);
    EXPECT_EQ((co_await engine_->book().get(snoozed))->attempts, 0u);
    EXPECT_EQ((co_await engine_->book().get(failed))->error, "broken");
    EXPECT_EQ(worker.counts().failed, 3u);
  });
}

TEST_F(WorkerTest, TheUsersRuleJudgesOtherErrors) {
  with_broker([&]() -> Coro<void> {
    WorkerOptions options = until_empty();
    options.verdict = [](const JobRecord&, const std::exception_ptr&) {
      return Verdict{.outcome = Outcome::bury, .error = "by rule"};
    };
    Worker worker(*engine_, options);
    worker.add("q", [](JobContext&) -> Coro<void> {
      throw 7;
      co_return;
    });
    const JobId id = co_await put(job("q"));
    co_await work(worker);
    EXPECT_EQ((co_await engine_->book().get(id))->error, "by rule");
  });
}

TEST_F(WorkerTest, ARuleThatThrowsFailsItsRun) {
  with_broker([&]() -> Coro<void> {
    WorkerOptions options = until_empty();
    options.verdict = [](const JobRecord&, const std::exception_ptr&) -> Verdict {
      throw std::runtime_error("no rule");
    };
    Worker worker(*engine_, options);
    worker.add("q", [](JobContext&) -> Coro<void> {
      throw std::runtime_error("broken");
      co_return;
    });
    const JobId id = co_await put(job("q"));
    co_await work(worker);
    EXPECT_EQ(worker.counts().failed, 1u);
    EXPECT_EQ((co_await engine_->book().get(id))->error,
              "broken (and the rule that judges errors has thrown: no rule)");
  });
}

TEST_F(WorkerTest, RunsAgainWhenItHasEndedButNotTwiceAtOnce) {
  with_broker([&]() -> Coro<void> {
    Worker worker(*engine_, until_empty());
    int runs = 0;
    worker.add("q", [&](JobContext&) -> Coro<void> {
      ++runs;
      co_await sleep(1s);
    });
    for (int round = 1; round <= 3; ++round) {
      co_await put(job("q"));
      auto working = loop_.create_task(work(worker));
      co_await sleep(500ms);
      try {
        (void)co_await worker.run();
        ADD_FAILURE() << "ran twice at once";
      } catch (const std::logic_error&) {
      }
      co_await working;
      EXPECT_EQ(runs, round);
    }
    worker.stop();  // before it runs: that ends at once
    co_await put(job("q"));
    co_await work(worker);
    EXPECT_EQ(runs, 3);
  });
}

TEST_F(WorkerTest, AJobThatIsCancelledOnItsWayToTheWorkerNeverRuns) {
  // Between the answer of the store and the worker's next step there are some turns: each is tried.
  for (int turns = 0; turns < 12; ++turns) {
    store_.reopen();
    with_broker([&]() -> Coro<void> {
      Worker worker(*engine_, {.queues = {"q"}});
      worker.add("q", [&](JobContext&) -> Coro<void> { co_await sleep(1h); });
      auto working = loop_.create_task(work(worker));
      co_await sleep(1s);
      const JobId id = co_await put(job("q"));
      for (int i = 0; i < turns; ++i) co_await yield_now();
      EXPECT_TRUE(co_await engine_->book().cancel(id)) << turns;
      co_await sleep(1s);
      EXPECT_EQ((co_await engine_->book().get(id)).error().code, Errc::not_found) << turns;
      EXPECT_EQ(worker.counts().running, 0u);
      worker.stop();
      const TimePoint asked = loop_.time();
      co_await working;
      EXPECT_EQ(loop_.time(), asked);
    });
  }
}

TEST_F(WorkerTest, AJobForNobodyIsTriedAgain) {
  with_broker([&]() -> Coro<void> {
    Worker worker(*engine_, until_empty());
    worker.add("q", [](JobContext&) -> Coro<void> { co_return; });
    NewJob stranger = job("q");
    stranger.function = "nobody";
    const JobId id = co_await put(stranger);
    co_await work(worker);
    EXPECT_THAT((co_await engine_->book().get(id))->error, testing::HasSubstr("no function \"nobody\""));
  });
}

TEST_F(WorkerTest, KeepsTheLeaseOfAFunctionThatTakesLong) {
  with_broker([&]() -> Coro<void> {
    QueueConfig config;
    config.lease_time = 10s;
    value_or_throw(co_await engine_->book().configure("q", config));
    Worker worker(*engine_, until_empty());
    int runs = 0;
    worker.add("q", [&](JobContext& context) -> Coro<void> {
      ++runs;
      co_await sleep(5min);
      context.set_result("slow");
    });
    co_await put(job("q"));
    co_await work(worker);
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(worker.counts().done, 1u);
  });
}

TEST_F(WorkerTest, PutsFollowUpsWithTheEndOfTheJob) {
  with_broker([&]() -> Coro<void> {
    Worker worker(*engine_, until_empty());
    std::vector<std::string> ran;
    worker.add("q", [&](JobContext& context) -> Coro<void> {
      ran.push_back(context.payload());
      if (context.payload() == "a") context.follow_up(job("q", "b"));
      co_return;
    });
    co_await put(job("q", "a"));
    co_await work(worker);
    EXPECT_EQ(ran, (std::vector<std::string>{"a", "b"}));
  });
}

TEST_F(WorkerTest, CancellingAJobCancelsItsFunction) {
  with_broker([&]() -> Coro<void> {
    WorkerOptions options = until_empty();
    Worker worker(*engine_, options);
    bool cancelled = false;
    worker.add("q", [&](JobContext&) -> Coro<void> {
      try {
        co_await sleep(1h);
      } catch (const CancelledError&) {
        cancelled = true;
        throw;
      }
    });
    const JobId id = co_await put(job("q"));
    auto working = loop_.create_task(work(worker));
    co_await sleep(1s);
    EXPECT_TRUE(co_await engine_->book().cancel(id));
    const TimePoint asked = loop_.time();
    co_await working;
    EXPECT_EQ(loop_.time(), asked);
    EXPECT_TRUE(cancelled);
    EXPECT_EQ((co_await engine_->book().get(id)).error().code, Errc::not_found);
  });
}

TEST_F(WorkerTest, StopsWithinItsDrainLimitAndLosesNothing) {
  with_broker([&]() -> Coro<void> {
    WorkerOptions options{.queues = {"q"}, .concurrency = 2, .drain_limit = 10s};
    Worker worker(*engine_, options);
    worker.add("q", [&](JobContext& context) -> Coro<void> { co_await sleep(context.payload() == "short" ? 5s : 1h); });
    co_await put(job("q", "short"));
    co_await put(job("q", "long"));
    co_await put(job("q", "waits"));
    auto working = loop_.create_task(work(worker));
    co_await sleep(1s);
    const TimePoint asked = loop_.time();
    worker.stop();
    co_await working;
    EXPECT_EQ(loop_.time() - asked, 10s);
    EXPECT_EQ(worker.counts().done, 1u);
    // What was given back has not lost an attempt.
    const auto left = co_await lease_all("q");
    EXPECT_EQ(left.size(), 2u);
    EXPECT_EQ(left.at(0).job.payload, "long");
    EXPECT_EQ(left.at(0).attempt, 1u);
  });
}

TEST_F(WorkerTest, AWorkerThatIsCancelledGivesItsJobsBack) {
  with_broker([&]() -> Coro<void> {
    Worker worker(*engine_, {.queues = {"q"}, .drain_limit = 0s});
    worker.add("q", [&](JobContext&) -> Coro<void> { co_await sleep(1h); });
    co_await put(job("q", "x"));
    auto working = loop_.create_task(work(worker));
    co_await sleep(1s);
    working.cancel();
    co_await argiope::wait(std::vector{working});
    EXPECT_TRUE(working.cancelled());
    EXPECT_EQ(co_await payloads("q"), "x ");
  });
}

TEST_F(WorkerTest, RunsBlockingFunctionsOnThreads) {
  with_broker([&]() -> Coro<void> {
    QueueConfig config;
    config.keep_done = 1h;
    value_or_throw(co_await engine_->book().configure("q", config));
    ThreadPoolExecutor threads(2);
    Worker worker(*engine_, until_empty());
    worker.add("q", on_threads(threads, [](const JobRecord& record) { return record.payload + "!"; }));
    const JobId id = co_await put(job("q", "hello"));
    co_await work(worker);
    EXPECT_EQ((co_await engine_->book().get(id))->result, "hello!");
  });
}

}  // namespace
}  // namespace argiope
