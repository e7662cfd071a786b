// Why a job does not run now: in the words of its owner or of the store.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "argiope/async/coro.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "engine/book_rules.hpp"
#include "engine/internal/explanation_json.hpp"
#include "engine/store_book.hpp"

namespace argiope {
namespace {

constexpr std::uint64_t kMostAhead = 5'000;
constexpr std::size_t kMostWaitedFor = 10;

JobExplanation explanation_of(const JobRecord& record, const QueueConfig& config) {
  JobExplanation why{.id = record.id, .queue = record.queue, .state = record.state};
  why.attempts = record.attempts;
  why.max_attempts = record.max_attempts != 0 ? record.max_attempts : config.retry.max_attempts;
  why.error = record.error;
  return why;
}

}  // namespace

// --- the order of reasons --------------------------------------------------------------------------------------------

Coro<Result<JobExplanation>> StoreJobBook::explain(JobId id) {
  co_await or_return(set_clock());
  const auto found = co_await or_return(store_(&Store::get, id));
  if (!found) co_return no_such_job(id);
  const JobRecord& record = *found;
  const StoredQueue queue = co_await or_return(this->queue(record.queue));
  JobExplanation why = explanation_of(record, queue.config);
  if (co_await or_return(explain_by_record(record, why))) co_return why;
  co_await or_return(explain_waiting(record, queue, why));
  co_return why;
}

// Of a job that runs, has ended, is buried or waits for others; false for any other job.
Coro<Result<bool>> StoreJobBook::explain_by_record(const JobRecord& record, JobExplanation& why) {
  if (explain_run(record, why)) co_return true;
  if (record.state == JobState::done || record.state == JobState::cancelled) {
    why.reason = WaitReason::ended;
  } else if (record.state == JobState::buried) {
    why.reason = WaitReason::buried;
  } else if (record.pending > 0) {
    why.waits_for = co_await or_return(store_(&Store::waits_for, record.id, kMostWaitedFor));
    why.state = JobState::delayed;
    why.reason = WaitReason::other_jobs;
  } else {
    co_return false;
  }
  co_return true;
}

Coro<Result<void>> StoreJobBook::explain_waiting(const JobRecord& record, const StoredQueue& queue,
                                                 JobExplanation& why) {
  const auto in_memory = look_in_memory(record);
  if (!in_memory && record.state == JobState::delayed && record.due_at > clock().now()) {
    why.reason = WaitReason::not_due;
    why.until = clock().to_calendar(record.due_at);
    co_return Result<void>{};
  }
  why.state = JobState::ready;
  if (in_memory) {
    why.state = in_memory->state;
    why.reason = in_memory->reason;
    if (in_memory->until != kNever) why.until = clock().to_calendar(clock().to_job_time(in_memory->until));
    if (why.reason != WaitReason::none && why.reason != WaitReason::more_important_jobs) co_return Result<void>{};
    why.ahead = in_memory->ahead;
  } else {
    const WallTime since = std::max(record.created_at, record.due_at);
    const Rank rank{ranked_priority(record.priority, since, queue.config.ageing), record.id};
    why.ahead = co_await or_return(in_turn(store_(&Store::count_before, queue.id, rank, kMostAhead, std::nullopt),
                                           [](std::uint64_t count) { return static_cast<std::size_t>(count); }));
  }
  if (owner() == OwnerIs::nobody) {
    why.reason = WaitReason::no_owner;
  } else if (const auto held = co_await or_return(held_by(record, queue, why))) {
    why.reason = *held;
  } else {
    why.reason = why.ahead > 0 ? WaitReason::more_important_jobs : WaitReason::none;
  }
  const bool is_next = owner() == OwnerIs::here && why.reason == WaitReason::none;
  why.until = is_next ? std::optional(clock().to_calendar(clock().now())) : std::nullopt;
  co_return Result<void>{};
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
      return fmt::format("it is buried after {}{}{}; kick it to run it again", counted(why.attempts, "attempt"),
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
                         why.ahead >= kMostAhead ? "at least " : "", counted(why.ahead, "job is", "jobs are"));
    case WaitReason::no_worker: return fmt::format("no worker asks for jobs of queue {}", in_quotes(why.queue));
  }
  return {};
}

// --- as JSON ---------------------------------------------------------------------------------------------------------

void write_members(JsonWriter& json, const JobExplanation& why) {
  json.member("id", why.id);
  json.member("queue", why.queue);
  json.member("state", to_string(why.state));
  json.member("reason", to_string(why.reason));
  json.member("until", why.until);
  json.member("ahead", why.ahead);
  json.member("attempts", why.attempts);
  json.member("max_attempts", why.max_attempts);
  json.member("error", why.error);
  json.list("waits_for", why.waits_for);
  json.member("lease_until", why.lease_until);
  json.member("worker", why.worker);
  json.member("progress", why.progress);
  json.member("progress_message", why.progress_message);
  json.array("owner_knows", [&] {
    for (const WaitReason reason : why.owner_knows) json.value(to_string(reason));
  });
}

std::string to_json(const JobExplanation& why) {
  return json_object([&](JsonWriter& json) { write_members(json, why); });
}

}  // namespace argiope
