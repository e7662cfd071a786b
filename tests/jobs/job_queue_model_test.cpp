// The job queue against a model too simple to be wrong: a list that is searched from end to end.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "argiope/base/random.hpp"
#include "argiope/jobs/job_queue.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

struct ModelJob {
  JobId id;
  std::uint32_t key;
  std::int32_t priority;
  std::uint64_t order;
  TimePoint due;
  std::uint64_t token = 0;  // 0: not running
};

struct ModelKey {
  std::uint32_t concurrency = kUnlimited;
  Duration delay{};
  TimePoint rest_until{};
};

class Model {
 public:
  explicit Model(std::size_t keys) : keys(keys) {}

  std::uint32_t running(std::uint32_t key) const {
    return static_cast<std::uint32_t>(std::ranges::count_if(jobs, [&](const ModelJob& job) {
      return job.key == key && job.token != 0;
    }));
  }
  ModelJob* find(JobId id) {
    const auto found = std::ranges::find(jobs, id, &ModelJob::id);
    return found == jobs.end() ? nullptr : &*found;
  }
  // What lease() must choose at `now`.
  ModelJob* best(TimePoint now) {
    ModelJob* best = nullptr;
    for (ModelJob& job : jobs) {
      const ModelKey& key = keys[job.key];
      if (job.token != 0 || job.due > now || key.rest_until > now || running(job.key) >= key.concurrency) continue;
      if (best == nullptr || job.priority > best->priority ||
          (job.priority == best->priority && job.order < best->order)) {
        best = &job;
      }
    }
    return best;
  }

  std::vector<ModelJob> jobs;
  std::vector<ModelKey> keys;
};

class Comparison {
 public:
  explicit Comparison(std::uint64_t seed) : random_(seed), model_(1 + random_.below(6)) {
    for (std::uint32_t key = 0; key < model_.keys.size(); ++key) queue_.key(std::to_string(key));
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFatalFailure(); ++i) step();
  }

 private:
  KeyId random_key() { return KeyId{static_cast<std::uint32_t>(random_.below(model_.keys.size()))}; }

  void step() {
    switch (random_.below(9)) {
      case 0:
      case 1:
      case 2: return put();
      case 3:
      case 4: return lease();
      case 5: return settle();
      case 6: return change_priority();
      case 7: return change_key();
      case 8: return pass_time();
    }
  }

  void put() {
    const JobId id = random_.below(60) + 1;
    const TimePoint due = now_ + std::chrono::seconds{random_.chance(0.5) ? 0 : random_.below(30)};
    const auto priority = static_cast<std::int32_t>(random_.between(-3, 3));
    ModelJob* known = model_.find(id);
    if (known != nullptr && known->token != 0) return;  // running again has its own test
    const KeyId key = known != nullptr ? KeyId{known->key} : random_key();
    const PutResult result = queue_.put({id, key, priority, due, 0}, now_);
    if (known == nullptr) {
      ASSERT_EQ(result, PutResult::added);
      model_.jobs.push_back({id, static_cast<std::uint32_t>(key), priority, order_++, due});
    } else {
      ASSERT_EQ(result, PutResult::merged);
      known->priority = std::max(known->priority, priority);
      known->due = std::min(known->due, due);
    }
  }

  void lease() {
    ModelJob* expected = model_.best(now_);
    const auto got = queue_.lease(now_, 1000h);
    ASSERT_EQ(got.has_value(), expected != nullptr);
    if (!got) {
      // Nothing may become possible before the queue says so.
      const TimePoint wakeup = queue_.next_wakeup(now_);
      ASSERT_GT(wakeup, now_);
      if (wakeup < now_ + 1h) ASSERT_EQ(model_.best(wakeup - 1ns), nullptr);
      return;
    }
    ASSERT_EQ(got->id, expected->id);
    expected->token = got->token;
    ASSERT_LE(queue_.next_wakeup(now_), model_.best(now_) != nullptr ? now_ : kNever);
  }

  void settle() {
    const auto running = std::ranges::find_if(model_.jobs, [](const ModelJob& job) { return job.token != 0; });
    if (running == model_.jobs.end()) return;
    ModelKey& key = model_.keys[running->key];
    const std::uint64_t token = running->token;
    const std::uint64_t how = random_.below(3);
    if (how == 2) {
      ASSERT_TRUE(queue_.put_back(token, now_));
      running->token = 0;
      return;
    }
    if (key.delay > Duration::zero()) key.rest_until = std::max(key.rest_until, now_ + key.delay);
    if (how == 0) {
      ASSERT_TRUE(queue_.done(token, now_));
      model_.jobs.erase(running);
    } else {
      running->due = now_ + std::chrono::seconds{random_.below(10)};
      running->token = 0;
      ASSERT_TRUE(queue_.retry(token, running->due, now_));
    }
    ASSERT_FALSE(queue_.done(token, now_));
  }

  void change_priority() {
    const JobId id = random_.below(60) + 1;
    const auto priority = static_cast<std::int32_t>(random_.between(-3, 3));
    ModelJob* known = model_.find(id);
    const bool waiting = known != nullptr && known->token == 0;
    if (random_.chance(0.3)) {
      ASSERT_EQ(queue_.remove(id, now_), waiting);
      if (waiting) model_.jobs.erase(model_.jobs.begin() + (known - model_.jobs.data()));
      return;
    }
    ASSERT_EQ(queue_.set_priority(id, priority, now_), waiting);
    if (waiting) known->priority = priority;
  }

  void change_key() {
    const KeyId id = random_key();
    ModelKey& key = model_.keys[static_cast<std::size_t>(id)];
    if (random_.chance(0.4)) {
      const TimePoint until = now_ + std::chrono::seconds{random_.below(20)};
      key.rest_until = std::max(key.rest_until, until);
      queue_.rest_key(id, until, now_);
    } else if (random_.chance(0.2)) {
      key.rest_until = TimePoint{};
      queue_.wake_key(id, now_);
    } else {
      key.concurrency = random_.chance(0.3) ? kUnlimited : static_cast<std::uint32_t>(random_.below(4));
      key.delay = std::chrono::seconds{random_.below(3)};
      queue_.set_key_limits(id, {.concurrency = key.concurrency, .delay = key.delay}, now_);
    }
  }

  void pass_time() {
    now_ += std::chrono::milliseconds{random_.below(5000)};
    const auto waiting = std::ranges::count_if(model_.jobs, [](const ModelJob& job) { return job.token == 0; });
    ASSERT_EQ(queue_.ready_count() + queue_.delayed_count(), static_cast<std::size_t>(waiting));
    ASSERT_EQ(queue_.size(), model_.jobs.size());
  }

  Random random_;
  Model model_;
  JobQueue queue_;
  TimePoint now_{1000s};
  std::uint64_t order_ = 0;
};

TEST(JobQueueModel, AgreesOnThousandsOfRandomSequences) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Comparison(seed).run(300);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace argiope
