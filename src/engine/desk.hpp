// Desk: one of the parts of a broker, with one kind of requests each. All of them work on Owned: the queues and the
// runs of the store that the broker owns, and those who wait for jobs.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/engine/engine.hpp"
#include "async/internal/background.hpp"
#include "base/internal/listeners.hpp"
#include "engine/calendar_memory.hpp"
#include "engine/internal/job_clock.hpp"
#include "engine/owned_queue.hpp"
#include "engine/runs.hpp"
#include "engine/store_use.hpp"

namespace argiope {

// One who asks for jobs.
struct LeaseCaller {
  std::shared_ptr<const LeaseCall> call;
  std::vector<OwnedQueue*> queues;  // of one that asks for a job by its id: none
  std::vector<std::string> unmade;  // names of queues that are not there yet
  bool waits = false;               // until there is a job
  Future<Result<std::vector<LeasedJob>>> answer;
};

// Leases that are on their way into the store.
struct Grant {
  LeaseCaller caller;
  std::vector<LeaseRequest> requests;
  std::vector<TimePoint> until;
  bool was_buried = false;  // the one that was asked for by its id
};

// Those who wait for jobs, in the order in which they came. Their queues know how many they are: OwnedQueue::callers.
class LeaseCallers {
 public:
  bool empty() const noexcept { return all_.empty(); }
  void add(LeaseCaller caller) {
    for (OwnedQueue* queue : caller.queues) ++queue->callers;
    all_.push_back(std::move(caller));
  }
  // They were the first before they were taken away by serve().
  void add_first(std::list<LeaseCaller> callers) { all_.splice(all_.begin(), callers); }
  // A queue was made meanwhile.
  void join(OwnedQueue& queue) {
    for (LeaseCaller& caller : all_) join(caller, queue);
  }
  static void join(LeaseCaller& caller, OwnedQueue& queue) {
    if (std::erase(caller.unmade, queue.name()) == 0) return;
    caller.queues.push_back(&queue);
    ++queue.callers;
  }
  // It waits no more.
  static void leave(const LeaseCaller& caller) {
    for (OwnedQueue* queue : caller.queues) --queue->callers;
  }
  // `take(caller)` gives a Grant, whose caller is filled in; of those without requests the callers wait on.
  template <class Take>
  std::vector<Grant> serve(Take take) {
    std::vector<Grant> grants;
    for (auto caller = all_.begin(); caller != all_.end();) {
      Grant grant = caller->answer.done() ? Grant() : take(*caller);  // done: cancelled, and about to be dropped
      if (grant.requests.empty()) {
        ++caller;
        continue;
      }
      grant.caller = std::move(*caller);
      grants.push_back(std::move(grant));
      caller = all_.erase(caller);
    }
    return grants;
  }
  void drop_cancelled() {
    for (auto caller = all_.begin(); caller != all_.end();) {
      if (!caller->answer.done()) {
        ++caller;
        continue;
      }
      leave(*caller);
      caller = all_.erase(caller);
    }
  }
  // Nobody waits any more.
  void answer_all(const Result<std::vector<LeasedJob>>& answer) {
    for (LeaseCaller& caller : std::exchange(all_, {})) {
      leave(caller);
      if (!caller.answer.done()) caller.answer.set_result(answer);
    }
  }

 private:
  std::list<LeaseCaller> all_;
};

// The owner's next step: sends the answer of take() at once, or that of take_after_turn() after the tasks that are
// ready now; or nothing.
enum class Next : std::uint8_t { wait, send_now, send_after_turn };

// The requests of one turn of the loop to the store, which go there together, but in parts of so many: the store can
// work on the first while the loop makes the next.
template <class T>
class TurnBatch {
 public:
  Next add(T one) {
    waiting_.push_back(std::move(one));
    if (waiting_.size() == kMost) return Next::send_now;
    return std::exchange(scheduled_, true) ? Next::wait : Next::send_after_turn;
  }
  std::vector<T> take() { return std::exchange(waiting_, {}); }
  // The requests that were to be sent after the turn: now.
  std::vector<T> take_after_turn() {
    scheduled_ = false;
    return take();
  }

 private:
  static constexpr std::size_t kMost = 32;
  std::vector<T> waiting_;
  bool scheduled_ = false;
};

struct Owned {
  Owned(Store& its_store, EngineOptions its_options, CalendarMemory calendar)
      : store(its_store),
        options(std::move(its_options)),
        loop(EventLoop::current()),
        clock(loop.clock(), calendar.offset, std::move(calendar.jumps)),
        runs(its_store.last_token()),
        background(loop, "broker") {}
  Owned(const Owned&) = delete;

  // The store has failed: nobody gets anything any more.
  void stop_all(const Error& error) { callers.answer_all(std::unexpected(error)); }

  StoreUse store;
  const EngineOptions options;
  EventLoop& loop;
  JobClock clock;
  OwnedQueues queues;
  Runs runs;
  LeaseCallers callers;
  std::uint64_t least_pass = 0;  // of what is leased next; see OwnedQueue::pass
  std::vector<JobId> due_log;    // jobs that have become due, until that is told
  Listeners<JobEvent> listeners;
  Background background;
  std::weak_ptr<const void> broker;  // what the work of its desks keeps
  bool started = false;              // the leases of owners before this one are over
  bool closing = false;
};

// Lifetime: of its broker.
// Threads:  the loop's own.
class Desk {
 public:
  Desk(const Desk&) = delete;

 protected:
  using Queue = OwnedQueue;

  explicit Desk(Owned& owned) noexcept
      : owned_(owned),
        store_(owned.store),
        options_(owned.options),
        loop_(owned.loop),
        clock_(owned.clock),
        queues_(owned.queues),
        runs_(owned.runs) {}
  ~Desk() = default;

  // `work` with the broker kept until it has ended.
  template <class T>
  Coro<T> kept(Coro<T> work) const {
    return keep_alive(owned_.broker.lock(), std::move(work));
  }
  // The same, and it goes on to its end when its caller is cancelled.
  template <class T>
  Coro<T> to_its_end(Coro<T> work) const {
    return owned_.background.to_its_end(owned_.broker.lock(), std::move(work));
  }
  void run_in_background(Coro<void> work, Start start = Start::next_turn) const {
    owned_.background.run(owned_.broker.lock(), std::move(work), start);
  }
  WallTime calendar_now() const { return clock_.to_calendar(clock_.now()); }
  void tell(JobEventKind kind, JobId id, const Queue& queue, std::string_view text = {}, std::uint32_t attempt = 0,
            WallTime due_at = {}, double fraction = 0, const EndedRun& run = {}) const;

  Owned& owned_;
  StoreUse& store_;
  const EngineOptions& options_;
  EventLoop& loop_;
  JobClock& clock_;
  OwnedQueues& queues_;
  Runs& runs_;
};

}  // namespace argiope
