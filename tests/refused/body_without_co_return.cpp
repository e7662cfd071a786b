// As refused.cpp; apart from it, because compilers look for missing returns only where there is no other error.
#include "argiope/async.hpp"

using namespace argiope;

Coro<int> work();

Coro<void> has_a_body_without_co_return() {
  co_await TaskGroup::run([](TaskGroup& group) -> Coro<void> {
    group.create_task(work());
  });  // expected-error {{non-void lambda does not return a value}}
}
