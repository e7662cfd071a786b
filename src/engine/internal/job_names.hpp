// Jobs that name others by their names and not by their ids.
#pragma once

#include "argiope/engine/book.hpp"
#include "jobs/internal/job_json.hpp"

namespace argiope {

// Looks up what `names` says of `job`, and fills in its `waits_for` and `batch`.
// Errors: not_found for a name that is not there, or out of NewJob::within; those of the store. They name the member.
Coro<Result<void>> find_names(Book& book, JobNames names, NewJob& job);

}  // namespace argiope
