// How the queues and schedules that are there would fare from now on, with changes that the request names.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "argiope/async/coro.hpp"
#include "base/internal/printable.hpp"
#include "jobs/internal/queue_config_json.hpp"
#include "jobs/internal/schedule_json.hpp"
#include "serve/api/api_state.hpp"
#include "serve/base/internal/own_queues.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostSimulated = 1'000;
constexpr std::size_t kMostSchedules = 5'000;
constexpr std::size_t kMostWorkers = 100'000;
constexpr std::size_t kMostLookedAt = 20'000;  // waiting jobs, of all queues
constexpr double kMostArrivals = 1e6;          // a second
constexpr Duration kLongestRun = std::chrono::days{366};
constexpr Duration kLongestSpan = std::chrono::days{366};
// Jobs that came in fewer minutes came once, or by hand: they say nothing of how often more come.
constexpr std::uint64_t kLeastMinutes = 3;
constexpr std::size_t kMostSimulations = 8;  // that wait or are being answered

// --- what is there
// -------------------------------------------------------------------------------------------------------

// How many jobs of it are worked on at once, as far as is known: what this process says, or those that run and those
// who wait.
std::size_t workers_of(const ApiState& api, std::string_view queue, std::uint64_t running, std::size_t waiting) {
  const auto said = api.options.workers_of ? api.options.workers_of(queue) : std::nullopt;
  return said ? *said : running + waiting;
}

// How many workers wait for jobs of each of these queues.
std::unordered_map<std::string, std::size_t> workers_waiting(const ApiState& api,
                                                             const std::vector<std::string>& queues) {
  std::unordered_map<std::string, std::size_t> waiting;
  for (const std::string& queue : queues) waiting.emplace(queue, 0);
  for (const auto& worker : api.workers.all()) {
    if (worker->waiting == 0) continue;
    for (const std::string& queue : worker->queues) {
      if (const auto found = waiting.find(queue); found != waiting.end()) ++found->second;
    }
  }
  return waiting;
}

// The counts of its jobs say how they come, how long they run and how often they fail.
void expect_as_counted(const Tally& tally, const QueueTally& counted, WhatIfQueue& queue) {
  const auto total = [&](Tallied kind) { return static_cast<double>(counted.totals[static_cast<std::size_t>(kind)]); };
  const double put = std::max(0.0, total(Tallied::added) - static_cast<double>(counted.scheduled));
  queue.counted = {static_cast<std::uint64_t>(put), counted.minutes_put, counted.runs.count()};
  if (counted.minutes_put >= kLeastMinutes) {
    queue.jobs.arrivals_per_second = put / static_cast<double>(tally.seconds());
  }
  const double failed = total(Tallied::retried) + total(Tallied::buried) + total(Tallied::expired) -
                        static_cast<double>(counted.buried_by_expiry);
  const double ended = failed + total(Tallied::done);
  if (ended > 0) queue.failures = failed / ended;
  if (queue.counted.runs > 0) {
    queue.mean_duration = from_seconds(counted.runs.sum / static_cast<double>(queue.counted.runs));
  }
}

Coro<Result<void>> read_waiting(ApiState& api, const StoredQueue& stored, ShelfRead read, ExpectedJobs& jobs) {
  const WallTime now = api.book().job_now();
  const auto found = co_await or_return(api.engine.store().read_shelf(stored.id, read));
  for (const WaitingJob& job : found) {
    jobs.waiting.push_back({job.key, job.priority, std::max(job.due_at - now, Duration::zero())});
  }
  co_return Result<void>{};
}

// The most important of them as they are, and how many there are besides.
Coro<Result<void>> expect_waiting(ApiState& api, const StoredQueue& stored, StateCounts counts, std::size_t most,
                                  ExpectedJobs& jobs) {
  jobs.waiting.resize(std::min<std::uint64_t>(counts.running, most));
  if (counts.ready > 0) {
    co_await or_return(read_waiting(api, stored, {.shelf = Shelf::ready, .limit = most}, jobs));
  }
  if (counts.delayed > 0) {
    co_await or_return(read_waiting(api, stored, {.shelf = Shelf::delayed, .limit = most}, jobs));
  }
  const std::uint64_t all = counts.running + counts.ready + counts.delayed;
  jobs.more_waiting = all - std::min<std::uint64_t>(all, jobs.waiting.size());
  co_return Result<void>{};
}

// The daemon's own queues are no part of a plan: nobody puts into them, and nothing else works on them.
bool is_simulated(const Caller& caller, std::string_view queue) {
  return caller.may_use(queue) && !is_own_queue(queue);
}

Coro<Result<void>> add_queues(ApiState& api, ApiCall& call, bool with_waiting, WhatIf& question) {
  auto stored = co_await or_return(api.book().queues());
  std::erase_if(stored, [&](const StoredQueue& queue) { return !is_simulated(call.caller, queue.name); });
  if (stored.size() > kMostSimulated) {
    co_return call.refuse(ProblemType::too_large, fmt::format("there are more than {} queues", kMostSimulated));
  }
  std::ranges::sort(stored, {}, &StoredQueue::name);
  const std::vector<std::string> names = names_of(stored);
  const auto counts = co_await or_return(api.book().counts_of(names));
  const auto waiting = workers_waiting(api, names);
  const std::size_t most = kMostLookedAt / std::max<std::size_t>(stored.size(), 1) / 3 + 1;
  for (StoredQueue& queue : stored) {
    WhatIfQueue& added = question.queues.emplace_back();
    added.name = queue.name;
    added.config = queue.config;
    const StateCounts its = counts_in(counts, queue.name);
    added.workers = workers_of(api, queue.name, its.running, waiting.at(queue.name));
    if (with_waiting) co_await or_return(expect_waiting(api, queue, its, most, added.jobs));
  }
  const Tally& tally = api.events.tally();
  question.counted_seconds = tally.seconds();
  tally.for_each_queue([&](std::string_view name, const QueueTally& its) {
    const auto found = std::ranges::lower_bound(question.queues, name, {}, &WhatIfQueue::name);
    if (found != question.queues.end() && found->name == name) expect_as_counted(tally, its, *found);
  });
  co_return Result<void>{};
}

// The rest of the schedule; nullopt: nothing.
std::optional<Schedule> rest_of(ScheduleStatus&& status) {
  if (!status.schedule || status.place.next == WallTime::max()) return std::nullopt;
  Schedule schedule = *std::move(status.schedule);
  schedule.paused = status.place.paused;
  if (schedule.max_runs == 0) return schedule;
  if (status.place.fired >= schedule.max_runs) return std::nullopt;
  schedule.max_runs -= status.place.fired;
  return schedule;
}

Coro<Result<void>> add_schedules(ApiState& api, ApiCall& call, WhatIf& question) {
  ScheduleId after = 0;
  for (std::size_t read = kMostSchedules; read == kMostSchedules;) {
    auto some = co_await or_return(api.book().schedules().list(after, kMostSchedules));
    read = some.size();
    for (ScheduleStatus& status : some) {
      after = status.id;
      auto schedule = rest_of(std::move(status));
      if (!schedule || !call.caller.may_use(schedule->name, schedule->job.queue)) continue;
      if (!is_simulated(call.caller, schedule->job.queue)) continue;
      if (question.schedules.size() == kMostSchedules) {
        co_return call.refuse(ProblemType::too_large, fmt::format("there are more than {} schedules", kMostSchedules));
      }
      question.schedules.push_back(*std::move(schedule));
    }
  }
  co_return Result<void>{};
}

// --- what the request changes
// --------------------------------------------------------------------------------------------

std::optional<double> read_number(JsonMembers& in, std::string_view name, double most) {
  const JsonValue* given = in.find(name);
  if (given == nullptr) return std::nullopt;
  const auto number = given->if_number();
  if (!number || !(*number >= 0 && *number <= most)) given->wrong(fmt::format("a number, 0 to {}", most));
  return number;
}

// That there is none of that name is the request's fault, and not something that is not found.
Result<TimeZone> zone_named(const std::string& name) {
  auto zone = TimeZone::find(name);
  if (!zone) zone.error().code = Errc::invalid_input;
  return zone;
}

std::int64_t milliseconds_of(Duration span) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
}

void change_queue(JsonMembers& in, WhatIfQueue& queue) {
  if (const JsonValue* given = in.find("config")) {
    if (auto config = detail::read_queue_config(*given, queue.config)) queue.config = *std::move(config);
  }
  queue.workers =
      static_cast<std::size_t>(in.whole("workers", kMostWorkers, 0, static_cast<std::int64_t>(queue.workers)));
  if (const auto number = read_number(in, "arrivals_per_second", kMostArrivals))
    queue.jobs.arrivals_per_second = *number;
  if (const auto number = read_number(in, "failures", 1)) queue.failures = *number;
  if (in.has("duration_ms")) {
    queue.mean_duration = std::chrono::milliseconds{in.whole("duration_ms", milliseconds_of(kLongestRun))};
  }
  in.finish("a queue here has none");
}

WhatIfQueue& queue_named(WhatIf& question, std::string_view name) {
  const auto found = std::ranges::find(question.queues, name, &WhatIfQueue::name);
  if (found != question.queues.end()) return *found;
  WhatIfQueue& added = question.queues.emplace_back();
  added.name = name;
  return added;
}

// A name that the caller may not use is no mistake of the form.
void forbid(ApiCall& call, const JsonValue& at, std::string_view why) {
  if (call.errors()) return;
  at.refuse(why);
  (void)call.refuse({ProblemType::forbidden, call.errors().error().message, problem_of(call.errors()).places});
}

void change_queues(ApiCall& call, const JsonValue& list, WhatIf& question) {
  if (!list.is_list() || list.size() > kMostSimulated)
    return list.complain(fmt::format("a list of up to {}", kMostSimulated));
  list.for_each([&](const JsonValue& entry) {
    if (!entry.is_object()) return entry.complain("an object");
    JsonMembers in(entry);
    in.refuse_repeated();
    const JsonValue* name = in.find("name");
    if (name == nullptr) return entry.refuse("it needs a name");
    const std::string text = name->text(1, kMostNameBytes);
    if (!call.caller.may_use(text))
      return forbid(call, *name, fmt::format("the token may not use queue {}", in_quotes(text)));
    if (is_own_queue(text)) return name->complain("not one of the daemon's own queues, which no what-if has");
    if (!entry.errors()) change_queue(in, queue_named(question, text));
  });
}

void change_schedules(ApiCall& call, const JsonValue& list, WhatIf& question) {
  if (!list.is_list() || list.size() > kMostSchedules) {
    return list.complain(fmt::format("a list of up to {}", kMostSchedules));
  }
  list.for_each([&](const JsonValue& entry) {
    auto schedule = detail::read_schedule(entry);
    if (!schedule) return entry.errors() ? void() : entry.refuse(schedule.error());
    if (auto found = check(*schedule, question.from); !found) return entry.refuse(found.error());
    if (!call.caller.may_use(schedule->name, schedule->job.queue)) {
      return forbid(call, entry, "the token may not use a schedule of that name, or its queue");
    }
    std::erase_if(question.schedules, [&](const Schedule& old) { return old.name == schedule->name; });
    if (is_own_queue(schedule->job.queue)) return entry.refuse("the daemon alone puts jobs into its own queues");
    question.schedules.push_back(*std::move(schedule));
  });
}

void leave_out(ApiCall& call, const JsonValue& list, WhatIf& question) {
  if (!list.is_list()) return list.complain("a list of names");
  list.for_each([&](const JsonValue& entry) {
    const std::string name = entry.text(1, kMostNameBytes);
    if (!entry.errors() && !call.caller.may_use(name)) {
      return forbid(call, entry, fmt::format("the token may not use schedule {}", in_quotes(name)));
    }
    const bool was_there = std::erase_if(question.schedules, [&](const Schedule& one) { return one.name == name; }) > 0;
    if (!entry.errors() && !was_there) entry.complain("there is no schedule of that name");
  });
}

// Schedules may put jobs into queues that nobody has made yet; they get the policy that a put would give them.
void add_queues_of_schedules(ApiState& api, WhatIf& question) {
  std::set<std::string> names;
  for (const Schedule& schedule : question.schedules) names.insert(schedule.job.queue);
  for (const WhatIfQueue& queue : question.queues) names.erase(queue.name);
  const auto waiting = workers_waiting(api, {names.begin(), names.end()});
  for (const std::string& name : names)
    queue_named(question, name).workers = workers_of(api, name, 0, waiting.at(name));
}

Coro<Result<WhatIf>> read_question(ApiState& api, ApiCall& call) {
  const JsonValue root = co_await or_return(call.object());
  JsonMembers in(root);
  in.refuse_repeated();
  WhatIf question;
  question.from = std::chrono::floor<std::chrono::seconds>(api.engine.calendar_now());
  question.span = std::chrono::milliseconds{
      in.whole("for_ms", milliseconds_of(kLongestSpan), 1'000, milliseconds_of(question.span))};
  in.parsed("zone", question.zone, zone_named);
  question.seed = static_cast<std::uint64_t>(in.whole("seed", kMostJobId));
  const bool with_waiting = in.flag("waiting", true);
  co_await or_return(add_queues(api, call, with_waiting, question));
  co_await or_return(add_schedules(api, call, question));
  if (const JsonValue* list = in.find("without_schedules")) leave_out(call, *list, question);
  if (const JsonValue* list = in.find("schedules")) change_schedules(call, *list, question);
  if (const JsonValue* list = in.find("queues")) change_queues(call, *list, question);
  in.finish("a what-if has none");
  co_await or_return(call.read_all());
  add_queues_of_schedules(api, question);
  if (question.queues.size() > 2 * kMostSimulated || question.schedules.size() > kMostSchedules) {
    co_return call.refuse(ProblemType::too_large,
                          fmt::format("more than {} schedules, or {} queues", kMostSchedules, 2 * kMostSimulated));
  }
  co_return question;
}

// --- the answer
// ----------------------------------------------------------------------------------------------------------

void write(JsonWriter& json, const WhatIfQueue& queue) {
  json.object([&] {
    json.member("name", queue.name);
    json.member("workers", queue.workers);
    json.member("waiting", queue.jobs.waiting.size() + queue.jobs.more_waiting);
    json.member("arrivals_per_second", queue.jobs.arrivals_per_second);
    const bool known = queue.mean_duration.has_value();
    json.member("duration_ms", known ? std::optional(to_seconds(*queue.mean_duration) * 1'000) : std::nullopt);
    json.member("failures", queue.failures);
    json.object("counted", [&] {
      json.member("put", queue.counted.put);
      json.member("minutes", queue.counted.minutes);
      json.member("runs", queue.counted.runs);
    });
  });
}

// A caller's what-if, from its question on: one of each, and not too many.
class SimulationPlace {
 public:
  SimulationPlace(ApiState& api, std::string who) : api_(api), who_(std::move(who)) { api_.simulations_of.add(who_); }
  SimulationPlace(const SimulationPlace&) = delete;
  ~SimulationPlace() { api_.simulations_of.drop(who_); }

 private:
  ApiState& api_;
  const std::string who_;
};

std::optional<Problem> why_not_simulate(const ApiState& api, const Caller& caller) {
  if (api.simulations_of.of(caller.name) > 0) {
    return problem(ProblemType::too_many,
                   "another what-if of this token is being answered, and each has one at a time");
  }
  if (api.simulations_of.callers() < kMostSimulations) return std::nullopt;
  return problem(ProblemType::too_many, fmt::format("{} what-ifs wait already, as many as may", kMostSimulations));
}

// The thread does one thing after the other: it may still be at a what-if for whose answer nobody waits any more.
Future<void> until_thread_is_free(ApiState& api) {
  if (!api.simulator) api.simulator.emplace(1);
  return run_in_executor(*api.simulator, [] {});
}

// On a thread of its own: who leaves, and who stops the daemon, ends it. The system is given back what it has taken of
// memory.
Coro<Result<std::string>> simulated(ApiState& api, std::shared_ptr<WhatIf> question) {
  struct Abandoned {
    std::shared_ptr<std::atomic<bool>> flag = std::make_shared<std::atomic<bool>>(false);
    ~Abandoned() { *flag = true; }
  } abandoned;
  question->abandoned = [left = abandoned.flag, stopped = api.simulations_stopped] { return *left || *stopped; };
  co_return co_await run_in_executor(*api.simulator, [question, ask = api.options.what_if]() -> Result<std::string> {
    auto report = ask(*question);
    ::malloc_trim(0);
    return report;
  });
}

Coro<Result<ServerResponse>> simulate_now(ApiState& api, ApiCall& call) {
  if (!api.options.what_if) co_return call.refuse(ProblemType::not_found, "this daemon answers no what-if");
  if (auto why_not = why_not_simulate(api, call.caller)) co_return call.refuse(*std::move(why_not));
  const SimulationPlace place(api, call.caller.name);
  const auto turn = co_await api.simulation_turn.scoped();
  co_await until_thread_is_free(api);
  co_await read_apart(api.long_bodies, call, [&] { call.parse(); });
  const auto question = std::make_shared<WhatIf>(co_await or_return(read_question(api, call)));
  if (api.stopped) co_return call.refuse(ProblemType::draining, "the daemon is stopping");
  const std::string report = co_await or_return(simulated(api, question));
  co_return json_answer([&](JsonWriter& json) {
    json.member("counted_s", question->counted_seconds);
    json.array("assumed", [&] {
      for (const WhatIfQueue& queue : question->queues) write(json, queue);
    });
    json.key("report");
    json.raw(report);
  });
}

}  // namespace

ApiRoute simulate_route() {
  return {.method = HttpMethod::post,
          .pattern = "/v1/simulate",
          .scope = TokenScope::read,
          .handler = simulate_now,
          .reads_apart = true};
}

}  // namespace argiope
