#include "argiope/jobs/job_queue.hpp"

#include <gtest/gtest.h>

namespace argiope {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLease = 1h;
constexpr TimePoint kNow{1000s};

class JobQueueTest : public testing::Test {
 protected:
  PutResult put(JobId id, std::int32_t priority = 0, TimePoint due = kNow, std::string_view key = "k") {
    return queue_.put({id, queue_.key(key), priority, due, id * 10}, kNow);
  }
  JobId next(TimePoint now = kNow) {
    const auto lease = queue_.lease(now, kLease);
    if (!lease) return 0;
    last_ = *lease;
    return lease->id;
  }
  JobQueue queue_;
  Lease last_;
};

TEST_F(JobQueueTest, ServesHigherPrioritiesFirstAndEqualsInTheOrderPut) {
  put(1);
  put(2, 5);
  put(3);
  put(4, -1);
  put(5, 5);
  EXPECT_EQ(next(), 2u);
  EXPECT_EQ(next(), 5u);
  EXPECT_EQ(next(), 1u);
  EXPECT_EQ(next(), 3u);
  EXPECT_EQ(next(), 4u);
  EXPECT_EQ(next(), 0u);
}

TEST_F(JobQueueTest, GivesThePayloadBackAndCountsAttempts) {
  put(7);
  next();
  EXPECT_EQ(last_.payload, 70u);
  EXPECT_EQ(last_.attempts, 1u);
  EXPECT_TRUE(queue_.retry(last_.token, kNow, kNow));
  next();
  EXPECT_EQ(last_.attempts, 2u);
}

TEST_F(JobQueueTest, HoldsAJobUntilItIsDue) {
  put(1, 0, kNow + 10s);
  EXPECT_EQ(next(), 0u);
  EXPECT_EQ(queue_.next_wakeup(kNow), kNow + 10s);
  EXPECT_EQ(next(kNow + 10s), 1u);
}

TEST_F(JobQueueTest, MergesARepeatedPutToTheHigherPriorityAndTheEarlierTime) {
  put(1, 1, kNow + 10s);
  put(2, 2);
  EXPECT_EQ(put(1, 3, kNow + 20s), PutResult::merged);
  EXPECT_EQ(next(), 2u);
  EXPECT_EQ(next(kNow + 10s), 1u);
  EXPECT_EQ(last_.priority, 3);
  put(3, 0, kNow + 50s);
  put(3, 0, kNow);
  EXPECT_EQ(next(), 3u);
}

// pyspider dropped such a put in silence.
TEST_F(JobQueueTest, RunsAJobOnceMoreThatWasPutWhileItRan) {
  put(1);
  next();
  EXPECT_EQ(put(1, 4), PutResult::run_again);
  EXPECT_EQ(next(), 0u);
  EXPECT_TRUE(queue_.done(last_.token, kNow));
  EXPECT_EQ(next(), 1u);
  EXPECT_EQ(last_.priority, 4);
  EXPECT_EQ(last_.attempts, 1u);
  EXPECT_TRUE(queue_.done(last_.token, kNow));
  EXPECT_EQ(queue_.size(), 0u);
}

// pyspider's order broke, or the change cost O(n).
TEST_F(JobQueueTest, ReordersAJobWhosePriorityChanges) {
  for (JobId id = 1; id <= 100; ++id) put(id);
  EXPECT_TRUE(queue_.set_priority(77, 1, kNow));
  EXPECT_TRUE(queue_.set_priority(1, -1, kNow));
  EXPECT_EQ(next(), 77u);
  EXPECT_EQ(next(), 2u);
  EXPECT_FALSE(queue_.set_priority(77, 5, kNow));  // running
  EXPECT_FALSE(queue_.set_priority(999, 5, kNow));
}

TEST_F(JobQueueTest, ForgetsARemovedJobAltogether) {
  put(1);
  put(2);
  put(3, 0, kNow + 5s);
  EXPECT_TRUE(queue_.remove(1, kNow));
  EXPECT_TRUE(queue_.remove(3, kNow));
  EXPECT_FALSE(queue_.remove(1, kNow));
  EXPECT_EQ(queue_.size(), 1u);
  EXPECT_EQ(next(), 2u);
  EXPECT_EQ(queue_.next_wakeup(kNow), kNow + kLease);
}

TEST_F(JobQueueTest, LetsAStaleTokenSettleNothing) {
  put(1);
  next();
  const std::uint64_t stale = last_.token;
  EXPECT_TRUE(queue_.retry(stale, kNow, kNow));
  EXPECT_FALSE(queue_.done(stale, kNow));
  next();
  EXPECT_FALSE(queue_.done(stale, kNow));
  EXPECT_FALSE(queue_.renew(stale, kNow + 9h));
  EXPECT_TRUE(queue_.done(last_.token, kNow));
  EXPECT_FALSE(queue_.done(last_.token, kNow));
}

TEST_F(JobQueueTest, TakesAJobBackWhenItsLeaseRunsOut) {
  put(1);
  next();
  const std::uint64_t lost = last_.token;
  EXPECT_EQ(queue_.next_wakeup(kNow), kNow + kLease);
  EXPECT_EQ(next(kNow + kLease), 1u);
  EXPECT_FALSE(queue_.done(lost, kNow + kLease));
}

// pyspider's poison tasks came back for ever.
TEST_F(JobQueueTest, BuriesAJobWhoseLeaseRunsOutTooOften) {
  put(1);
  TimePoint now = kNow;
  for (int i = 0; i < 4; ++i, now += kLease) EXPECT_EQ(next(now), 1u);
  EXPECT_EQ(next(now), 0u);
  EXPECT_EQ(queue_.take_buried(), std::vector<JobId>{1});
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(JobQueueTest, RenewsALease) {
  put(1);
  next();
  EXPECT_TRUE(queue_.renew(last_.token, kNow + 2h));
  EXPECT_EQ(next(kNow + 1h), 0u);
  EXPECT_TRUE(queue_.done(last_.token, kNow + 1h));
}

TEST_F(JobQueueTest, LetsARestingKeyHoldUpNobody) {
  put(1, 9, kNow, "slow");
  put(2, 0, kNow, "fast");
  queue_.rest_key(queue_.key("slow"), kNow + 10s, kNow);
  EXPECT_EQ(next(), 2u);
  EXPECT_EQ(next(), 0u);
  EXPECT_EQ(queue_.keys_waiting(), 1u);
  EXPECT_EQ(queue_.next_wakeup(kNow), kNow + 10s);
  EXPECT_EQ(next(kNow + 10s), 1u);
}

TEST_F(JobQueueTest, NeverShortensARestButEndsItWhenTold) {
  put(1);
  const KeyId key = queue_.key("k");
  queue_.rest_key(key, kNever, kNow);
  queue_.rest_key(key, kNow + 1s, kNow);
  EXPECT_EQ(next(kNow + 1h), 0u);
  queue_.wake_key(key, kNow);
  EXPECT_EQ(next(), 1u);
}

TEST_F(JobQueueTest, KeepsToTheConcurrencyOfAKeyAndOfTheQueue) {
  queue_.set_key_limits(queue_.key("k"), {.concurrency = 2}, kNow);
  for (JobId id = 1; id <= 3; ++id) put(id);
  put(4, -5, kNow, "other");
  EXPECT_EQ(next(), 1u);
  EXPECT_EQ(next(), 2u);
  EXPECT_EQ(next(), 4u);
  EXPECT_EQ(next(), 0u);
  queue_.set_limits({.concurrency = 3}, kNow);
  queue_.done(last_.token, kNow);  // "other" ended: "k" is still full
  EXPECT_EQ(next(), 0u);
}

TEST_F(JobQueueTest, KeepsToTheRateOfAKey) {
  queue_.set_key_limits(queue_.key("k"), {.rate = 2, .burst = 1}, kNow);
  put(1);
  put(2);
  EXPECT_EQ(next(), 1u);
  EXPECT_EQ(next(), 0u);
  EXPECT_EQ(queue_.next_wakeup(kNow), kNow + 500ms);
  EXPECT_EQ(next(kNow + 499ms), 0u);
  EXPECT_EQ(next(kNow + 500ms), 2u);
}

TEST_F(JobQueueTest, RestsAKeyAfterEachJobForItsDelay) {
  queue_.set_key_limits(queue_.key("k"), {.concurrency = 1, .delay = 3s}, kNow);
  put(1);
  put(2);
  next();
  queue_.done(last_.token, kNow + 1s);
  EXPECT_EQ(next(kNow + 1s), 0u);
  EXPECT_EQ(queue_.next_wakeup(kNow + 1s), kNow + 4s);
  EXPECT_EQ(next(kNow + 4s), 2u);
}

TEST_F(JobQueueTest, StartsNothingWhilePausedOrAtRateZero) {
  put(1);
  queue_.set_limits({.paused = true}, kNow);
  EXPECT_EQ(next(), 0u);
  EXPECT_EQ(queue_.next_wakeup(kNow), kNever);
  queue_.set_limits({.rate = 0}, kNow);
  EXPECT_EQ(next(), 0u);
  EXPECT_EQ(queue_.next_wakeup(kNow), kNever);
  queue_.set_limits({}, kNow);
  EXPECT_EQ(next(), 1u);
}

TEST_F(JobQueueTest, PutsAJobBackAsIfItHadNotBeenTaken) {
  queue_.set_key_limits(queue_.key("k"), {.rate = 1, .burst = 1}, kNow);
  put(1);
  put(2);
  EXPECT_EQ(next(), 1u);
  EXPECT_TRUE(queue_.put_back(last_.token, kNow));
  EXPECT_EQ(next(), 1u);  // its place and the permit are there again
  EXPECT_EQ(last_.attempts, 1u);
}

TEST_F(JobQueueTest, ExplainsWhyAJobWaits) {
  EXPECT_EQ(queue_.explain(1, kNow).reason, WaitReason::not_found);
  put(1);
  put(2);
  put(3, 0, kNow + 5s);
  put(4, 0, kNow, "resting");
  queue_.rest_key(queue_.key("resting"), kNow + 7s, kNow);
  EXPECT_EQ(queue_.explain(1, kNow).reason, WaitReason::none);
  EXPECT_EQ(queue_.explain(2, kNow).reason, WaitReason::more_important_jobs);
  EXPECT_EQ(queue_.explain(2, kNow).ahead, 1u);
  EXPECT_EQ(queue_.explain(3, kNow).reason, WaitReason::not_due);
  EXPECT_EQ(queue_.explain(3, kNow).until, kNow + 5s);
  EXPECT_EQ(queue_.explain(4, kNow).reason, WaitReason::key_resting);
  EXPECT_EQ(queue_.explain(4, kNow).until, kNow + 7s);
  queue_.set_limits({.paused = true}, kNow);
  EXPECT_EQ(queue_.explain(1, kNow).reason, WaitReason::queue_paused);
}

}  // namespace
}  // namespace argiope
