#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <type_traits>

#include "argiope/base/clock.hpp"
#include "argiope/jobs/job_queue.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "jobs/internal/queue_config_json.hpp"

namespace argiope {
namespace {

using std::chrono::milliseconds;

// Ages are counted from here, so that with the shortest ageing there is they fit for 68 years.
constexpr WallTime kAgesFrom{std::chrono::seconds{1'767'225'600}};  // 2026-01-01
constexpr Duration kShortestAgeing = std::chrono::seconds{1};
constexpr std::string_view kNoLimit = "unlimited";
constexpr std::string_view kMs = "_ms";
constexpr std::string_view kPausedUntil = "paused_until";  // written only where there is one
constexpr std::int64_t kMostMilliseconds = std::int64_t{1'000} * 60 * 60 * 24 * 365 * 100;

// Reads one member. Spans have two names: "retry_first_ms" for a number of milliseconds, and "retry_first" for "100ms"
// or a number of seconds.
class SettingReader {
 public:
  SettingReader(const JsonValue& value, bool is_span) : value_(value), is_span_(is_span) {}

  void number(double& out, double least, double most, bool may_be_unlimited = false) {
    if (may_be_unlimited && unlimited()) {
      out = kUnlimitedRate;
      return;
    }
    const auto number = value_.if_number();
    if (number && *number >= least && *number <= most) {
      out = *number;
    } else {
      value_.wrong(fmt::format("a number from {} to {}{}", least, most, may_be_unlimited ? " or \"unlimited\"" : ""));
    }
  }
  template <class T>
  void whole(T& out, std::uint64_t least, std::uint64_t most, std::optional<T> no_limit = {}) {
    if (no_limit && unlimited()) {
      out = *no_limit;
      return;
    }
    const auto number = value_.if_natural();
    if (number && *number >= least && *number <= most) {
      out = static_cast<T>(*number);
    } else {
      value_.wrong(fmt::format("a whole number from {} to {}{}", least, most, no_limit ? " or \"unlimited\"" : ""));
    }
  }
  void span(Duration& out, Duration least = {}, bool may_be_unlimited = false) {
    if (may_be_unlimited && unlimited()) {
      out = Duration::max();
    } else if (is_span_) {
      spelled(out, least);
    } else {
      std::uint64_t ms = 0;
      whole(ms, static_cast<std::uint64_t>(std::chrono::ceil<milliseconds>(least).count()), kMostMilliseconds);
      if (!value_.errors()) out = milliseconds{ms};
    }
  }
  void flag(bool& out) { out = value_.flag(); }
  void time(WallTime& out) {
    const auto text = value_.if_text();
    const auto time = text ? parse_rfc3339(*text) : std::nullopt;
    if (!time) return value_.wrong("a time like \"2026-01-31T12:00:05Z\"");
    out = std::max(WallTime{}, WallTime{std::chrono::floor<milliseconds>(*time)});
  }
  void spans(std::vector<Duration>& out) {
    if (!value_.is_list()) return value_.wrong(is_span_ ? "a list of spans" : "a list of milliseconds");
    std::vector<Duration> spans;
    value_.for_each([&](const JsonValue& entry) { SettingReader(entry, is_span_).span(spans.emplace_back()); });
    if (!value_.errors()) out = std::move(spans);
  }
  void policy(CapacityPolicy& out) {
    out = value_.one_of({"wait", "refuse"}) == 0 ? CapacityPolicy::wait : CapacityPolicy::refuse;
  }

 private:
  bool unlimited() const { return value_.if_text() == kNoLimit; }
  void spelled(Duration& out, Duration least) {
    const auto text = value_.if_text();
    const auto parsed = parse_span(text ? std::string(*text) : value_.json());
    if (!parsed) return value_.refuse(parsed.error().message);
    const auto ms = std::chrono::ceil<milliseconds>(*parsed);
    if (ms < least || ms.count() > kMostMilliseconds) {
      return value_.wrong(fmt::format("{} to 100 years", format_duration(least)));
    }
    out = ms;
  }

  const JsonValue& value_;
  const bool is_span_;
};

// Each member once, for reading and for writing alike.
template <class Config, class Visit>
void for_each_member(Config& config, Visit&& visit) {
  constexpr std::uint32_t kMost = kUnlimited - 1;
  const auto rate = [](auto& at) { return [&at](auto& io) { io.number(at, 0, 1e9, true); }; };
  const auto burst = [](auto& at) { return [&at](auto& io) { io.number(at, 1, 1e9); }; };
  const auto count = [](auto& at) {
    return [&at](auto& io) { io.whole(at, 1, kMost, std::optional<std::uint32_t>(kUnlimited)); };
  };
  const auto span = [](auto& at, Duration least = {}) { return [&at, least](auto& io) { io.span(at, least); }; };
  const auto long_span = [](auto& at) { return [&at](auto& io) { io.span(at, Duration{}, true); }; };
  visit("rate", rate(config.limits.rate));
  visit("burst", burst(config.limits.burst));
  visit("concurrency", count(config.limits.concurrency));
  visit("paused", [&](auto& io) { io.flag(config.limits.paused); });
  visit(kPausedUntil, [&](auto& io) { io.time(config.paused_until); });
  visit("key_rate", rate(config.key_limits.rate));
  visit("key_burst", burst(config.key_limits.burst));
  visit("key_concurrency", count(config.key_limits.concurrency));
  visit("key_delay_ms", span(config.key_limits.delay));
  visit("max_attempts", [&](auto& io) { io.whole(config.retry.max_attempts, 1, kMost); });
  visit("retry_first_ms", span(config.retry.first));
  visit("retry_factor", [&](auto& io) { io.number(config.retry.factor, 0, 1e6); });
  visit("retry_longest_ms", span(config.retry.longest));
  visit("retry_jitter", [&](auto& io) { io.number(config.retry.jitter, 0, 1); });
  visit("retry_table_ms", [&](auto& io) { io.spans(config.retry.table); });
  visit("lease_time_ms", span(config.lease_time, milliseconds{1}));
  visit("max_lease_expiries", [&](auto& io) { io.whole(config.max_lease_expiries, 1, kMost); });
  visit("capacity", [&](auto& io) {
    io.whole(config.capacity, 1, std::numeric_limits<std::uint64_t>::max() - 1,
             std::optional<std::uint64_t>(std::numeric_limits<std::uint64_t>::max()));
  });
  visit("at_capacity", [&](auto& io) { io.policy(config.at_capacity); });
  visit("max_payload_bytes", [&](auto& io) { io.whole(config.max_payload_bytes, 0, 1u << 30); });
  visit("keep_done_ms", long_span(config.keep_done));
  visit("keep_cancelled_ms", long_span(config.keep_cancelled));
  visit("keep_buried_ms", long_span(config.keep_buried));
  // Shorter ones would not fit a rank.
  visit("ageing_ms", [&](auto& io) {
    Duration ageing = config.ageing;
    io.span(ageing);
    if constexpr (!std::is_const_v<Config>) {
      if (ageing > Duration{} && ageing < kShortestAgeing) ageing = kShortestAgeing;
      config.ageing = ageing;
    }
  });
  visit("weight", [&](auto& io) { io.whole(config.weight, 1, 1'000); });
}

void read_member(QueueConfig& config, std::string_view name, const JsonValue& given) {
  const auto is_span = [&](std::string_view member) {
    return member.size() == name.size() + kMs.size() && member.starts_with(name) && member.ends_with(kMs);
  };
  bool known = false;
  for_each_member(config, [&](std::string_view member_name, auto&& member) {
    if (member_name != name && !is_span(member_name)) return;
    known = true;
    SettingReader reader(given, member_name != name);
    member(reader);
  });
  if (!known) given.refuse_member(fmt::format("there is no member {}", in_quotes(name)));
}

// Writes the value of one member.
struct Writer {
  JsonWriter& out;

  void number(double value, double, double, bool = false) { std::isinf(value) ? out.value(kNoLimit) : out.real(value); }
  template <class T>
  void whole(const T& value, std::uint64_t, std::uint64_t, std::optional<T> no_limit = {}) {
    no_limit == value ? out.value(kNoLimit) : out.value(value);
  }
  void span(const Duration& value, Duration = {}, bool = false) {
    value == Duration::max() ? out.value(kNoLimit) : out.value(std::chrono::duration_cast<milliseconds>(value).count());
  }
  void flag(bool value) { out.value(value); }
  void time(WallTime value) { out.value(value); }
  void spans(const std::vector<Duration>& values) {
    out.array([&] {
      for (const Duration& value : values) out.value(std::chrono::duration_cast<milliseconds>(value).count());
    });
  }
  void policy(CapacityPolicy value) { out.value(value == CapacityPolicy::wait ? "wait" : "refuse"); }
};

}  // namespace

std::int32_t ranked_priority(std::int32_t priority, WallTime ready_at, Duration ageing) noexcept {
  if (ageing <= Duration{}) return priority;
  const std::int64_t steps = (std::max(ready_at, WallTime{}) - kAgesFrom) / ageing;
  // Between −2³¹ and 2³¹ either way, or the clamp below decides.
  const std::int64_t bounded = std::clamp<std::int64_t>(steps, -(std::int64_t{1} << 40), std::int64_t{1} << 40);
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(
      priority - bounded, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()));
}

std::string to_json(const QueueConfig& config) {
  return json_object([&](JsonWriter& json) {
    for_each_member(config, [&](std::string_view name, auto&& member) {
      if (name == kPausedUntil && config.paused_until == WallTime{}) return;
      json.key(name);
      Writer writer{json};
      member(writer);
    });
  });
}

Result<QueueConfig> detail::read_queue_config(std::string_view text, const QueueConfig& base, JsonErrors& errors) {
  const auto parsed = JsonText::parse(text);
  if (!parsed) {
    errors.add({}, {}, parsed.error().message);
    return std::unexpected(errors.error());
  }
  return read_queue_config(parsed->root(errors), base);
}

Result<QueueConfig> detail::read_queue_config(const JsonValue& form, const QueueConfig& base) {
  if (!form.is_object()) form.refuse("must be one JSON object");
  QueueConfig config = base;
  form.for_each_member([&](std::string_view name, const JsonValue& value) { read_member(config, name, value); });
  if (form.errors()) return std::unexpected(form.errors().error());
  return config;
}

Result<QueueConfig> parse_queue_config(std::string_view text, const QueueConfig& base) {
  JsonErrors errors;
  auto config = detail::read_queue_config(text, base, errors);
  if (!config) config.error().message.insert(0, "queue configuration: ");
  return config;
}

}  // namespace argiope
