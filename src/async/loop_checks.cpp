// Debug mode, shuffling and the step hook: the loop's turns when it is watched, and its warnings.
#include "async/loop_checks.hpp"

#include <spdlog/spdlog.h>

#include <bit>
#include <exception>
#include <stdexcept>
#include <utility>
#include <vector>

#include "async/loop_step.hpp"

namespace argiope {
namespace detail {
namespace {

std::string unawaited(const std::source_location& created_at) {
  return fmt::format("a coroutine was never awaited: {} ({})", created_at.function_name(), place(created_at));
}

}  // namespace

constinit thread_local int DropsUnrun::living = 0;

void coroutine_never_started(const std::source_location& created_at) noexcept {
  if (DropsUnrun::is_on_this_thread() || std::uncaught_exceptions() > 0) return;
  if (this_thread.loop != nullptr) return this_thread.loop->warn_of_unawaited(created_at);
  try {
    spdlog::warn("{}", unawaited(created_at));
  } catch (...) {
    // Nobody left to tell.
  }
}

}  // namespace detail

using detail::place;
using detail::Runnable;
using detail::TaskCore;
using detail::this_thread;

EventLoop::Checks& EventLoop::checks() {
  if (checks_ == nullptr) checks_ = std::make_unique<Checks>();
  return *checks_;
}

void EventLoop::decide_whether_checked() noexcept {
  checked_ = debug_ || checks_->shuffle.has_value() || checks_->step_hook != nullptr;
}

void EventLoop::set_debug(bool on) {
  checks();
  debug_ = on;
  decide_whether_checked();
}

void EventLoop::set_slow_callback_duration(Duration at_least) { checks().slow_callback_duration = at_least; }

Duration EventLoop::slow_callback_duration() const noexcept {
  return checks_ == nullptr ? Checks{}.slow_callback_duration : checks_->slow_callback_duration;
}

void EventLoop::set_warning_handler(WarningHandler handler) { checks().warning_handler = std::move(handler); }

void EventLoop::warn(std::string_view message) noexcept {
  try {
    if (checks_ != nullptr && checks_->warning_handler) {
      checks_->warning_handler(message);
    } else {
      spdlog::warn("{}", message);
    }
  } catch (...) {
    // Nobody left to tell.
  }
}

void EventLoop::warn_of_unawaited(const std::source_location& created_at) noexcept {
  try {
    if (!checks().told_unawaited.insert(std::bit_cast<std::uintptr_t>(created_at)).second && !debug_) return;
    warn(detail::unawaited(created_at));
  } catch (...) {
    // Nobody left to tell.
  }
}

void EventLoop::shuffle_ready_tasks(Random random) {
  checks().shuffle = random;
  decide_whether_checked();
}

void EventLoop::set_step_hook(std::function<void()> hook) {
  checks().step_hook = std::move(hook);
  decide_whether_checked();
}

void EventLoop::require_own_thread() const {
  const detail::ThreadState* running_on = running_on_.load(std::memory_order_relaxed);
  if (running_on != nullptr && running_on != &this_thread) {
    throw std::logic_error("the event loop runs on another thread: use call_soon_threadsafe");
  }
}

void EventLoop::warn_of_wrong_thread() noexcept {
  try {
    require_own_thread();
  } catch (const std::logic_error& error) {
    warn(error.what());
  }
}

// One generation: what was ready at the start.
void EventLoop::run_ready_checked() {
  const std::size_t generation = ready_.size();
  if (checks_->shuffle) shuffle_ready(generation);
  for (std::size_t i = 0; i < generation; ++i) {
    if (checks_->step_hook) checks_->step_hook();
    run_checked(ready_.pop_front());
  }
  look_is_due_ = true;
  this_thread.task = nullptr;
}

void EventLoop::run_checked(Runnable next) {
  const TimePoint start = time();
  if (!next.is_task()) {
    const std::source_location where = next.callback()->created_at;
    call(*next.callback());
    if (const Duration took = time() - start; debug_ && took >= checks_->slow_callback_duration) {
      warn(fmt::format("the callback created at {} ran for {:.3f} s", place(where), to_seconds(took)));
    }
    return;
  }
  // Kept for its name: the step may be its last.
  TaskCore& task = *next.task();
  task.retain();
  const std::source_location where = task.created_at();
  step(task);
  if (const Duration took = time() - start; debug_ && took >= checks_->slow_callback_duration) {
    warn(
        fmt::format("a step of task '{}' created at {} ran for {:.3f} s", task.name(), place(where), to_seconds(took)));
  }
  task.release();
}

// Fisher and Yates over those of the first `count` that are tasks.
void EventLoop::shuffle_ready(std::size_t count) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < count; ++i) {
    if (ready_[i].is_task()) places.push_back(i);
  }
  for (std::size_t left = places.size(); left > 1; --left) {
    std::swap(ready_[places[left - 1]], ready_[places[checks_->shuffle->below(left)]]);
  }
}

}  // namespace argiope
