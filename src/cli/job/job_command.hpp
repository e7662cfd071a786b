// The subcommands of `argiope job`.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "cli/job_store.hpp"

namespace argiope {

// "argiope job NAME": registers it, and says how to run it.
using JobSubcommand = std::function<int()>(CLI::App& job);
JobSubcommand add_job_put, add_job_list, add_job_show, add_job_stats, add_job_output, add_job_explain, add_job_cancel,
    add_job_kick, add_job_retry, add_job_delete, add_job_queue;
// `command`: what comes after "--".
std::function<int()> add_job_work(CLI::App& job, const std::vector<std::string>& command);

// `argiope job explain` for one job; also a half of `argiope explain`.
int explain_job(const JobStoreArguments& arguments, const std::vector<std::string>& jobs);

}  // namespace argiope
