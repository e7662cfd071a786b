// The job queue against its model: thousands of random sequences of calls, each of which must end the same.
#include "jobs/job_queue_model.hpp"

#include <gtest/gtest.h>

#include <set>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

constexpr JobId kJobs = 40;

class Comparison {
 public:
  explicit Comparison(std::uint64_t seed) : random_(seed), names_(1 + random_.below(6)) {
    QueueLimits limits = {.rate = random_rate(), .burst = static_cast<double>(random_.between(1, 4))};
    if (random_.chance(0.6)) limits.rate = kUnlimitedRate;
    limits_ = limits;
    queue_.set_limits(limits, now_);
    model_.bucket = {limits.rate, static_cast<std::int64_t>(limits.burst), {}, 0};
    const KeyLimits usual = random_limits();
    queue_.set_default_key_limits(usual, now_);
    for (std::size_t i = 0; i < names_; ++i) {
      const bool has_own = random_.chance(0.5);
      const KeyLimits own = has_own ? random_limits() : usual;
      if (has_own) queue_.set_key_limits(key(name(i)), own, now_);
      model_.keys[name(i)] = {{own.rate, static_cast<std::int64_t>(own.burst), {}, 0}, own.concurrency, own.delay};
      own_limits_[name(i)] = own;
    }
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFatalFailure(); ++i) {
      step();
      if (!testing::Test::HasFatalFailure()) check();
    }
  }

 private:
  double random_rate() {
    constexpr double kRates[] = {kUnlimitedRate, kUnlimitedRate, 0, 1, 2, 4, 10};
    return kRates[random_.below(std::size(kRates))];
  }
  KeyLimits random_limits() {
    return {random_rate(), static_cast<double>(random_.between(1, 3)), random_concurrency(), random_delay()};
  }
  std::uint32_t random_concurrency() {
    return random_.chance(0.5) ? kUnlimited : static_cast<std::uint32_t>(random_.below(4));
  }
  Duration random_delay() { return std::chrono::seconds{random_.chance(0.5) ? 0 : random_.below(3)}; }
  std::int32_t random_priority() { return static_cast<std::int32_t>(random_.between(-3, 3)); }
  TimePoint random_due() { return now_ + std::chrono::seconds{random_.chance(0.5) ? 0 : random_.between(-5, 30)}; }
  JobId random_id() { return random_.below(kJobs) + 1; }
  static std::string name(std::size_t i) { return "host" + std::to_string(i); }
  std::string random_name() { return name(random_.below(names_)); }
  KeyId key(const std::string& key_name) { return queue_.key(key_name); }
  // Of one that is running, if any.
  ModelJob* random_running() {
    std::vector<ModelJob*> running;
    for (ModelJob& job : model_.jobs) {
      if (job.running()) running.push_back(&job);
    }
    return running.empty() ? nullptr : running[random_.below(running.size())];
  }

  void step() {
    switch (random_.below(16)) {
      case 0:
      case 1:
      case 2:
      case 3: return put();
      case 4:
      case 5:
      case 6:
      case 7: return lease();
      case 8:
      case 9: return settle();
      case 10: return change_job();
      case 11: return change_key();
      case 12: return change_queue();
      case 13: return explain();
      default: return pass_time();
    }
  }

  void put() {
    const JobId id = random_id();
    const std::string key_name = random_name();
    const ModelPut asked{random_priority(), random_due(), random_.next()};
    const PutResult result = queue_.put({id, key(key_name), asked.priority, asked.due, asked.payload}, now_);
    ASSERT_EQ(result, model_.put(id, key_name, asked, now_));
  }

  void lease() {
    const Duration lease_time = std::chrono::milliseconds{1 + random_.below(30'000)} + Duration{++unique_};
    ModelJob* expected = model_.best(now_);
    const auto got = queue_.lease(now_, lease_time);
    ASSERT_EQ(got.has_value(), expected != nullptr);
    if (!got) return check_wakeup();
    model_.start(*expected, got->token, now_, lease_time);
    ASSERT_EQ(got->id, expected->id);
    ASSERT_EQ(got->key, key(expected->key));
    ASSERT_EQ(got->priority, expected->asked.priority);
    ASSERT_EQ(got->payload, expected->asked.payload);
    ASSERT_EQ(got->attempts, expected->attempts);
    ASSERT_TRUE(tokens_.insert(got->token).second);
  }

  void settle() {
    ModelJob* job = random_running();
    if (job == nullptr) return;
    const std::uint64_t token = job->token;
    const TimePoint due = random_due();
    switch (random_.below(6)) {
      case 0:
      case 1: {
        ASSERT_TRUE(queue_.done(token, now_));
        model_.end(*job, now_);
        break;
      }
      case 2: {
        ASSERT_TRUE(queue_.retry(token, due, now_));
        model_.requeue(*job, due, now_);
        break;
      }
      case 3: {
        const std::int32_t priority = random_priority();
        ASSERT_TRUE(queue_.retry(token, due, now_, priority));
        job->asked.priority = priority;
        model_.requeue(*job, due, now_);
        break;
      }
      case 4: {
        ASSERT_TRUE(queue_.put_back(token, now_));
        model_.put_back(*job, now_);
        break;
      }
      case 5: {
        const TimePoint until = now_ + std::chrono::milliseconds{1 + random_.below(30'000)} + Duration{++unique_};
        ASSERT_TRUE(queue_.renew(token, until));
        job->lease_until = until;
        return;
      }
    }
    ASSERT_FALSE(queue_.done(token, now_));
    ASSERT_FALSE(queue_.retry(token, now_, now_));
    ASSERT_FALSE(queue_.put_back(token, now_));
    ASSERT_FALSE(queue_.renew(token, kNever));
  }

  void change_job() {
    const JobId id = random_id();
    ModelJob* job = model_.find(id);
    const bool waiting = job != nullptr && !job->running();
    if (random_.chance(0.3)) {
      ASSERT_EQ(queue_.remove(id, now_), waiting);
      if (waiting) model_.jobs.erase(model_.jobs.begin() + (job - model_.jobs.data()));
    } else if (random_.chance(0.5)) {
      const std::int32_t priority = random_priority();
      ASSERT_EQ(queue_.set_priority(id, priority, now_), waiting);
      if (waiting) job->asked.priority = priority;
    } else {
      const TimePoint due = random_due();
      ASSERT_EQ(queue_.set_due(id, due, now_), waiting);
      // A ready job that is made due in the past stays as ready as it was.
      if (waiting && (due > now_ || job->asked.due > now_)) job->asked.due = due;
    }
  }

  void change_key() {
    const std::string key_name = random_name();
    ModelKey& model_key = model_.keys[key_name];
    if (random_.chance(0.4)) {
      const TimePoint until = random_.chance(0.1) ? kNever : now_ + std::chrono::seconds{random_.between(-2, 20)};
      model_key.rest_until = std::max(model_key.rest_until, until);
      queue_.rest_key(key(key_name), until, now_);
    } else if (random_.chance(0.4)) {
      model_key.rest_until = TimePoint::min();
      queue_.wake_key(key(key_name), now_);
    } else {
      KeyLimits& limits = own_limits_[key_name];  // its rate stays: the model knows no change of rate
      limits.concurrency = model_key.concurrency = random_concurrency();
      limits.delay = model_key.delay = random_delay();
      queue_.set_key_limits(key(key_name), limits, now_);
    }
  }

  void change_queue() {
    switch (random_.below(4)) {
      case 0: {
        queue_.pause();
        model_.paused = true;
        return;
      }
      case 1: {
        queue_.resume();
        model_.paused = false;
        return;
      }
      case 2: {
        limits_.concurrency = model_.concurrency = random_concurrency();
        limits_.paused = model_.paused = false;
        queue_.set_limits(limits_, now_);
        return;
      }
      case 3: {
        const std::size_t keys = queue_.key_count();
        const std::size_t pruned = queue_.prune_keys(now_);
        ASSERT_EQ(queue_.key_count(), keys - pruned);
        return;
      }
    }
  }

  void explain() {
    const JobId id = random_id();
    const ModelJob* job = model_.find(id);
    const Explanation told = queue_.explain(id, now_);
    if (job == nullptr) {
      ASSERT_EQ(told.reason, WaitReason::not_found);
    } else if (job->running()) {
      ASSERT_EQ(told.reason, WaitReason::running);
      ASSERT_EQ(told.until, job->lease_until);
    } else if (job->asked.due > now_) {
      ASSERT_EQ(told.reason, WaitReason::not_due);
      ASSERT_EQ(told.until, job->asked.due);
    } else if (model_.paused) {
      ASSERT_EQ(told.reason, WaitReason::queue_paused);
    } else if (model_.running() >= model_.concurrency) {
      ASSERT_EQ(told.reason, WaitReason::queue_concurrency);
    } else if (model_.bucket.next(now_) > now_) {
      ASSERT_EQ(told.reason, WaitReason::queue_rate);
      ASSERT_EQ(told.until, model_.bucket.next(now_));
    } else if (const WaitReason reason = model_.wait_of_key(job->key, now_); reason != WaitReason::none) {
      ASSERT_EQ(told.reason, reason);
      const ModelKey& model_key = model_.keys[job->key];
      if (reason == WaitReason::key_resting) ASSERT_EQ(told.until, model_key.rest_until);
      if (reason == WaitReason::key_rate) ASSERT_EQ(told.until, model_key.bucket.next(now_));
    } else {
      ASSERT_EQ(told.ahead, model_.ahead_of(*job, now_));
      ASSERT_EQ(told.reason, told.ahead == 0 ? WaitReason::none : WaitReason::more_important_jobs);
    }
  }

  void pass_time() {
    now_ += std::chrono::milliseconds{random_.below(5000)};
    // Sometimes exactly to when something is to happen.
    if (const TimePoint wakeup = queue_.next_wakeup(now_); random_.chance(0.5) && wakeup != kNever) {
      now_ = std::max(now_, wakeup);
    }
    model_.expire_leases(now_);
    queue_.tick(now_);
    ASSERT_EQ(buried_of(queue_.take_expired()), std::exchange(model_.buried, {}));
  }

  // Nothing may become possible before the queue says so, and at that time something must happen.
  void check_wakeup() {
    const TimePoint wakeup = queue_.next_wakeup(now_);
    ASSERT_GT(wakeup, now_);
    std::set<TimePoint> moments = {model_.bucket.next(now_)};
    for (const ModelJob& job : model_.jobs) {
      if (job.running()) ASSERT_LE(wakeup, job.lease_until);
      if (!job.running()) moments.insert(job.asked.due);
    }
    for (const auto& [key_name, model_key] : model_.keys) {
      moments.insert(std::max(model_key.rest_until, model_key.bucket.next(now_)));
    }
    for (const TimePoint moment : moments) {
      if (moment > now_ && moment < wakeup) ASSERT_EQ(model_.best(moment), nullptr);
    }
    if (wakeup == kNever || model_.best(wakeup) != nullptr) return;
    const bool job_moves = std::ranges::any_of(model_.jobs, [&](const ModelJob& job) {
      return job.running() ? job.lease_until == wakeup : job.asked.due > now_ && job.asked.due <= wakeup;
    });
    const bool key_moves = std::ranges::any_of(model_.keys, [&](const auto& named) {
      const TimePoint until = std::max(named.second.rest_until, named.second.bucket.next(now_));
      return until > now_ && until <= wakeup;
    });
    ASSERT_TRUE(job_moves || key_moves);
  }

  void check() {
    ASSERT_EQ(queue_.counts(), model_.counts(now_));
    ASSERT_EQ(queue_.size(), model_.jobs.size());
    const std::string key_name = random_name();
    ASSERT_EQ(queue_.counts(key(key_name)), model_.counts(now_, &key_name));
    const JobId id = random_id();
    const ModelJob* job = model_.find(id);
    const auto info = queue_.find(id);
    ASSERT_EQ(info.has_value(), job != nullptr);
    ASSERT_EQ(queue_.contains(id), job != nullptr);
    if (job != nullptr) {
      ASSERT_EQ(info->priority, job->asked.priority);
      ASSERT_EQ(info->attempts, job->attempts);
    }
  }

  Random random_;
  std::size_t names_;
  JobQueueModel model_;
  JobQueue queue_;
  QueueLimits limits_;
  std::map<std::string, KeyLimits> own_limits_;
  std::set<std::uint64_t> tokens_;
  TimePoint now_{1000s};
  std::int64_t unique_ = 0;
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
