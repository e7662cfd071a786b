// StoreDriver: what a backend of the store of jobs is. It keeps rows, shelves and names, and decides nothing: what is done to
// them is in jobs/internal/job_transitions.hpp, when it is committed is the business of who calls (job_store.hpp).
//
// docs/store-drivers.md has, call by call, what a driver on PostgreSQL will send.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "argiope/store/store.hpp"
#include "jobs/internal/job_rows.hpp"

namespace argiope {

// Calls come one at a time, within a transaction. Limits of lists are as asked; a driver bounds nothing.
class StoreDriver : public JobRows {
 public:
  // --- shelves, in their order. Jobs that run are on none.
  // `key`: of those set aside; null: the shelf of ready ones.
  virtual std::vector<WaitingJob> load_ranked(QueueId queue, const std::string* key, Rank after,
                                              std::size_t limit) = 0;
  virtual std::uint64_t count_ranked(QueueId queue, const std::string* key, Rank before, std::uint64_t most) = 0;
  virtual std::vector<std::string> keys_set_aside(QueueId queue, const std::optional<std::string>& after,
                                                  std::size_t limit) = 0;
  virtual std::vector<WaitingJob> load_delayed(QueueId queue, DueRank after, std::size_t limit) = 0;

  // --- to look at
  virtual std::optional<JobRecord> record(JobId id) = 0;
  virtual std::vector<Attempt> attempts(JobId id) = 0;
  virtual JobSlice list(const JobFilter& filter) = 0;
  virtual std::vector<QueueCounts> counts() = 0;

  // --- schedules
  virtual std::vector<PutScheduleReply> put_schedules(const std::vector<PutSchedule>& schedules) = 0;
  virtual bool erase_schedule(ScheduleId id) = 0;  // whether there was one
  virtual std::vector<StoredSchedule> schedules(const ScheduleFilter& filter) = 0;
  virtual std::optional<StoredSchedule> schedule(ScheduleId id) = 0;
  virtual std::optional<StoredSchedule> find_schedule(const std::string& name) = 0;
  virtual std::optional<ScheduleView> look_at_schedule(const ScheduleLook& look) = 0;
  virtual std::vector<ScheduleRun> schedule_runs(ScheduleId id, std::size_t limit) = 0;
  virtual std::optional<ScheduleOutput> schedule_output(ScheduleId id) = 0;

  // --- ownership
  virtual std::vector<OldLease> old_leases() = 0;
  virtual ChangedElsewhere changed_elsewhere() = 0;
  virtual void remember(const std::string& name, std::int64_t value) = 0;
  virtual std::optional<std::int64_t> recall(const std::string& name) = 0;
};

}  // namespace argiope
