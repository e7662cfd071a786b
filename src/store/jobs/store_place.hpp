// StorePlace: where the calls of a store are done, by the thread that works for a file, or at once by a driver at hand.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "store/jobs/awaited_calls.hpp"
#include "store/jobs/sqlite_driver.hpp"
#include "store/jobs/store_driver.hpp"

namespace argiope {

// Held by the store and by calls under way, which may outlive it.
struct StorePlace {
  explicit StorePlace(std::unique_ptr<SqliteDriver> driver)
      : path(driver->path()),
        access(driver->access()),
        last_token(driver->last_token()),
        file(driver.get()),
        calls(std::make_shared<AwaitedCalls>(std::move(driver))) {}
  explicit StorePlace(std::unique_ptr<DriverAtHand> driver) noexcept : at_hand(std::move(driver)) {}

  const std::string path;
  const StoreAccess access = StoreAccess::own;

  // Of a file.
  const std::shared_ptr<const std::atomic<std::uint64_t>> last_token;
  SqliteDriver* const file = nullptr;  // until `calls` are stopped, and in their thread
  const std::shared_ptr<AwaitedCalls> calls;

  // At hand. Calls take effect when they are awaited, one at a time.
  std::mutex mutex;
  const std::unique_ptr<DriverAtHand> at_hand;
  bool is_closed = false;
};

}  // namespace argiope
