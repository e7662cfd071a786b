// The scheduler of an engine, if it has one.
#pragma once

#include <stdexcept>

#include "argiope/engine/engine.hpp"

namespace argiope {

// nullptr where another program fires the schedules.
inline Scheduler* scheduler_of(Engine& engine) {
  try {
    return &engine.scheduler();
  } catch (const std::logic_error&) {
    return nullptr;
  }
}

}  // namespace argiope
