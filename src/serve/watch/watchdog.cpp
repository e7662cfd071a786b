#include "serve/watch/watchdog.hpp"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <mutex>

#include "argiope/base/clock.hpp"

namespace argiope {

namespace {

std::int64_t whole(TimePoint time) noexcept { return time.time_since_epoch().count(); }

// Signals are the loop's.
void block_signals() noexcept {
  ::sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

Watchdog::Watchdog(EventLoop& loop, const Clock& clock, WatchdogOptions options)
    : loop_(loop),
      clock_(clock),
      options_(std::move(options)),
      beat_at_(whole(clock.now())),
      looked_at_(whole(clock.now())),
      ticker_(loop, [this] { beat(); }) {
  ticker_.at(saturating_add(loop_.time(), options_.interval));
  if (options_.has_thread) thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

Watchdog::~Watchdog() = default;

Duration Watchdog::stood(TimePoint now) const noexcept {
  const std::int64_t since =
      std::max(beat_at_.load(std::memory_order_relaxed), blind_until_.load(std::memory_order_relaxed));
  return std::max(Duration::zero(), now - TimePoint{Duration{since}} - options_.interval);
}

bool Watchdog::is_stalled() const noexcept { return stood(clock_.now()) > options_.limit; }

void Watchdog::beat() {
  const TimePoint now = clock_.now();
  // The thread has yet to see that it did not run either.
  const bool nothing_ran = options_.has_thread && whole(now) - looked_at_.load(std::memory_order_relaxed) >
                                                      (options_.interval + options_.limit).count();
  const Duration late = nothing_ran ? Duration::zero() : stood(now);
  beat_at_.store(whole(now), std::memory_order_relaxed);
  lag_.store(late.count(), std::memory_order_relaxed);
  if (late.count() > longest_lag_.load(std::memory_order_relaxed))
    longest_lag_.store(late.count(), std::memory_order_relaxed);
  if (late > options_.limit) {
    stalls_.fetch_add(1, std::memory_order_relaxed);
    spdlog::warn("{} goes on after it stood still for {}", options_.loop, format_roughly(late));
  }
  ticker_.at(saturating_add(loop_.time(), options_.interval));
}

void Watchdog::check() noexcept {
  const TimePoint now = clock_.now();
  const std::int64_t last = looked_at_.exchange(whole(now), std::memory_order_relaxed);
  if (whole(now) - last > (options_.interval + options_.limit).count())
    blind_until_.store(whole(now), std::memory_order_relaxed);
  const Duration stands = stood(now);
  if (stands <= options_.limit) {
    told_ = {};
    return;
  }
  if (stands < 2 * told_) return;
  told_ = stands;
  spdlog::warn("{} has stood still for {}: something on it computes or blocks", options_.loop, format_roughly(stands));
}

void Watchdog::watch(const std::stop_token& stop) {
  block_signals();
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  while (!never.wait_for(lock, stop, options_.interval, [] { return false; }) && !stop.stop_requested()) check();
}

}  // namespace argiope
