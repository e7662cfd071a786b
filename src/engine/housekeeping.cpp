#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/base/clock.hpp"
#include "async/internal/as_error.hpp"
#include "engine/broker.hpp"

namespace argiope {
namespace {

constexpr std::size_t kPruneAtOnce = 5'000;

bool passes(Errc trouble) noexcept {
  return trouble == Errc::network || trouble == Errc::busy || trouble == Errc::disk_full;
}

}  // namespace

Coro<void> Housekeeper::ended() {
  try {
    co_await task_;
  } catch (const CancelledError&) {
    if (!task_.cancelled()) throw;
  }
}

Coro<void> Housekeeper::keep_house() {
  if (options_.poll_interval <= Duration::zero()) co_return;
  prune_at_ = saturating_add(loop_.time(), options_.prune_interval);
  for (bool goes_on = true; goes_on;) {
    co_await sleep(options_.poll_interval);
    // Nobody awaits this before the broker closes: what is thrown is told now, and the next look finds the rest.
    const auto looked = co_await as_error(look_after_house());
    if (!looked) spdlog::error("housekeeping: {}", looked.error().message);
    goes_on = looked.value_or(true);
  }
}

// False: the store has failed.
Coro<Result<bool>> Housekeeper::look_after_house() {
  look_at_calendar();
  // One who holds the store for long is waited for; the others' changes are there afterwards too.
  Result<bool> taken = true;
  while (taken && *taken) taken = co_await take_changes();
  if (taken && queue_desk_.must_recount()) {
    if (auto counted = co_await queue_desk_.recount(); !counted) taken = std::unexpected(std::move(counted.error()));
  }
  if (!taken) {
    spdlog::error("{}", taken.error().message);
    // What the store has not answered in time is looked for again.
    if (!store_.failure() && passes(taken.error().code)) co_return true;
    failure_ = taken.error();
    owned_.stop_all(taken.error());
    co_return false;
  }
  if (loop_.time() < prune_at_) co_return true;
  prune_at_ = saturating_add(loop_.time(), options_.prune_interval);
  if (auto pruned = co_await prune(); !pruned) spdlog::error("{}", pruned.error().message);
  co_return true;
}

void Housekeeper::look_at_calendar() {
  const auto jump = clock_.look();
  if (!jump) return;
  spdlog::warn("the calendar has jumped by {:.1f} s; delays and leases keep their length", to_seconds(*jump));
  run_in_background([](StoreUse& store, Duration offset, JobClock::Jump last) -> Coro<void> {
    if (auto kept = co_await remember_jump(store, offset, last); !kept) spdlog::error("{}", kept.error().message);
  }(store_, clock_.offset(), clock_.jumps().back()));
  // A copy: it may take itself away.
  if (const auto hear = calendar_jumped_) hear(*jump);
}

// Whether there are more.
Coro<Result<bool>> Housekeeper::take_changes() {
  if (changed_.jobs.empty()) {
    changed_ = co_await or_return(store_(&Store::changed_elsewhere));
    if (!changed_.schedules.empty()) {
      if (const auto hear = schedules_changed_) hear(changed_.schedules);
    }
  }
  if (changed_.jobs.empty()) co_return changed_.more;
  co_await or_return(queue_desk_.load_new());  // first: the jobs may be in new ones
  std::vector<JobId> jobs = changed_.jobs;
  std::erase(jobs, JobId{0});
  auto waiting = co_await or_return(store_(&Store::find_waiting, jobs));
  const TimePoint now = loop_.time();
  std::vector<JobId> running;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    const auto& job = waiting[i];
    if (job) {
      Queue& queue = *queues_.find(job->queue);
      queue.window.place(*job, now);
      tell(JobEventKind::changed, job->id, queue);
      queue_desk_.mark(queue);
    } else if (runs_.token_of(jobs[i]) != 0) {
      running.push_back(jobs[i]);
    } else {
      for (auto& queue : queues_) queue->window.forget(jobs[i], now);
    }
  }
  co_await or_return(settle_desk_.hear_of_cancellations(std::move(running)));
  co_await or_return(queue_desk_.recount());
  co_return std::exchange(changed_, {}).more;
}

Coro<Result<void>> Housekeeper::prune() {
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    if (queues_[i].erased) continue;
    const QueueId id = queues_[i].window.id();
    const QueueConfig& config = queues_[i].config();
    const std::pair<JobState, Duration> kept[] = {{JobState::done, config.keep_done},
                                                  {JobState::cancelled, config.keep_cancelled},
                                                  {JobState::buried, config.keep_buried}};
    for (const auto& [state, time] : kept) {
      if (time == Duration::max()) continue;
      for (std::size_t pruned = kPruneAtOnce; pruned == kPruneAtOnce;) {
        pruned = co_await or_return(store_(&Store::prune, id, state, clock_.now() - time, kPruneAtOnce));
      }
    }
    queues_[i].window.jobs().prune_keys(loop_.time());
  }
  for (std::size_t pruned = kPruneAtOnce; pruned == kPruneAtOnce;) {
    const WallTime before = clock_.now() - kRequestsKept;
    pruned = co_await or_return(store_(&Store::prune_requests, before, kMostRequests, kPruneAtOnce));
  }
  co_return Result<void>{};
}

}  // namespace argiope
