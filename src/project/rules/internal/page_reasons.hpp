// Why a page is not visited now, as far as the page and its project tell: in a word for programs, and in a sentence for
// people. The answers of a running engine and of its database alone have the same words.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "project/rules/internal/decide_ask.hpp"
#include "project/rules/internal/project_definition.hpp"
#include "project/rules/internal/project_map.hpp"

namespace argiope {

struct PageReason {
  std::string_view reason;  // "not_due"
  std::string words;
  std::optional<WallTime> until{};
};

// The error of a page that is not asked for because of its host's robots.txt.
inline constexpr std::string_view kForbiddenByRobots = "robots.txt forbids it";

// Of one that does not wait. `terms`: on which it would be asked for now; `error`: of its last visit, empty: none.
PageReason why_at_rest(const KnownPage& page, const PageTerms& terms, WallTime now, std::string_view error = {});
// Of one that waits; nullopt: it is due.
std::optional<PageReason> why_not_due(const KnownPage& page, WallTime now, std::string_view error = {});
// Of one that nothing has led to: whether anything may, by the project's rules. Where it is no URL, `url` is nullopt.
PageReason why_unknown(const ProjectDefinition& project, const ProjectMap& map, const std::optional<std::string>& url);

// Of all pages of a project.
PageReason why_stopped(ProjectStatus status);
// It says as well that its processor is missing or refused, as by a sandbox that cannot be had: `trouble` tells.
PageReason why_standing(const std::string& trouble);
PageReason why_paused(std::optional<WallTime> until);
PageReason why_probing(std::optional<WallTime> until);

}  // namespace argiope
