// The daemon itself: what happens, what is in force, and who changed what.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "base/internal/printable.hpp"
#include "serve/api/api_state.hpp"
#include "serve/api/openapi.hpp"

namespace argiope {
namespace {

constexpr std::int64_t kApiVersion = 1;
constexpr std::size_t kQueuesAtOnce = 100;

// --- what happens
// --------------------------------------------------------------------------------------------------------

// `kinds`: "job,queue".
void choose(ApiQuery& query, std::string_view kinds, EventFeed::Wanted& wanted) {
  wanted.jobs = wanted.schedules = wanted.queues = wanted.workers = wanted.projects = wanted.counters = false;
  const std::pair<std::string_view, bool*> known[] = {{"job", &wanted.jobs},         {"schedule", &wanted.schedules},
                                                      {"queue", &wanted.queues},     {"worker", &wanted.workers},
                                                      {"project", &wanted.projects}, {"counters", &wanted.counters}};
  while (!kinds.empty()) {
    const std::string_view kind = kinds.substr(0, kinds.find(','));
    kinds.remove_prefix(std::min(kind.size() + 1, kinds.size()));
    const auto* const found = std::ranges::find(known, kind, [](const auto& one) { return one.first; });
    if (found == std::end(known)) {
      return query.refuse("kinds", kind,
                          "some of job, schedule, queue, worker, project, counters, with commas between");
    }
    *found->second = true;
  }
}

Coro<Result<ServerResponse>> events(ApiState& api, ApiCall& call) {
  ApiQuery query(call);
  EventFeed::Wanted wanted;
  if (const auto kinds = query.text("kinds")) choose(query, *kinds, wanted);
  wanted.queue = query.text("queue").value_or("");
  wanted.last = query.whole("last", 0, kMostInPage, 0);
  co_await or_return(query.finish());
  if (!wanted.queue.empty()) co_await or_return(call.check_use(wanted.queue));
  if (const auto last = call.request.header("Last-Event-ID"); !last.empty()) wanted.last_event_id = std::string(last);
  wanted.may_see = call.caller.sight();
  wanted.who = call.caller.by == KnownBy::nothing ? std::string() : call.caller.name;
  wanted.right = call.caller.right;
  co_return api.events.stream(std::move(wanted));
}

Coro<Result<ServerResponse>> counters(ApiState& api, ApiCall& call) {
  auto snapshot = co_await or_return(api.events.counters(call.caller.sight()));
  snapshot += '\n';
  co_return ServerResponse::json(200, std::move(snapshot));
}

// --- what is in force
// ----------------------------------------------------------------------------------------------------

Coro<Result<ServerResponse>> config(ApiState& api, ApiCall& call) {
  auto queues = co_await or_return(api.book().queues());
  std::ranges::sort(queues, {}, &StoredQueue::name);
  // Of thousands some are written at a time: others are answered in between.
  std::vector<std::string> told;
  for (const StoredQueue& queue : queues) {
    if (!call.caller.may_use(queue.name)) continue;
    told.push_back(json_object([&](JsonWriter& json) {
      json.member("name", queue.name);
      json.key("config");
      json.raw(to_json(queue.config));
      api.write_lock_of_queue(json, queue.name);
    }));
    if (told.size() % kQueuesAtOnce == 0) co_await sleep(Duration{});
  }
  const std::string durability = api.engine.store().durability();
  co_return json_answer([&](JsonWriter& json) {
    json.member("store", api.options.store);
    if (!durability.empty()) json.member("durability", durability);
    json.member("most_jobs", api.options.most_jobs);
    json.member("most_pollers", api.options.most_pollers);
    json.member("longest_wait_ms",
                std::chrono::duration_cast<std::chrono::milliseconds>(api.options.longest_wait).count());
    json.array("queues", [&] {
      for (const std::string& queue : told) json.raw(queue);
    });
    // The part that is of no queue is for those who see all.
    if (!api.options.config || call.caller.is_bound()) return;
    json.key("daemon");
    json.raw(api.options.config());
  });
}

Coro<Result<ServerResponse>> version(ApiState& api, ApiCall&) {
  co_return json_answer([&](JsonWriter& json) {
    json.member("version", api.options.version);
    json.member("api", kApiVersion);
    json.member("store", api.options.store);
    json.member("started_at", api.options.started_at);
  });
}

Coro<Result<ServerResponse>> openapi(ApiState&, ApiCall&) {
  co_return ServerResponse::json(200, std::string(kOpenApi));
}

// --- who changed what
// ----------------------------------------------------------------------------------------------------

Coro<Result<ServerResponse>> audit(ApiState& api, ApiCall& call) {
  ApiQuery query(call);
  const std::uint64_t after = query.whole("after", 0, kMostJobId, 0);
  const std::size_t limit = query.whole("limit", 1, kMostInPage, kUsualPage);
  co_await or_return(query.finish());
  // Each change is told by its path, by any caller.
  co_await or_return(call.check_unbound("the audit"));
  const auto& entries = api.audit.entries();
  const auto first = std::ranges::upper_bound(entries, after, {}, &AuditLog::Kept::number);
  const auto count = std::min<std::size_t>(limit, static_cast<std::size_t>(entries.end() - first));
  const auto last = first + static_cast<std::ptrdiff_t>(count);
  co_return json_answer([&](JsonWriter& json) {
    json.array("entries", [&] {
      for (auto entry = first; entry != last; ++entry) json.raw(entry->json);
    });
    json.member("next", last == entries.end() ? std::nullopt : std::optional(std::prev(last)->number));
  });
}

}  // namespace

std::vector<ApiRoute> daemon_routes() {
  using enum HttpMethod;
  return {
      {.method = get, .pattern = "/v1/events", .handler = events, .has_query = true},
      reading_much(get, "/v1/counters", counters),
      reading_much(get, "/v1/config", config),
      {.method = get,
       .pattern = "/v1/audit",
       .scope = TokenScope::admin,
       .handler = audit,
       .reads_much = true,
       .has_query = true},
      {get, "/v1/version", TokenScope::read, version},
      {get, "/v1/openapi.json", TokenScope::none, openapi},
      simulate_route(),
      history_route(),
  };
}

}  // namespace argiope
