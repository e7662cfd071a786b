// Leases: jobs handed out to workers in any language, and what they say of them. api_workers.cpp has the workers.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "base/internal/base64.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/raw_json.hpp"
#include "jobs/internal/job_json.hpp"
#include "remote/internal/lease_limits.hpp"
#include "serve/api/api_state.hpp"
#include "serve/api/asked_settlements.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostLeased = 1'000;  // by one request
constexpr std::size_t kMostQueues = 1'000;
constexpr std::size_t kMostStops = 10'000;  // of a worker, that it has not been told of

// --- settling
// ------------------------------------------------------------------------------------------------------------

// The outcome of each, in the order of the request.
struct Settled {
  std::vector<std::uint64_t> tokens;
  std::vector<SettleReply> replies;
  std::map<std::size_t, Problem> wrong;
};

Coro<Result<std::vector<SettleReply>>> settle_ends(ApiState& api, ApiCall& call, std::vector<RunEnd> ends) {
  auto key = co_await or_return(call.request_key());
  if (!key) co_return co_await api.engine.settle_each(std::move(ends));
  const std::size_t count = ends.size();
  auto done = co_await or_return(api.engine.settle_once(std::move(*key), std::move(ends)));
  if (done.settlements.size() != count && done.how == Repetition::repeated) done.how = Repetition::mismatch;
  co_await or_return(call.check(done.how));
  co_return std::move(done.settlements);
}

// `replies`: to those that could be settled.
Settled settled_of(AskedSettlements asked, std::vector<SettleReply> replies) {
  Settled settled{std::move(asked.tokens), {}, std::move(asked.wrong)};  // the rest of `asked` is as it was
  settled.replies.resize(settled.tokens.size());
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const std::size_t place = asked.places[i];
    if (replies[i].refused) settled.wrong.emplace(place, problem_of_settlement(asked, place, *replies[i].refused));
    settled.replies[place] = std::move(replies[i]);
  }
  return settled;
}

Coro<Result<Settled>> settle_each(ApiState& api, ApiCall& call, AskedSettlements asked) {
  if (asked.runs.empty()) co_return settled_of(std::move(asked), {});
  auto replies = co_await or_return(settle_ends(api, call, std::move(asked.runs)));
  co_return settled_of(std::move(asked), std::move(replies));
}

void write_reply(JsonWriter& json, const SettleReply& reply) {
  json.member("outcome", reply.settled ? "ok" : "lease_lost");
  if (reply.follow_ups.empty()) return;
  json.array("follow_ups", [&] {
    for (const PutReply& put : reply.follow_ups) {
      json.object([&] {
        json.member("id", put.id);
        json.member("outcome", to_string(put.outcome));
      });
    }
  });
}

void write(JsonWriter& json, std::string_view name, const Settled& settled) {
  json.array(name, [&] {
    auto wrong = settled.wrong.begin();
    for (std::size_t i = 0; i < settled.tokens.size(); ++i) {
      json.object([&] {
        if (settled.tokens[i] != 0) json.member("token", settled.tokens[i]);
        if (wrong != settled.wrong.end() && wrong->first == i) {
          json.key("error");
          write(json, (wrong++)->second);
        } else {
          write_reply(json, settled.replies[i]);
        }
      });
    }
  });
}

Result<AskedSettlements> read_settle(const ApiState& api, ApiCall& call, WallTime now) {
  const auto parsed = call.object();
  if (!parsed) return std::unexpected(parsed.error());
  const JsonValue& root = *parsed;
  AskedSettlements asked;
  RawJson raw(call.request.body);
  std::size_t place = 0;
  bool has_list = false;
  root.for_each_member([&](std::string_view name, const JsonValue& value) {
    RawJson raw_value(raw, place++);
    if (name != "settlements") return value.refuse_member(fmt::format("there is no member {}", in_quotes(name)));
    has_list = true;
    read_settlements(api.options.most_jobs, now, value, raw_value, asked);
  });
  if (!has_list) root.refuse("member \"settlements\" is missing: a list");
  if (auto good = call.read_all(); !good) return std::unexpected(std::move(good.error()));
  return asked;
}

Coro<Result<ServerResponse>> settle(ApiState& api, ApiCall& call) {
  Result<AskedSettlements> read;
  co_await read_apart(api.long_bodies, call,
                      [&, now = api.engine.calendar_now()] { read = read_settle(api, call, now); });
  AskedSettlements asked = co_await or_return(std::move(read));
  judge_settlements(api, call, asked);
  const Settled settled = co_await or_return(settle_each(api, call, std::move(asked)));
  co_return json_answer([&](JsonWriter& json) { write(json, "replies", settled); });
}

// --- runs that are to stop
// -----------------------------------------------------------------------------------------------

// Its worker hears of it by the answer to a request that waits, or to its next one. An answer may be lost: each renewal
// of the lease says it again.
void note_stop(ApiState& api, const std::string& who, const std::string& name, std::uint64_t token) {
  const auto worker = api.workers.find(who, name);
  if (worker == nullptr || !api.engine.running(token) || worker->stops.size() >= kMostStops) return;
  worker->stops.push_back(token);
  worker->end_polls();
}

// Those of the worker's runs that are to stop of which the caller may hear.
std::vector<std::uint64_t> stops_of(const ApiState& api, const ApiCall& call, WorkerRegistry::Worker& worker) {
  std::vector<std::uint64_t> stops;
  std::erase_if(worker.stops, [&](std::uint64_t token) {
    const auto running = api.engine.running(token);
    const bool is_over = !running || !running->cancel_asked;
    if (!is_over && call.caller.may_use(running->queue)) stops.push_back(token);
    return is_over;
  });
  return stops;
}

// The answer to a request that could wait for them: no other needs to name them.
std::vector<std::uint64_t> take_stops(const ApiState& api, const ApiCall& call, WorkerRegistry::Worker& worker) {
  std::vector<std::uint64_t> stops = stops_of(api, call, worker);
  for (const std::uint64_t token : stops) std::erase(worker.stops, token);
  return stops;
}

// --- leasing
// -------------------------------------------------------------------------------------------------------------

struct AskedLease {
  LeaseCall call;
  Duration wait{};
  AskedSettlements settle;
  bool settles = false;
};

void read_queues(ApiCall& call, const JsonValue& value, LeaseCall& into) {
  if (!value.is_list() || value.size() == 0 || value.size() > kMostQueues) {
    return value.wrong(fmt::format("a list of 1 to {} names of queues", kMostQueues));
  }
  value.for_each([&](const JsonValue& name) {
    into.queues.push_back(name.text(1, kMostNameBytes));
    if (call.errors() || call.caller.may_fill(into.queues.back())) return;
    name.refuse(fmt::format("the token may not use queue {}", in_quotes(into.queues.back())));
    (void)call.refuse({ProblemType::forbidden, call.errors().error().message, problem_of(call.errors()).places});
  });
}

void read_lease_member(const ApiState& api, ApiCall& call, WallTime now, std::string_view name, const JsonValue& value,
                       RawJson& raw, AskedLease& asked) {
  const auto most_ms = std::chrono::duration_cast<std::chrono::milliseconds>(api.options.longest_wait).count();
  if (name == "queues") {
    read_queues(call, value, asked.call);
  } else if (name == "most") {
    asked.call.most = static_cast<std::size_t>(value.whole(0, kMostLeased));
  } else if (name == "wait_ms") {
    asked.wait = std::chrono::milliseconds{value.whole(0, most_ms)};
  } else if (name == "worker") {
    asked.call.worker = value.text(1, kMostNameBytes);
  } else if (name == "settle") {
    asked.settles = true;
    read_settlements(api.options.most_jobs, now, value, raw, asked.settle);
  } else {
    value.refuse_member(fmt::format("there is no member {}", in_quotes(name)));
  }
}

Result<AskedLease> read_lease(const ApiState& api, ApiCall& call, WallTime now) {
  const auto root = call.object();
  if (!root) return std::unexpected(root.error());
  AskedLease asked;
  RawJson raw(call.request.body);
  std::size_t place = 0;
  root->for_each_member([&](std::string_view name, const JsonValue& value) {
    RawJson raw_value(raw, place++);
    read_lease_member(api, call, now, name, value, raw_value, asked);
  });
  if (asked.call.queues.empty()) root->refuse("member \"queues\" is missing: a list of names of queues");
  if (auto good = call.read_all(); !good) return std::unexpected(std::move(good.error()));
  if (asked.call.worker.empty()) asked.call.worker = fmt::format("http {}", call.request.peer);
  return asked;
}

// A request that waits, for jobs or to hear what is to stop: counted, and ended by Api::stop().
class Poll {
 public:
  Poll(ApiState& api, const Caller& caller, const AskedLease& asked, WorkerRegistry::WorkerRef worker)
      : limit(saturating_add(EventLoop::current().time(), asked.wait)),
        worker_(std::move(worker)),
        for_jobs_(asked.call.most > 0),
        place_(api, caller, limit) {
    worker_->polls.push_back(&limit);
    if (for_jobs_) ++worker_->waiting;
  }
  Poll(const Poll&) = delete;
  ~Poll() {
    std::erase(worker_->polls, &limit);
    if (for_jobs_) --worker_->waiting;
  }

  Timeout limit;

 private:
  const WorkerRegistry::WorkerRef worker_;
  const bool for_jobs_;
  const PollPlace place_;
};

// The client that leaves ends it, and then nothing is leased: the engine takes back what was on its way.
Coro<Result<std::vector<LeasedJob>>> wait_for_jobs(ApiState& api, const Caller& caller, AskedLease& asked,
                                                   WorkerRegistry::WorkerRef worker) {
  Poll poll(api, caller, asked, std::move(worker));
  try {
    if (asked.call.most > 0) co_return co_await poll.limit.run(api.engine.lease(std::move(asked.call)));
    co_await poll.limit.run(sleep(asked.wait));
  } catch (const TimeoutError&) {
  }
  co_return std::vector<LeasedJob>{};
}

Coro<Result<std::vector<LeasedJob>>> lease_jobs(ApiState& api, ApiCall& call, AskedLease& asked,
                                                WorkerRegistry::WorkerRef worker) {
  if (api.stopped) {
    if (asked.settles) co_return std::vector<LeasedJob>{};
    co_return call.refuse(ProblemType::draining, "the daemon is stopping, and gives out no more jobs");
  }
  if (!stops_of(api, call, *worker).empty()) asked.wait = Duration::zero();
  auto why_not = asked.wait > Duration::zero() ? api.why_not_wait(call.caller) : std::nullopt;
  if (asked.wait > Duration::zero() && !why_not) {
    co_return co_await wait_for_jobs(api, call.caller, asked, std::move(worker));
  }
  std::vector<LeasedJob> leased;
  if (asked.call.most > 0) leased = co_await or_return(api.engine.lease_now(std::move(asked.call)));
  if (leased.empty() && why_not && !asked.settles) co_return call.refuse(*std::move(why_not));
  co_return leased;
}

// --- a request for leases that comes again

// Those of them that have not ended, for their whole time from now on.
Coro<Result<std::vector<LeasedJob>>> lease_again(ApiState& api, const ApiCall& call,
                                                 std::vector<std::uint64_t> tokens) {
  std::vector<LeasedJob> leased;
  for (const std::uint64_t token : tokens) {
    const auto running = api.engine.running(token);
    if (!running || !call.caller.may_fill(running->queue) || !api.engine.renew(token)) continue;
    auto record = co_await api.book().get(running->id);
    if (!record) continue;
    leased.push_back({.job = std::move(*record),
                      .token = token,
                      .attempt = running->attempt,
                      .until = saturating_add(EventLoop::current().time(), running->lease_time),
                      .lease_time = running->lease_time});
  }
  co_return leased;
}

std::vector<std::uint64_t> tokens_of(const std::vector<LeasedJob>& leased) {
  std::vector<std::uint64_t> tokens;
  tokens.reserve(leased.size());
  for (const LeasedJob& job : leased) tokens.push_back(job.token);
  return tokens;
}

// With a key, a request whose answer was lost is given the leases that it was given before. One that was given none, or
// that comes when the daemon has restarted, is a new one.
Coro<Result<std::vector<LeasedJob>>> lease_once(ApiState& api, ApiCall& call, AskedLease& asked,
                                                WorkerRegistry::WorkerRef worker) {
  using enum RequestMemory<std::vector<std::uint64_t>>::State;
  const auto key = co_await or_return(call.request_key());
  if (!key) co_return co_await lease_jobs(api, call, asked, std::move(worker));
  const auto found = api.given.begin(call.caller.name, *key, EventLoop::current().time());
  if (found.state == repeated) {
    auto leased = co_await lease_again(api, call, *found.answer);
    // All of them have ended meanwhile: it asks anew.
    if (!leased || !leased->empty()) co_return leased;
    api.given.forget(call.caller.name, *key);
    co_return co_await lease_once(api, call, asked, std::move(worker));
  }
  if (found.state == under_way) {
    // Nobody may be there any more to hear the answer of the first.
    worker->end_polls();
    co_return call.refuse(ProblemType::busy, "the request with this Idempotency-Key is still under way");
  }
  if (found.state == full) co_return call.refuse(ApiState::too_many_keys());
  co_await or_return(call.check(found.state == mismatch ? Repetition::mismatch : Repetition::first));
  RequestUnderWay<std::vector<std::uint64_t>> under_way_now(api.given, call.caller.name, *key);
  auto leased = co_await or_return(lease_jobs(api, call, asked, std::move(worker)));
  if (!leased.empty()) under_way_now.keep(tokens_of(leased), leased.size());
  call.takes_key = asked.settles || !leased.empty();
  co_return leased;
}

void write_lease_end(const ApiState& api, JsonWriter& json, TimePoint until, Duration lease_time) {
  json.member("until", api.engine.calendar_now() + (until - EventLoop::current().time()));
  json.member("lease_ms", std::chrono::duration_cast<std::chrono::milliseconds>(lease_time).count());
}

void write(const ApiState& api, JsonWriter& json, const LeasedJob& leased) {
  json.object([&] {
    json.object("job", [&] { write_members(json, leased.job); });
    json.member("token", leased.token);
    json.member("attempt", leased.attempt);
    write_lease_end(api, json, leased.until, leased.lease_time);
  });
}

// Nobody is there any more to get them.
void give_back(ApiState& api, const std::vector<LeasedJob>& leased) {
  std::vector<RunEnd> ends;
  for (const LeasedJob& job : leased) ends.push_back({job.token, {.outcome = Outcome::release}});
  EventLoop::current().create_task(api.engine.settle_each(std::move(ends)), "give leases back", Start::eagerly);
}

// Leases while what the request settles is on its way, so that one transaction has both. That goes on whatever becomes
// of this request.
Coro<Result<std::vector<LeasedJob>>> lease_and_settle(ApiState& api, ApiCall& call, AskedLease& asked,
                                                      WorkerRegistry::WorkerRef worker,
                                                      std::optional<Settled>& settled) {
  AskedSettlements settle = std::move(asked.settle);
  LeaseCall again = asked.call;
  auto settling =
      EventLoop::current().create_task(api.engine.settle_each(std::move(settle.runs)), "settle", Start::eagerly);
  auto leased = co_await lease_jobs(api, call, asked, worker);
  try {
    auto replies = co_await settling;
    if (!replies) {
      if (leased) give_back(api, *leased);
      co_return std::unexpected(std::move(replies.error()));
    }
    settled = settled_of(std::move(settle), std::move(*replies));
  } catch (const CancelledError&) {
    if (leased) give_back(api, *leased);
    throw;
  }
  // The settlements may have brought some.
  if (!leased || !leased->empty() || asked.wait > Duration::zero()) co_return leased;
  asked.call = std::move(again);
  co_return co_await lease_jobs(api, call, asked, std::move(worker));
}

Coro<Result<std::vector<LeasedJob>>> settle_and_lease(ApiState& api, ApiCall& call, AskedLease& asked,
                                                      WorkerRegistry::WorkerRef worker,
                                                      std::optional<Settled>& settled) {
  const bool has_key = !call.request.header("Idempotency-Key").empty();
  if (!has_key && !asked.settle.runs.empty() && asked.call.most > 0) {
    co_return co_await lease_and_settle(api, call, asked, std::move(worker), settled);
  }
  if (asked.settles) settled = co_await or_return(settle_each(api, call, std::move(asked.settle)));
  co_return co_await lease_once(api, call, asked, std::move(worker));
}

// Whether there is room for an answer with them. Where there is none they are given back, and others may have them.
bool has_room_for(ApiState& api, const ApiCall& call, std::vector<LeasedJob>& leased) {
  std::size_t bytes = 0;
  for (const LeasedJob& one : leased) bytes += one.job.payload.size() + one.job.result.size();
  if (bytes <= AnswerRoom::kSmall || api.options.room->take(call.caller.name, bytes) != nullptr) return true;
  give_back(api, leased);
  leased.clear();
  return false;
}

Coro<Result<ServerResponse>> lease(ApiState& api, ApiCall& call) {
  Result<AskedLease> read;
  co_await read_apart(api.long_bodies, call,
                      [&, now = api.engine.calendar_now()] { read = read_lease(api, call, now); });
  AskedLease asked = co_await or_return(std::move(read));
  judge_settlements(api, call, asked.settle);
  const auto worker =
      api.workers.seen(call.caller.name, asked.call.worker, asked.call.queues, api.engine.calendar_now());
  if (worker == nullptr) {
    co_return call.refuse(ProblemType::too_many,
                          "the workers that wait name too many queues: as many as are kept in memory");
  }
  asked.call.remote = true;
  asked.call.asked_by = worker->who;
  asked.call.on_cancel = [of = std::weak_ptr(api.shared_from_this()), who = worker->who,
                          name = worker->name](std::uint64_t token) {
    if (const auto its_api = of.lock()) note_stop(*its_api, who, name, token);
  };
  std::optional<Settled> settled;
  auto leased = co_await or_return(settle_and_lease(api, call, asked, worker, settled));
  if (!call.caller.is_still_let_in()) {
    give_back(api, leased);
    co_return call.refuse(access_ended());
  }
  if (!has_room_for(api, call, leased) && !settled) co_return call.refuse(AnswerRoom::refusal());
  const auto stops = take_stops(api, call, *worker);
  co_return json_answer([&](JsonWriter& json) {
    json.array("leases", [&] {
      for (const LeasedJob& job : leased) write(api, json, job);
    });
    if (settled) write(json, "settled", *settled);
    if (!stops.empty()) json.list("cancel", stops);
  });
}

// --- renewing
// ------------------------------------------------------------------------------------------------------------

struct AskedRenewal {
  std::uint64_t token = 0;
  std::optional<double> progress;
  std::string message;
  std::optional<std::string> output;
};

// The output of the run so far: `output`, or `output_base64`.
std::optional<std::string> read_run_output(JsonMembers& in) {
  const JsonValue* const text = in.find("output");
  const JsonValue* const coded = in.find("output_base64");
  if (text != nullptr && coded != nullptr) coded->refuse("give output or output_base64, not both");
  if (text != nullptr) return text->text(0, kMostOutputBytes);
  if (coded == nullptr) return std::nullopt;
  const auto letters = coded->if_text();
  auto bytes = letters ? from_base64(*letters) : std::nullopt;
  if (!bytes) coded->wrong("a string of base64");
  if (bytes && bytes->size() > kMostOutputBytes) coded->wrong(fmt::format("at most {} bytes", kMostOutputBytes));
  return bytes;
}

AskedRenewal read_renewal(const JsonValue& value) {
  AskedRenewal asked;
  if (!value.is_object()) value.wrong("one JSON object is wanted");
  JsonMembers in(value);
  in.refuse_repeated();
  const JsonValue* const token = in.find("token");
  if (token == nullptr) value.refuse("member \"token\" is missing: a whole number");
  if (token != nullptr)
    asked.token = static_cast<std::uint64_t>(token->whole(1, static_cast<std::int64_t>(kMostToken)));
  if (const JsonValue* progress = in.find("progress")) {
    asked.progress = progress->if_number();
    if (!asked.progress || *asked.progress < 0 || *asked.progress > 1) progress->wrong("a number from 0 to 1");
  }
  if (const JsonValue* message = in.find("message")) asked.message = message->text(0, kMostMessageBytes);
  asked.output = read_run_output(in);
  in.finish("a lease has none");
  return asked;
}

// As it runs on; nullopt where the lease is lost, or none of a worker that the caller may speak for.
std::optional<RunningJob> renew(ApiState& api, const ApiCall& call, AskedRenewal& asked) {
  auto running = api.engine.running(asked.token);
  if (!running || !running->remote || !call.caller.may_fill(running->queue)) return std::nullopt;
  if (!api.engine.renew(asked.token)) return std::nullopt;
  running->until = saturating_add(EventLoop::current().time(), running->lease_time);
  if (const auto worker = api.workers.find(call.caller.name, running->worker)) {
    worker->seen_at = api.engine.calendar_now();
  }
  if (asked.progress) api.engine.set_progress(asked.token, *asked.progress, std::move(asked.message));
  if (asked.output) api.engine.set_output(asked.token, *std::move(asked.output));
  return running;
}

struct AskedRenewals {
  std::vector<AskedRenewal> leases;
  std::string worker;
};

Result<AskedRenewals> read_renewals(const ApiState& api, ApiCall& call) {
  const auto parsed = call.object();
  if (!parsed) return std::unexpected(parsed.error());
  const JsonValue& root = *parsed;
  JsonMembers in(root);
  in.refuse_repeated();
  AskedRenewals asked;
  const JsonValue* const list = in.find("leases");
  if (list == nullptr) {
    root.refuse("member \"leases\" is missing: a list");
  } else if (!list->is_list() || list->size() > api.options.most_jobs) {
    list->wrong(fmt::format("a list of at most {} leases", api.options.most_jobs));
  } else {
    list->for_each([&](const JsonValue& value) { asked.leases.push_back(read_renewal(value)); });
  }
  if (const JsonValue* worker = in.find("worker")) asked.worker = worker->text(1, kMostNameBytes);
  in.finish("a renewal has none");
  if (auto good = call.read_all(); !good) return std::unexpected(std::move(good.error()));
  return asked;
}

Coro<Result<ServerResponse>> renew_each(ApiState& api, ApiCall& call) {
  Result<AskedRenewals> read;
  co_await read_apart(api.long_bodies, call, [&] { read = read_renewals(api, call); });
  AskedRenewals asked = co_await or_return(std::move(read));
  const auto worker = api.workers.find(call.caller.name, asked.worker);
  co_return json_answer([&](JsonWriter& json) {
    json.array("leases", [&] {
      for (AskedRenewal& one : asked.leases) {
        const auto running = renew(api, call, one);
        json.object([&] {
          json.member("token", one.token);
          if (!running) return json.member("lease_lost", true);
          write_lease_end(api, json, running->until, running->lease_time);
          json.member("cancel", running->cancel_asked);
        });
        if (worker != nullptr) std::erase(worker->stops, one.token);
      }
    });
    if (worker == nullptr) return;
    if (const auto stops = stops_of(api, call, *worker); !stops.empty()) json.list("cancel", stops);
  });
}

ApiRoute of_leases(HttpMethod method, std::string_view pattern, ApiHandler handler, bool knows_keys) {
  return {.method = method,
          .pattern = pattern,
          .scope = TokenScope::work,
          .handler = handler,
          .knows_keys = knows_keys,
          .reads_apart = true};
}

}  // namespace

std::vector<ApiRoute> lease_routes() {
  using enum HttpMethod;
  return {
      of_leases(post, "/v1/leases", lease, true),
      of_leases(patch, "/v1/leases", renew_each, false),
      of_leases(post, "/v1/leases/settle", settle, true),
  };
}

}  // namespace argiope
