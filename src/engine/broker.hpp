// Broker: an engine's jobs. Of each queue it keeps a window in memory, and it takes jobs in, hands them out and stores
// how they ended. Its desks do that; the broker opens and closes them, and keeps house.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/internal/job_source.hpp"
#include "engine/put_desk.hpp"

namespace argiope {

// The owner's work now and then: looks at the calendar and at what others have changed, and prunes what has ended.
class Housekeeper final : public Desk {
 public:
  Housekeeper(Owned& owned, QueueDesk& queue_desk, SettleDesk& settle_desk)
      : Desk(owned), queue_desk_(queue_desk), settle_desk_(settle_desk) {}

  void start() { task_ = loop_.create_task(kept(keep_house()), "broker's housekeeping"); }
  void stop() {
    if (task_ && !task_.done()) task_.cancel();
  }
  // Until it has stopped.
  Coro<void> ended();
  // Why it has stopped by itself: from then on nobody hears what others change.
  const std::optional<Error>& failure() const noexcept { return failure_; }
  WallTime calendar_now() const { return Desk::calendar_now(); }
  void look_at_calendar();

  // The news for a scheduler: the changes that other processes have made to schedules, and how far the calendar has
  // jumped. Called on the loop; an empty function ends it. They must not throw.
  void on_schedules_changed(std::function<void(const std::vector<ScheduleId>&)> hear) {
    schedules_changed_ = std::move(hear);
  }
  void on_calendar_jump(std::function<void(Duration)> hear) { calendar_jumped_ = std::move(hear); }

 private:
  Coro<void> keep_house();
  Coro<Result<bool>> look_after_house();
  Coro<Result<bool>> take_changes();
  Coro<Result<void>> prune();

  QueueDesk& queue_desk_;
  SettleDesk& settle_desk_;
  Task<void> task_;
  TimePoint prune_at_{};
  std::optional<Error> failure_;
  ChangedElsewhere changed_;  // told by the store, which tells nothing twice: kept until all of it has been taken
  std::function<void(const std::vector<ScheduleId>&)> schedules_changed_;
  std::function<void(Duration)> calendar_jumped_;
};

// Freed when the last coroutine that works in it has ended, even if its owner let go of it before.
class Broker final : public JobSource {
 public:
  // `store` lives until let_go() at least.
  static Coro<Result<std::shared_ptr<Broker>>> open(Store& store, EngineOptions options);
  Broker(Store& store, EngineOptions options, CalendarMemory calendar);
  // Its engine has gone: from here on nothing of the user's is touched, neither the store nor who listens.
  void let_go() noexcept;
  Coro<Result<void>> close() { return keep_alive(owned_.broker.lock(), close_all()); }

  // --- JobSource
  Coro<Result<std::vector<LeasedJob>>> lease(LeaseCall call) override { return leases.lease(std::move(call)); }
  Coro<Result<std::vector<LeasedJob>>> lease_within(LeaseCall call, Duration wait) override {
    return leases.lease_within(std::move(call), wait);
  }
  Coro<Result<bool>> settle(std::uint64_t token, Verdict verdict) override {
    return ends.settle(token, std::move(verdict));
  }
  std::optional<Duration> renew(std::uint64_t token) override { return runs.renew(token); }
  bool set_progress(std::uint64_t token, double fraction, std::string message) override {
    return runs.set_progress(token, fraction, std::move(message));
  }
  bool set_output(std::uint64_t token, std::string output) override {
    return runs.set_output(token, std::move(output));
  }
  Coro<Result<Backlog>> backlog(BacklogLook look) override { return leases.backlog(std::move(look)); }
  std::optional<Error> failure() const override;

  // A request that has a key.
  Coro<Result<OnceReply>> once(OnceCall call) {
    return call.changes.empty() ? puts.put_once(std::move(call)) : ends.change_once(std::move(call));
  }
  const JobClock& clock() const noexcept { return owned_.clock; }
  // Grows with all that is asked of the store for those who put, lease and settle.
  std::uint64_t store_calls() const noexcept { return owned_.store.calls(); }
  Listeners<JobEvent>& listeners() noexcept { return owned_.listeners; }

 private:
  Coro<Result<void>> start();
  void hand_out_nothing_more();
  Coro<Result<void>> close_all();

  Owned owned_;

 public:
  QueueDesk queues;
  RunDesk runs;
  SettleDesk ends;
  LeaseDesk leases;
  PutDesk puts;
  Housekeeper house;
};

}  // namespace argiope
