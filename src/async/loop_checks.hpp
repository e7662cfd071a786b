// The parts that a loop has only when it is watched: debug mode, another order of ready tasks, a hook before each step.
// Made when first asked for, so that other loops pay a pointer for it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <source_location>
#include <string>

#include "argiope/async/event_loop.hpp"
#include "argiope/base/random.hpp"

namespace argiope {

struct EventLoop::Checks {
  Duration slow_callback_duration = std::chrono::milliseconds(100);
  WarningHandler warning_handler;
  std::optional<Random> shuffle;
  std::function<void()> step_hook;
  // Places in the source whose forgotten coroutines were told of.
  std::set<std::uintptr_t> told_unawaited;
};

namespace detail {

// While one lives, coroutines that this thread destroys unrun are none that were forgotten: what would have awaited
// them was cancelled, has failed, or goes with its loop.
class DropsUnrun {
 public:
  DropsUnrun() noexcept { ++living; }
  ~DropsUnrun() { --living; }
  DropsUnrun(const DropsUnrun&) = delete;
  DropsUnrun& operator=(const DropsUnrun&) = delete;
  static bool is_on_this_thread() noexcept { return living > 0; }

 private:
  static constinit thread_local int living;
};

inline std::string place(const std::source_location& where) {
  return fmt::format("{}:{}", where.file_name(), where.line());
}

}  // namespace detail

}  // namespace argiope
