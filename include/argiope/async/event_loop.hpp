// EventLoop, with the futures and tasks that it runs. The class itself is in detail/event_loop.hpp, because future.hpp
// is built on it: a program includes this header.
#pragma once

#include "argiope/async/detail/event_loop.hpp"  // IWYU pragma: export
#include "argiope/async/future.hpp"             // IWYU pragma: export
