#include "engine/internal/schedule_status_json.hpp"

#include "argiope/time/timestamp.hpp"

namespace argiope {
namespace {

std::optional<WallTime> time_or_none(WallTime time) {
  return time == WallTime{} || time == WallTime::max() ? std::nullopt : std::optional(time);
}

}  // namespace

void write_members(JsonWriter& out, const ScheduleStatus& status) {
  const TimeZone zone = status.schedule ? status.schedule->trigger.zone() : TimeZone{};
  const auto time = [&](std::string_view name, WallTime when) {
    out.key(name);
    when == WallTime{} || when == WallTime::max() ? out.null() : out.value(format_timestamp(when, zone));
  };
  out.member("name", status.name);
  out.member("id", status.id);
  time("next", status.place.next);
  time("last", status.place.last);
  out.member("runs", status.place.fired);
  out.member("missed", status.place.missed);
  out.member("active", status.active);
  out.member("paused", status.place.paused);
  if (status.place.paused) {
    out.key("paused_by");
    status.paused_by.empty() ? out.null() : out.value(status.paused_by);
    time("paused_at", status.paused_at);
  }
  if (status.schedule) {
    out.key("schedule");
    out.raw(to_json(*status.schedule));
  } else {
    out.member("trouble", status.trouble);
  }
}

void write_members(JsonWriter& out, const ScheduleRun& run) {
  const bool fired = time_or_none(run.fired_at) && run.job != 0;
  const auto lateness = std::chrono::floor<std::chrono::milliseconds>(run.fired_at - run.planned).count();
  out.member("run", run.number);
  out.member("planned", time_or_none(run.planned));
  out.member("last_planned", time_or_none(run.last_planned));
  out.member("count", run.count);
  out.member("outcome", to_string(run.outcome));
  out.member("fired_at", time_or_none(run.fired_at));
  out.member("ended_at", time_or_none(run.ended_at));
  out.member("lateness_ms", fired ? std::optional(lateness) : std::nullopt);
  out.member("job", run.job != 0 ? std::optional(run.job) : std::nullopt);
  out.member("error", run.error);
}

void write_members(JsonWriter& out, const ScheduleOutput& output) {
  out.member("run", output.run);
  out.member("job", output.job);
  out.member("outcome", to_string(output.outcome));
  out.member("ended_at", time_or_none(output.ended_at));
  out.member("error", output.error);
  out.bytes("output", output.output);
}

std::string to_json(const ScheduleStatus& status) {
  return json_object([&](JsonWriter& out) { write_members(out, status); }, JsonEscapes::letters);
}

}  // namespace argiope
