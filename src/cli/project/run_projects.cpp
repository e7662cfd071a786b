#include "cli/project/run_projects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/internal/printable.hpp"
#include "cli/file_kind.hpp"
#include "cli/project/project_database.hpp"
#include "config/internal/project_file.hpp"
#include "project/process/internal/sandbox.hpp"

namespace argiope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostScriptBytes = 16 * 1024 * 1024;

// Whether it begins as no text does: a program such as /usr/bin/python3, before the script that it runs.
bool is_binary(std::string_view text) { return text.substr(0, 1024).contains('\0'); }

// Of the words of a processor's command, one that was a script and is a pipe now. Empty: there is none.
std::string pipe_of_command(const std::vector<std::string>& command, const fs::path& folder) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    std::error_code ignored;
    if (fs::is_fifo(folder / command[i], ignored)) return (folder / command[i]).string();
  }
  return {};
}

std::string absolute_folder(const std::string& file) {
  std::error_code ignored;
  const fs::path path = fs::absolute(file, ignored).parent_path();
  return ignored ? std::string{} : path.lexically_normal().string();
}

}  // namespace

std::optional<std::string> text_of_script(const std::string& path) {
  // Whether it is read at the start or later: no script is run from a pipe.
  auto text = read_file_text(path, kMostScriptBytes, FileReading::again);
  if (!text && text.error().code == Errc::too_large) return std::string{};
  if (!text || is_binary(*text)) return std::nullopt;
  return *std::move(text);
}

std::string script_of(const ProjectDefinition& definition, const std::string& folder) {
  if (definition.processor.command.empty()) return {};
  for (const std::string& path : files_of_command(definition.processor.command, folder)) {
    if (auto text = text_of_script(path)) return std::move(*text);
  }
  return {};
}

Result<std::vector<RunProject>> read_run_projects(const std::vector<std::string>& files, FileReading reading) {
  std::vector<RunProject> projects;
  for (const std::string& file : files) {
    auto source = or_other_kind(read_project_source(file, reading), file, FileKind::project);
    if (!source) return std::unexpected(std::move(source.error()));
    const std::string& name = source->definition.name;
    if (std::ranges::find(projects, name, &RunProject::name) != projects.end()) {
      return fail(Errc::invalid_input,
                  fmt::format("{}: project {} is in another file already", printable(file), in_quotes(name)));
    }
    RunProject project{.name = name, .folder = absolute_folder(file), .definition = source->definition};
    if (const std::string pipe = pipe_of_command(project.definition.processor.command, project.folder); !pipe.empty()) {
      return fail(Errc::refused, fmt::format("{}: processor: {} is not a plain file: it cannot be read again",
                                             printable(file), printable(pipe)));
    }
    std::string script = script_of(project.definition, project.folder);
    project.draft = PageEngine::Draft{.definition = std::move(source->definition),
                                      .text = std::move(source->json),
                                      .source = std::move(source->text),
                                      .script = std::move(script),
                                      .note = "run"};
    projects.push_back(std::move(project));
  }
  return projects;
}

Result<std::vector<RunProject>> stored_run_projects(PageStore& store) {
  auto records = store.projects();
  if (!records) return std::unexpected(std::move(records.error()));
  std::vector<RunProject> projects;
  for (const ProjectRecord& record : *records) {
    if (record.deleted_at) continue;
    const auto version = version_of(store, record);
    if (!version) return std::unexpected(version.error());
    auto definition = definition_of(*version);
    if (!definition)
      return fail(definition.error().code,
                  fmt::format("project {}: {}", in_quotes(record.name), definition.error().message));
    // A version that was gone back to, or that another folder's file made.
    if (const std::string script = script_of(*definition, absolute_folder("."));
        !version->script.empty() && script != version->script) {
      const std::string name = printable(record.name);
      return fail(Errc::invalid_input, fmt::format("project {}: its script here is not that of version {}; argiope "
                                                   "project versions {} --show-script {} prints that one, "
                                                   "and with the project's FILE the script here becomes a new version",
                                                   in_quotes(record.name), record.version, name, record.version));
    }
    projects.push_back({.name = record.name,
                        .folder = absolute_folder("."),
                        .definition = std::move(*definition),
                        .draft = std::nullopt});
  }
  if (projects.empty()) return fail(Errc::not_found, "FILE: give a project's file; the database has no projects yet");
  return projects;
}

void name_project_files(const std::vector<RunProject>& projects, CommandFiles& files) {
  for (const RunProject& project : projects) {
    const auto place = [&](const std::string& file) { return (fs::path(project.folder) / file).string(); };
    const std::string said = fmt::format("project {}: ", in_quotes(project.name));
    if (!project.definition.processor.command.empty()) {
      for (const std::string& script : files_of_command(project.definition.processor.command, project.folder)) {
        files.reads(said + "processor", script);
      }
    }
    for (const ProjectSink& sink : project.definition.sinks) {
      if (!sink.secret_file.empty()) files.reads(said + "secret of a sink", place(sink.secret_file));
      if (sink.kind == ProjectSink::Kind::file) files.keeps(said + "sink", place(sink.target));
    }
  }
}

}  // namespace argiope
