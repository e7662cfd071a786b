#include "jobs/internal/job_telling.hpp"

#include <chrono>

#include "base/internal/base64.hpp"
#include "base/internal/json_told.hpp"
#include "base/internal/utf8.hpp"

namespace argiope {
namespace {

// The last one that an RFC 3339 time can say.
constexpr std::int64_t kLastToldMs = std::numeric_limits<std::int64_t>::max() / 1'000'000 - 1;

std::int64_t in_ms(Duration span) { return std::chrono::ceil<std::chrono::milliseconds>(span).count(); }

void write_text(JsonWriter& json, std::string_view name, const std::string& text) {
  if (!text.empty()) json.member(name, text);
}

std::string_view to_word(UniquePolicy policy) {
  static constexpr std::string_view kWords[] = {"keep", "replace", "merge"};
  return kWords[static_cast<std::size_t>(policy)];
}

}  // namespace

void write_bytes_once(JsonWriter& json, std::string_view name, std::string_view bytes) {
  if (bytes.empty()) return;
  is_utf8(bytes) ? json.member(name, bytes) : json.member(std::string(name) + "_base64", to_base64(bytes));
}

void write_members(JsonWriter& json, const NewJob& job) {
  json.member("queue", job.queue);
  if (!job.name.empty()) {
    json.member("id", job.name);
  } else if (job.id != 0) {
    json.member("id", job.id);
  }
  write_text(json, "key", job.key);
  write_text(json, "unique", job.unique);
  if (job.unique_policy != UniquePolicy::keep) json.member("unique_policy", to_word(job.unique_policy));
  if (job.run_again) json.member("run_again", true);
  if (job.priority != 0) json.member("priority", job.priority);
  if (job.due_at > WallTime{}) json.member("due_at", std::min(in_ms(job.due_at.time_since_epoch()), kLastToldMs));
  write_text(json, "function", job.function);
  write_bytes_once(json, "payload", job.payload);
  if (job.max_attempts != 0) json.member("max_attempts", job.max_attempts);
  if (job.lease_time > Duration{}) json.member("lease_time_ms", in_ms(job.lease_time));
  if (!job.waits_for.empty()) json.list("waits_for", job.waits_for);
  if (job.if_failed == DependencyPolicy::run) json.member("if_failed", "run");
  if (job.batch != 0) json.member("batch", job.batch);
}

JobRecord read_job_record(const JsonValue& told) {
  ToldMembers in(told);
  JobRecord record;
  in.read("id", record.id);
  in.read("name", record.name);
  in.read("queue", record.queue);
  in.read_word("state", record.state, JobState::buried);
  in.read("key", record.key);
  in.read("unique", record.unique);
  in.read("priority", record.priority);
  in.read("due_at", record.due_at);
  in.read("function", record.function);
  in.read_bytes("payload", record.payload);
  in.read("attempts", record.attempts);
  in.read("max_attempts", record.max_attempts);
  in.read("expiries", record.expiries);
  in.read_ms("lease_time_ms", record.lease_time);
  in.read("pending", record.pending);
  std::string if_failed;
  in.read("if_failed", if_failed);
  if (if_failed == "run") record.if_failed = DependencyPolicy::run;
  in.read("created_at", record.created_at);
  in.read("ended_at", record.ended_at);
  in.read_bytes("result", record.result);
  in.read("error", record.error);
  in.read("worker", record.worker);
  in.read("lease_until", record.lease_until);
  return record;
}

Attempt read_attempt(const JsonValue& told) {
  ToldMembers in(told);
  Attempt attempt;
  in.read("number", attempt.number);
  in.read("ended_at", attempt.ended_at);
  in.read("outcome", attempt.outcome);
  in.read("error", attempt.error);
  in.read("worker", attempt.worker);
  return attempt;
}

}  // namespace argiope
