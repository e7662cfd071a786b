// The shared part of the handlers of projects.
#pragma once

#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "serve/api/api_state.hpp"
#include "serve/base/internal/daemon_projects.hpp"

namespace argiope {

// A project that a request's path names.
struct NamedProject {
  DaemonProjects& of;
  ProjectStatusNow now;
};

// Errors: not_found where the daemon has no projects at all.
Result<DaemonProjects*> projects_of(ApiState& api, ApiCall& call);
// Errors: also not_found for a name that no project has, and forbidden for one that the caller may not use.
Result<NamedProject> project_in_path(ApiState& api, ApiCall& call);
// Suspends: until the store has committed what was submitted to it. Errors: the store's, when it has failed.
Coro<Result<void>> committed(PageStore& store);
// POST /v1/projects/try.
ApiRoute project_try_route();
// Of a span, for members whose names end in _ms.
double milliseconds_of(Duration span) noexcept;

}  // namespace argiope
