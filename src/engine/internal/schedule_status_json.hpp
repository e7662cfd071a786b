// The members to tell of schedules as JSON, for callers that have more members to tell.
#pragma once

#include "argiope/engine/book.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope {

// The members of to_json(status), into an object that is open.
void write_members(JsonWriter& out, const ScheduleStatus& status);

// The same of to_json(why).
void write_members(JsonWriter& out, const ScheduleExplanation& why);

// "run":7,"planned":…,"last_planned":…,"count":1,"outcome":"done","fired_at":…,"ended_at":…,"lateness_ms":…,"job":…,
// "error":…. Times in UTC; null for what has not been, or is not.
void write_members(JsonWriter& out, const ScheduleRun& run);
// "run":7,"job":12,"outcome":"done","ended_at":…,"error":…,"output":…, and output_base64 when it is not UTF-8.
void write_members(JsonWriter& out, const ScheduleOutput& output);

}  // namespace argiope
