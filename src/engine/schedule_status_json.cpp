#include "engine/internal/schedule_status_json.hpp"

#include "argiope/time/timestamp.hpp"

namespace argiope {

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

std::string to_json(const ScheduleStatus& status) {
  return json_object([&](JsonWriter& out) { write_members(out, status); }, JsonEscapes::letters);
}

}  // namespace argiope
