// When a crawl ends: what is left to do, the budgets of pages and bytes, and whether it was told to stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "argiope/base/clock.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/web/detail/byte_rate.hpp"
#include "argiope/web/http.hpp"

namespace argiope {

// Threads: any.
class CrawlEnding {
 public:
  // `wake` has every shard look at what has changed.
  CrawlEnding(const CrawlOptions& options, std::function<void()> wake);

  // `count` URLs are now queued or running / no longer are; at zero the crawl has finished.
  void begin(std::uint64_t count) noexcept { outstanding_.fetch_add(count, std::memory_order_relaxed); }
  void end(std::uint64_t count) {
    if (outstanding_.fetch_sub(count) == count) wake_();
  }
  std::uint64_t outstanding() const noexcept { return outstanding_.load(); }
  // Nothing was left, and nothing more may come.
  void complete();
  bool is_complete() const noexcept { return complete_.load(); }

  // Reserves some of the requests max_pages allows; false: not so many are left.
  bool take_pages(std::uint64_t count) noexcept;
  // For requests that did not come to be, or were for no page.
  void give_pages_back(std::uint64_t count) noexcept;

  // With a limit of pages, what it has let in is completed before the crawl stops: `begin_part` of each page that is
  // fetched, of each GET that has a place after its HEAD, and of each requisite that is queued; `end_part` when it is
  // dealt with, or is put back.
  void begin_part() noexcept {
    if (completes_pages_) parts_left_.fetch_add(1);
  }
  void end_part();
  // A page must wait for the next run. The crawl stops now, or when nothing is left to complete.
  void stop_at_max_pages();

  // An answer has come, or a part of it: with a quota the crawl stops when that is used up.
  void take_bytes(const HttpResponse& response);
  bool is_quota_used_up() const noexcept { return quota_ && quota_->is_used_up(); }
  ByteQuota* quota() const noexcept { return quota_.get(); }  // null: there is none

  // The first reason counts.
  void stop(std::string reason, bool at_once);
  bool stopping() const noexcept { return stop_requested_.load(std::memory_order_relaxed); }
  bool stopping_at_once() const noexcept { return stop_at_once_.load(std::memory_order_relaxed); }
  std::string stop_reason() const;  // empty: it was not stopped

  // The moment of the calendar at which a shard's work has ended.
  void note_end(WallTime now) noexcept;
  WallTime last_end() const noexcept { return WallTime{Duration{ended_at_.load()}}; }

 private:
  const bool limits_pages_;
  const bool completes_pages_;
  const std::function<void()> wake_;
  std::atomic<std::uint64_t> outstanding_{0};
  std::atomic<bool> complete_{false};
  std::atomic<std::uint64_t> pages_left_;
  std::atomic<std::int64_t> parts_left_{0};
  std::atomic<bool> pages_wait_{false};
  const std::unique_ptr<ByteQuota> quota_;
  std::atomic<bool> stop_requested_{false};
  std::atomic<bool> stop_at_once_{false};
  mutable std::mutex mutex_;
  std::string stop_reason_;  // under mutex_
  std::atomic<WallTime::rep> ended_at_{0};
};

}  // namespace argiope
