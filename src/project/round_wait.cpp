#include "project/internal/round_wait.hpp"

namespace argiope {

RoundWait look_at_round(const PageEngine& engine, std::string_view project, WallTime limit) {
  using enum ProjectStatusNow::Doing;
  const auto status = engine.project(project);
  if (!status) return RoundWait::over;
  if (status->doing == stopped) return RoundWait::stuck;
  if (status->doing == standing) return status->trouble.empty() ? RoundWait::goes_on : RoundWait::stuck;
  if (!status->round) return RoundWait::over;
  if (status->under_way > 0 || status->doing == visiting) return RoundWait::goes_on;
  if (status->doing == paused) return status->until && *status->until > limit ? RoundWait::stuck : RoundWait::goes_on;
  const auto due = engine.round_due(project);
  return due && *due > limit ? RoundWait::stuck : RoundWait::goes_on;
}

}  // namespace argiope
