// WorkerRegistry: who has asked for jobs by way of the API, and where. Which leases they hold the engine knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/base/clock.hpp"

namespace argiope {

// A worker is known for as long as it waits, and afterwards while there is room. Clients choose its name, so it is
// known by who asks, too: those of one name under different tokens are different workers.
//
// Memory:  bounded by kMostWorkers and kMostBytes, of which one asker has half: who needs more has its own forgotten
//          first.
// Threads: the loop's own.
class WorkerRegistry {
 public:
  static constexpr std::size_t kMostWorkers = 10'000;
  static constexpr std::size_t kMostBytes = std::size_t{32} * 1024 * 1024;  // of names and of what they say

  struct Worker {
    std::string name;
    std::string who;                  // asks by that name: Caller::name
    std::vector<std::string> queues;  // that it asked for last
    std::size_t bytes = 0;            // of all these texts
    std::size_t waiting = 0;          // of its requests, for jobs
    WallTime seen_at{};
    std::vector<Timeout*> polls;  // of its requests that wait, for jobs or for what is to stop: what ends their waiting
    std::vector<std::uint64_t> stops;  // tokens of runs that it is to stop, and that no answer to it has named yet

    // Its requests that wait are answered now.
    void end_polls() const;
  };
  using WorkerRef = std::shared_ptr<Worker>;

  // The worker of that name has asked for jobs of `queues`, as `who`. Null where what is said of workers that wait
  // leaves no room.
  WorkerRef seen(std::string_view who, std::string_view name, const std::vector<std::string>& queues, WallTime now);
  // Null where it is not known.
  WorkerRef find(std::string_view who, std::string_view name) const;
  void forget(const Worker& worker);
  std::size_t bytes() const noexcept { return all_.bytes; }
  // By name.
  std::vector<WorkerRef> all() const;

 private:
  struct Room {
    std::size_t workers = 0, bytes = 0;
  };
  Room room_of(std::string_view who) const;
  bool has_room(std::string_view who, Room more) const;
  bool make_room(std::string_view who, Room more);
  void forget_idle(std::optional<std::string_view> who);
  void count(const std::string& who, Room more, Room less);

  using Key = std::pair<std::string, std::string>;  // its name, and who
  std::map<Key, WorkerRef> workers_;
  Room all_;
  std::map<std::string, Room, std::less<>> of_askers_;
};

}  // namespace argiope
