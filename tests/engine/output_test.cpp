// Output of jobs, waited for in the owner's book.
#include <gmock/gmock.h>

#include "engine/broker_fixture.hpp"
#include "support/open_engine.hpp"
#include "support/slow_store.hpp"

namespace argiope {
namespace {

class OutputTest : public BrokerTest {
 protected:
  // Jobs that have ended are kept.
  template <class Body>
  void with_output(Body body) {
    loop_.run_until_complete(keeping([&]() -> Coro<void> {
      engine_ = co_await open_engine(counted_);
      const QueueConfig config{.lease_time = 1min, .keep_done = 1h, .keep_cancelled = 1h, .keep_buried = 1h};
      EXPECT_TRUE(co_await engine_->book().configure("q", config));
      co_await body();
      EXPECT_TRUE(co_await engine_->close());
      engine_.reset();
    }));
  }
  // What comes behind the first `after` bytes of a run of the job's.
  Task<Result<JobOutput>> follow(JobId id, std::uint32_t run, std::size_t after = 0) {
    return loop_.create_task(engine_->book().output(id, {.run = run, .after = after, .wait = 1h}));
  }

  SlowStore counted_{store_};
};

TEST_F(OutputTest, AFollowerIsToldWhatItsJobPrints) {
  with_output([&]() -> Coro<void> {
    const JobId id = co_await put(job("q"));
    const LeasedJob leased = co_await one("q");
    auto following = follow(id, 1);
    co_await sleep(1s);
    EXPECT_FALSE(following.done());
    EXPECT_TRUE(engine_->set_output(leased.token, "first"));
    EXPECT_EQ(value_or_throw(co_await following).bytes, "first");
    following = follow(id, 1, 5);
    co_await sleep(1s);
    EXPECT_FALSE(following.done());
    EXPECT_TRUE(engine_->set_output(leased.token, "first and last"));
    EXPECT_EQ(value_or_throw(co_await following).bytes, " and last");
    EXPECT_LT(loop_.time(), TimePoint{} + 1min);
  });
}

TEST_F(OutputTest, AFollowerIsToldHowItsJobEnds) {
  with_output([&]() -> Coro<void> {
    const std::pair<Outcome, JobState> ends[] = {
        {Outcome::done, JobState::done}, {Outcome::bury, JobState::buried}, {Outcome::cancel, JobState::cancelled}};
    for (const auto& [outcome, state] : ends) {
      const JobId id = co_await put(job("q"));
      const LeasedJob leased = co_await one("q");
      auto following = follow(id, 1);
      co_await sleep(1s);
      EXPECT_FALSE(following.done());
      EXPECT_TRUE(co_await settle(leased.token, {.outcome = outcome}));
      EXPECT_EQ(value_or_throw(co_await following).state, state);
    }
    EXPECT_LT(loop_.time(), TimePoint{} + 1min);
  });
}

TEST_F(OutputTest, AFollowerIsToldThatAnotherRunHasBegunHoweverTheOneBeforeHasEnded) {
  with_output([&]() -> Coro<void> {
    for (const Outcome outcome : {Outcome::retry, Outcome::release, Outcome::expire}) {
      const JobId id = co_await put(job("q"));
      const LeasedJob leased = co_await one("q");
      auto following = follow(id, 1);
      if (outcome == Outcome::expire) {
        co_await sleep(2min);
      } else {
        EXPECT_TRUE(co_await settle(leased.token, {.outcome = outcome, .delay = Duration{}}));
        co_await sleep(1s);
      }
      EXPECT_FALSE(following.done());
      const LeasedJob again = co_await one("q");
      EXPECT_EQ(again.job.id, id);
      EXPECT_EQ(value_or_throw(co_await following).run, 2u);
      EXPECT_TRUE(co_await settle(again.token));
    }
    EXPECT_LT(loop_.time(), TimePoint{} + 10min);
  });
}

TEST_F(OutputTest, AFollowerOfAJobThatWaitsIsToldOfItsEnd) {
  with_output([&]() -> Coro<void> {
    const JobId cancelled = co_await put(delayed("q", 2h));
    const JobId erased = co_await put(delayed("q", 2h));
    auto first = follow(cancelled, 0), second = follow(erased, 0);
    co_await sleep(1s);
    EXPECT_FALSE(first.done() || second.done());
    EXPECT_TRUE(co_await engine_->book().cancel(cancelled, "not wanted"));
    EXPECT_EQ(value_or_throw(co_await first).state, JobState::cancelled);
    EXPECT_TRUE(co_await engine_->book().erase(erased));
    EXPECT_EQ((co_await second).error().code, Errc::not_found);
    EXPECT_LT(loop_.time(), TimePoint{} + 1min);
  });
}

TEST_F(OutputTest, WhatAJobPrintsIsReadByItsFollowersAlone) {
  with_output([&]() -> Coro<void> {
    constexpr std::size_t kOthers = 100;
    const JobId id = co_await put(job("q"));
    const LeasedJob leased = co_await one("q");
    std::vector<Task<Result<JobOutput>>> others;
    for (std::size_t i = 0; i < kOthers; ++i) others.push_back(follow(co_await put(delayed("q", 2h)), 0));
    auto following = follow(id, 1);
    co_await sleep(1s);
    const std::uint64_t before = counted_.times_got;
    EXPECT_TRUE(engine_->set_output(leased.token, "more"));
    EXPECT_EQ(value_or_throw(co_await following).bytes, "more");
    co_await sleep(1s);
    EXPECT_EQ(counted_.times_got, before + 1);
    for (auto& other : others) {
      EXPECT_FALSE(other.done());
      other.cancel();
    }
  });
}

// Where there is nothing to see it waits no longer than it was asked to.
TEST_F(OutputTest, AFollowerThatHearsNothingIsAnsweredWithNothing) {
  with_output([&]() -> Coro<void> {
    const JobId id = co_await put(delayed("q", 2h));
    const OutputLook look{.wait = 10s};
    const JobOutput output = value_or_throw(co_await engine_->book().output(id, look));
    EXPECT_FALSE(output.is_news(look));
    EXPECT_TRUE(output.may_grow());
    EXPECT_GE(loop_.time(), TimePoint{} + 10s);
  });
}

}  // namespace
}  // namespace argiope
