#include "project/run/internal/round_wait.hpp"

#include <algorithm>
#include <limits>

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

bool AfterRounds::has_more_to_do(std::string_view project, WallTime now) const {
  using enum ProjectStatusNow::Doing;
  const auto status = engine_.project(project);
  if (!status || !status->trouble.empty() || status->doing == stopped || status->doing == paused) return false;
  const bool visits = status->under_way > 0 || status->doing == visiting;
  return (visits && now < limit_) || engine_.due_pages(project, limit_, 1) > 0;
}

bool AfterRounds::goes_on(WallTime now) {
  if (now >= limit_ && !last_visit_) {
    last_visit_ = engine_.visits() + engine_.under_way();
    for (const std::string& project : projects_)
      *last_visit_ += engine_.due_pages(project, limit_, std::numeric_limits<std::size_t>::max());
  }
  if (last_visit_ && engine_.visits() >= *last_visit_) return false;
  return std::ranges::any_of(projects_, [&](const std::string& project) { return has_more_to_do(project, now); });
}

}  // namespace argiope
