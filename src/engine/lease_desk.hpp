// LeaseDesk: how a broker looks at its queues, and hands their jobs out.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/sync.hpp"
#include "engine/internal/backlog.hpp"
#include "engine/settle_desk.hpp"

namespace argiope {

class LeaseDesk final : public Desk {
 public:
  LeaseDesk(Owned& owned, QueueDesk& queue_desk, SettleDesk& settle_desk)
      : Desk(owned), queue_desk_(queue_desk), settle_desk_(settle_desk) {}

  // --- what Engine and Book offer
  Coro<Result<std::vector<LeasedJob>>> lease(LeaseCall call) { return kept(lease_some(std::move(call))); }
  Coro<Result<std::vector<LeasedJob>>> lease_now(LeaseCall call) { return kept(lease_what_there_is(std::move(call))); }
  Coro<Result<std::vector<LeasedJob>>> lease_within(LeaseCall call, Duration wait) {
    return wait > Duration{} ? kept(lease_before(std::move(call), wait)) : lease_now(std::move(call));
  }
  Coro<Result<std::optional<LeasedJob>>> lease_job(JobId id, LeaseCall call) {
    return kept(lease_one(id, std::move(call)));
  }
  Coro<Result<void>> worker_gone(std::string worker) { return kept(end_leases_of(std::move(worker))); }
  Coro<Result<std::size_t>> end_leases(std::vector<std::uint64_t> tokens) { return kept(end_each(std::move(tokens))); }
  // As JobSource has it.
  Coro<Result<Backlog>> backlog(BacklogLook look) { return kept(look_at_backlog(std::move(look))); }
  // Memory's knowledge of a job that waits; nullopt: the job lies in the store, behind what the window holds.
  std::optional<Explanation> look_in_memory(std::string_view queue, JobId id);
  // Whether a worker asks for jobs of the queue, or runs one.
  bool is_worked_on(std::string_view queue) const;

  // --- the loop
  // Looks at the queues that are to be looked at, and serves those who wait.
  void pump();
  void tick(Queue& queue, TimePoint now);
  // No lease_now() waits for a read any more.
  void stop() { read_on_.set(); }

  // --- for jobs that are leased as they are put
  // Leases have their tokens, and are not yet on their way into the store.
  bool has_unsent() const noexcept { return unsent_grants_ > 0; }
  void ask_for(const Queue& queue, JobId id, const LeaseCaller& caller, Grant& grant, TimePoint now);
  void begin_run(Queue& queue, const Lease& lease, std::uint64_t token, const LeaseCaller& caller);
  // `leased`: of each request of the grants, in their order. `asked`: when.
  void hand_out(std::vector<Grant>& grants, std::vector<std::optional<JobRecord>> leased, TimePoint asked);

 private:
  static constexpr std::uint64_t kStride = 1 << 20;

  // Those of one call of the store, none of which may run out before it is answered.
  struct Unwritten {
    const std::vector<Grant>* grants;
    TimePoint first_until;
  };

  // --- the loop
  void refresh(Queue& queue, TimePoint now);
  void serve(TimePoint now);
  Coro<void> refill(Queue& queue);
  Coro<Result<bool>> read_on(QueueWindow& window);
  void renew_unwritten(TimePoint now);

  // --- who gets what
  static Rank first_rank(const Queue& queue);
  void update_active(Queue& queue, TimePoint now);
  Grant take(const LeaseCaller& caller, TimePoint now);
  void begin(Queue& queue, const Lease& lease, const LeaseCaller& caller, Grant& grant, TimePoint now);
  void grant_after_turn(std::vector<Grant> grants);
  void grant_after_turn(Grant grant);
  Coro<void> grant(std::vector<Grant> grants);
  void set_lease_time(Run& run, const JobRecord& record, TimePoint asked, TimePoint& until);

  // --- those who ask
  Result<LeaseCaller> caller_of(std::shared_ptr<const LeaseCall> call);
  Coro<Result<std::vector<LeasedJob>>> lease_some(LeaseCall call);
  Coro<Result<std::vector<LeasedJob>>> lease_what_there_is(LeaseCall call);
  Coro<Result<std::vector<LeasedJob>>> lease_before(LeaseCall call, Duration wait);
  Coro<Result<std::optional<LeasedJob>>> lease_one(JobId id, LeaseCall call);
  Coro<Result<Backlog>> look_at_backlog(BacklogLook look);
  std::optional<Grant> grant_of(Queue& queue, const JobRecord& record, LeaseCall call);
  Coro<Result<std::vector<LeasedJob>>> receive(Future<Result<std::vector<LeasedJob>>> answer);
  void drop_stopped(std::vector<LeasedJob>& jobs);
  Coro<Result<void>> end_leases_of(std::string worker);
  Coro<Result<std::size_t>> end_each(std::vector<std::uint64_t> tokens);

  QueueDesk& queue_desk_;
  SettleDesk& settle_desk_;
  std::size_t unsent_grants_ = 0;
  std::list<Unwritten> unwritten_;
  TimePoint unwritten_until_ = kNever;  // when the first of them would run out
  Event read_on_;                       // set whenever a window has been read on
};

}  // namespace argiope
