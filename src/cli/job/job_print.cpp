#include "cli/job/job_print.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/internal/counted.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "base/internal/utf8.hpp"
#include "cli/table.hpp"
#include "jobs/internal/job_json.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostOfJobName = 32;
constexpr std::size_t kMostPayload = 50;

// Attempts as people count them: with the one that ended well, and the one under way.
std::uint32_t runs_of(const JobRecord& record) {
  return record.attempts + (record.state == JobState::done || record.state == JobState::running ? 1 : 0);
}

std::string time_or_empty(WallTime time) { return time == WallTime{} ? std::string() : to_rfc3339(time); }

}  // namespace

std::vector<std::string> job_heading() {
  return {"ID", "QUEUE", "STATE", "PRIORITY", "ATTEMPTS", "TIME", "KEY", "PAYLOAD", "REMARK"};
}

std::vector<std::string> job_row(const JobRecord& record) {
  const bool ended = record.ended_at != WallTime{};
  const WallTime time = ended                               ? record.ended_at
                        : record.state == JobState::running ? record.lease_until
                                                            : record.due_at;
  std::string id = std::to_string(record.id);
  if (!record.name.empty()) id += fmt::format(" ({})", one_line(record.name, kMostOfJobName));
  return {std::move(id),
          one_line(record.queue, kMostOfJobName),
          std::string(to_string(record.state)),
          std::to_string(record.priority),
          std::to_string(runs_of(record)),
          record.pending > 0 ? fmt::format("waits for {}", record.pending) : time_or_empty(time),
          one_line(record.key, kMostOfJobName),
          one_line(record.payload, kMostPayload),
          one_line(record.error, std::string::npos)};
}

std::string job_details(const JobRecord& record, const std::vector<Attempt>& history) {
  std::string out = fmt::format("job {} of queue {}\n", record.id, in_quotes(record.queue));
  const auto say = [&](std::string_view what, std::string_view value) {
    if (!value.empty()) out += fmt::format("  {:<12} {}\n", what, one_line(value, kMostOfText));
  };
  say("name", record.name);
  say("state", record.pending > 0
                   ? fmt::format("{}: waits for {}", to_string(record.state), counted(record.pending, "other job"))
                   : std::string(to_string(record.state)));
  say("key", record.key);
  say("unique", record.unique);
  say("priority", std::to_string(record.priority));
  say("due", time_or_empty(record.due_at));
  say("function", record.function);
  say("payload", record.payload);
  say("attempts", record.max_attempts == 0 ? std::to_string(runs_of(record))
                                           : fmt::format("{} of {}", runs_of(record), record.max_attempts));
  if (record.expiries > 0) say("expiries", std::to_string(record.expiries));
  say("worker", record.worker);
  say("lease until", time_or_empty(record.lease_until));
  say("put", time_or_empty(record.created_at));
  say("ended", time_or_empty(record.ended_at));
  say("result", record.result);
  say("error", record.error);
  for (const Attempt& attempt : history) {
    say(fmt::format("attempt {}", attempt.number),
        fmt::format("{}  {}{}{}{}", to_rfc3339(attempt.ended_at), attempt.outcome, attempt.error.empty() ? "" : ": ",
                    attempt.error, attempt.worker.empty() ? "" : fmt::format(" (by {})", attempt.worker)));
  }
  return out;
}

std::string job_details_json(const JobRecord& record, const std::vector<Attempt>& history) {
  return json_object([&](JsonWriter& json) {
    write_members(json, record);
    json.member("runs", runs_of(record));
    write_history(json, "history", history);
  });
}

}  // namespace argiope
