#include "crawl/run/crawl_ending.hpp"

#include <algorithm>
#include <utility>

namespace argiope {

CrawlEnding::CrawlEnding(const CrawlOptions& options, std::function<void()> wake)
    : limits_pages_(options.max_pages > 0),
      completes_pages_(limits_pages_ && (options.requisites != Requisites::none || options.check_links ||
                                         !options.accept_types.empty())),
      wake_(std::move(wake)),
      pages_left_(options.max_pages),
      quota_(options.quota == 0 ? nullptr : std::make_unique<ByteQuota>(options.quota)) {}

void CrawlEnding::complete() {
  complete_.store(true);
  wake_();
}

bool CrawlEnding::take_pages(std::uint64_t count) noexcept {
  if (!limits_pages_) return true;
  std::uint64_t left = pages_left_.load();
  while (left >= count) {
    if (pages_left_.compare_exchange_weak(left, left - count)) return true;
  }
  return false;
}

void CrawlEnding::give_pages_back(std::uint64_t count) noexcept {
  if (limits_pages_) pages_left_.fetch_add(count);
}

void CrawlEnding::end_part() {
  if (completes_pages_ && parts_left_.fetch_sub(1) == 1 && pages_wait_.load()) stop("max_pages", false);
}

void CrawlEnding::stop_at_max_pages() {
  pages_wait_.store(true);
  if (parts_left_.load() == 0) stop("max_pages", false);
}

void CrawlEnding::take_bytes(const HttpResponse& response) {
  if (!quota_) return;
  quota_->take(response.wire_bytes - std::min(response.wire_bytes, response.quota_bytes));
  if (quota_->is_used_up() && !stopping()) stop("quota", false);
}

void CrawlEnding::stop(std::string reason, bool at_once) {
  {
    std::lock_guard lock(mutex_);
    if (stop_reason_.empty()) stop_reason_ = std::move(reason);
  }
  if (at_once) stop_at_once_.store(true);
  stop_requested_.store(true);
  wake_();
}

std::string CrawlEnding::stop_reason() const {
  std::lock_guard lock(mutex_);
  return stop_reason_;
}

void CrawlEnding::note_end(WallTime now) noexcept {
  const WallTime::rep at = now.time_since_epoch().count();
  WallTime::rep last = ended_at_.load();
  while (last < at && !ended_at_.compare_exchange_weak(last, at)) {
  }
}

}  // namespace argiope
