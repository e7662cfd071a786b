// Shared by the commands that run a daemon, `argiope serve` and `argiope beanstalkd`: its life from start to stop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/web/detail/tls.hpp"
#include "cli/project/run_arguments.hpp"
#include "cli/project/run_projects.hpp"
#include "config/internal/configuration.hpp"
#include "serve/gate/internal/token_file.hpp"

namespace argiope {

struct DaemonSettings {
  Configuration configuration;
  std::vector<Token> tokens;
  std::shared_ptr<TlsIdentity> tls;  // null: TLS is not spoken
  std::vector<RunProject> projects;  // those that the configuration names, as their files are
  ProjectRunArguments visits;        // how pages of projects are visited
};

struct DaemonRunOptions {
  // Reads the settings again when SIGHUP comes. Empty: there is nothing to read.
  std::function<Result<DaemonSettings>()> read_again;
  // Logged once it listens.
  std::vector<std::string> notes;
  // The protocol of the sockets that a supervisor hands over, "http" or "beanstalkd". Empty: their names say it.
  std::string inherited_speak;
  bool stands_by = false;      // for as long as another process owns the store
  bool allow_private = false;  // requests of schedules and queues may connect to private addresses
  std::string user_agent = "argiope";
  std::string ca_file;
};

// Runs a daemon until a signal ends it, or its store cannot be written any more; says what went wrong. SIGTERM and
// SIGINT stop it, and a second one hurries it; SIGHUP reads the settings again; SIGUSR1 refuses puts by the beanstalkd
// protocol. The exit status.
int run_daemon(DaemonSettings settings, const DaemonRunOptions& options);

}  // namespace argiope
