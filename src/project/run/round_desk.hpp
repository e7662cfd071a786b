// RoundDesk: the rounds of projects, from their first page to their end, and the telling of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "project/run/page_engine_core.hpp"

namespace argiope {

class AskDesk;

class RoundDesk final : public PageEnginePart {
 public:
  RoundDesk(PageEngineCore& core, AskDesk& asks) : PageEnginePart(core), asks_(asks) {}

  // The number of the round under way; of a new one, if there is none.
  std::int64_t begin(LiveProject& project, std::string cause, PageBatch& batch, WallTime now);
  // A page that is not visited any more.
  void leave(LiveProject& project, PageIndex::Number page, PageBatch& batch, WallTime now);
  void end_if_over(LiveProject& project, PageBatch& batch, WallTime now);
  void tell_script(LiveProject& project, PageBatch& batch, WallTime now);

  // Tells the program of those that are in the store.
  void tell_ends();
  // The next flush has all that have ended.
  void begin_flush();
  // Nothing of its rounds is still to be told.
  bool is_told(const LiveProject& project) const;

 private:
  struct EndedRound {
    std::uint64_t flush = 0;
    std::string project;
    RoundRecord round;
    std::vector<std::string> alarms;
  };

  AskDesk& asks_;
  std::vector<EndedRound> ended_rounds_;
};

}  // namespace argiope
