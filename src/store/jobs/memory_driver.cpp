#include "store/jobs/memory_driver.hpp"

namespace argiope {

void MemoryDriver::mark() {
  jobs_.mark();
  schedules_.start();
  counters_before_ = counters_;
  queues_.mark();
}

void MemoryDriver::keep() {
  jobs_.keep();
  queues_.mark();
  schedules_.stop();
}

// Jobs before their queues.
void MemoryDriver::take_back() {
  jobs_.take_back();
  queues_.take_back();
  counters_ = counters_before_;
  schedules_.take_back();
}

std::optional<std::int64_t> MemoryDriver::recall(const std::string& name) {
  const auto found = remembered_.find(name);
  return found == remembered_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace argiope
