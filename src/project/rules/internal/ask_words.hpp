// The outcome of an ask, in words.
#pragma once

#include <string>

#include "project/rules/internal/decide_ask.hpp"
#include "project/rules/internal/project_map.hpp"

namespace argiope {

// "new", "visited again: older than its age", "fresh until 2026-11-24T10:00:00Z", "no rule matches it".
std::string in_words(const AskDecision& decision);
std::string in_words(ProjectMap::Place place);

}  // namespace argiope
