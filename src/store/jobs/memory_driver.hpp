// The store of jobs in memory, which nothing outlives.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/jobs/internal/store_driver.hpp"
#include "store/jobs/memory_jobs.hpp"
#include "store/jobs/memory_keys.hpp"
#include "store/jobs/memory_queues.hpp"
#include "store/jobs/memory_schedules.hpp"

namespace argiope {

class MemoryDriver final : public DriverAtHand, public Transaction, public OwnerRows {
 public:
  MemoryDriver() = default;
  MemoryDriver(const MemoryDriver&) = delete;

  StoreDriver& driver() noexcept override { return driver_; }
  std::uint64_t last_token() const noexcept override { return counters_.last_token; }
  // Nothing fails here.
  void commit() override {}
  void roll_back() noexcept override {}
  void reopen() { jobs_.reopen(); }

  JobCounters& counters() override { return counters_; }
  void mark() override;
  void keep() override;
  void take_back() override;

  std::vector<OldLease> old_leases() override { return jobs_.old_leases(); }
  ChangedElsewhere changed_elsewhere() override { return {}; }
  void remember(const std::string& name, std::int64_t value) override { remembered_[name] = value; }
  std::optional<std::int64_t> recall(const std::string& name) override;

 private:
  JobCounters counters_;
  JobCounters counters_before_;
  MemoryQueues queues_;
  MemoryJobs jobs_{queues_, counters_};
  MemorySchedules schedules_;
  MemoryKeys keys_;
  std::map<std::string, std::int64_t> remembered_;
  StoreDriver driver_{{*this, queues_, jobs_, jobs_, jobs_, schedules_, keys_}, jobs_, *this};
};

}  // namespace argiope
