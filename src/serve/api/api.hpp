// Api: /v1 of docs/http-api.md over an engine.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/engine/engine.hpp"
#include "argiope/web/http_server.hpp"
#include "serve/api/internal/what_if.hpp"
#include "serve/bounds/answer_room.hpp"
#include "serve/bounds/read_turns.hpp"
#include "serve/gate/audit_log.hpp"
#include "serve/gate/gate.hpp"
#include "serve/watch/event_feed.hpp"

namespace argiope {

struct ApiState;
struct DaemonProjects;
class History;
class Notifier;
class RequestCounts;

struct ApiOptions {
  std::size_t most_jobs = 10'000;  // in one request
  std::size_t most_pollers = 20'000;
  std::size_t most_pollers_of_one = 10'000;  // of one token
  Duration longest_wait = std::chrono::seconds{60};
  AuditOptions audit;        // of /v1/audit
  std::uint64_t run_id = 0;  // of this run of the daemon: what request ids begin with
  std::string version;       // of the program, and the name of its store: for /v1/version
  std::string store;
  WallTime started_at{};
  // More of /v1/config, as a JSON object and without secrets; may be empty.
  std::function<std::string()> config;
  // Whether the configuration file names that queue or schedule and so decides.
  std::function<bool(std::string_view)> queue_is_locked, schedule_is_locked;
  // And where: `argiope.toml:4`. May be empty, and may give an empty text.
  std::function<std::string(std::string_view)> queue_line, schedule_line;
  // Where answers wait for their clients.
  std::shared_ptr<AnswerRoom> room = std::make_shared<AnswerRoom>(std::size_t{64} * 1024 * 1024);
  // In which requests that read much are answered.
  std::shared_ptr<ReadTurns> read_turns = std::make_shared<ReadTurns>();
  const History* history = nullptr;  // null: there is none
  Notifier* notifier = nullptr;      // null: nobody is told of anything
  // Answers POST /v1/simulate, on a thread of its own; empty: nobody does.
  WhatIfAnswerer what_if;
  // On how many jobs of a queue this process works at once; nullopt: what it does not work on.
  std::function<std::optional<std::size_t>(std::string_view queue)> workers_of;
  DaemonProjects* projects = nullptr;  // null: it has none; outlives the API
  SessionSecret session_secret{};      // of what only its owner may name
};

// Lifetime: what it is given outlives it. stop() it before the server, so that polls end.
// Threads:  the loop's own.
class Api {
 public:
  Api(Engine& engine, Gate& gate, EventFeed& events, ApiOptions options);
  ~Api();
  // Reads what is kept of changes before. Blocks. Errors: of its file.
  Result<void> open();
  // Where other ways of changing something tell of it, too.
  AuditLog& audit() noexcept;
  // Forgets of the audit what is older than it keeps. How many entries.
  std::size_t prune_audit();
  // Adds every route, and answers in the words of the API where the router has none. The API outlives the router.
  // `counts`, where it is not null, counts what each has answered, and outlives the router.
  void add_to(HttpRouter& router, RequestCounts* counts = nullptr);
  // The answer to a request that does not come to a route: with its X-Request-Id, as all answers have it.
  ServerResponse refuse(const ServerRequest& request, const Problem& problem);
  // The same of what a server or a router refuses by itself.
  ServerResponse refuse(const ServerRequest& request, int status, std::string_view detail);
  // Gives an answer that has none its X-Request-Id.
  void identify(const ServerRequest& request, ServerResponse& response);
  // Long polls and streams end now, with what they have; who asks for jobs from now on, or would wait for output, is
  // answered `draining`. On a running loop.
  void stop();

 private:
  std::shared_ptr<ApiState> state_;
};

}  // namespace argiope
