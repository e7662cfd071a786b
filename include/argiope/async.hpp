// The runtime: all of asyncio's vocabulary, with run() and Runner for main(). Link argiope::async.
//
// Not here: Asio itself. Programs that use its sockets include async/asio_backend.hpp.
#pragma once

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "argiope/async/io_backend.hpp"
#include "argiope/async/queue.hpp"
#include "argiope/async/stream.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/async/threads.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
