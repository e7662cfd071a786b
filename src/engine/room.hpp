// Room: how many jobs of a queue have not ended, and who waits until there are fewer.
#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/base/error.hpp"
#include "argiope/jobs/detail/requests.hpp"

namespace argiope {

// Counted are the jobs in the store and those on their way there, which have taken their room before. Waiters are
// served first come, first served.
//
// Lifetime: coroutines that wait end before it: close().
// Threads:  the loop's own.
class Room {
 public:
  // `queue`: with its policy, as that changes.
  Room(EventLoop& loop, const StoredQueue& queue) noexcept : loop_(loop), queue_(queue) {}
  Room(const Room&) = delete;

  std::uint64_t live() const noexcept { return live_; }

  // Those that have taken room, and of which nobody knows yet what has become of them.
  std::uint64_t arriving() const noexcept { return coming_; }

  // False: they do not fit, or others wait.
  bool take_now(std::uint64_t count) noexcept;
  // Waits where the queue's policy says so. Errors: refused; cancelled by close().
  Coro<Result<void>> take(std::uint64_t count);
  // Whatever the capacity.
  void take_anyway(std::uint64_t count) noexcept;

  // --- of several queues at once: so much of each
  using Wanted = std::map<Room*, std::uint64_t>;
  // Takes as much of a queue as there is now; how much that was.
  using TakeSome = std::function<std::uint64_t(Room& room)>;
  // One after the other, in an order that is the same for all; all of it or nothing, also when it is cancelled.
  // `take_some`: is called for a queue that refuses, and the others are still taken; empty: then nothing is taken.
  // Errors: as take().
  static Coro<Result<void>> take_all(Wanted wanted, TakeSome take_some = nullptr);
  // The same without waiting. Errors: refused.
  static Result<void> take_all_now(const Wanted& wanted);
  std::unexpected<Error> is_full() const;

  // One that has taken room is in the store, or has failed; `stays` says whether it has added a job.
  void arrived(bool stays);
  // A job that had ended is there again.
  void came_back() noexcept { ++live_; }
  // So many have ended.
  void give(std::uint64_t count);
  // The capacity is another one.
  void look_again() { give(0); }
  // For when jobs have ended that nobody has told of: so many are in the store.
  void recount(std::uint64_t in_store);
  // Nobody waits any more.
  void close();

 private:
  const QueueConfig& config() const noexcept { return queue_.config; }
  // Gives back room that was taken for jobs that will not come.
  void give_back(std::uint64_t count);
  // Of those before `end`.
  static void give_back(const Wanted& taken, Wanted::const_iterator end);

  EventLoop& loop_;
  const StoredQueue& queue_;
  std::uint64_t live_ = 0;
  std::uint64_t coming_ = 0;  // of those, on their way into the store
  std::deque<std::pair<std::uint64_t, Future<void>>> waiting_;
  bool closed_ = false;
};

}  // namespace argiope
