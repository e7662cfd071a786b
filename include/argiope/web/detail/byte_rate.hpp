// ByteRate: how fast all connections together may receive. ByteQuota: how much.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "argiope/base/clock.hpp"

namespace argiope {

// A token bucket that clients of several threads share. A client that has received bytes pays and waits until that is
// paid; who pays first waits least. As each waits before it reads on, and reads a piece at a time, all get on alike.
//
// Units:   bytes a second of the clock; all payers' clocks are the same one.
// Errors:  the constructor throws std::invalid_argument for 0 bytes a second.
// Threads: any.
// Cost:    O(1); nobody is woken, and nothing is allocated.
class ByteRate {
 public:
  // The time for which bytes are saved up while nothing comes: so much may come at once.
  static constexpr Duration kBurst = std::chrono::milliseconds{250};

  explicit ByteRate(std::uint64_t bytes_per_second);

  // Until when to wait for `bytes` that have come; what has passed means not at all.
  TimePoint pay(std::size_t bytes, TimePoint now) noexcept;
  // The most to read before paying.
  std::size_t piece() const noexcept { return piece_; }
  std::uint64_t bytes_per_second() const noexcept { return rate_; }

 private:
  const std::uint64_t rate_;
  const std::size_t piece_;
  std::atomic<Duration::rep> paid_until_;
};

// How many bytes many requests together may receive. Each takes what has come as it comes, and ends once nothing is
// left.
//
// Threads: any.
class ByteQuota {
 public:
  explicit ByteQuota(std::uint64_t bytes) noexcept : most_(bytes) {}

  // For bytes that have come, whether they were left or not.
  void take(std::uint64_t bytes) noexcept { taken_.fetch_add(bytes, std::memory_order_relaxed); }
  bool is_used_up() const noexcept { return taken_.load(std::memory_order_relaxed) >= most_; }
  std::uint64_t most() const noexcept { return most_; }

 private:
  const std::uint64_t most_;
  std::atomic<std::uint64_t> taken_{0};
};

}  // namespace argiope
