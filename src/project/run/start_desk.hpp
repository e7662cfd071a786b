// StartDesk: starts and ticks of projects, when their times come or when a caller wants one.
#pragma once

#include <string>

#include "project/run/ask_desk.hpp"
#include "project/run/round_desk.hpp"

namespace argiope {

class StartDesk final : public PageEnginePart {
 public:
  StartDesk(PageEngineCore& core, ProjectTurns& turns, AskDesk& asks, RoundDesk& rounds)
      : PageEnginePart(core), turns_(turns), asks_(asks), rounds_(rounds) {}

  Result<void> start(LiveProject& project, std::string cause);
  // The start that had to wait for the project's script.
  void begin_wanted(LiveProject& project);

  // Its next start or tick, and by that when the engine looks for them next.
  void plan(LiveProject& project);
  void do_due(WallTime now);
  // WallTime::max(): never.
  WallTime next_time() const noexcept { return next_times_; }
  void look_at_calendar(TimePoint now);

 private:
  void do_due_of(LiveProject& project, WallTime now);

  ProjectTurns& turns_;
  AskDesk& asks_;
  RoundDesk& rounds_;
  WallTime next_times_ = WallTime::max();
  Duration calendar_{};  // how far the calendar is before the loop's clock
};

}  // namespace argiope
