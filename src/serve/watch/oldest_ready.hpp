// OldestReady: since when the oldest job of a queue could have run and has not, as the store has it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "argiope/engine/engine.hpp"

namespace argiope {

// No index is in this order, so each look reads a bounded part of the queue: the first jobs, those that are due, and
// some of the others, from where the last look has ended. The job found is believed for as long as it waits; so the age
// told is never too long (one that has waited for others counts from its put), and right at the latest when the whole
// queue was read: kJobsAtOnce of it at each look.
//
// Lifetime: its engine outlives its calls.
// Threads:  the loop's own; one call at a time.
class OldestReady {
 public:
  static constexpr std::size_t kJobsAtOnce = 1'000;
  static constexpr std::size_t kKeysAtOnce = 20;

  explicit OldestReady(Engine& engine) : engine_(engine) {}

  // How long its oldest ready job waits; zero: none is ready. Errors: of the store.
  Coro<Result<Duration>> look(std::string queue);
  // All but these.
  void forget_others(const std::set<std::string>& known);

 private:
  struct Found {
    JobId id = 0;
    WallTime since{};
  };
  struct Queue {
    std::optional<Found> oldest;
    Rank after{};                          // of the ready ones that were read last
    std::optional<std::string> after_key;  // of those set aside
  };

  Coro<Result<std::optional<Found>>> oldest_of(const std::vector<WaitingJob>& jobs, WallTime now);
  Coro<Result<std::vector<WaitingJob>>> read(QueueId id, Queue& queue);
  Coro<Result<bool>> still_waits(JobId id, WallTime now);

  Engine& engine_;
  std::map<std::string, Queue, std::less<>> queues_;
};

}  // namespace argiope
