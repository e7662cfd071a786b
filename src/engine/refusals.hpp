// Errors that the owner of queues and its guests give in the same words.
#pragma once

#include <fmt/format.h>

#include <expected>
#include <string_view>

#include "argiope/base/error.hpp"
#include "argiope/jobs/detail/job_table.hpp"
#include "argiope/jobs/job_record.hpp"
#include "base/internal/printable.hpp"

namespace argiope {

inline std::unexpected<Error> no_such_queue(std::string_view name) {
  return fail(Errc::not_found, fmt::format("queue {}: there is no such queue", in_quotes(name)));
}

inline Result<void> check_queue_name(std::string_view name) {
  if (name.empty()) return fail(Errc::invalid_input, "a job needs the name of a queue");
  if (name.size() <= kMostNameBytes) return {};
  return fail(Errc::invalid_input, fmt::format("the name of a queue is longer than {} bytes", kMostNameBytes));
}

inline std::unexpected<Error> no_such_job(JobId id) {
  return fail(Errc::not_found, fmt::format("job {}: there is no such job", id));
}

}  // namespace argiope
