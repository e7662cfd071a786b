// Whether a run that is to end with a project's round waits on, or has waited for all that is to be waited for.
#pragma once

#include <cstdint>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "project/internal/page_engine.hpp"

namespace argiope {

enum class RoundWait : std::uint8_t {
  goes_on,
  over,   // it has no round, or is gone
  stuck,  // it stands still, or all that is left is due after `limit`
};
// Of a project with nothing under way: what waits for its rate or its host goes on, what waits to be tried again may not.
// Cost: that of PageEngine::round_due().
RoundWait look_at_round(const PageEngine& engine, std::string_view project, WallTime limit);

}  // namespace argiope
