// The parts of a schedule's JSON form that the file of a store and the face to the outside share.
#pragma once

#include <boost/json/object.hpp>
#include <string_view>

#include "argiope/schedule/schedule.hpp"
#include "schedule/json_reader.hpp"

namespace argiope::detail {

// All but name, trigger and whether it is paused.
boost::json::object form_of_definition(const Schedule& schedule);
Result<void> read_definition(Reader& in, Schedule& into, MemberPath& where);
// As Trigger::from_json and parse_schedule, and `where` is the member that is wrong.
Result<Trigger> read_trigger(const boost::json::object& form, MemberPath& where);
Result<Schedule> read_schedule(const boost::json::object& form, MemberPath& where);

// `what` is for the message.
Result<boost::json::object> read_object(std::string_view what, std::string_view text, std::size_t most_bytes);

}  // namespace argiope::detail
