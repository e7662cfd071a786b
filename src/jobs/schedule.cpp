#include "argiope/jobs/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "argiope/base/clock.hpp"
#include "argiope/time/time_zone.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/utf8.hpp"
#include "jobs/internal/schedule_json.hpp"
#include "time/internal/trigger_json.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostWordBytes = 512;
constexpr std::size_t kMostJsonBytes = 4 * Schedule::kMostPayloadBytes;
constexpr Duration kLeastGrace = std::chrono::milliseconds{1};
constexpr std::int64_t kMostWhole = std::int64_t{1} << 53;  // what every JSON reader holds exactly
constexpr std::string_view kCoalesce[] = {to_string(Coalesce::latest), to_string(Coalesce::earliest),
                                          to_string(Coalesce::all)};
constexpr std::string_view kOverlap[] = {to_string(Overlap::skip), to_string(Overlap::queue_one),
                                         to_string(Overlap::queue_all), to_string(Overlap::cancel_running)};

void write_job(JsonWriter& out, const JobTemplate& job) {
  const JobTemplate usual;
  if (job.queue != usual.queue) out.member("queue", job.queue);
  if (!job.function.empty()) out.member("function", job.function);
  if (!job.key.empty()) out.member("key", job.key);
  if (!job.payload.empty()) out.member("payload", job.payload);
  if (job.fill_in) out.member("fill_in", true);
  if (job.priority != 0) out.member("priority", job.priority);
  if (job.max_attempts != 0) out.member("max_attempts", job.max_attempts);
}

JobTemplate read_job(const JsonValue& form, JsonMembers::Nulls nulls) {
  JsonMembers in(form, nulls);
  JobTemplate job;
  job.queue = in.text("queue", job.queue);
  job.function = in.text("function");
  job.key = in.text("key");
  if (const JsonValue* payload = in.find("payload")) {
    const auto text = payload->if_text();
    job.payload = text ? std::string(*text) : payload->kept_json();
  }
  job.fill_in = in.flag("fill_in", false);
  constexpr std::int64_t kInt32 = std::numeric_limits<std::int32_t>::max();
  job.priority = static_cast<std::int32_t>(in.whole("priority", kInt32, -kInt32 - 1));
  job.max_attempts = static_cast<std::uint32_t>(in.whole("max_attempts", std::numeric_limits<std::uint32_t>::max()));
  in.finish("a job has none");
  return job;
}

// A value that is out of its bounds goes to the errors, with the way to the member.
class BoundsCheck {
 public:
  explicit BoundsCheck(JsonErrors& errors) : errors_(errors) {}

  void text(std::initializer_list<std::string_view> path, std::string_view text, std::size_t least, std::size_t most) {
    if (text.size() < least || text.size() > most) {
      wrong(path, text, fmt::format("{} to {} bytes", least, most));
    } else if (!is_utf8(text)) {
      wrong(path, text, "UTF-8");
    }
  }
  void whole(std::string_view member, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
    if (value >= least && value <= most) return;
    wrong({member}, fmt::to_string(value), fmt::format("a whole number, {} to {}", least, most));
  }
  void wrong(std::initializer_list<std::string_view> path, std::string_view value, std::string_view why) {
    JsonPath where;
    for (const std::string_view name : path) where.emplace_back(std::string(name));
    errors_.add(std::move(where), in_quotes(value), why);
  }

 private:
  JsonErrors& errors_;
};

void check_members(const Schedule& schedule, JsonErrors& errors) {
  const JobTemplate& job = schedule.job;
  BoundsCheck check(errors);
  check.text({"name"}, schedule.name, 1, Schedule::kMostNameBytes);
  check.text({"job", "queue"}, job.queue, 1, kMostWordBytes);
  check.text({"job", "function"}, job.function, 0, kMostWordBytes);
  check.text({"job", "key"}, job.key, 0, kMostWordBytes);
  check.text({"job", "payload"}, job.payload, 0, Schedule::kMostPayloadBytes);
  if (schedule.misfire_grace && *schedule.misfire_grace < kLeastGrace) {
    check.wrong({"misfire_grace"}, fmt::format("{} ns", schedule.misfire_grace->count()), "at least 1 ms");
  }
  check.whole("most_catch_up", schedule.most_catch_up, 1, Schedule::kMostCatchUp);
  check.whole("max_instances", schedule.max_instances, 1, Schedule::kMostInstances);
  check.whole("max_runs", schedule.max_runs, 0, kMostWhole);
  const auto start = schedule.trigger.start(), end = schedule.trigger.end();
  if (start && end && *end < *start) {
    check.wrong({"trigger", "end"}, format_timestamp(*end),
                fmt::format("not before the start, {}", format_timestamp(*start)));
  }
}

}  // namespace

namespace detail {

void write_definition(JsonWriter& out, const Schedule& schedule) {
  const Schedule usual{.name = {}, .trigger = schedule.trigger};
  out.object("job", [&] { write_job(out, schedule.job); });
  if (schedule.misfire_grace) out.member("misfire_grace", format_duration(*schedule.misfire_grace));
  if (schedule.coalesce != usual.coalesce) out.member("coalesce", to_string(schedule.coalesce));
  if (schedule.most_catch_up != usual.most_catch_up) out.member("most_catch_up", schedule.most_catch_up);
  if (schedule.max_instances != usual.max_instances) out.member("max_instances", schedule.max_instances);
  if (schedule.overlap != usual.overlap) out.member("overlap", to_string(schedule.overlap));
  if (schedule.max_runs != 0) out.member("max_runs", schedule.max_runs);
}

void read_definition(JsonMembers& in, Schedule& into) {
  if (const JsonValue* job = in.find("job")) {
    if (!job->is_object()) return job->complain("an object");
    into.job = read_job(*job, in.nulls());
  }
  in.parsed("misfire_grace", into.misfire_grace, parse_duration);
  in.choice("coalesce", into.coalesce, kCoalesce);
  in.choice("overlap", into.overlap, kOverlap);
  into.most_catch_up =
      static_cast<std::uint32_t>(in.whole("most_catch_up", Schedule::kMostCatchUp, 1, into.most_catch_up));
  into.max_instances =
      static_cast<std::uint32_t>(in.whole("max_instances", Schedule::kMostInstances, 1, into.max_instances));
  into.max_runs = static_cast<std::uint64_t>(in.whole("max_runs", kMostWhole));
}

}  // namespace detail

Result<void> check(const Schedule& schedule) {
  JsonErrors errors;
  check_members(schedule, errors);
  if (errors) return std::unexpected(errors.error());
  return {};
}

Result<void> check(const Schedule& schedule, WallTime now) {
  if (auto good = check(schedule); !good || !schedule.trigger.needs_search()) return good;
  if (const auto undecided = why_undecided(schedule.trigger.search(now))) {
    return fail(Errc::invalid_input, fmt::format("trigger: {}", *undecided));
  }
  return {};
}

std::string to_json(const Schedule& schedule) {
  return json_object(
      [&](JsonWriter& out) {
        out.member("name", schedule.name);
        out.key("trigger");
        out.raw(schedule.trigger.to_json());
        detail::write_definition(out, schedule);
        if (schedule.paused) out.member("paused", true);
      },
      JsonEscapes::letters);
}

Result<Trigger> detail::read_any_trigger(const JsonValue& form) {
  if (form.is_object()) return detail::read_trigger(form);
  const auto text = form.if_text();
  if (!text) {
    form.complain("an object or a string");
  } else if (auto trigger = Trigger::parse(*text)) {
    return trigger;
  } else {
    form.refuse(trigger.error());
  }
  return std::unexpected(form.errors().error());
}

Result<Schedule> detail::read_schedule(const JsonValue& form, JsonMembers::Nulls nulls) {
  JsonErrors& errors = form.errors();
  JsonMembers in(form, nulls);
  std::string name = in.text("name");
  const JsonValue* trigger_form = in.find("trigger");
  if (trigger_form == nullptr) form.refuse("a schedule needs a trigger");
  if (errors) return std::unexpected(errors.error());
  auto trigger = read_any_trigger(*trigger_form);
  if (!trigger) return std::unexpected(std::move(trigger.error()));
  Schedule schedule{.name = std::move(name), .trigger = std::move(*trigger)};
  schedule.paused = in.flag("paused", false);
  read_definition(in, schedule);
  in.finish("a schedule has none");
  check_members(schedule, errors);
  if (errors) return std::unexpected(errors.error());
  return schedule;
}

Result<Schedule> parse_schedule(std::string_view json) {
  const auto text = JsonText::parse_object("schedule", json, kMostJsonBytes);
  if (!text) return std::unexpected(text.error());
  JsonErrors errors;
  return detail::read_schedule(text->root(errors));
}

}  // namespace argiope
