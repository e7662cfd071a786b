// When a page that was fetched is due again. Pure: what is stored of it and the run's options say it.
#pragma once

#include <algorithm>
#include <optional>

#include "argiope/crawl/crawl_options.hpp"
#include "argiope/store/detail/url_record.hpp"
#include "base/internal/wall_time.hpp"
#include "crawl/scope/internal/revisit_intervals.hpp"

namespace argiope {

// The interval of a page is kept as what lies between its `mtime` and its `due`.
class RevisitPlan {
 public:
  using Visit = RevisitIntervals::Visit;

  explicit RevisitPlan(const CrawlOptions& options) : intervals_(options.age, options.adaptive) {}

  bool is_adaptive() const noexcept { return intervals_.is_adaptive(); }
  Duration first() const noexcept { return intervals_.first(); }
  Duration interval_of(const UrlRecord& record) const noexcept { return intervals_.of(last_of(record)); }
  // The next interval; `before` is null at the first visit.
  Duration next(const UrlRecord* before, Visit visit) const noexcept {
    if (before == nullptr || before->mtime == WallTime{}) return first();
    // A first visit is told by what was stored before.
    return intervals_.next(last_of(*before), visit == Visit::first ? Visit::same : visit);
  }
  // A URL that was fetched later than `now`, by a clock that was wrong, is due at once.
  WallTime due_of(const UrlRecord& record, WallTime now) const noexcept {
    return record.mtime > now ? now : saturating_add(record.mtime, interval_of(record));
  }
  // With bounds: what is stored as the last visit of a URL that waits until `due`, so that its interval stays as it is.
  WallTime visit_before(WallTime due, const UrlRecord* before) const noexcept {
    const Duration interval = before == nullptr ? first() : interval_of(*before);
    return std::max(due - interval, WallTime{std::chrono::milliseconds{1}});
  }

 private:
  static std::optional<Duration> last_of(const UrlRecord& record) noexcept {
    if (record.mtime == WallTime{} || record.due <= record.mtime) return std::nullopt;
    return record.due - record.mtime;
  }

  RevisitIntervals intervals_;
};

}  // namespace argiope
