// WorkerRegistry: who has asked for jobs by way of the API, and where. Which leases they hold the engine knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argiope/async/timeout.hpp"
#include "argiope/base/clock.hpp"

namespace argiope {

// A worker is known for as long as it waits, and afterwards while there is room.
//
// Threads: the loop's own.
class WorkerRegistry {
 public:
  static constexpr std::size_t kMostWorkers = 10'000;

  struct Worker {
    std::string name;
    std::vector<std::string> queues;  // that it asked for last
    std::size_t waiting = 0;          // of its requests, for jobs
    WallTime seen_at{};
    std::vector<Timeout*> polls;  // of its requests that wait, for jobs or for what is to stop: what ends their waiting
    std::vector<std::uint64_t> stops;  // tokens of runs that it is to stop, and that no answer to it has named yet
  };
  using WorkerRef = std::shared_ptr<Worker>;

  // The worker of that name has asked for something.
  WorkerRef seen(std::string_view name, WallTime now);
  // Null where it is not known.
  WorkerRef find(std::string_view name) const;
  void forget(std::string_view name);
  std::vector<WorkerRef> all() const;

 private:
  void forget_idle();

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_map<std::string, WorkerRef, Hash, std::equal_to<>> workers_;
};

}  // namespace argiope
