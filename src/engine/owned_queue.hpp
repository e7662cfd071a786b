// A queue as its owner has it, and all of them.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/internal/queue_window.hpp"
#include "engine/room.hpp"

namespace argiope {

struct OwnedQueue {
  OwnedQueue(EventLoop& loop, StoredQueue stored, std::size_t most, const JobClock& clock)
      : window(std::move(stored), most, clock), room(loop, window.stored()) {}

  const std::string& name() const noexcept { return window.name(); }
  const QueueConfig& config() const noexcept { return window.config(); }

  QueueWindow window;
  Room room;
  std::uint64_t pass = 0;     // what it has had, by its weight
  std::uint32_t callers = 0;  // that wait for its jobs
  std::size_t promised = 0;   // of the jobs that are on their way into the store: those that are leased with that
  bool dirty = false;
  bool refilling = false;
  bool active = false;   // a job of it may be leased now
  std::string maker;     // JobReach::who of whom it was made for; empty: not known, or the program itself
  bool is_free = false;  // EngineOptions::is_free_queue
  bool erased = false;   // from the store; kept for who waits for its jobs, and for when it is made again
  std::uint32_t wakeup_place = 0;
};

// They stay where they are, and none goes; those that are erased are not found.
// Threads: one at a time.
class OwnedQueues {
 public:
  // null: there is none.
  OwnedQueue* find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() || found->second->erased ? nullptr : found->second;
  }
  OwnedQueue* find(QueueId id) const {
    OwnedQueue* const found = find_erased_too(id);
    return found == nullptr || found->erased ? nullptr : found;
  }
  OwnedQueue* find_erased_too(QueueId id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : found->second;
  }
  OwnedQueue& add(std::unique_ptr<OwnedQueue> queue) {
    OwnedQueue& added = *queue;
    by_name_.emplace(added.name(), &added);
    by_id_.emplace(added.window.id(), &added);
    all_.push_back(std::move(queue));
    return added;
  }

  std::size_t size() const noexcept { return all_.size(); }
  // Those that count against the most there may be.
  std::size_t counted() const {
    return static_cast<std::size_t>(std::ranges::count_if(all_, [](const auto& queue) { return counts(*queue); }));
  }
  // The same of one asker: those made for it. Of those of which that is not known, as after a restart, what is its own.
  std::size_t counted_of(const JobReach& asker) const {
    return static_cast<std::size_t>(std::ranges::count_if(all_, [&](const auto& queue) {
      if (!counts(*queue)) return false;
      return queue->maker.empty() ? asker.is_bound && asker(queue->name()) : queue->maker == asker.who;
    }));
  }
  OwnedQueue& operator[](std::size_t index) const noexcept { return *all_[index]; }
  auto begin() const noexcept { return all_.begin(); }
  auto end() const noexcept { return all_.end(); }
  std::vector<std::string> names() const {  // in order
    std::vector<std::string> names;
    for (const auto& [name, queue] : by_name_) {
      if (!queue->erased) names.push_back(name);
    }
    return names;
  }

 private:
  static bool counts(const OwnedQueue& queue) noexcept { return !queue.erased && !queue.is_free; }

  std::vector<std::unique_ptr<OwnedQueue>> all_;
  std::map<std::string, OwnedQueue*, std::less<>> by_name_;
  std::unordered_map<QueueId, OwnedQueue*> by_id_;
};

}  // namespace argiope
