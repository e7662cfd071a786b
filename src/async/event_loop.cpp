#include "argiope/async/event_loop.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cassert>
#include <stdexcept>

#include "argiope/async/threads.hpp"
#include "async/descriptors.hpp"
#include "async/internal/loop_ref.hpp"
#include "async/loop_checks.hpp"
#include "async/loop_step.hpp"

namespace argiope {
namespace detail {

constinit thread_local ThreadState this_thread{};

TimerNode::~TimerNode() {
  if (heap_index != kUnarmed) armed_on->disarm(*this);
}

// The loop for as long as it lives, and null afterwards.
struct LoopLife {
  std::mutex mutex;
  EventLoop* loop;
};

Callback::~Callback() {
  if (about != nullptr) about->release();
}

void log_exception(std::string_view where, const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    spdlog::error("unhandled exception in {}: {}", where, error.what());
  } catch (...) {
    spdlog::error("unhandled exception in {}", where);
  }
}

}  // namespace detail

using detail::Callback;
using detail::Runnable;
using detail::TaskCore;
using detail::this_thread;
using detail::TimerNode;
using detail::Waiter;

namespace {

// How many steps make a turn while there is always something ready: looking at the clock and at other threads costs
// more than a step does. Pace says how many turns go by between two looks at the backend.
constexpr int kStepsPerTurn = 32;

void drop(Callback* callback) noexcept {
  if (callback != nullptr && --callback->references == 0) delete callback;
}

// The loops there are: a future may outlive its loop, and must then not speak to it.
struct LiveLoops {
  std::mutex mutex;
  std::vector<const EventLoop*> loops;
};
LiveLoops& live_loops() {
  // Never freed: a static object of the program may hold a loop, and what ends after this list would still ask it.
  static LiveLoops& instance = *new LiveLoops;
  return instance;
}

}  // namespace

// Makes a loop the thread's current one for as long as it runs.
class EventLoop::Running {
 public:
  explicit Running(EventLoop& loop) : loop_(loop), outer_(this_thread) {
    loop_.running_ = true;
    loop_.running_on_.store(&this_thread, std::memory_order_relaxed);
    this_thread = {&loop, nullptr, 0};
  }
  ~Running() {
    this_thread = outer_;
    loop_.running_on_.store(nullptr, std::memory_order_relaxed);
    loop_.running_ = false;
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  EventLoop& loop_;
  detail::ThreadState outer_;
};

Handle::Handle(Callback* callback) noexcept : callback_(callback) {
  if (callback_ != nullptr) ++callback_->references;
}

Handle::~Handle() { drop(callback_); }

void Handle::cancel() noexcept {
  if (callback_ == nullptr || !callback_->function) return;
  callback_->cancelled = true;
  // Freed last: what was captured may hold this very handle.
  const auto function = std::exchange(callback_->function, nullptr);
  if (callback_->heap_index == TimerNode::kUnarmed) return;  // in the ready ring or at a future: it will be skipped
  EventLoop& loop = *callback_->armed_on;
  loop.disarm(*callback_);
  loop.forget_callback(*callback_);  // the loop's reference; this handle's own remains
}

EventLoop::EventLoop(IoBackend& backend)
    : backend_(backend),
      clock_(backend.clock()),
      life_(std::make_shared<detail::LoopLife>()),
      pace_(backend.runs_in_real_time()) {
  life_->loop = this;
  std::lock_guard lock(live_loops().mutex);
  live_loops().loops.push_back(this);
}

EventLoop::~EventLoop() {
  // Results that its threads still owe the loop must find it alive.
  default_executor_.reset();
  {
    // Destructors in what is unwound may ask for the current loop.
    const Running running(*this);
    const detail::DropsUnrun drops_unrun;
    descriptors_.reset();
    while (!signal_handlers_.empty()) remove_signal_handler(signal_handlers_.back().first);
    discard_inbox();
    // Frames may hold handles, timers and other tasks, so they go while the loop is whole; and what a destructor
    // schedules goes too.
    do {
      abandon_tasks();
      discard_callbacks();
    } while (!tasks_.empty() || !ready_.empty() || !timers_.empty());
  }
  {
    std::lock_guard lock(life_->mutex);
    life_->loop = nullptr;
  }
  std::lock_guard lock(live_loops().mutex);
  std::erase(live_loops().loops, this);
}

bool EventLoop::is_alive(const EventLoop* loop) noexcept {
  std::lock_guard lock(live_loops().mutex);
  return std::ranges::find(live_loops().loops, loop) != live_loops().loops.end();
}

// A loop that ends waits for this lock.
bool LoopRef::call_soon(std::move_only_function<void()> function) const {
  std::lock_guard lock(life_->mutex);
  if (life_->loop == nullptr) return false;
  life_->loop->call_soon_threadsafe(std::move(function));
  return true;
}

EventLoop& EventLoop::current() {
  if (this_thread.loop == nullptr) throw std::logic_error("no event loop is running on this thread");
  return *this_thread.loop;
}

// --- callbacks -------------------------------------------------------------------------------------------------

void EventLoop::reserve_ready() { ready_.reserve(task_count_ + callback_count_ + 1); }

Callback& EventLoop::new_callback(std::move_only_function<void()> function, const std::source_location& where) {
  check_thread();
  reserve_ready();
  auto* callback = new Callback;
  callback->function = std::move(function);
  callback->target = Runnable{callback};
  callback->created_at = where;
  ++callback_count_;
  return *callback;
}

void EventLoop::forget_callback(Callback& callback) noexcept {
  --callback_count_;
  drop(&callback);
}

void EventLoop::abandon_tasks() noexcept {
  while (!tasks_.empty()) {
    TaskCore& task = tasks_.front();
    if (debug_ && !task.ended_) {
      warn(fmt::format("task '{}' created at {} was destroyed before its end", task.name(),
                       detail::place(task.created_at())));
    }
    task.waiter_ = nullptr;
    task.free_root();
    disown(task);
  }
}

// With no task left, the timers are callbacks too.
void EventLoop::discard_callbacks() noexcept {
  while (!ready_.empty()) {
    if (const Runnable runnable = ready_.pop_front(); !runnable.is_task()) discard(*runnable.callback());
  }
  while (!timers_.empty() && tasks_.empty()) {
    Callback& callback = *timers_.back().node->target.callback();
    disarm(callback);
    discard(callback);
  }
}

// Frees what was captured even if a Handle is kept.
void EventLoop::discard(Callback& callback) noexcept {
  const auto function = std::exchange(callback.function, nullptr);
  forget_callback(callback);
}

void EventLoop::discard_inbox() noexcept {
  // Freed outside the lock: what was captured may call the loop.
  std::vector<std::move_only_function<void()>> functions;
  std::lock_guard lock(inbox_mutex_);
  functions.swap(inbox_);
}

Handle EventLoop::call_soon(std::move_only_function<void()> function, const std::source_location& where) {
  Callback& callback = new_callback(std::move(function), where);
  make_ready(callback.target);
  return Handle{&callback};
}

Handle EventLoop::call_later(Duration delay, std::move_only_function<void()> function,
                             const std::source_location& where) {
  return call_at(saturating_add(time(), delay), std::move(function), where);
}

Handle EventLoop::call_at(TimePoint when, std::move_only_function<void()> function, const std::source_location& where) {
  Callback& callback = new_callback(std::move(function), where);
  try {
    arm(callback, when);
  } catch (...) {
    forget_callback(callback);
    throw;
  }
  return Handle{&callback};
}

void EventLoop::call_soon_threadsafe(std::move_only_function<void()> function) {
  {
    std::lock_guard lock(inbox_mutex_);
    inbox_.push_back(std::move(function));
    // The thread that found it empty wakes the loop, and the loop takes all there is.
    if (inbox_filled_.exchange(true, std::memory_order_release)) return;
  }
  backend_.wake();
}

void EventLoop::take_from_outside() {
  if (inbox_filled_.load(std::memory_order_acquire)) drain_other_threads();
  if (pending_signals_.load(std::memory_order_relaxed) != 0) drain_signals();
}

void EventLoop::drain_other_threads() {
  std::vector<std::move_only_function<void()>> functions;
  {
    std::lock_guard lock(inbox_mutex_);
    functions.swap(inbox_);
    inbox_filled_.store(false, std::memory_order_relaxed);
  }
  for (auto& function : functions) call_soon(std::move(function));
}

void EventLoop::call(Callback& callback) noexcept {
  this_thread.task = nullptr;
  if (callback.function) {
    // Moved out, so that what it captured is freed as soon as it has run.
    auto function = std::exchange(callback.function, nullptr);
    try {
      function();
    } catch (...) {
      handle_exception("callback", std::current_exception());
    }
  }
  forget_callback(callback);
}

void EventLoop::handle_exception(std::string_view where, const std::exception_ptr& exception) noexcept {
  try {
    if (exception_handler_) {
      exception_handler_(where, exception);
      return;
    }
    detail::log_exception(where, exception);
  } catch (...) {
    // A handler that throws has nobody left to tell.
  }
}

// --- tasks -----------------------------------------------------------------------------------------------------

void EventLoop::adopt(TaskCore& task, Start start) {
  tasks_.push_back(task);
  ++task_count_;
  task.retain();
  // While another loop runs inside one of this loop's tasks, that one is the thread's.
  if (start == Start::eagerly && this_thread.loop == this) {
    start_eagerly(task);
  } else {
    make_ready(Runnable{&task});
  }
}

void EventLoop::start_eagerly(TaskCore& task) {
  TaskCore* const outer = this_thread.task;
  // It spends the budget of the task that starts it, or a loop of eager starts could starve others.
  if (outer == nullptr) this_thread.budget = detail::kStepBudget;
  this_thread.task = &task;
  task.started_ = true;
  task.resume_point_.resume();
  if (task.ended_) finish(task);
  this_thread.task = outer;
}

void EventLoop::disown(TaskCore& task) noexcept {
  task.unlink();
  --task_count_;
  task.release();
}

void EventLoop::finish(TaskCore& task) {
  try {
    task.collect();
  } catch (...) {
    // The result could not be moved into the future: that is the task's failure.
    task.settle_failed(std::current_exception());
  }
  disown(task);
}

std::vector<AnyTask> EventLoop::all_tasks() {
  std::vector<AnyTask> tasks;
  tasks.reserve(task_count_);
  tasks_.for_each([&](TaskCore& task) { tasks.emplace_back(task); });
  return tasks;
}

AnyTask current_task() {
  EventLoop::current();
  return this_thread.task == nullptr ? AnyTask{} : AnyTask{*this_thread.task};
}

std::vector<AnyTask> all_tasks() { return EventLoop::current().all_tasks(); }

void EventLoop::cancel_all_tasks() {
  // Cancelling may forward to another task of the list, but never ends one at once, so the list stays as it is.
  tasks_.for_each([](TaskCore& task) { task.cancel("the loop is shutting down"); });
}

// --- turns -----------------------------------------------------------------------------------------------------

void EventLoop::run_ready() {
  if (checked_) [[unlikely]] {
    run_ready_checked();
    return;
  }
  // Generation after generation, so that stop() is heeded between them, and timers and I/O when steps take long. Tasks
  // made ready last wait for the next turn.
  int steps_left = kStepsPerTurn;
  while (steps_left > 0 && !ready_.empty()) {
    const int generation = static_cast<int>(std::min<std::size_t>(ready_.size(), static_cast<std::size_t>(steps_left)));
    for (int i = 0; i < generation; ++i) {
      const Runnable next = ready_.pop_front();
      if (next.is_task()) [[likely]] {
        step(*next.task());
      } else {
        call(*next.callback());
      }
    }
    steps_left -= generation;
    if (pace_.ran(generation)) {
      look_is_due_ = true;
      if (pace_.timed()) break;
    }
    if (stopping_) break;
  }
  steps_in_epoch_ += static_cast<std::size_t>(kStepsPerTurn - steps_left);
  this_thread.task = nullptr;
}

void EventLoop::turn(TimePoint limit) {
  const std::size_t ready_before = ready_.size();
  take_from_outside();
  if (!timers_.empty()) fire_timers();
  if (ready_.empty()) {
    backend_.wait(timers_.empty() ? limit : std::min(limit, timers_.front().when), outside_work_ > 0);
    take_from_outside();
    if (!timers_.empty()) fire_timers();
    look_is_due_ = false;
    pace_.waited();
    begin_epoch();
  } else if (look_is_due_) {
    look_is_due_ = false;
    backend_.poll();
    if (pace_.timed() && !checked_) put_before_recent(ready_before);
    pace_.looked();
    begin_epoch();
  } else if (ready_.size() != ready_before) {
    begin_epoch();
  }
  run_ready();
}

void EventLoop::begin_epoch() noexcept {
  ready_at_epoch_ = ready_.size();
  steps_in_epoch_ = 0;
}

// The calls that came from outside, from place `outside` of the ready ring on, have come in this epoch: they go behind
// what was ready when that began, and before what tasks have made ready since. Else a task that never waits would be
// ahead of an event that came while it ran.
void EventLoop::put_before_recent(std::size_t outside) noexcept {
  const std::size_t recent = ready_at_epoch_ - std::min(ready_at_epoch_, steps_in_epoch_);
  const auto reverse = [this](std::size_t first, std::size_t last) {
    while (first + 1 < last) std::swap(ready_[first++], ready_[--last]);
  };
  if (recent >= outside || outside == ready_.size()) return;
  reverse(recent, outside);
  reverse(outside, ready_.size());
  reverse(recent, ready_.size());
}

void EventLoop::require_idle() const {
  if (running_) throw std::logic_error("this event loop is running already");
}

void EventLoop::run_once(TimePoint limit) {
  require_idle();
  const Running running(*this);
  pace_.looked();
  turn(limit);
  // Waits that the turn's own I/O completed at once become ready here, so that next_deadline() knows of them: no
  // descriptor would ever tell.
  const std::size_t ready_before = ready_.size();
  backend_.poll();
  if (ready_.size() == ready_before) return;
  if (pace_.timed() && !checked_) put_before_recent(ready_before);
  begin_epoch();
}

TimePoint EventLoop::next_deadline() const noexcept {
  if (!ready_.empty() || inbox_filled_.load(std::memory_order_relaxed) ||
      pending_signals_.load(std::memory_order_relaxed) != 0) {
    return time();
  }
  return timers_.empty() ? kNever : timers_.front().when;
}

void EventLoop::run_until_stopped() {
  const Running running(*this);
  pace_.waited();
  turn(stopping_ ? TimePoint::min() : kNever);
  while (!stopping_) turn(kNever);
  stopping_ = false;
}

void EventLoop::run_forever() {
  require_idle();
  run_until_stopped();
}

void EventLoop::wake(Waiter& waiter) noexcept {
  if (debug_) [[unlikely]]
    warn_of_wrong_thread();
  waiter.unlink();
  if (waiter.target.is_task()) waiter.target.task()->waiter_ = nullptr;
  make_ready(waiter.target);
}

// --- timers: a heap with four children a node, each node knowing its place -------------------------------------

void EventLoop::arm(TimerNode& node, TimePoint when) {
  assert(node.heap_index == TimerNode::kUnarmed);
  timers_.emplace_back();
  node.armed_on = this;
  sift_up(timers_.size() - 1, {when, timer_sequence_++, &node});
}

void EventLoop::disarm(TimerNode& node) noexcept {
  const std::size_t hole = node.heap_index;
  if (hole == TimerNode::kUnarmed) return;
  node.heap_index = TimerNode::kUnarmed;
  const TimerEntry last = timers_.back();
  timers_.pop_back();
  if (hole == timers_.size()) return;
  if (hole > 0 && last.before(timers_[(hole - 1) / 4])) {
    sift_up(hole, last);
  } else {
    sift_down(hole, last);
  }
}

void EventLoop::fire_timers() {
  const TimePoint now = time();
  while (!timers_.empty() && timers_.front().when <= now) {
    TimerNode& node = *timers_.front().node;
    disarm(node);
    wake(node);
  }
}

void EventLoop::sift_up(std::size_t index, TimerEntry entry) noexcept {
  while (index > 0) {
    const std::size_t parent = (index - 1) / 4;
    if (!entry.before(timers_[parent])) break;
    timers_[index] = timers_[parent];
    timers_[index].node->heap_index = static_cast<std::uint32_t>(index);
    index = parent;
  }
  timers_[index] = entry;
  entry.node->heap_index = static_cast<std::uint32_t>(index);
}

void EventLoop::sift_down(std::size_t index, TimerEntry entry) noexcept {
  const std::size_t count = timers_.size();
  for (;;) {
    const std::size_t first = index * 4 + 1;
    if (first >= count) break;
    std::size_t least = first;
    for (std::size_t child = first + 1; child < std::min(first + 4, count); ++child) {
      if (timers_[child].before(timers_[least])) least = child;
    }
    if (!timers_[least].before(entry)) break;
    timers_[index] = timers_[least];
    timers_[index].node->heap_index = static_cast<std::uint32_t>(index);
    index = least;
  }
  timers_[index] = entry;
  entry.node->heap_index = static_cast<std::uint32_t>(index);
}

// --- yield -----------------------------------------------------------------------------------------------------

void YieldNow::await_suspend(std::coroutine_handle<> self) const noexcept { this_thread.task->requeue(self); }
void YieldNow::await_resume() const { this_thread.task->check_cancelled(); }

}  // namespace argiope
