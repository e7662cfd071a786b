// Reads on for a window of a store's jobs.
#pragma once

#include "argiope/async/event_loop.hpp"
#include "engine/internal/queue_window.hpp"
#include "engine/store_use.hpp"

namespace argiope {

// Moves in the store what the window wants moved, reads what it asks for, and hands it over. False: it asked for nothing.
Coro<Result<bool>> read_on(const StoreUse& store, QueueWindow& window, EventLoop& loop);

}  // namespace argiope
