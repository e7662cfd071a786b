// The shared part of the commands that own a store: `argiope job work` and `argiope schedule run`.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/engine/engine.hpp"
#include "calls/internal/call_functions.hpp"

namespace argiope {

// Jobs may end for so long after a signal, then they are stopped, and killed a little later: within 10 s in all.
inline constexpr Duration kDrain = std::chrono::milliseconds{7'500};
inline constexpr Duration kGrace = std::chrono::seconds{2};
// After a second signal: commands are killed after they have been told why.
inline constexpr Duration kTellAgain = std::chrono::milliseconds{50};

// Opens an engine with the policy of these commands, lets `act` use it, and closes it. Says what went wrong first; the
// exit status for it. When another process owns the store, `advice` follows.
using OwnerAction = std::function<Coro<Result<void>>(Engine& engine)>;
int run_as_owner(EventLoop& loop, std::string where, std::string_view advice, EngineOptions options,
                 const OwnerAction& act);
// The policy of these commands for queues that they make, and a seed.
EngineOptions owner_options();

// The executor that `argiope schedule run` and `argiope serve` always have.
inline constexpr std::string_view kScheduleExecutor = "default";

// "host:process".
std::string default_worker_name();

// Has the supervisors of the commands that this thread runs kill them with all that descends from them.
void kill_commands();

// Whether the command behind "--" can be run at all, before any job is taken for it. Errors: invalid_input, as a
// sentence.
Result<void> check_command(const std::vector<std::string>& command);

// Whether a worker has to make the queue it is to work on: false when it is `there`.
// Errors: invalid_input when another name is so near that this one is a mistake.
Result<bool> may_make_queue(const std::string& wanted, const std::vector<std::string>& there);

}  // namespace argiope
