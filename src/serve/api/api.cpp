#include "serve/api/api.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "argiope/async/coro.hpp"
#include "argiope/web/url.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/printable.hpp"
#include "serve/api/api_state.hpp"
#include "serve/gate/request_source.hpp"
#include "serve/watch/request_counts.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostRequestId = 128;
constexpr std::size_t kMostRememberedBody = 64 * 1024;
constexpr const char* kDoneAlready =
    "the request with this Idempotency-Key was done; its answer was too long to be kept";

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

// Nothing here has a version that a condition could be judged by. A change that ignores its condition loses what others
// have changed.
Result<void> check_conditions(ApiCall& call) {
  if (changes_nothing(call.request.method)) return {};
  for (const char* const name : {"If-Match", "If-None-Match", "If-Unmodified-Since"}) {
    if (call.request.header(name).empty()) continue;
    const std::string why =
        fmt::format("{}: nothing here has an ETag or a date by which a change could be held to it", name);
    return call.refuse({ProblemType::invalid_input, why, {{name, why, "header"}}});
  }
  return {};
}

// Checks the form that every request must have, whatever its route does.
Coro<Result<void>> check_form(ApiState& api, const ApiRoute& route, ApiCall& call) {
  co_await or_return(check_conditions(call));
  if (call.has_body()) {
    co_await or_return(call.check_coding());
    if (!route.reads_apart) co_await read_apart(api.long_bodies, call, [&] { call.parse(); });
    const bool has_nothing_to_say = route.method == HttpMethod::get || route.method == HttpMethod::delete_;
    if (has_nothing_to_say) co_await or_return(call.no_members());
  }
  co_return route.has_query ? Result<void>{} : ApiQuery(call).finish();
}

Coro<ServerResponse> handle(ApiState& api, const ApiRoute& route, ApiCall& call, const std::string& request_id) {
  if (auto good = co_await check_form(api, route, call); !good)
    co_return answer(call.problem_for(good.error()), request_id);
  ReadTurns::Turn turn;
  if (route.reads_much && api.options.room->is_full(call.caller.name)) {
    co_return answer(AnswerRoom::refusal(), request_id);
  }
  if (route.reads_much) turn = co_await api.options.read_turns->next(call.caller.name);
  auto answered = co_await route.handler(api, call);
  if (answered) co_return std::move(*answered);
  co_return answer(call.problem_for(answered.error()), request_id);
}

// It is not remembered then: the request may be tried again.
bool may_be_otherwise_soon(const ServerResponse& response) { return response.status >= 500 || response.status == 429; }

// A POST with an Idempotency-Key that its handler knows nothing of. An answer that is large is not remembered; that a
// change was done is, so that it is not done twice.
Coro<ServerResponse> handle_once(ApiState& api, const ApiRoute& route, ApiCall& call, const std::string& request_id) {
  const auto key = call.request_key();
  if (!key) co_return answer(call.problem_for(key.error()), request_id);
  if (!*key) co_return co_await handle(api, route, call, request_id);
  using enum RequestMemory<ServerResponse>::State;
  const auto found = api.answers.begin(call.caller.name, **key, EventLoop::current().time());
  if (found.state == repeated) co_return *found.answer;
  if (found.state == under_way) {
    co_return answer({ProblemType::busy, "the request with this Idempotency-Key is still under way", {}}, request_id);
  }
  if (found.state == full) co_return answer(ApiState::too_many_keys(), request_id);
  if (const auto good = call.check(found.state == mismatch ? Repetition::mismatch : Repetition::first); !good) {
    co_return answer(call.problem_for(good.error()), request_id);
  }
  RequestUnderWay<ServerResponse> under_way_now(api.answers, call.caller.name, **key);
  ServerResponse response = co_await handle(api, route, call, request_id);
  if (may_be_otherwise_soon(response)) co_return response;
  if (response.body.size() <= kMostRememberedBody) {
    under_way_now.keep(response, response.body.size());
  } else if (route.audited) {
    ServerResponse kept = answer(problem(ProblemType::too_large, kDoneAlready), request_id);
    const std::size_t weight = kept.body.size();
    under_way_now.keep(std::move(kept), weight);
  }
  co_return response;
}

// A POST. Its key is known for all of them together: each kind has its own memory of what it has answered, where a key
// of another kind would be a new one.
Coro<ServerResponse> answer_post(ApiState& api, const ApiRoute& route, ApiCall& call, const std::string& request_id) {
  const auto key = call.request_key();
  if (!key) co_return answer(call.problem_for(key.error()), request_id);
  std::optional<RequestUnderWay<std::monostate>> claimed;
  if (*key) {
    using enum RequestMemory<std::monostate>::State;
    const auto state = api.keys.begin(call.caller.name, **key, EventLoop::current().time()).state;
    if (const auto good = call.check(state == mismatch ? Repetition::mismatch : Repetition::first); !good) {
      co_return answer(call.problem_for(good.error()), request_id);
    }
    if (state == first)
      claimed.emplace(api.keys, call.caller.name, **key);  // else it is known, or there is no room to know it
  }
  ServerResponse response = route.knows_keys ? co_await handle(api, route, call, request_id)
                                             : co_await handle_once(api, route, call, request_id);
  if (claimed && call.takes_key && response.status < 400) claimed->keep({}, 0);
  co_return response;
}

// A change is told in the audit, and the answer waits until that is written.
Coro<ServerResponse> answer_call(ApiState& api, const ApiRoute& route, ApiCall& call, const std::string& request_id) {
  ServerResponse response;
  try {
    response = route.method == HttpMethod::post ? co_await answer_post(api, route, call, request_id)
                                                : co_await handle(api, route, call, request_id);
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

// The part of a change that was done by then stays done.
Coro<ServerResponse> answer_while_let_in(ApiState& api, const ApiRoute& route, ApiCall& call,
                                         const std::string& request_id) {
  try {
    co_return co_await while_it_holds(call.caller.right, answer_call(api, route, call, request_id));
  } catch (const AccessEnded&) {
    co_return answer(access_ended(), request_id);
  }
}

// The answer of one route. `route` lives as long as the router.
Coro<ServerResponse> serve(std::shared_ptr<ApiState> api, const ApiRoute& route, ServerRequest& request) {
  const std::string request_id = request_id_of(*api, request);
  ServerResponse response;
  if (auto caller = api->gate.admit(request, route.scope)) {
    ApiCall call(request, std::move(*caller));
    response = co_await answer_while_let_in(*api, route, call, request_id);
    api->options.room->hold(call.caller.name, response, route.scope <= TokenScope::read, request_id);
  } else {
    response = answer(caller.error(), request_id);
  }
  if (response.status >= 500) {
    spdlog::warn("{} {}: {} ({})", to_string(request.method), request.path, response.status, request_id);
  }
  response.headers.emplace_back("X-Request-Id", request_id);
  co_return response;
}

}  // namespace

std::optional<Problem> ApiState::why_not_wait(const Caller& caller) const {
  if (stopped) return problem(ProblemType::draining, "the daemon is stopping, and nothing is waited for any more");
  const auto refuse = [](std::string_view whose, std::size_t count) {
    return problem(ProblemType::too_many, fmt::format("{}{} already, as many as may", whose,
                                                      counted(count, "request waits", "requests wait")));
  };
  const std::size_t own = caller.by == KnownBy::nothing ? 0 : polls_of.of(caller.name);
  if (own > 0 && own >= options.most_pollers_of_one) return refuse("of this token ", own);
  if (polls.size() >= options.most_pollers) return refuse("", options.most_pollers);
  return std::nullopt;
}

Problem ApiState::too_many_keys() {
  return problem(
      ProblemType::too_many,
      "your token has used as many Idempotency-Keys within 24 hours as are remembered, and nothing was done");
}

PollPlace::PollPlace(ApiState& api, const Caller& caller, Timeout& limit)
    : api_(api),
      who_(caller.by == KnownBy::nothing ? std::string() : caller.name),
      place_(api.polls.insert(api.polls.end(), &limit)) {
  if (!who_.empty()) api_.polls_of.add(who_);
}

PollPlace::~PollPlace() {
  api_.polls.erase(place_);
  if (!who_.empty()) api_.polls_of.drop(who_);
}

Problem access_ended() {
  return problem(ProblemType::unauthorized, "the token or the session has ended while the request was under way");
}

std::vector<ApiRoute> all_routes() {
  std::vector<ApiRoute> all;
  for (const auto& routes :
       {job_routes(), queue_routes(), lease_routes(), worker_routes(), schedule_routes(), session_routes(),
        daemon_routes(), notify_routes(), project_routes(), project_page_routes(), host_routes()}) {
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
  router.refuse_by([this](const ServerRequest& request, int status, std::string_view detail) {
    return refuse(request, status, detail);
  });
}

ServerResponse Api::refuse(const ServerRequest& request, const Problem& problem) {
  const std::string id = request_id_of(*state_, request);
  ServerResponse refused = answer(problem, id);
  refused.headers.emplace_back("X-Request-Id", id);
  return refused;
}

ServerResponse Api::refuse(const ServerRequest& request, int status, std::string_view detail) {
  Problem problem = problem_of_status(status, detail);
  if (status == 503 && state_->stopped) problem.type = ProblemType::draining;
  return refuse(request, problem);
}

void Api::identify(const ServerRequest& request, ServerResponse& response) {
  const bool has_one = std::ranges::any_of(response.headers,
                                           [](const auto& field) { return equals_lower(field.first, "x-request-id"); });
  if (!has_one) response.headers.emplace_back("X-Request-Id", request_id_of(*state_, request));
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
