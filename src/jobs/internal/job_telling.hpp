// Jobs as JSON between two processes of ours: the other direction of job_json.hpp.
#pragma once

#include <string_view>

#include "argiope/jobs/detail/requests.hpp"
#include "argiope/jobs/job.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope {

// A member that a request reads as bytes: as text, or where it is none as `name`_base64; nothing where there are none.
// (JsonWriter::bytes() is for readers, who may like to see a text either way; a request takes one of the two.)
void write_bytes_once(JsonWriter& json, std::string_view name, std::string_view bytes);
// The members of which parse_new_job() makes the same job; times in whole milliseconds, rounded up. Of a job with a
// number and a name of its own the number is left out.
void write_members(JsonWriter& json, const NewJob& job);

// Reads the job that write_members() has told. It does not tell `token`, `cancel_asked`, `schedule`, `run` and the
// tally. Mistakes go to the value's errors.
JobRecord read_job_record(const JsonValue& told);
// One entry of a history.
Attempt read_attempt(const JsonValue& told);

}  // namespace argiope
