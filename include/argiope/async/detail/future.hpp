// Future<T> and Task<T>: results that are not there yet, with asyncio's rules.
//
// A Future is a shared handle on a state that is set once. A Task is a Future whose result a coroutine computes,
// step by step, on the loop. Included by event_loop.hpp, whose create_task and create_future make them.
#pragma once

#include <coroutine>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/async/detail/event_loop.hpp"

namespace argiope {
namespace detail {

enum class FutureState : std::uint8_t { pending, ready, failed, cancelled };

// The part of a future that does not depend on its type: state, who waits, how often it is referred to. Small, because
// a task is one and a program may have a million of them waiting.
class FutureCore {
 public:
  static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
  static void operator delete(void* block, std::size_t bytes) noexcept { free_frame(block, bytes); }

  explicit FutureCore(EventLoop& loop) noexcept : FutureCore(loop, false) {}
  FutureCore(const FutureCore&) = delete;
  FutureCore& operator=(const FutureCore&) = delete;
  virtual ~FutureCore();

  EventLoop& loop() const noexcept { return *loop_; }
  FutureState state() const noexcept { return state_; }
  bool done() const noexcept { return state_ != FutureState::pending; }
  bool is_task() const noexcept { return is_task_; }
  virtual bool cancel(std::string message);
  virtual std::string_view name() const noexcept { return "future"; }

  template <class T, class... Value>
  void set_result(Value&&... value);
  void fail(std::exception_ptr exception);
  // Throws CancelledError or the stored exception; InvalidStateError while pending.
  void rethrow_unless_ready();
  std::exception_ptr exception();
  void mark_exception_seen() noexcept { exception_seen_ = true; }
  // Only while pending.
  void add_waiter(Waiter& waiter) noexcept { waiters_.push_back(waiter); }
  // Before a waiter is woken by something else, or destroyed. Does nothing to one that does not wait here any more.
  void remove_waiter(Waiter& waiter) noexcept {
    if (!done()) waiters_.remove(waiter);
  }
  // The future lives at least until `function` has run.
  Handle add_done_callback(std::move_only_function<void()> function,
                           const std::source_location& where = std::source_location::current());

  void retain() noexcept { ++references_; }
  void release() noexcept {
    if (--references_ != 0) return;
    if (state_ == FutureState::failed && !exception_seen_) [[unlikely]]
      report_unseen();
    delete this;
  }

 protected:
  FutureCore(EventLoop& loop, bool is_task) noexcept : loop_(&loop), waiters_(), is_task_(is_task) {}

  // Throws unless the future's result may be set now, and from outside.
  void require_settable() const;
  void report_unseen() noexcept;
  // Has `callback` keep this future alive until it has run.
  void tell(Callback& callback) noexcept;
  // Ends a pending future and wakes who waits for it. `exception`: if it failed, what was thrown; if it was cancelled,
  // the CancelledError where there is more to it than its type.
  void settle(FutureState state, std::exception_ptr exception = nullptr) noexcept;
  void settle_cancelled(std::string message);
  void settle_cancelled(std::exception_ptr exception) noexcept { settle(FutureState::cancelled, std::move(exception)); }
  void settle_failed(std::exception_ptr exception) noexcept { settle(FutureState::failed, std::move(exception)); }

 private:
  EventLoop* loop_;
  // Nobody waits once it is done, and before that it has no exception.
  union {
    IntrusiveRing<Waiter> waiters_;
    std::exception_ptr exception_;
  };
  std::uint32_t references_ = 0;
  FutureState state_ : 2 = FutureState::pending;
  bool exception_seen_ : 1 = false;
  const bool is_task_ : 1;

 protected:
  // A task's, and here because a future has room for them that would be lost in front of a task's pointers.
  bool must_cancel_ : 1 = false;
  bool cancelled_late_ : 1 = false;
  bool started_ : 1 = false;
  bool ended_ : 1 = false;
  std::uint32_t cancel_requests_ : 24 = 0;
  static constexpr std::uint32_t kMostCancelRequests = (1u << 24) - 1;
};

template <class T>
struct Slot {
  std::optional<T> value;
};
template <>
struct Slot<void> {};

// A future that is no task.
template <class T>
class FutureStateOf final : public FutureCore, public Slot<T> {
 public:
  using FutureCore::FutureCore;
};
static_assert(sizeof(FutureStateOf<void>) <= 32, "a task is a future: see docs/decisions.md");

// The part of a task that does not depend on its type. Linked into its loop's list of unfinished tasks.
class TaskCore : public FutureCore, public ListHook {
 public:
  bool cancel(std::string message) override;
  std::string_view name() const noexcept override {
    return rare_ == nullptr || rare_->name.empty() ? std::string_view{"task"} : rare_->name;
  }
  // Called by an await point that was resumed: throws if the task was cancelled while it waited.
  void check_cancelled() {
    if (must_cancel_) [[unlikely]]
      throw_cancelled();
  }
  bool must_cancel() const noexcept { return must_cancel_; }
  int cancelling() const noexcept { return static_cast<int>(cancel_requests_); }
  int uncancel() noexcept;

  // Parks the running coroutine `self` of this task until `waiter` is woken. An await point calls check_cancelled()
  // before: a cancellation that is pending would otherwise not be delivered until the wait is over.
  void park(std::coroutine_handle<> self, Waiter& waiter) noexcept {
    resume_point_ = self;
    waiter.target = Runnable{this};
    waiter_ = &waiter;
  }
  // Wakes the task from `waiter` with CancelledError to be thrown: the last step of an on_cancel.
  void wake_cancelled(Waiter& waiter) noexcept {
    must_cancel_ = true;
    loop().wake(waiter);
  }
  // For the on_cancel of a waiter that was served: it has been taken back, and CancelledError is thrown where the task
  // waits.
  void cancel_served() noexcept {
    must_cancel_ = true;
    waiter_ = nullptr;
  }
  // For the same: it cannot be taken back, so the wait ends well. The next one throws; a task without one keeps its
  // result.
  void cancel_late() noexcept {
    must_cancel_ = true;
    cancelled_late_ = true;
  }
  // Passes this task's cancellation on to `awaited`; when that has ended, the task itself keeps it.
  void forward_cancel(FutureCore& awaited);
  // Parks the task at the back of the ready ring.
  void requeue(std::coroutine_handle<> self) noexcept;

  // Where it was made a task; only of a task that has not ended.
  virtual std::source_location created_at() const noexcept = 0;

 protected:
  // Takes the frame of `root`, unless it throws.
  TaskCore(EventLoop& loop, std::coroutine_handle<> root, std::string_view name);
  ~TaskCore() override { free_root(); }

  // Moves the coroutine's result into the future and frees the frame.
  virtual void collect() = 0;
  std::coroutine_handle<> root() const noexcept { return root_; }
  void free_root() noexcept {
    if (auto root = std::exchange(root_, {})) root.destroy();
  }
  // The end of a task whose coroutine threw.
  void collect_thrown() noexcept;
  // Whether a cancellation that no await has thrown makes a task that ends a cancelled one.
  bool ends_cancelled() const noexcept { return must_cancel_ && !cancelled_late_; }
  // Ends it without its result: cancelled before its first step, or in its last.
  void collect_cancelled();

 private:
  friend class argiope::EventLoop;
  friend void root_coroutine_ended() noexcept;

  // The things that few tasks have. An empty name or message: none.
  struct Rare {
    std::string name;
    std::string cancel_message;
  };

  [[noreturn]] void throw_cancelled();
  std::string take_cancel_message();

  std::coroutine_handle<> root_;
  std::coroutine_handle<> resume_point_;
  Waiter* waiter_ = nullptr;
  std::unique_ptr<Rare> rare_;
};

// Wakes the task that waits by `waiter`, on its own loop, whether or not that is running.
inline void wake_task(Waiter& waiter) noexcept { waiter.target.task()->loop().wake(waiter); }
// The same when it was granted what it waited for, and on_cancel can take that back.
inline void wake_served(Waiter& waiter) noexcept { waiter.target.task()->loop().wake_served(waiter); }

bool is_cancelled_error(const std::exception_ptr& exception) noexcept;

template <class T>
class TaskState final : public TaskCore, public Slot<T> {
 public:
  using Root = Coro<T>::Handle;
  TaskState(EventLoop& loop, Root root, std::string_view name) : TaskCore(loop, root, name) {}

  std::source_location created_at() const noexcept override { return promise().created_at(); }

 protected:
  void collect() override {
    if (promise().threw()) [[unlikely]] {
      collect_thrown();
    } else if (ends_cancelled()) [[unlikely]] {
      // Cancelled in its last step, with no await left to throw at: asyncio ends such a task as cancelled too.
      collect_cancelled();
    } else {
      if constexpr (!std::is_void_v<T>) this->value.emplace(promise().take());
      free_root();
      settle(FutureState::ready);
    }
  }

 private:
  Promise<T>& promise() const noexcept { return Root::from_address(root().address()).promise(); }
};
static_assert(sizeof(TaskState<void>) <= 80, "half of a parked task: see docs/decisions.md");

// Where the value of a future or task of T is, or will be.
template <class T>
Slot<T>& slot_of(FutureCore& core) noexcept {
  if (core.is_task()) return static_cast<TaskState<T>&>(core);
  return static_cast<FutureStateOf<T>&>(core);
}

template <class T, class... Value>
void FutureCore::set_result(Value&&... value) {
  require_settable();
  if constexpr (!std::is_void_v<T>) slot_of<T>(*this).value.emplace(std::forward<Value>(value)...);
  settle(FutureState::ready);
}

// Throws std::logic_error unless all of them belong to the loop that runs.
void require_same_loop(const std::vector<FutureCore*>& futures);

template <class F>
std::vector<FutureCore*> cores_of(const std::vector<F>& futures) {
  std::vector<FutureCore*> cores;
  cores.reserve(futures.size());
  for (const F& future : futures) cores.push_back(future.core());
  return cores;
}

// Waits for a future; cancelling the waiting task cancels the future, as in asyncio.
struct FutureWaiter : Waiter {
  FutureCore* core;
  bool forwarding = false;
  explicit FutureWaiter(FutureCore& awaited) noexcept : core(&awaited) {
    core->retain();
    on_cancel = [](Waiter& self) { static_cast<FutureWaiter&>(self).cancel_awaited(); };
  }
  ~FutureWaiter() {
    core->remove_waiter(*this);
    core->release();
  }
  void cancel_awaited();
  bool await_ready() const noexcept { return core->done() && may_go_on(); }
  void await_suspend(std::coroutine_handle<> self);
  // Throws CancelledError if the waiting task was cancelled.
  void finish() const {
    if (target) target.task()->check_cancelled();
  }
};

}  // namespace detail

// A result that is set later.
//
// Copies share one state. A second set_result or set_exception throws InvalidStateError, and one of a task logic_error.
// Suspends: co_await, until the state is set. `co_await future` gives a const reference into the state (void: nothing),
//           `co_await std::move(future)` moves the value out.
// Errors:   awaiting throws what was set, CancelledError when it was cancelled, and std::logic_error for a task that
//           awaits itself or a future of another loop.
// Cancel:   cancelling the awaiting task cancels the future. Tasks that await one another in a ring can be cancelled.
// Lifetime: a handle may be kept and read after the loop has gone; settling or awaiting it then is a mistake.
// Threads:  the loop's own.
template <class T>
class Future {
 public:
  using value_type = T;

  Future() = default;
  explicit Future(detail::FutureCore* state) noexcept : state_(state) {
    if (state_ != nullptr) state_->retain();
  }
  Future(const Future& other) noexcept : Future(other.state_) {}
  Future(Future&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Future& operator=(Future other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Future() {
    if (state_ != nullptr) state_->release();
  }

  explicit operator bool() const noexcept { return state_ != nullptr; }
  bool done() const noexcept { return state_->done(); }
  bool cancelled() const noexcept { return state_->state() == detail::FutureState::cancelled; }
  // False when it was done already.
  bool cancel(std::string message = {}) { return state_->cancel(std::move(message)); }

  template <class... Value>
  void set_result(Value&&... value) {
    state_->template set_result<T>(std::forward<Value>(value)...);
  }
  void set_exception(std::exception_ptr exception) { state_->fail(std::move(exception)); }
  template <class E>
  void set_exception(E exception) {
    state_->fail(std::make_exception_ptr(std::move(exception)));
  }

  // The value, or what was thrown; InvalidStateError while pending, CancelledError when cancelled.
  decltype(auto) result() const {
    state_->rethrow_unless_ready();
    if constexpr (!std::is_void_v<T>) return static_cast<const T&>(*detail::slot_of<T>(*state_).value);
  }
  // The thrown exception, null without one; InvalidStateError while pending, CancelledError when cancelled.
  std::exception_ptr exception() const { return state_->exception(); }

  // Calls `function` through call_soon once done, in the order added; cancel() of the handle takes it back.
  Handle add_done_callback(std::move_only_function<void()> function,
                           const std::source_location& where = std::source_location::current()) {
    return state_->add_done_callback(std::move(function), where);
  }
  template <CoroFunction F, class... Where>
  void add_done_callback(F, Where...) ARGIOPE_NO_CORO_FUNCTION;

  // For waits, not for everyday use.
  detail::FutureCore* core() const noexcept { return state_; }

  auto operator co_await() const& noexcept {
    struct Awaiter : detail::FutureWaiter {
      using detail::FutureWaiter::FutureWaiter;
      decltype(auto) get() {
        this->finish();
        this->core->rethrow_unless_ready();
        if constexpr (!std::is_void_v<T>) return static_cast<const T&>(*detail::slot_of<T>(*this->core).value);
      }
      decltype(auto) await_resume() { return get(); }
      [[nodiscard(ARGIOPE_UNREAD_RESULT)]] decltype(auto) await_resume() requires detail::kIsResult<T> { return get(); }
    };
    return Awaiter{*state_};
  }
  auto operator co_await() && noexcept {
    struct Awaiter : detail::FutureWaiter {
      using detail::FutureWaiter::FutureWaiter;
      T get() {
        this->finish();
        this->core->rethrow_unless_ready();
        if constexpr (!std::is_void_v<T>) return std::move(*detail::slot_of<T>(*this->core).value);
      }
      T await_resume() { return get(); }
      [[nodiscard(ARGIOPE_UNREAD_RESULT)]] T await_resume() requires detail::kIsResult<T> { return get(); }
    };
    return Awaiter{*state_};
  }

 protected:
  detail::FutureCore* state_ = nullptr;
};

// A coroutine scheduled on a loop. It runs whether or not the handle is kept; its exception, if it is never
// asked for, goes to the loop's exception handler.
template <class T>
class Task : public Future<T> {
 public:
  Task() = default;
  explicit Task(detail::TaskState<T>* state) noexcept : Future<T>(state) {}

  std::string_view name() const noexcept { return this->state_->name(); }
  // How many cancel() calls have not been taken back by uncancel().
  int cancelling() const noexcept { return task_core().cancelling(); }
  // Takes one back, as code does that caused it and has dealt with it; how many remain.
  int uncancel() noexcept { return task_core().uncancel(); }
  // For waits, not for everyday use.
  detail::TaskCore& task_core() const noexcept { return static_cast<detail::TaskCore&>(*this->state_); }

  // A task's result is its coroutine's to set.
  template <class... Value>
  void set_result(Value&&...) = delete;
  template <class E>
  void set_exception(E) = delete;
};

// A task whose result type does not matter: what current_task() and all_tasks() give.
//
// Suspends: co_await, until it has ended; throws what the task threw.
// Cancel:   cancelling the awaiting task cancels the task.
// Lifetime: as a Task.
// Threads:  the loop's own.
class AnyTask {
 public:
  AnyTask() = default;
  explicit AnyTask(detail::TaskCore& task) noexcept : task_(&task) { task_->retain(); }
  template <class T>
  AnyTask(const Task<T>& task) noexcept : AnyTask(task.task_core()) {}
  AnyTask(const AnyTask& other) noexcept : task_(other.task_) {
    if (task_ != nullptr) task_->retain();
  }
  AnyTask(AnyTask&& other) noexcept : task_(std::exchange(other.task_, nullptr)) {}
  AnyTask& operator=(AnyTask other) noexcept {
    std::swap(task_, other.task_);
    return *this;
  }
  ~AnyTask() {
    if (task_ != nullptr) task_->release();
  }

  explicit operator bool() const noexcept { return task_ != nullptr; }
  // The same task, not the same result.
  bool operator==(const AnyTask&) const = default;

  // As of Task.
  std::string_view name() const noexcept { return core()->name(); }
  bool done() const noexcept { return core()->done(); }
  bool cancelled() const noexcept { return core()->state() == detail::FutureState::cancelled; }
  bool cancel(std::string message = {}) { return core()->cancel(std::move(message)); }
  int cancelling() const noexcept { return task_->cancelling(); }
  int uncancel() noexcept { return task_->uncancel(); }
  std::exception_ptr exception() const { return core()->exception(); }
  Handle add_done_callback(std::move_only_function<void()> function,
                           const std::source_location& where = std::source_location::current()) {
    return core()->add_done_callback(std::move(function), where);
  }
  template <CoroFunction F, class... Where>
  void add_done_callback(F, Where...) ARGIOPE_NO_CORO_FUNCTION;
  detail::FutureCore* core() const noexcept { return task_; }

  auto operator co_await() const noexcept {
    struct Awaiter : detail::FutureWaiter {
      using detail::FutureWaiter::FutureWaiter;
      void await_resume() {
        this->finish();
        this->core->rethrow_unless_ready();
      }
    };
    return Awaiter{*core()};
  }

 private:
  detail::TaskCore* task_ = nullptr;
};

// The task that is running; an empty one in a callback. Throws std::logic_error when no loop runs on this thread.
AnyTask current_task();
// The tasks of the running loop that have not ended, oldest first. Throws std::logic_error when none runs.
std::vector<AnyTask> all_tasks();

template <class T>
Future<T> EventLoop::create_future() {
  return Future<T>{new detail::FutureStateOf<T>(*this)};
}

template <class T>
Task<T> EventLoop::create_task(Coro<T> coro, std::string_view name, Start start, const std::source_location& where) {
  if (!coro) throw std::invalid_argument("create_task of an empty coroutine");
  check_thread();
  reserve_ready();
  auto root = coro.release();
  root.promise().set_outermost(where);
  detail::TaskState<T>* state = nullptr;
  try {
    state = new detail::TaskState<T>(*this, root, name);
  } catch (...) {
    root.destroy();
    throw;
  }
  Task<T> task{state};
  adopt(*state, start);
  return task;
}

template <CoroFunction F>
Task<detail::FunctionValue<F>> EventLoop::create_task(F function, std::string_view name, Start start,
                                                      const std::source_location& where) {
  return create_task(detail::keeping(std::move(function)), name, start, where);
}

template <CoroFunction F>
detail::FunctionValue<F> EventLoop::run_until_complete(F function, const std::source_location& where) {
  return run_until_complete(detail::keeping(std::move(function)), where);
}

template <class T>
T EventLoop::run_until_complete(Coro<T> coro, const std::source_location& where) {
  require_idle();
  return run_until_complete(static_cast<Future<T>&&>(create_task(std::move(coro), {}, Start::next_turn, where)));
}

template <class T>
T EventLoop::run_until_complete(Future<T> future) {
  require_idle();
  // Taken back however this ends, or a task left over would stop a later run.
  struct StopWhenDone {
    Handle handle;
    ~StopWhenDone() { handle.cancel(); }
  } const stop_when_done{future.add_done_callback([this] { stop(); })};
  run_until_stopped();
  if (!future.done()) throw std::runtime_error("event loop stopped before the awaited coroutine ended");
  if constexpr (std::is_void_v<T>) {
    future.result();
  } else {
    return std::move(const_cast<T&>(future.result()));
  }
}

}  // namespace argiope
