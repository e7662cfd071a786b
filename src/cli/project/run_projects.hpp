// Projects that `argiope project run` or `argiope serve` runs: what their files say, and where those are.
#pragma once

#include <string>
#include <vector>

#include "argiope/base/error.hpp"
#include "base/internal/file_reading.hpp"
#include "cli/command_files.hpp"
#include "project/run/internal/page_engine.hpp"
#include "project/store/internal/page_store.hpp"

namespace argiope {

struct RunProject {
  std::string name;
  std::string folder;  // absolute: what relative names in its file count from
  ProjectDefinition definition;
  std::optional<PageEngine::Draft> draft;  // nullopt: it goes on as it is stored
};

// Of a script's file, where that is text and can be read, up to 16 MiB: what versions keep of it.
std::optional<std::string> text_of_script(const std::string& path);
// The text of the first file that the project's processor names, of those that are text. Empty: there is none.
std::string script_of(const ProjectDefinition& definition, const std::string& folder);

// Errors: those of read_project_source(), invalid_input for two files of one project, and refused for a script that is
// a pipe.
Result<std::vector<RunProject>> read_run_projects(const std::vector<std::string>& files,
                                                  FileReading reading = FileReading::first);
// Their scripts, secrets and the files that their results go to.
void name_project_files(const std::vector<RunProject>& projects, CommandFiles& files);
// The database's projects, in our own folder. Errors: not_found where there is none; those of the store.
Result<std::vector<RunProject>> stored_run_projects(PageStore& store);

}  // namespace argiope
