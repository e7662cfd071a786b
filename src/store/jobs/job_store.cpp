#include "store/jobs/job_store.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/internal/printable.hpp"
#include "jobs/internal/job_rules.hpp"
#include "jobs/internal/job_transitions.hpp"
#include "jobs/internal/schedule_rules.hpp"
#include "store/jobs/memory_store.hpp"

namespace argiope {

using Rules = JobTransitions;

namespace {

// Errors: RequestRefused where there is none.
QueueId known(StoreDriver& driver, QueueId queue) { return Rules(driver).queue(queue).id; }

// What `look` says of each of `ids`.
template <class Look, class Ids>
auto each(const Ids& ids, Look look) {
  std::vector<decltype(look(ids.front()))> found;
  found.reserve(ids.size());
  for (const auto& id : ids) found.push_back(look(id));
  return found;
}

}  // namespace

JobStore::JobStore(std::unique_ptr<SqliteDriver> file)
    : path_(file->path()),
      access_(file->access()),
      last_token_(file->last_token()),
      file_(file.get()),
      calls_(std::make_shared<AwaitedCalls>(std::move(file))) {}

// --- where calls go --------------------------------------------------------------------------------------------------

namespace {

template <class T, class Act>
Result<T> done_or_refused(Act& act, StoreDriver& driver) {
  try {
    if constexpr (std::is_void_v<T>) {
      act(driver);
      return {};
    } else {
      return act(driver);
    }
  } catch (RequestRefused& refused) {
    return std::unexpected(std::move(refused.error));
  }
}

}  // namespace

template <class T, class Act>
Coro<Result<T>> JobStore::call(Kind kind, std::size_t jobs, Act act, std::function<bool()> writes) {
  if (memory_ != nullptr) return in_memory<T>(memory_, std::move(act));
  auto in_thread = [file = file_, act = std::move(act)]() mutable { return done_or_refused<T>(act, file->driver()); };
  return in_file<T>(calls_, kind, jobs, std::move(in_thread), std::move(writes));
}

// Awaited when the store may be gone.
template <class T, class Act>
Coro<Result<T>> JobStore::in_file(std::shared_ptr<AwaitedCalls> calls, Kind kind, std::size_t jobs, Act act,
                                  std::function<bool()> writes) {
  co_return co_await calls->submit<T>(kind, jobs, std::move(act), job_rules::closed, std::move(writes));
}

template <class T, class Act>
Coro<Result<T>> JobStore::in_memory(std::shared_ptr<MemoryPlace> memory, Act act) {
  std::lock_guard lock(memory->mutex);
  if (memory->is_closed) co_return std::unexpected(job_rules::closed());
  co_return done_or_refused<T>(act, memory->driver.driver());
}

template <class T, class Act>
Coro<Result<T>> JobStore::read(Act act) {
  return call<T>(Kind::read, 1, std::move(act));
}

template <class T, class Act>
Coro<Result<T>> JobStore::write(StoreAccess least, std::size_t jobs, Act act) {
  const bool reads_only = access_ == StoreAccess::read;
  if (reads_only || (least == StoreAccess::own && access_ != StoreAccess::own)) {
    return refused<T>(
        fmt::format("database {}: {}", path_, reads_only ? "opened for reading only" : "only its owner may do this"));
  }
  return call<T>(Kind::write, jobs, std::move(act));
}

template <class T>
Coro<Result<T>> JobStore::refused(std::string why) {
  co_return fail(Errc::refused, std::move(why));
}

std::optional<Error> JobStore::failure() const { return calls_ == nullptr ? std::nullopt : calls_->failure(); }

std::uint64_t JobStore::last_token() const {
  if (last_token_ != nullptr) return *last_token_;
  std::lock_guard lock(memory_->mutex);
  return memory_->driver.last_token();
}

Result<void> JobStore::close_all() {
  if (calls_ != nullptr) return calls_->stop();
  std::lock_guard lock(memory_->mutex);
  memory_->is_closed = true;
  return {};
}

// --- queues ----------------------------------------------------------------------------------------------------------

Coro<Result<StoredQueue>> JobStore::open_queue(std::string name, QueueConfig config) {
  const Kind kind = access_ == StoreAccess::read ? Kind::read : Kind::write;
  return call<StoredQueue>(kind, 1, [name = std::move(name), config = std::move(config)](StoreDriver& driver) {
    return Rules(driver).open_queue(name, config);
  });
}

Coro<Result<void>> JobStore::configure(QueueId queue, QueueConfig config) {
  return write<void>(StoreAccess::share, 1, [queue, config = std::move(config)](StoreDriver& driver) {
    Rules(driver).configure(queue, config);
  });
}

Coro<Result<std::vector<StoredQueue>>> JobStore::queues() {
  return read<std::vector<StoredQueue>>([](StoreDriver& driver) {
    std::vector<StoredQueue> queues = driver.queues.all();
    std::erase_if(queues, [](const StoredQueue& queue) { return queue.name.empty(); });
    return queues;
  });
}

Coro<Result<void>> JobStore::erase_queue(QueueId queue) {
  return write<void>(StoreAccess::share, 1, [queue](StoreDriver& driver) { Rules(driver).erase_queue(queue); });
}

// --- jobs ------------------------------------------------------------------------------------------------------------

Coro<Result<std::vector<Result<PutReply>>>> JobStore::put(std::vector<PutRequest> requests, WallTime now,
                                                          Refusal refusal) {
  const std::size_t size = requests.size();
  return write<std::vector<Result<PutReply>>>(StoreAccess::share, size,
                                              [requests = std::move(requests), now, refusal](StoreDriver& driver) {
                                                return Rules(driver).put(requests, now, refusal);
                                              });
}

Coro<Result<std::vector<std::optional<JobRecord>>>> JobStore::lease(std::vector<LeaseRequest> leases) {
  const std::size_t size = leases.size();
  return write<std::vector<std::optional<JobRecord>>>(
      StoreAccess::own, size,
      [leases = std::move(leases)](StoreDriver& driver) { return Rules(driver).lease(leases); });
}

Coro<Result<PutAndLeaseReply>> JobStore::put_and_lease(std::vector<PutRequest> requests, WallTime now,
                                                       std::vector<PutLease> leases) {
  const std::size_t size = requests.size() + leases.size();
  return write<PutAndLeaseReply>(
      StoreAccess::own, size,
      [requests = std::move(requests), now, leases = std::move(leases)](StoreDriver& driver) {
        return Rules(driver).put_and_lease(requests, now, leases);
      });
}

Coro<Result<void>> JobStore::renew(std::vector<LeaseRequest> leases) {
  const std::size_t size = leases.size();
  return write<void>(StoreAccess::own, size,
                     [leases = std::move(leases)](StoreDriver& driver) { driver.leases.renew(leases); });
}

Coro<Result<void>> JobStore::write_output(JobId id, std::uint64_t token, std::string output) {
  return write<void>(StoreAccess::own, 1, [=, output = std::move(output)](StoreDriver& driver) {
    Rules(driver).write_output(id, token, output);
  });
}

Coro<Result<std::vector<SettleReply>>> JobStore::settle(std::vector<Settlement> settlements) {
  const std::size_t size = settlements.size();
  return write<std::vector<SettleReply>>(
      StoreAccess::own, size,
      [settlements = std::move(settlements)](StoreDriver& driver) { return Rules(driver).settle(settlements); });
}

Coro<Result<std::vector<ChangeReply>>> JobStore::change(std::vector<Change> changes) {
  const std::size_t size = changes.size();
  return write<std::vector<ChangeReply>>(StoreAccess::share, size, [changes = std::move(changes)](StoreDriver& driver) {
    return Rules(driver).change(changes);
  });
}

Coro<Result<OnceReply>> JobStore::once(OnceRequest request) {
  const bool settles = !request.settlements.empty();
  const std::size_t size = 1 + request.puts.size() + request.settlements.size() + request.changes.size();
  return write<OnceReply>(settles ? StoreAccess::own : StoreAccess::share, size,
                          [request = std::move(request)](StoreDriver& driver) { return Rules(driver).once(request); });
}

Coro<Result<std::size_t>> JobStore::prune_requests(WallTime before, std::size_t most, std::size_t limit) {
  return write<std::size_t>(StoreAccess::share, 1,
                            [=](StoreDriver& driver) { return driver.keys.prune(before, most, limit); });
}

Coro<Result<void>> JobStore::shelve(std::vector<JobId> ids, Shelf shelf) {
  const std::size_t size = ids.size();
  return write<void>(StoreAccess::own, size,
                     [ids = std::move(ids), shelf](StoreDriver& driver) { Rules(driver).shelve(ids, shelf); });
}

Coro<Result<std::size_t>> JobStore::prune(QueueId queue, JobState state, WallTime before, std::size_t limit) {
  return write<std::size_t>(StoreAccess::share, limit,
                            [=](StoreDriver& driver) { return Rules(driver).prune(queue, state, before, limit); });
}

// --- schedules -------------------------------------------------------------------------------------------------------

Coro<Result<std::vector<PutScheduleReply>>> JobStore::put_schedules(std::vector<PutSchedule> schedules) {
  const std::size_t size = schedules.size();
  return write<std::vector<PutScheduleReply>>(StoreAccess::share, size,
                                              [schedules = std::move(schedules)](StoreDriver& driver) {
                                                if (auto good = schedule_rules::check(schedules); !good)
                                                  throw RequestRefused{std::move(good.error())};
                                                return driver.schedules.put(schedules);
                                              });
}

Coro<Result<std::size_t>> JobStore::erase_schedules(std::vector<ScheduleId> ids) {
  const std::size_t size = ids.size();
  return write<std::size_t>(StoreAccess::share, size, [ids = std::move(ids)](StoreDriver& driver) {
    return static_cast<std::size_t>(
        std::ranges::count_if(ids, [&](ScheduleId id) { return driver.schedules.erase(id); }));
  });
}

Coro<Result<std::vector<StoredSchedule>>> JobStore::schedules(ScheduleFilter filter) {
  filter.limit = std::min(filter.limit, job_rules::kMostListed);
  return read<std::vector<StoredSchedule>>([filter](StoreDriver& driver) { return driver.schedules.list(filter); });
}

Coro<Result<std::vector<std::optional<StoredSchedule>>>> JobStore::load_schedules(std::vector<ScheduleId> ids) {
  return read<std::vector<std::optional<StoredSchedule>>>([ids = std::move(ids)](StoreDriver& driver) {
    return each(ids, [&](ScheduleId id) { return driver.schedules.get(id); });
  });
}

Coro<Result<std::optional<StoredSchedule>>> JobStore::find_schedule(std::string name) {
  return read<std::optional<StoredSchedule>>(
      [name = std::move(name)](StoreDriver& driver) { return driver.schedules.find(name); });
}

Coro<Result<std::vector<std::optional<ScheduleView>>>> JobStore::look_at_schedules(std::vector<ScheduleLook> looks) {
  return read<std::vector<std::optional<ScheduleView>>>([looks = std::move(looks)](StoreDriver& driver) {
    return each(looks, [&](const ScheduleLook& look) { return driver.schedules.look(look); });
  });
}

Coro<Result<std::optional<ScheduleRun>>> JobStore::schedule_run(ScheduleId id, std::uint64_t number) {
  return read<std::optional<ScheduleRun>>([=](StoreDriver& driver) { return driver.schedules.run(id, number); });
}

Coro<Result<std::vector<ScheduleRun>>> JobStore::schedule_runs(ScheduleId id, std::size_t limit) {
  return read<std::vector<ScheduleRun>>([=](StoreDriver& driver) { return driver.schedules.runs(id, limit); });
}

Coro<Result<std::optional<ScheduleOutput>>> JobStore::schedule_output(ScheduleId id) {
  return read<std::optional<ScheduleOutput>>([=](StoreDriver& driver) { return driver.schedules.output(id); });
}

Coro<Result<std::vector<Result<FireReply>>>> JobStore::fire(std::vector<FireRequest> requests, WallTime now) {
  const std::size_t size = requests.size();
  return write<std::vector<Result<FireReply>>>(
      StoreAccess::share, size,
      [requests = std::move(requests), now](StoreDriver& driver) { return Rules(driver).fire(requests, now); });
}

// --- windows ---------------------------------------------------------------------------------------------------------

Coro<Result<std::vector<WaitingJob>>> JobStore::read_shelf(QueueId queue, ShelfRead wanted, std::string key) {
  return read<std::vector<WaitingJob>>([=, key = std::move(key)](StoreDriver& driver) {
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

Coro<Result<std::vector<std::string>>> JobStore::keys_set_aside(QueueId queue, std::optional<std::string> after,
                                                                std::size_t limit) {
  return read<std::vector<std::string>>([=, after = std::move(after)](StoreDriver& driver) {
    return driver.looks.keys_set_aside(known(driver, queue), after, limit);
  });
}

Coro<Result<std::vector<std::optional<WaitingJob>>>> JobStore::find_waiting(std::vector<JobId> ids) {
  return read<std::vector<std::optional<WaitingJob>>>(
      [ids = std::move(ids)](StoreDriver& driver) { return Rules(driver).find_waiting(ids); });
}

// --- to look at ------------------------------------------------------------------------------------------------------

Coro<Result<std::optional<JobRecord>>> JobStore::get(JobId id) {
  return read<std::optional<JobRecord>>([=](StoreDriver& driver) { return driver.looks.record(id); });
}

Coro<Result<std::optional<JobId>>> JobStore::find_name(std::string name) {
  return read<std::optional<JobId>>([name = std::move(name)](StoreDriver& driver) {
    const JobId found = driver.jobs.find_name(name);
    return found == 0 ? std::nullopt : std::optional(found);
  });
}

Coro<Result<std::vector<Attempt>>> JobStore::history(JobId id) {
  return read<std::vector<Attempt>>([=](StoreDriver& driver) { return driver.history.attempts(id); });
}

Coro<Result<std::vector<JobRecord>>> JobStore::list(JobFilter filter) {
  filter.limit = std::min(filter.limit, job_rules::kMostListed);
  return read<std::vector<JobRecord>>(
      [filter = std::move(filter)](StoreDriver& driver) { return driver.looks.list(filter).jobs; });
}

Coro<Result<JobSlice>> JobStore::look(JobFilter filter) {
  filter.limit = std::min(filter.limit, job_rules::kMostListed);
  return read<JobSlice>([filter = std::move(filter)](StoreDriver& driver) { return driver.looks.list(filter); });
}

Coro<Result<std::vector<QueueCounts>>> JobStore::counts() {
  return read<std::vector<QueueCounts>>([](StoreDriver& driver) {
    const std::vector<StoredQueue>& queues = driver.queues.all();
    std::vector<QueueCounts> counts = driver.looks.counts();
    std::erase_if(counts, [&](const QueueCounts& of) { return queues[of.queue - 1].name.empty(); });
    return counts;
  });
}

Coro<Result<std::uint64_t>> JobStore::count_before(QueueId queue, Rank rank, std::uint64_t most,
                                                   std::optional<std::string> key) {
  return read<std::uint64_t>([=, key = std::move(key)](StoreDriver& driver) {
    return driver.looks.count_ranked(known(driver, queue), key ? &*key : nullptr, rank, most);
  });
}

Coro<Result<std::vector<JobId>>> JobStore::waits_for(JobId id, std::size_t limit) {
  return read<std::vector<JobId>>([=](StoreDriver& driver) { return driver.jobs.waits_for(id, limit); });
}

// --- ownership -------------------------------------------------------------------------------------------------------

Coro<Result<std::vector<OldLease>>> JobStore::old_leases() {
  return read<std::vector<OldLease>>([](StoreDriver& driver) { return driver.owner.old_leases(); });
}

Coro<Result<ChangedElsewhere>> JobStore::changed_elsewhere() {
  const auto changes = [](StoreDriver& driver) { return driver.owner.changed_elsewhere(); };
  if (access_ != StoreAccess::own || file_ == nullptr) return read<ChangedElsewhere>(changes);
  // What it tells is deleted, so it writes, but only where others have left something.
  return call<ChangedElsewhere>(Kind::write, 1, changes, [file = file_] { return file->others_changed_jobs(); });
}

Coro<Result<void>> JobStore::remember(std::string name, std::int64_t value) {
  return write<void>(StoreAccess::own, 1, [name = std::move(name), value](StoreDriver& driver) {
    if (auto fits = job_rules::check_name("name", name); !fits) throw RequestRefused{fits.error()};
    driver.owner.remember(name, value);
  });
}

Coro<Result<std::optional<std::int64_t>>> JobStore::recall(std::string name) {
  return read<std::optional<std::int64_t>>(
      [name = std::move(name)](StoreDriver& driver) { return driver.owner.recall(name); });
}

// --- opening ---------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Store>> open_store(const std::string& where, const StoreOptions& options) {
  constexpr std::string_view kSqlite = "sqlite:";
  if (where == "memory:") return std::make_unique<MemoryStore>();
  if (where.starts_with(kSqlite) && where.size() > kSqlite.size()) {
    auto file = SqliteDriver::open(where.substr(kSqlite.size()), options);
    if (!file) return std::unexpected(std::move(file.error()));
    return std::make_unique<JobStore>(std::move(*file));
  }
  return fail(Errc::invalid_input,
              fmt::format("store {}: give \"sqlite:FILE\" or \"memory:\" (nothing is kept)", in_quotes(where)));
}

}  // namespace argiope
