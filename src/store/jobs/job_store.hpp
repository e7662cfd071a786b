// The Store that there is: takes each call to where its driver works, to a group commit or at once, and has the rules
// of jobs done there (jobs/internal/job_transitions.hpp).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "argiope/store/store.hpp"
#include "store/jobs/awaited_calls.hpp"
#include "store/jobs/memory_driver.hpp"
#include "store/jobs/sqlite_driver.hpp"

namespace argiope {

// Calls of a store in memory take effect when they are awaited, one at a time.
struct MemoryPlace {
  std::mutex mutex;
  MemoryDriver driver;
  bool is_closed = false;
};

class JobStore : public Store {
 public:
  explicit JobStore(std::unique_ptr<SqliteDriver> file);
  explicit JobStore(std::shared_ptr<MemoryPlace> memory) noexcept : memory_(std::move(memory)) {}
  ~JobStore() override { (void)close_all(); }

  Coro<Result<StoredQueue>> open_queue(std::string name, QueueConfig config) override;
  Coro<Result<void>> configure(QueueId queue, QueueConfig config) override;
  Coro<Result<void>> erase_queue(QueueId queue) override;
  Coro<Result<std::vector<StoredQueue>>> queues() override;
  Coro<Result<std::vector<Result<PutReply>>>> put(std::vector<PutRequest> jobs, WallTime now, Refusal refusal) override;
  Coro<Result<std::vector<std::optional<JobRecord>>>> lease(std::vector<LeaseRequest> leases) override;
  Coro<Result<PutAndLeaseReply>> put_and_lease(std::vector<PutRequest> jobs, WallTime now,
                                               std::vector<PutLease> leases) override;
  Coro<Result<void>> renew(std::vector<LeaseRequest> leases) override;
  Coro<Result<void>> write_output(JobId id, std::uint64_t token, std::string output) override;
  Coro<Result<std::vector<SettleReply>>> settle(std::vector<Settlement> settlements) override;
  Coro<Result<std::vector<ChangeReply>>> change(std::vector<Change> changes) override;
  Coro<Result<OnceReply>> once(OnceRequest request) override;
  Coro<Result<std::size_t>> prune_requests(WallTime before, std::size_t most, std::size_t limit) override;
  Coro<Result<void>> shelve(std::vector<JobId> jobs, Shelf shelf) override;
  Coro<Result<std::size_t>> prune(QueueId queue, JobState state, WallTime before, std::size_t limit) override;
  Coro<Result<std::vector<PutScheduleReply>>> put_schedules(std::vector<PutSchedule> schedules) override;
  Coro<Result<std::size_t>> erase_schedules(std::vector<ScheduleId> ids) override;
  Coro<Result<std::vector<StoredSchedule>>> schedules(ScheduleFilter filter) override;
  Coro<Result<std::vector<std::optional<StoredSchedule>>>> load_schedules(std::vector<ScheduleId> ids) override;
  Coro<Result<std::optional<StoredSchedule>>> find_schedule(std::string name) override;
  Coro<Result<std::vector<std::optional<ScheduleView>>>> look_at_schedules(std::vector<ScheduleLook> looks) override;
  Coro<Result<std::optional<ScheduleRun>>> schedule_run(ScheduleId id, std::uint64_t number) override;
  Coro<Result<std::vector<ScheduleRun>>> schedule_runs(ScheduleId id, std::size_t limit) override;
  Coro<Result<std::optional<ScheduleOutput>>> schedule_output(ScheduleId id) override;
  Coro<Result<std::vector<Result<FireReply>>>> fire(std::vector<FireRequest> requests, WallTime now) override;
  Coro<Result<std::vector<WaitingJob>>> read_shelf(QueueId queue, ShelfRead read, std::string key) override;
  Coro<Result<std::vector<std::string>>> keys_set_aside(QueueId queue, std::optional<std::string> after,
                                                        std::size_t limit) override;
  Coro<Result<std::vector<std::optional<WaitingJob>>>> find_waiting(std::vector<JobId> jobs) override;
  Coro<Result<std::optional<JobRecord>>> get(JobId id) override;
  Coro<Result<std::optional<JobId>>> find_name(std::string name) override;
  Coro<Result<std::vector<Attempt>>> history(JobId id) override;
  Coro<Result<std::vector<JobRecord>>> list(JobFilter filter) override;
  Coro<Result<JobSlice>> look(JobFilter filter) override;
  Coro<Result<std::vector<QueueCounts>>> counts() override;
  Coro<Result<std::uint64_t>> count_before(QueueId queue, Rank rank, std::uint64_t most,
                                           std::optional<std::string> key) override;
  Coro<Result<std::vector<JobId>>> waits_for(JobId id, std::size_t limit) override;
  std::uint64_t last_token() const override;
  Coro<Result<std::vector<OldLease>>> old_leases() override;
  Coro<Result<ChangedElsewhere>> changed_elsewhere() override;
  Coro<Result<void>> remember(std::string name, std::int64_t value) override;
  Coro<Result<std::optional<std::int64_t>>> recall(std::string name) override;
  std::optional<Error> failure() const override;
  Result<void> close() override { return close_all(); }

 private:
  using Kind = AwaitedCalls::Kind;

  // `act` is called with the driver, in a transaction. `writes`: as AwaitedCalls::submit().
  template <class T, class Act>
  Coro<Result<T>> call(Kind kind, std::size_t jobs, Act act, std::function<bool()> writes = nullptr);
  template <class T, class Act>
  static Coro<Result<T>> in_file(std::shared_ptr<AwaitedCalls> calls, Kind kind, std::size_t jobs, Act act,
                                 std::function<bool()> writes);
  template <class T, class Act>
  static Coro<Result<T>> in_memory(std::shared_ptr<MemoryPlace> memory, Act act);
  template <class T, class Act>
  Coro<Result<T>> read(Act act);
  // `least`: whom it takes; share stands for share and own.
  template <class T, class Act>
  Coro<Result<T>> write(StoreAccess least, std::size_t jobs, Act act);
  template <class T>
  static Coro<Result<T>> refused(std::string why);
  Result<void> close_all();

  std::string path_;
  StoreAccess access_ = StoreAccess::own;
  // A file, or memory.
  std::shared_ptr<const std::atomic<std::uint64_t>> last_token_;
  SqliteDriver* file_ = nullptr;  // until calls_ are stopped, and in their thread
  std::shared_ptr<AwaitedCalls> calls_;
  std::shared_ptr<MemoryPlace> memory_;
};

}  // namespace argiope
