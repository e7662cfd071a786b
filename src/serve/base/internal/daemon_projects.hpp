// DaemonProjects: the projects of a daemon, as its API reaches them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"
#include "project/run/internal/page_engine.hpp"
#include "project/store/internal/page_store.hpp"

namespace argiope {

// Lifetime: engine and store outlive who has it.
// Threads:  the loop's own.
struct DaemonProjects {
  PageEngine& engine;
  PageStore& store;
  // Whether the configuration names the project's file, which then decides what it is.
  std::function<bool(std::string_view name)> is_locked;
  // Reads a project's file in TOML, which came by the API. Errors: invalid_input with its line, too_large.
  std::function<Result<PageEngine::Draft>(const std::string& source)> read_source;
  // Puts a script that came by the API where the project's processor finds it. Errors: invalid_input where the
  // processor names no file of its own folder; io.
  std::function<Result<void>(const ProjectDefinition& project, const std::string& script)> keep_script;
  // Makes the reader of pages by a script that is tried, in a folder of its own which goes with it. An empty script:
  // by the one that the project of that name has, if there is one.
  // Errors: as keep_script's, and what keeps the script from being confined.
  std::function<Result<std::unique_ptr<Processor>>(const ProjectDefinition& project, const std::string& script,
                                                   ProcessorWatch watch)>
      try_script;
  // Why its pages are visited no more. Empty, or nullopt: they are.
  std::function<std::optional<Error>()> failure;
  // The daemon's to set: told of each round that has ended.
  std::function<void(const std::string& project, const RoundRecord& round, const std::vector<std::string>& alarms)>
      on_round_end = {};
  // The daemon's to set: as PageEngineOptions::may_send has it, of scripts that came by the API.
  std::function<bool(std::string_view from, std::string_view to)> may_send = {};
};

// Whether a project does not go on though its status says that it should: it has paused, or its script cannot run.
inline bool is_halted(const ProjectStatusNow& status) noexcept {
  using enum ProjectStatusNow::Doing;
  // One that stands without trouble is starting: its script has not yet said what it is.
  return (status.doing == standing && !status.trouble.empty()) || status.doing == paused || status.doing == probing;
}

}  // namespace argiope
