#include "cli/schedule/schedule_print.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "argiope/calls/calls.hpp"
#include "argiope/time/time_zone.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "cli/cron_arguments.hpp"
#include "cli/schedule/schedule_command.hpp"
#include "cli/table.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostOfScheduleName = 40;
constexpr std::size_t kMostTrigger = 40;

bool is_time(WallTime time) { return time != WallTime{} && time != WallTime::max(); }

// Whole seconds where there are only such.
std::string span(Duration duration) {
  const auto whole = std::chrono::floor<std::chrono::milliseconds>(duration);
  if (whole <= Duration::zero()) return "0s";
  // Above a minute nobody counts milliseconds.
  return format_duration(whole < std::chrono::minutes{1} ? Duration{whole}
                                                         : Duration{std::chrono::floor<std::chrono::seconds>(whole)});
}

std::string time_text(WallTime time, const TimeZone& zone) {
  return is_time(time) ? format_timestamp(std::chrono::floor<std::chrono::milliseconds>(time), zone) : std::string("-");
}

std::string state_of(const ScheduleStatus& status) {
  if (!status.schedule) return "unreadable";
  if (status.place.paused) {
    return status.paused_by.empty() ? "paused" : "paused by " + one_line(status.paused_by, std::string::npos);
  }
  if (status.active > 0) return status.active == 1 ? "running" : fmt::format("{} running", status.active);
  return status.place.next == WallTime::max() ? "over" : "waiting";
}

std::string times(const ScheduleRun& run, const TimeZone& zone) {
  std::string text = time_text(run.planned, zone);
  if (run.count > 1) text += fmt::format(" to {} ({} times)", time_text(run.last_planned, zone), run.count);
  return text;
}

// As one would type it.
std::string line_of(const std::vector<std::string>& args) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,";
  std::string line;
  for (const std::string& arg : args) {
    if (!line.empty()) line += ' ';
    if (!arg.empty() && arg.find_first_not_of(kPlain) == std::string::npos) {
      line += arg;
      continue;
    }
    line += '\'';
    for (const char c : arg) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace

std::string trigger_summary(const Trigger& trigger) {
  if (const CronExpression* cron = trigger.cron_expression()) {
    return fmt::format("{} {}", cron->text(), trigger.zone().name());
  }
  if (const auto interval = trigger.interval()) return "every " + format_duration(*interval);
  return trigger.date() ? "once" : trigger.to_json();
}

TimeZone zone_of(const ScheduleStatus& status) {
  return status.schedule ? status.schedule->trigger.zone() : TimeZone{};
}

std::vector<std::string> schedule_heading() {
  return {"NAME", "TRIGGER", "NEXT", "", "LAST RUN", "OUTCOME", "RUNS", "MISSED", "STATE"};
}

std::vector<std::string> schedule_row(const ScheduleStatus& status, const std::optional<ScheduleRun>& last,
                                      WallTime now) {
  const TimeZone zone = zone_of(status);
  const WallTime next = status.place.next;
  return {one_line(status.name, kMostOfScheduleName),
          one_line(status.schedule ? trigger_summary(status.schedule->trigger) : status.trigger, kMostTrigger),
          time_text(next, zone),
          is_time(next) ? distance(next - now) : std::string(),
          last ? time_text(last->fired_at, zone) : "-",
          last ? std::string(to_string(last->outcome)) : "-",
          std::to_string(status.place.fired),
          std::to_string(status.place.missed),
          state_of(status)};
}

std::string schedule_details(const ScheduleStatus& status, const std::vector<ScheduleRun>& runs,
                             const std::vector<WallTime>& upcoming, WallTime now) {
  const TimeZone zone = zone_of(status);
  std::string out = fmt::format("schedule {} {}\n", status.id, in_quotes(status.name));
  const auto say = [&](std::string_view what, std::string_view value) {
    if (!value.empty()) out += fmt::format("  {:<14} {}\n", what, one_line(value, kMostOfText));
  };
  std::string state = state_of(status);
  if (status.place.paused && is_time(status.paused_at)) state += " since " + time_text(status.paused_at, zone);
  say("state", state);
  say("trouble", status.trouble);
  if (status.schedule) {
    const Schedule& schedule = *status.schedule;
    say("trigger", schedule.trigger.to_json());
    const JobTemplate& job = schedule.job;
    say("queue", job.queue);
    say("function", job.function);
    say("key", job.key);
    if (const auto call = parse_command_call(job.payload); job.function == kCommandFunction && call) {
      say("command", line_of(call->args));
      if (!call->ok_status.empty()) say("ok status", fmt::format("{}", fmt::join(call->ok_status, ",")));
      say("directory", call->directory.empty() ? "that of argiope schedule run" : call->directory);
    }
    say("payload", job.payload);
    if (job.priority != 0) say("priority", std::to_string(job.priority));
    if (job.max_attempts != 0) say("max attempts", std::to_string(job.max_attempts));
    say("misfire grace",
        schedule.misfire_grace ? format_duration(*schedule.misfire_grace) : "none: however late it is, it is run");
    say("coalesce", schedule.coalesce == Coalesce::all ? fmt::format("all, the latest {}", schedule.most_catch_up)
                                                       : std::string(to_string(schedule.coalesce)));
    say("overlap", fmt::format("{}, beyond {} at once", to_string(schedule.overlap), schedule.max_instances));
    if (schedule.max_runs != 0) say("max runs", std::to_string(schedule.max_runs));
  } else {
    say("trigger", status.trigger);
    say("definition", status.definition);
  }
  say("runs", fmt::format("{}, and {} planned times not run", status.place.fired, status.place.missed));
  if (status.active > 0) say("not ended", std::to_string(status.active));
  say("last planned", is_time(status.place.last) ? time_text(status.place.last, zone) : "");
  for (std::size_t i = 0; i < upcoming.size(); ++i) {
    say(i == 0 ? "next" : "", fmt::format("{}  {}", time_text(upcoming[i], zone), distance(upcoming[i] - now)));
  }
  if (upcoming.empty()) say("next", "none");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const ScheduleRun& run = runs[i];
    std::string text = fmt::format("{}  {}", times(run, zone), to_string(run.outcome));
    if (run.job != 0) text += fmt::format(", job {}", run.job);
    if (!run.error.empty()) text += ": " + run.error;
    say(i == 0 ? "last runs" : "", text);
  }
  return out;
}

std::vector<std::string> run_heading() { return {"RUN", "PLANNED", "LATE", "ENDED AFTER", "OUTCOME", "JOB", "REMARK"}; }

std::vector<std::string> run_row(const ScheduleRun& run, const TimeZone& zone) {
  const bool fired = is_time(run.fired_at) && run.job != 0;
  return {std::to_string(run.number),
          times(run, zone),
          fired ? span(run.fired_at - run.planned) : "-",
          fired && is_time(run.ended_at) ? span(run.ended_at - run.fired_at) : "-",
          std::string(to_string(run.outcome)),
          run.job != 0 ? std::to_string(run.job) : "-",
          one_line(run.error, std::string::npos)};
}

std::string output_heading(const ScheduleOutput& output, const TimeZone& zone) {
  std::string text = fmt::format("run {}, {} {}, job {}", output.run, to_string(output.outcome),
                                 time_text(output.ended_at, zone), output.job);
  if (!output.error.empty()) text += ": " + one_line(output.error, kMostOfText);
  return text;
}

std::string_view to_string(AddOutcome outcome) {
  switch (outcome) {
    case AddOutcome::added: return "added";
    case AddOutcome::replaced: return "replaced";
    case AddOutcome::kept: return "kept";
    case AddOutcome::exists: return "exists";
  }
  return "";
}

std::string reply_json(const std::string& name, const AddReply& reply) {
  return json_object([&](JsonWriter& out) {
           out.member("name", name);
           out.member("id", reply.id);
           out.member("outcome", to_string(reply.outcome));
         }) +
         '\n';
}

std::string reply_line(const std::string& name, const AddReply& reply) {
  return fmt::format("{} {}\n", to_string(reply.outcome), one_line(name, kMostOfName));
}

}  // namespace argiope
