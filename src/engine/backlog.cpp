#include "engine/internal/backlog.hpp"

#include <algorithm>
#include <utility>

#include "argiope/async/coro.hpp"

namespace argiope {
namespace {

// Adds a queue's delayed jobs to the backlog.
void add_delayed(Backlog& backlog, const std::vector<WaitingJob>& delayed, WallTime now, Duration linger) {
  const WallTime horizon{saturating_add(TimePoint{now.time_since_epoch()}, linger).time_since_epoch()};
  backlog.is_left = std::ranges::any_of(
      delayed, [&](const WaitingJob& job) { return job.due_at <= now || (job.attempts > 0 && job.due_at <= horizon); });
  if (backlog.is_left || delayed.empty()) return;
  backlog.next_due = std::min(backlog.next_due, delayed.front().due_at);
  backlog.due_later += delayed.size();
}

}  // namespace

Coro<Result<Backlog>> look_for_backlog(std::vector<QueueFacts> queues, DelayedJobs delayed, WallTime now,
                                       Duration linger) {
  Backlog backlog;
  for (const QueueFacts& facts : queues) {
    const QueueLimits& limits = facts.queue.config.limits;
    const bool is_paused = limits.paused || limits.rate == 0;
    backlog.is_left = facts.counts.running > 0 || (!is_paused && facts.counts.ready > 0);
    if (!backlog.is_left && !is_paused && facts.counts.delayed > 0) {
      add_delayed(backlog, co_await or_return(delayed(facts.queue)), now, linger);
    }
    if (backlog.is_left) co_return backlog;
  }
  co_return backlog;
}

}  // namespace argiope
