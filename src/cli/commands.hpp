// The subcommands: each registers its options with CLI11 and says how to run.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace argiope {

// Exit statuses: a contract that scripts depend on (README, "Exit status").
enum ExitStatus : int {
  kExitFinished = 0,
  kExitBroken = 1,
  kExitUsage = 2,
  kExitNothing = 3,
  kExitHungUp = 129,
  kExitInterrupted = 130,
  kExitNotRead = 141,  // SIGPIPE
};

// Adds the subcommand to `app`; what is returned runs it after parsing and gives the exit status.
std::function<int()> add_crawl_command(CLI::App& app);
std::function<int()> add_serve_command(CLI::App& app);
std::function<int()> add_beanstalkd_command(CLI::App& app);
std::function<int()> add_site_command(CLI::App& app);
std::function<int()> add_project_command(CLI::App& app);
std::function<int()> add_explain_command(CLI::App& app);
// `command`: what comes after "--" on the command line; must outlive what is returned.
std::function<int()> add_job_command(CLI::App& app, const std::vector<std::string>& command);
std::function<int()> add_schedule_command(CLI::App& app, const std::vector<std::string>& command);
std::function<int()> add_next_command(CLI::App& app);
std::function<int()> add_simulate_command(CLI::App& app);
std::function<int()> add_token_command(CLI::App& app);
std::function<int()> add_notify_command(CLI::App& app);

}  // namespace argiope
