// What a broker has promised of rates, concurrency and order, worked out anew from what it said it did: plain and slow,
// and sharing no code with it.
//
// Within one instant of simulated time the order of events is nobody's business. So a rule is broken only by what held
// since before that instant.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/jobs/job_queue.hpp"

namespace argiope {

class JobsModel {
 public:
  void configure(std::size_t queue, const QueueConfig& config) {
    if (queues_.size() <= queue) queues_.resize(queue + 1);
    queues_[queue].config = config;
    queues_[queue].bucket.fill(config.limits.rate, config.limits.burst);
  }

  void waits(std::size_t queue, JobId id, const std::string& key, std::int32_t priority, TimePoint due, TimePoint now) {
    Job& job = jobs_[id];
    job.queue = queue;
    job.key = key;
    job.priority = priority;
    job.ready_since = std::max(due, now);
    job.running = false;
    key_of(job).waiting.insert({-std::int64_t{priority}, id});
  }

  void starts(JobId id, TimePoint now) {
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) return complain(id, now, "was handed out and is not known");
    Job& job = found->second;
    if (job.running) return complain(id, now, "was handed out while it ran");
    if (job.ready_since > now) return complain(id, now, "was handed out before it was due");
    Queue& queue = queues_[job.queue];
    Key& key = key_of(job);
    const QueueConfig& config = queue.config;
    if (queue.running >= config.limits.concurrency) complain(id, now, "started above its queue's concurrency");
    if (key.running >= config.key_limits.concurrency) complain(id, now, "started above its key's concurrency");
    if (key.rests_until > now) complain(id, now, "started within its key's delay");
    if (!queue.bucket.take(now)) complain(id, now, "started above its queue's rate");
    if (!key.bucket.take(now)) complain(id, now, "started above its key's rate");
    if (const auto better = better_than(job, id, now)) {
      complain(id, now,
               "q " + std::to_string(job.queue) + " key " + job.key + " other key " + jobs_.at(*better).key +
                   " since " + std::to_string(to_seconds(now - jobs_.at(*better).ready_since)) + " went before " +
                   std::to_string(*better) + ", which is more important and was allowed");
    }
    key.waiting.erase({-std::int64_t{job.priority}, id});
    job.running = true;
    ++queue.running;
    ++key.running;
  }

  // The run is over; whether the job is, is said by waits() or gone().
  void ends(JobId id, TimePoint now) {
    const auto found = jobs_.find(id);
    if (found == jobs_.end() || !found->second.running) return;
    Job& job = found->second;
    job.running = false;
    Queue& queue = queues_[job.queue];
    Key& key = key_of(job);
    --queue.running;
    --key.running;
    queue.free_since = now;
    key.free_since = now;
    if (queue.config.key_limits.delay > Duration::zero()) {
      key.rests_until = std::max(key.rests_until, now + queue.config.key_limits.delay);
    }
  }
  void gone(JobId id) {
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) return;
    key_of(found->second).waiting.erase({-std::int64_t{found->second.priority}, id});
    jobs_.erase(found);
  }
  // Permits that a run took which was given back at once are given back too; here they count as taken no more.
  void restarted() {
    for (Queue& queue : queues_) {
      queue.bucket.fill(queue.config.limits.rate, queue.config.limits.burst);
      for (auto& [name, key] : queue.keys) {
        key.bucket.fill(queue.config.key_limits.rate, queue.config.key_limits.burst);
        key.rests_until = TimePoint::min();
      }
    }
  }

  // A job of this queue that may start and could have before this instant.
  std::optional<JobId> startable(std::size_t index, TimePoint now) const {
    const Queue& queue = queues_[index];
    if (queue.running >= queue.config.limits.concurrency || queue.free_since >= now) return std::nullopt;
    if (!queue.bucket.has_since_before(now)) return std::nullopt;
    for (const auto& [name, key] : queue.keys) {
      if (const auto id = first_allowed(queue, key, now)) return id;
    }
    return std::nullopt;
  }

  std::size_t waiting() const { return jobs_.size(); }
  const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  // Tokens in floating point, as the book has it.
  struct Bucket {
    double rate = std::numeric_limits<double>::infinity();
    double burst = 1;
    double tokens = 1;
    TimePoint at{};
    void fill(double new_rate, double new_burst) {
      rate = new_rate;
      burst = std::max(1.0, std::floor(new_burst));
      tokens = burst;
    }
    double at_time(TimePoint now) const { return std::min(burst, tokens + std::max(0.0, to_seconds(now - at)) * rate); }
    static constexpr double kSlack = 1e-6;
    bool take(TimePoint now) {
      if (std::isinf(rate)) return true;
      tokens = at_time(now) - 1;
      at = now;
      return tokens >= -kSlack;
    }
    bool has_since_before(TimePoint now) const {
      return std::isinf(rate) || at_time(now - std::chrono::microseconds{1}) >= 1 + kSlack;
    }
  };
  struct Key {
    Bucket bucket;
    std::uint32_t running = 0;
    TimePoint free_since = TimePoint::min();
    TimePoint rests_until = TimePoint::min();
    std::set<std::pair<std::int64_t, JobId>> waiting;  // most important first
  };
  struct Queue {
    QueueConfig config;
    Bucket bucket;
    std::uint32_t running = 0;
    TimePoint free_since = TimePoint::min();
    std::map<std::string, Key> keys;
  };
  struct Job {
    std::size_t queue = 0;
    std::string key;
    std::int32_t priority = 0;
    TimePoint ready_since{};
    bool running = false;
  };

  Key& key_of(const Job& job) {
    Queue& queue = queues_[job.queue];
    const auto [found, added] = queue.keys.try_emplace(job.key);
    if (added) found->second.bucket.fill(queue.config.key_limits.rate, queue.config.key_limits.burst);
    return found->second;
  }

  std::optional<JobId> first_allowed(const Queue& queue, const Key& key, TimePoint now) const {
    if (key.waiting.empty() || key.running >= queue.config.key_limits.concurrency) return std::nullopt;
    if (key.free_since >= now || key.rests_until >= now || !key.bucket.has_since_before(now)) return std::nullopt;
    for (const auto& [priority, id] : key.waiting) {
      if (jobs_.at(id).ready_since < now) return id;
    }
    return std::nullopt;
  }

  std::optional<JobId> better_than(const Job& job, JobId id, TimePoint now) const {
    const Queue& queue = queues_[job.queue];
    const std::pair<std::int64_t, JobId> rank{-std::int64_t{job.priority}, id};
    for (const auto& [name, key] : queue.keys) {
      if (name == job.key) {
        for (const auto& other : key.waiting) {
          if (other >= rank) break;
          if (jobs_.at(other.second).ready_since < now) return other.second;
        }
        continue;
      }
      const auto other = first_allowed(queue, key, now);
      if (other && std::pair(-std::int64_t{jobs_.at(*other).priority}, *other) < rank) return other;
    }
    return std::nullopt;
  }

  void complain(JobId id, TimePoint now, std::string what) {
    if (complaints_.size() >= 20) return;
    complaints_.push_back("at " + std::to_string(to_seconds(now.time_since_epoch())) + " s: job " + std::to_string(id) +
                          " " + std::move(what));
  }

  std::vector<Queue> queues_;
  std::map<JobId, Job> jobs_;
  std::vector<std::string> complaints_;
};

}  // namespace argiope
