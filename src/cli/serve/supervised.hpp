// The sockets that systemd and its like give a daemon, and the news they want of it (sd_listen_fds(3), sd_notify(3)).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "serve/internal/daemon.hpp"

namespace argiope {

// The sockets that were handed over. The environment says so once: children do not inherit it.
std::vector<InheritedSocket> take_inherited_sockets();

// "READY=1" and the like; nothing where nobody wants to hear.
void tell_supervisor(std::string_view state);

// How often a supervisor wants to hear that the daemon lives; nullopt: it does not.
std::optional<Duration> watchdog_interval();

}  // namespace argiope
