// One step of a task, inline in the turns of loops, watched or not: from where it waited to its next wait or its end.
#pragma once

#include "argiope/async/event_loop.hpp"

namespace argiope {

inline void EventLoop::step(detail::TaskCore& task) {
  detail::this_thread.task = &task;
  detail::this_thread.budget = detail::kStepBudget;
  // Anything that it had been granted is its own from here on.
  task.waiter_ = nullptr;
  if (!task.started_) {
    task.started_ = true;
    if (task.must_cancel_) {
      task.collect_cancelled();
      disown(task);
      return;
    }
  }
  task.resume_point_.resume();
  if (task.ended_) finish(task);
}

}  // namespace argiope
