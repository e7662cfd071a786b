// Shared by the commands on a database of projects: opening it, to look beside its owner or to change it, and telling
// errors.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "project/rules/internal/project_definition.hpp"
#include "project/store/internal/page_store.hpp"

namespace argiope {

// "argiope: MESSAGE" on standard error; the status.
int complain_of_project(const Error& error, int status);

CLI::Option* add_pages_database(CLI::App& command, std::string& database);

// To look; the file must be there.
// Errors: those of open_page_store_to_look(), with the option that is the way out.
Result<std::unique_ptr<PageStore>> look_at_pages(const std::string& database);
// To write, while nobody else does. Errors: those of open_page_store(); busy names the process, and what it can be told
// instead.
Result<std::unique_ptr<PageStore>> own_pages(const std::string& database, const PageStoreOptions& options = {});
// The same to change what is there: no file is made.
Result<std::unique_ptr<PageStore>> change_pages(const std::string& database);

// The process that has the database open to write: "process 4711 (argiope)"; empty: nobody does.
std::string owner_of_pages(const std::string& database);

// Errors: not_found, with a name that is near; those of the store.
enum class Deleted { excluded, included };
Result<ProjectRecord> find_project(PageStore& store, std::string_view name, Deleted deleted = Deleted::excluded);

// The newest version of a project, or one of a number. Errors: not_found; those of the store.
Result<ProjectVersion> version_of(PageStore& store, const ProjectRecord& project, std::int64_t number = 0);
// Errors: invalid_input for what an owner could not run either.
Result<ProjectDefinition> definition_of(const ProjectVersion& version);
// With the status that is stored.
ProjectStatus status_of(const ProjectRecord& project);

// For exit statuses: 2 for what is named wrongly, 3 for the rest.
int status_for(const Error& error);

WallTime calendar_now();

}  // namespace argiope
