// ServedProjects: the projects of a daemon: their engine, its client and its database, from start to stop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/engine/engine.hpp"
#include "argiope/web/http_client.hpp"
#include "cli/project/run_arguments.hpp"
#include "cli/project/run_projects.hpp"
#include "crawl/run/internal/local_wire.hpp"
#include "project/results/internal/result_sinks.hpp"
#include "project/run/internal/page_engine.hpp"
#include "serve/base/internal/daemon_projects.hpp"

namespace argiope {

struct ServedProjectsOptions {
  std::string pages;  // the database
  // As `argiope project run` has them, but for its files and what belongs to one run. Without allow_private private
  // addresses are visited only where a project of the configuration starts at them.
  ProjectRunArguments visits;
  std::vector<std::string> hidden;  // files that scripts must not see, besides the database
};

// Lifetime: what it is given outlives it. stop() it before destroying it.
// Threads:  the loop's own.
class ServedProjects {
 public:
  // Errors: those of the database, naming it.
  static Result<std::unique_ptr<ServedProjects>> open(ServedProjectsOptions options, AsioBackend& backend,
                                                      Engine& jobs);
  ~ServedProjects();

  // Tells of the configuration's projects before apply() puts them: for what the database has of them already. Before
  // begin().
  void expect(const std::vector<RunProject>& projects);
  // Visits from now on. An error that ends that before stop() is failure()'s.
  void begin();
  // The configuration's projects, as read_run_projects() read them: new ones and new versions of them. One that was
  // deleted comes back; one that never ran starts. Those that the configuration named before and names no more go on,
  // and are nobody's but the API's.
  // Errors: what is wrong with one, naming it; those before it are in force then.
  Result<void> apply(std::vector<RunProject> projects);

  // For the API.
  DaemonProjects& for_daemon() noexcept { return *for_daemon_; }

  // Visits under way end within the drain limit, at once after hurry(). Errors: the database's.
  Coro<Result<void>> stop();
  // Begins that, and waits for nothing.
  void stop_soon();
  void hurry();

 private:
  ServedProjects(ServedProjectsOptions options, AsioBackend& backend, Engine& jobs, std::unique_ptr<PageStore> store);
  Result<void> set_up();
  Result<void> apply_one(RunProject project);
  // Where the script of a project that came by the API is, with what else it may read: beside the database.
  std::string own_folder_of(const std::string& project) const;
  // Of projects of the database, at the start: a script there is what the newest version has, whatever was under way
  // when the daemon was killed.
  void keep_scripts_of_versions() const;
  // Where its sinks' files are: of projects that came by the API a folder beside the database, which holds nothing
  // else.
  std::string results_folder_of(const std::string& project) const;
  // Whether a file of the configuration names this processor, with what it may see and whom it may ask.
  bool is_operators(const ProjectDefinition& project) const;
  HttpTransport& webhooks_for(bool is_operators);
  Result<void> keep_script(const ProjectDefinition& project, const std::string& script) const;
  std::string script_now(const ProjectDefinition& project) const;
  std::string scripts_folder() const;
  void forget_tried() const;
  // As the configuration has it where that names this processor, else as one of the API's.
  Result<std::unique_ptr<Processor>> make_processor(const ProjectDefinition& project, bool is_try,
                                                    ProcessorWatch watch);
  Result<std::unique_ptr<Processor>> make_processor_in(const ProjectDefinition& project, const std::string& folder,
                                                       bool is_try, bool is_operators, ProcessorWatch watch);
  Result<std::unique_ptr<Processor>> try_script(const ProjectDefinition& project, const std::string& sent,
                                                ProcessorWatch watch);
  PageEngineOptions engine_options(CrawlOptions hosts);
  Coro<void> visit();

  const ServedProjectsOptions options_;
  AsioBackend& backend_;
  BookJobPutter jobs_;
  std::map<std::string, std::string, std::less<>> folders_;  // of the configuration's, by name
  std::set<std::string, std::less<>> named_;
  std::map<std::string, ProjectProcessor, std::less<>> operators_processors_;  // of the configuration's, by name
  AddressGuard guard_;
  const AddressGuard all_addresses_{true};
  const AddressGuard others_addresses_;  // where webhooks of projects that came by the API may be
  HttpClientOptions http_;
  // Destroyed from the last to the first.
  std::unique_ptr<PageStore> store_;
  std::optional<WireOnLoop> wire_;
  std::optional<WireOnLoop> operators_webhooks_, others_webhooks_;  // once there is one
  std::unique_ptr<PageEngine> engine_;
  std::optional<DaemonProjects> for_daemon_;
  Task<void> visiting_;
  std::optional<Error> failure_;
  std::uint64_t tried_scripts_ = 0;
  bool begun_ = false;
};

}  // namespace argiope
