// A JobQueue's memory: it does not grow with the past, and running out of it loses nothing.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "argiope/base/random.hpp"
#include "argiope/jobs/job_queue.hpp"
#include "jobs/job_queue_model.hpp"

namespace {

// Allocations until one fails; negative: none will.
thread_local int allocations_left = -1;

}  // namespace

// The thread sanitizer brings an allocation of its own.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ARGIOPE_FIXED_ALLOCATION
#endif
#endif

#ifndef ARGIOPE_FIXED_ALLOCATION
// Replaces the allocation of the whole test program, to be able to let one fail.
void* operator new(std::size_t size) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return std::malloc(size == 0 ? 1 : size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace argiope {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kNow{1000s};

// Calls `action` with the first allocation failing, then the second, and so on, until it succeeds.
template <class Action>
auto with_each_allocation_failing(int& failures, Action&& action) {
  for (int allowed = 0;; ++allowed) {
    allocations_left = allowed;
    try {
      auto result = action();
      allocations_left = -1;
      return result;
    } catch (const std::bad_alloc&) {
      allocations_left = -1;
      ++failures;
    }
  }
}

TEST(JobQueueMemory, LosesNothingWhenAnAllocationFails) {
#ifdef ARGIOPE_FIXED_ALLOCATION
  GTEST_SKIP() << "no allocation can be made to fail under this sanitizer";
#endif
  int failures = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    JobQueue queue({}, 2);
    TimePoint now = kNow;
    std::size_t expected = 0;
    std::vector<std::uint64_t> tokens;
    for (JobId id = 1; id <= 1500; ++id) {
      const std::string name = "a host whose name is kept beside the key, " + std::to_string(random.below(60));
      const KeyId key = with_each_allocation_failing(failures, [&] { return queue.key(name); });
      const TimePoint due = random.chance(0.5) ? now : now + 1s + Duration{random.between(0, 1'000'000'000)};
      expected += with_each_allocation_failing(failures, [&] {
                    return queue.put({id, key, 0, due}, now);
                  }) == PutResult::added;
      if (random.chance(0.4)) {
        const auto lease = with_each_allocation_failing(failures, [&] { return queue.lease(now, 2s); });
        if (lease) tokens.push_back(lease->token);
        if (lease && random.chance(0.3)) {
          with_each_allocation_failing(failures, [&] { return queue.put({lease->id, key, 1, due}, now); });
        }
      }
      if (!tokens.empty() && random.chance(0.4)) {
        const std::uint64_t token = tokens.back();
        tokens.pop_back();
        const std::size_t before = queue.size();
        switch (random.below(3)) {
          case 0: with_each_allocation_failing(failures, [&] { return queue.done(token, now); }); break;
          case 1: with_each_allocation_failing(failures, [&] { return queue.retry(token, due, now); }); break;
          case 2: with_each_allocation_failing(failures, [&] { return queue.put_back(token, now); }); break;
        }
        expected -= before - queue.size();
      }
      if (random.chance(0.3)) {
        with_each_allocation_failing(failures, [&] { return queue.set_due(random.below(id) + 1, due, now); });
      }
      if (random.chance(0.02)) {
        now += 700ms;
        with_each_allocation_failing(failures, [&] { return queue.tick(now); });
        expected -= buried_of(queue.take_expired()).size();
      }
      ASSERT_EQ(queue.size(), expected);
      const JobCounts counts = queue.counts();
      ASSERT_EQ(counts.ready + counts.delayed + counts.running, expected);
    }
    // Everything that is left comes out, once.
    now += 1h;
    std::size_t given = 0;
    queue.tick(now);
    expected -= buried_of(queue.take_expired()).size();
    for (; const auto lease = queue.lease(now, 1h); ++given) ASSERT_TRUE(queue.done(lease->token, now));
    // Jobs that were put while they ran would be given once more, but their leases had all ended before.
    EXPECT_EQ(given, expected) << "seed " << seed;
    EXPECT_EQ(queue.size(), 0u);
  }
  EXPECT_GT(failures, 500);
}

// pyspider's deleted tasks stayed in its heaps.
TEST(JobQueueMemory, DoesNotGrowWithJobsThatAreGone) {
  JobQueue queue;
  const KeyId key = queue.key("k");
  const auto round = [&](JobId first) {
    for (JobId id = first; id < first + 3000; ++id) queue.put({id, key, 0, id % 2 == 0 ? kNow : kNow + 1h}, kNow);
    for (JobId id = first; id < first + 3000; id += 3) EXPECT_TRUE(queue.remove(id, kNow));
    while (const auto lease = queue.lease(kNow + 2h, 1h)) queue.done(lease->token, kNow + 2h);
    EXPECT_EQ(queue.size(), 0u);
    return queue.memory_bytes();
  };
  const std::size_t first = round(1);
  for (JobId i = 1; i < 20; ++i) EXPECT_LE(round(i * 10'000), first);
}

TEST(JobQueueMemory, StaysWithinSixtyFourBytesAJobBesideItsPayload) {
  JobQueue queue;
  const KeyId key = queue.key("k");
  constexpr JobId kJobs = 200'000;
  for (JobId id = 1; id <= kJobs; ++id) queue.put({id, key}, kNow);
  EXPECT_LE(queue.memory_bytes() / kJobs - sizeof(JobSpec::payload), 64u);
}

TEST(JobQueueMemory, DoesNotGrowWithKeysThatAreIdle) {
  JobQueue queue;
  TimePoint now = kNow;
  std::size_t first = 0;
  for (int round = 0; round < 20; ++round, now += 1h) {
    for (int i = 0; i < 1000; ++i) {
      const JobId id = static_cast<JobId>(round * 1000 + i + 1);
      queue.put({id, queue.key("host" + std::to_string(id))}, now);
    }
    while (const auto lease = queue.lease(now, 1h)) queue.done(lease->token, now);
    EXPECT_EQ(queue.prune_keys(now), 1000u);
    EXPECT_EQ(queue.key_count(), 0u);
    if (round == 0) first = queue.memory_bytes();
    EXPECT_EQ(queue.memory_bytes(), first);
  }
}

TEST(JobQueueMemory, ForgetsNoKeyThatIsStillNeeded) {
  JobQueue queue;
  queue.set_default_key_limits({.rate = 1, .burst = 1}, kNow);
  queue.put({1, queue.key("ready")}, kNow);
  queue.put({2, queue.key("delayed"), 0, kNow + 1s}, kNow);
  queue.rest_key(queue.key("resting"), kNow + 5s, kNow);
  queue.set_key_limits(queue.key("limited"), {.rate = 2}, kNow);
  queue.key("idle");
  EXPECT_EQ(queue.prune_keys(kNow), 1u);
  const auto lease = queue.lease(kNow, 1h);
  EXPECT_EQ(queue.prune_keys(kNow), 0u);  // running
  queue.done(lease->token, kNow);
  EXPECT_EQ(queue.prune_keys(kNow), 0u);  // its bucket is not full again
  EXPECT_EQ(queue.prune_keys(kNow + 2s), 1u);
  EXPECT_EQ(queue.prune_keys(kNow + 6s), 1u);  // the rest is over
  EXPECT_EQ(queue.key_count(), 2u);
}

}  // namespace
}  // namespace argiope
