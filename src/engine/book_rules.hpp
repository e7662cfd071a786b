// The rules of puts and changes that hold for the owner of queues as for everybody else, and the errors they give. The
// bounds of any job are set in jobs/internal/job_rules.hpp, and checked by stores.
#pragma once

#include <expected>
#include <string_view>

#include "argiope/base/error.hpp"
#include "argiope/jobs/job.hpp"
#include "argiope/store/store.hpp"

namespace argiope {

std::unexpected<Error> no_such_queue(std::string_view name);
std::unexpected<Error> no_such_job(JobId id);
std::unexpected<Error> no_job_named(std::string_view name);
// Where puts make no queues.
std::unexpected<Error> queue_not_made(std::string_view name);
std::unexpected<Error> too_many_queues(std::string_view name, std::size_t most);
std::unexpected<Error> too_many_queues_of(std::string_view name, std::string_view who, std::size_t share);
std::unexpected<Error> queue_is_full(std::string_view name, std::uint64_t live, std::uint64_t capacity);

// Resumes it where it was paused until `now` or before. In job time.
void end_pause_if_over(QueueConfig& config, WallTime now) noexcept;

Result<void> check_queue_name(std::string_view name);
// Whether a queue that takes payloads of `max_payload_bytes` takes the job: too_large.
Result<void> check_job(const NewJob& job, std::string_view queue, std::size_t max_payload_bytes);

// Whether `count` more jobs fit beside `live` ones.
constexpr bool has_room(std::uint64_t live, std::uint64_t count, std::uint64_t capacity) noexcept {
  return live <= capacity && capacity - live >= count;
}
// Whether a put that finds no room is to wait for it; one that can never have room is not.
constexpr bool waits_for_room(CapacityPolicy policy, std::uint64_t count, std::uint64_t capacity) noexcept {
  return policy == CapacityPolicy::wait && count <= capacity;
}

// The outcome of a change for its caller: `state` is the job's.
Result<void> meaning_of(ChangeOutcome outcome, JobId id, JobState state);

}  // namespace argiope
