// The parts of a schedule's JSON form that the file of a store and the face to the outside share.
#pragma once

#include "argiope/jobs/schedule.hpp"
#include "base/internal/json_members.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope::detail {

// All but name, trigger and whether it is paused.
void write_definition(JsonWriter& out, const Schedule& schedule);
void read_definition(JsonMembers& in, Schedule& into);
// As parse_schedule; what is wrong is among the form's errors. `nulls`: of its members and of those of its job.
Result<Schedule> read_schedule(const JsonValue& form, JsonMembers::Nulls nulls = JsonMembers::Nulls::are_values);

// A trigger as a schedule may have it: an object, or a string as Trigger::parse takes it.
Result<Trigger> read_any_trigger(const JsonValue& form);

}  // namespace argiope::detail
