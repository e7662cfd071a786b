// Guest: what a process may do with the jobs of a store whose queues it does not own: a command that puts or cancels
// while a worker runs elsewhere, or while none does. It applies the owner's rules (payload limits, capacity, the
// owner's calendar). The owner sees its changes when it next looks at the store.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/engine/broker.hpp"
#include "argiope/store/store.hpp"

namespace argiope {

struct GuestOptions {
  QueueConfig new_queue;  // the policy of queues made by a put
  // How long a queue's policy is believed before it is read again.
  Duration believe = std::chrono::seconds{1};
  // How often to look whether a full queue has room (CapacityPolicy::wait).
  Duration poll_interval = std::chrono::milliseconds{100};
};

// Times are the calendar's, as Broker's are.
//
// Suspends: until the effect is committed.
// Errors:   those of the store; not_found for a queue, job or name that is not there.
// Lifetime: may be destroyed or moved at any moment, with calls under way: what has reached the store takes effect, the
//           rest is answered with Errc::cancelled.
// Threads:  the loop's own.
class Guest {
 public:
  // `store` was opened with any access, and outlives the guest.
  static Coro<Result<Guest>> open(Store& store, GuestOptions options = {});
  Guest(Guest&&) noexcept;
  Guest& operator=(Guest&&) noexcept;
  ~Guest();

  // Each by itself: one that is refused (invalid_input, too_large, refused) keeps no other back. Those that are accepted
  // become one transaction. Waits while a queue is full whose policy is to wait.
  // The capacity of a queue is looked up, not locked: guests who put at the same moment may exceed it together.
  // Errors: of the store, and then nothing was put.
  Coro<Result<std::vector<Result<PutReply>>>> put(std::vector<NewJob> jobs);
  Coro<Result<std::vector<ChangeReply>>> change(std::vector<Change> changes);

  // The job of that number or name.
  Coro<Result<JobId>> find(std::string id_or_name);
  Coro<Result<JobRecord>> get(JobId id);
  // As Store::history.
  Coro<Result<std::vector<Attempt>>> history(JobId id);
  // As Store::list, but delayed jobs whose time has come are ready ones here. Of any length.
  Coro<Result<std::vector<JobRecord>>> list(JobFilter filter);
  Coro<Result<StoredQueue>> queue(std::string name);
  // By name. Delayed jobs whose time has come count as ready; what that takes grows with their number.
  Coro<Result<std::vector<std::pair<std::string, StateCounts>>>> counts(std::string only = {});
  // What can be said from the store alone: pauses, what runs and how many may, what is ahead. `owned`: whether a
  // process owns its queues, see has_owner(). JobExplanation::owner_knows names what may also keep it and is not in the
  // store: whether a worker takes jobs of its queue at all, rates, rests of its key.
  Coro<Result<JobExplanation>> explain(JobId id, bool owned);

  // As jobs are timed: the calendar's, less its jumps.
  WallTime job_now() const;

 private:
  struct State;
  explicit Guest(std::shared_ptr<State> state) noexcept;
  void let_go() noexcept;

  std::shared_ptr<State> state_;
};

}  // namespace argiope
