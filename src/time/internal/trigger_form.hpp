// A trigger's JSON form, for whoever reads forms that have triggers in them.
#pragma once

#include <boost/json/object.hpp>

#include "argiope/time/trigger.hpp"
#include "base/internal/json_form.hpp"

namespace argiope::detail {

// As Trigger::from_json, and `where` is the member that is wrong.
Result<Trigger> read_trigger(const boost::json::object& form, MemberPath& where);

}  // namespace argiope::detail
