// StoreDriver: what a backend of the store of jobs is, in groups by what they are about. It keeps rows, shelves and
// names, and decides nothing: what is done to them is in jobs/internal/job_transitions.hpp, when it is committed is the
// business of store.cpp.
//
// docs/store-drivers.md has, call by call, what the driver on PostgreSQL sends.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argiope/store/store.hpp"
#include "jobs/internal/store_rows.hpp"
#include "store/sqlite/internal/group_commit.hpp"

namespace argiope {

// The looks at jobs besides their rows. Limits of lists are as asked; a driver bounds nothing.
class JobLooks {
 public:
  virtual ~JobLooks() = default;
  // Shelves, in their order. Jobs that run are on none. `key`: of those set aside; null: the shelf of ready ones.
  virtual std::vector<WaitingJob> load_ranked(QueueId queue, const std::string* key, Rank after, std::size_t limit) = 0;
  virtual std::uint64_t count_ranked(QueueId queue, const std::string* key, Rank before, std::uint64_t most) = 0;
  virtual std::vector<std::string> keys_set_aside(QueueId queue, const std::optional<std::string>& after,
                                                  std::size_t limit) = 0;
  virtual std::vector<WaitingJob> load_delayed(QueueId queue, DueRank after, std::size_t limit) = 0;

  virtual std::optional<JobRecord> record(JobId id) = 0;
  virtual JobSlice list(const JobFilter& filter) = 0;
  virtual std::vector<QueueCounts> counts() = 0;
};

// A job that was left in the database by other means than ours, to be put by the owner.
struct LeftJob {
  NewJob job;
  WallTime at;  // when it was left
};
struct LeftJobs {
  std::vector<LeftJob> jobs;
  bool more = false;  // there are others
};

// The rows that an owner finds, and those it keeps for the next one.
class OwnerRows {
 public:
  virtual ~OwnerRows() = default;
  virtual std::vector<OldLease> old_leases() = 0;
  virtual ChangedElsewhere changed_elsewhere() = 0;
  // Behind changed_elsewhere(): the first of those that were left, which are gone with the transaction; their times are
  // the calendar's.
  virtual LeftJobs take_left() { return {}; }
  virtual void remember(const std::string& name, std::int64_t value) = 0;
  virtual std::optional<std::int64_t> recall(const std::string& name) = 0;
};

// Calls come one at a time, within a transaction.
struct StoreDriver : StoreRows {
  JobLooks& looks;
  OwnerRows& owner;
};

// A driver whose calls are done when they are awaited, each in a transaction of its own.
class DriverAtHand {
 public:
  virtual ~DriverAtHand() = default;
  virtual StoreDriver& driver() noexcept = 0;
  virtual std::uint64_t last_token() const noexcept = 0;
  // A call is over, also one that was refused. A DatabaseFailed of this, or of the call, is the call's error after
  // roll_back().
  virtual void commit() = 0;
  virtual void roll_back() noexcept = 0;
};

// A driver whose calls wait for a database: a thread of its own makes its transactions (AwaitedCalls).
class DriverInThread : public Transactions {
 public:
  virtual StoreDriver& driver() noexcept = 0;
  // Constant, from any thread.
  virtual StoreAccess access() const noexcept = 0;
  virtual const std::string& name() const noexcept = 0;     // for people: "database jobs.db"
  virtual const std::string& durability() const noexcept {  // as Store's
    static const std::string kNothingSaid;
    return kNothingSaid;
  }
  // No lease has had a greater one; from any thread, and for longer than the driver lives.
  virtual std::shared_ptr<const std::atomic<std::uint64_t>> last_token() const noexcept = 0;
  // Whether OwnerRows::changed_elsewhere() may have something to tell.
  virtual bool others_changed_jobs() = 0;
};

// The store whose calls that driver does.
std::unique_ptr<Store> make_store(std::unique_ptr<DriverInThread> driver);
std::unique_ptr<Store> make_memory_store();
Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& file, const StoreOptions& options);

}  // namespace argiope
