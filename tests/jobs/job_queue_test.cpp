// What a JobQueue does with jobs: their order, their leases, their repeated puts. Limits have their own file.
#include "argiope/jobs/job_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "argiope/base/random.hpp"
#include "jobs/job_queue_fixture.hpp"

namespace argiope {
namespace {

class JobQueueTest : public OfJobQueue {
 protected:
  PutResult put(JobId id, std::int32_t priority = 0, TimePoint due = kNow, std::string_view key = "k") {
    return queue_.put({id, queue_.key(key), priority, due, id * 10}, kNow);
  }
};

TEST_F(JobQueueTest, ServesHigherPrioritiesFirstAndEqualsInTheOrderPut) {
  put(1);
  put(2, 5);
  put(3);
  put(4, -1);
  put(5, 5);
  for (const JobId id : {2, 5, 1, 3, 4, 0}) EXPECT_EQ(next(), static_cast<JobId>(id));
}

TEST_F(JobQueueTest, OrdersTheWholeRangeOfPriorities) {
  put(1, std::numeric_limits<std::int32_t>::min());
  put(2, -1);
  put(3, 0);
  put(4, std::numeric_limits<std::int32_t>::max());
  for (const JobId id : {4, 3, 2, 1}) EXPECT_EQ(next(), static_cast<JobId>(id));
}

TEST_F(JobQueueTest, KeepsTheOrderAcrossKeys) {
  put(1, 0, kNow, "a");
  put(2, 3, kNow, "b");
  put(3, 1, kNow, "a");
  put(4, 3, kNow, "c");
  put(5, 0, kNow, "c");
  for (const JobId id : {2, 4, 3, 1, 5}) EXPECT_EQ(next(), static_cast<JobId>(id));
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
  EXPECT_EQ(next(kNow + 10s - 1ns), 0u);
  EXPECT_EQ(next(kNow + 10s), 1u);
}

// Time may be off by a caller's mistake; pyspider then waited until the clock had caught up.
TEST_F(JobQueueTest, GivesWhatIsReadyEvenIfTimeStepsBack) {
  put(1, 0, kNow + 10s);
  put(2, -1);
  queue_.tick(kNow + 10s);
  EXPECT_EQ(next(kNow - 500s), 1u);
  EXPECT_EQ(next(kNow - 500s), 2u);
}

TEST_F(JobQueueTest, MergesARepeatedPutToTheHigherPriorityAndTheEarlierTime) {
  put(1, 1, kNow + 10s);
  put(2, 2);
  EXPECT_EQ(put(1, 3, kNow + 20s), PutResult::merged);
  EXPECT_EQ(next(), 2u);
  EXPECT_EQ(next(kNow + 10s), 1u);
  EXPECT_EQ(last_.priority, 3);
  EXPECT_EQ(put(3, 0, kNow + 50s), PutResult::added);
  EXPECT_EQ(put(3, -1, kNow + 40s), PutResult::merged);
  EXPECT_EQ(queue_.find(3)->until, kNow + 40s);
  EXPECT_EQ(put(3, -1, kNow), PutResult::merged);
  EXPECT_EQ(next(), 3u);
  EXPECT_EQ(last_.priority, 0);
}

TEST_F(JobQueueTest, LeavesAJobAloneWhenARepeatedPutAsksForNothingMore) {
  put(1, 1);
  put(2, 1);
  put(3, 1, kNow + 5s);
  EXPECT_EQ(put(1, 1), PutResult::unchanged);
  EXPECT_EQ(put(1, 0, kNow + 1h), PutResult::unchanged);
  EXPECT_EQ(put(3, 1, kNow + 5s), PutResult::unchanged);
  EXPECT_EQ(queue_.put({1, queue_.key("other"), 0, kNow, 999}, kNow), PutResult::unchanged);
  EXPECT_EQ(next(), 1u);
  EXPECT_EQ(last_.payload, 10u);
  EXPECT_EQ(last_.key, queue_.key("k"));
}

// pyspider dropped such a put in silence.
TEST_F(JobQueueTest, RunsAJobOnceMoreThatWasPutWhileItRan) {
  put(1);
  next();
  EXPECT_EQ(put(1, 2), PutResult::run_again);
  EXPECT_EQ(put(1, 4, kNow + 1s), PutResult::run_again);
  EXPECT_EQ(next(), 0u);
  EXPECT_TRUE(queue_.done(last_.token, kNow));
  EXPECT_EQ(next(), 1u);
  EXPECT_EQ(last_.priority, 4);
  EXPECT_EQ(last_.attempts, 1u);
  EXPECT_TRUE(queue_.done(last_.token, kNow));
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(JobQueueTest, RunsAJobOnceMoreOnlyWhenThatIsDue) {
  put(1);
  next();
  queue_.put({1, queue_.key("k"), 0, kNow + 9s, 77}, kNow);
  EXPECT_TRUE(queue_.bury(last_.token, kNow));
  EXPECT_EQ(next(), 0u);
  EXPECT_EQ(next(kNow + 9s), 1u);
  EXPECT_EQ(last_.payload, 77u);
}

TEST_F(JobQueueTest, MergesAPutWhileRunningIntoARetry) {
  put(1, 1);
  next();
  put(1, 3, kNow + 20s);
  EXPECT_TRUE(queue_.retry(last_.token, kNow + 60s, kNow));
  EXPECT_EQ(next(kNow + 20s), 1u);
  EXPECT_EQ(last_.priority, 3);
  EXPECT_EQ(last_.attempts, 2u);
  EXPECT_TRUE(queue_.done(last_.token, kNow + 20s));
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(JobQueueTest, MergesAPutWhileRunningIntoAJobThatIsPutBackOrExpires) {
  put(1, 1);
  next();
  put(1, 3);
  EXPECT_TRUE(queue_.put_back(last_.token, kNow));
  EXPECT_EQ(next(), 1u);
  EXPECT_EQ(last_.priority, 3);
  EXPECT_EQ(last_.attempts, 1u);
  put(1, 5);
  EXPECT_EQ(next(kNow + kLease), 1u);
  EXPECT_EQ(last_.priority, 5);
  EXPECT_TRUE(queue_.done(last_.token, kNow + kLease));
  EXPECT_EQ(queue_.size(), 0u);
}

// pyspider's order broke, or the change cost O(n).
TEST_F(JobQueueTest, ReordersAJobWhosePriorityChanges) {
  for (JobId id = 1; id <= 100; ++id) put(id);
  EXPECT_TRUE(queue_.set_priority(77, 1, kNow));
  EXPECT_TRUE(queue_.set_priority(1, -1, kNow));
  EXPECT_EQ(next(), 77u);
  EXPECT_FALSE(queue_.set_priority(77, 5, kNow));  // running
  EXPECT_FALSE(queue_.set_priority(999, 5, kNow));
  for (JobId id = 2; id <= 100; ++id) {
    if (id != 77) EXPECT_EQ(next(), static_cast<JobId>(id));
  }
  EXPECT_EQ(next(), 1u);
}

// At O(n) each, these would be 10¹¹ steps.
TEST_F(JobQueueTest, RaisesPrioritiesAmongManyWithoutTouchingTheRest) {
  constexpr JobId kJobs = 100'000;
  std::vector<std::int32_t> priorities(kJobs + 1);
  Random random(3);
  for (JobId id = 1; id <= kJobs; ++id) put(id);
  for (int i = 0; i < 1'000'000; ++i) {
    const JobId id = 1 + random.below(kJobs);
    priorities[id] += static_cast<std::int32_t>(1 + random.below(3));
    ASSERT_TRUE(queue_.set_priority(id, priorities[id], kNow));
  }
  std::vector<JobId> expected(kJobs);
  std::iota(expected.begin(), expected.end(), JobId{1});
  std::ranges::sort(expected, {}, [&](JobId id) { return std::pair(-priorities[id], id); });
  for (const JobId id : expected) ASSERT_EQ(next(), id);
}

TEST_F(JobQueueTest, RemembersAPriorityGivenBeforeTheJobIsDue) {
  put(1, 0, kNow + 1s);
  put(2, 5, kNow + 1s);
  EXPECT_TRUE(queue_.set_priority(1, 6, kNow));
  EXPECT_EQ(next(kNow + 1s), 1u);
}

TEST_F(JobQueueTest, MovesAJobInTimeBothWays) {
  put(1);
  put(2, 0, kNow + 10s);
  EXPECT_TRUE(queue_.set_due(1, kNow + 20s, kNow));
  EXPECT_EQ(next(), 0u);
  EXPECT_TRUE(queue_.set_due(1, kNow + 5s, kNow));
  EXPECT_TRUE(queue_.set_due(2, kNow, kNow));
  EXPECT_EQ(next(), 2u);
  EXPECT_FALSE(queue_.set_due(2, kNow, kNow));  // running
  EXPECT_EQ(next(kNow + 5s), 1u);
  EXPECT_FALSE(queue_.set_due(3, kNow, kNow));
}

// pyspider left them in its heaps.
TEST_F(JobQueueTest, ForgetsARemovedJobAltogether) {
  put(1);
  put(2);
  put(3, 0, kNow + 5s);
  EXPECT_TRUE(queue_.remove(1, kNow));
  EXPECT_TRUE(queue_.remove(3, kNow));
  EXPECT_FALSE(queue_.remove(1, kNow));
  EXPECT_EQ(queue_.size(), 1u);
  EXPECT_EQ(next(), 2u);
  EXPECT_FALSE(queue_.remove(2, kNow));  // running
  EXPECT_EQ(queue_.next_wakeup(kNow), kNow + kLease);
}

TEST_F(JobQueueTest, LetsAStaleTokenSettleNothing) {
  put(1);
  next();
  const std::uint64_t stale = last_.token;
  EXPECT_TRUE(queue_.retry(stale, kNow, kNow));
  next();
  const std::uint64_t made_up = 12345;
  for (const std::uint64_t token : {stale, made_up, ~std::uint64_t{0}, std::uint64_t{0}}) {
    EXPECT_FALSE(queue_.done(token, kNow));
    EXPECT_FALSE(queue_.bury(token, kNow));
    EXPECT_FALSE(queue_.retry(token, kNow, kNow));
    EXPECT_FALSE(queue_.put_back(token, kNow));
    EXPECT_FALSE(queue_.renew(token, kNow + 9h));
  }
  EXPECT_EQ(queue_.counts(), (JobCounts{0, 0, 1}));
  EXPECT_TRUE(queue_.done(last_.token, kNow));
  EXPECT_FALSE(queue_.done(last_.token, kNow));
}

TEST_F(JobQueueTest, LetsATokenOfAnEarlierJobInTheSamePlaceSettleNothing) {
  put(1);
  next();
  const std::uint64_t stale = last_.token;
  queue_.done(stale, kNow);
  put(2);
  next();
  EXPECT_FALSE(queue_.done(stale, kNow));
  EXPECT_TRUE(queue_.contains(2));
}

TEST_F(JobQueueTest, TakesAJobBackWhenItsLeaseRunsOut) {
  put(1);
  next();
  const std::uint64_t lost = last_.token;
  EXPECT_EQ(queue_.next_wakeup(kNow), kNow + kLease);
  EXPECT_EQ(next(kNow + kLease - 1ns), 0u);
  EXPECT_EQ(next(kNow + kLease), 1u);
  EXPECT_FALSE(queue_.done(lost, kNow + kLease));
  EXPECT_EQ(last_.attempts, 2u);
}

// pyspider's poison tasks came back for ever.
TEST_F(JobQueueTest, BuriesAJobWhoseLeaseRunsOutTooOften) {
  put(1);
  TimePoint now = kNow;
  for (int i = 0; i < 3; ++i, now += kLease) EXPECT_EQ(next(now), 1u);
  EXPECT_EQ(next(now), 0u);
  const auto expired = queue_.take_expired();
  ASSERT_EQ(expired.size(), 3u);
  EXPECT_FALSE(expired[1].buried);
  EXPECT_TRUE(expired[2].buried);
  EXPECT_TRUE(queue_.take_expired().empty());
  EXPECT_EQ(queue_.size(), 0u);
  EXPECT_EQ(put(1), PutResult::added);  // kicked
  EXPECT_EQ(next(now), 1u);
}

TEST_F(JobQueueTest, QueuesAnewInsteadOfBuryingAJobThatWasPutMeanwhile) {
  JobQueue queue({}, 1);
  const KeyId key = queue.key("k");
  queue.put({1, key}, kNow);
  ASSERT_TRUE(queue.lease(kNow, kLease));
  queue.put({1, key}, kNow);
  const auto again = queue.lease(kNow + kLease, kLease);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->attempts, 1u);
  EXPECT_FALSE(queue.take_expired().at(0).buried);
}

TEST_F(JobQueueTest, RenewsALease) {
  put(1);
  next();
  EXPECT_TRUE(queue_.renew(last_.token, kNow + 2h));
  EXPECT_EQ(next(kNow + 1h), 0u);
  EXPECT_EQ(queue_.find(1)->until, kNow + 2h);
  EXPECT_TRUE(queue_.done(last_.token, kNow + 1h));
}

TEST_F(JobQueueTest, RetriesAtTheTimeAndPriorityAsked) {
  put(1, 9);
  put(2, 5);
  next();
  EXPECT_TRUE(queue_.retry(last_.token, kNow + 1s, kNow, 1));
  EXPECT_EQ(queue_.find(1)->state, JobState::delayed);
  EXPECT_EQ(next(kNow + 1s), 2u);
  EXPECT_EQ(next(kNow + 1s), 1u);
  EXPECT_EQ(last_.priority, 1);
}

TEST_F(JobQueueTest, PutsARetriedJobAtItsOldPlaceAmongItsEquals) {
  put(1);
  put(2);
  next();
  EXPECT_TRUE(queue_.retry(last_.token, kNow, kNow));
  EXPECT_EQ(next(), 1u);
}

TEST_F(JobQueueTest, TellsWhatItKnowsOfAJob) {
  EXPECT_FALSE(queue_.find(1));
  EXPECT_FALSE(queue_.payload_of(1));
  put(1, 4, kNow + 3s);
  EXPECT_EQ(queue_.payload_of(1), 10u);
  EXPECT_EQ(queue_.find(1)->state, JobState::delayed);
  EXPECT_EQ(queue_.find(1)->priority, 4);
  EXPECT_EQ(queue_.find(1)->until, kNow + 3s);
  next(kNow + 3s);
  EXPECT_EQ(queue_.find(1)->state, JobState::running);
  EXPECT_EQ(queue_.find(1)->attempts, 1u);
  EXPECT_EQ(queue_.find(1)->until, kNow + 3s + kLease);
}

TEST_F(JobQueueTest, CountsJobsByStateAndKey) {
  put(1);
  put(2);
  put(3, 0, kNow + 5s);
  put(4, 0, kNow, "other");
  next();
  EXPECT_EQ(queue_.counts(), (JobCounts{.ready = 2, .delayed = 1, .running = 1}));
  EXPECT_EQ(queue_.counts(queue_.key("k")), (JobCounts{.ready = 1, .delayed = 1, .running = 1}));
  EXPECT_EQ(queue_.counts(queue_.key("other")), (JobCounts{.ready = 1, .delayed = 0, .running = 0}));
  EXPECT_EQ(queue_.tick(kNow + 5s), kNow + 5s);
  EXPECT_EQ(queue_.counts(queue_.key("k")), (JobCounts{.ready = 2, .delayed = 0, .running = 1}));
}

TEST_F(JobQueueTest, RefusesAKeyItDoesNotKnow) {
  EXPECT_THROW(queue_.put({1, KeyId{7}}, kNow), std::invalid_argument);
  EXPECT_THROW(queue_.rest_key(KeyId{0}, kNever, kNow), std::invalid_argument);
  EXPECT_THROW(queue_.set_key_limits(KeyId{0}, {}, kNow), std::invalid_argument);
  EXPECT_THROW(queue_.counts(KeyId{0}), std::invalid_argument);
}

TEST_F(JobQueueTest, KeepsTheOrderWhenTheNumbersOfPutsRunOut) {
  JobQueue queue({}, 3, std::numeric_limits<std::uint32_t>::max() - 30);
  const KeyId keys[] = {queue.key("a"), queue.key("b"), queue.key("c")};
  queue.rest_key(keys[2], kNow + 1s, kNow);
  for (JobId id = 1; id <= 60; ++id) {
    queue.put({id, keys[id % 3], static_cast<std::int32_t>(id % 2), id % 5 == 0 ? kNow + 1s : kNow}, kNow);
  }
  const auto first = queue.lease(kNow, kLease);
  ASSERT_TRUE(first && queue.retry(first->token, kNow, kNow));
  std::vector<JobId> order;
  while (const auto lease = queue.lease(kNow + 1s, kLease)) order.push_back(lease->id);
  std::vector<JobId> expected;
  for (JobId id = 1; id <= 60; id += 2) expected.push_back(id);
  for (JobId id = 2; id <= 60; id += 2) expected.push_back(id);
  EXPECT_EQ(order, expected);
}

// --- what an owner needs who keeps more jobs elsewhere

TEST_F(JobQueueTest, TakesJobsBackAtTheirOldPlace) {
  const KeyId key = queue_.key("k");
  JobSpec spec{.id = 7, .key = key, .due_at = kNow};
  spec.sequence = 20;
  queue_.put(spec, kNow);
  spec.id = 8;
  spec.sequence = 10;
  spec.attempts = 4;
  spec.expiries = 2;
  queue_.put(spec, kNow);
  EXPECT_EQ(queue_.most_important(), 8u);
  EXPECT_EQ(next(), 8u);
  EXPECT_EQ(last_.attempts, 5u);
  queue_.tick(kNow + kLease);  // the third lease to run out
  EXPECT_EQ(queue_.take_expired(), (std::vector<ExpiredLease>{{8, last_.token, true}}));
  EXPECT_EQ(next(), 7u);
}

TEST_F(JobQueueTest, KeepsTheOrderWhenSequencesAreShifted) {
  const KeyId keys[] = {queue_.key("a"), queue_.key("b")};
  for (JobId id = 1; id <= 20; ++id) {
    JobSpec spec{.id = id, .key = keys[id % 2], .due_at = kNow};
    spec.sequence = static_cast<std::uint32_t>(100 + id);
    queue_.put(spec, kNow);
  }
  queue_.shift_sequences(101);
  JobSpec late{.id = 99, .key = keys[0], .due_at = kNow};
  late.sequence = 20;
  queue_.put(late, kNow);
  for (JobId id = 1; id <= 20; ++id) EXPECT_EQ(next(), id);
  EXPECT_EQ(next(), 99u);
}

TEST_F(JobQueueTest, TellsWhichJobsHaveBecomeDue) {
  std::vector<JobId> due;
  queue_.set_due_log(&due);
  put(1);
  put(2, 0, kNow + 2s);
  put(3, 0, kNow + 1s);
  queue_.tick(kNow + 2s);
  EXPECT_EQ(due, (std::vector<JobId>{3, 2}));
}

TEST_F(JobQueueTest, ShowsEveryJob) {
  put(1);
  put(2, 3, kNow + 1s);
  std::vector<std::pair<JobId, JobState>> seen;
  queue_.for_each([&](JobId id, const JobInfo& info) { seen.emplace_back(id, info.state); });
  std::ranges::sort(seen);
  EXPECT_EQ(seen, (std::vector<std::pair<JobId, JobState>>{{1, JobState::ready}, {2, JobState::delayed}}));
}

// --- one given job ---------------------------------------------------------------------------------------------------

TEST_F(JobQueueTest, AGivenJobIsLeasedOutOfItsTurn) {
  put(1, 5);
  put(2);
  put(3, 0, kNow + 1h);
  EXPECT_EQ(queue_.lease_job(2, kNow, kLease).value().attempts, 1u);
  EXPECT_EQ(queue_.lease_job(2, kNow, kLease), std::nullopt) << "it runs";
  const auto late = queue_.lease_job(3, kNow, kLease);
  EXPECT_EQ(late.value().payload, 30u);
  EXPECT_EQ(queue_.lease_job(9, kNow, kLease), std::nullopt);
  EXPECT_EQ(next(), 1u);
  EXPECT_EQ(queue_.counts(), (JobCounts{.running = 3}));
  EXPECT_TRUE(queue_.release(late->token, kNow, kNow));
  EXPECT_EQ(next(), 3u) << "it came back as ready";
}

TEST_F(JobQueueTest, AGivenJobTakesThePermitsThereAreAndCountsAsRunning) {
  queue_.set_limits({.rate = 1, .burst = 1, .concurrency = 3}, kNow);
  queue_.set_default_key_limits({.concurrency = 1}, kNow);
  put(1, 0, kNow, "a");
  put(2, 0, kNow, "a");
  put(3, 0, kNow, "b");
  EXPECT_TRUE(queue_.lease_job(2, kNow, kLease));
  EXPECT_EQ(next(), 0u) << "the permit is taken";
  EXPECT_TRUE(queue_.is_at_concurrency(queue_.key("a")));
  EXPECT_FALSE(queue_.is_at_concurrency(queue_.key("b")));
  EXPECT_EQ(next(kNow + 1s), 3u) << "the other of its key waits";
  EXPECT_TRUE(queue_.lease_job(1, kNow + 1s, kLease)) << "who leases it has to ask first";
  EXPECT_TRUE(queue_.is_at_concurrency(queue_.key("b")));
}

TEST_F(JobQueueTest, AJobIsGivenBackWithAnotherPriority) {
  put(1, 1);
  put(2, 2);
  EXPECT_EQ(next(), 2u);
  EXPECT_TRUE(queue_.release(last_.token, kNow, kNow, 0));
  EXPECT_EQ(next(), 1u);
}

}  // namespace
}  // namespace argiope
