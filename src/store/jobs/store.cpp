#include "argiope/store/store.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <type_traits>

#include "base/internal/printable.hpp"
#include "jobs/internal/job_rules.hpp"
#include "jobs/internal/job_transitions.hpp"
#include "jobs/internal/schedule_rules.hpp"
#include "store/jobs/memory_store.hpp"
#include "store/jobs/sqlite_driver.hpp"
#include "store/jobs/store_place.hpp"
#include "store/sqlite/internal/sqlite.hpp"

namespace argiope {

using Rules = JobTransitions;

namespace {

using CallKind = AwaitedCalls::Kind;
using PlaceRef = std::shared_ptr<StorePlace>;
template <class Act>
using AnswerOf = Result<std::invoke_result_t<Act&, StoreDriver&>>;

// Errors: RequestRefused where there is none.
QueueId known(StoreDriver& driver, QueueId queue) { return Rules(driver).queue(queue).id; }

// The answers of `look` for each of `ids`.
template <class Look, class Ids>
auto each(const Ids& ids, Look look) {
  std::vector<decltype(look(ids.front()))> found;
  found.reserve(ids.size());
  for (const auto& id : ids) found.push_back(look(id));
  return found;
}

// Jobs that others have left become jobs like others.
void put_left(StoreDriver& driver, ChangedElsewhere& changed) {
  LeftJobs left = driver.owner.take_left();
  changed.more = changed.more || left.more;
  if (left.jobs.empty()) return;
  // Up to the whole millisecond: nothing is due before its time.
  const Duration offset =
      std::chrono::ceil<std::chrono::milliseconds>(Duration{driver.owner.recall(kCalendarOffset).value_or(0)});
  const auto job_time = [offset](WallTime time) {
    return WallTime{saturating_add(TimePoint{time.time_since_epoch()}, offset).time_since_epoch()};
  };
  std::vector<PutRequest> requests;
  requests.reserve(left.jobs.size());
  for (LeftJob& one : left.jobs) {
    if (one.job.due_at != WallTime{}) one.job.due_at = job_time(one.job.due_at);
    requests.push_back({.job = std::move(one.job)});
  }
  const auto replies = Rules(driver).put(requests, job_time(left.jobs.back().at), Refusal::alone);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (replies[i]) {
      changed.jobs.push_back(replies[i]->id);
      continue;
    }
    const NewJob& job = requests[i].job;
    spdlog::error("a job that was put by SQL is refused and gone: queue {}, name {}, {} bytes: {}",
                  in_quotes(job.queue), in_quotes(job.name), job.payload.size(), replies[i].error().message);
  }
}

// --- where calls go --------------------------------------------------------------------------------------------------

template <class Act>
AnswerOf<Act> done_or_refused(Act& act, StoreDriver& driver) {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Act&, StoreDriver&>>) {
      act(driver);
      return {};
    } else {
      return act(driver);
    }
  } catch (RequestRefused& refused) {
    return std::unexpected(std::move(refused.error));
  }
}

template <class Act>
AnswerOf<Act> done_at_hand(Act& act, DriverAtHand& at_hand) {
  try {
    auto answer = done_or_refused(act, at_hand.driver());
    at_hand.commit();
    return answer;
  } catch (DatabaseFailed& failed) {
    at_hand.roll_back();
    return std::unexpected(std::move(failed.error));
  }
}

// How a call is asked: what it does, who may ask it (share stands for share and own, read for all), and for how much it
// counts.
struct Asked {
  CallKind kind = CallKind::read;
  StoreAccess by = StoreAccess::read;
  std::size_t size = 1;
  bool is_engines = false;
};
constexpr Asked kReads{};
Asked writes(StoreAccess by, std::size_t size = 1) { return {CallKind::write, by, size}; }
// What an engine asks for itself, whose memory goes on from its answer: an owner's waits for a server as long as it
// takes.
Asked for_engine(Asked asked) {
  asked.is_engines = true;
  return asked;
}

std::optional<Error> refusal_of(const Asked& asked, const StorePlace& place) {
  if (asked.by == StoreAccess::read || place.access == StoreAccess::own) return std::nullopt;
  const bool reads_only = place.access == StoreAccess::read;
  if (!reads_only && asked.by == StoreAccess::share) return std::nullopt;
  return Error{Errc::refused, fmt::format("{}: {}", place.name,
                                          reads_only ? "opened for reading only" : "only its owner may do this")};
}

// `act` is called with the driver, in a transaction. `writes`: as AwaitedCalls::submit(). Awaited when the store may be
// gone.
template <class Act>
Coro<AnswerOf<Act>> ask(PlaceRef place, Asked asked, Act act, std::function<bool()> writes = nullptr) {
  if (auto refused = refusal_of(asked, *place)) co_return std::unexpected(std::move(*refused));
  if (place->at_hand != nullptr) {
    std::lock_guard lock(place->mutex);
    if (place->is_closed) co_return std::unexpected(job_rules::closed());
    co_return done_at_hand(act, *place->at_hand);
  }
  auto in_thread = [driver = place->in_thread, act = std::move(act)]() mutable {
    return done_or_refused(act, driver->driver());
  };
  co_return co_await place->calls->submit<std::invoke_result_t<Act&, StoreDriver&>>(
      asked.kind, asked.size, std::move(in_thread), job_rules::closed, std::move(writes),
      asked.is_engines && place->access == StoreAccess::own);
}

}  // namespace

Store::~Store() {
  if (place_ != nullptr) (void)Store::close();
}

std::optional<Error> Store::failure() const {
  return place_->calls == nullptr ? std::nullopt : place_->calls->failure();
}

std::string Store::durability() const { return place_ == nullptr ? std::string() : place_->durability; }

std::uint64_t Store::last_token() const {
  if (place_->last_token != nullptr) return *place_->last_token;
  std::lock_guard lock(place_->mutex);
  return place_->at_hand->last_token();
}

Result<void> Store::close() {
  if (place_->calls != nullptr) return place_->calls->stop();
  std::lock_guard lock(place_->mutex);
  place_->is_closed = true;
  return {};
}

// --- queues ----------------------------------------------------------------------------------------------------------

Coro<Result<StoredQueue>> Store::open_queue(std::string name, QueueConfig config) {
  const CallKind kind = place_->access == StoreAccess::read ? CallKind::read : CallKind::write;
  return ask(place_, {.kind = kind}, [name = std::move(name), config = std::move(config)](StoreDriver& driver) {
    return Rules(driver).open_queue(name, config);
  });
}

Coro<Result<void>> Store::configure(QueueId queue, QueueConfig config) {
  return ask(place_, writes(StoreAccess::share),
             [queue, config = std::move(config)](StoreDriver& driver) { Rules(driver).configure(queue, config); });
}

Coro<Result<std::vector<StoredQueue>>> Store::queues() {
  return ask(place_, kReads, [](StoreDriver& driver) {
    std::vector<StoredQueue> queues = driver.queues.all();
    std::erase_if(queues, [](const StoredQueue& queue) { return queue.name.empty(); });
    return queues;
  });
}

Coro<Result<void>> Store::erase_queue(QueueId queue) {
  return ask(place_, writes(StoreAccess::share), [queue](StoreDriver& driver) { Rules(driver).erase_queue(queue); });
}

// --- jobs ------------------------------------------------------------------------------------------------------------

Coro<Result<std::vector<Result<PutReply>>>> Store::put(std::vector<PutRequest> requests, WallTime now,
                                                       Refusal refusal) {
  const std::size_t size = requests.size();
  return ask(place_, writes(StoreAccess::share, size),
             [requests = std::move(requests), now, refusal](StoreDriver& driver) {
               return Rules(driver).put(requests, now, refusal);
             });
}

Coro<Result<std::vector<std::optional<JobRecord>>>> Store::lease(std::vector<LeaseRequest> leases) {
  const std::size_t size = leases.size();
  return ask(place_, for_engine(writes(StoreAccess::own, size)),
             [leases = std::move(leases)](StoreDriver& driver) { return Rules(driver).lease(leases); });
}

Coro<Result<PutAndLeaseReply>> Store::put_and_lease(std::vector<PutRequest> requests, WallTime now,
                                                    std::vector<PutLease> leases) {
  const std::size_t size = requests.size() + leases.size();
  return ask(place_, writes(StoreAccess::own, size),
             [requests = std::move(requests), now, leases = std::move(leases)](StoreDriver& driver) {
               return Rules(driver).put_and_lease(requests, now, leases);
             });
}

Coro<Result<void>> Store::renew(std::vector<LeaseRequest> leases) {
  const std::size_t size = leases.size();
  return ask(place_, for_engine(writes(StoreAccess::own, size)),
             [leases = std::move(leases)](StoreDriver& driver) { driver.leases.renew(leases); });
}

Coro<Result<void>> Store::write_output(JobId id, std::uint64_t token, std::string output) {
  return ask(place_, for_engine(writes(StoreAccess::own)),
             [=, output = std::move(output)](StoreDriver& driver) { Rules(driver).write_output(id, token, output); });
}

Coro<Result<std::vector<SettleReply>>> Store::settle(std::vector<Settlement> settlements) {
  const std::size_t size = settlements.size();
  return ask(place_, for_engine(writes(StoreAccess::own, size)),
             [settlements = std::move(settlements)](StoreDriver& driver) { return Rules(driver).settle(settlements); });
}

Coro<Result<std::vector<ChangeReply>>> Store::change(std::vector<Change> changes) {
  const std::size_t size = changes.size();
  return ask(place_, writes(StoreAccess::share, size),
             [changes = std::move(changes)](StoreDriver& driver) { return Rules(driver).change(changes); });
}

Coro<Result<OnceReply>> Store::once(OnceRequest request) {
  const bool settles = !request.settlements.empty();
  const std::size_t size = 1 + request.puts.size() + request.settlements.size() + request.changes.size();
  return ask(place_, settles ? for_engine(writes(StoreAccess::own, size)) : writes(StoreAccess::share, size),
             [request = std::move(request)](StoreDriver& driver) { return Rules(driver).once(request); });
}

Coro<Result<std::size_t>> Store::prune_requests(WallTime before, std::size_t most, std::size_t limit) {
  return ask(place_, writes(StoreAccess::share),
             [=](StoreDriver& driver) { return driver.keys.prune(before, most, limit); });
}

Coro<Result<void>> Store::shelve(std::vector<JobId> ids, Shelf shelf) {
  const std::size_t size = ids.size();
  return ask(place_, for_engine(writes(StoreAccess::own, size)),
             [ids = std::move(ids), shelf](StoreDriver& driver) { Rules(driver).shelve(ids, shelf); });
}

Coro<Result<std::size_t>> Store::prune(QueueId queue, JobState state, WallTime before, std::size_t limit) {
  return ask(place_, writes(StoreAccess::share, limit),
             [=](StoreDriver& driver) { return Rules(driver).prune(queue, state, before, limit); });
}

// --- schedules -------------------------------------------------------------------------------------------------------

Coro<Result<std::vector<PutScheduleReply>>> Store::put_schedules(std::vector<PutSchedule> schedules) {
  const std::size_t size = schedules.size();
  return ask(place_, writes(StoreAccess::share, size), [schedules = std::move(schedules)](StoreDriver& driver) {
    if (auto good = schedule_rules::check(schedules); !good) throw RequestRefused{std::move(good.error())};
    return driver.schedules.put(schedules);
  });
}

Coro<Result<std::size_t>> Store::erase_schedules(std::vector<ScheduleId> ids) {
  const std::size_t size = ids.size();
  return ask(place_, writes(StoreAccess::share, size), [ids = std::move(ids)](StoreDriver& driver) {
    return static_cast<std::size_t>(
        std::ranges::count_if(ids, [&](ScheduleId id) { return driver.schedules.erase(id); }));
  });
}

Coro<Result<std::vector<StoredSchedule>>> Store::schedules(ScheduleFilter filter) {
  filter.limit = std::min(filter.limit, job_rules::kMostListed);
  return ask(place_, for_engine(kReads), [filter](StoreDriver& driver) { return driver.schedules.list(filter); });
}

Coro<Result<std::vector<std::optional<StoredSchedule>>>> Store::load_schedules(std::vector<ScheduleId> ids) {
  return ask(place_, for_engine(kReads), [ids = std::move(ids)](StoreDriver& driver) {
    return each(ids, [&](ScheduleId id) { return driver.schedules.get(id); });
  });
}

Coro<Result<std::optional<StoredSchedule>>> Store::find_schedule(std::string name) {
  return ask(place_, kReads, [name = std::move(name)](StoreDriver& driver) { return driver.schedules.find(name); });
}

Coro<Result<std::vector<std::optional<ScheduleView>>>> Store::look_at_schedules(std::vector<ScheduleLook> looks) {
  return ask(place_, for_engine(kReads), [looks = std::move(looks)](StoreDriver& driver) {
    return each(looks, [&](const ScheduleLook& look) { return driver.schedules.look(look); });
  });
}

Coro<Result<std::optional<ScheduleRun>>> Store::schedule_run(ScheduleId id, std::uint64_t number) {
  return ask(place_, kReads, [=](StoreDriver& driver) { return driver.schedules.run(id, number); });
}

Coro<Result<std::vector<ScheduleRun>>> Store::schedule_runs(ScheduleId id, std::size_t limit) {
  return ask(place_, kReads, [=](StoreDriver& driver) { return driver.schedules.runs(id, limit); });
}

Coro<Result<std::optional<ScheduleOutput>>> Store::schedule_output(ScheduleId id) {
  return ask(place_, kReads, [=](StoreDriver& driver) { return driver.schedules.output(id); });
}

Coro<Result<std::vector<Result<FireReply>>>> Store::fire(std::vector<FireRequest> requests, WallTime now) {
  const std::size_t size = requests.size();
  return ask(place_, for_engine(writes(StoreAccess::share, size)),
             [requests = std::move(requests), now](StoreDriver& driver) { return Rules(driver).fire(requests, now); });
}

// --- windows ---------------------------------------------------------------------------------------------------------

Coro<Result<std::vector<WaitingJob>>> Store::read_shelf(QueueId queue, ShelfRead wanted, std::string key) {
  return ask(place_, for_engine(kReads), [=, key = std::move(key)](StoreDriver& driver) {
    const QueueId of = known(driver, queue);
    switch (wanted.shelf) {
      case Shelf::ready: return driver.looks.load_ranked(of, nullptr, wanted.after, wanted.limit);
      case Shelf::set_aside: return driver.looks.load_ranked(of, &key, wanted.after, wanted.limit);
      case Shelf::delayed: return driver.looks.load_delayed(of, wanted.due_after, wanted.limit);
      case Shelf::waiting: break;
    }
    throw RequestRefused{{Errc::invalid_input, "jobs that wait for others are not read as a shelf"}};
  });
}

Coro<Result<std::vector<std::string>>> Store::keys_set_aside(QueueId queue, std::optional<std::string> after,
                                                             std::size_t limit) {
  return ask(place_, for_engine(kReads), [=, after = std::move(after)](StoreDriver& driver) {
    return driver.looks.keys_set_aside(known(driver, queue), after, limit);
  });
}

Coro<Result<std::vector<std::optional<WaitingJob>>>> Store::find_waiting(std::vector<JobId> ids) {
  return ask(place_, for_engine(kReads),
             [ids = std::move(ids)](StoreDriver& driver) { return Rules(driver).find_waiting(ids); });
}

// --- to look at ------------------------------------------------------------------------------------------------------

Coro<Result<std::optional<JobRecord>>> Store::get(JobId id) {
  return ask(place_, kReads, [=](StoreDriver& driver) { return driver.looks.record(id); });
}

Coro<Result<std::optional<JobId>>> Store::find_name(std::string name) {
  return ask(place_, kReads, [name = std::move(name)](StoreDriver& driver) {
    const JobId found = driver.jobs.find_name(name);
    return found == 0 ? std::nullopt : std::optional(found);
  });
}

Coro<Result<std::vector<Attempt>>> Store::history(JobId id) {
  return ask(place_, kReads, [=](StoreDriver& driver) { return driver.history.attempts(id); });
}

Coro<Result<std::vector<JobRecord>>> Store::list(JobFilter filter) {
  filter.limit = std::min(filter.limit, job_rules::kMostListed);
  return ask(place_, kReads,
             [filter = std::move(filter)](StoreDriver& driver) { return driver.looks.list(filter).jobs; });
}

Coro<Result<JobSlice>> Store::look(JobFilter filter) {
  filter.limit = std::min(filter.limit, job_rules::kMostListed);
  return ask(place_, kReads, [filter = std::move(filter)](StoreDriver& driver) { return driver.looks.list(filter); });
}

Coro<Result<std::vector<QueueCounts>>> Store::counts() {
  return ask(place_, kReads, [](StoreDriver& driver) {
    const std::vector<StoredQueue>& queues = driver.queues.all();
    std::vector<QueueCounts> counts = driver.looks.counts();
    std::erase_if(counts, [&](const QueueCounts& of) { return queues[of.queue - 1].name.empty(); });
    return counts;
  });
}

Coro<Result<std::uint64_t>> Store::count_before(QueueId queue, Rank rank, std::uint64_t most,
                                                std::optional<std::string> key) {
  return ask(place_, kReads, [=, key = std::move(key)](StoreDriver& driver) {
    return driver.looks.count_ranked(known(driver, queue), key ? &*key : nullptr, rank, most);
  });
}

Coro<Result<std::vector<JobId>>> Store::waits_for(JobId id, std::size_t limit) {
  return ask(place_, kReads, [=](StoreDriver& driver) { return driver.jobs.waits_for(id, limit); });
}

// --- ownership -------------------------------------------------------------------------------------------------------

Coro<Result<std::vector<OldLease>>> Store::old_leases() {
  return ask(place_, kReads, [](StoreDriver& driver) { return driver.owner.old_leases(); });
}

Coro<Result<ChangedElsewhere>> Store::changed_elsewhere() {
  const auto changes = [](StoreDriver& driver) {
    ChangedElsewhere changed = driver.owner.changed_elsewhere();
    put_left(driver, changed);
    return changed;
  };
  if (place_->access != StoreAccess::own || place_->in_thread == nullptr) return ask(place_, kReads, changes);
  // The changes that it tells are deleted, so it writes, but only where others have left something.
  return ask(place_, for_engine({.kind = CallKind::write}), changes,
             [driver = place_->in_thread] { return driver->others_changed_jobs(); });
}

Coro<Result<void>> Store::remember(std::string name, std::int64_t value) {
  return ask(place_, for_engine(writes(StoreAccess::own)), [name = std::move(name), value](StoreDriver& driver) {
    if (auto fits = job_rules::check_name("name", name); !fits) throw RequestRefused{fits.error()};
    driver.owner.remember(name, value);
  });
}

Coro<Result<std::optional<std::int64_t>>> Store::recall(std::string name) {
  return ask(place_, kReads, [name = std::move(name)](StoreDriver& driver) { return driver.owner.recall(name); });
}

// --- opening ---------------------------------------------------------------------------------------------------------

std::unique_ptr<Store> make_store(std::unique_ptr<DriverInThread> driver) {
  return std::make_unique<Store>(std::make_shared<StorePlace>(std::move(driver)));
}

std::unique_ptr<Store> make_memory_store() { return std::make_unique<MemoryStore>(); }

Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& file, const StoreOptions& options) {
  auto driver = SqliteDriver::open(file, options);
  if (!driver) return std::unexpected(std::move(driver.error()));
  return make_store(std::move(*driver));
}

}  // namespace argiope
