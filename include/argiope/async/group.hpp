// Running several coroutines at once: gather and TaskGroup, with asyncio's rules.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"

namespace argiope {

// What a TaskGroup throws: every exception of its tasks and body, in the order they happened.
class ExceptionGroup : public std::runtime_error {
 public:
  explicit ExceptionGroup(std::vector<std::exception_ptr> exceptions);
  const std::vector<std::exception_ptr>& exceptions() const noexcept { return exceptions_; }

 private:
  std::vector<std::exception_ptr> exceptions_;
};

namespace detail {

// Suspends until all futures are done, or one has failed; then throws what that one did. When the calling task is
// cancelled, cancels them all, waits until each has ended, and throws CancelledError.
Coro<void> all_done_or_first_failed(std::vector<FutureCore*> futures);

}  // namespace detail

// Runs all of them as tasks, which start when the gather is awaited; their values in the order given.
// Errors: the first exception any of them throws, at once; the others run on, and what they throw later is dropped. A
//         cancelled one throws CancelledError.
// Cancel: cancels them all, and throws CancelledError when all have ended.
template <class T>
Coro<std::vector<T>> gather(std::vector<Coro<T>> coros) {
  std::vector<Task<T>> tasks;
  std::vector<detail::FutureCore*> cores;
  tasks.reserve(coros.size());
  cores.reserve(coros.size());
  for (Coro<T>& coro : coros) {
    tasks.push_back(EventLoop::current().create_task(std::move(coro)));
    cores.push_back(tasks.back().core());
  }
  co_await detail::all_done_or_first_failed(std::move(cores));
  std::vector<T> values;
  values.reserve(tasks.size());
  for (Task<T>& task : tasks) values.push_back(co_await std::move(task));
  co_return values;
}

Coro<void> gather(std::vector<Coro<void>> coros);

// The same for coroutines of different types; the value of a Coro<void> is std::monostate.
template <class... Ts>
auto gather(Coro<Ts>... coros) -> Coro<std::tuple<std::conditional_t<std::is_void_v<Ts>, std::monostate, Ts>...>> {
  std::tuple<Task<Ts>...> tasks{EventLoop::current().create_task(std::move(coros))...};
  std::vector<detail::FutureCore*> cores =
      std::apply([](auto&... task) { return std::vector<detail::FutureCore*>{task.core()...}; }, tasks);
  co_await detail::all_done_or_first_failed(std::move(cores));
  co_return std::apply(
      [](auto&... task) {
        auto value_of = []<class T>(Task<T>& t) {
          if constexpr (std::is_void_v<T>) {
            t.result();
            return std::monostate{};
          } else {
            return std::move(const_cast<T&>(t.result()));
          }
        };
        return std::tuple{value_of(task)...};
      },
      tasks);
}

// A scope that does not end before every task started in it has.
//
//   co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
//     group.create_task(first());
//     group.create_task(second());
//     co_return;
//   });
//
// Errors: when a task or the body throws anything but CancelledError, the others are cancelled, and run() throws an
//         ExceptionGroup after all have ended. A task that ends cancelled is no failure.
// Cancel: cancels the tasks, waits for them, and throws CancelledError; or the ExceptionGroup, when something failed
//         meanwhile, and CancelledError at the caller's next await.
// Threads: the loop's own.
class TaskGroup {
 public:
  using Body = std::function<Coro<void>(TaskGroup&)>;
  // Suspends until the body and all tasks have ended.
  static Coro<void> run(Body body);

  // Starts a task in the group. Throws std::logic_error when the group is being cancelled or has ended.
  template <class T>
  Task<T> create_task(Coro<T> coro, std::string_view name = {}) {
    require_open();
    Task<T> task = EventLoop::current().create_task(std::move(coro), name);
    watch(*task.core());
    return task;
  }

  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

 private:
  struct Member : ListHook {
    detail::FutureCore* future = nullptr;
  };

  TaskGroup() = default;
  Coro<void> run_body(Body& body);
  void require_open() const;
  void watch(detail::FutureCore& future);
  void on_done(Member& member);
  void abort() noexcept;

  detail::TaskCore* parent_ = nullptr;
  IntrusiveList<Member> members_;
  Event idle_;
  std::vector<std::exception_ptr> exceptions_;
  bool body_ended_ = false;
  bool aborting_ = false;
  bool cancelled_parent_ = false;
};

}  // namespace argiope
