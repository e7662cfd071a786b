#include "serve/watch/oldest_ready.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "argiope/async/coro.hpp"

namespace argiope {

Coro<Result<Duration>> OldestReady::look(std::string name) {
  const StoredQueue stored = co_await or_return(engine_.book().queue(name));
  const WallTime now = engine_.book().job_now();
  Queue& queue = queues_[std::move(name)];
  const std::vector<WaitingJob> jobs = co_await or_return(read(stored.id, queue));
  if (queue.oldest && !co_await or_return(still_waits(queue.oldest->id, now))) queue.oldest.reset();
  const auto found = co_await or_return(oldest_of(jobs, now));
  if (found && (!queue.oldest || found->since < queue.oldest->since)) queue.oldest = found;
  co_return queue.oldest ? std::max(now - queue.oldest->since, Duration::zero()) : Duration::zero();
}

// The front of each shelf, and the next part of what lies behind.
Coro<Result<std::vector<WaitingJob>>> OldestReady::read(QueueId id, Queue& queue) {
  Store& store = engine_.store();
  auto jobs = co_await or_return(store.read_shelf(id, {.shelf = Shelf::delayed, .limit = 1}));
  const auto add = [&](std::vector<WaitingJob> more) { std::ranges::move(more, std::back_inserter(jobs)); };
  add(co_await or_return(store.read_shelf(id, {.shelf = Shelf::ready, .limit = 1})));
  auto next =
      co_await or_return(store.read_shelf(id, {.shelf = Shelf::ready, .after = queue.after, .limit = kJobsAtOnce}));
  queue.after = next.size() < kJobsAtOnce ? Rank{} : Rank{next.back().priority, next.back().id};
  add(std::move(next));
  const auto keys = co_await or_return(store.keys_set_aside(id, queue.after_key, kKeysAtOnce));
  queue.after_key = keys.size() < kKeysAtOnce ? std::nullopt : std::optional(keys.back());
  for (const std::string& key : keys) {
    add(co_await or_return(store.read_shelf(id, {.shelf = Shelf::set_aside, .limit = 1}, key)));
  }
  co_return jobs;
}

// One that was put to run at once says no time: of those the first was put first.
Coro<Result<std::optional<OldestReady::Found>>> OldestReady::oldest_of(const std::vector<WaitingJob>& jobs,
                                                                       WallTime now) {
  std::optional<Found> oldest;
  JobId first = 0;
  for (const WaitingJob& job : jobs) {
    if (job.due_at > now) continue;
    if (job.due_at == WallTime{}) {
      first = first == 0 ? job.id : std::min(first, job.id);
    } else if (!oldest || job.due_at < oldest->since) {
      oldest = Found{job.id, job.due_at};
    }
  }
  if (first == 0) co_return oldest;
  const auto records = co_await or_return(engine_.store().list({.after = first - 1, .limit = 1, .payloads = false}));
  if (records.empty() || records.front().id != first) co_return oldest;
  const JobRecord& record = records.front();
  // One that was kicked, or has come back from a run, could run since then; when that was is not known.
  const bool came_back = record.tally.kicks > 0 || record.tally.runs > 0;
  const WallTime since = came_back ? now : record.created_at;
  if (!oldest || since < oldest->since) oldest = Found{first, since};
  co_return oldest;
}

Coro<Result<bool>> OldestReady::still_waits(JobId id, WallTime now) {
  const auto waiting = co_await or_return(engine_.store().find_waiting({id}));
  co_return waiting.front().has_value() && waiting.front()->due_at <= now;
}

void OldestReady::forget_others(const std::set<std::string>& known) {
  std::erase_if(queues_, [&](const auto& entry) { return !known.contains(entry.first); });
}

}  // namespace argiope
