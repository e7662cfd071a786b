// A round as JSON: what the API, its events and `argiope project status --json` say of one.
#pragma once

#include "base/internal/json_writer.hpp"
#include "project/store/internal/page_store.hpp"

namespace argiope {

// As members of the object that is open.
void write_round(JsonWriter& json, const RoundRecord& round);

}  // namespace argiope
