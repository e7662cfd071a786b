#include "serve/worker_registry.hpp"

#include <algorithm>
#include <utility>

namespace argiope {

WorkerRegistry::WorkerRef WorkerRegistry::seen(std::string_view name, WallTime now) {
  auto found = workers_.find(name);
  if (found == workers_.end()) {
    if (workers_.size() >= kMostWorkers) forget_idle();
    found = workers_.emplace(name, std::make_shared<Worker>(Worker{.name = std::string(name)})).first;
  }
  found->second->seen_at = now;
  return found->second;
}

WorkerRegistry::WorkerRef WorkerRegistry::find(std::string_view name) const {
  const auto found = workers_.find(name);
  return found == workers_.end() ? nullptr : found->second;
}

void WorkerRegistry::forget(std::string_view name) {
  if (const auto found = workers_.find(name); found != workers_.end()) workers_.erase(found);
}

std::vector<WorkerRegistry::WorkerRef> WorkerRegistry::all() const {
  std::vector<WorkerRef> all;
  all.reserve(workers_.size());
  for (const auto& [name, worker] : workers_) all.push_back(worker);
  return all;
}

// Half of those that do not wait, those first that were seen last; how many wait is bounded elsewhere.
void WorkerRegistry::forget_idle() {
  std::vector<WorkerRef> idle;
  for (const auto& [name, worker] : workers_) {
    if (worker->waiting == 0) idle.push_back(worker);
  }
  const auto middle = idle.begin() + static_cast<std::ptrdiff_t>((idle.size() + 1) / 2);
  std::ranges::nth_element(idle, middle, {}, [](const WorkerRef& worker) { return worker->seen_at; });
  for (auto worker = idle.begin(); worker != middle; ++worker) workers_.erase((*worker)->name);
}

}  // namespace argiope
