// ProcessorDesk: the processors of projects: they begin, say what they are, and are let go of.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

#include "project/run/start_desk.hpp"

namespace argiope {

class ProcessorDesk final : public PageEnginePart {
 public:
  ProcessorDesk(PageEngineCore& core, ProjectTurns& turns, RoundDesk& rounds, StartDesk& starts)
      : PageEnginePart(core),
        turns_(turns),
        rounds_(rounds),
        starts_(starts),
        describing_(std::make_shared<DescribingPlaces>(std::max<std::size_t>(core.options.describing, 1))) {}

  void begin(LiveProject& project);
  // A script is told of DEBUG once, when its process begins: another one takes its place where that is not so any more.
  void tell_debug(LiveProject& project);
  // Closed once no visit is with it.
  void let_go(LiveProject& project);

 private:
  // Makes a version of it, if the script is another than its version's.
  void take_script(LiveProject& project);
  // The script says what it is, for the first time or after it has changed.
  void take_description(LiveProject& project, ProcessorDescription description);
  Coro<void> describe(SharedProject project);
  // As far as a look at its queue tells.
  bool has_something_to_do(LiveProject& project) const;
  Coro<void> close_when_idle(std::shared_ptr<Processor> old);

  ProjectTurns& turns_;
  RoundDesk& rounds_;
  StartDesk& starts_;
  // Held by who waits, too.
  struct DescribingPlaces {
    explicit DescribingPlaces(std::size_t count)
        : first(static_cast<std::ptrdiff_t>(count)), again(static_cast<std::ptrdiff_t>((count + 3) / 4)) {}
    Semaphore first, again;
  };
  const std::shared_ptr<DescribingPlaces> describing_;
};

}  // namespace argiope
