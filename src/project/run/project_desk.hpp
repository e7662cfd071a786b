// ProjectDesk: projects come from the store and from their owners, change, go, and come back.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "project/run/processor_desk.hpp"
#include "project/run/sink_desk.hpp"

namespace argiope {

class ProjectDesk final : public PageEnginePart {
 public:
  ProjectDesk(PageEngineCore& core, ProjectTurns& turns, RowDesk& rows, RoundDesk& rounds, StartDesk& starts,
              ProcessorDesk& processors, SinkDesk& sinks)
      : PageEnginePart(core),
        turns_(turns),
        rows_(rows),
        rounds_(rounds),
        starts_(starts),
        processors_(processors),
        sinks_(sinks) {}

  Result<void> take_up(std::vector<ProjectRecord> records, WallTime now);
  // From now on its pages are visited.
  void begin(LiveProject& project);

  Result<ProjectId> put(PageEngine::Draft draft);
  Result<void> change(std::string_view name, const std::function<void(LiveProject&)>& change);
  Result<void> remove(std::string_view name);
  Result<void> restore(std::string_view name);
  // Those that were removed 24 h ago.
  void forget_deleted(PageBatch& batch);

 private:
  Result<void> open(ProjectRecord record, WallTime now);
  Result<void> load_pages(LiveProject& project, WallTime now);
  Result<void> load_rounds(LiveProject& project);
  void set_limits(LiveProject& project);
  void make_frontier(LiveProject& project);

  ProjectTurns& turns_;
  RowDesk& rows_;
  RoundDesk& rounds_;
  StartDesk& starts_;
  ProcessorDesk& processors_;
  SinkDesk& sinks_;
  std::map<std::string, ProjectRecord, std::less<>> deleted_;
  std::set<std::string, std::less<>> resting_;  // stored, and not wanted
};

}  // namespace argiope
