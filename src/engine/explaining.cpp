#include "engine/explaining.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "engine/broker_impl.hpp"
#include "engine/refusals.hpp"

namespace argiope {
constexpr std::size_t kMostWaitedFor = 10;

// --- from the record -----------------------------------------------------------------------------------------------

void to_calendar(JobRecord& record, const JobClock& clock) {
  for (WallTime* time : {&record.due_at, &record.created_at, &record.ended_at, &record.lease_until}) {
    *time = clock.to_calendar(*time);
  }
}

JobExplanation explanation_of(const JobRecord& record, const QueueConfig* config) {
  JobExplanation why{.id = record.id, .queue = record.queue, .state = record.state};
  why.attempts = record.attempts;
  why.max_attempts = record.max_attempts;
  if (config != nullptr && why.max_attempts == 0) why.max_attempts = config->retry.max_attempts;
  why.error = record.error;
  return why;
}

Coro<Result<bool>> explain_by_record(const StoreUse& store, const JobRecord& record, JobExplanation& why) {
  if (record.state == JobState::done || record.state == JobState::cancelled) {
    why.reason = WaitReason::ended;
  } else if (record.state == JobState::buried) {
    why.reason = WaitReason::buried;
  } else if (record.pending > 0) {
    auto waited_for = co_await store(&Store::waits_for, record.id, kMostWaitedFor);
    if (!waited_for) co_return std::unexpected(std::move(waited_for.error()));
    why.waits_for = std::move(*waited_for);
    why.state = JobState::delayed;
    why.reason = WaitReason::other_jobs;
  } else {
    co_return false;
  }
  co_return true;
}

Coro<Result<std::uint64_t>> count_ahead(const StoreUse& store, const JobRecord& record, QueueId queue,
                                        Duration ageing) {
  const std::int32_t rank = ranked_priority(record.priority, std::max(record.created_at, record.due_at), ageing);
  co_return co_await store(&Store::count_before, queue, Rank{rank, record.id}, kMostAhead, std::nullopt);
}

// --- by the owner --------------------------------------------------------------------------------------------------

Coro<Result<JobRecord>> BrokerImpl::look_up(JobId id) {
  auto record = co_await store_(&Store::get, id);
  if (!record) co_return std::unexpected(std::move(record.error()));
  if (!*record) co_return no_such_job(id);
  to_calendar(**record, clock_);
  co_return std::move(**record);
}

Coro<Result<std::vector<std::pair<std::string, StateCounts>>>> BrokerImpl::count_jobs() {
  auto counted = co_await store_(&Store::counts);
  if (!counted) co_return std::unexpected(std::move(counted.error()));
  std::vector<std::pair<std::string, StateCounts>> named;
  for (const QueueCounts& counts : *counted) {
    if (const auto queue = by_id_.find(counts.queue); queue != by_id_.end()) {
      named.emplace_back(queue->second->window.name(), counts.counts);
    }
  }
  std::ranges::sort(named, {}, &std::pair<std::string, StateCounts>::first);
  co_return named;
}

Coro<Result<JobExplanation>> BrokerImpl::explain_job(JobId id) {
  auto found = co_await store_(&Store::get, id);
  if (!found) co_return std::unexpected(std::move(found.error()));
  if (!*found) co_return no_such_job(id);
  const JobRecord& record = **found;
  Queue* queue = find_queue(record.queue);
  JobExplanation why = explanation_of(record, queue == nullptr ? nullptr : &queue->window.config());
  const auto because = [&](WaitReason reason, std::optional<WallTime> until = {}) {
    why.reason = reason;
    why.until = until;
  };
  if (const auto token = running_ids_.find(id); token != running_ids_.end()) {
    const Running& running = running_.at(token->second);
    why.state = JobState::running;
    why.attempts = running.attempt;
    why.worker = running.call->worker;
    why.progress = running.progress;
    why.progress_message = running.progress_message;
    if (const auto info = running.queue->window.jobs().find(id)) {
      why.lease_until = clock_.to_calendar(clock_.to_job_time(info->until));
    }
    because(WaitReason::running, why.lease_until);
    co_return why;
  }
  const auto said = co_await explain_by_record(store_, record, why);
  if (!said) co_return std::unexpected(said.error());
  if (*said) co_return why;
  if (queue == nullptr) co_return why;
  const TimePoint now = loop_.time();
  refresh(*queue, now);
  JobQueue& jobs = queue->window.jobs();
  const auto calendar = [&](TimePoint time) -> std::optional<WallTime> {
    if (time == kNever) return std::nullopt;
    return clock_.to_calendar(clock_.to_job_time(time));
  };
  const Explanation in_memory = jobs.explain(id, now);
  if (in_memory.reason == WaitReason::not_found) {
    // It lies in the store, behind what the window holds.
    if (record.state == JobState::delayed && record.due_at > clock_.now()) {
      why.state = JobState::delayed;
      because(WaitReason::not_due, clock_.to_calendar(record.due_at));
      co_return why;
    }
    why.state = JobState::ready;
    if (queue->window.config().limits.paused) {
      because(WaitReason::queue_paused);
      co_return why;
    }
  } else {
    why.state = in_memory.state;
    because(in_memory.reason, calendar(in_memory.until));
    if (in_memory.reason != WaitReason::none && in_memory.reason != WaitReason::more_important_jobs) co_return why;
  }
  auto ahead = co_await count_ahead(store_, record, queue->window.id(), queue->window.config().ageing);
  if (!ahead) co_return std::unexpected(std::move(ahead.error()));
  why.ahead = in_memory.reason == WaitReason::not_found ? *ahead : in_memory.ahead;
  if (queue->callers == 0 &&
      std::ranges::none_of(running_, [&](const auto& running) { return running.second.queue == queue; })) {
    because(WaitReason::no_worker);
  } else if (why.ahead > 0) {
    because(WaitReason::more_important_jobs);
  } else {
    because(WaitReason::none, clock_.to_calendar(clock_.now()));
  }
  co_return why;
}

// --- in words ------------------------------------------------------------------------------------------------------

static std::string clock_time(WallTime time) { return to_rfc3339(std::chrono::floor<std::chrono::seconds>(time)); }

// From outside it is said, too, what one cannot know there.
static std::string next_one(const JobExplanation& why) {
  if (why.owner_knows.empty()) return "it is the next one to run";
  std::string unknown;
  for (const WaitReason reason : why.owner_knows) {
    unknown += unknown.empty() ? "" : ", ";
    switch (reason) {
      case WaitReason::no_worker: unknown += "whether it runs jobs of this queue at all"; break;
      case WaitReason::queue_rate: unknown += "when the queue's rate lets the next one start"; break;
      case WaitReason::key_resting: unknown += "how long its key rests"; break;
      case WaitReason::key_rate: unknown += "when the rate of its key lets the next one start"; break;
      default: unknown += to_string(reason); break;
    }
  }
  return fmt::format(
      "it is the first in queue {}, as far as the store shows; only the process that owns the store knows {}",
      in_quotes(why.queue), unknown);
}

std::string to_sentence(const JobExplanation& why) {
  const std::string until = why.until ? fmt::format(" until {}", clock_time(*why.until)) : std::string{};
  switch (why.reason) {
    case WaitReason::none: return next_one(why);
    case WaitReason::not_found: return "there is no such job";
    case WaitReason::running:
      return fmt::format("it runs (attempt {} of {}{}){}", why.attempts, why.max_attempts,
                         why.worker.empty() ? std::string{} : ", by " + why.worker,
                         why.until ? fmt::format("; its lease ends {}", clock_time(*why.until)) : std::string{});
    case WaitReason::ended: return fmt::format("it has ended: {}", to_string(why.state));
    case WaitReason::buried:
      return fmt::format("it is buried after {} attempts{}{}; kick it to run it again", why.attempts,
                         why.error.empty() ? "" : ": ", why.error);
    case WaitReason::other_jobs: {
      std::string ids;
      for (const JobId id : why.waits_for) ids += fmt::format("{}{}", ids.empty() ? "" : ", ", id);
      return fmt::format("it waits for other jobs to end: {}", ids);
    }
    case WaitReason::not_due: return fmt::format("it is not due{}", until);
    case WaitReason::no_owner: return "no process works on this store";
    case WaitReason::queue_paused: return fmt::format("queue {} is paused", in_quotes(why.queue));
    case WaitReason::queue_concurrency:
      return fmt::format("queue {} is at its concurrency limit", in_quotes(why.queue));
    case WaitReason::queue_rate:
      return fmt::format("the rate of queue {} lets nothing start{}", in_quotes(why.queue), until);
    case WaitReason::key_resting: return fmt::format("its key rests{}", until);
    case WaitReason::key_concurrency: return "its key is at its concurrency limit";
    case WaitReason::key_rate: return fmt::format("the rate of its key lets nothing start{}", until);
    case WaitReason::more_important_jobs:
      return fmt::format("{}{} ahead of it, of higher priority or put before it",
                         why.ahead == kMostAhead ? "at least " : "",
                         why.ahead == 1 ? std::string("1 job is") : fmt::format("{} jobs are", why.ahead));
    case WaitReason::no_worker: return fmt::format("no worker asks for jobs of queue {}", in_quotes(why.queue));
  }
  return {};
}

}  // namespace argiope
