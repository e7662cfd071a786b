// What a loop has only when it is watched: debug mode, another order of ready tasks, a hook before each step. Made when first
// asked for, so that other loops pay a pointer for it.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <optional>
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
};

namespace detail {

inline std::string place(const std::source_location& where) {
  return fmt::format("{}:{}", where.file_name(), where.line());
}

}  // namespace detail

}  // namespace argiope
