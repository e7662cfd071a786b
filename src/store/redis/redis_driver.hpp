// RedisDriver: the store of jobs and schedules on a Redis server, as one thread sees it: its groups of rows, its
// transactions, and whose store it is. docs/stores.md has its keys.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/jobs/internal/store_driver.hpp"
#include "store/redis/redis_connection.hpp"
#include "store/redis/redis_jobs.hpp"
#include "store/redis/redis_promise.hpp"
#include "store/redis/redis_queues.hpp"
#include "store/redis/redis_rows.hpp"
#include "store/redis/redis_schedules.hpp"

namespace argiope {

class RedisDriver final : public DriverInThread, public Transaction, public OwnerRows {
 public:
  // Errors: those of parse_redis_url(), promise_of() and RedisRows::open(); network where the server is not there.
  static Result<std::unique_ptr<RedisDriver>> open(std::string_view url, const StoreOptions& options);
  ~RedisDriver() override;

  StoreDriver& driver() noexcept override { return driver_; }
  StoreAccess access() const noexcept override { return options_.access; }
  const std::string& name() const noexcept override { return name_; }
  const std::string& durability() const noexcept override { return durability_; }
  std::shared_ptr<const std::atomic<std::uint64_t>> last_token() const noexcept override { return most_token_; }
  bool others_changed_jobs() override;

  void begin(bool to_write) override;
  void commit() override;
  void roll_back() noexcept override;
  // With a server that is away nothing more is asked for in the present one.
  bool in_transaction() const noexcept override { return connection_.is_up(); }
  Result<void> in_place() const override { return {}; }
  void stop_waiting() override { connection_.hurry(options_.busy_limit); }
  SqliteLog* log() noexcept override { return nullptr; }
  bool ends_all(const Error& error) const noexcept override;
  bool passes(const Error& error) const noexcept override;
  void when_overdue(std::function<void(const Error&)> tell) override { rows_.when_overdue(std::move(tell)); }
  std::optional<Duration> renew_interval() const noexcept override;
  void renew() noexcept override;

  JobCounters& counters() override { return now_.jobs; }
  void mark() override;
  void keep() override { rows_.keep(); }
  void take_back() override;
  bool is_far() const noexcept override { return true; }
  void bring(const NeededRows& needed) override { jobs_.bring(needed); }

  std::vector<OldLease> old_leases() override;
  ChangedElsewhere changed_elsewhere() override;
  void remember(const std::string& name, std::int64_t value) override;
  std::optional<std::int64_t> recall(const std::string& name) override;

 private:
  // The numbers that have been given.
  struct Counters {
    JobCounters jobs;
    ScheduleId last_schedule = 0;
    std::uint64_t last_request = 0;
    // As fields of meta.
    std::array<std::pair<std::string_view, std::uint64_t>, 5> named() const {
      return {{{"last_id", jobs.last_id},
               {"last_chosen_id", jobs.last_chosen_id},
               {"last_token", jobs.last_token},
               {"last_schedule", last_schedule},
               {"last_request", last_request}}};
    }
  };

  RedisDriver(RedisAddress address, const StoreOptions& options) : options_(options), connection_(std::move(address)) {}

  bool owns() const noexcept { return access() == StoreAccess::own; }
  void read_first();
  void refresh();
  void note_token() noexcept;

  const StoreOptions options_;
  RedisConnection connection_;
  const std::string name_ = connection_.address().shown();
  RedisRows rows_{connection_, options_.access};
  bool is_open_ = false;
  std::string durability_;

  Counters now_, stored_, marked_;
  const std::shared_ptr<std::atomic<std::uint64_t>> most_token_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  RedisQueues queues_{rows_, options_.access};
  RedisJobs jobs_{rows_, queues_, now_.jobs};
  RedisSchedules schedules_{rows_, now_.last_schedule};
  RedisKeys keys_{rows_, now_.last_request};
  StoreDriver driver_{{*this, queues_, jobs_, jobs_, jobs_, schedules_, keys_}, jobs_, *this};
};

// As has_owner(): false too where the server does not say.
bool has_redis_owner(std::string_view url);

}  // namespace argiope
