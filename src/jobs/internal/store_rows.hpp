// A store of jobs as the rules of their life see it (job_transitions.hpp): rows that are loaded and saved, in groups by
// what they are about. A driver keeps them, group by group, and decides nothing; docs/store-drivers.md has each call.
//
// All calls are within one transaction, which is not the rules' business. Ids of jobs are at most kMostJobId, those of
// queues are of queues that there are, and names are no longer than kMostNameBytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/jobs/detail/requests.hpp"
#include "jobs/internal/job_row.hpp"

namespace argiope {

// The present transaction.
class Transaction {
 public:
  virtual ~Transaction() = default;
  virtual JobCounters& counters() = 0;  // to be changed in place

  // One request that may be refused when half of it is done: mark(), and then keep() or take_back().
  virtual void mark() = 0;
  virtual void keep() = 0;
  virtual void take_back() = 0;

  // The rows that a call will look at, told before it begins: a store that is far away can have them brought in one
  // round trip.
  virtual bool is_far() const noexcept { return false; }
  virtual void bring(const NeededRows& needed) { (void)needed; }
};

class QueueRows {
 public:
  virtual ~QueueRows() = default;
  virtual const std::vector<StoredQueue>& all() = 0;  // by id, from 1; those erased have no name
  virtual QueueId find(std::string_view name) = 0;    // 0: there is none
  virtual QueueId add(const std::string& name, const QueueConfig& config) = 0;
  virtual void configure(QueueId queue, const QueueConfig& config) = 0;
  virtual bool is_empty(QueueId queue) = 0;  // it has no job, and no record of one
  // Its place in all() stays, and is its own again when add() makes it anew.
  virtual void erase(QueueId queue) = 0;
};

// Rows of jobs, their names, and the links between them.
class JobRows {
 public:
  virtual ~JobRows() = default;
  virtual std::optional<JobRow> load(JobId id) = 0;
  virtual void insert(const JobRow& row, const NewJob& job, WallTime now) = 0;
  // Its shelf, its unique name's holder, its lease and the counts of its queue follow from the two.
  virtual void save(const JobRow& before, const JobRow& after) = 0;
  virtual void write_work(JobId id, const NewJob& job) = 0;  // function, payload and lease time
  // Links of those that wait for it stay: take_dependants().
  virtual void erase(const JobRow& row) = 0;
  // The commonest end: a job that runs under this token is done, and its record goes. nullopt: it does not.
  virtual std::optional<ErasedJob> erase_done(JobId id, std::uint64_t token) = 0;
  // The same where its record is kept and says nothing but that it has been done, in its first run: nothing waits for
  // it, it has no names and no history, is of no schedule, and nobody has asked for its end. False: that is not so, or
  // not known without its row, and nothing is done.
  virtual bool keep_done(JobId id, std::uint64_t token, std::int64_t ended_ms) {
    (void)id, (void)token, (void)ended_ms;
    return false;
  }
  // Erases those that ended in `state` before `before`, the earliest first; which they were.
  virtual std::vector<JobId> erase_ended(QueueId queue, JobState state, WallTime before, std::size_t limit) = 0;

  // 0: nobody has that name. A unique name is held by a job that waits or runs.
  virtual JobId find_name(const std::string& name) = 0;
  virtual JobId find_unique(QueueId queue, const std::string& unique) = 0;

  virtual void link(JobId waited_for, JobId job) = 0;
  virtual void unlink(JobId job) = 0;  // it waits for none
  virtual std::vector<JobId> take_dependants(JobId waited_for) = 0;
  virtual std::vector<JobId> waits_for(JobId job, std::size_t limit) = 0;
};

// Each lease by itself: a job that does not wait, or waits for others, is passed over. Tokens are in order. Until when:
// job_rules::lease_end().
class LeaseRows {
 public:
  virtual ~LeaseRows() = default;
  virtual std::vector<std::optional<JobRecord>> lease(std::span<const LeaseRequest> leases) = 0;
  virtual void renew(std::span<const LeaseRequest> leases) = 0;
};

// The facts that rows do not hold: how a job's runs have ended, and what they have left.
class JobHistory {
 public:
  virtual ~JobHistory() = default;
  // `result`: null: what is there stays.
  virtual void write_attempt(JobId id, const Attempt& attempt, const std::string* result) = 0;
  // It has ended; it is of no schedule any more. `result`: as write_attempt()'s.
  virtual void write_end(JobId id, const std::string& error, const std::string* result) = 0;
  virtual void write_result(JobId id, const std::string& result) = 0;
  virtual void write_error(JobId id, const std::string& error) = 0;
  virtual std::string error_of(JobId id) = 0;
  virtual std::vector<Attempt> attempts(JobId id) = 0;

  // Of jobs whose records are gone and that had failed; empty: none known.
  virtual std::string_view failure_of(JobId id) = 0;
  virtual void set_failure(JobId id, std::string_view how) = 0;
};

class ScheduleRows {
 public:
  virtual ~ScheduleRows() = default;
  // As requests say, which have been checked.
  virtual std::vector<PutScheduleReply> put(const std::vector<PutSchedule>& schedules) = 0;
  virtual bool erase(ScheduleId id) = 0;  // whether there was one
  virtual std::vector<StoredSchedule> list(const ScheduleFilter& filter) = 0;
  virtual std::optional<StoredSchedule> get(ScheduleId id) = 0;
  virtual std::optional<StoredSchedule> find(std::string_view name) = 0;
  virtual std::optional<ScheduleView> look(const ScheduleLook& look) = 0;
  virtual std::optional<ScheduleRun> run(ScheduleId id, std::uint64_t number) = 0;
  virtual std::vector<ScheduleRun> runs(ScheduleId id, std::size_t limit) = 0;
  virtual std::optional<ScheduleOutput> output(ScheduleId id) = 0;

  // Moves it on, with `started` runs more. False: there is none of that id, it has another version, or other entries
  // than `entries`.
  virtual bool advance(const FireRequest& step, std::uint64_t entries, std::uint32_t started) = 0;
  virtual void write_runs(const FireRequest& step, const std::vector<ScheduleRun>& runs) = 0;
  virtual void take_off_started(ScheduleId id, std::uint32_t count) = 0;
  // Written into its entry, if that is kept. The schedule may be gone.
  virtual void end_run(const EndedRun& run, WallTime at, std::string_view error, std::string_view result) = 0;
};

// Requests that came under a key. Their times do not step back.
class KeyRows {
 public:
  virtual ~KeyRows() = default;
  virtual std::optional<KeptRequest> find(const std::string& key) = 0;
  // There is none of that key.
  virtual void write(const RequestKey& key, WallTime at, const std::string& reply) = 0;
  virtual std::size_t prune(WallTime before, std::size_t most, std::size_t limit) = 0;
};

// All that the rules need of a store.
struct StoreRows {
  Transaction& transaction;
  QueueRows& queues;
  JobRows& jobs;
  LeaseRows& leases;
  JobHistory& history;
  ScheduleRows& schedules;
  KeyRows& keys;
};

}  // namespace argiope
