#include "serve/worker_registry.hpp"

#include <algorithm>
#include <utility>

namespace argiope {

void WorkerRegistry::Worker::end_polls() const {
  for (Timeout* const poll : polls) {
    if (!poll->expired()) poll->reschedule(TimePoint::min());
  }
}

WorkerRegistry::WorkerRef WorkerRegistry::seen(std::string_view who, std::string_view name, WallTime now) {
  Key key(name, who);
  auto found = workers_.find(key);
  if (found == workers_.end()) {
    if (workers_.size() >= kMostWorkers) forget_idle();
    auto worker = std::make_shared<Worker>(Worker{.name = key.first, .who = key.second});
    found = workers_.emplace(std::move(key), std::move(worker)).first;
  }
  found->second->seen_at = now;
  return found->second;
}

WorkerRegistry::WorkerRef WorkerRegistry::find(std::string_view who, std::string_view name) const {
  const auto found = workers_.find(Key(name, who));
  return found == workers_.end() ? nullptr : found->second;
}

void WorkerRegistry::forget(const Worker& worker) { workers_.erase(Key(worker.name, worker.who)); }

std::vector<WorkerRegistry::WorkerRef> WorkerRegistry::all() const {
  std::vector<WorkerRef> all;
  all.reserve(workers_.size());
  for (const auto& [key, worker] : workers_) all.push_back(worker);
  return all;
}

// Half of those that do not wait, those first that were seen last; how many wait is bounded elsewhere.
void WorkerRegistry::forget_idle() {
  std::vector<WorkerRef> idle;
  for (const auto& [key, worker] : workers_) {
    if (worker->waiting == 0) idle.push_back(worker);
  }
  const auto middle = idle.begin() + static_cast<std::ptrdiff_t>((idle.size() + 1) / 2);
  std::ranges::nth_element(idle, middle, {}, [](const WorkerRef& worker) { return worker->seen_at; });
  for (auto worker = idle.begin(); worker != middle; ++worker) forget(**worker);
}

}  // namespace argiope
