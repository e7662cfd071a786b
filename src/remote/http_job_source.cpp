#include "remote/internal/http_job_source.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "base/internal/json_told.hpp"
#include "base/internal/utf8.hpp"
#include "jobs/internal/job_telling.hpp"
#include "remote/internal/api_path.hpp"
#include "remote/internal/http_book.hpp"
#include "remote/internal/lease_limits.hpp"
#include "remote/settlement_telling.hpp"

namespace argiope {
namespace {

constexpr Duration kPoll = std::chrono::seconds{30};
constexpr Duration kBeyondPoll = std::chrono::seconds{20};  // until a poll that is not answered counts as lost
constexpr Duration kForAnswer = std::chrono::seconds{30};
constexpr Duration kForEnd = std::chrono::seconds{3};  // until a request that is not wanted any more is cut off
constexpr Duration kBeforeListening = std::chrono::milliseconds{200};
constexpr std::size_t kMostAsked = 1'000;
constexpr std::size_t kMostSettled = 1'000;
constexpr std::size_t kMostSettledBytes = 8 * 1024 * 1024;

std::int64_t in_ms(Duration span) { return std::chrono::duration_cast<std::chrono::milliseconds>(span).count(); }

LeasedJob read_lease(const JsonValue& told) {
  ToldMembers in(told);
  LeasedJob leased;
  if (const JsonValue* job = in.find("job")) leased.job = read_job_record(*job);
  in.read("token", leased.token);
  in.read("attempt", leased.attempt);
  in.read_ms("lease_ms", leased.lease_time);
  leased.until = saturating_add(EventLoop::current().time(), leased.lease_time);
  if (leased.token == 0) told.refuse("a lease has a token");
  return leased;
}

// Tokens of jobs that are to stop.
std::vector<std::uint64_t> read_stops(const JsonValue& told) {
  std::vector<std::uint64_t> stops;
  ToldMembers(told).for_each("cancel", [&](const JsonValue& token) {
    stops.push_back(static_cast<std::uint64_t>(token.whole(1, std::numeric_limits<std::int64_t>::max())));
  });
  return stops;
}

// Of one token: whether it was settled.
struct ToldSettlement {
  std::uint64_t token = 0;
  Result<bool> settled = false;
};

ToldSettlement read_settled(const JsonValue& told) {
  ToldMembers in(told);
  ToldSettlement settlement;
  std::string outcome;
  in.read("token", settlement.token);
  in.read("outcome", outcome);
  settlement.settled = outcome == "ok";
  if (const JsonValue* problem = in.find("error")) settlement.settled = std::unexpected(read_problem(*problem).error);
  return settlement;
}

// Of one lease that was renewed.
struct ToldRenewal {
  std::uint64_t token = 0;
  Duration lease_time{};
  bool stop = false;
};

ToldRenewal read_told_renewal(const JsonValue& told) {
  ToldMembers in(told);
  ToldRenewal renewal;
  bool lost = false, cancel = false;
  in.read("token", renewal.token);
  in.read_ms("lease_ms", renewal.lease_time);
  in.read("lease_lost", lost);
  in.read("cancel", cancel);
  renewal.stop = lost || cancel;
  return renewal;
}

}  // namespace

// The answer to a request for leases.
struct HttpJobSource::Told {
  std::vector<LeasedJob> leased;
  std::vector<std::uint64_t> stops;
};

HttpJobSource::HttpJobSource(ApiClient& client, JobListener listener)
    : client_(client),
      listener_(std::move(listener)),
      loop_(EventLoop::current()),
      background_(loop_, "talks to the daemon") {}

Coro<void> HttpJobSource::close() {
  closed_ = true;
  for (auto& [token, run] : held_) run.renew = false;
  if (listening_ && !listening_.done()) listening_.cancel();
  try {
    if (listening_) co_await listening_;
  } catch (const CancelledError&) {
    if (!listening_.cancelled()) throw;
  }
  co_await background_.quiet();
}

// --- leases ----------------------------------------------------------------------------------------------------------

Coro<Result<std::vector<LeasedJob>>> HttpJobSource::lease(LeaseCall call) {
  for (;;) {
    auto leased = co_await or_return(lease_within(call, kPoll));
    if (!leased.empty()) co_return leased;
  }
}

Coro<Result<void>> HttpJobSource::check(const LeaseCall& call) {
  co_await or_return(ask_for_leases({.call = call, .key = client_.new_key()}));
  co_return Result<void>{};
}

Coro<Result<std::vector<LeasedJob>>> HttpJobSource::lease_within(LeaseCall call, Duration wait) {
  const std::size_t most = std::clamp<std::size_t>(call.most, 1, kMostAsked);
  Asked asked{.call = std::move(call), .most = most, .wait = wait, .key = client_.new_key()};
  Poll polling = loop_.create_task(poll(shared_from_this(), asked), "asks for jobs", Start::eagerly);
  std::unique_ptr<Result<Told>> told;
  try {
    told = co_await shield(polling);
  } catch (const CancelledError&) {
    if (!polling.cancelled()) background_.run(shared_from_this(), end(polling, std::move(asked)));
    throw;
  }
  if (!*told) co_return std::unexpected(std::move(told->error()));
  for (const std::uint64_t token : (*told)->stops) lose(token);
  auto leased = hold(std::move((*told)->leased), std::move(asked.call));
  start_to_listen();
  co_return leased;
}

Coro<std::unique_ptr<Result<HttpJobSource::Told>>> HttpJobSource::poll(std::shared_ptr<HttpJobSource> self,
                                                                       Asked asked) {
  co_return std::make_unique<Result<Told>>(co_await self->ask_for_leases(asked));
}

Coro<Result<Backlog>> HttpJobSource::backlog(BacklogLook look) {
  const auto self = shared_from_this();
  HttpBook book(client_);
  auto queues = co_await or_return(book.queues());
  const auto counted = co_await or_return(book.counts({}));
  std::vector<QueueFacts> facts;
  for (StoredQueue& queue : queues) {
    if (std::ranges::find(look.queues, queue.name) == look.queues.end()) continue;
    const auto found = std::ranges::find(counted, queue.name, &NamedCounts::first);
    if (found != counted.end()) facts.push_back({.queue = std::move(queue), .counts = found->second});
  }
  const auto delayed = [&book](const StoredQueue& of) { return delayed_in(book, of.name); };
  co_return co_await look_for_backlog(std::move(facts), delayed, loop_.clock().wall_now(), look.linger);
}

Coro<Result<std::vector<WaitingJob>>> HttpJobSource::delayed_in(HttpBook& book, std::string queue) {
  const auto listed = co_await or_return(book.list({.queue = std::move(queue),
                                                    .state = JobState::delayed,
                                                    .key = std::nullopt,
                                                    .limit = kMostDelayedLookedAt,
                                                    .payloads = false}));
  std::vector<WaitingJob> delayed;
  for (const JobRecord& job : listed) {
    if (job.pending == 0) delayed.push_back({.id = job.id, .due_at = job.due_at, .attempts = job.attempts});
  }
  std::ranges::sort(delayed, {}, &WaitingJob::due_at);
  co_return delayed;
}

// The daemon ends a request that waits when it comes again, and tells whom its leases are if it has ended. The request
// is not cut off before: its answer may be on its way.
Coro<void> HttpJobSource::end(Poll polling, Asked asked) {
  std::map<std::uint64_t, LeasedJob> unwanted;
  const auto take = [&](const Result<Told>& told) {
    if (!told) return;
    for (const LeasedJob& job : told->leased) unwanted.emplace(job.token, job);
  };
  if (!polling.done()) {
    const auto answer = co_await client_.ask({.method = HttpMethod::post,
                                              .path = "/v1/leases",
                                              .body = text_of(asked),
                                              .key = asked.key,
                                              .waits = false,
                                              .timeout = kForEnd});
    if (answer && !answer->problem) take(read_answer(answer->body, read_told));
    if (!answer) polling.cancel();
  }
  try {
    const auto told = co_await wait_for(std::move(polling), kForEnd);
    take(*told);
  } catch (const CancelledError&) {
    if (current_task().cancelling() > 0) throw;
  } catch (const TimeoutError&) {
  }
  std::vector<LeasedJob> leased;
  for (auto& [token, job] : unwanted) leased.push_back(std::move(job));
  for (const LeasedJob& job : hold(std::move(leased), std::move(asked.call))) {
    background_.run(shared_from_this(), give_back(job.token));
  }
}

Coro<void> HttpJobSource::give_back(std::uint64_t token) {
  (void)co_await settle(token, {.outcome = Outcome::release});
}

std::string HttpJobSource::text_of(const Asked& asked) {
  return json_object([&](JsonWriter& json) {
    json.list("queues", asked.call.queues);
    json.member("most", asked.most);
    json.member("wait_ms", in_ms(asked.wait));
    json.member("worker", asked.call.worker);
  });
}

HttpJobSource::Told HttpJobSource::read_told(const JsonValue& answer) {
  Told told;
  ToldMembers(answer).for_each("leases", [&](const JsonValue& lease) { told.leased.push_back(read_lease(lease)); });
  told.stops = read_stops(answer);
  return told;
}

Coro<Result<HttpJobSource::Told>> HttpJobSource::ask_for_leases(const Asked& asked) {
  struct Asking {
    std::size_t& count;
    explicit Asking(std::size_t& its_count) : count(its_count) { ++count; }
    ~Asking() { --count; }
  } const asking{asking_};
  const std::string body = co_await or_return(client_.tell({.method = HttpMethod::post,
                                                            .path = "/v1/leases",
                                                            .body = text_of(asked),
                                                            .key = asked.key,
                                                            .timeout = asked.wait + kBeyondPoll}));
  co_return read_answer(body, read_told);
}

// --- what is to stop -------------------------------------------------------------------------------------------------

void HttpJobSource::start_to_listen() {
  if (closed_ || held_.empty() || (listening_ && !listening_.done())) return;
  listening_ = loop_.create_task(listen(shared_from_this()), "listens to the daemon");
}

Coro<void> HttpJobSource::listen(std::shared_ptr<HttpJobSource> self) {
  co_await sleep(kBeforeListening);
  while (!self->closed_ && !self->held_.empty() && self->asking_ == 0) {
    const auto call = self->held_.begin()->second.call;
    const auto told = co_await self->ask_for_leases({.call = *call, .wait = kPoll, .key = self->client_.new_key()});
    if (!told) co_return;  // renewals hear of it
    for (const std::uint64_t token : told->stops) self->lose(token);
  }
}

std::vector<LeasedJob> HttpJobSource::hold(std::vector<LeasedJob> leased, LeaseCall call) {
  const auto shared = std::make_shared<const LeaseCall>(std::move(call));
  for (LeasedJob& job : leased) {
    Held& run = held_[job.token];
    run = {.id = job.job.id,
           .queue = job.job.queue,
           .attempt = job.attempt,
           .lease_time = job.lease_time,
           .call = shared,
           .progress = std::nullopt,
           .output = std::nullopt};
    job.lease_time = renewed_for(run);
  }
  return leased;
}

// --- renewals --------------------------------------------------------------------------------------------------------

Duration HttpJobSource::renewed_for(const Held& run) const { return std::min<Duration>(run.lease_time, kAskWithin); }

std::optional<Duration> HttpJobSource::renew(std::uint64_t token) {
  const auto run = held_.find(token);
  if (run == held_.end()) return std::nullopt;
  renew_soon(run->second);
  return renewed_for(run->second);
}

void HttpJobSource::renew_soon(Held& run) {
  run.renew = true;
  if (!closed_ && !std::exchange(renewing_, true)) background_.run(shared_from_this(), renew_all());
}

bool HttpJobSource::set_output(std::uint64_t token, std::string output) {
  const auto run = held_.find(token);
  if (run == held_.end()) return false;
  if (output.size() > kMostOutputBytes) output.resize(kMostOutputBytes);
  run->second.output = std::move(output);
  renew_soon(run->second);
  return true;
}

bool HttpJobSource::set_progress(std::uint64_t token, double fraction, std::string message) {
  const auto run = held_.find(token);
  if (run == held_.end()) return false;
  message.resize(cut_between_characters(message, kMostMessageBytes).size());
  run->second.progress = Progress{std::clamp(fraction, 0.0, 1.0), std::move(message)};
  return true;
}

// The next turn's renewals go together; those that come while one request is under way, with the next.
Coro<void> HttpJobSource::renew_all() {
  struct End {
    bool& renewing;
    ~End() { renewing = false; }
  } const end{renewing_};
  for (std::string body = renewals(); !body.empty(); body = renewals()) {
    const auto answer = co_await client_.tell(
        {.method = HttpMethod::patch, .path = "/v1/leases", .body = std::move(body), .timeout = kForAnswer});
    if (answer) {
      take_renewals(*answer);
    } else {
      spdlog::warn("leases could not be renewed: {}", answer.error().message);
    }
  }
}

// Empty where there is nothing to renew.
std::string HttpJobSource::renewals() {
  std::string worker, leases;
  JsonWriter json(leases);
  bool some = false;
  json.array([&] {
    for (auto& [token, run] : held_) {
      if (leases.size() > kMostSettledBytes) break;  // the next request has the others
      if (!std::exchange(run.renew, false)) continue;
      some = true;
      worker = run.call->worker;
      json.object([&, &its_token = token, &its_run = run] {
        json.member("token", its_token);
        if (const auto output = std::exchange(its_run.output, std::nullopt)) {
          output->empty() ? json.member("output", "") : write_bytes_once(json, "output", *output);
        }
        if (!its_run.progress) return;
        json.member("progress", its_run.progress->fraction);
        json.member("message", its_run.progress->message);
        its_run.progress.reset();
      });
    }
  });
  if (!some) return {};
  return json_object([&](JsonWriter& whole) {
    whole.key("leases");
    whole.raw(leases);
    whole.member("worker", worker);
  });
}

void HttpJobSource::take_renewals(const std::string& body) {
  std::vector<std::uint64_t> stops;
  const auto renewed = read_answer(body, [&](const JsonValue& told) {
    std::vector<ToldRenewal> all;
    ToldMembers(told).for_each("leases", [&](const JsonValue& lease) { all.push_back(read_told_renewal(lease)); });
    stops = read_stops(told);
    return all;
  });
  if (!renewed) return spdlog::warn("leases: {}", renewed.error().message);
  for (const std::uint64_t token : stops) lose(token);
  for (const ToldRenewal& lease : *renewed) {
    const auto run = held_.find(lease.token);
    if (run == held_.end()) continue;
    if (lease.lease_time > Duration{}) run->second.lease_time = lease.lease_time;
    if (lease.stop) lose(lease.token);
  }
}

// Its function is to stop, if it still runs. The lease is kept, since the verdict of a job that is cancelled is still
// wanted.
void HttpJobSource::lose(std::uint64_t token) {
  const auto run = held_.find(token);
  if (run == held_.end()) return;
  const auto call = run->second.call;
  if (call->on_cancel) call->on_cancel(token);
}

// --- settlements -----------------------------------------------------------------------------------------------------

Coro<Result<bool>> HttpJobSource::settle(std::uint64_t token, Verdict verdict) {
  const auto found = held_.find(token);
  if (found == held_.end()) co_return false;
  Held run = std::move(found->second);
  held_.erase(found);
  Settling settling{.text = json_object([&](JsonWriter& json) { write_settlement(json, token, verdict); }),
                    .answer = loop_.create_future<Result<bool>>()};
  Future<Result<bool>> answer = settling.answer;
  settlements_.emplace(token, std::move(settling));
  if (!std::exchange(settling_, true)) background_.run(shared_from_this(), settle_all());
  auto settled = co_await std::move(answer);
  co_await tell(std::move(run), verdict.outcome, std::move(verdict.error), settled.value_or(false));
  co_return settled;
}

Coro<void> HttpJobSource::settle_all() {
  struct End {
    bool& settling;
    ~End() { settling = false; }
  } const end{settling_};
  while (!settlements_.empty()) co_await send(take_settlements());
}

HttpJobSource::Settlements HttpJobSource::take_settlements() {
  Settlements taken;
  for (std::size_t bytes = 0; !settlements_.empty() && taken.size() < kMostSettled;) {
    bytes += settlements_.begin()->second.text.size();
    if (!taken.empty() && bytes > kMostSettledBytes) break;
    taken.insert(settlements_.extract(settlements_.begin()));
  }
  return taken;
}

Coro<void> HttpJobSource::send(Settlements settlements) {
  std::string body = R"({"settlements":[)";
  for (const auto& [token, settling] : settlements) {
    if (body.back() != '[') body += ',';
    body += settling.text;
  }
  body += "]}";
  auto answer = co_await client_.ask({.method = HttpMethod::post,
                                      .path = "/v1/leases/settle",
                                      .body = std::move(body),
                                      .has_key = false,
                                      .timeout = kForAnswer});
  if (answer && answer->problem) answer = std::unexpected(answer->problem->error);
  auto replies = answer ? read_answer(answer->body,
                                      [](const JsonValue& told) {
                                        std::vector<ToldSettlement> all;
                                        ToldMembers(told).for_each("replies", [&](const JsonValue& reply) {
                                          all.push_back(read_settled(reply));
                                        });
                                        return all;
                                      })
                        : Result<std::vector<ToldSettlement>>(std::unexpected(answer.error()));
  for (ToldSettlement& reply : replies ? *replies : std::vector<ToldSettlement>{}) {
    const auto settling = settlements.find(reply.token);
    if (settling == settlements.end()) continue;
    // It is this worker's own settlement that has ended the lease, most likely: its answer was lost.
    if (reply.settled && answer->came_before) reply.settled = true;
    if (!settling->second.answer.done()) settling->second.answer.set_result(std::move(reply.settled));
    settlements.erase(settling);
  }
  const Error missing =
      replies ? Error{Errc::protocol, "the daemon has not said what became of a run"} : replies.error();
  for (auto& [token, settling] : settlements) {
    if (!settling.answer.done()) settling.answer.set_result(Result<bool>(std::unexpected(missing)));
  }
}

// --- what has become of them -----------------------------------------------------------------------------------------

Coro<void> HttpJobSource::tell(Held run, Outcome outcome, std::string error, bool settled) {
  if (!listener_) co_return;
  JobEventKind kind = JobEventKind::expired;
  if (settled) {
    switch (outcome) {
      case Outcome::done: kind = JobEventKind::done; break;
      case Outcome::bury: kind = JobEventKind::buried; break;
      case Outcome::cancel: kind = JobEventKind::cancelled; break;
      case Outcome::release:
      case Outcome::expire: kind = JobEventKind::released; break;
      case Outcome::retry: kind = co_await fate_of(run.id); break;
    }
  }
  listener_({.kind = kind, .id = run.id, .queue = run.queue, .attempt = run.attempt, .text = error});
}

// Of a job that has failed: whether its queue's policy lets it be tried again.
Coro<JobEventKind> HttpJobSource::fate_of(JobId id) {
  const auto body = co_await client_.tell({.path = fmt::format("/v1/jobs/{}", id)});
  const auto record = body ? read_answer(*body, read_job_record) : Result<JobRecord>(std::unexpected(body.error()));
  const bool is_gone = !record && record.error().code == Errc::not_found;
  if (is_gone || (record && record->state == JobState::cancelled)) co_return JobEventKind::cancelled;
  co_return record && record->state == JobState::buried ? JobEventKind::buried : JobEventKind::retrying;
}

}  // namespace argiope
