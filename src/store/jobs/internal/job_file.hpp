// A file of jobs and schedules, before it is opened.
#pragma once

#include <string>

#include "argiope/base/error.hpp"

namespace argiope {

// check_sqlite_head() of a store's file.
Result<void> check_job_file(const std::string& path);

}  // namespace argiope
