// ProjectTurns: which project visits a page next, which ones wait for a time, for a host or for the end of a visit.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "project/run/page_engine_core.hpp"

namespace argiope {

class ProjectTurns final : public PageEnginePart {
 public:
  explicit ProjectTurns(PageEngineCore& core) : PageEnginePart(core) {}

  // It may have something to visit.
  void activate(LiveProject& project);
  // None may have something to visit.
  bool empty() const noexcept { return active_.empty(); }
  // The project whose turn it is: out of its place until put_back() or block(), or until it is activated again.
  SharedProject take_first() { return std::move(active_.extract(active_.begin()).mapped()); }
  void put_back(const SharedProject& project) { active_.emplace(project->turn, project); }
  // A visit of the project begins.
  void take_turn(LiveProject& project);
  // A page that was read could not begin yet: it will take another turn for that.
  static void give_back_turn(LiveProject& project);

  // --- those that wait
  void wake_later(LiveProject& project, TimePoint at);
  void wake_due(TimePoint now);
  std::optional<TimePoint> next_wake() const {
    return waking_.empty() ? std::nullopt : std::optional(waking_.begin()->first);
  }
  // Until a visit ends.
  void block(SharedProject project) { blocked_.push_back(std::move(project)); }
  void wake_blocked();
  void wait_for_host(const LiveProject& project, std::uint32_t host);
  void wake_for_host(std::uint32_t host);
  // It is removed.
  void forget(const LiveProject& project);

 private:
  std::map<std::uint64_t, SharedProject> active_;  // by turn
  std::uint64_t last_turn_ = 0;
  std::vector<SharedProject> blocked_;
  std::set<std::pair<TimePoint, ProjectId>> waking_;
  std::unordered_map<std::uint32_t, std::vector<ProjectId>> waiting_for_;  // by host
};

}  // namespace argiope
