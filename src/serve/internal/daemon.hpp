// Daemon: an engine that others reach: by HTTP, by the beanstalkd protocol, and in a browser.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/engine/engine.hpp"
#include "serve/api/internal/what_if.hpp"
#include "serve/gate/sessions.hpp"
#include "serve/internal/queue_targets.hpp"
#include "serve/internal/serve_options.hpp"
#include "serve/notify/internal/notify_rule.hpp"

namespace argiope {

struct DaemonProjects;
struct Token;

// The daemon's means besides its options.
struct DaemonContext {
  std::uint64_t run_id = 0;  // another in each run: events are counted anew
  std::string version;
  std::string worker_name = "argiope";
  std::vector<Token> tokens;
  SessionSecret session_secret{};
  // The identity by which its servers prove who they are, where the options want TLS. May be given another identity.
  std::shared_ptr<const TlsIdentity> tls;
  // Whether the configuration file names that queue or schedule, which the API then cannot change.
  std::function<bool(std::string_view)> queue_is_locked, schedule_is_locked;
  std::function<std::string(std::string_view)> queue_line, schedule_line;  // as ApiOptions has them
  // As ApiOptions has them.
  WhatIfAnswerer what_if;
  std::function<std::optional<std::size_t>(std::string_view queue)> workers_of;
  DaemonProjects* projects = nullptr;  // null: it has none; outlives the daemon
};

// A socket that listens already, and is handed over by who has started the process (sd_listen_fds(3)).
struct InheritedSocket {
  std::string name;  // "http" or "beanstalkd"; "" and what else is there: "http"
  int fd = -1;
};

// Lifetime: its engine outlives it. stop() it before destroying it.
// Threads:  the loop's own.
class Daemon {
 public:
  Daemon(Engine& engine, ServeOptions options, DaemonContext context);
  ~Daemon();

  // Takes clients from now on: each protocol at the sockets that were handed over for it, or where there are none at
  // the addresses of the options.
  // Errors: invalid_input, io: what address cannot be had, or may not be (check()), and why. Nothing is listened at
  // then.
  Result<void> listen(std::vector<InheritedSocket> inherited = {});
  // Where, for people: "http://127.0.0.1:7733/", "beanstalkd at 127.0.0.1:11300".
  std::vector<std::string> where() const;

  QueueTargets& targets() noexcept;
  // Whether who is let in may change as `asked` has it: a daemon that was asked for tokens is asked for them still, and
  // so is one that others reach.
  // Errors: invalid_input.
  Result<void> check_access(const ServeOptions& asked) const;
  // From now on: who is let in, and by which names besides loopback's the daemon may be asked for. Where `asked` names
  // a file of tokens and there is none in it, nobody is.
  void set_access(std::vector<Token> tokens, const ServeOptions& asked);
  // From now on: who is told of trouble. The targets of their queues are the caller's to set. Errors: of the store.
  Coro<Result<void>> set_notify(std::vector<NotifyRule> rules);
  // Tells the audit that the operator's signal has had the settings read again, and what that has changed, a JSON
  // object. `is_whole`: false: not all of it, or more: the store has failed in its middle.
  void note_reload(std::string_view changes, bool is_whole);
  // beanstalkd's SIGUSR1: puts of that protocol are refused with DRAINING.
  void drain_puts();

  // Takes no more clients and answers what would wait; jobs and requests go on to their end within the drain limit, and
  // then are given back or broken off. True: all had ended before.
  Coro<bool> stop();
  // A stop() that waits ends soon.
  void hurry();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace argiope
