// The runtime: all of asyncio's vocabulary, with run() and Runner for main(). Link argiope::async.
//
// Not here: Asio itself. Programs that use its sockets include async/asio_backend.hpp and async/asio_op.hpp.
#pragma once

#include "argiope/async/channel.hpp"
#include "argiope/async/coro.hpp"
#include "argiope/async/descriptor.hpp"
#include "argiope/async/errors.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/executor.hpp"
#include "argiope/async/future.hpp"
#include "argiope/async/group.hpp"
#include "argiope/async/or_return.hpp"
#include "argiope/async/queue.hpp"
#include "argiope/async/runner.hpp"
#include "argiope/async/signals.hpp"
#include "argiope/async/sleep.hpp"
#include "argiope/async/stream.hpp"
#include "argiope/async/subprocess.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/async/threadsafe.hpp"
#include "argiope/async/timeout.hpp"
#include "argiope/async/virtual_backend.hpp"
#include "argiope/async/waiting.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
