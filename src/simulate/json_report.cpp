#include <fmt/format.h>

#include "argiope/time/time_zone.hpp"
#include "base/internal/json_writer.hpp"
#include "simulate/internal/report.hpp"

namespace argiope {
namespace {

void write_time(JsonWriter& out, std::string_view name, const std::optional<WallTime>& time, const TimeZone& zone) {
  out.key(name);
  time ? out.value(format_timestamp(*time, zone)) : out.null();
}

void write_number(JsonWriter& out, std::string_view name, double number) {
  out.key(name);
  out.real(number);
}

void write_text(JsonWriter& out, std::string_view name, std::string_view text) {
  out.key(name);
  text.empty() ? out.null() : out.value(text);
}

void write_lateness(JsonWriter& out, const Lateness& late) {
  const auto milliseconds = [&](std::string_view name, Duration span) {
    write_number(out, name, to_seconds(span) * 1e3);
  };
  out.object("lateness", [&] {
    out.member("count", late.count());
    milliseconds("p50_ms", late.percentile(0.5));
    milliseconds("p95_ms", late.percentile(0.95));
    milliseconds("p99_ms", late.percentile(0.99));
    milliseconds("max_ms", late.max());
  });
}

void write(JsonWriter& out, const ScheduleFindings& schedule) {
  out.member("name", schedule.name);
  out.member("trigger", schedule.trigger);
  out.member("zone", schedule.zone.name());
  out.member("queue", schedule.queue);
  out.member("runs", schedule.runs);
  out.member("done", schedule.done);
  out.member("failed", schedule.failed);
  out.member("cancelled", schedule.cancelled);
  out.member("retries", schedule.retries);
  out.member("missed", schedule.missed);
  out.member("skipped", schedule.skipped);
  out.member("waiting", schedule.waiting);
  out.member("together", schedule.together);
  out.member("most_running", schedule.most_running);
  out.list("fires", schedule.fires);
  write_time(out, "first", schedule.first, schedule.zone);
  write_time(out, "last", schedule.last, schedule.zone);
  write_time(out, "next", schedule.next, schedule.zone);
  write_text(out, "why", schedule.why);
  write_lateness(out, schedule.lateness);
}

void write_levels(JsonWriter& out, std::string_view name, const std::vector<Level>& levels) {
  out.array(name, [&] {
    for (const Level& level : levels) out.value(level.most);
  });
}

void write(JsonWriter& out, const QueueFindings& queue, const TimeZone& zone) {
  out.member("name", queue.name);
  out.member("configured", queue.configured);
  out.member("workers", queue.workers);
  out.member("put", queue.put);
  out.member("done", queue.done);
  out.member("failed", queue.failed);
  out.member("cancelled", queue.cancelled);
  out.member("retries", queue.retries);
  out.member("refused", queue.refused);
  out.member("most_running", queue.most_running);
  write_number(out, "mean_running", queue.mean_running);
  out.member("most_waiting", queue.most_waiting);
  write_time(out, "most_waiting_at", queue.most_waiting_at, zone);
  out.member("waiting", queue.waiting);
  write_time(out, "empty_at", queue.empty_at, zone);
  out.member("trend", to_string(queue.trend));
  write_number(out, "growth_per_day", queue.growth_per_day);
  write_lateness(out, queue.lateness);
  write_levels(out, "waiting_by_step", queue.depth);
}

void write_peaks(JsonWriter& out, const SimulationReport& report) {
  const auto peak = [&](std::string_view name, const Peak& found) {
    out.object(name, [&] {
      out.member("most", found.most);
      write_time(out, "at", found.at, report.zone);
    });
  };
  peak("running", report.at_once);
  peak("second", report.in_a_second);
  peak("minute", report.in_a_minute);
  peak("hour", report.in_an_hour);
}

void write(JsonWriter& out, const Collision& collision, const SimulationReport& report) {
  out.array("schedules", [&] {
    for (const std::uint32_t schedule : collision.schedules) out.value(report.schedules[schedule].name);
  });
  out.member("seconds", collision.seconds);
  out.member("first", format_timestamp(collision.first, report.zone));
}

std::string local_text(LocalTime local) {
  std::string text = format_timestamp(WallTime{local.time_since_epoch()});
  text.pop_back();  // "Z"
  return text;
}

void write(JsonWriter& out, const DaylightSurprise& surprise) {
  out.member("schedule", surprise.schedule);
  out.member("zone", surprise.zone.name());
  out.member("at", format_timestamp(surprise.change, surprise.zone));
  out.member("kind", surprise.gap ? "gap" : "overlap");
  out.member("times", surprise.times);
  out.member("first", local_text(surprise.first));
  out.member("last", local_text(surprise.last));
  out.member("policy", surprise.policy);
  out.member("effect", surprise.effect);
}

void write_timeline(JsonWriter& out, const SimulationReport& report) {
  const double step = to_seconds(report.step);
  write_number(out, "step_s", step);
  write_number(out, "schedule_step_s", step * static_cast<double>(report.strip_steps));
  out.list("fires", report.fires);
  write_levels(out, "running", report.running);
}

// An array of objects, whose members `write_one` writes.
template <class Range, class WriteOne>
void write_each(JsonWriter& out, std::string_view name, const Range& range, WriteOne write_one) {
  out.array(name, [&] {
    for (const auto& entry : range) out.object([&] { write_one(entry); });
  });
}

void write(JsonWriter& out, const SimulationReport& report) {
  const TimeZone& zone = report.zone;
  out.member("from", format_timestamp(report.from, zone));
  out.member("until", format_timestamp(report.until, zone));
  out.member("zone", zone.name());
  out.member("seed", report.seed);
  write_text(out, "stopped", report.stopped);
  out.member("runs", report.runs);
  out.member("done", report.done);
  out.member("failed", report.failed);
  out.member("cancelled", report.cancelled);
  out.member("retries", report.retries);
  out.member("missed", report.missed);
  out.member("skipped", report.skipped);
  out.object("peaks", [&] { write_peaks(out, report); });
  write_each(out, "schedules", report.schedules, [&](const ScheduleFindings& found) { write(out, found); });
  out.array("never", [&] {
    for (const ScheduleFindings& schedule : report.schedules) {
      if (schedule.runs != 0) continue;
      out.object([&] {
        out.member("name", schedule.name);
        out.member("why", schedule.why);
      });
    }
  });
  write_each(out, "queues", report.queues, [&](const QueueFindings& found) { write(out, found, zone); });
  out.member("seconds_shared", report.seconds_shared);
  write_each(out, "collisions", report.collisions, [&](const Collision& found) { write(out, found, report); });
  write_each(out, "daylight_saving", report.daylight, [&](const DaylightSurprise& found) { write(out, found); });
  out.list("assumed_durations", report.assumed);
  out.object("timeline", [&] { write_timeline(out, report); });
}

}  // namespace

std::string json_report(const SimulationReport& report) {
  return json_object([&](JsonWriter& out) { write(out, report); }, JsonEscapes::letters);
}

}  // namespace argiope
