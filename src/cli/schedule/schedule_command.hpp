// The shared part of the subcommands of `argiope schedule`: which store, how it is opened, how a schedule is looked up.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "argiope/engine/book.hpp"
#include "cli/job_store.hpp"
#include "cli/owner.hpp"

namespace argiope {

// Whether a job of that queue and function has a payload that `argiope schedule run` can run.
// Errors: invalid_input naming the member.
Result<void> check_call(const JobTemplate& job);

// "argiope schedule NAME": registers it, and says how to run it.
using ScheduleSubcommand = std::function<int()>(CLI::App& schedule);
ScheduleSubcommand add_schedule_list, add_schedule_show, add_schedule_history, add_schedule_explain, add_schedule_pause,
    add_schedule_resume, add_schedule_remove, add_schedule_run_now, add_schedule_output, add_schedule_export,
    add_schedule_import;
// `command`: what comes after "--".
std::function<int()> add_schedule_add(CLI::App& schedule, const std::vector<std::string>& command);
std::function<int()> add_schedule_run(CLI::App& schedule, const std::vector<std::string>& command);

// `argiope schedule explain`; also a part of `argiope explain`.
int explain_schedules(const JobStoreArguments& arguments, const std::vector<std::string>& names);

}  // namespace argiope
