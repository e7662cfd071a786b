// CallerCounts: how many of something each caller has, where all of them share a bounded number.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace argiope {

// Memory:  a name for each caller that has some.
// Threads: the loop's own.
class CallerCounts {
 public:
  std::size_t of(std::string_view who) const {
    const auto found = counts_.find(who);
    return found == counts_.end() ? 0 : found->second;
  }
  // How many have some.
  std::size_t callers() const noexcept { return counts_.size(); }
  void add(const std::string& who, std::size_t count = 1) { counts_[who] += count; }
  // Some that were added before.
  void drop(std::string_view who, std::size_t count = 1) {
    const auto found = counts_.find(who);
    if ((found->second -= count) == 0) counts_.erase(found);
  }

 private:
  std::map<std::string, std::size_t, std::less<>> counts_;
};

}  // namespace argiope
