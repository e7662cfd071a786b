// read_apart(): reads a long body on another thread, so that the loop has turns for others meanwhile.
#pragma once

#include <cstddef>
#include <exception>
#include <utility>

#include "argiope/async/coro.hpp"
#include "argiope/async/group.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/async/threads.hpp"
#include "serve/api/api_call.hpp"

namespace argiope {

// Shorter ones are read within a few milliseconds.
inline constexpr std::size_t kLongBody = std::size_t{128} * 1024;

// How many long bodies are parsed text at a time: each takes several times its bytes, so that all of them together
// would take more than a machine has.
inline constexpr std::ptrdiff_t kLongBodiesAtOnce = 2;

// Calls `read()`, which looks at nothing but what is the call's alone: at once for a short body, else on a thread of
// the loop's default executor, when there is a turn. The call keeps the turn for as long as it has the parsed text.
// Suspends: for a long body, until there is a turn and `read` has ended.
// Cancel: `read` may have references to what is on the caller's stack: a cancelled call ends when `read` has.
// Errors: what `read` throws.
template <class Read>
Coro<void> read_apart(Semaphore& turns, ApiCall& call, Read read) {
  if (call.request.body.size() < kLongBody) {
    read();
    co_return;
  }
  auto turn = co_await turns.scoped();
  auto reading = to_thread(std::move(read));
  std::exception_ptr cancelled;
  while (!reading.done()) {
    try {
      co_await shield(reading);
    } catch (const CancelledError&) {
      cancelled = std::current_exception();
    }
  }
  if (cancelled) std::rethrow_exception(cancelled);
  co_await std::move(reading);
  call.keep_while_parsed(std::move(turn));
}

}  // namespace argiope
