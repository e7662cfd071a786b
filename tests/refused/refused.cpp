// Programs that the compiler refuses, each with what it says to do. Read by clang's -verify (async.refused): every error has to
// be one that is expected here. Notes are left out.
#include "argiope/async.hpp"

using namespace argiope;
using namespace std::chrono_literals;

Coro<int> work();
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

Coro<void> forgets_to_call() {
  EventLoop::current().create_task(work);  // expected-error {{create_task takes a Coro: call the function}}
  co_await TaskGroup::run([](TaskGroup& group) {
    group.create_task(work);  // expected-error {{create_task takes what can be awaited: a Coro (call the function}}
  });
}
void forgets_to_call_main() {
  run(work);  // expected-error {{run takes a Coro: call the function that returns it, run(amain())}}
}

Coro<void> has_a_body_that_returns_something_else() {
  co_await TaskGroup::run([](TaskGroup&) { return 1; });  // expected-error {{returns Coro<void> or nothing}}
}

Coro<int> passes_an_error_on_where_none_is_returned() {
  co_return co_await or_return(try_work());
  // expected-error@argiope/async/or_return.hpp:* {{that coroutine has to return a Coro<Result<T>>; in others write value_or_throw(co_await ...)}}
}
