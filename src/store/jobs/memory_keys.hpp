// Requests that came under a key, in memory.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "store/jobs/internal/store_driver.hpp"

namespace argiope {

class MemoryKeys final : public KeyRows {
 public:
  std::optional<KeptRequest> find(const std::string& key) override;
  void write(const RequestKey& key, WallTime at, const std::string& reply) override;
  std::size_t prune(WallTime before, std::size_t most, std::size_t limit) override;

 private:
  std::map<std::string, KeptRequest> requests_;
  std::deque<std::pair<WallTime, std::string>> keys_;  // in the order they came
};

}  // namespace argiope
