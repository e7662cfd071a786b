#pragma once

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"

namespace argiope {

// Coroutines for tests to await.
inline Coro<int> give(int value) { co_return value; }

inline Coro<int> give_after(Duration delay, int value) {
  co_await sleep(delay);
  co_return value;
}

}  // namespace argiope
