#include "cli/job/backlog.hpp"

#include <algorithm>

#include "argiope/async/or_return.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostDelayedLookedAt = 10'000;

Coro<Result<std::vector<WaitingJob>>> delayed_of(Store& store, QueueId queue) {
  co_return co_await store.read_shelf(queue, {.shelf = Shelf::delayed, .limit = kMostDelayedLookedAt});
}

Coro<Result<std::vector<WaitingJob>>> delayed_of(Book& book, std::string queue) {
  const auto listed = co_await or_return(book.list({.queue = std::move(queue),
                                                    .state = JobState::delayed,
                                                    .key = std::nullopt,
                                                    .limit = kMostDelayedLookedAt,
                                                    .payloads = false}));
  std::vector<WaitingJob> delayed;
  for (const JobRecord& job : listed) {
    if (job.pending == 0) delayed.push_back({.id = job.id, .due_at = job.due_at, .attempts = job.attempts});
  }
  std::ranges::sort(delayed, {}, &WaitingJob::due_at);
  co_return delayed;
}

// Adds a queue's delayed jobs to the backlog.
void add(Backlog& backlog, const std::vector<WaitingJob>& delayed, const BacklogLook& look) {
  const WallTime horizon{saturating_add(TimePoint{look.now.time_since_epoch()}, look.linger).time_since_epoch()};
  backlog.is_left = std::ranges::any_of(delayed, [&](const WaitingJob& job) {
    return job.due_at <= look.now || (job.attempts > 0 && job.due_at <= horizon);
  });
  if (backlog.is_left || delayed.empty()) return;
  backlog.next_due = std::min(backlog.next_due, delayed.front().due_at);
  backlog.due_later += delayed.size();
}

}  // namespace

DelayedJobs delayed_in(Store& store) {
  return [&store](const StoredQueue& queue) { return delayed_of(store, queue.id); };
}
DelayedJobs delayed_in(Book& book) {
  return [&book](const StoredQueue& queue) { return delayed_of(book, queue.name); };
}

Coro<Result<Backlog>> look_for_backlog(Book& book, DelayedJobs delayed, BacklogLook look) {
  const auto queues = co_await or_return(book.queues());
  const auto counted = co_await or_return(book.counts());
  Backlog backlog;
  for (const StoredQueue& queue : queues) {
    if (std::ranges::find(look.queues, queue.name) == look.queues.end()) continue;
    const auto found = std::ranges::find(counted, queue.name, &NamedCounts::first);
    if (found == counted.end()) continue;
    const StateCounts& counts = found->second;
    const QueueLimits& limits = queue.config.limits;
    const bool is_paused = limits.paused || limits.rate == 0;
    backlog.is_left = counts.running > 0 || (!is_paused && counts.ready > 0);
    if (!backlog.is_left && !is_paused && counts.delayed > 0) {
      add(backlog, co_await or_return(delayed(queue)), look);
    }
    if (backlog.is_left) co_return backlog;
  }
  co_return backlog;
}

}  // namespace argiope
