// SqliteLeases: which jobs of a file run. A row of `leases` holds the leases of one call, and this class a map of all.
// An entry of such a row is worth something only while its job waits and its token is above the job's `fence`, so a
// lease ends with its job, or with one number written beside what is written anyway.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/jobs/internal/store_driver.hpp"
#include "store/jobs/sqlite_counters.hpp"
#include "store/jobs/sqlite_queues.hpp"
#include "store/jobs/sqlite_statements.hpp"

namespace argiope {

class SqliteLeases final : public LeaseRows {
 public:
  struct Lease {
    std::uint64_t token = 0;
    std::int64_t until = 0;
    std::int64_t batch = 0;
    bool old = false;
    QueueId queue = 0;  // of the job, and its flags; 0: to be looked up
    std::int64_t flags = 0;
    bool is_first_run = false;  // and nothing has been counted of the job
  };

  SqliteLeases(SqliteStatements& sql, SqliteQueues& queues, SqliteCounters& counters) noexcept
      : sql_(sql), queues_(queues), counters_(counters) {}

  std::vector<std::optional<JobRecord>> lease(std::span<const LeaseRequest> leases) override;
  void renew(std::span<const LeaseRequest> leases) override;

  // Null: it does not run, or has a lease that is over.
  const Lease* find(JobId id);
  const std::string& worker_of(const Lease& lease) { return batches_[lease.batch].worker; }
  // The token of its lease; 0: it does not run.
  std::uint64_t token_of(JobId id, std::int64_t fence);
  bool runs(JobId id, std::int64_t fence) { return token_of(id, fence) != 0; }
  // Those of jobs from the one to the other, by id; some may be over.
  std::vector<JobId> jobs_between(JobId first, JobId last);
  void end(JobId id) { set(id, std::nullopt); }
  // The flags known beside a lease, where there is one, which are read from memory when it ends.
  void set_flags(JobId id, std::int64_t flags);
  void add_flags(JobId id, std::int64_t flags);
  void note_result(JobId id);

  // For an owner: all there are become old ones, but for those of jobs that `runs` denies.
  void take_over(const std::function<bool(JobId)>& runs);
  std::vector<OldLease> old() const;

  // Others may have written. Only an owner writes leases.
  void note_others(bool owns);
  void mark() noexcept { marked_ = undo_.size(); }
  void take_back() noexcept { undo(marked_); }
  void flush();
  void committed();
  void drop() noexcept;

 private:
  struct Batch {
    std::string worker;
    std::size_t remaining = 0;
    bool remote = false;
  };
  // Whose leases are written as one batch.
  struct Holder {
    std::string_view worker;
    bool remote = false;
    friend bool operator==(const Holder&, const Holder&) = default;
  };
  struct Entry {
    JobId id;
    std::uint64_t token;
    std::int64_t until;
  };

  void load();
  void set(JobId id, std::optional<Lease> lease);
  JobRecord lease_row(const SqliteStatement& row, const LeaseRequest& request);
  void write(std::span<const Entry> entries, Holder holder);
  void renumber();
  void undo(std::size_t down_to) noexcept;

  SqliteStatements& sql_;
  SqliteQueues& queues_;
  SqliteCounters& counters_;
  bool known_ = false;
  boost::unordered_flat_map<JobId, Lease> leases_;
  boost::unordered_flat_map<std::int64_t, Batch> batches_;
  std::int64_t next_batch_ = 1;

  // Of the present transaction.
  std::vector<std::pair<JobId, std::optional<Lease>>> undo_;
  std::vector<std::int64_t> emptied_;
  std::size_t marked_ = 0;
};

}  // namespace argiope
