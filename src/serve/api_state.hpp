// What the parts of the API share, and how a route is made of a handler. api_jobs.cpp, api_leases.cpp and their like have the
// handlers, by resource.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/executor.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/async/timeout.hpp"
#include "argiope/engine/engine.hpp"
#include "serve/api.hpp"
#include "serve/api_call.hpp"
#include "serve/audit_log.hpp"
#include "serve/kept_answers.hpp"
#include "serve/request_memory.hpp"
#include "serve/worker_registry.hpp"

namespace argiope {

struct ApiState : std::enable_shared_from_this<ApiState> {
  ApiState(Engine& its_engine, Gate& its_gate, EventFeed& its_events, ApiOptions its_options)
      : engine(its_engine), gate(its_gate), events(its_events), options(std::move(its_options)), audit(options.audit) {}

  Book& book() const noexcept { return engine.book(); }
  bool queue_is_locked(std::string_view name) const { return options.queue_is_locked && options.queue_is_locked(name); }
  bool schedule_is_locked(std::string_view name) const {
    return options.schedule_is_locked && options.schedule_is_locked(name);
  }

  Engine& engine;
  Gate& gate;
  EventFeed& events;
  const ApiOptions options;
  WorkerRegistry workers;
  AuditLog audit;
  // Of requests with an Idempotency-Key that change no jobs (the store remembers those that do): what they were answered, by
  // its bytes; and which leases they were given, by their number.
  RequestMemory<ServerResponse> answers{32 * 1024 * 1024};
  RequestMemory<std::vector<std::uint64_t>> given{200'000};
  KeptAnswers kept_answers{options.session_secret};  // of pages that were tried
  // Of requests that wait, for jobs or for output: what ends their waiting.
  std::list<Timeout*> polls;
  // Whether one more may wait; why not, for one that has nothing to answer before: it comes too late, or too many wait.
  bool may_wait() const noexcept { return !stopped && polls.size() < options.most_pollers; }
  Problem why_not_wait() const;
  // Requests that read much and are answered now: the others wait for their turn.
  Semaphore large_reads{4};
  bool stopped = false;
  std::uint64_t requests = 0;
  // What-if questions: whether one is being answered, and that no more is wanted of it. The thread that answers comes last, so
  // that it ends first.
  std::shared_ptr<std::atomic<bool>> simulating = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<std::atomic<bool>> simulations_stopped = std::make_shared<std::atomic<bool>>(false);
  std::optional<ThreadPoolExecutor> simulator;
};

// What a route does. It lives as long as its call, and may be cancelled at each await, when its client leaves.
using ApiHandler = Coro<Result<ServerResponse>> (*)(ApiState& api, ApiCall& call);

struct ApiRoute {
  HttpMethod method = HttpMethod::get;
  std::string_view pattern;
  TokenScope scope = TokenScope::read;  // what its caller needs
  ApiHandler handler = nullptr;
  bool audited = false;  // a change that is told in /v1/audit
  // Whether its handler does what an Idempotency-Key asks for. Else answers to such requests are kept in memory.
  bool knows_keys = false;
  // Whether it may read much: so many of these requests are answered at a time, and others are not held up by them.
  bool reads_much = false;
};

// Of each resource.
ApiRoute put_route();
std::vector<ApiRoute> job_routes();
std::vector<ApiRoute> queue_routes();
ApiRoute queue_stats_route();
std::vector<ApiRoute> lease_routes();
std::vector<ApiRoute> worker_routes();
std::vector<ApiRoute> schedule_routes();
ApiRoute simulate_route();
ApiRoute history_route();
std::vector<ApiRoute> notify_routes();
std::vector<ApiRoute> session_routes();
std::vector<ApiRoute> daemon_routes();
std::vector<ApiRoute> project_routes();
std::vector<ApiRoute> project_page_routes();
std::vector<ApiRoute> host_routes();
std::vector<ApiRoute> all_routes();

// Cursors: what `limit` of a query may be.
inline constexpr std::uint64_t kMostInPage = 1'000;
inline constexpr std::uint64_t kUsualPage = 100;

}  // namespace argiope
