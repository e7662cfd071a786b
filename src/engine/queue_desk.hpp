// QueueDesk: a broker's queues. It makes, configures and erases them, notes what has come of their jobs, and knows
// which of them are to be looked at.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/detail/indexed_heap.hpp"
#include "async/internal/ticker.hpp"
#include "engine/desk.hpp"

namespace argiope {

inline std::vector<const NewJob*> pointers_to(const std::vector<NewJob>& jobs) {
  std::vector<const NewJob*> pointers;
  pointers.reserve(jobs.size());
  for (const NewJob& job : jobs) pointers.push_back(&job);
  return pointers;
}

class QueueDesk final : public Desk {
 public:
  // `look`: looks at the queues that are to be looked at.
  QueueDesk(Owned& owned, std::function<void()> look) : Desk(owned), ticker_(owned.loop, std::move(look)) {}

  // --- what Engine and Book offer
  // null: no queue of that name is known.
  const StoredQueue* find(std::string_view name) const;
  Result<QueueConfig> config(std::string_view name) const;
  std::vector<std::string> names() const { return queues_.names(); }
  Result<void> rest_key(std::string_view name, std::string_view key, TimePoint until);
  Result<void> wake_key(std::string_view name, std::string_view key);
  std::size_t in_memory() const;
  Coro<Result<void>> configure(std::string name, QueueConfig config, JobReachRef asker) {
    return kept(to_its_end(configure_named(std::move(name), std::move(config), std::move(asker))));
  }
  Coro<Result<void>> erase(std::string name) { return kept(to_its_end(erase_named(std::move(name)))); }

  // --- queues that come and go
  Queue& add(StoredQueue stored);
  // `asker`: for whom it is made where it is not there; null: the program itself.
  Coro<Result<Queue*>> named(std::string name, bool may_create, JobReachRef asker);
  // The queues of jobs that are put together. Those that are not there yet are made, but only where the jobs can be
  // put, so that jobs that are refused leave no queues behind.
  // `takes_room`: the capacity of the queues counts. `of_call`: jobs that the same call puts or ends before these; the
  // store cannot judge yet what names one of them. Errors: as puts give them.
  Coro<Result<std::vector<Queue*>>> of_all(std::vector<const NewJob*> jobs, bool takes_room = true,
                                           std::vector<JobId> of_call = {});
  // Of one job, that is put by itself.
  Coro<Result<Queue*>> of(const NewJob& job, std::vector<JobId> of_call = {});
  Coro<Result<void>> load_new();
  // Whether to look for new ones, because a worker asks for the jobs of these, or they may not be made: then
  // load_new().
  bool may_be_news(const std::vector<std::string>& names);
  Coro<Result<void>> recount();
  // The last count has failed; it is the housekeeper's to do it again.
  bool must_recount() const noexcept { return must_recount_; }
  // When its pause is over. kNever: it is not paused, or until it is resumed.
  TimePoint pause_ends(const Queue& queue) const;
  void end_pause(Queue& queue, TimePoint now);

  // --- which are to be looked at
  void note_dirty(Queue& queue);
  void mark(Queue& queue);  // the same, and has it looked at
  void look_soon() { ticker_.soon(); }
  void wake_at(Queue& queue, TimePoint when);
  bool has_dirty() const noexcept { return !dirty_.empty(); }
  // Also those whose time has come.
  bool has_due(TimePoint now) const { return has_dirty() || wakeups_.top().rank <= now; }
  // They stay marked as dirty.
  std::vector<Queue*> take_due(TimePoint now);
  // When the next one's time comes.
  void look_when_due();
  void stop() { ticker_.stop(); }

  // --- what comes of jobs
  PutRequest request_of(NewJob job, const Queue& queue) const;
  // It had taken room, and is stored now.
  void note_put(Queue& queue, const PutReply& reply);
  void tell_of_put(Queue& queue, const PutReply& reply);
  // Jobs that have waited for another one, which has ended.
  void note_released(const std::vector<WaitingJob>& released, const std::vector<CancelledJob>& cancelled,
                     const std::vector<EndedRun>& ended_runs);

 private:
  auto wakeup_place() noexcept {
    return [this](std::uint32_t index) -> std::uint32_t& { return queues_[index].wakeup_place; };
  }
  bool is_free(std::string_view name) const { return options_.is_free_queue && options_.is_free_queue(name); }
  class NewQueues;
  // What a queue says to the jobs, the one that is there or the one that is to be made.
  Result<void> check_policies(const std::vector<const NewJob*>& jobs, bool takes_room) const;
  // Whether they can be put, where queues of theirs are not there yet.
  Coro<Result<void>> check_first(const std::vector<const NewJob*>& jobs, bool takes_room,
                                 const std::vector<JobId>& of_call);
  Coro<Result<void>> configure_named(std::string name, QueueConfig config, JobReachRef asker);
  Coro<Result<void>> erase_named(std::string name);

  IndexedHeap<TimePoint, std::uint32_t> wakeups_;  // queues by when they are to be looked at
  std::vector<Queue*> dirty_;
  TimePoint look_for_new_at_{};
  bool must_recount_ = false;
  Ticker ticker_;
};

}  // namespace argiope
