// Health: what /healthz and /readyz answer.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "argiope/engine/engine.hpp"
#include "argiope/web/http_server.hpp"
#include "serve/base/problem.hpp"
#include "serve/watch/watchdog.hpp"

namespace argiope {

struct HealthOptions {
  bool fires_schedules = true;
  // How long a change may wait for its commit before the daemon is not ready.
  Duration commit_limit = std::chrono::seconds{10};
  // How long the oldest change under way has waited for its commit. Empty: not known, and not looked at.
  std::function<Duration()> waits_for_commit;
  // Why the pages of projects are visited no more; nullopt: they are. Empty: there are none. The daemon lives on: its
  // jobs are well.
  std::function<std::optional<Error>()> projects_failure;
};

// Lifetime: what it is given outlives it. `watchdog` may be null.
// Threads:  the loop's own.
class Health {
 public:
  Health(Engine& engine, const Watchdog* watchdog, HealthOptions options = {})
      : engine_(engine), watchdog_(watchdog), options_(std::move(options)) {}

  // From now on it is alive and not ready: balancers send elsewhere what comes.
  void drain() noexcept { draining_ = true; }

  // Whether a restart would help: a store that has failed stays so until the daemon opens it again.
  std::optional<Problem> why_not_alive() const;
  // Whether it takes work: also not while it drains, its scheduler does not run, its projects have failed, commits
  // hang, or its loop hardly moves.
  std::optional<Problem> why_not_ready() const;

  // 200 {"status":"ok"}, or 503 with the problem.
  ServerResponse healthz() const { return answered(why_not_alive()); }
  ServerResponse readyz() const { return answered(why_not_ready()); }

 private:
  static ServerResponse answered(const std::optional<Problem>& problem);

  Engine& engine_;
  const Watchdog* const watchdog_;
  const HealthOptions options_;
  bool draining_ = false;
};

}  // namespace argiope
