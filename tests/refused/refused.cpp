// Programs that the compiler refuses, each with what it says to do. Read by clang's -verify (async.refused): every
// error has to be one that is expected here. Notes are left out. Each expectation stands on the line of its error.
// clang-format off
#include "argiope/async.hpp"

using namespace argiope;
using namespace std::chrono_literals;

Coro<int> work();
Coro<int> work_on(int number);
Coro<Result<int>> try_work();

Coro<void> awaits_a_named_coroutine() {
  Coro<int> named = work();
  co_await named;  // expected-error {{a Coro is awaited once: write co_await std::move(coro), or make it a task}}
}

Coro<void> passes_a_named_coroutine_on() {
  Coro<int> named = work();
  co_await gather(named, work());  // expected-error {{a Coro runs once: pass it on with std::move(coro)}}
  co_await wait_for(named, 1s);    // expected-error {{a Coro runs once: pass it on with std::move(coro)}}
}

Coro<void> forgets_the_arguments() {
  EventLoop::current().create_task(work);
  EventLoop::current().create_task(work_on);  // expected-error {{create_task takes a Coro, or a function without parameters that returns one}}
  EventLoop::current().create_task(std::bind_front(work_on, 1), "with it");
  co_await TaskGroup::run([](TaskGroup& group) {
    group.create_task(work);
    group.create_task(work_on);  // expected-error {{create_task takes what can be awaited (a Coro, a Task, a Future, or}}
    group.create_task(std::bind_front(work_on, 1));
  });
}
Coro<void> makes_a_task_of_an_ordinary_function() {
  EventLoop::current().create_task([] { return 1; });  // expected-error {{create_task takes a Coro, or a function}}
  co_await TaskGroup::run([](TaskGroup& group) {
    group.create_task([] {});  // expected-error {{create_task takes what can be awaited}}
  });
}
void runs_an_ordinary_function() {
  run([] { return 1; });  // expected-error {{run takes a Coro, or a function that returns one: run(amain()), run(amain)}}
}

Coro<void> has_a_coroutine_called_that_nobody_awaits() {
  EventLoop& loop = EventLoop::current();
  loop.call_soon(work);                           // expected-error {{which nobody would await: make it a task}}
  loop.call_later(1s, [] { return work_on(1); });  // expected-error {{which nobody would await: make it a task}}
  loop.call_at(loop.time(), work);                // expected-error {{which nobody would await: make it a task}}
  loop.call_soon_threadsafe(work);                // expected-error {{which nobody would await: make it a task}}
  Task<int> task = loop.create_task(work);
  task.add_done_callback(work);                   // expected-error {{which nobody would await: make it a task}}
  AnyTask(task).add_done_callback(work);          // expected-error {{which nobody would await: make it a task}}
  co_await task;
}

Coro<void> has_a_body_that_returns_something_else() {
  co_await TaskGroup::run([](TaskGroup&) { return 1; });  // expected-error {{returns Coro<void> or nothing}}
}

Coro<void> leaves_the_unit_out() {
  co_await sleep(1);                // expected-error {{write 1s, 50ms or 2min, and 500ms for 0.5s}}
  co_await sleep(0.5s);             // expected-error {{write 1s, 50ms or 2min}}
  co_await argiope::sleep(1u);      // expected-error {{write 1s, 50ms or 2min}}
  co_await sleep(1u);               // expected-error {{call to 'sleep' is ambiguous}}
  co_await wait_for(work(), 50);    // expected-error {{write 1s, 50ms or 2min}}
  co_await wait_for(work(), 0.5s);  // expected-error {{write 1s, 50ms or 2min}}
  co_await timeout(2).run(work());  // expected-error {{write 1s, 50ms or 2min}}
  std::vector<Task<int>> tasks;
  co_await wait(tasks, When::all_completed, 1);                // expected-error {{write 1s, 50ms or 2min}}
  AsCompleted<Task<int>> one_by_one = as_completed(tasks, 1);  // expected-error {{write 1s, 50ms or 2min}}
  EventLoop::current().call_later(1, [] {});                   // expected-error {{write 1s, 50ms or 2min}}
  EventLoop::current().set_slow_callback_duration(1);          // expected-error {{write 1s, 50ms or 2min}}
}
int leaves_the_unit_out_in_a_thread(ThreadsafeFuture<int> future) {
  return future.get(5);  // expected-error {{write 1s, 50ms or 2min}}
}

Coro<int> passes_an_error_on_where_none_is_returned() {
  co_return co_await or_return(try_work());
  // expected-error@argiope/async/coro.hpp:* {{that coroutine has to return a Coro<Result<T>>; in others write value_or_throw(co_await ...)}}
}
