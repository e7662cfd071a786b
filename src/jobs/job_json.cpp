#include "argiope/jobs/job_json.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "argiope/base/json_writer.hpp"
#include "argiope/base/printable.hpp"
#include "argiope/base/rfc3339.hpp"
#include "argiope/base/utf8.hpp"
#include "base/internal/base64.hpp"

namespace argiope {
namespace {

namespace dom = simdjson::dom;

constexpr std::size_t kMostWaitedFor = 10'000;
constexpr std::int64_t kMostDelayMs = std::int64_t{1000} * 60 * 60 * 24 * 365 * 100;
constexpr std::int64_t kLastMs = std::numeric_limits<std::int64_t>::max() / 1'000'000 - 1;
// A parser that has read a large text keeps its memory; one that has read an extraordinary one is thrown away.
constexpr std::size_t kMostKeptCapacity = 1024 * 1024;
// Of an input shown in a message.
constexpr std::size_t kMostShown = 60;

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool has_control_characters(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

bool is_utf8(std::string_view text) {
  return simdjson::validate_utf8(text.data(), text.size());
}

std::string shown(const dom::element& value) { return printable(simdjson::minify(value), kMostShown); }

// A job from the members of an object, one after the other. The first that is wrong ends it.
class JobReader {
 public:
  JobReader(WallTime now, JobNames* names) : now_(now), names_(names) {}

  // False when there is an error.
  bool read(std::string_view name, const dom::element& value, std::string_view raw) {
    name_ = name;
    const auto* const member = std::ranges::find(kMembers, name, &Member::name);
    if (member == std::end(kMembers)) {
      error_ = fmt::format("there is no member {}; there are {}", in_quotes(name), all_names());
      return false;
    }
    const unsigned bit = 1u << (member - std::begin(kMembers));
    if (std::exchange(seen_, seen_ | bit) & bit) {
      error_ = fmt::format("member {} is there twice", in_quotes(name));
      return false;
    }
    (this->*member->read)(value, raw);
    return error_.empty();
  }

  Result<NewJob> job() {
    if (error_.empty() && job_.queue.empty()) error_ = "member \"queue\" is missing: a string of 1 to 512 bytes";
    if (error_.empty() && has_due_at_ && has_delay_) error_ = "give due_at or delay_ms, not both";
    if (error_.empty() && has_payload_ && has_base64_) error_ = "give payload or payload_base64, not both";
    if (!error_.empty()) return fail(Errc::invalid_input, std::move(error_));
    return std::move(job_);
  }

 private:
  struct Member {
    std::string_view name;
    void (JobReader::*read)(const dom::element& value, std::string_view raw);
  };
  static const Member kMembers[16];

  static std::string all_names() {
    std::string names;
    for (const Member& member : kMembers) names += fmt::format("{}{}", names.empty() ? "" : ", ", member.name);
    return names;
  }

  void wrong(const dom::element& value, std::string_view wanted) {
    error_ = fmt::format("{} {}: {}", name_, shown(value), wanted);
  }
  std::int64_t whole(const dom::element& value, std::int64_t least, std::int64_t most, std::string_view also = {}) {
    const auto number = value.get_int64();
    if (number.error() != simdjson::SUCCESS || number.value_unsafe() < least || number.value_unsafe() > most) {
      wrong(value, fmt::format("a whole number from {} to {}{}", least, most, also));
      return least;
    }
    return number.value_unsafe();
  }
  bool flag(const dom::element& value) {
    const auto found = value.get_bool();
    if (found.error() != simdjson::SUCCESS) wrong(value, "true or false");
    return found.error() == simdjson::SUCCESS && found.value_unsafe();
  }
  std::string text(const dom::element& value, std::size_t least = 0) {
    const auto found = value.get_string();
    if (found.error() != simdjson::SUCCESS || found.value_unsafe().size() < least ||
        found.value_unsafe().size() > kMostNameBytes) {
      wrong(value, fmt::format("a string of {}{} bytes", least > 0 ? "1 to " : "at most ", kMostNameBytes));
      return {};
    }
    return std::string(found.value_unsafe());
  }
  // The place of the string among `words`.
  std::size_t one_of(const dom::element& value, std::initializer_list<std::string_view> words) {
    const auto found = value.get_string();
    const auto* const place =
        found.error() == simdjson::SUCCESS ? std::ranges::find(words, found.value_unsafe()) : words.end();
    if (place != words.end()) return static_cast<std::size_t>(place - words.begin());
    std::string all;
    for (const std::string_view& word : words) {
      all += fmt::format("{}\"{}\"", all.empty() ? "" : &word == words.end() - 1 ? " or " : ", ", word);
    }
    wrong(value, all);
    return 0;
  }
  JobId id(const dom::element& value) {
    if (const auto digits = value.get_string();
        digits.error() == simdjson::SUCCESS && is_digits(digits.value_unsafe())) {
      const auto number = parse_job_id(digits.value_unsafe());
      if (number) return **number;
    }
    return static_cast<JobId>(whole(value, 1, static_cast<std::int64_t>(kMostJobId)));
  }

  void read_queue(const dom::element& value, std::string_view) { job_.queue = text(value, 1); }
  void read_id(const dom::element& value, std::string_view) {
    const auto name = value.get_string();
    if (name.error() != simdjson::SUCCESS || is_digits(name.value_unsafe())) {
      job_.id = id(value);
      return;
    }
    job_.name = text(value, 1);
    // Ids are printed one a line.
    if (has_control_characters(job_.name)) wrong(value, "no control characters in the name of a job");
  }
  void read_key(const dom::element& value, std::string_view) { job_.key = text(value); }
  void read_unique(const dom::element& value, std::string_view) { job_.unique = text(value); }
  void read_unique_policy(const dom::element& value, std::string_view) {
    job_.unique_policy = static_cast<UniquePolicy>(one_of(value, {"keep", "replace", "merge"}));
  }
  void read_run_again(const dom::element& value, std::string_view) { job_.run_again = flag(value); }
  void read_priority(const dom::element& value, std::string_view) {
    using Limits = std::numeric_limits<std::int32_t>;
    job_.priority = static_cast<std::int32_t>(whole(value, Limits::min(), Limits::max()));
  }
  void read_due_at(const dom::element& value, std::string_view) {
    has_due_at_ = true;
    if (const auto spelled = value.get_string(); spelled.error() == simdjson::SUCCESS) {
      if (const auto time = parse_rfc3339(spelled.value_unsafe())) {
        job_.due_at = *time;
      } else {
        wrong(value, "a time like \"2026-01-31T12:00:05Z\", from 1970 to 2262");
      }
      return;
    }
    job_.due_at = WallTime{std::chrono::milliseconds{
        whole(value, 0, kLastMs, ", milliseconds since 1970, or a time like \"2026-01-31T12:00:05Z\"")}};
  }
  void read_delay(const dom::element& value, std::string_view) {
    has_delay_ = true;
    const Duration delay = std::chrono::milliseconds{whole(value, 0, kMostDelayMs)};
    if (delay > Duration{}) {
      job_.due_at = WallTime{saturating_add(TimePoint{now_.time_since_epoch()}, delay).time_since_epoch()};
    }
  }
  void read_function(const dom::element& value, std::string_view) { job_.function = text(value); }
  void read_payload_base64(const dom::element& value, std::string_view) {
    const auto text = value.get_string();
    auto bytes = text.error() == simdjson::SUCCESS ? from_base64(text.value_unsafe()) : std::nullopt;
    if (!bytes) return wrong(value, "a string of base64");
    has_base64_ = true;
    job_.payload = std::move(*bytes);
  }
  void read_payload(const dom::element& value, std::string_view raw) {
    has_payload_ = true;
    const auto string = value.get_string();
    job_.payload = string.error() == simdjson::SUCCESS ? string.value_unsafe() : raw;
  }
  void read_max_attempts(const dom::element& value, std::string_view) {
    job_.max_attempts = static_cast<std::uint32_t>(whole(value, 0, std::numeric_limits<std::uint32_t>::max()));
  }
  void read_waits_for(const dom::element& value, std::string_view) {
    const auto list = value.get_array();
    if (list.error() != simdjson::SUCCESS || list.value_unsafe().size() > kMostWaitedFor) {
      return wrong(value, fmt::format("a list of at most {} job ids", kMostWaitedFor));
    }
    for (const dom::element entry : list.value_unsafe()) {
      if (const auto name = name_of(entry)) {
        names_->waits_for.emplace_back(*name);
      } else {
        job_.waits_for.push_back(id(entry));
      }
    }
  }
  void read_if_failed(const dom::element& value, std::string_view) {
    job_.if_failed = one_of(value, {"run", "cancel"}) == 0 ? DependencyPolicy::run : DependencyPolicy::cancel;
  }
  void read_batch(const dom::element& value, std::string_view) {
    if (const auto name = name_of(value)) {
      names_->batch = *name;
    } else {
      job_.batch = id(value);
    }
  }
  // What can only be a name, where names may stand.
  std::optional<std::string_view> name_of(const dom::element& value) const {
    const auto text = value.get_string();
    if (names_ == nullptr || text.error() != simdjson::SUCCESS || text.value_unsafe().empty() ||
        is_digits(text.value_unsafe())) {
      return std::nullopt;
    }
    return text.value_unsafe();
  }

  const WallTime now_;
  JobNames* const names_;
  NewJob job_;
  std::string_view name_;
  unsigned seen_ = 0;
  bool has_due_at_ = false;
  bool has_delay_ = false;
  bool has_payload_ = false;
  bool has_base64_ = false;
  std::string error_;
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

std::string what_is_wrong(simdjson::error_code error) {
  switch (error) {
    case simdjson::EMPTY: return "it is empty: one JSON object is wanted";
    case simdjson::DEPTH_ERROR: return fmt::format("nested deeper than {} levels", kMostJobJsonDepth);
    case simdjson::UTF8_ERROR: return "not valid UTF-8";
    case simdjson::NUMBER_ERROR: return "a number that is no JSON number, or fits neither 64 bits nor a double";
    case simdjson::STRING_ERROR: return "a string with a bad escape in it";
    case simdjson::UNCLOSED_STRING: return "a string does not end";
    case simdjson::UNESCAPED_CHARS: return "a control character in a string, which must be written \\u00XX";
    default: return "not one JSON object: a bracket, comma, quote or word is missing, wrong, or one too many";
  }
}

Result<NewJob> read_job(dom::parser& parser, std::string_view json, WallTime now, JobNames* names) {
  // Copies the text to where the parser may read beyond its end.
  const auto parsed = parser.parse(json.data(), json.size());
  if (parsed.error() != simdjson::SUCCESS) return fail(Errc::invalid_input, what_is_wrong(parsed.error()));
  const auto object = parsed.value_unsafe().get_object();
  if (object.error() != simdjson::SUCCESS) {
    return fail(Errc::invalid_input, fmt::format("{}: one JSON object is wanted", shown(parsed.value_unsafe())));
  }
  JobReader reader(now, names);
  RawValues raw(json);
  for (const auto [name, value] : object.value_unsafe()) {
    if (!reader.read(name, value, raw.next())) break;
  }
  return reader.job();
}

void append_member(std::string& out, std::string_view name) {
  out += fmt::format("{}\"{}\":", out.size() > 1 ? "," : "", name);
}
void append_text(std::string& out, std::string_view name, std::string_view text) {
  append_member(out, name);
  append_json_string(out, text);
}
// And as base64, where that loses something.
void append_bytes(std::string& out, std::string_view name, std::string_view bytes) {
  append_text(out, name, bytes);
  if (is_utf8(bytes)) return;
  append_member(out, fmt::format("{}_base64", name));
  out += fmt::format("\"{}\"", to_base64(bytes));
}
template <class Number>
void append_number(std::string& out, std::string_view name, Number number) {
  append_member(out, name);
  out += fmt::format("{}", number);
}
void append_time(std::string& out, std::string_view name, WallTime time) {
  append_member(out, name);
  out += time == WallTime{} ? "null" : fmt::format("\"{}\"", to_rfc3339(time));
}

}  // namespace

Result<NewJob> parse_new_job(std::string_view json, WallTime now, JobNames* names) {
  if (names != nullptr) *names = {};
  if (json.size() > kMostJobJsonBytes) {
    return fail(Errc::too_large, fmt::format("{} bytes of JSON: at most {}", json.size(), kMostJobJsonBytes));
  }
  thread_local dom::parser parser(kMostJobJsonBytes);
  if (parser.max_depth() != kMostJobJsonDepth &&
      parser.allocate(std::max<std::size_t>(parser.capacity(), 4096), kMostJobJsonDepth) != simdjson::SUCCESS) {
    throw std::bad_alloc();
  }
  auto job = read_job(parser, json, now, names);
  if (parser.capacity() > kMostKeptCapacity) parser = dom::parser(kMostJobJsonBytes);
  return job;
}

std::string to_json(const JobRecord& record) {
  std::string out = "{";
  append_number(out, "id", record.id);
  if (!record.name.empty()) append_text(out, "name", record.name);
  append_text(out, "queue", record.queue);
  append_text(out, "state", to_string(record.state));
  append_text(out, "key", record.key);
  if (!record.unique.empty()) append_text(out, "unique", record.unique);
  append_number(out, "priority", record.priority);
  append_time(out, "due_at", record.due_at);
  if (!record.function.empty()) append_text(out, "function", record.function);
  append_bytes(out, "payload", record.payload);
  append_number(out, "attempts", record.attempts);
  append_number(out, "max_attempts", record.max_attempts);
  append_number(out, "expiries", record.expiries);
  append_number(out, "pending", record.pending);
  append_text(out, "if_failed", record.if_failed == DependencyPolicy::run ? "run" : "cancel");
  append_time(out, "created_at", record.created_at);
  append_time(out, "ended_at", record.ended_at);
  append_bytes(out, "result", record.result);
  append_text(out, "error", record.error);
  append_text(out, "worker", record.worker);
  append_time(out, "lease_until", record.lease_until);
  return out + '}';
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
