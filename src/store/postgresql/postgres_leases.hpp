// PostgresLeases: which jobs run, as the owner has it in memory; and what the present transaction changes of that.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/postgresql/postgres_work.hpp"

namespace argiope {

class PostgresLeases {
 public:
  struct Lease {
    std::uint64_t token = 0;
    std::int64_t until = 0;
    std::string worker;
    bool remote = false;
    bool old = false;  // of an owner before
    QueueId queue = 0;
    std::int64_t flags = 0;  // of the job
  };

  explicit PostgresLeases(PostgresWork& work) noexcept : work_(work) {}

  // Null: it does not run.
  const Lease* find(JobId id) const;
  // What the transaction has changed of it; null: nothing.
  const std::optional<Lease>* changed(JobId id) const { return changes_.find(id); }
  void set(JobId id, Lease lease) { changes_[id] = std::move(lease); }
  void end(JobId id) { changes_[id] = std::nullopt; }
  void set_flags(JobId id, std::int64_t flags);

  // For an owner: all there are are of owners before.
  void take_over();
  std::vector<OldLease> old() const;

  void load();
  void write();
  void mark() { changes_.mark(); }
  void keep() noexcept { changes_.keep(); }
  void take_back() { changes_.take_back(); }
  void committed();
  void drop() noexcept {
    changes_.clear();
    written_.clear();
  }

 private:
  using Changes = PostgresOverlay<JobId, std::optional<Lease>>;
  PostgresWork& work_;
  boost::unordered_flat_map<JobId, Lease> leases_;
  Changes changes_;
  std::map<JobId, std::optional<Lease>> written_;  // sent, not committed
};

}  // namespace argiope
