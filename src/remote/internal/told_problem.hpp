// Problems of the API as its clients see them: from RFC 9457 back to an Error.
#pragma once

#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "base/internal/json_reader.hpp"

namespace argiope {

struct ToldProblem {
  std::string type;  // "queue_full", of urn:argiope:problem:queue_full
  // With the code that the daemon's book had, as far as that can be told: what a state, a lock, a full queue or missing
  // rights do not allow is refused. The message is the problem's detail.
  Error error;
};

// Reads the text of write(JsonWriter&, const Problem&). Mistakes go to the value's errors.
ToldProblem read_problem(const JsonValue& told);

}  // namespace argiope
