#include "store/jobs/memory_keys.hpp"

#include "jobs/internal/job_rules.hpp"

namespace argiope {

using namespace job_rules;

std::optional<KeptRequest> MemoryKeys::find(const std::string& key) {
  const auto found = requests_.find(key);
  return found == requests_.end() ? std::nullopt : std::optional(found->second);
}

void MemoryKeys::write(const RequestKey& key, WallTime at, const std::string& reply) {
  requests_.emplace(key.key, KeptRequest{key.digest, reply});
  keys_.emplace_back(at, key.key);
}

std::size_t MemoryKeys::prune(WallTime before, std::size_t most, std::size_t limit) {
  std::size_t count = 0;
  for (; !keys_.empty() && count < limit; ++count) {
    const auto& [at, key] = keys_.front();
    if (at >= stored(before) && keys_.size() <= most) break;
    requests_.erase(key);
    keys_.pop_front();
  }
  return count;
}

}  // namespace argiope
