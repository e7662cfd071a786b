// PostgresJobs: the rows of jobs in PostgreSQL, their names, leases, histories and the links between them. A
// transaction works on rows in memory: those it needs are brought together, those it has changed are written together.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/jobs/internal/store_driver.hpp"
#include "store/postgresql/postgres_leases.hpp"
#include "store/postgresql/postgres_queues.hpp"
#include "store/postgresql/postgres_work.hpp"

namespace argiope {

class PostgresJobs final : public JobRows, public LeaseRows, public JobHistory {
 public:
  PostgresJobs(PostgresWork& work, PostgresQueues& queues, PostgresLeases& leases) noexcept
      : work_(work), queues_(queues), leases_(leases) {}

  // The statements that bring them are added to `reads`, whose answers follow one another from `take_brought` on.
  void ask_for(const NeededRows& needed, std::vector<PostgresWork::Statement>& reads);
  void take_brought(const NeededRows& needed, PostgresWork::Answers& answers, std::size_t& at);

  std::optional<JobRow> load(JobId id) override;
  void insert(const JobRow& row, const NewJob& job, WallTime now) override;
  void save(const JobRow& before, const JobRow& after) override;
  void write_work(JobId id, const NewJob& job) override;
  void erase(const JobRow& row) override;
  std::optional<ErasedJob> erase_done(JobId id, std::uint64_t token) override;
  std::vector<JobId> erase_ended(QueueId queue, JobState state, WallTime before, std::size_t limit) override;
  JobId find_name(const std::string& name) override;
  JobId find_unique(QueueId queue, const std::string& unique) override;
  void link(JobId waited_for, JobId job) override;
  void unlink(JobId job) override;
  std::vector<JobId> take_dependants(JobId waited_for) override;
  std::vector<JobId> waits_for(JobId job, std::size_t limit) override;

  std::vector<std::optional<JobRecord>> lease(std::span<const LeaseRequest> leases) override;
  void renew(std::span<const LeaseRequest> leases) override;

  void write_attempt(JobId id, const Attempt& attempt, const std::string* result) override;
  void write_end(JobId id, const std::string& error, const std::string* result) override;
  void write_result(JobId id, const std::string& result) override;
  void write_error(JobId id, const std::string& error) override;
  std::string error_of(JobId id) override;
  std::vector<Attempt> attempts(JobId id) override;
  std::string_view failure_of(JobId id) override;
  void set_failure(JobId id, std::string_view how) override;

  void write();
  void mark() {
    each_overlay([](auto& overlay) { overlay.mark(); });
  }
  void keep() noexcept {
    each_overlay([](auto& overlay) { overlay.keep(); });
  }
  void take_back() {
    each_overlay([](auto& overlay) { overlay.take_back(); });
  }
  void clear() noexcept {
    each_overlay([](auto& overlay) { overlay.clear(); });
  }

 private:
  // As the transaction leaves it. Texts that nobody reads here are there only where they are to be written.
  struct Job {
    bool is_there = false;   // in the store, or it will be
    bool was_there = false;  // in the store
    bool is_new = false;     // all of it is to be written
    bool has_changed = false;
    JobRow row;
    std::string name, error;
    std::optional<std::string> result;
    bool has_work = false;  // function, payload and lease time are to be written
    std::string function, payload;
    std::uint32_t max_attempts = 0;
    std::int64_t lease_ms = 0, created_ms = 0;
    std::vector<Attempt> attempts;
    bool had_attempts = false;  // they are to go with it
  };
  struct Link {
    bool is_there = false, was_there = false;
  };
  using Pair = std::pair<JobId, JobId>;
  using Unique = std::pair<QueueId, std::string>;

  void each_overlay(auto act) {
    act(jobs_);
    act(names_);
    act(uniques_);
    act(links_);
    act(linked_);
    act(failures_);
  }
  void bring(const NeededRows& needed);
  std::vector<Unique> uniques_of(const NeededRows& needed);
  void take_rows(const PostgresRows& rows);
  Job& known(JobId id);
  void gone(Job& job);
  void erase_known(Job& job);
  void write_gone();
  void write_changed();
  void write_new();
  void write_texts();
  void write_links();
  void write_failures();

  PostgresWork& work_;
  PostgresQueues& queues_;
  PostgresLeases& leases_;
  PostgresOverlay<JobId, Job> jobs_;
  PostgresOverlay<std::string, JobId> names_;
  PostgresOverlay<Unique, JobId> uniques_;
  PostgresOverlay<Pair, Link> links_;    // waited for, job
  PostgresOverlay<JobId, bool> linked_;  // all links are known by which these wait for others
  struct Failure {
    JobId id = 0;
    std::string how;
    bool has_changed = false;
  };
  PostgresOverlay<std::uint64_t, Failure> failures_;  // by slot
};

}  // namespace argiope
