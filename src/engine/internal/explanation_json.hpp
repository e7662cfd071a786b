// An explanation as JSON, for callers that have more members to tell.
#pragma once

#include "argiope/engine/book.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope {

// The members of to_json(why), into an object that is open.
void write_members(JsonWriter& json, const JobExplanation& why);

}  // namespace argiope
