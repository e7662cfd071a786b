// Jobs as people like to read them.
#pragma once

#include <string>
#include <vector>

#include "argiope/jobs/job.hpp"

namespace argiope {

std::vector<std::string> job_heading();
std::vector<std::string> job_row(const JobRecord& record);
std::string job_details(const JobRecord& record, const std::vector<Attempt>& history);
// As to_json(record), with the attempts that failed.
std::string job_details_json(const JobRecord& record, const std::vector<Attempt>& history);

}  // namespace argiope
