// Shared by the parts of the API, and how a route is made of a handler. api_jobs.cpp, api_leases.cpp and their like
// have the handlers, by resource.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/async/threads.hpp"
#include "argiope/engine/engine.hpp"
#include "serve/api/api.hpp"
#include "serve/api/api_call.hpp"
#include "serve/api/kept_answers.hpp"
#include "serve/api/read_apart.hpp"
#include "serve/api/request_memory.hpp"
#include "serve/api/worker_registry.hpp"
#include "serve/bounds/caller_counts.hpp"
#include "serve/gate/audit_log.hpp"

namespace argiope {

struct ApiState : std::enable_shared_from_this<ApiState> {
  ApiState(Engine& its_engine, Gate& its_gate, EventFeed& its_events, ApiOptions its_options)
      : engine(its_engine), gate(its_gate), events(its_events), options(std::move(its_options)), audit(options.audit) {}

  Book& book() const noexcept { return engine.book(); }
  bool queue_is_locked(std::string_view name) const { return options.queue_is_locked && options.queue_is_locked(name); }
  bool schedule_is_locked(std::string_view name) const {
    return options.schedule_is_locked && options.schedule_is_locked(name);
  }
  // `locked`, and the line that decides where that is known.
  void write_lock_of_queue(JsonWriter& json, std::string_view name) const {
    write_lock(json, queue_is_locked(name), options.queue_line, name);
  }
  void write_lock_of_schedule(JsonWriter& json, std::string_view name) const {
    write_lock(json, schedule_is_locked(name), options.schedule_line, name);
  }
  static void write_lock(JsonWriter& json, bool is_locked, const std::function<std::string(std::string_view)>& line_of,
                         std::string_view name) {
    json.member("locked", is_locked);
    const std::string line = is_locked && line_of ? line_of(name) : std::string();
    if (!line.empty()) json.member("locked_by", line);
  }

  Engine& engine;
  Gate& gate;
  EventFeed& events;
  const ApiOptions options;
  WorkerRegistry workers;
  AuditLog audit;
  // Of requests with an Idempotency-Key that change no jobs (the store remembers those that do): what they were
  // answered, by its bytes; and which leases they were given, by their number.
  RequestMemory<ServerResponse> answers{8 * 1024 * 1024};
  RequestMemory<std::vector<std::uint64_t>> given{
      200'000, [this](const std::vector<std::uint64_t>& tokens) {
        return std::ranges::none_of(tokens, [this](std::uint64_t token) { return engine.running(token).has_value(); });
      }};
  // Which request has had which key, of all that were done, as long as there is room: others are known to their own
  // memory alone.
  RequestMemory<std::monostate> keys{1, [](std::monostate) { return true; }};
  // The answer to a caller whose share of that memory is full.
  static Problem too_many_keys();
  KeptAnswers kept_answers{options.session_secret};  // of pages that were tried
  Semaphore long_bodies{kLongBodiesAtOnce};          // turns of read_apart()
  // Of requests that wait, for jobs or for output: what ends their waiting; and how many of each token wait.
  std::list<Timeout*> polls;
  CallerCounts polls_of;
  // Why one more may not wait, for one that has nothing to answer before: it comes too late, or too many wait.
  std::optional<Problem> why_not_wait(const Caller& caller) const;
  bool stopped = false;
  std::uint64_t requests = 0;
  // Of what-if questions: whose wait or are being answered, whose turn it is, and that no more is wanted of the thread.
  // The thread that answers comes last, so that it ends first.
  CallerCounts simulations_of;
  Semaphore simulation_turn{1};
  std::shared_ptr<std::atomic<bool>> simulations_stopped = std::make_shared<std::atomic<bool>>(false);
  std::optional<ThreadPoolExecutor> simulator;
};

// A request that waits, while it does; what ends its waiting is `limit`.
class PollPlace {
 public:
  PollPlace(ApiState& api, const Caller& caller, Timeout& limit);
  PollPlace(const PollPlace&) = delete;
  ~PollPlace();

 private:
  ApiState& api_;
  const std::string who_;  // empty: there are no tokens
  const std::list<Timeout*>::iterator place_;
};

// The answer where the right that let the caller in has ended while the request waited.
Problem access_ended();

// The work of a route. It lives as long as its call, and may be cancelled at each await, when its client leaves.
using ApiHandler = Coro<Result<ServerResponse>> (*)(ApiState& api, ApiCall& call);

struct ApiRoute {
  HttpMethod method = HttpMethod::get;
  std::string_view pattern;
  TokenScope scope = TokenScope::read;  // what its caller needs
  ApiHandler handler = nullptr;
  bool audited = false;  // a change that is told in /v1/audit
  // Whether its handler does what an Idempotency-Key asks for. Else answers to such requests are kept in memory.
  bool knows_keys = false;
  // Whether it may read much: it waits for its turn then, and others are not held up by it.
  bool reads_much = false;
  // Whether its handler reads an ApiQuery. Others take no parameters, and say so.
  bool has_query = false;
  // Whether its handler parses the body where it reads it, by read_apart(): that of lists which are read on the other
  // thread, too, and of those who wait for their turn first. Else the body is parsed before the handler begins.
  bool reads_apart = false;
};

// One that looks, and may read much.
inline ApiRoute reading_much(HttpMethod method, std::string_view pattern, ApiHandler handler, bool has_query = false) {
  return {.method = method, .pattern = pattern, .handler = handler, .reads_much = true, .has_query = has_query};
}

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

std::vector<std::string> names_of(const std::vector<StoredQueue>& queues);
// Zeros for a queue that has none. `sorted`: by name, as Book::counts_of gives them.
StateCounts counts_in(const std::vector<NamedCounts>& sorted, std::string_view queue);

// Cursors: what `limit` of a query may be.
inline constexpr std::uint64_t kMostInPage = 1'000;
inline constexpr std::uint64_t kUsualPage = 100;

}  // namespace argiope
