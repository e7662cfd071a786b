#include "serve/api/settlement_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/internal/base64.hpp"
#include "base/internal/printable.hpp"
#include "jobs/internal/job_json.hpp"
#include "remote/internal/lease_limits.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostErrorBytes = 64 * 1024;

// A settlement from the members of an object, one after the other.
class SettlementReader {
 public:
  explicit SettlementReader(WallTime now) : now_(now) {}

  void read(std::string_view name, const JsonValue& value, RawJson& raw) {
    const auto* const member = std::ranges::find(kMembers, name, &Member::name);
    if (member == std::end(kMembers)) {
      return value.refuse_member(fmt::format("there is no member {}", in_quotes(name)));
    }
    const unsigned bit = 1u << (member - std::begin(kMembers));
    if (std::exchange(seen_, seen_ | bit) & bit) {
      return value.refuse_member(fmt::format("member {} is there twice", in_quotes(name)));
    }
    (this->*member->read)(value, raw);
  }

  // Of `object`, whose members have been read.
  RunEnd settlement(const JsonValue& object) {
    using enum Outcome;
    const Outcome outcome = run_.verdict.outcome;
    if (!has("token")) object.refuse("member \"token\" is missing: a whole number");
    if (!has("outcome")) object.refuse("member \"outcome\" is missing");
    if (has("result") && has("result_base64")) object.refuse("give result or result_base64, not both");
    const bool keeps = outcome == done || outcome == retry || outcome == bury;
    if (!keeps && (has("result") || has("result_base64"))) object.refuse("result is of done, retry and bury");
    if (has("error") && (outcome == done || outcome == release)) object.refuse("error is of retry, bury and cancel");
    if (has("delay_ms") && outcome != retry && outcome != release) object.refuse("delay_ms is of retry and release");
    if (has("priority") && (outcome == done || outcome == cancel))
      object.refuse("priority is of retry, bury and release");
    return std::move(run_);
  }

 private:
  struct Member {
    std::string_view name;
    void (SettlementReader::*read)(const JsonValue& value, RawJson& raw);
  };
  static const Member kMembers[8];

  bool has(std::string_view name) const {
    return (seen_ & (1u << (std::ranges::find(kMembers, name, &Member::name) - std::begin(kMembers)))) != 0;
  }

  void read_token(const JsonValue& value, RawJson&) {
    run_.token = static_cast<std::uint64_t>(value.whole(1, static_cast<std::int64_t>(kMostToken)));
  }
  void read_outcome(const JsonValue& value, RawJson&) {
    using enum Outcome;
    static constexpr Outcome kOutcomes[] = {done, retry, bury, cancel, release};
    run_.verdict.outcome = kOutcomes[value.one_of({"done", "retry", "bury", "cancel", "release"})];
  }
  static void refuse_size(const JsonValue& value) { value.refuse(fmt::format("at most {} bytes", kMostResultBytes)); }
  void read_result(const JsonValue& value, RawJson& raw) {
    const auto text = value.if_text();
    const std::string_view result = text ? *text : raw.text();
    if (result.size() > kMostResultBytes) return refuse_size(value);
    run_.verdict.result = result;
  }
  void read_result_base64(const JsonValue& value, RawJson&) {
    const auto text = value.if_text();
    auto bytes = text ? from_base64(*text) : std::nullopt;
    if (!bytes) return value.wrong("a string of base64");
    if (bytes->size() > kMostResultBytes) return refuse_size(value);
    run_.verdict.result = std::move(*bytes);
  }
  void read_error(const JsonValue& value, RawJson&) { run_.verdict.error = value.text(0, kMostErrorBytes); }
  void read_delay(const JsonValue& value, RawJson&) { run_.verdict.delay = argiope::read_delay(value); }
  void read_priority(const JsonValue& value, RawJson&) {
    using Limits = std::numeric_limits<std::int32_t>;
    run_.verdict.priority = static_cast<std::int32_t>(value.whole(Limits::min(), Limits::max()));
  }
  void read_follow_ups(const JsonValue& value, RawJson& raw) {
    if (!value.is_list() || value.size() > kMostFollowUps) {
      return value.wrong(fmt::format("a list of at most {} new jobs", kMostFollowUps));
    }
    std::size_t place = 0;
    value.for_each([&](const JsonValue& job) {
      RawJson raw_job(raw, place++);
      run_.verdict.follow_ups.push_back(read_new_job(job, now_, nullptr, raw_job));
    });
  }

  const WallTime now_;
  RunEnd run_;
  unsigned seen_ = 0;
};

const SettlementReader::Member SettlementReader::kMembers[8] = {
    {"token", &SettlementReader::read_token},       {"outcome", &SettlementReader::read_outcome},
    {"result", &SettlementReader::read_result},     {"result_base64", &SettlementReader::read_result_base64},
    {"error", &SettlementReader::read_error},       {"delay_ms", &SettlementReader::read_delay},
    {"priority", &SettlementReader::read_priority}, {"follow_ups", &SettlementReader::read_follow_ups},
};

}  // namespace

RunEnd read_settlement(const JsonValue& value, WallTime now, RawJson& raw) {
  if (!value.is_object()) {
    value.wrong("one JSON object is wanted");
    return {};
  }
  SettlementReader reader(now);
  std::size_t place = 0;
  value.for_each_member([&](std::string_view name, const JsonValue& member) {
    RawJson raw_member(raw, place++);
    reader.read(name, member, raw_member);
  });
  return reader.settlement(value);
}

}  // namespace argiope
