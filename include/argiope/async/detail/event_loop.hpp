// EventLoop: one thread's scheduler of tasks, callbacks and timers, with asyncio's vocabulary.
//
// A ring of what is ready, a heap of timers, and an IoBackend below. Tasks and futures are explained in future.hpp; the
// things they wait for (sleep, queues, locks) are built on detail::Waiter, whose links live in the waiting coroutine's
// own frame, so that no step allocates.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/async/detail/pace.hpp"
#include "argiope/async/io_backend.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/detail/intrusive_list.hpp"
#include "argiope/base/detail/ring_buffer.hpp"
#include "argiope/base/random.hpp"

// Deleted for what is no Duration, with what to write.
#define ARGIOPE_SAY_THE_UNIT                                                                \
  ARGIOPE_DELETED(                                                                          \
      "a time is a whole number with its unit: write 1s, 50ms or 2min, and 500ms for 0.5s " \
      "(using namespace std::chrono_literals)")

namespace argiope {

class AnyTask;
class Event;
class EventLoop;
class Handle;
class ThreadPoolExecutor;
template <class T>
class Future;
template <class T>
class Task;

namespace detail {

// A number, and 0.5s, which would have to be rounded.
template <class T>
concept NoDuration = !std::is_convertible_v<T, Duration>;

class TaskCore;
class FutureCore;
class Descriptors;
struct Callback;
struct LoopLife;

// An entry of the ready ring: a task to step or a callback to call, told apart by the lowest bit.
class Runnable {
 public:
  Runnable() = default;
  explicit Runnable(TaskCore* task) noexcept : bits_(reinterpret_cast<std::uintptr_t>(task)) {}
  explicit Runnable(Callback* callback) noexcept : bits_(reinterpret_cast<std::uintptr_t>(callback) | 1) {}
  explicit operator bool() const noexcept { return bits_ != 0; }
  // Only the right one of task() and callback() may be asked for.
  bool is_task() const noexcept { return (bits_ & 1) == 0; }
  TaskCore* task() const noexcept { return reinterpret_cast<TaskCore*>(bits_); }
  Callback* callback() const noexcept { return reinterpret_cast<Callback*>(bits_ & ~std::uintptr_t{1}); }

 private:
  std::uintptr_t bits_ = 0;
};

// One wait of one task (or a callback waiting to be due). Lives in the frame of the coroutine that waits, linked into
// the list of whatever it waits for; being destroyed unlinks it.
struct Waiter : ListHook {
  Runnable target;
  // The way to cancel the waiting task; null: unlink and throw CancelledError at the await point. It may run more
  // than once, and must not resume the task, only make it ready. After wake_served() the task is ready already: it then
  // takes back what was granted and calls cancel_served(), or calls cancel_late().
  void (*on_cancel)(Waiter&) = nullptr;
};

// A wait with a deadline, in the loop's timer heap from arm() until it fires or is disarmed.
struct TimerNode : Waiter {
  static constexpr std::uint32_t kUnarmed = ~0u;
  TimerNode() = default;
  ~TimerNode();
  EventLoop* armed_on = nullptr;
  std::uint32_t heap_index = kUnarmed;
};

// A function to call once, shared by the loop (or the future it waits for) and the Handle its caller keeps.
struct Callback final : TimerNode {
  ~Callback();
  std::move_only_function<void()> function;
  // The future whose end it was told of, kept alive until it has run.
  FutureCore* about = nullptr;
  std::source_location created_at;
  std::uint32_t references = 1;
  bool cancelled = false;
};

// The present work of the running thread.
struct ThreadState {
  EventLoop* loop = nullptr;
  TaskCore* task = nullptr;
  // Awaits that may still complete without suspending before the task is made to yield.
  int budget = 0;
};
extern constinit thread_local ThreadState this_thread;

// Every await that completes at once asks this first; false means: go to the back of the ready ring, so that a task
// which never waits for real cannot starve the others or I/O.
inline bool may_go_on() noexcept { return --this_thread.budget > 0; }
inline constexpr int kStepBudget = 128;

// The default exception handler.
void log_exception(std::string_view where, const std::exception_ptr& exception);

}  // namespace detail

// A callback scheduled by call_soon, call_later, call_at or add_done_callback. Dropping the handle does not cancel.
// Lifetime: may outlive its loop.
// Threads:  the loop's own.
class Handle {
 public:
  Handle() = default;
  explicit Handle(detail::Callback* callback) noexcept;
  Handle(const Handle& other) noexcept : Handle(other.callback_) {}
  Handle(Handle&& other) noexcept : callback_(std::exchange(other.callback_, nullptr)) {}
  Handle& operator=(Handle other) noexcept {
    std::swap(callback_, other.callback_);
    return *this;
  }
  ~Handle();

  // The callback will not run, and what it captured is freed; harmless when it has run or was cancelled before.
  void cancel() noexcept;
  // True when cancel() came before it ran.
  bool cancelled() const noexcept { return callback_ != nullptr && callback_->cancelled; }

 private:
  detail::Callback* callback_ = nullptr;
};

// When a task makes its first step: when its turn comes, or within create_task, until its first wait.
enum class Start : std::uint8_t { next_turn, eagerly };

// Threads: a loop and everything bound to it belong to the thread that runs it, except where a member says otherwise.
// Order:   what is ready runs first come, first served; timers of one instant fire in the order they were armed.
//          A loop that always has something ready looks at I/O, timers and other threads every 0.1 ms or so, between
//          two rounds of what is ready: what has come from there runs before what was made ready meanwhile.
class EventLoop {
 public:
  // `backend` must outlive the loop.
  explicit EventLoop(IoBackend& backend);
  // Destroys what has not finished: the frames of tasks are unwound without running further, oldest task first, and
  // callbacks are dropped. For an orderly end call cancel_all_tasks() and run until task_count() is 0.
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // The loop that is running on this thread. Throws std::logic_error when none is.
  static EventLoop& current();

  // Schedules `coro` as a task, to start at the next turn. The loop keeps it alive until it ends.
  // Start::eagerly runs it until its first wait before this returns; the task may then be done already. While the
  // loop is not running, even that starts at the next turn.
  // Errors: std::invalid_argument when `coro` is empty; std::bad_alloc, with the loop intact.
  template <class T>
  Task<T> create_task(Coro<T> coro, std::string_view name = {}, Start start = Start::next_turn,
                      const std::source_location& where = std::source_location::current());
  // The same for a function that returns one, which the task keeps.
  template <CoroFunction F>
  Task<detail::FunctionValue<F>> create_task(F function, std::string_view name = {}, Start start = Start::next_turn,
                                             const std::source_location& where = std::source_location::current());
  template <class F, class... Options>
  requires(!CoroFunction<F> && !detail::IsCoro<F>) void create_task(F, Options...) ARGIOPE_DELETED(
      "create_task takes a Coro, or a function without parameters that returns one: create_task(work(1)), "
      "create_task([=]() -> Coro<void> { co_await work(1); }), create_task(std::bind_front(work, 1))");
  template <class T>
  Future<T> create_future();

  // Calls `function` at the next turn / after `delay` / at `when` on the loop's clock.
  // An exception from it goes to the exception handler.
  Handle call_soon(std::move_only_function<void()> function,
                   const std::source_location& where = std::source_location::current());
  Handle call_later(Duration delay, std::move_only_function<void()> function,
                    const std::source_location& where = std::source_location::current());
  template <detail::NoDuration T>
  void call_later(T, std::move_only_function<void()>) ARGIOPE_SAY_THE_UNIT;
  Handle call_at(TimePoint when, std::move_only_function<void()> function,
                 const std::source_location& where = std::source_location::current());
  // As call_soon, from any thread; wakes the loop. Functions of one thread run in its order.
  void call_soon_threadsafe(std::move_only_function<void()> function);
  template <CoroFunction F, class... Where>
  void call_soon(F, Where...) ARGIOPE_NO_CORO_FUNCTION;
  template <CoroFunction F, class... Where>
  void call_later(Duration, F, Where...) ARGIOPE_NO_CORO_FUNCTION;
  template <CoroFunction F, class... Where>
  void call_at(TimePoint, F, Where...) ARGIOPE_NO_CORO_FUNCTION;
  template <CoroFunction F>
  void call_soon_threadsafe(F) ARGIOPE_NO_CORO_FUNCTION;

  // Runs until `coro` has ended and returns what it returned or throws what it threw. Other tasks that are still
  // unfinished stay, and go on in the next run.
  // Errors: DeadlockError from a virtual backend; std::runtime_error when stop() was called before the end (`coro`
  //         then stays a task); std::logic_error when the loop is running already.
  template <class T>
  T run_until_complete(Coro<T> coro, const std::source_location& where = std::source_location::current());
  template <CoroFunction F>
  detail::FunctionValue<F> run_until_complete(F function,
                                              const std::source_location& where = std::source_location::current());
  // The same for a future of this loop, whose value is moved out.
  template <class T>
  T run_until_complete(Future<T> future);
  // Runs until stop().
  void run_forever();
  // Ends run_forever or run_until_complete after the current turn. Called before them, it lets them make one turn
  // without waiting, as in asyncio.
  void stop() noexcept { stopping_ = true; }
  bool is_running() const noexcept { return running_; }

  // One turn, for a foreign loop that drives this one: runs what is ready, or waits for it until `limit` at most; a
  // limit that has passed means do not wait. Throws std::logic_error when the loop is running already.
  void run_once(TimePoint limit);
  // When run_once would have something to do without I/O: now if something is ready or came from another thread or a
  // signal, else the first timer, else kNever.
  TimePoint next_deadline() const noexcept;

  TimePoint time() const noexcept { return clock_.now(); }
  const Clock& clock() const noexcept { return clock_; }
  IoBackend& backend() noexcept { return backend_; }

  // Cancels every task that has not ended. They end in the turns that follow.
  void cancel_all_tasks();
  std::size_t task_count() const noexcept { return task_count_; }
  // Those that have not ended, oldest first.
  std::vector<AnyTask> all_tasks();

  // Where to_thread runs: made when first asked for, with four threads more than the machine has processors, 32 at
  // most; the loop's destructor finishes its work. To be replaced before it is used. A function on it that waits for
  // this loop must have ended before the destructor: shut the executor down while the loop runs, as a Runner does.
  // Errors: std::logic_error after shutdown_default_executor(), and when replaced after use.
  ThreadPoolExecutor& default_executor();
  void set_default_executor(std::unique_ptr<ThreadPoolExecutor> executor);
  // Takes no more work for it, and suspends until its threads have finished what they had.
  // Cancel: throws CancelledError when they have finished; until then the loop stands still.
  Coro<void> shutdown_default_executor();

  // Runs `function` on the loop's thread whenever the process gets `signal_number`; replaces an earlier one. Several
  // signals of one number that come before it runs are one.
  // Errors: std::logic_error when another loop handles this signal; std::invalid_argument for what is no signal;
  //         std::system_error when it cannot be handled (SIGKILL).
  void add_signal_handler(int signal_number, std::function<void()> function);
  // Restores the signal's default disposition.
  void remove_signal_handler(int signal_number);

  // Calls `function` whenever `fd` can be read (written) without blocking: at the end of input, a hang-up or an error
  // too. As asyncio's: it is told again for as long as that lasts, one function a descriptor and direction, a later one
  // replaces an earlier. Remove it before closing the descriptor, which stays the caller's and is non-blocking
  // meanwhile. An exception from it goes to the exception handler.
  // Errors: std::system_error when `fd` is not open, or is watched already; std::invalid_argument for an empty
  //         function; std::logic_error when a task waits for the same at this descriptor (readable(), writable()), and
  //         on a backend without I/O.
  void add_reader(int fd, std::function<void()> function);
  void add_writer(int fd, std::function<void()> function);
  // False when there was none. It does not run any more, even if the descriptor was found ready already.
  bool remove_reader(int fd) noexcept;
  bool remove_writer(int fd) noexcept;

  // Gets exceptions that nothing else catches: from callbacks, and from tasks whose result was never asked for.
  // The default logs them as errors.
  using ExceptionHandler = std::function<void(std::string_view where, const std::exception_ptr& exception)>;
  void set_exception_handler(ExceptionHandler handler) { exception_handler_ = std::move(handler); }
  void handle_exception(std::string_view where, const std::exception_ptr& exception) noexcept;

  // Debug mode, for finding mistakes. It warns, by the warning handler, about every task's step and callback that
  // takes slow_callback_duration() or longer on the loop's clock, and about tasks the loop's end finds unfinished, each
  // with where it was created. A call from a wrong thread throws std::logic_error, or, where it wakes a waiter (of an
  // Event, a Queue), is warned about on that thread. A turn then runs what was ready when it began, and nothing else.
  // Of a coroutine that was never awaited it warns each time; without debug mode the loop warns once for each place in
  // the source, and where no loop runs, the default handler does. None is forgotten that is destroyed by an exception
  // on its way, or with a task or loop that ends before it has come to await it.
  // Cost: nothing while it is off.
  void set_debug(bool on);
  bool get_debug() const noexcept { return debug_; }
  void set_slow_callback_duration(Duration at_least);
  template <detail::NoDuration T>
  void set_slow_callback_duration(T) ARGIOPE_SAY_THE_UNIT;
  Duration slow_callback_duration() const noexcept;
  // The default logs them as warnings.
  using WarningHandler = std::function<void(std::string_view message)>;
  void set_warning_handler(WarningHandler handler);
  void warn(std::string_view message) noexcept;
  void warn_of_unawaited(const std::source_location& created_at) noexcept;

  // For finding races: the tasks that are ready at the start of a turn run in an order drawn from `random`, the same
  // for every run with the same seed; callbacks keep their places. Nothing ends it.
  // Cost: nothing unless it is called.
  void shuffle_ready_tasks(Random random);
  // For tests that act between two steps: called before each step of a task and each callback. Empty: none.
  void set_step_hook(std::function<void()> hook);

  // For waits and executors, not for everyday use.
  void make_ready(detail::Runnable runnable) noexcept { ready_.push_back(runnable); }
  // Wakes what `waiter` stands for; it is unlinked first.
  void wake(detail::Waiter& waiter) noexcept;
  // Wakes the task of a waiter that was granted what it waited for. Until it runs on, cancelling it calls on_cancel.
  void wake_served(detail::Waiter& waiter) noexcept {
    if (debug_) [[unlikely]]
      warn_of_wrong_thread();
    make_ready(waiter.target);
  }
  void arm(detail::TimerNode& node, TimePoint when);
  void disarm(detail::TimerNode& node) noexcept;
  detail::Callback& new_callback(std::move_only_function<void()> function, const std::source_location& where);
  void forget_callback(detail::Callback& callback) noexcept;
  // For what may outlive its loop (LoopRef).
  const std::shared_ptr<detail::LoopLife>& life() const noexcept { return life_; }
  // For the same. Any thread, though a loop may end right after on another.
  static bool is_alive(const EventLoop* loop) noexcept;
  void adopt(detail::TaskCore& task, Start start);
  void disown(detail::TaskCore& task) noexcept;
  // Between these two, another thread owes the loop a call_soon_threadsafe.
  void begin_outside_work() noexcept { ++outside_work_; }
  void end_outside_work() noexcept { --outside_work_; }
  // In debug mode, throws std::logic_error when the loop is running on another thread than the caller's.
  void check_thread() const {
    if (debug_) [[unlikely]]
      require_own_thread();
  }
  // From a signal handler only.
  void note_signal(int signal_number) noexcept;
  // The right to wait for `interest` at `fd`, for one task at a time; as add_reader where it fails.
  Watch& claim(int fd, Interest interest);
  void give_up(int fd, Interest interest) noexcept;

 private:
  struct TimerEntry {
    TimePoint when;
    std::uint64_t sequence;
    detail::TimerNode* node;
    bool before(const TimerEntry& other) const noexcept {
      return when != other.when ? when < other.when : sequence < other.sequence;
    }
  };

  // The state that debug mode and shuffling need; made when first asked for.
  struct Checks;
  class Running;

  Checks& checks();
  void decide_whether_checked() noexcept;
  void run_ready_checked();
  void run_checked(detail::Runnable next);
  void shuffle_ready(std::size_t count);
  void require_own_thread() const;
  void warn_of_wrong_thread() noexcept;
  void require_idle() const;
  void run_until_stopped();
  void turn(TimePoint limit);
  void begin_epoch() noexcept;
  void put_before_recent(std::size_t outside) noexcept;
  void run_ready();
  void step(detail::TaskCore& task);
  void start_eagerly(detail::TaskCore& task);
  void finish(detail::TaskCore& task);
  void call(detail::Callback& callback) noexcept;
  void abandon_tasks() noexcept;
  void discard_callbacks() noexcept;
  void discard_inbox() noexcept;
  void discard(detail::Callback& callback) noexcept;
  void fire_timers();
  void take_from_outside();
  void drain_other_threads();
  void drain_signals();
  detail::Descriptors& descriptors();
  void reserve_ready();
  void sift_up(std::size_t index, TimerEntry entry) noexcept;
  void sift_down(std::size_t index, TimerEntry entry) noexcept;

  IoBackend& backend_;
  const Clock& clock_;
  const std::shared_ptr<detail::LoopLife> life_;
  // Never grows while something is made ready: room for every task and callback is reserved when it is created.
  RingBuffer<detail::Runnable> ready_;
  std::vector<TimerEntry> timers_;
  std::uint64_t timer_sequence_ = 0;
  IntrusiveList<detail::TaskCore> tasks_;
  std::size_t task_count_ = 0;
  std::size_t callback_count_ = 0;
  int outside_work_ = 0;
  detail::Pace pace_;
  // Whether to look at the backend before the next steps.
  bool look_is_due_ = false;
  // An epoch lasts from one arrival from outside to the next: how many were ready when it began, and have run since.
  std::size_t ready_at_epoch_ = 0;
  std::size_t steps_in_epoch_ = 0;
  bool running_ = false;
  bool stopping_ = false;
  bool debug_ = false;
  // Whether turns go the way of checks_.
  bool checked_ = false;
  std::unique_ptr<Checks> checks_;
  // The state of the thread that runs the loop, null while none does.
  std::atomic<const detail::ThreadState*> running_on_{nullptr};
  ExceptionHandler exception_handler_;
  // Made when it is first needed.
  std::unique_ptr<detail::Descriptors> descriptors_;
  std::vector<std::pair<int, std::function<void()>>> signal_handlers_;
  std::unique_ptr<ThreadPoolExecutor> default_executor_;
  std::shared_ptr<Event> executor_finished_;
  bool executor_closed_ = false;

  std::mutex inbox_mutex_;
  std::vector<std::move_only_function<void()>> inbox_;
  std::atomic<bool> inbox_filled_{false};
  std::atomic<std::uint64_t> pending_signals_{0};
};

// Goes to the back of the ready ring: everything else that is ready runs first.
struct YieldNow {
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> self) const noexcept;
  void await_resume() const;
};
inline YieldNow yield_now() noexcept { return {}; }

}  // namespace argiope
