// A schedule's status as JSON, for callers that have more members to tell.
#pragma once

#include "argiope/engine/schedule_book.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope {

// The members of to_json(status), into an object that is open.
void write_members(JsonWriter& out, const ScheduleStatus& status);

}  // namespace argiope
