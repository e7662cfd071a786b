#include "engine/book_rules.hpp"

#include <fmt/format.h>

#include "base/internal/printable.hpp"
#include "jobs/internal/job_rules.hpp"

namespace argiope {

std::unexpected<Error> no_such_queue(std::string_view name) {
  return fail(Errc::not_found, fmt::format("queue {}: there is no such queue", in_quotes(name)));
}

std::unexpected<Error> no_such_job(JobId id) {
  return fail(Errc::not_found, fmt::format("job {}: there is no such job", id));
}

std::unexpected<Error> no_job_named(std::string_view name) {
  return fail(Errc::not_found, fmt::format("job {}: there is no job of that name", in_quotes(name)));
}

std::unexpected<Error> queue_not_made(std::string_view name) {
  return fail(Errc::not_found, fmt::format("queue {}: there is no such queue; configure it first", in_quotes(name)));
}

std::unexpected<Error> too_many_queues(std::string_view name, std::size_t most) {
  return fail(Errc::refused, fmt::format("queue {} cannot be made: there are {} queues already, as many as may be",
                                         in_quotes(name), most));
}

std::unexpected<Error> too_many_queues_of(std::string_view name, std::string_view who, std::size_t share) {
  return fail(Errc::refused,
              fmt::format("queue {} cannot be made: {} of those that are there were made for {}, as many as may be",
                          in_quotes(name), share, in_quotes(who)));
}

std::unexpected<Error> queue_is_full(std::string_view name, std::uint64_t live, std::uint64_t capacity) {
  return fail(Errc::refused,
              fmt::format("queue {} is full: it holds {} jobs, and at most {}", in_quotes(name), live, capacity));
}

void end_pause_if_over(QueueConfig& config, WallTime now) noexcept {
  if (config.paused_until == WallTime{} || config.paused_until > now) return;
  config.limits.paused = false;
  config.paused_until = {};
}

Result<void> check_queue_name(std::string_view name) {
  if (name.empty()) return fail(Errc::invalid_input, "a job needs the name of a queue");
  return job_rules::check_name("queue", name);
}

Result<void> check_job(const NewJob& job, std::string_view queue, std::size_t max_payload_bytes) {
  if (job.payload.size() <= max_payload_bytes) return {};
  return fail(Errc::too_large, fmt::format("a payload of {} bytes: queue {} takes at most {}", job.payload.size(),
                                           in_quotes(queue), max_payload_bytes));
}

Result<void> meaning_of(ChangeOutcome outcome, JobId id, JobState state) {
  using enum ChangeOutcome;
  switch (outcome) {
    case not_found: return no_such_job(id);
    case running: return fail(Errc::refused, fmt::format("job {}: it runs", id));
    case wrong_state: return fail(Errc::refused, fmt::format("job {}: it is {}", id, to_string(state)));
    case changed:
    case asked: break;
  }
  return {};
}

}  // namespace argiope
