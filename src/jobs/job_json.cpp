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

bool has_control_characters(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// A job from the members of an object, one after the other.
class JobReader {
 public:
  JobReader(WallTime now, JobNames* names, JsonErrors& errors) : now_(now), names_(names), errors_(errors) {}

  // `raw`: the value's text.
  void read(std::string_view name, const JsonValue& value, std::string_view raw) {
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

  Result<NewJob> job() {
    if (job_.queue.empty()) errors_.add({}, {}, "member \"queue\" is missing: a string of 1 to 512 bytes");
    if (has_due_at_ && has_delay_) errors_.add({}, {}, "give due_at or delay_ms, not both");
    if (has_payload_ && has_base64_) errors_.add({}, {}, "give payload or payload_base64, not both");
    if (errors_) return std::unexpected(errors_.error());
    return std::move(job_);
  }

 private:
  struct Member {
    std::string_view name;
    void (JobReader::*read)(const JsonValue& value, std::string_view raw);
  };
  static const Member kMembers[16];

  static std::string all_names() {
    std::string names;
    for (const Member& member : kMembers) names += fmt::format("{}{}", names.empty() ? "" : ", ", member.name);
    return names;
  }

  static std::string text(const JsonValue& value, std::size_t least = 0) { return value.text(least, kMostNameBytes); }
  static JobId id(const JsonValue& value) {
    if (const auto digits = value.if_text(); digits && is_digits(*digits)) {
      const auto number = parse_job_id(*digits);
      if (number) return **number;
    }
    return static_cast<JobId>(value.whole(1, static_cast<std::int64_t>(kMostJobId)));
  }

  void read_queue(const JsonValue& value, std::string_view) { job_.queue = text(value, 1); }
  void read_id(const JsonValue& value, std::string_view) {
    const auto name = value.if_text();
    if (!name || is_digits(*name)) {
      job_.id = id(value);
      return;
    }
    job_.name = text(value, 1);
    // Ids are printed one a line.
    if (has_control_characters(job_.name)) value.wrong("no control characters in the name of a job");
  }
  void read_key(const JsonValue& value, std::string_view) { job_.key = text(value); }
  void read_unique(const JsonValue& value, std::string_view) { job_.unique = text(value); }
  void read_unique_policy(const JsonValue& value, std::string_view) {
    job_.unique_policy = static_cast<UniquePolicy>(value.one_of({"keep", "replace", "merge"}));
  }
  void read_run_again(const JsonValue& value, std::string_view) { job_.run_again = value.flag(); }
  void read_priority(const JsonValue& value, std::string_view) {
    using Limits = std::numeric_limits<std::int32_t>;
    job_.priority = static_cast<std::int32_t>(value.whole(Limits::min(), Limits::max()));
  }
  void read_due_at(const JsonValue& value, std::string_view) {
    has_due_at_ = true;
    if (const auto spelled = value.if_text()) {
      if (const auto time = parse_rfc3339(*spelled)) {
        job_.due_at = *time;
      } else {
        value.wrong("a time like \"2026-01-31T12:00:05Z\", from 1970 to 2262");
      }
      return;
    }
    job_.due_at = WallTime{std::chrono::milliseconds{
        value.whole(0, kLastMs, ", milliseconds since 1970, or a time like \"2026-01-31T12:00:05Z\"")}};
  }
  void read_delay(const JsonValue& value, std::string_view) {
    has_delay_ = true;
    const Duration delay = std::chrono::milliseconds{value.whole(0, kMostDelayMs)};
    if (delay > Duration{}) {
      job_.due_at = WallTime{saturating_add(TimePoint{now_.time_since_epoch()}, delay).time_since_epoch()};
    }
  }
  void read_function(const JsonValue& value, std::string_view) { job_.function = text(value); }
  void read_payload_base64(const JsonValue& value, std::string_view) {
    const auto text = value.if_text();
    auto bytes = text ? from_base64(*text) : std::nullopt;
    if (!bytes) return value.wrong("a string of base64");
    has_base64_ = true;
    job_.payload = std::move(*bytes);
  }
  void read_payload(const JsonValue& value, std::string_view raw) {
    has_payload_ = true;
    job_.payload = value.if_text().value_or(raw);
  }
  void read_max_attempts(const JsonValue& value, std::string_view) {
    job_.max_attempts = static_cast<std::uint32_t>(value.whole(0, std::numeric_limits<std::uint32_t>::max()));
  }
  void read_waits_for(const JsonValue& value, std::string_view) {
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
  void read_if_failed(const JsonValue& value, std::string_view) {
    job_.if_failed = value.one_of({"run", "cancel"}) == 0 ? DependencyPolicy::run : DependencyPolicy::cancel;
  }
  void read_batch(const JsonValue& value, std::string_view) {
    if (const auto name = name_of(value)) {
      names_->batch = *name;
    } else {
      job_.batch = id(value);
    }
  }
  // What can only be a name, where names may stand.
  std::optional<std::string_view> name_of(const JsonValue& value) const {
    const auto text = value.if_text();
    return names_ == nullptr || !text || text->empty() || is_digits(*text) ? std::nullopt : text;
  }

  const WallTime now_;
  JobNames* const names_;
  NewJob job_;
  JsonErrors& errors_;
  unsigned seen_ = 0;
  bool has_due_at_ = false;
  bool has_delay_ = false;
  bool has_payload_ = false;
  bool has_base64_ = false;
};

const JobReader::Member JobReader::kMembers[16] = {
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
    {"waits_for", &JobReader::read_waits_for},
    {"if_failed", &JobReader::read_if_failed},
    {"batch", &JobReader::read_batch},
};

// Walks over the members of an object as they are written. The text has been parsed before, so it is well formed.
class RawValues {
 public:
  explicit RawValues(std::string_view object) : rest_(object.substr(object.find('{') + 1)) {}

  // The text of the next member's value.
  std::string_view next() {
    rest_.remove_prefix(rest_.find('"'));
    skip_string();
    rest_.remove_prefix(rest_.find(':') + 1);
    rest_.remove_prefix(rest_.find_first_not_of(" \t\r\n"));
    const std::string_view from = rest_;
    for (int depth = 0; depth > 0 || rest_.front() != ',';) {
      const char c = rest_.front();
      if (c == '"') {
        skip_string();
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if ((c == '}' || c == ']') && depth-- == 0) break;
      rest_.remove_prefix(1);
    }
    const std::string_view value = from.substr(0, from.size() - rest_.size());
    return value.substr(0, value.find_last_not_of(" \t\r\n") + 1);
  }

 private:
  void skip_string() {
    std::size_t at = 1;
    while (rest_[at] != '"') at += rest_[at] == '\\' ? 2 : 1;
    rest_.remove_prefix(at + 1);
  }

  std::string_view rest_;
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
  const JsonValue root = text->root(errors);
  if (!root.is_object()) {
    root.wrong("one JSON object is wanted");
    return std::unexpected(errors.error());
  }
  JobReader reader(now, names, errors);
  RawValues raw(json);
  root.for_each_member([&](std::string_view name, const JsonValue& value) { reader.read(name, value, raw.next()); });
  return reader.job();
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
  json.member("pending", record.pending);
  json.member("if_failed", record.if_failed == DependencyPolicy::run ? "run" : "cancel");
  json.member("created_at", record.created_at);
  json.member("ended_at", record.ended_at);
  json.bytes("result", record.result);
  json.member("error", record.error);
  json.member("worker", record.worker);
  json.member("lease_until", record.lease_until);
}

std::string to_json(const JobRecord& record) {
  return json_object([&](JsonWriter& json) { write_members(json, record); });
}

Result<std::optional<JobId>> parse_job_id(std::string_view text) {
  if (!is_digits(text)) return std::nullopt;
  JobId id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc{} || id == 0 || id > kMostJobId) {
    return fail(Errc::invalid_input,
                fmt::format("job id {}: a whole number from 1 to {}", in_quotes(text), kMostJobId));
  }
  return id;
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
