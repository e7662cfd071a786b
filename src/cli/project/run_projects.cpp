#include "cli/project/run_projects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/internal/printable.hpp"
#include "cli/project/project_database.hpp"
#include "config/internal/project_file.hpp"
#include "project/internal/sandbox.hpp"

namespace argiope {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMostScriptBytes = 16 * 1024 * 1024;

// Whether it begins as no text does: a program such as /usr/bin/python3, before the script that it runs.
bool is_binary(std::ifstream& file) {
  char start[1024];
  file.read(start, sizeof start);
  const bool has_null = std::string_view(start, static_cast<std::size_t>(file.gcount())).contains('\0');
  file.clear();
  file.seekg(0);
  return has_null;
}

std::string absolute_folder(const std::string& file) {
  std::error_code ignored;
  const fs::path path = fs::absolute(file, ignored).parent_path();
  return ignored ? std::string{} : path.lexically_normal().string();
}

}  // namespace

std::optional<std::string> text_of_script(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || is_binary(file)) return std::nullopt;
  std::error_code ignored;
  if (fs::file_size(path, ignored) > kMostScriptBytes) return std::string{};
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string script_of(const ProjectDefinition& definition, const std::string& folder) {
  if (definition.processor.command.empty()) return {};
  for (const std::string& path : files_of_command(definition.processor.command, folder)) {
    if (auto text = text_of_script(path)) return std::move(*text);
  }
  return {};
}

Result<std::vector<RunProject>> read_run_projects(const std::vector<std::string>& files) {
  std::vector<RunProject> projects;
  for (const std::string& file : files) {
    auto source = read_project_source(file);
    if (!source) return std::unexpected(std::move(source.error()));
    const std::string& name = source->definition.name;
    if (std::ranges::find(projects, name, &RunProject::name) != projects.end()) {
      return fail(Errc::invalid_input, fmt::format("{}: project {} is in another file already", printable(file), in_quotes(name)));
    }
    RunProject project{.name = name, .folder = absolute_folder(file), .definition = source->definition};
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
    if (!definition) return fail(definition.error().code, fmt::format("project {}: {}", in_quotes(record.name), definition.error().message));
    // A version that was gone back to, or that another folder's file made.
    if (const std::string script = script_of(*definition, absolute_folder(".")); !version->script.empty() && script != version->script) {
      const std::string name = printable(record.name);
      return fail(Errc::invalid_input, fmt::format("project {}: its script here is not that of version {}; argiope project versions {} --show-script {} prints that one, "
                                                   "and with the project's FILE the script here becomes a new version",
                                                   in_quotes(record.name), record.version, name, record.version));
    }
    projects.push_back({.name = record.name, .folder = absolute_folder("."), .definition = std::move(*definition), .draft = std::nullopt});
  }
  if (projects.empty()) return fail(Errc::not_found, "FILE: give a project's file; the database has no projects yet");
  return projects;
}

}  // namespace argiope
