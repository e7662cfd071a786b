// Workers: who takes jobs by way of the API, and ending what one that is gone has left.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "argiope/async/coro.hpp"
#include "base/internal/printable.hpp"
#include "serve/api/api_state.hpp"

namespace argiope {
namespace {

// The facts known of a worker: by its requests, or only by its leases, which have outlived a daemon.
struct KnownWorker {
  std::set<std::string> queues;
  std::size_t leases = 0;
  bool waiting = false;
  WallTime seen_at{};
};
using WorkerId = std::pair<std::string, std::string>;  // its name, and who asks
using KnownWorkers = std::map<WorkerId, KnownWorker>;

constexpr std::size_t kMostToldBytes = 1024 * 1024;  // of queues' names: a page ends behind the worker that is over

KnownWorkers workers_that_asked(const ApiState& api) {
  KnownWorkers known;
  for (const auto& worker : api.workers.all()) {
    known[{worker->name, worker->who}] = {
        {worker->queues.begin(), worker->queues.end()}, 0, worker->waiting > 0, worker->seen_at};
  }
  return known;
}

// Whose a lease is. The asker of one that has outlived a daemon is not known: it is told of the only worker of that
// name, if there is one.
WorkerId holder_of(const KnownWorkers& asked, const RunningJob& running) {
  const WorkerId id(running.worker, running.asked_by);
  if (!running.asked_by.empty()) return id;
  const auto first = asked.lower_bound(id);
  const bool is_there = first != asked.end() && first->first.first == running.worker;
  const bool is_only = is_there && (std::next(first) == asked.end() || std::next(first)->first.first != running.worker);
  return is_only ? first->first : id;
}

// Those of whose queues the caller may use each.
KnownWorkers workers_told(const ApiState& api, const ApiCall& call) {
  const KnownWorkers asked = workers_that_asked(api);
  KnownWorkers known = asked;
  for (const RunningJob& running : api.engine.running()) {
    if (!running.remote) continue;
    KnownWorker& worker = known[holder_of(asked, running)];
    ++worker.leases;
    worker.queues.insert(running.queue);
  }
  std::erase_if(known, [&](const auto& one) {
    return !std::ranges::all_of(one.second.queues,
                                [&](const std::string& queue) { return call.caller.may_use(queue); });
  });
  return known;
}

void write(JsonWriter& json, const WorkerId& id, const KnownWorker& worker) {
  json.object([&] {
    json.member("name", id.first);
    json.member("who", id.second);
    json.list("queues", worker.queues);
    json.member("leases", worker.leases);
    json.member("waiting", worker.waiting);
    json.member("seen_at", worker.seen_at);
  });
}

// By name. A page ends behind all of one name, so that its cursor is a name.
Coro<Result<ServerResponse>> list_workers(ApiState& api, ApiCall& call) {
  ApiQuery query(call);
  const std::string after = query.text("after").value_or("");
  const std::size_t limit = query.whole("limit", 1, kMostInPage, kMostInPage);
  co_await or_return(query.finish());
  const KnownWorkers known = workers_told(api, call);
  auto at =
      std::ranges::upper_bound(known, after, {}, [](const auto& one) -> const std::string& { return one.first.first; });
  std::optional<std::string> next;
  co_return json_answer([&](JsonWriter& json) {
    std::size_t told = 0, bytes = 0;
    std::string_view last;
    json.array("workers", [&] {
      for (; at != known.end(); ++at) {
        const bool is_full = told >= limit || bytes >= kMostToldBytes;
        if (is_full && at->first.first != last) {
          next = last;
          return;
        }
        write(json, at->first, at->second);
        last = at->first.first;
        ++told;
        for (const std::string& queue : at->second.queues) bytes += queue.size();
      }
    });
    json.member("next", next);
  });
}

// --- ending one
// ----------------------------------------------------------------------------------------------------------

// A caller who knows a worker's name could end the work of others: only an admin may; the rest end their own work.
bool may_end(const ApiCall& call, const std::string& who) {
  return call.caller.scope == TokenScope::admin || who == call.caller.name;
}

// Those that are meant: of that name, and, where the request says `who`, of that one alone.
Coro<Result<std::set<WorkerId>>> workers_to_end(const ApiState& api, ApiCall& call, const std::string& name,
                                                const std::optional<std::string>& who) {
  std::set<WorkerId> meant;
  for (const auto& [id, worker] : workers_told(api, call)) {
    if (id.first == name && (!who || id.second == *who)) meant.insert(id);
  }
  if (meant.empty()) {
    co_return call.refuse(ProblemType::not_found, fmt::format("worker {}: there is no such worker", in_quotes(name)));
  }
  std::erase_if(meant, [&](const WorkerId& id) { return !may_end(call, id.second); });
  if (meant.empty()) {
    co_return call.refuse(
        ProblemType::forbidden,
        fmt::format("worker {}: the token {} has not begun what it does: the one that has may end it, "
                    "or one of scope admin",
                    in_quotes(name), in_quotes(call.caller.name)));
  }
  co_return meant;
}

// Of clients of this API. Workers of another kind may have the same name.
std::vector<std::uint64_t> leases_to_end(const ApiState& api, const ApiCall& call, const std::set<WorkerId>& workers) {
  const KnownWorkers asked = workers_that_asked(api);
  std::vector<std::uint64_t> tokens;
  for (const RunningJob& running : api.engine.running()) {
    const bool is_meant = running.remote && workers.contains(holder_of(asked, running));
    if (is_meant && call.caller.may_use(running.queue) && may_end(call, running.asked_by)) {
      tokens.push_back(running.token);
    }
  }
  return tokens;
}

Coro<Result<ServerResponse>> end_worker(ApiState& api, ApiCall& call) {
  const std::string name(call.id_or_name("worker"));
  ApiQuery query(call);
  const auto who = query.text("who");
  co_await or_return(query.finish());
  const auto workers = co_await or_return(workers_to_end(api, call, name, who));
  auto tokens = leases_to_end(api, call, workers);
  for (const auto& [its_name, its_who] : workers) {
    const auto worker = api.workers.find(its_who, its_name);
    if (worker == nullptr) continue;
    worker->end_polls();
    api.workers.forget(*worker);
  }
  const std::size_t ended = co_await or_return(api.engine.end_leases(std::move(tokens)));
  co_return json_answer([&](JsonWriter& json) { json.member("ended", ended); });
}

}  // namespace

std::vector<ApiRoute> worker_routes() {
  using enum HttpMethod;
  return {
      reading_much(get, "/v1/workers", list_workers, true),
      {.method = delete_,
       .pattern = "/v1/workers/{worker}",
       .scope = TokenScope::work,
       .handler = end_worker,
       .audited = true,
       .has_query = true},
  };
}

}  // namespace argiope
