// A queue's configuration as JSON, for callers that tell more of an error than a sentence.
#pragma once

#include <string_view>

#include "argiope/jobs/job_queue.hpp"
#include "base/internal/json_reader.hpp"

namespace argiope::detail {

// As parse_queue_config. Where it fails, `errors` has the path to the member that is wrong, and what would be right.
Result<QueueConfig> read_queue_config(std::string_view text, const QueueConfig& base, JsonErrors& errors);
// The same of a value that is read already; what is wrong is among its errors.
Result<QueueConfig> read_queue_config(const JsonValue& form, const QueueConfig& base);

}  // namespace argiope::detail
