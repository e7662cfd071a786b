// Tasks that wait for a TokenBucket's permits. What a bucket gives and when is in token_level_test.cpp.
#include "argiope/jobs/token_bucket.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "argiope/async/io_backend.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

class TokenBucketTest : public ::testing::Test {
 protected:
  long now_ms() const { return loop_.time().time_since_epoch() / 1ms; }

  Coro<void> take(TokenBucket& bucket, std::string name) {
    co_await bucket.acquire();
    taken_.push_back(name + "@" + std::to_string(now_ms()));
  }
  Coro<void> let_others_run() {
    for (int i = 0; i < 4; ++i) co_await yield_now();
  }

  VirtualBackend backend_;
  EventLoop loop_{backend_};
  std::vector<std::string> taken_;
};

using Taken = std::vector<std::string>;

TEST_F(TokenBucketTest, GivesABurstAtOnceAndThenAtItsRate) {
  TokenBucket bucket(10, 3);
  const auto main = [&]() -> Coro<void> {
    for (int i = 0; i < 6; ++i) co_await take(bucket, "a");
  };
  loop_.run_until_complete(main());
  EXPECT_EQ(taken_, (Taken{"a@0", "a@0", "a@0", "a@100", "a@200", "a@300"}));
}

TEST_F(TokenBucketTest, ServesThoseWhoWaitFirstComeFirstServed) {
  TokenBucket bucket(10);
  const auto main = [&]() -> Coro<void> {
    co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
      for (const char* name : {"a", "b", "c"}) group.create_task(take(bucket, name));
      co_await sleep(100ms);
      // The permit of this instant is b's, though c and this task could run sooner.
      EXPECT_FALSE(bucket.try_take(loop_.time()));
      co_await take(bucket, "d");
    });
  };
  loop_.run_until_complete(main());
  EXPECT_EQ(taken_, (Taken{"a@0", "b@100", "c@200", "d@300"}));
  EXPECT_EQ(loop_.next_deadline(), kNever) << "no timer is left";
}

TEST_F(TokenBucketTest, ACancelledWaitTakesNoPermitAndThoseBehindMoveUp) {
  TokenBucket bucket(10);
  const auto main = [&]() -> Coro<void> {
    std::vector<Task<void>> tasks;
    for (const char* name : {"a", "b", "c", "d"}) tasks.push_back(loop_.create_task(take(bucket, name)));
    co_await sleep(50ms);
    tasks[1].cancel();
    co_await sleep(60ms);
    tasks[3].cancel();
    co_await sleep(500ms);
    EXPECT_TRUE(tasks[1].cancelled() && tasks[3].cancelled());
  };
  loop_.run_until_complete(main());
  EXPECT_EQ(taken_, (Taken{"a@0", "c@100"}));
  EXPECT_EQ(loop_.next_deadline(), kNever);
}

TEST_F(TokenBucketTest, ALastWaiterThatIsCancelledLeavesNoTimer) {
  TokenBucket bucket(0.001);
  const auto main = [&]() -> Coro<void> {
    co_await bucket.acquire();
    EXPECT_THROW(co_await wait_for(bucket.acquire(), 1s), TimeoutError);
  };
  loop_.run_until_complete(main());
  EXPECT_EQ(loop_.next_deadline(), kNever);
  EXPECT_EQ(now_ms(), 1000);
}

// The waiter has been given a permit and has not run on when it is cancelled.
TEST_F(TokenBucketTest, APermitOfOneThatIsCancelledBeforeItRunsOnGoesToTheNextOrBack) {
  for (const bool another_waits : {true, false}) {
    TokenBucket bucket(10);
    const auto main = [&]() -> Coro<void> {
      co_await bucket.acquire();
      auto first = loop_.create_task(take(bucket, "first"));
      std::optional<Task<void>> second;
      if (another_waits) second = loop_.create_task(take(bucket, "second"));
      co_await let_others_run();
      // The timer that serves the first runs before this one does.
      loop_.call_at(loop_.time() + 100ms, [first]() mutable { first.cancel(); });
      co_await sleep(100ms);
      co_await let_others_run();
      EXPECT_TRUE(first.cancelled());
      EXPECT_EQ(bucket.try_take(loop_.time()), !another_waits) << "one permit, once";
    };
    taken_.clear();
    const long began = now_ms();
    loop_.run_until_complete(main());
    EXPECT_EQ(taken_, another_waits ? Taken{"second@" + std::to_string(began + 100)} : Taken{});
  }
}

TEST_F(TokenBucketTest, GivesInAnyWindowNoMoreThanItsRateHoweverTasksAreCancelled) {
  for (int cancel_at = 0; cancel_at < 40; ++cancel_at) {
    TokenBucket bucket(100, 2);
    taken_.clear();
    std::vector<TimePoint> times;
    const auto work = [&]() -> Coro<void> {
      co_await bucket.acquire();
      times.push_back(loop_.time());
    };
    const auto main = [&]() -> Coro<void> {
      std::vector<Task<void>> tasks;
      for (int i = 0; i < 8; ++i) tasks.push_back(loop_.create_task(work()));
      for (int step = 0; step < 40; ++step) {
        if (step == cancel_at) {
          for (std::size_t i = 0; i < tasks.size(); i += 2) tasks[i].cancel();
        }
        co_await sleep(step % 2 == 0 ? Duration{} : 2500us);
      }
      co_await sleep(200ms);
      for (Task<void>& task : tasks) EXPECT_TRUE(task.done());
    };
    loop_.run_until_complete(main());
    EXPECT_GE(times.size(), 4u);
    for (std::size_t i = 2; i < times.size(); ++i)
      EXPECT_GE(times[i] - times[i - 2], 10ms) << "cancelled at " << cancel_at;
  }
}

TEST_F(TokenBucketTest, AChangedRateHoldsForThoseWhoWait) {
  TokenBucket bucket(0);
  const auto main = [&]() -> Coro<void> {
    co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
      for (const char* name : {"a", "b", "c"}) group.create_task(take(bucket, name));
      co_await sleep(1s);
      EXPECT_TRUE(taken_.empty()) << "rate 0 gives nothing";
      bucket.set(1, 1, loop_.time());
      co_await sleep(500ms);
      bucket.set(kUnlimitedRate, 1, loop_.time());
    });
  };
  loop_.run_until_complete(main());
  EXPECT_EQ(taken_, (Taken{"a@1000", "b@1500", "c@1500"}));
}

TEST_F(TokenBucketTest, WithoutALimitNobodyWaitsForLong) {
  TokenBucket bucket;
  int turns_of_another = 0;
  const auto other = [&]() -> Coro<void> {
    for (;;) {
      ++turns_of_another;
      co_await yield_now();
    }
  };
  const auto main = [&]() -> Coro<void> {
    auto task = loop_.create_task(other());
    for (int i = 0; i < 1000; ++i) co_await bucket.acquire();
    task.cancel();
  };
  loop_.run_until_complete(main());
  EXPECT_EQ(now_ms(), 0);
  EXPECT_GT(turns_of_another, 3) << "a task that never waits starves nobody";
}

TEST_F(TokenBucketTest, ServesOneLoopAfterAnother) {
  TokenBucket bucket(10);
  const auto twice = [&]() -> Coro<void> {
    co_await bucket.acquire();
    co_await bucket.acquire();
  };
  loop_.run_until_complete(twice());
  {
    // Its tasks go with it while they wait.
    EventLoop loop(backend_);
    loop.create_task(twice());
    loop.run_once(TimePoint::min());
  }
  EventLoop loop(backend_);
  loop.run_until_complete(twice());
  EXPECT_EQ(now_ms(), 300);
}

TEST_F(TokenBucketTest, MayGoBeforeThoseWhoWait) {
  auto bucket = std::make_unique<TokenBucket>(0);
  auto task = loop_.create_task(take(*bucket, "a"));
  loop_.run_once(TimePoint::min());
  bucket.reset();
  task.cancel();
  loop_.run_once(TimePoint::min());
  EXPECT_TRUE(task.cancelled());
}

}  // namespace
}  // namespace argiope
