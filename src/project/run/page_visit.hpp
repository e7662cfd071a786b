// One visit of a page: what is known of it from its beginning to its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "argiope/async/event_loop.hpp"
#include "argiope/base/clock.hpp"
#include "project/index/internal/page_frontier.hpp"
#include "project/run/live_project.hpp"

namespace argiope {

struct PageVisit {
  // Ends it, whether or not it has begun.
  void cancel() {
    if (is_over || !project) return;
    is_cancelled = true;
    if (has_begun && task && !task.done()) task.cancel();
  }

  SharedProject project;
  PageFrontier::Ticket ticket;
  PageRecord record;
  KnownPage before;  // as it was taken
  RuleNumber rule = 0;
  std::uint32_t host = 0;  // 0: nobody is asked
  std::optional<VisitPass> pass;
  PageSettings settings;
  std::int64_t round = 0;  // to which what it asks for belongs
  TimePoint began{}, fetched{}, read{};
  std::uint64_t digest = 0;   // of its body; 0: none
  bool has_begun = false;     // a task that is cancelled before never runs
  bool is_cancelled = false;  // by the engine
  bool is_over = false;
  std::shared_ptr<RuleReaders> readers;  // of the project's rules as they were
  std::size_t place = 0;                 // among those, of its rule
  Task<void> task;
};

}  // namespace argiope
