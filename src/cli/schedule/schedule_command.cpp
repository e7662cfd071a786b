// `argiope schedule`: its subcommands, one file each or a few, and what they share.
#include "cli/schedule/schedule_command.hpp"

#include <fmt/format.h>

#include <utility>

#include "calls/internal/call_functions.hpp"
#include "cli/subcommands.hpp"

namespace argiope {

Result<void> check_call(const JobTemplate& job) {
  return job.queue == kScheduleExecutor ? check_call(job.function, job.payload) : Result<void>{};
}

std::function<int()> add_schedule_command(CLI::App& app, const std::vector<std::string>& command) {
  CLI::App* schedule = app.add_subcommand(
      "schedule", "Durable schedules: run commands, HTTP calls and jobs at their times; each planned time fires once.");
  schedule->require_subcommand(1);
  schedule->footer(
      "Try:\n"
      "  export ARGIOPE_STORE=sqlite:jobs.db\n"
      "  argiope schedule add backup --cron '30 3 * * *' --zone Europe/Berlin -- ./backup --all\n"
      "  argiope schedule add ping --every 90s --http GET https://example.org/ping\n"
      "  argiope schedule run            # and in another terminal:\n"
      "  argiope schedule list\n"
      "  argiope explain backup\n"
      "Exit status: 0 done, 1 runs have failed (run --fail-on-failed), 2 bad usage, 3 the store cannot be used,\n"
      "130 interrupted.");
  Subcommands commands(*schedule);
  commands.add(add_schedule_add(*schedule, command));
  for (ScheduleSubcommand* const subcommand :
       {&add_schedule_list, &add_schedule_show, &add_schedule_history, &add_schedule_output, &add_schedule_explain,
        &add_schedule_pause, &add_schedule_resume, &add_schedule_remove, &add_schedule_run_now, &add_schedule_export,
        &add_schedule_import}) {
    commands.add(subcommand(*schedule));
  }
  commands.add(add_schedule_run(*schedule, command));
  return [commands = std::move(commands)] { return commands.run(); };
}

}  // namespace argiope
