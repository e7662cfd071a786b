// The store "memory:", for whoever looks into it as well.
#pragma once

#include "store/jobs/job_store.hpp"

namespace argiope {

class MemoryStore final : public JobStore {
 public:
  MemoryStore() : MemoryStore(std::make_shared<MemoryPlace>()) {}

  // As a store is that is opened again after its owner has died: what ran are old leases.
  void reopen() {
    std::lock_guard lock(place_->mutex);
    place_->driver.reopen();
  }

 private:
  explicit MemoryStore(std::shared_ptr<MemoryPlace> place) noexcept : JobStore(place), place_(std::move(place)) {}

  const std::shared_ptr<MemoryPlace> place_;
};

}  // namespace argiope
