#include "argiope/async/detail/future.hpp"

#include <stdexcept>
#include <typeinfo>

#include "async/loop_checks.hpp"

namespace argiope::detail {
bool is_cancelled_error(const std::exception_ptr& exception) noexcept {
  return exception != nullptr && *exception.__cxa_exception_type() == typeid(CancelledError);
}

namespace {
thread_local std::exception_ptr thrown;
}  // namespace

void keep_thrown() noexcept { thrown = std::current_exception(); }
std::exception_ptr take_thrown() noexcept { return std::exchange(thrown, nullptr); }
void rethrow_thrown() { std::rethrow_exception(take_thrown()); }

void root_coroutine_ended() noexcept { this_thread.task->ended_ = true; }

std::coroutine_handle<> after_end(PromiseBase& ended) noexcept {
  // The first may be in the midst of suspending, so it is left to who awaits it. Those that end by it are freed here,
  // innermost first, in a loop: they may be very many.
  PromiseBase* promise = &ended;
  for (bool free_awaited = false; !promise->is_awaited(); free_awaited = true) {
    Gate* const gate = promise->gate();
    if (gate == nullptr) {
      root_coroutine_ended();
      return std::noop_coroutine();
    }
    promise = gate->pass(*gate, free_awaited);
    if (promise == nullptr) return gate->caller;
  }
  return promise->caller();
}

// --- FutureCore ------------------------------------------------------------------------------------------------

FutureCore::~FutureCore() {
  if (done()) {
    std::destroy_at(&exception_);
    return;
  }
  // Tasks that wait keep the future alive, so these are callbacks of a future that nobody settled.
  while (!waiters_.empty()) {
    Callback& callback = *waiters_.pop_front().target.callback();
    if (EventLoop::is_alive(loop_)) {
      loop_->forget_callback(callback);
    } else if (--callback.references == 0) {
      delete &callback;
    }
  }
}

void FutureCore::require_settable() const {
  loop_->check_thread();
  if (done()) throw InvalidStateError("the future already has a result");
  if (is_task_) throw std::logic_error("a task's result is its coroutine's to set");
}

void FutureCore::settle(FutureState state, std::exception_ptr exception) noexcept {
  IntrusiveRing<Waiter> waiters = waiters_;
  std::construct_at(&exception_, std::move(exception));
  state_ = state;
  while (!waiters.empty()) {
    Waiter& waiter = waiters.pop_front();
    if (!waiter.target.is_task()) tell(*waiter.target.callback());
    loop_->wake(waiter);
  }
}

void FutureCore::tell(Callback& callback) noexcept {
  callback.about = this;
  retain();
}

void FutureCore::settle_cancelled(std::string message) {
  settle_cancelled(message.empty() ? nullptr : std::make_exception_ptr(CancelledError(std::move(message))));
}

bool FutureCore::cancel(std::string message) {
  if (done()) return false;
  loop_->check_thread();
  settle_cancelled(std::move(message));
  return true;
}

void FutureCore::fail(std::exception_ptr exception) {
  require_settable();
  settle_failed(std::move(exception));
}

void FutureCore::rethrow_unless_ready() {
  switch (state_) {
    case FutureState::ready: return;
    case FutureState::pending: throw InvalidStateError("the future has no result yet");
    case FutureState::cancelled:
      if (exception_ == nullptr) throw CancelledError();
      std::rethrow_exception(exception_);
    case FutureState::failed: exception_seen_ = true; std::rethrow_exception(exception_);
  }
}

std::exception_ptr FutureCore::exception() {
  if (state_ != FutureState::failed) {
    rethrow_unless_ready();
    return nullptr;
  }
  exception_seen_ = true;
  return exception_;
}

Handle FutureCore::add_done_callback(std::move_only_function<void()> function, const std::source_location& where) {
  Callback& callback = loop_->new_callback(std::move(function), where);
  if (done()) {
    tell(callback);
    loop_->make_ready(callback.target);
  } else {
    add_waiter(callback);
  }
  return Handle{&callback};
}

void FutureCore::report_unseen() noexcept {
  if (EventLoop::is_alive(loop_)) {
    loop_->handle_exception(name(), exception_);
    return;
  }
  try {
    log_exception(name(), exception_);
  } catch (...) {
    // Nobody left to tell.
  }
}

// --- TaskCore --------------------------------------------------------------------------------------------------

TaskCore::TaskCore(EventLoop& loop, std::coroutine_handle<> root, std::string_view name)
    : FutureCore(loop, true),
      root_(root),
      resume_point_(root),
      rare_(name.empty() ? nullptr : new Rare{std::string(name), {}}) {}

bool TaskCore::cancel(std::string message) {
  if (done() || ended_) return false;
  loop().check_thread();
  if (cancel_requests_ < kMostCancelRequests) ++cancel_requests_;
  if (rare_ == nullptr && !message.empty()) rare_ = std::make_unique<Rare>();
  if (rare_ != nullptr) rare_->cancel_message = std::move(message);
  if (waiter_ == nullptr) {
    // Running, or ready: thrown at its next await.
    must_cancel_ = true;
    cancelled_late_ = false;
  } else if (waiter_->on_cancel != nullptr) {
    waiter_->on_cancel(*waiter_);
  } else {
    wake_cancelled(*waiter_);
  }
  return true;
}

int TaskCore::uncancel() noexcept {
  if (cancel_requests_ > 0 && --cancel_requests_ == 0) must_cancel_ = cancelled_late_ = false;
  return cancelling();
}

std::string TaskCore::take_cancel_message() {
  must_cancel_ = cancelled_late_ = false;
  return rare_ == nullptr ? std::string{} : std::exchange(rare_->cancel_message, {});
}

void TaskCore::forward_cancel(FutureCore& awaited) {
  must_cancel_ = cancelled_late_ = false;
  if (!awaited.cancel(rare_ == nullptr ? std::string{} : rare_->cancel_message)) must_cancel_ = true;
}

void TaskCore::collect_thrown() noexcept {
  const DropsUnrun drops_unrun;
  std::exception_ptr exception = take_thrown();
  free_root();
  if (is_cancelled_error(exception)) {
    settle_cancelled(std::move(exception));
  } else {
    settle_failed(std::move(exception));
  }
}

void TaskCore::collect_cancelled() {
  const DropsUnrun drops_unrun;
  free_root();
  settle_cancelled(take_cancel_message());
}

void TaskCore::throw_cancelled() { throw CancelledError(take_cancel_message()); }

void TaskCore::requeue(std::coroutine_handle<> self) noexcept {
  resume_point_ = self;
  loop().make_ready(Runnable{this});
}

void require_same_loop(const std::vector<FutureCore*>& futures) {
  for (const FutureCore* future : futures) {
    if (&future->loop() != this_thread.loop) throw std::logic_error("a future belongs to another event loop");
  }
}

void FutureWaiter::await_suspend(std::coroutine_handle<> self) {
  TaskCore& task = *this_thread.task;
  if (core == &task) throw std::logic_error("a task cannot await itself");
  if (&core->loop() != this_thread.loop) throw std::logic_error("the awaited future belongs to another event loop");
  target = Runnable{&task};
  // As in asyncio, a pending cancellation goes to what is awaited; it may settle it at once, or come round to here.
  if (task.must_cancel() && !core->done()) [[unlikely]]
    task.forward_cancel(*core);
  if (core->done() || task.must_cancel()) {
    task.requeue(self);
    return;
  }
  task.park(self, *this);
  core->add_waiter(*this);
}

void FutureWaiter::cancel_awaited() {
  TaskCore& task = *target.task();
  if (forwarding) {
    // Came round a ring of tasks that await one another: break it here.
    core->remove_waiter(*this);
    task.wake_cancelled(*this);
    return;
  }
  forwarding = true;
  task.forward_cancel(*core);
  forwarding = false;
}

}  // namespace argiope::detail
