// The store "memory:", for those that look into it as well.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "argiope/store/store.hpp"
#include "store/jobs/memory_driver.hpp"
#include "store/jobs/store_place.hpp"

namespace argiope {

class MemoryStore final : public Store {
 public:
  MemoryStore() : MemoryStore(std::make_shared<StorePlace>(std::make_unique<MemoryDriver>())) {}

  // As a store is that is opened again after its owner has died: what ran are old leases.
  void reopen() {
    std::lock_guard lock(place_->mutex);
    static_cast<MemoryDriver&>(*place_->at_hand).reopen();
  }

 private:
  explicit MemoryStore(std::shared_ptr<StorePlace> place) noexcept : Store(place), place_(std::move(place)) {}

  const std::shared_ptr<StorePlace> place_;  // with a MemoryDriver
};

}  // namespace argiope
