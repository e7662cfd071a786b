// PutDesk: how a broker takes jobs in, schedules' jobs among them. Split over two files: put_desk.cpp, awaited_puts.cpp
// (puts for whose jobs callers wait).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/lease_desk.hpp"

namespace argiope {

class PutDesk final : public Desk {
 public:
  PutDesk(Owned& owned, QueueDesk& queue_desk, LeaseDesk& lease_desk)
      : Desk(owned), queue_desk_(queue_desk), lease_desk_(lease_desk) {}

  Coro<Result<PutReply>> put(NewJob&& job) { return put_one({owned_.broker.lock(), this}, std::move(job)); }
  Coro<Result<std::vector<Result<PutReply>>>> put_each(std::vector<NewJob> jobs) {
    return kept(put_several(std::move(jobs)));
  }
  // `last_completes`: the last one waits for those before it.
  Coro<Result<std::vector<PutReply>>> put_all(std::vector<NewJob> jobs, bool last_completes) {
    return kept(put_together(std::move(jobs), last_completes));
  }
  Coro<Result<OnceReply>> put_once(OnceCall call) { return kept(do_put_once(std::move(call))); }
  Coro<Result<std::vector<Result<FireReply>>>> fire(std::vector<FireCall> calls) {
    return kept(to_its_end(fire_all(std::move(calls))));
  }

 private:
  struct Pending {
    NewJob job;
    Queue* queue;
    Future<Result<PutReply>> answer;
  };
  // Of jobs that are being put: those for which callers wait, and whose leases are written down with them.
  struct Awaited {
    std::vector<Grant> grants;
    std::vector<std::size_t> places;  // of the put of each of their requests
  };
  struct Sharing;
  // A schedule's call on its way into the store, with the queues of its jobs.
  struct Step {
    FireRequest request;
    std::vector<Queue*> queues;
    std::size_t call = 0;  // which one it is of those that are answered
  };

  // --- each by itself
  // Static, as SettleDesk::settle_run().
  static Coro<Result<PutReply>> put_one(std::shared_ptr<PutDesk> self, NewJob job);
  Coro<Result<std::vector<Result<PutReply>>>> put_several(std::vector<NewJob> jobs);
  Future<Result<PutReply>> submit(NewJob job, Queue& queue);
  Coro<void> flush();
  Coro<void> send(std::vector<Pending> pending);
  static void answer(Pending& put, Result<PutReply> reply);

  // --- all or none
  Coro<Result<std::vector<PutReply>>> put_together(std::vector<NewJob> jobs, bool last_completes);
  Coro<Result<std::vector<PutReply>>> send_together(std::vector<PutRequest> requests, std::vector<Queue*> queues);

  // --- with a key
  Coro<Result<OnceReply>> do_put_once(OnceCall call);
  Coro<Result<void>> take_room(std::vector<Result<Queue*>>& queues, bool each);
  static std::uint64_t take_what_there_is(Room& room, std::vector<Result<Queue*>>& queues);
  Coro<Result<OnceReply>> send_once(OnceRequest request, std::vector<Result<Queue*>> queues);

  // --- for whose jobs callers wait
  Awaited jobs_awaited(const std::vector<Pending>& pending, const std::vector<PutRequest>& requests);
  Sharing shares_of(const std::vector<Pending>& pending, const std::vector<PutRequest>& requests);
  Grant jobs_for(const LeaseCaller& caller, Sharing& sharing, std::vector<std::size_t>& places);
  static std::size_t unleased_on_their_way(const Queue& queue, std::size_t own);
  static bool is_settled(const Queue& queue);
  static bool gives_nothing(const Queue& queue);
  bool starts_at_once(Queue& queue, const PutRequest& put, TimePoint now);
  Coro<void> send_with_leases(std::vector<Pending> pending, std::vector<PutRequest> requests, Awaited awaited);
  void begin_awaited(Queue& queue, const WaitingJob& job, std::uint64_t token, const LeaseCaller& caller);

  // --- of schedules
  Coro<Result<std::vector<Result<FireReply>>>> fire_all(std::vector<FireCall> calls);
  Coro<Result<Step>> step_of(FireCall call);
  // `reply`: null where the store has refused.
  void note_fired(const std::vector<Queue*>& queues, const FireReply* reply);

  QueueDesk& queue_desk_;
  LeaseDesk& lease_desk_;
  TurnBatch<Pending> puts_;
};

}  // namespace argiope
