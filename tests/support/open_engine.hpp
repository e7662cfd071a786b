// An engine that a test may end before the test itself ends.
#pragma once

#include <memory>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/engine/engine.hpp"

namespace argiope {

inline Coro<std::unique_ptr<Engine>> open_engine(Store& store, EngineOptions options = {}) {
  co_return std::make_unique<Engine>(value_or_throw(co_await Engine::open(store, std::move(options))));
}

}  // namespace argiope
