// What a coroutine works on lives until it has ended, whoever has let go of it meanwhile.
#pragma once

#include <memory>
#include <utility>

#include "argiope/async/coro.hpp"

namespace argiope {

// `work`, which may use what `owner` owns from its first step to its last. Parameters end last to first.
template <class T>
Coro<T> keep_alive([[maybe_unused]] std::shared_ptr<const void> owner, Coro<T> work) {
  co_return co_await std::move(work);
}

}  // namespace argiope
