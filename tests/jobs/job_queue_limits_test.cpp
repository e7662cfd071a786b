// What keeps a ready job waiting: limits and rests of the queue and of its keys; and how that is explained.
#include "jobs/job_queue_fixture.hpp"

namespace argiope {
namespace {

class JobQueueLimitsTest : public OfJobQueue {
 protected:
  void put(JobId id, std::string_view key = "k", std::int32_t priority = 0) {
    queue_.put({id, queue_.key(key), priority, kNow, 0}, kNow);
  }
};

TEST_F(JobQueueLimitsTest, LetsARestingKeyHoldUpNobody) {
  put(1, "slow", 9);
  put(2, "fast");
  queue_.rest_key(queue_.key("slow"), kNow + 10s, kNow);
  EXPECT_EQ(next(), 2u);
  EXPECT_EQ(next(), 0u);
  EXPECT_EQ(queue_.keys_waiting(), 1u);
  EXPECT_EQ(queue_.next_wakeup(kNow), kNow + 10s);
  EXPECT_EQ(next(kNow + 10s), 1u);
}

TEST_F(JobQueueLimitsTest, NeverShortensARestButEndsItWhenTold) {
  put(1);
  const KeyId key = queue_.key("k");
  queue_.rest_key(key, kNever, kNow);
  queue_.rest_key(key, kNow + 1s, kNow);
  EXPECT_EQ(next(kNow + 1h), 0u);
  EXPECT_EQ(queue_.next_wakeup(kNow), kNever);
  queue_.wake_key(key, kNow);
  EXPECT_EQ(next(), 1u);
}

TEST_F(JobQueueLimitsTest, LengthensARest) {
  put(1);
  const KeyId key = queue_.key("k");
  queue_.rest_key(key, kNow + 1s, kNow);
  queue_.rest_key(key, kNow + 5s, kNow);
  EXPECT_EQ(queue_.next_wakeup(kNow), kNow + 5s);
  EXPECT_EQ(next(kNow + 5s - 1ns), 0u);
  EXPECT_EQ(next(kNow + 5s), 1u);
}

TEST_F(JobQueueLimitsTest, KeepsToTheConcurrencyOfAKeyAndOfTheQueue) {
  queue_.set_key_limits(queue_.key("k"), {.concurrency = 2}, kNow);
  for (JobId id = 1; id <= 3; ++id) put(id);
  put(4, "other", -5);
  for (const JobId id : {1, 2, 4, 0}) EXPECT_EQ(next(), static_cast<JobId>(id));
  queue_.set_limits({.concurrency = 3}, kNow);
  queue_.done(last_.token, kNow);  // "other" ended: "k" is still full
  EXPECT_EQ(next(), 0u);
  put(5, "other");
  EXPECT_EQ(next(), 5u);
  put(6, "other");
  EXPECT_EQ(next(), 0u);  // the queue is full
}

TEST_F(JobQueueLimitsTest, KeepsToTheRateOfAKey) {
  queue_.set_key_limits(queue_.key("k"), {.rate = 2, .burst = 1}, kNow);
  put(1);
  put(2);
  EXPECT_EQ(next(), 1u);
  EXPECT_EQ(next(), 0u);
  EXPECT_EQ(queue_.next_wakeup(kNow), kNow + 500ms);
  EXPECT_EQ(next(kNow + 499ms), 0u);
  EXPECT_EQ(next(kNow + 500ms), 2u);
}

TEST_F(JobQueueLimitsTest, KeepsToTheRateOfTheQueue) {
  queue_.set_limits({.rate = 10, .burst = 2}, kNow);
  for (JobId id = 1; id <= 4; ++id) put(id, id % 2 == 0 ? "a" : "b");
  for (const JobId id : {1, 2, 0}) EXPECT_EQ(next(), static_cast<JobId>(id));
  EXPECT_EQ(queue_.next_wakeup(kNow), kNow + 100ms);
  EXPECT_EQ(next(kNow + 100ms), 3u);
  EXPECT_EQ(next(kNow + 100ms), 0u);
}

TEST_F(JobQueueLimitsTest, RestsAKeyAfterEachJobForItsDelay) {
  queue_.set_key_limits(queue_.key("k"), {.concurrency = 1, .delay = 3s}, kNow);
  put(1);
  put(2);
  next();
  queue_.done(last_.token, kNow + 1s);
  EXPECT_EQ(next(kNow + 1s), 0u);
  EXPECT_EQ(queue_.next_wakeup(kNow + 1s), kNow + 4s);
  EXPECT_EQ(next(kNow + 4s), 2u);
}

TEST_F(JobQueueLimitsTest, StartsNothingWhilePaused) {
  put(1);
  queue_.pause();
  EXPECT_EQ(next(), 0u);
  EXPECT_EQ(queue_.next_wakeup(kNow), kNever);
  queue_.resume();
  EXPECT_EQ(next(), 1u);
}

// pyspider dispatched at rate 0, and never with a burst below 1.
TEST_F(JobQueueLimitsTest, StartsNothingAtRateZeroAndSomethingAtASmallBurst) {
  put(1);
  queue_.set_limits({.rate = 0, .burst = 5}, kNow);
  EXPECT_EQ(next(), 0u);
  EXPECT_EQ(queue_.next_wakeup(kNow), kNever);
  queue_.set_limits({.rate = 1, .burst = 0.5}, kNow);
  queue_.set_key_limits(queue_.key("k"), {.rate = 0}, kNow);
  EXPECT_EQ(next(kNow + 24h), 0u);
  EXPECT_EQ(queue_.next_wakeup(kNow), kNever);
  queue_.set_key_limits(queue_.key("k"), {.rate = 1, .burst = 0.5}, kNow);
  EXPECT_EQ(next(), 1u);
}

// pyspider kept the tokens of the old burst.
TEST_F(JobQueueLimitsTest, ForgetsPermitsAboveALoweredBurst) {
  for (JobId id = 1; id <= 5; ++id) put(id);
  queue_.set_limits({.rate = 1, .burst = 5}, kNow);
  queue_.set_limits({.rate = 1, .burst = 2}, kNow);
  for (const JobId id : {1, 2, 0}) EXPECT_EQ(next(), static_cast<JobId>(id));
}

TEST_F(JobQueueLimitsTest, TakesChangesOfAKeysLimitsAtOnce) {
  const KeyId key = queue_.key("k");
  queue_.set_key_limits(key, {.concurrency = 0}, kNow);
  for (JobId id = 1; id <= 3; ++id) put(id);
  EXPECT_EQ(next(), 0u);
  queue_.set_key_limits(key, {.concurrency = 1}, kNow);
  EXPECT_EQ(next(), 1u);
  EXPECT_EQ(next(), 0u);
  queue_.set_key_limits(key, {}, kNow);
  EXPECT_EQ(next(), 2u);
}

TEST_F(JobQueueLimitsTest, GivesKeysWithoutLimitsOfTheirOwnTheDefaultOnes) {
  put(1, "a");
  put(2, "a");
  queue_.set_key_limits(queue_.key("own"), {.concurrency = 5}, kNow);
  queue_.set_default_key_limits({.concurrency = 1}, kNow);
  for (JobId id = 3; id <= 4; ++id) put(id, "own");
  for (JobId id = 5; id <= 6; ++id) put(id, "new");
  for (const JobId id : {1, 3, 4, 5, 0}) EXPECT_EQ(next(), static_cast<JobId>(id));
  queue_.reset_key_limits(queue_.key("own"), kNow);
  put(7, "own");
  EXPECT_EQ(next(), 0u);
}

TEST_F(JobQueueLimitsTest, PutsAJobBackAsIfItHadNotBeenTaken) {
  queue_.set_key_limits(queue_.key("k"), {.rate = 1, .burst = 1, .delay = 5s}, kNow);
  queue_.set_limits({.rate = 1, .burst = 1}, kNow);
  put(1);
  put(2);
  EXPECT_EQ(next(), 1u);
  EXPECT_TRUE(queue_.put_back(last_.token, kNow));
  EXPECT_EQ(next(), 1u);  // its place and the permits are there again, and the key does not rest
  EXPECT_EQ(last_.attempts, 1u);
}

// A permit given back late would be one more than the rate allows in the window it lands in.
TEST_F(JobQueueLimitsTest, GivesNoPermitBackAfterALaterOneWasTaken) {
  queue_.set_key_limits(queue_.key("k"), {.rate = 1, .burst = 1}, kNow);
  for (JobId id = 1; id <= 3; ++id) put(id);
  next();
  const std::uint64_t early = last_.token;
  EXPECT_EQ(next(kNow + 10s), 2u);
  EXPECT_TRUE(queue_.put_back(early, kNow + 10s));
  EXPECT_EQ(next(kNow + 10s), 0u);
  EXPECT_EQ(next(kNow + 11s), 1u);
}

TEST_F(JobQueueLimitsTest, ExplainsWhyAJobWaits) {
  const auto reason = [&](JobId id) { return queue_.explain(id, kNow).reason; };
  const auto until = [&](JobId id) { return queue_.explain(id, kNow).until; };
  EXPECT_EQ(reason(1), WaitReason::not_found);
  put(1);
  put(2);
  queue_.put({3, queue_.key("k"), 0, kNow + 5s, 0}, kNow);
  put(4, "resting");
  queue_.rest_key(queue_.key("resting"), kNow + 7s, kNow);
  EXPECT_EQ(reason(1), WaitReason::none);
  EXPECT_EQ(reason(2), WaitReason::more_important_jobs);
  EXPECT_EQ(queue_.explain(2, kNow).ahead, 1u);
  EXPECT_EQ(queue_.explain(2, kNow).state, JobState::ready);
  EXPECT_EQ(reason(3), WaitReason::not_due);
  EXPECT_EQ(until(3), kNow + 5s);
  EXPECT_EQ(queue_.explain(3, kNow).state, JobState::delayed);
  EXPECT_EQ(reason(4), WaitReason::key_resting);
  EXPECT_EQ(until(4), kNow + 7s);
  queue_.pause();
  EXPECT_EQ(reason(1), WaitReason::queue_paused);
  EXPECT_EQ(until(1), kNever);
}

TEST_F(JobQueueLimitsTest, ExplainsLimitsThatAreUsedUp) {
  put(1);
  put(2);
  queue_.set_key_limits(queue_.key("k"), {.rate = 1, .burst = 1, .concurrency = 1}, kNow);
  next();
  EXPECT_EQ(queue_.explain(1, kNow).reason, WaitReason::running);
  EXPECT_EQ(queue_.explain(1, kNow).until, kNow + kLease);
  EXPECT_EQ(queue_.explain(2, kNow).reason, WaitReason::key_concurrency);
  queue_.set_limits({.concurrency = 1}, kNow);
  EXPECT_EQ(queue_.explain(2, kNow).reason, WaitReason::queue_concurrency);
  queue_.done(last_.token, kNow);
  EXPECT_EQ(queue_.explain(2, kNow).reason, WaitReason::key_rate);
  EXPECT_EQ(queue_.explain(2, kNow).until, kNow + 1s);
  queue_.set_limits({.rate = 0.5, .burst = 1}, kNow);
  put(3, "other");
  next();
  EXPECT_EQ(queue_.explain(2, kNow).reason, WaitReason::queue_rate);
  EXPECT_EQ(queue_.explain(2, kNow).until, kNow + 2s);
}

TEST_F(JobQueueLimitsTest, CountsOnlyJobsAheadThatMayStart) {
  put(1, "held", 9);
  put(2, "a", 5);
  put(3, "b", 5);
  put(4, "b", 1);
  queue_.rest_key(queue_.key("held"), kNever, kNow);
  EXPECT_EQ(queue_.explain(4, kNow).ahead, 2u);
}

}  // namespace
}  // namespace argiope
