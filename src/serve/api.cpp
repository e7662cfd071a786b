#include "serve/api.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <utility>

#include "argiope/web/url.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/printable.hpp"
#include "serve/api_state.hpp"
#include "serve/request_counts.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostRequestId = 128;
constexpr std::size_t kMostRememberedBody = 64 * 1024;

// The client's own, where it is plain; else one of this run.
std::string request_id_of(ApiState& api, const ServerRequest& request) {
  const std::string_view given = request.header("X-Request-Id");
  const bool plain = !given.empty() && given.size() <= kMostRequestId &&
                     std::ranges::all_of(given, [](char c) { return c > 0x20 && c < 0x7f; });
  return plain ? std::string(given) : fmt::format("{:05x}-{:x}", api.options.run_id & 0xfffff, ++api.requests);
}

// `status`: nullopt, nobody waited for it.
void note(ApiState& api, const ApiCall& call, std::optional<int> status, const std::string& request_id) {
  const ServerRequest& request = call.request;
  api.audit.add({.at = api.engine.calendar_now(),
                 .who = call.caller.name,
                 .from = std::string(request.peer),
                 .method = std::string(to_string(request.method)),
                 .path = percent_decode(request.path),
                 .request = audited_text(request.body),
                 .status = status,
                 .request_id = request_id});
}

Coro<ServerResponse> handle(ApiState& api, const ApiRoute& route, ApiCall& call, const std::string& request_id) {
  std::optional<Semaphore::Permit> turn;
  if (route.reads_much) turn.emplace(co_await api.large_reads.scoped());
  auto answered = co_await route.handler(api, call);
  if (answered) co_return std::move(*answered);
  co_return answer(call.problem_for(answered.error()), request_id);
}

// What may be otherwise in a moment is not remembered, nor what is large.
bool is_to_be_remembered(const ServerResponse& response) {
  return response.status < 500 && response.status != 429 && response.body.size() <= kMostRememberedBody;
}

// A POST with an Idempotency-Key that its handler knows nothing of.
Coro<ServerResponse> handle_once(ApiState& api, const ApiRoute& route, ApiCall& call, const std::string& request_id) {
  const auto key = call.request_key();
  if (!key) co_return answer(call.problem_for(key.error()), request_id);
  if (!*key) co_return co_await handle(api, route, call, request_id);
  using enum RequestMemory<ServerResponse>::State;
  const auto found = api.answers.begin(**key, EventLoop::current().time());
  if (found.state == repeated) co_return *found.answer;
  if (found.state == under_way) {
    co_return answer({ProblemType::busy, "the request with this Idempotency-Key is still under way", {}}, request_id);
  }
  if (const auto good = call.check(found.state == mismatch ? Repetition::mismatch : Repetition::first); !good) {
    co_return answer(call.problem_for(good.error()), request_id);
  }
  RequestUnderWay<ServerResponse> under_way_now(api.answers, **key);
  ServerResponse response = co_await handle(api, route, call, request_id);
  if (is_to_be_remembered(response)) under_way_now.keep(response, response.body.size());
  co_return response;
}

// A change is told in the audit, and the answer waits until that is written.
Coro<ServerResponse> answer_call(ApiState& api, const ApiRoute& route, ApiCall& call, const std::string& request_id) {
  const bool remembers = route.method == HttpMethod::post && !route.knows_keys;
  ServerResponse response;
  try {
    response =
        remembers ? co_await handle_once(api, route, call, request_id) : co_await handle(api, route, call, request_id);
  } catch (const CancelledError&) {
    if (route.audited) note(api, call, std::nullopt, request_id);
    throw;
  }
  if (route.audited && response.status < 400) {
    note(api, call, response.status, request_id);
    co_await api.audit.written();
  }
  co_return response;
}

// What one route answers. `route` lives as long as the router.
Coro<ServerResponse> serve(std::shared_ptr<ApiState> api, const ApiRoute& route, ServerRequest& request) {
  const std::string request_id = request_id_of(*api, request);
  ServerResponse response;
  if (auto caller = api->gate.admit(request, route.scope)) {
    ApiCall call(request, std::move(*caller));
    response = co_await answer_call(*api, route, call, request_id);
  } else {
    response = answer(caller.error(), request_id);
  }
  if (response.status >= 500) {
    spdlog::warn("{} {}: {} ({})", to_string(request.method), request.path, response.status, request_id);
  }
  response.headers.emplace_back("X-Request-Id", request_id);
  co_return response;
}

constexpr HttpMethod kMethods[] = {HttpMethod::get, HttpMethod::post, HttpMethod::put, HttpMethod::patch,
                                   HttpMethod::delete_};

Coro<Result<ServerResponse>> refuse_path(ApiState&, ApiCall& call) {
  co_return call.refuse(ProblemType::not_found, fmt::format("there is nothing at {}", in_quotes(call.request.path)));
}

// Other methods of paths that are there, and other paths below /v1, in the words of the API.
void add_refusals(HttpRouter& router, const std::shared_ptr<ApiState>& api, const std::vector<ApiRoute>& routes) {
  std::map<std::string_view, std::vector<HttpMethod>> methods;
  for (const ApiRoute& route : routes) methods[route.pattern].push_back(route.method);
  for (const auto& [pattern, known] : methods) {
    std::string allowed;
    for (const HttpMethod method : known)
      allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", to_string(method));
    for (const HttpMethod method : kMethods) {
      if (std::ranges::find(known, method) != known.end()) continue;
      router.add(method, pattern, [api, allowed](ServerRequest& request) -> Coro<ServerResponse> {
        const std::string id = request_id_of(*api, request);
        const std::string detail = fmt::format("{} is not allowed here; {} are", to_string(request.method), allowed);
        ServerResponse refused = answer({.type = ProblemType::method_not_allowed, .detail = detail, .places = {}}, id);
        refused.headers.emplace_back("Allow", allowed);
        refused.headers.emplace_back("X-Request-Id", id);
        co_return refused;
      });
    }
  }
  for (const HttpMethod method : kMethods) {
    const ApiRoute nowhere{.method = method, .pattern = {}, .scope = TokenScope::none, .handler = refuse_path};
    router.add(method, "/v1/{rest...}",
               [api, nowhere](ServerRequest& request) { return serve(api, nowhere, request); });
  }
}

}  // namespace

Problem ApiState::why_not_wait() const {
  if (stopped) return problem(ProblemType::draining, "the daemon is stopping, and nothing is waited for any more");
  const std::string most = counted(options.most_pollers, "request waits", "requests wait");
  return problem(ProblemType::too_many, fmt::format("{} already, as many as may", most));
}

std::vector<ApiRoute> all_routes() {
  std::vector<ApiRoute> all;
  for (const auto& routes : {job_routes(), queue_routes(), lease_routes(), worker_routes(), schedule_routes(),
                             session_routes(), daemon_routes(), notify_routes(), project_routes(), project_page_routes(), host_routes()}) {
    all.insert(all.end(), routes.begin(), routes.end());
  }
  return all;
}

Api::Api(Engine& engine, Gate& gate, EventFeed& events, ApiOptions options)
    : state_(std::make_shared<ApiState>(engine, gate, events, std::move(options))) {}
Api::~Api() = default;

void Api::add_to(HttpRouter& router, RequestCounts* counts) {
  const std::vector<ApiRoute> routes = all_routes();
  for (const ApiRoute& route : routes) {
    HttpHandler handler = [api = state_, route](ServerRequest& request) { return serve(api, route, request); };
    if (counts != nullptr) handler = counts->counted(std::string(route.pattern), std::move(handler));
    router.add(route.method, route.pattern, std::move(handler));
  }
  add_refusals(router, state_, routes);
}

Result<void> Api::open() { return state_->audit.open(); }

AuditLog& Api::audit() noexcept { return state_->audit; }

std::size_t Api::prune_audit() { return state_->audit.prune(state_->engine.calendar_now()); }

void Api::stop() {
  state_->stopped = true;
  state_->simulations_stopped->store(true);
  for (Timeout* const poll : state_->polls) {
    if (!poll->expired()) poll->reschedule(TimePoint::min());
  }
}

}  // namespace argiope
