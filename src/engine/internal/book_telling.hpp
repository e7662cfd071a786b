// Reads back the JSON that a book tells: the other direction of its to_json() and write_members(). Mistakes go to the
// value's errors.
#pragma once

#include "argiope/engine/book.hpp"
#include "base/internal/json_reader.hpp"

namespace argiope {

JobExplanation read_job_explanation(const JsonValue& told);

// Without version and texts, and of its place without the number of entries: they are not told.
ScheduleStatus read_schedule_status(const JsonValue& told);
ScheduleRun read_schedule_run(const JsonValue& told);
ScheduleExplanation read_schedule_explanation(const JsonValue& told);

}  // namespace argiope
