#include "project/run/project_turns.hpp"

#include <algorithm>

namespace argiope {

void ProjectTurns::activate(LiveProject& project) {
  if (project.is_active || project.is_gone) return;
  if (project.wakes_at != kNever) {
    waking_.erase({project.wakes_at, project.record.id});
    project.wakes_at = kNever;
  }
  const auto found = core_.by_id.find(project.record.id);
  if (found == core_.by_id.end()) return;
  project.is_active = true;
  if (project.turns == 0) {
    project.turn = ++last_turn_;
    project.turns = project.definition.weight;
  }
  active_.emplace(project.turn, found->second);
  core_.soon();
}

void ProjectTurns::wake_later(LiveProject& project, TimePoint at) {
  if (at == kNever || project.is_active || at >= project.wakes_at) return;
  if (project.wakes_at != kNever) waking_.erase({project.wakes_at, project.record.id});
  project.wakes_at = at;
  waking_.emplace(at, project.record.id);
}

void ProjectTurns::wake_due(TimePoint now) {
  while (!waking_.empty() && waking_.begin()->first <= now) {
    const auto found = core_.by_id.find(waking_.begin()->second);
    waking_.erase(waking_.begin());
    if (found == core_.by_id.end()) continue;
    found->second->wakes_at = kNever;
    activate(*found->second);
  }
}

// Projects take turns: as many visits as their weight in a row. A project that has nothing to visit meanwhile, or whose
// host has to wait, keeps its place, so that it goes before the others then.
void ProjectTurns::take_turn(LiveProject& project) {
  if (project.turns > 1) {
    --project.turns;
    return;
  }
  project.turn = ++last_turn_;
  project.turns = project.definition.weight;
}

void ProjectTurns::give_back_turn(LiveProject& project) {
  project.turns = std::min(project.turns + 1, 2 * project.definition.weight);
}

void ProjectTurns::wake_blocked() {
  for (const SharedProject& blocked : std::exchange(blocked_, {})) {
    if (!blocked->is_gone) activate(*blocked);
  }
}

void ProjectTurns::wait_for_host(const LiveProject& project, std::uint32_t host) {
  std::vector<ProjectId>& waiting = waiting_for_[host];
  if (std::ranges::find(waiting, project.record.id) == waiting.end()) waiting.push_back(project.record.id);
}

void ProjectTurns::wake_for_host(std::uint32_t host) {
  const auto found = waiting_for_.find(host);
  if (found == waiting_for_.end()) return;
  const auto waiting = std::exchange(found->second, {});
  waiting_for_.erase(found);
  for (const ProjectId id : waiting) {
    const auto project = core_.by_id.find(id);
    if (project == core_.by_id.end()) continue;
    project->second->frontier->wake(host, core_.loop->time());
    activate(*project->second);
  }
}

void ProjectTurns::forget(const LiveProject& project) {
  if (project.wakes_at != kNever) waking_.erase({project.wakes_at, project.record.id});
}

}  // namespace argiope
