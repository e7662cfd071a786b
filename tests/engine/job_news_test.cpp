// Who follows jobs: woken by what happens to theirs, at one listener for all of them.
#include "engine/job_news.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <vector>

#include "engine/broker.hpp"
#include "store/jobs/memory_store.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;

class JobNewsTest : public OnVirtualLoop {
 protected:
  using Followers = std::vector<std::unique_ptr<JobNews::Follower>>;

  // With `jobs` that run, the first of which is job 1.
  template <class Body>
  void with_running_jobs(std::size_t jobs, Body body) {
    loop_.run_until_complete(keeping([&]() -> Coro<void> {
      broker_ = value_or_throw(co_await Broker::open(store_, {}));
      news_ = std::make_unique<JobNews>(broker_);
      value_or_throw(co_await broker_->puts.put_all(std::vector<NewJob>(jobs, job()), false));
      for (const LeasedJob& leased :
           value_or_throw(co_await broker_->leases.lease_now({.queues = {"q"}, .most = jobs, .worker = "w"}))) {
        tokens_.push_back(leased.token);
      }
      EXPECT_EQ(tokens_.size(), jobs);
      co_await body();
      news_.reset();
      value_or_throw(co_await broker_->close());
      broker_->let_go();
      broker_.reset();
    }));
  }
  static NewJob job() {
    NewJob made;
    made.queue = "q";
    return made;
  }
  // An event of that job.
  void tell_of(JobId id) { EXPECT_TRUE(broker_->set_progress(tokens_.at(id - 1), 0.5, "half")); }
  // Notes each time that it is woken, by the id of its job.
  Task<void> follow(JobId id, Duration limit = 1h) {
    return loop_.create_task(keeping([this, id, limit]() -> Coro<void> {
      JobNews::Follower follower(*news_, id);
      for (;;) {
        co_await follower.wait(loop_.time() + limit);
        woken_.push_back(id);
      }
    }));
  }
  std::vector<JobId> woken() { return sorted_if_shuffled(std::exchange(woken_, {})); }

  MemoryStore store_;
  std::shared_ptr<Broker> broker_;
  std::unique_ptr<JobNews> news_;
  std::vector<std::uint64_t> tokens_;
  std::vector<JobId> woken_;
};

TEST_F(JobNewsTest, HasOneListenerHoweverManyFollowAndNoneWhenNobodyDoes) {
  with_running_jobs(1, [&]() -> Coro<void> {
    for (const std::size_t count : {1u, 2u, 10'000u}) {
      Followers followers;
      EXPECT_EQ(broker_->listeners().size(), 0u);
      // Half of them the same job.
      for (JobId i = 0; i < count; ++i) {
        followers.push_back(std::make_unique<JobNews::Follower>(*news_, i % 2 == 0 ? 1 : i));
        EXPECT_EQ(broker_->listeners().size(), 1u);
      }
      while (followers.size() > 1) {
        std::swap(followers.front(), followers[followers.size() / 2]);
        followers.pop_back();
        EXPECT_EQ(broker_->listeners().size(), 1u);
      }
    }
    EXPECT_EQ(broker_->listeners().size(), 0u);
    co_return;
  });
}

TEST_F(JobNewsTest, AnEventWakesThoseWhoFollowItsJobAndNobodyElse) {
  with_running_jobs(3, [&]() -> Coro<void> {
    std::vector<Task<void>> tasks{follow(1), follow(2), follow(1)};
    co_await let_others_run();
    tell_of(1);
    co_await let_others_run();
    EXPECT_THAT(woken(), ElementsAre(1, 1));
    tell_of(3);  // whom nobody follows
    co_await let_others_run();
    EXPECT_THAT(woken(), ElementsAre());
    tell_of(2);
    tell_of(2);  // before it has run on
    co_await let_others_run();
    EXPECT_THAT(woken(), ElementsAre(2));
    for (Task<void>& task : tasks) task.cancel();
    co_await let_others_run();
  });
}

TEST_F(JobNewsTest, WhatHappensBeforeAWaitEndsIt) {
  with_running_jobs(1, [&]() -> Coro<void> {
    JobNews::Follower follower(*news_, 1);
    const TimePoint start = loop_.time();
    tell_of(1);
    co_await follower.wait(start + 5s);
    EXPECT_LT(loop_.time(), start + 1s);
    co_await follower.wait(start + 5s);
    EXPECT_GE(loop_.time(), start + 5s);  // of that it has heard already
  });
}

TEST_F(JobNewsTest, AFollowerThatIsCancelledLeavesNothingBehind) {
  with_running_jobs(2, [&]() -> Coro<void> {
    Task<void> first = follow(1), second = follow(1), other = follow(2);
    co_await let_others_run();
    first.cancel();
    co_await let_others_run();
    tell_of(1);
    co_await let_others_run();
    EXPECT_THAT(woken(), ElementsAre(1));
    tell_of(1);
    second.cancel();  // woken, and not run on yet
    other.cancel();
    co_await let_others_run();
    EXPECT_THAT(woken(), ElementsAre());
    EXPECT_EQ(broker_->listeners().size(), 0u);
    tell_of(1);
    tell_of(2);
    Task<void> late = follow(2);
    co_await let_others_run();
    EXPECT_EQ(broker_->listeners().size(), 1u);
    tell_of(2);
    co_await let_others_run();
    EXPECT_THAT(woken(), ElementsAre(2));
    late.cancel();
    co_await let_others_run();
  });
}

TEST_F(JobNewsTest, AllMayBeWokenWhateverTheyFollow) {
  with_running_jobs(2, [&]() -> Coro<void> {
    std::vector<Task<void>> tasks{follow(1), follow(1), follow(2), follow(9)};
    co_await let_others_run();
    news_->wake_all();
    co_await let_others_run();
    EXPECT_THAT(woken(), testing::UnorderedElementsAre(1, 1, 2, 9));
    for (Task<void>& task : tasks) task.cancel();
    co_await let_others_run();
    EXPECT_EQ(broker_->listeners().size(), 0u);
  });
}

}  // namespace
}  // namespace argiope
