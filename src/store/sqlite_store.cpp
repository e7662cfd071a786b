// The SQLite Store: hands each call to the store's thread. What a call means is in sqlite_jobs.hpp.
#include "store/sqlite_store.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/internal/printable.hpp"
#include "store/job_store_thread.hpp"
#include "store/memory_store.hpp"

namespace argiope {
namespace {

class SqliteStore final : public Store {
 public:
  explicit SqliteStore(std::unique_ptr<SqliteJobs> jobs)
      : path_(jobs->path()), access_(jobs->access()), thread_(std::make_shared<JobStoreThread>(std::move(jobs))) {}
  ~SqliteStore() override { (void)close(); }

  Coro<Result<StoredQueue>> open_queue(std::string name, QueueConfig config) override {
    const CallKind kind = access_ == StoreAccess::read ? CallKind::read : CallKind::write;
    return call<StoredQueue>(kind, 1, [name = std::move(name), config = std::move(config)](SqliteJobs& jobs) {
      return jobs.open_queue(name, config);
    });
  }
  Coro<Result<void>> configure(QueueId queue, QueueConfig config) override {
    return write<void>(StoreAccess::share, 1,
                       [queue, config = std::move(config)](SqliteJobs& jobs) { jobs.configure(queue, config); });
  }
  Coro<Result<std::vector<StoredQueue>>> queues() override {
    return read<std::vector<StoredQueue>>([](SqliteJobs& jobs) { return jobs.queues(); });
  }

  Coro<Result<std::vector<Result<PutReply>>>> put(std::vector<PutRequest> requests, WallTime now,
                                                  Refusal refusal) override {
    const std::size_t size = requests.size();
    return write<std::vector<Result<PutReply>>>(
        StoreAccess::share, size,
        [requests = std::move(requests), now, refusal](SqliteJobs& jobs) { return jobs.put(requests, now, refusal); });
  }
  Coro<Result<std::vector<std::optional<JobRecord>>>> lease(std::vector<LeaseRequest> leases) override {
    const std::size_t size = leases.size();
    return write<std::vector<std::optional<JobRecord>>>(
        StoreAccess::own, size, [leases = std::move(leases)](SqliteJobs& jobs) { return jobs.lease(leases); });
  }
  Coro<Result<void>> renew(std::vector<LeaseRequest> leases) override {
    const std::size_t size = leases.size();
    return write<void>(StoreAccess::own, size, [leases = std::move(leases)](SqliteJobs& jobs) { jobs.renew(leases); });
  }
  Coro<Result<std::vector<SettleReply>>> settle(std::vector<Settlement> settlements) override {
    const std::size_t size = settlements.size();
    return write<std::vector<SettleReply>>(
        StoreAccess::own, size,
        [settlements = std::move(settlements)](SqliteJobs& jobs) { return jobs.settle(settlements); });
  }
  Coro<Result<std::vector<ChangeReply>>> change(std::vector<Change> changes) override {
    const std::size_t size = changes.size();
    return write<std::vector<ChangeReply>>(
        StoreAccess::share, size, [changes = std::move(changes)](SqliteJobs& jobs) { return jobs.change(changes); });
  }
  Coro<Result<void>> shelve(std::vector<JobId> ids, Shelf shelf) override {
    const std::size_t size = ids.size();
    return write<void>(StoreAccess::own, size,
                       [ids = std::move(ids), shelf](SqliteJobs& jobs) { jobs.shelve(ids, shelf); });
  }
  Coro<Result<std::size_t>> prune(QueueId queue, JobState state, WallTime before, std::size_t limit) override {
    return write<std::size_t>(StoreAccess::share, limit,
                              [=](SqliteJobs& jobs) { return jobs.prune(queue, state, before, limit); });
  }

  Coro<Result<std::vector<PutScheduleReply>>> put_schedules(std::vector<PutSchedule> schedules) override {
    const std::size_t size = schedules.size();
    return write<std::vector<PutScheduleReply>>(
        StoreAccess::share, size,
        [schedules = std::move(schedules)](SqliteJobs& jobs) { return jobs.put_schedules(schedules); });
  }
  Coro<Result<std::size_t>> erase_schedules(std::vector<ScheduleId> ids) override {
    const std::size_t size = ids.size();
    return write<std::size_t>(StoreAccess::share, size,
                              [ids = std::move(ids)](SqliteJobs& jobs) { return jobs.erase_schedules(ids); });
  }
  Coro<Result<std::vector<StoredSchedule>>> schedules(ScheduleFilter filter) override {
    return read<std::vector<StoredSchedule>>([filter](SqliteJobs& jobs) { return jobs.schedules(filter); });
  }
  Coro<Result<std::vector<std::optional<StoredSchedule>>>> load_schedules(std::vector<ScheduleId> ids) override {
    return read<std::vector<std::optional<StoredSchedule>>>(
        [ids = std::move(ids)](SqliteJobs& jobs) { return jobs.load_schedules(ids); });
  }
  Coro<Result<std::optional<StoredSchedule>>> find_schedule(std::string name) override {
    return read<std::optional<StoredSchedule>>(
        [name = std::move(name)](SqliteJobs& jobs) { return jobs.find_schedule(name); });
  }
  Coro<Result<std::vector<std::optional<ScheduleView>>>> look_at_schedules(std::vector<ScheduleLook> looks) override {
    return read<std::vector<std::optional<ScheduleView>>>(
        [looks = std::move(looks)](SqliteJobs& jobs) { return jobs.look_at_schedules(looks); });
  }
  Coro<Result<std::optional<ScheduleRun>>> schedule_run(ScheduleId id, std::uint64_t number) override {
    return read<std::optional<ScheduleRun>>([id, number](SqliteJobs& jobs) { return jobs.schedule_run(id, number); });
  }
  Coro<Result<std::vector<ScheduleRun>>> schedule_runs(ScheduleId id, std::size_t limit) override {
    return read<std::vector<ScheduleRun>>([id, limit](SqliteJobs& jobs) { return jobs.schedule_runs(id, limit); });
  }
  Coro<Result<std::optional<ScheduleOutput>>> schedule_output(ScheduleId id) override {
    return read<std::optional<ScheduleOutput>>([id](SqliteJobs& jobs) { return jobs.schedule_output(id); });
  }
  Coro<Result<std::vector<Result<FireReply>>>> fire(std::vector<FireRequest> requests, WallTime now) override {
    const std::size_t size = requests.size();
    return write<std::vector<Result<FireReply>>>(
        StoreAccess::share, size,
        [requests = std::move(requests), now](SqliteJobs& jobs) { return jobs.fire(requests, now); });
  }

  Coro<Result<std::vector<WaitingJob>>> load_ready(QueueId queue, Rank after, std::size_t limit) override {
    return read<std::vector<WaitingJob>>([=](SqliteJobs& jobs) { return jobs.load_ready(queue, after, limit); });
  }
  Coro<Result<std::vector<WaitingJob>>> load_set_aside(QueueId queue, std::string key, Rank after,
                                                       std::size_t limit) override {
    return read<std::vector<WaitingJob>>(
        [=, key = std::move(key)](SqliteJobs& jobs) { return jobs.load_set_aside(queue, key, after, limit); });
  }
  Coro<Result<std::vector<std::string>>> keys_set_aside(QueueId queue, std::optional<std::string> after,
                                                        std::size_t limit) override {
    return read<std::vector<std::string>>(
        [=, after = std::move(after)](SqliteJobs& jobs) { return jobs.keys_set_aside(queue, after, limit); });
  }
  Coro<Result<std::vector<WaitingJob>>> load_delayed(QueueId queue, WallTime after, JobId after_id,
                                                     std::size_t limit) override {
    return read<std::vector<WaitingJob>>(
        [=](SqliteJobs& jobs) { return jobs.load_delayed(queue, after, after_id, limit); });
  }

  Coro<Result<std::vector<std::optional<WaitingJob>>>> find_waiting(std::vector<JobId> ids) override {
    return read<std::vector<std::optional<WaitingJob>>>(
        [ids = std::move(ids)](SqliteJobs& jobs) { return jobs.find_waiting(ids); });
  }

  Coro<Result<std::optional<JobRecord>>> get(JobId id) override {
    return read<std::optional<JobRecord>>([=](SqliteJobs& jobs) { return jobs.get(id); });
  }
  Coro<Result<std::optional<JobId>>> find_name(std::string name) override {
    return read<std::optional<JobId>>([name = std::move(name)](SqliteJobs& jobs) { return jobs.find_name(name); });
  }
  Coro<Result<std::vector<Attempt>>> history(JobId id) override {
    return read<std::vector<Attempt>>([=](SqliteJobs& jobs) { return jobs.history(id); });
  }
  Coro<Result<std::vector<JobRecord>>> list(JobFilter filter) override {
    return read<std::vector<JobRecord>>([filter = std::move(filter)](SqliteJobs& jobs) { return jobs.list(filter); });
  }
  Coro<Result<std::vector<QueueCounts>>> counts() override {
    return read<std::vector<QueueCounts>>([](SqliteJobs& jobs) { return jobs.counts(); });
  }
  Coro<Result<std::uint64_t>> count_before(QueueId queue, Rank rank, std::uint64_t most,
                                           std::optional<std::string> key) override {
    return read<std::uint64_t>(
        [=, key = std::move(key)](SqliteJobs& jobs) { return jobs.count_before(queue, rank, most, key); });
  }
  Coro<Result<std::vector<JobId>>> waits_for(JobId id, std::size_t limit) override {
    return read<std::vector<JobId>>([=](SqliteJobs& jobs) { return jobs.waits_for(id, limit); });
  }

  std::uint64_t last_token() const override { return thread_->last_token(); }
  Coro<Result<std::vector<OldLease>>> old_leases() override {
    return read<std::vector<OldLease>>([](SqliteJobs& jobs) { return jobs.old_leases(); });
  }
  Coro<Result<ChangedElsewhere>> changed_elsewhere() override {
    const CallKind kind = access_ == StoreAccess::own ? CallKind::take_changes : CallKind::read;
    return call<ChangedElsewhere>(kind, 1, [](SqliteJobs& jobs) { return jobs.changed_elsewhere(); });
  }
  Coro<Result<void>> remember(std::string name, std::int64_t value) override {
    return write<void>(StoreAccess::own, 1,
                       [name = std::move(name), value](SqliteJobs& jobs) { jobs.remember(name, value); });
  }
  Coro<Result<std::optional<std::int64_t>>> recall(std::string name) override {
    return read<std::optional<std::int64_t>>([name = std::move(name)](SqliteJobs& jobs) { return jobs.recall(name); });
  }

  std::optional<Error> failure() const override { return thread_->failure(); }
  Result<void> close() override { return thread_->stop(); }

 private:
  template <class T, class Act>
  Coro<Result<T>> call(CallKind kind, std::size_t size, Act act) {
    return submit<T>(thread_, kind, size, std::move(act));
  }
  // Awaited when the store may be gone.
  template <class T, class Act>
  static Coro<Result<T>> submit(std::shared_ptr<JobStoreThread> thread, CallKind kind, std::size_t size, Act act) {
    co_return co_await thread->submit<T>(kind, size, std::move(act));
  }
  template <class T, class Act>
  Coro<Result<T>> read(Act act) {
    return call<T>(CallKind::read, 1, std::move(act));
  }
  // `least`: whom it takes; share stands for share and own.
  template <class T, class Act>
  Coro<Result<T>> write(StoreAccess least, std::size_t size, Act act) {
    if (access_ == StoreAccess::read || (least == StoreAccess::own && access_ != StoreAccess::own)) return refuse<T>();
    return call<T>(CallKind::write, size, std::move(act));
  }
  template <class T>
  Coro<Result<T>> refuse() {
    return refused<T>(
        fmt::format("database {}: {}", path_,
                    access_ == StoreAccess::read ? "opened for reading only" : "only its owner may do this"));
  }
  template <class T>
  static Coro<Result<T>> refused(std::string why) {
    co_return fail(Errc::refused, std::move(why));
  }

  const std::string path_;
  const StoreAccess access_;
  const std::shared_ptr<JobStoreThread> thread_;
};

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path, const StoreOptions& options) {
  auto jobs = SqliteJobs::open(path, options);
  if (!jobs) return std::unexpected(std::move(jobs.error()));
  return std::make_unique<SqliteStore>(std::move(*jobs));
}

Result<std::unique_ptr<Store>> open_store(const std::string& where, const StoreOptions& options) {
  constexpr std::string_view kSqlite = "sqlite:";
  if (where == "memory:") return std::make_unique<MemoryStore>();
  if (where.starts_with(kSqlite) && where.size() > kSqlite.size()) {
    return open_sqlite_store(where.substr(kSqlite.size()), options);
  }
  return fail(Errc::invalid_input,
              fmt::format("store {}: give \"sqlite:FILE\" or \"memory:\" (nothing is kept)", in_quotes(where)));
}

}  // namespace argiope
