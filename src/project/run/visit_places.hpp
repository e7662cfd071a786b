// VisitPlaces: how many visits may be under way, and their memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "project/run/page_visit.hpp"
#include "project/run/project_turns.hpp"
#include "project/run/row_desk.hpp"

namespace argiope {

class VisitPlaces final : public PageEnginePart {
 public:
  VisitPlaces(PageEngineCore& core, ProjectTurns& turns, const RowDesk& rows)
      : PageEnginePart(core), turns_(turns), rows_(rows) {}

  // A visit has its place until what came of it is in the store: so no more than these are repeated when the process
  // dies. Commits wait for more while enough places are left for what ends during one.
  bool has_one();
  // However many visits hang, some places are left for projects that have fewer: each takes at most three times its
  // weight of what is free, and none the last ones. So among projects that have enough to do, places are as their
  // weights.
  std::size_t most_of(const LiveProject& project) const;

  PageVisit& enter(PageVisit visit);
  // `visit` is over.
  void leave(PageVisit& visit);
  void cancel_all();
  std::size_t under_way() const noexcept { return under_way_; }

  // A visit has ended, and its outcome was submitted.
  void note_outcome() noexcept { ++uncommitted_; }
  void note_commits();
  bool waits_for_commit() const noexcept { return visit_flush_.has_value(); }

 private:
  // Visits under way, about to begin, or whose outcome may not be in the store yet.
  std::size_t taken() const noexcept { return under_way_ + rows_.wanted() + uncommitted_; }

  ProjectTurns& turns_;
  const RowDesk& rows_;
  std::size_t under_way_ = 0;
  // Visits that have ended and whose outcome the store may not have written yet; of them those that are written once
  // the flush is.
  std::size_t uncommitted_ = 0, flushing_ = 0;
  std::optional<std::uint64_t> visit_flush_;
  std::vector<std::unique_ptr<PageVisit>> visit_room_;
  std::vector<PageVisit*> idle_visits_;
};

}  // namespace argiope
