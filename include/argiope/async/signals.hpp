// Waiting for a signal. For a callback instead of a task see EventLoop::add_signal_handler.
#pragma once

#include "argiope/async/event_loop.hpp"

namespace argiope {

// `co_await until_signal(SIGTERM)` suspends until the process gets that signal. It is handled from the first step on,
// and has its default effect again afterwards: a second SIGTERM ends a program that takes long to stop.
// Errors:  those of EventLoop::add_signal_handler.
// Cancel:  throws CancelledError; the signal has its default effect again.
// Threads: the loop's own; one wait for each signal, on one loop.
Coro<void> until_signal(int signal_number);

}  // namespace argiope
