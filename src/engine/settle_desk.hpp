// SettleDesk: how a broker's runs end, and how its jobs are changed. Split over two files: settle_desk.cpp,
// changing.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "argiope/async/sync.hpp"
#include "argiope/base/random.hpp"
#include "engine/queue_desk.hpp"
#include "engine/run_desk.hpp"

namespace argiope {

class SettleDesk final : public Desk {
 public:
  SettleDesk(Owned& owned, QueueDesk& queue_desk, RunDesk& run_desk)
      : Desk(owned), queue_desk_(queue_desk), run_desk_(run_desk), random_(owned.options.seed) {}

  // --- what Engine and Book offer
  Coro<Result<bool>> settle(std::uint64_t token, Verdict verdict) {
    return settle_run({owned_.broker.lock(), this}, token, std::move(verdict));
  }
  Coro<Result<std::vector<SettleReply>>> settle_each(std::vector<RunEnd> ends) {
    return kept(to_its_end(settle_several(std::move(ends))));
  }
  Coro<Result<OnceReply>> settle_once(RequestKey key, std::vector<RunEnd> ends) {
    return kept(do_settle_once(std::move(key), std::move(ends)));
  }
  Coro<Result<ChangeReply>> change(Change change) { return kept(to_its_end(change_one(std::move(change)))); }
  Coro<Result<OnceReply>> change_once(OnceCall call) { return kept(do_change_once(std::move(call))); }

  // --- ends that nobody has asked for
  void end_unasked(std::uint64_t token, Verdict verdict);
  // Of a run that nobody has got.
  void give_back(std::uint64_t token);
  void give_back_unknown(const JobRecord& record, std::uint64_t token);
  void expire(Queue& queue, const ExpiredLease& lease);
  // Jobs that ran when the owner before this one ended run no more, but for those of remote workers.
  Coro<Result<void>> end_old_leases();
  // Of jobs that others have changed, those that run here and are to be cancelled.
  Coro<Result<void>> hear_of_cancellations(std::vector<JobId> jobs);

  // Sends what this turn of the loop has asked for so far.
  Coro<void> flush();

 private:
  struct Pending {
    Settlement settlement;
    Queue* queue;
    std::uint32_t attempt;
    std::vector<Queue*> follow_up_queues;
    Future<Result<SettleReply>> answer;  // empty: nobody waits
    std::unique_ptr<Run> run;            // with follow-ups: what to settle it as where they are refused
    std::optional<Error> refused;        // what the answer is then, once that is committed
    bool is_finding = false;             // of a run that went well, whose remark is told
  };

  // --- runs
  // Static: it keeps the broker itself, because a frame more a job would be felt.
  static Coro<Result<bool>> settle_run(std::shared_ptr<SettleDesk> self, std::uint64_t token, Verdict verdict);
  Coro<Result<std::vector<SettleReply>>> settle_several(std::vector<RunEnd> ends);
  Coro<Result<OnceReply>> do_settle_once(RequestKey key, std::vector<RunEnd> ends);
  Coro<Result<OnceReply>> settle_in_one(RequestKey key, std::vector<RunEnd> ends);
  bool needs_new_queue(const std::vector<NewJob>& follow_ups) const;
  Coro<Result<bool>> settle_in_new_queues(std::uint64_t token, Verdict verdict);
  Coro<Result<std::optional<Error>>> make_queues_of(std::uint64_t token, const std::vector<NewJob>& follow_ups,
                                                    const std::vector<JobId>& of_call);
  // The same for each end of one call.
  Coro<Result<std::vector<std::optional<Error>>>> make_queues_of_all(const std::vector<RunEnd>& ends);
  // Those that the ends change: runs, and follow-ups that bring their ids.
  std::vector<JobId> jobs_of(std::span<const RunEnd> ends) const;
  Result<std::vector<Queue*>> queues_of(const std::vector<NewJob>& follow_ups) const;
  Settlement settlement_of(const Run& run, std::uint64_t token, Verdict& verdict, TimePoint now);
  Pending ended(std::uint64_t token, Verdict verdict, std::optional<Error> why_no_follow_ups);
  void fail_for(Pending& pending, Error why);

  // --- into the store and back
  Future<Result<SettleReply>> submit_verdict(std::uint64_t token, Verdict verdict,
                                             std::optional<Error> why_no_follow_ups = {});
  void submit_refused(Pending pending, Error why);
  void submit(Pending pending);
  Coro<void> send(std::vector<Pending> pending);
  static Settlement taken_along(Pending& pending);
  void note_settled(const Pending& pending, SettleReply& reply);

  // --- leases of the owner before this one
  Settlement ending_of(const OldLease& lease, const JobRecord* record, const Queue* queue) const;
  LeaseRequest adopt(const OldLease& lease, const JobRecord& record, Queue& queue);

  // --- changes
  void set_times(Change& change) const;
  Coro<Result<ChangeReply>> change_one(Change change);
  Coro<Result<ChangeReply>> cancel_running(std::uint64_t token, Change change);
  Coro<Result<OnceReply>> do_change_once(OnceCall call);
  Coro<Result<OnceReply>> change_in_one(OnceCall call);
  void apply_in_memory(const JobRecord& before, const Change& change, const ChangeReply& reply);
  void note_changed(const JobRecord& before, const Change& change, const ChangeReply& reply);

  QueueDesk& queue_desk_;
  RunDesk& run_desk_;
  Random random_;
  TurnBatch<Pending> settlements_;
  Lock settling_once_;
};

}  // namespace argiope
