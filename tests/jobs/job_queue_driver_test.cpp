// A driver as an owner of a JobQueue writes it: do what is due, ask when to wake, sleep until then. It must start each
// job at the very time a driver that looks every millisecond starts it, and never wake for nothing.
#include <gtest/gtest.h>

#include <tuple>

#include "argiope/base/clock.hpp"
#include "argiope/base/random.hpp"
#include "jobs/job_queue_model.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLease = 400ms;
constexpr TimePoint kEnd{40s};

// All times are whole milliseconds, and rates divide a thousand.
struct Scenario {
  struct Put {
    JobId id;
    std::string key;
    std::int32_t priority;
    TimePoint due;
    Duration work;  // longer than the lease: the worker is lost
  };
  QueueLimits limits;
  std::map<std::string, KeyLimits> keys;
  std::vector<Put> puts;

  static Scenario random(std::uint64_t seed) {
    Random random(seed);
    const auto ms = [&](std::int64_t low, std::int64_t high) {
      return Duration{random.between(low, high) * 1'000'000};
    };
    constexpr double kRates[] = {kUnlimitedRate, 2, 5, 10, 50};
    Scenario scenario;
    scenario.limits = {kRates[random.below(5)], static_cast<double>(random.between(1, 3)),
                       static_cast<std::uint32_t>(random.between(1, 6))};
    const std::int64_t keys = random.between(1, 5);
    for (std::int64_t i = 0; i < keys; ++i) {
      scenario.keys["host" + std::to_string(i)] = {kRates[random.below(5)], static_cast<double>(random.between(1, 3)),
                                                   static_cast<std::uint32_t>(random.between(1, 3)),
                                                   random.chance(0.5) ? 0ms : ms(0, 300)};
    }
    for (JobId id = 1; id <= 40; ++id) {
      scenario.puts.push_back(
          {id, "host" + std::to_string(random.between(0, keys - 1)), static_cast<std::int32_t>(random.between(-2, 2)),
           TimePoint{random.chance(0.3) ? 0ms : ms(0, 8000)}, random.chance(0.05) ? 1s : ms(1, 350)});
    }
    return scenario;
  }
};

struct Start {
  JobId id;
  TimePoint at;
  friend bool operator==(const Start&, const Start&) = default;
};

// Looks every millisecond, with the model.
std::vector<Start> starts_by_looking_always(const Scenario& scenario) {
  JobQueueModel model;
  model.bucket = {scenario.limits.rate, static_cast<std::int64_t>(scenario.limits.burst), {}, 0};
  model.concurrency = scenario.limits.concurrency;
  for (const auto& [name, key] : scenario.keys) {
    model.keys[name] = {{key.rate, static_cast<std::int64_t>(key.burst), {}, 0}, key.concurrency, key.delay};
  }
  for (const auto& put : scenario.puts) model.put(put.id, put.key, {put.priority, put.due, 0}, TimePoint{});
  std::vector<Start> starts;
  std::map<std::pair<TimePoint, std::uint64_t>, std::uint64_t> ends;  // by time and token
  std::uint64_t token = 0;
  for (TimePoint now{}; now < kEnd; now += 1ms) {
    for (; !ends.empty() && ends.begin()->first.first <= now; ends.erase(ends.begin())) {
      const auto job = std::ranges::find(model.jobs, ends.begin()->second, &ModelJob::token);
      if (job != model.jobs.end()) model.end(*job, now);
    }
    model.expire_leases(now);
    while (ModelJob* job = model.best(now)) {
      starts.push_back({job->id, now});
      model.start(*job, ++token, now, kLease);
      ends[{now + scenario.puts[job->id - 1].work, token}] = token;
    }
  }
  return starts;
}

// Looks when the queue says so, and when a job ends.
std::vector<Start> starts_by_waking_when_told(const Scenario& scenario) {
  ManualClock clock;
  JobQueue queue(scenario.limits);
  for (const auto& [name, key] : scenario.keys) queue.set_key_limits(queue.key(name), key, clock.now());
  for (const auto& put : scenario.puts) queue.put({put.id, queue.key(put.key), put.priority, put.due}, clock.now());
  std::vector<Start> starts;
  std::map<std::pair<TimePoint, std::uint64_t>, std::uint64_t> ends;
  std::uint64_t order = 0;
  std::size_t idle_wakeups = 0;
  for (;;) {
    const TimePoint now = clock.now();
    bool useful = false;
    for (; !ends.empty() && ends.begin()->first.first <= now; ends.erase(ends.begin())) {
      queue.done(ends.begin()->second, now);
      useful = true;
    }
    const JobCounts before = queue.counts();
    while (const auto lease = queue.lease(now, kLease)) {
      starts.push_back({lease->id, now});
      ends[{now + scenario.puts[lease->id - 1].work, ++order}] = lease->token;
      useful = true;
    }
    useful = useful || queue.counts() != before || now == TimePoint{};
    idle_wakeups += !useful;
    TimePoint wakeup = queue.next_wakeup(now);
    EXPECT_GT(wakeup, now) << "the driver would spin";
    if (!ends.empty()) wakeup = std::min(wakeup, ends.begin()->first.first);
    if (wakeup <= now || wakeup >= kEnd) break;
    clock.advance_to(wakeup);
  }
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_EQ(idle_wakeups, 0u);
  return starts;
}

TEST(JobQueueDriver, StartsEachJobAtTheFirstMomentTheLimitsAllow) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Scenario scenario = Scenario::random(seed);
    const std::vector<Start> expected = starts_by_looking_always(scenario);
    EXPECT_GE(expected.size(), scenario.puts.size());
    ASSERT_EQ(starts_by_waking_when_told(scenario), expected);
  }
}

TEST(JobQueueDriver, SleepsForEverWhenOnlyACallCanHelp) {
  JobQueue queue;
  const TimePoint now{5s};
  EXPECT_EQ(queue.tick(now), kNever);
  const KeyId key = queue.key("k");
  queue.rest_key(key, kNever, now);
  queue.put({1, key}, now);
  EXPECT_EQ(queue.tick(now), kNever);
  queue.wake_key(key, now);
  EXPECT_EQ(queue.tick(now), now);
  queue.pause();
  EXPECT_EQ(queue.tick(now), kNever);
}

}  // namespace
}  // namespace argiope
