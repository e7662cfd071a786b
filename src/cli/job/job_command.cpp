// `argiope job`: its subcommands, one file each or a few.
#include "cli/job/job_command.hpp"

#include <utility>

#include "cli/subcommands.hpp"

namespace argiope {

std::function<int()> add_job_command(CLI::App& app, const std::vector<std::string>& command) {
  CLI::App* job = app.add_subcommand(
      "job",
      "Durable jobs: put them, run commands for them, see why they wait. They are kept in a file, and\n"
      "an acknowledged job is never lost.");
  job->require_subcommand(1);
  job->footer(
      "Try:\n"
      "  export ARGIOPE_STORE=sqlite:jobs.db\n"
      "  argiope job put mail 'hello'\n"
      "  argiope job work mail --until-empty -- cat\n"
      "  argiope job stats\n"
      "Exit status: 0 done, 1 jobs were buried (work --fail-on-buried), 2 bad usage, 3 the store cannot be used,\n"
      "130 interrupted.");
  Subcommands commands(*job);
  for (JobSubcommand* const subcommand :
       {&add_job_put, &add_job_list, &add_job_show, &add_job_stats, &add_job_output, &add_job_explain, &add_job_cancel,
        &add_job_kick, &add_job_retry, &add_job_delete, &add_job_queue}) {
    commands.add(subcommand(*job));
  }
  commands.add(add_job_work(*job, command));
  return [commands = std::move(commands)] { return commands.run(); };
}

}  // namespace argiope
