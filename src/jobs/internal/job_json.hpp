// Jobs as JSON: what the command line and every other way in from outside read and write.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/jobs/detail/requests.hpp"
#include "argiope/jobs/job.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/raw_json.hpp"

namespace argiope {

inline constexpr std::size_t kMostJobJsonBytes = 64 * 1024 * 1024;
inline constexpr std::size_t kMostJobJsonDepth = 64;

// Names of other jobs that a job was given instead of their ids; the caller looks them up before it puts the job.
struct JobNames {
  std::vector<std::string> waits_for;  // besides NewJob::waits_for
  std::string batch;                   // instead of NewJob::batch; empty: none
  bool empty() const noexcept { return waits_for.empty() && batch.empty(); }
};

// The job that one JSON object asks for. All members but the first may be missing:
//
//   queue          1 to 512 bytes
//   id             a whole number from 1 to 2^53 - 1, or a string of such digits: NewJob::id; any other string:
//                  NewJob::name
//   key, unique, function   strings of at most 512 bytes
//   unique_policy  "keep", "replace" or "merge"
//   run_again      true or false
//   priority       a whole number of 32 bits
//   due_at         an RFC 3339 time, or milliseconds since 1970
//   delay_ms       from `now`; not together with due_at
//   payload        a string stands for its text; any other value is kept as the JSON text it is
//   payload_base64 any bytes, as base64; not together with payload
//   max_attempts   a whole number of 32 bits, 0: the queue's
//   lease_time_ms  0: the queue's; at most 100 years
//   waits_for      a list of ids, 10,000 at most; where `names` is given, of names, too
//   if_failed      "run" or "cancel"
//   batch          an id; where `names` is given, a name, too
//
// Errors: invalid_input, naming the member and what is allowed, for a member that is unknown, there twice, of the wrong
//         type or out of range; for what is no JSON, no UTF-8, or goes on after the object. Numbers anywhere must fit a
//         double or 64 bits. too_large: above kMostJobJsonBytes.
Result<NewJob> parse_new_job(std::string_view json, WallTime now, JobNames* names = nullptr);

// The same of a value within a larger text, whose own text is `raw`. Mistakes go to the value's errors, and the job
// then stands for nothing.
NewJob read_new_job(const JsonValue& object, WallTime now, JobNames* names, RawJson& raw);

// One line. Times are RFC 3339 in UTC, those that are not set null. Where a payload or result is not UTF-8, what is
// broken in it becomes U+FFFD, and its bytes follow as payload_base64 or result_base64.
std::string to_json(const JobRecord& record);
// Its members alone, into an object that has been begun and may get more.
void write_members(JsonWriter& json, const JobRecord& record);

// Attempts as the list `name` of an object that has been begun.
void write_history(JsonWriter& json, std::string_view name, const std::vector<Attempt>& history);

// "7" and the like: what can be a JobId, nullopt for what can only be a name, as is "007".
// Errors: invalid_input for digits that are 0 or above kMostJobId.
Result<std::optional<JobId>> parse_job_id(std::string_view text);

// The members due_at and delay_ms, of a job and of what changes one; what is wrong goes to the value's errors.
WallTime read_due(const JsonValue& value);
Duration read_delay(const JsonValue& value);
WallTime read_due_after(const JsonValue& value, WallTime now);

// "run_again" and the like.
std::string_view to_string(PutOutcome outcome) noexcept;

// An RFC 3339 time, or digits: milliseconds since 1970.
// Errors: invalid_input naming `what`.
Result<WallTime> parse_due(std::string_view what, std::string_view text);

}  // namespace argiope
