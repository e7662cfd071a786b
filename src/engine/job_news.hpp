// JobNews: tells those who follow jobs that there may be more to see of theirs.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "argiope/async/coro.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/detail/intrusive_list.hpp"
#include "argiope/jobs/job.hpp"

namespace argiope {

class Broker;

// It has one listener at the owner while anybody follows, and none else. So an event costs one look for its job,
// however many follow others.
//
// Lifetime: its followers end before it.
// Threads:  the loop's own.
class JobNews {
 public:
  class Follower;

  // `owner`: null where nobody will follow.
  explicit JobNews(std::shared_ptr<Broker> owner) noexcept : owner_(std::move(owner)) {}
  JobNews(const JobNews&) = delete;
  ~JobNews() { stop_listening(); }

  // Whatever they follow: the owner tells nothing any more.
  void wake_all() noexcept;

 private:
  void add(Follower& follower);
  void remove(Follower& follower) noexcept;
  void wake(JobId id) noexcept;
  void stop_listening() noexcept;

  const std::shared_ptr<Broker> owner_;
  std::unordered_map<JobId, IntrusiveList<Follower>> followers_;  // none of the lists is empty
  std::uint64_t listener_ = 0;                                    // 0: it does not listen
};

// One who follows a job, from being made until being destroyed.
class JobNews::Follower : public ListHook {
 public:
  Follower(JobNews& news, JobId id) : news_(news), id_(id) { news_.add(*this); }
  Follower(const Follower&) = delete;
  ~Follower() { news_.remove(*this); }

  // Until a run of the job has begun, said something or ended, or the job has, since the wait before; at `limit` at the
  // latest.
  // Cancel: throws CancelledError.
  Coro<void> wait(TimePoint limit);

 private:
  friend class JobNews;

  JobNews& news_;
  const JobId id_;
  Event heard_;
};

}  // namespace argiope
