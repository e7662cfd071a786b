// A model of JobQueue too simple to be wrong: lists that are searched from end to end, and the rules of the header
// written down one by one. It is slow, and shares no code with the queue.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "argiope/jobs/job_queue.hpp"

namespace argiope {

// The definition of a rate, taken literally: no window of length t holds more than burst + rate·t permits. Rates are
// whole permits a second that divide 10⁹, or 0.
struct ModelBucket {
  double rate = kUnlimitedRate;
  std::int64_t burst = 1;
  std::vector<TimePoint> taken;
  std::uint64_t last_token = 0;

  TimePoint next(TimePoint now) const {
    if (rate == kUnlimitedRate) return now;
    if (rate == 0) return kNever;
    const Duration interval{static_cast<std::int64_t>(1e9 / rate)};
    TimePoint next = now;
    for (std::size_t i = 0; i < taken.size(); ++i) {
      const auto with_this_one = static_cast<std::int64_t>(taken.size() - i) + 1;
      next = std::max(next, taken[i] + (with_this_one - burst) * interval);
    }
    return next;
  }
  void take(TimePoint now, std::uint64_t token) {
    taken.push_back(now);
    last_token = token;
  }
  void give_back(std::uint64_t token) {
    if (last_token != token) return;
    taken.pop_back();
    last_token = 0;
  }
};

struct ModelPut {
  std::int32_t priority = 0;
  TimePoint due;
  std::uint64_t payload = 0;
};

struct ModelJob {
  JobId id = 0;
  std::string key;
  ModelPut asked;
  std::uint64_t order = 0;
  std::uint32_t attempts = 0;
  std::uint32_t expiries = 0;
  std::uint64_t token = 0;  // 0: waits
  TimePoint lease_until{};
  std::optional<ModelPut> again;

  bool running() const { return token != 0; }
  bool before(const ModelJob& other) const {
    return asked.priority != other.asked.priority ? asked.priority > other.asked.priority : order < other.order;
  }
};

struct ModelKey {
  ModelBucket bucket;
  std::uint32_t concurrency = kUnlimited;
  Duration delay{};
  TimePoint rest_until = TimePoint::min();
};

inline std::vector<JobId> buried_of(const std::vector<ExpiredLease>& expired) {
  std::vector<JobId> buried;
  for (const ExpiredLease& lease : expired) {
    if (lease.buried) buried.push_back(lease.id);
  }
  return buried;
}

class JobQueueModel {
 public:
  ModelJob* find(JobId id) {
    const auto found = std::ranges::find(jobs, id, &ModelJob::id);
    return found == jobs.end() ? nullptr : &*found;
  }
  std::uint32_t running(const std::string& key) const {
    return static_cast<std::uint32_t>(
        std::ranges::count_if(jobs, [&](const ModelJob& job) { return job.running() && job.key == key; }));
  }
  std::uint32_t running() const { return static_cast<std::uint32_t>(std::ranges::count_if(jobs, &ModelJob::running)); }
  JobCounts counts(TimePoint now, const std::string* key = nullptr) const {
    JobCounts counts;
    for (const ModelJob& job : jobs) {
      if (key != nullptr && job.key != *key) continue;
      ++(job.running() ? counts.running : job.asked.due > now ? counts.delayed : counts.ready);
    }
    return counts;
  }

  // --- what the limits say at `now`
  bool queue_lets_start(TimePoint now) const { return !paused && running() < concurrency && bucket.next(now) <= now; }
  WaitReason wait_of_key(const std::string& name, TimePoint now) const {
    const ModelKey& key = keys.at(name);
    if (key.rest_until > now) return WaitReason::key_resting;
    if (running(name) >= key.concurrency) return WaitReason::key_concurrency;
    if (key.bucket.next(now) > now) return WaitReason::key_rate;
    return WaitReason::none;
  }
  // What lease() must choose.
  ModelJob* best(TimePoint now) {
    if (!queue_lets_start(now)) return nullptr;
    std::map<std::string, bool> open;
    for (const auto& [name, key] : keys) open[name] = wait_of_key(name, now) == WaitReason::none;
    ModelJob* best = nullptr;
    for (ModelJob& job : jobs) {
      if (job.running() || job.asked.due > now || !open[job.key]) continue;
      if (best == nullptr || job.before(*best)) best = &job;
    }
    return best;
  }
  std::size_t ahead_of(const ModelJob& job, TimePoint now) const {
    return static_cast<std::size_t>(std::ranges::count_if(jobs, [&](const ModelJob& other) {
      return !other.running() && other.asked.due <= now && other.before(job) &&
             wait_of_key(other.key, now) == WaitReason::none;
    }));
  }

  // --- what happens
  void start(ModelJob& job, std::uint64_t token, TimePoint now, Duration lease_time) {
    bucket.take(now, token);
    keys[job.key].bucket.take(now, token);
    job.token = token;
    job.lease_until = now + lease_time;
    ++job.attempts;
  }
  PutResult put(JobId id, const std::string& key, const ModelPut& put, TimePoint now) {
    ModelJob* job = find(id);
    if (job == nullptr) {
      jobs.push_back({id, key, put, order++, 0, 0, 0, {}, {}});
      return PutResult::added;
    }
    if (job->running()) {
      if (!job->again) {
        job->again = put;
      } else {
        merge(*job->again, put);
      }
      return PutResult::run_again;
    }
    const bool more = put.priority > job->asked.priority || (job->asked.due > now && put.due < job->asked.due);
    merge(job->asked, put);
    return more ? PutResult::merged : PutResult::unchanged;
  }
  // The job has ended.
  void end(ModelJob& job, TimePoint now) {
    stop(job, now);
    if (!job.again) {
      jobs.erase(jobs.begin() + (&job - jobs.data()));
      return;
    }
    job.asked = *job.again;
    job.again.reset();
    job.order = order++;
    job.attempts = job.expiries = 0;
  }
  // The job is to run again.
  void requeue(ModelJob& job, TimePoint due, TimePoint now) {
    stop(job, now);
    job.asked.due = due;
    if (job.again) merge(job.asked, *job.again);
    job.again.reset();
  }
  void put_back(ModelJob& job, TimePoint now) {
    ModelKey& key = keys[job.key];
    const TimePoint rest = key.rest_until;
    bucket.give_back(job.token);
    key.bucket.give_back(job.token);
    --job.attempts;
    requeue(job, now, now);
    key.rest_until = rest;
  }
  void expire_leases(TimePoint now) {
    for (;;) {
      ModelJob* first = nullptr;
      for (ModelJob& job : jobs) {
        if (job.running() && (first == nullptr || job.lease_until < first->lease_until)) first = &job;
      }
      if (first == nullptr || first->lease_until > now) return;
      if (++first->expiries < max_lease_expiries) {
        requeue(*first, now, now);
      } else {
        if (!first->again) buried.push_back(first->id);
        end(*first, now);
      }
    }
  }

  std::vector<ModelJob> jobs;
  std::map<std::string, ModelKey> keys;
  ModelBucket bucket;
  std::uint32_t concurrency = kUnlimited;
  bool paused = false;
  std::uint32_t max_lease_expiries = 3;
  std::vector<JobId> buried;
  std::uint64_t order = 0;

 private:
  static void merge(ModelPut& into, const ModelPut& put) {
    into.priority = std::max(into.priority, put.priority);
    into.due = std::min(into.due, put.due);
  }
  void stop(ModelJob& job, TimePoint now) {
    ModelKey& key = keys[job.key];
    if (key.delay > Duration::zero()) key.rest_until = std::max(key.rest_until, now + key.delay);
    job.token = 0;
  }
};

}  // namespace argiope
