// Schedules as people like to read them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/engine/book.hpp"
#include "argiope/time/time_zone.hpp"

namespace argiope {

// "30 3 * * * Europe/Berlin", "every 1h30m", "once", "{…}" of what has no short form.
std::string trigger_summary(const Trigger& trigger);
// The zone its times are shown in.
TimeZone zone_of(const ScheduleStatus& status);

std::vector<std::string> schedule_heading();
std::vector<std::string> schedule_row(const ScheduleStatus& status, const std::optional<ScheduleRun>& last,
                                      WallTime now);
// All that is known of it: `runs` newest first.
std::string schedule_details(const ScheduleStatus& status, const std::vector<ScheduleRun>& runs,
                             const std::vector<WallTime>& upcoming, WallTime now);

std::vector<std::string> run_heading();
std::vector<std::string> run_row(const ScheduleRun& run, const TimeZone& zone);
// `run 7, done 2026-03-29T03:00:04+02:00, job 12`
std::string output_heading(const ScheduleOutput& output, const TimeZone& zone);

// The outcome of an addition: "added", and with the schedule's name as a line of text or JSON.
std::string_view to_string(AddOutcome outcome);
std::string reply_line(const std::string& name, const AddReply& reply);
std::string reply_json(const std::string& name, const AddReply& reply);

}  // namespace argiope
