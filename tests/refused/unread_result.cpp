// As refused.cpp: what awaiting a Result says where it is dropped, which is a warning that this test makes an error.
#include "argiope/async.hpp"

using namespace argiope;
using namespace std::chrono_literals;

Coro<int> work();
Coro<Result<int>> try_work();
Coro<Result<void>> try_it();

Coro<void> drops_errors() {
  co_await try_work();              // expected-error {{its error is lost: write value_or_throw(co_await ...)}}
  co_await try_it();                // expected-error {{its error is lost}}
  co_await wait_for(try_it(), 1s);  // expected-error {{its error is lost}}
  Task<Result<void>> task = EventLoop::current().create_task(try_it());
  co_await task;             // expected-error {{its error is lost}}
  co_await shield(task);     // expected-error {{its error is lost}}
  co_await std::move(task);  // expected-error {{its error is lost}}
}

Coro<Result<void>> drops_none() {
  co_await work();
  co_await or_return(try_work());
  value_or_throw(co_await try_it());
  static_cast<void>(co_await try_it());
  co_return co_await try_it();
}
