#include "jobs/internal/job_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "base/internal/base64.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"

namespace argiope {
namespace {

static_assert(kMostJobJsonDepth == kMostJsonDepth);
constexpr std::size_t kMostWaitedFor = 10'000;
constexpr std::int64_t kMostDelayMs = std::int64_t{1000} * 60 * 60 * 24 * 365 * 100;
constexpr std::int64_t kLastMs = std::numeric_limits<std::int64_t>::max() / 1'000'000 - 1;

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Of texts that may be names: only a number as it is written by us is one, or 00123 and 123 would be one job.
bool is_id(std::string_view text) { return is_digits(text) && (text.size() == 1 || text.front() != '0'); }

bool has_control_characters(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// A job from the members of an object, one after the other.
class JobReader {
 public:
  JobReader(WallTime now, JobNames* names) : now_(now), names_(names) {}

  // `raw`: of the value.
  void read(std::string_view name, const JsonValue& value, RawJson& raw) {
    const auto* const member = std::ranges::find(kMembers, name, &Member::name);
    if (member == std::end(kMembers)) {
      return value.refuse_member(fmt::format("there is no member {}; there are {}", in_quotes(name), all_names()));
    }
    const unsigned bit = 1u << (member - std::begin(kMembers));
    if (std::exchange(seen_, seen_ | bit) & bit) {
      return value.refuse_member(fmt::format("member {} is there twice", in_quotes(name)));
    }
    (this->*member->read)(value, raw);
  }

  // The job that `object` asks for, whose members have been read.
  NewJob job(const JsonValue& object) {
    if (job_.queue.empty()) object.refuse("member \"queue\" is missing: a string of 1 to 512 bytes");
    if (has_due_at_ && has_delay_) object.refuse("give due_at or delay_ms, not both");
    if (has_payload_ && has_base64_) object.refuse("give payload or payload_base64, not both");
    return std::move(job_);
  }

 private:
  struct Member {
    std::string_view name;
    void (JobReader::*read)(const JsonValue& value, RawJson& raw);
  };
  static const Member kMembers[17];

  static std::string all_names() {
    std::string names;
    for (const Member& member : kMembers) names += fmt::format("{}{}", names.empty() ? "" : ", ", member.name);
    return names;
  }

  static std::string text(const JsonValue& value, std::size_t least = 0) { return value.text(least, kMostNameBytes); }
  static JobId id(const JsonValue& value) {
    if (const auto digits = value.if_text(); digits && is_id(*digits)) {
      const auto number = parse_job_id(*digits);
      if (number) return **number;
    }
    return static_cast<JobId>(value.whole(1, static_cast<std::int64_t>(kMostJobId)));
  }

  void read_queue(const JsonValue& value, RawJson&) { job_.queue = text(value, 1); }
  void read_id(const JsonValue& value, RawJson&) {
    const auto name = value.if_text();
    if (!name || is_id(*name)) {
      job_.id = id(value);
      return;
    }
    job_.name = text(value, 1);
    // Ids are printed one a line.
    if (has_control_characters(job_.name)) value.wrong("no control characters in the name of a job");
  }
  void read_key(const JsonValue& value, RawJson&) { job_.key = text(value); }
  void read_unique(const JsonValue& value, RawJson&) { job_.unique = text(value); }
  void read_unique_policy(const JsonValue& value, RawJson&) {
    job_.unique_policy = static_cast<UniquePolicy>(value.one_of({"keep", "replace", "merge"}));
  }
  void read_run_again(const JsonValue& value, RawJson&) { job_.run_again = value.flag(); }
  void read_priority(const JsonValue& value, RawJson&) {
    using Limits = std::numeric_limits<std::int32_t>;
    job_.priority = static_cast<std::int32_t>(value.whole(Limits::min(), Limits::max()));
  }
  void read_due_at(const JsonValue& value, RawJson&) {
    has_due_at_ = true;
    job_.due_at = read_due(value);
  }
  void read_delay(const JsonValue& value, RawJson&) {
    has_delay_ = true;
    if (const WallTime due_at = read_due_after(value, now_); due_at > now_) job_.due_at = due_at;
  }
  void read_function(const JsonValue& value, RawJson&) { job_.function = text(value); }
  void read_payload_base64(const JsonValue& value, RawJson&) {
    const auto text = value.if_text();
    auto bytes = text ? from_base64(*text) : std::nullopt;
    if (!bytes) return value.wrong("a string of base64");
    has_base64_ = true;
    job_.payload = std::move(*bytes);
  }
  void read_payload(const JsonValue& value, RawJson& raw) {
    has_payload_ = true;
    const auto text = value.if_text();
    job_.payload = text ? *text : raw.text();
  }
  void read_max_attempts(const JsonValue& value, RawJson&) {
    job_.max_attempts = static_cast<std::uint32_t>(value.whole(0, std::numeric_limits<std::uint32_t>::max()));
  }
  void read_lease_time(const JsonValue& value, RawJson&) {
    constexpr auto kMostMs = std::chrono::duration_cast<std::chrono::milliseconds>(kLongestLease).count();
    job_.lease_time = std::chrono::milliseconds{value.whole(0, kMostMs)};
  }
  void read_waits_for(const JsonValue& value, RawJson&) {
    if (!value.is_list() || value.size() > kMostWaitedFor) {
      return value.wrong(fmt::format("a list of at most {} job ids", kMostWaitedFor));
    }
    value.for_each([&](const JsonValue& entry) {
      if (const auto name = name_of(entry)) {
        names_->waits_for.emplace_back(*name);
      } else {
        job_.waits_for.push_back(id(entry));
      }
    });
  }
  void read_if_failed(const JsonValue& value, RawJson&) {
    job_.if_failed = value.one_of({"run", "cancel"}) == 0 ? DependencyPolicy::run : DependencyPolicy::cancel;
  }
  void read_batch(const JsonValue& value, RawJson&) {
    if (const auto name = name_of(value)) {
      names_->batch = *name;
    } else {
      job_.batch = id(value);
    }
  }
  // A value that can only be a name, where names may stand.
  std::optional<std::string_view> name_of(const JsonValue& value) const {
    const auto text = value.if_text();
    return names_ == nullptr || !text || text->empty() || is_id(*text) ? std::nullopt : text;
  }

  const WallTime now_;
  JobNames* const names_;
  NewJob job_;
  unsigned seen_ = 0;
  bool has_due_at_ = false;
  bool has_delay_ = false;
  bool has_payload_ = false;
  bool has_base64_ = false;
};

const JobReader::Member JobReader::kMembers[17] = {
    {"queue", &JobReader::read_queue},
    {"id", &JobReader::read_id},
    {"key", &JobReader::read_key},
    {"unique", &JobReader::read_unique},
    {"unique_policy", &JobReader::read_unique_policy},
    {"run_again", &JobReader::read_run_again},
    {"priority", &JobReader::read_priority},
    {"due_at", &JobReader::read_due_at},
    {"delay_ms", &JobReader::read_delay},
    {"function", &JobReader::read_function},
    {"payload", &JobReader::read_payload},
    {"payload_base64", &JobReader::read_payload_base64},
    {"max_attempts", &JobReader::read_max_attempts},
    {"lease_time_ms", &JobReader::read_lease_time},
    {"waits_for", &JobReader::read_waits_for},
    {"if_failed", &JobReader::read_if_failed},
    {"batch", &JobReader::read_batch},
};

}  // namespace

Result<NewJob> parse_new_job(std::string_view json, WallTime now, JobNames* names) {
  if (names != nullptr) *names = {};
  if (json.size() > kMostJobJsonBytes) {
    return fail(Errc::too_large, fmt::format("{} bytes of JSON: at most {}", json.size(), kMostJobJsonBytes));
  }
  const auto text = JsonText::parse(json);
  if (!text) return std::unexpected(text.error());
  JsonErrors errors;
  RawJson raw(json);
  NewJob job = read_new_job(text->root(errors), now, names, raw);
  if (errors) return std::unexpected(errors.error());
  return job;
}

NewJob read_new_job(const JsonValue& object, WallTime now, JobNames* names, RawJson& raw) {
  if (!object.is_object()) {
    object.wrong("one JSON object is wanted");
    return {};
  }
  JobReader reader(now, names);
  std::size_t place = 0;
  object.for_each_member([&](std::string_view name, const JsonValue& value) {
    RawJson raw_value(raw, place++);
    reader.read(name, value, raw_value);
  });
  return reader.job(object);
}

void write_members(JsonWriter& json, const JobRecord& record) {
  json.member("id", record.id);
  if (!record.name.empty()) json.member("name", record.name);
  json.member("queue", record.queue);
  json.member("state", to_string(record.state));
  json.member("key", record.key);
  if (!record.unique.empty()) json.member("unique", record.unique);
  json.member("priority", record.priority);
  json.member("due_at", record.due_at);
  if (!record.function.empty()) json.member("function", record.function);
  json.bytes("payload", record.payload);
  json.member("attempts", record.attempts);
  json.member("max_attempts", record.max_attempts);
  json.member("expiries", record.expiries);
  if (record.lease_time > Duration{}) {
    json.member("lease_time_ms", std::chrono::duration_cast<std::chrono::milliseconds>(record.lease_time).count());
  }
  json.member("pending", record.pending);
  json.member("if_failed", record.if_failed == DependencyPolicy::run ? "run" : "cancel");
  json.member("created_at", record.created_at);
  json.member("ended_at", record.ended_at);
  json.bytes("result", record.result);
  json.member("error", record.error);
  json.member("worker", record.worker);
  json.member("lease_until", record.lease_until);
}

void write_history(JsonWriter& json, std::string_view name, const std::vector<Attempt>& history) {
  json.array(name, [&] {
    for (const Attempt& attempt : history) {
      json.object([&] {
        json.member("number", attempt.number);
        json.member("ended_at", attempt.ended_at);
        json.member("outcome", attempt.outcome);
        json.member("error", attempt.error);
        json.member("worker", attempt.worker);
      });
    }
  });
}

std::string to_json(const JobRecord& record) {
  return json_object([&](JsonWriter& json) { write_members(json, record); });
}

Result<std::optional<JobId>> parse_job_id(std::string_view text) {
  if (!is_id(text)) return std::nullopt;
  JobId id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc{} || id == 0 || id > kMostJobId) {
    return fail(Errc::invalid_input,
                fmt::format("job id {}: a whole number from 1 to {}", in_quotes(text), kMostJobId));
  }
  return id;
}

std::string_view to_string(PutOutcome outcome) noexcept {
  static constexpr std::string_view kNames[] = {"added", "kept", "changed", "run_again", "cancelled", "taken"};
  return kNames[static_cast<std::size_t>(outcome)];
}

WallTime read_due(const JsonValue& value) {
  if (const auto spelled = value.if_text()) {
    if (const auto time = parse_rfc3339(*spelled)) return *time;
    value.wrong("a time like \"2026-01-31T12:00:05Z\", from 1970 to 2262");
    return {};
  }
  return WallTime{std::chrono::milliseconds{
      value.whole(0, kLastMs, ", milliseconds since 1970, or a time like \"2026-01-31T12:00:05Z\"")}};
}

Duration read_delay(const JsonValue& value) { return std::chrono::milliseconds{value.whole(0, kMostDelayMs)}; }

WallTime read_due_after(const JsonValue& value, WallTime now) {
  return WallTime{saturating_add(TimePoint{now.time_since_epoch()}, read_delay(value)).time_since_epoch()};
}

Result<WallTime> parse_due(std::string_view what, std::string_view text) {
  if (const auto time = parse_rfc3339(text)) return *time;
  std::int64_t ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (!is_digits(text) || error != std::errc{} || ms > kLastMs) {
    return fail(Errc::invalid_input,
                fmt::format("{} {}: a time like 2026-01-31T12:00:05Z, from 1970 to 2262, or milliseconds since 1970",
                            what, in_quotes(text)));
  }
  return WallTime{std::chrono::milliseconds{ms}};
}

}  // namespace argiope
