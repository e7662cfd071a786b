#include <fmt/format.h>

#include <boost/json.hpp>

#include "argiope/time/timestamp.hpp"
#include "simulate/internal/report.hpp"

namespace argiope {
namespace {

namespace json = boost::json;

json::value time_or_null(const std::optional<WallTime>& time, const TimeZone& zone) {
  return time ? json::value(format_timestamp(*time, zone)) : json::value(nullptr);
}

double milliseconds(Duration span) { return to_seconds(span) * 1e3; }

json::object form_of(const Lateness& late) {
  return {{"count", late.count()},
          {"p50_ms", milliseconds(late.percentile(0.5))},
          {"p99_ms", milliseconds(late.percentile(0.99))},
          {"max_ms", milliseconds(late.max())}};
}

json::object form_of(const ScheduleFindings& schedule) {
  return {{"name", schedule.name},
          {"trigger", schedule.trigger},
          {"zone", schedule.zone.name()},
          {"queue", schedule.queue},
          {"runs", schedule.runs},
          {"done", schedule.done},
          {"failed", schedule.failed},
          {"cancelled", schedule.cancelled},
          {"retries", schedule.retries},
          {"missed", schedule.missed},
          {"skipped", schedule.skipped},
          {"waiting", schedule.waiting},
          {"together", schedule.together},
          {"most_running", schedule.most_running},
          {"fires", json::array(schedule.fires.begin(), schedule.fires.end())},
          {"first", time_or_null(schedule.first, schedule.zone)},
          {"last", time_or_null(schedule.last, schedule.zone)},
          {"next", time_or_null(schedule.next, schedule.zone)},
          {"why", schedule.why.empty() ? json::value(nullptr) : json::value(schedule.why)},
          {"lateness", form_of(schedule.lateness)}};
}

json::object form_of(const QueueFindings& queue, const TimeZone& zone) {
  json::array waiting;
  for (const Level& level : queue.depth) waiting.push_back(level.most);
  return {{"name", queue.name},
          {"configured", queue.configured},
          {"workers", queue.workers},
          {"put", queue.put},
          {"done", queue.done},
          {"failed", queue.failed},
          {"cancelled", queue.cancelled},
          {"retries", queue.retries},
          {"refused", queue.refused},
          {"most_running", queue.most_running},
          {"mean_running", queue.mean_running},
          {"most_waiting", queue.most_waiting},
          {"most_waiting_at", time_or_null(queue.most_waiting_at, zone)},
          {"waiting", queue.waiting},
          {"trend", to_string(queue.trend)},
          {"growth_per_day", queue.growth_per_day},
          {"lateness", form_of(queue.lateness)},
          {"waiting_by_step", std::move(waiting)}};
}

json::object form_of(const Peak& peak, const TimeZone& zone) {
  return {{"most", peak.most}, {"at", time_or_null(peak.at, zone)}};
}

std::string local_text(LocalTime local) {
  std::string text = format_timestamp(WallTime{local.time_since_epoch()});
  text.pop_back();  // "Z"
  return text;
}

}  // namespace

std::string json_report(const SimulationReport& report) {
  const TimeZone& zone = report.zone;
  json::object out{{"from", format_timestamp(report.from, zone)},
                   {"until", format_timestamp(report.until, zone)},
                   {"seed", report.seed},
                   {"stopped", report.stopped.empty() ? json::value(nullptr) : json::value(report.stopped)},
                   {"runs", report.runs},
                   {"done", report.done},
                   {"failed", report.failed},
                   {"cancelled", report.cancelled},
                   {"retries", report.retries},
                   {"missed", report.missed},
                   {"skipped", report.skipped}};
  out["peaks"] = json::object{{"running", form_of(report.at_once, zone)},
                              {"second", form_of(report.in_a_second, zone)},
                              {"minute", form_of(report.in_a_minute, zone)},
                              {"hour", form_of(report.in_an_hour, zone)}};
  json::array schedules, never, queues, collisions, daylight, running, assumed;
  for (const ScheduleFindings& schedule : report.schedules) {
    schedules.push_back(form_of(schedule));
    if (schedule.runs == 0) never.push_back(json::object{{"name", schedule.name}, {"why", schedule.why}});
  }
  for (const QueueFindings& queue : report.queues) queues.push_back(form_of(queue, zone));
  for (const Collision& collision : report.collisions) {
    json::array names;
    for (const std::uint32_t schedule : collision.schedules)
      names.push_back(json::value(report.schedules[schedule].name));
    collisions.push_back(json::object{{"schedules", std::move(names)},
                                      {"seconds", collision.seconds},
                                      {"first", format_timestamp(collision.first, zone)}});
  }
  for (const DaylightSurprise& surprise : report.daylight) {
    daylight.push_back(json::object{{"schedule", surprise.schedule},
                                    {"zone", surprise.zone.name()},
                                    {"at", format_timestamp(surprise.change, surprise.zone)},
                                    {"kind", surprise.gap ? "gap" : "overlap"},
                                    {"times", surprise.times},
                                    {"first", local_text(surprise.first)},
                                    {"last", local_text(surprise.last)},
                                    {"policy", surprise.policy},
                                    {"effect", surprise.effect}});
  }
  for (const Level& level : report.running) running.push_back(level.most);
  for (const std::string& name : report.assumed) assumed.push_back(json::value(name));
  out["schedules"] = std::move(schedules);
  out["never"] = std::move(never);
  out["queues"] = std::move(queues);
  out["seconds_shared"] = report.seconds_shared;
  out["collisions"] = std::move(collisions);
  out["daylight_saving"] = std::move(daylight);
  out["assumed_durations"] = std::move(assumed);
  out["timeline"] = json::object{{"step_s", to_seconds(report.step)},
                                 {"schedule_step_s", to_seconds(report.step) * static_cast<double>(report.strip_steps)},
                                 {"fires", json::array(report.fires.begin(), report.fires.end())},
                                 {"running", std::move(running)}};
  return json::serialize(out);
}

}  // namespace argiope
