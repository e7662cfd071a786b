// A trigger's JSON form, for readers of forms that have triggers in them.
#pragma once

#include "argiope/time/trigger.hpp"
#include "base/internal/json_reader.hpp"

namespace argiope::detail {

// As Trigger::from_json; what is wrong is among the form's errors.
Result<Trigger> read_trigger(const JsonValue& form);

}  // namespace argiope::detail
