// RowDesk: the rows of pages that are about to be visited. Those that were made or read lately are remembered; the
// others are read from the store, many at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "project/index/internal/page_frontier.hpp"
#include "project/run/page_engine_core.hpp"

namespace argiope {

class RowDesk final : public PageEnginePart {
 public:
  explicit RowDesk(PageEngineCore& core) : PageEnginePart(core) {}

  // --- in memory
  // A page whose row was made or read lately.
  void remember(PageRecord record);
  std::optional<PageRecord> take_remembered(PageId id);
  // Its row is another now, also than the one that is being read.
  void note_change(PageId id);
  void forget(PageId id) { remembered_.erase(id); }
  void forget_project(ProjectId project);

  // --- in the store
  struct Wanted {
    SharedProject project;
    PageFrontier::Ticket ticket;
  };
  struct Row {
    Wanted wanted;
    std::optional<PageRecord> record;  // nullopt: the store has none
  };
  void want(SharedProject project, PageFrontier::Ticket ticket) { to_read_.push_back({std::move(project), ticket}); }
  std::size_t wanted() const noexcept { return to_read_.size(); }
  // Rows are read together, once all that was submitted before is there. nullopt: it is not yet, or no row is wanted.
  Result<std::optional<std::vector<Row>>> read();

 private:
  std::vector<Wanted> to_read_;
  std::optional<std::uint64_t> read_flush_;
  std::size_t read_count_ = 0;                // of to_read_, those that had been taken when the flush began
  std::unordered_set<PageId> changed_since_;  // the flush began: their rows may be read as they were before
  std::unordered_map<PageId, PageRecord> remembered_;
};

}  // namespace argiope
