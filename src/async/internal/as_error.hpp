// as_error: for tasks that go on for as long as their program does, and that nobody awaits meanwhile. An exception
// would end such a task, and be told when the program ends; as an error it is told at once, and the task goes on.
#pragma once

#include <exception>
#include <utility>

#include "argiope/async/detail/future.hpp"
#include "argiope/base/error.hpp"

namespace argiope {

// An exception of `work` becomes Errc::internal with its text. CancelledError is passed on.
template <class T>
Coro<Result<T>> as_error(Coro<Result<T>> work) {
  try {
    co_return co_await std::move(work);
  } catch (const CancelledError&) {
    throw;
  } catch (const std::exception& error) {
    co_return fail(Errc::internal, error.what());
  }
}

}  // namespace argiope
