// WorkerRegistry: who has asked for jobs by way of the API, and where. Which leases they hold the engine knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/async/timeout.hpp"
#include "argiope/base/clock.hpp"

namespace argiope {

// A worker is known for as long as it waits, and afterwards while there is room. Clients choose its name, so it is known by who asks,
// too: those of one name under different tokens are different workers.
//
// Threads: the loop's own.
class WorkerRegistry {
 public:
  static constexpr std::size_t kMostWorkers = 10'000;

  struct Worker {
    std::string name;
    std::string who;                  // asks by that name: Caller::name
    std::vector<std::string> queues;  // that it asked for last
    std::size_t waiting = 0;          // of its requests, for jobs
    WallTime seen_at{};
    std::vector<Timeout*> polls;  // of its requests that wait, for jobs or for what is to stop: what ends their waiting
    std::vector<std::uint64_t> stops;  // tokens of runs that it is to stop, and that no answer to it has named yet

    // Its requests that wait are answered now.
    void end_polls() const;
  };
  using WorkerRef = std::shared_ptr<Worker>;

  // The worker of that name has asked for something, as `who`.
  WorkerRef seen(std::string_view who, std::string_view name, WallTime now);
  // Null where it is not known.
  WorkerRef find(std::string_view who, std::string_view name) const;
  void forget(const Worker& worker);
  // By name.
  std::vector<WorkerRef> all() const;

 private:
  void forget_idle();

  using Key = std::pair<std::string, std::string>;  // its name, and who
  std::map<Key, WorkerRef> workers_;
};

}  // namespace argiope
