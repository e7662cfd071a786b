// StorePlace: where the calls of a store are done, by the thread that works for a database, or at once by a driver at
//             hand.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "store/jobs/awaited_calls.hpp"
#include "store/jobs/internal/store_driver.hpp"

namespace argiope {

// Held by the store and by calls under way, which may outlive it.
struct StorePlace {
  explicit StorePlace(std::unique_ptr<DriverInThread> driver)
      : name(driver->name()),
        durability(driver->durability()),
        access(driver->access()),
        last_token(driver->last_token()),
        in_thread(driver.get()),
        calls(std::make_shared<AwaitedCalls>(std::move(driver))) {}
  explicit StorePlace(std::unique_ptr<DriverAtHand> driver) noexcept : at_hand(std::move(driver)) {}

  const std::string name, durability;
  const StoreAccess access = StoreAccess::own;

  // In a thread.
  const std::shared_ptr<const std::atomic<std::uint64_t>> last_token;
  DriverInThread* const in_thread = nullptr;  // until `calls` are stopped, and in their thread
  const std::shared_ptr<AwaitedCalls> calls;

  // At hand. Calls take effect when they are awaited, one at a time.
  std::mutex mutex;
  const std::unique_ptr<DriverAtHand> at_hand;
  bool is_closed = false;
};

}  // namespace argiope
