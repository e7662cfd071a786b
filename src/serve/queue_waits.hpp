// QueueWaits: how long jobs of each queue wait for their first lease, as far as can be seen without asking the store.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "argiope/engine/events.hpp"

namespace argiope {

struct QueueBacklog {
  std::string name;
  std::uint64_t ready = 0;
  Duration waits{};
};

// Memory for at most kMostQueues queues; of others it knows nothing.
class QueueWaits {
 public:
  static constexpr std::size_t kMostQueues = 10'000;

  void leased(const JobEvent& event) {
    Waited* queue = find(event.queue);
    if (queue == nullptr) return;
    queue->moved_at = event.at;
    // Only a job's first lease says since when it could have run.
    if (event.due_at != WallTime{}) queue->longest = std::max(queue->longest, event.at - event.due_at);
  }
  // The longest wait of a job that was leased since the last look, or how long ready ones have been there without a lease.
  Duration look(std::string_view name, std::uint64_t ready, WallTime now) {
    Waited* queue = find(name);
    if (queue == nullptr) return {};
    if (ready == 0 || queue->moved_at == WallTime{}) queue->moved_at = now;
    const Duration longest = std::exchange(queue->longest, Duration::zero());
    return ready == 0 ? longest : std::max(longest, now - queue->moved_at);
  }
  // All but these, which are in order of their names.
  void forget_others(const std::vector<QueueBacklog>& known) {
    std::erase_if(queues_, [&](const auto& entry) {
      return !std::ranges::binary_search(known, entry.first, {}, &QueueBacklog::name);
    });
  }

 private:
  struct Waited {
    WallTime moved_at{};  // of the last lease, or since when there is something to lease
    Duration longest{};
  };
  struct Name : std::hash<std::string_view> {
    using is_transparent = void;
  };

  Waited* find(std::string_view name) {
    const auto found = queues_.find(name);
    if (found != queues_.end()) return &found->second;
    return queues_.size() >= kMostQueues ? nullptr : &queues_[std::string(name)];
  }

  std::unordered_map<std::string, Waited, Name, std::equal_to<>> queues_;
};

}  // namespace argiope
