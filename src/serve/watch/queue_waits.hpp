// QueueWaits: how long jobs of each queue have waited for their first lease.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "argiope/engine/engine.hpp"

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
    // Only a job's first lease says since when it could have run.
    if (event.due_at != WallTime{}) queue->longest = std::max(queue->longest, event.at - event.due_at);
  }
  // The longest wait of a job that was leased since the last look.
  Duration look(std::string_view name) {
    Waited* queue = find(name);
    return queue == nullptr ? Duration::zero() : std::exchange(queue->longest, Duration::zero());
  }
  // All but these, which are in order of their names.
  void forget_others(const std::vector<QueueBacklog>& known) {
    std::erase_if(queues_, [&](const auto& entry) {
      return !std::ranges::binary_search(known, entry.first, {}, &QueueBacklog::name);
    });
  }

 private:
  struct Waited {
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
