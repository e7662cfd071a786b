// The parts of a schedule's JSON form that the file of a store and the face to the outside share.
#pragma once

#include <boost/json/object.hpp>

#include "argiope/jobs/schedule.hpp"
#include "base/internal/json_form.hpp"

namespace argiope::detail {

// All but name, trigger and whether it is paused.
boost::json::object form_of_definition(const Schedule& schedule);
Result<void> read_definition(Reader& in, Schedule& into, MemberPath& where);
// As parse_schedule, and `where` is the member that is wrong.
Result<Schedule> read_schedule(const boost::json::object& form, MemberPath& where);

}  // namespace argiope::detail
