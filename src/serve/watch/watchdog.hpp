// Watchdog: notices when a loop stands still, which its tasks cannot say themselves.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "argiope/async/event_loop.hpp"
#include "async/internal/ticker.hpp"

namespace argiope {

struct WatchdogOptions {
  std::string loop = "the loop";  // as the log calls it
  Duration limit = std::chrono::seconds{1};
  Duration interval = std::chrono::milliseconds{250};
  // false: nobody looks while the loop stands still; for tests, which call check().
  bool has_thread = true;
};

// The loop says every `interval` that it runs; a thread looks whether it did. One that stands still for longer than
// `limit` is named in the log while it does, again each time that has lasted twice as long, and when it goes on. A
// machine that sleeps and a process that is stopped are not taken for that: the thread stands still then too.
//
// Lifetime: its loop and clock outlive it.
// Threads:  made and destroyed on the loop's; check() and the numbers: any.
class Watchdog {
 public:
  Watchdog(EventLoop& loop, const Clock& clock, WatchdogOptions options = {});
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Looks, as the thread does every `interval`. Of one thread at a time.
  void check() noexcept;

  // How late the loop came to say that it runs: the last time, and the longest since the last call of
  // take_longest_lag().
  Duration lag() const noexcept { return Duration{lag_.load(std::memory_order_relaxed)}; }
  Duration take_longest_lag() noexcept { return Duration{longest_lag_.exchange(0, std::memory_order_relaxed)}; }
  // How often it has stood still for longer than `limit`.
  std::uint64_t stalls() const noexcept { return stalls_.load(std::memory_order_relaxed); }
  // Now, and for longer than `limit`.
  bool is_stalled() const noexcept;

 private:
  void beat();
  void watch(const std::stop_token& stop);
  // Since the loop last said that it runs, without the time in which nothing ran.
  Duration stood(TimePoint now) const noexcept;

  EventLoop& loop_;
  const Clock& clock_;
  const WatchdogOptions options_;
  std::atomic<std::int64_t> beat_at_;  // on the clock's monotonic line, in nanoseconds
  std::atomic<std::int64_t> lag_ = 0;
  std::atomic<std::int64_t> longest_lag_ = 0;
  std::atomic<std::uint64_t> stalls_ = 0;
  std::atomic<std::int64_t> looked_at_;
  std::atomic<std::int64_t> blind_until_ = 0;  // the thread had not run either
  Duration told_{};                            // check()'s own
  Ticker ticker_;
  std::jthread thread_;  // the last member: it ends first
};

}  // namespace argiope
