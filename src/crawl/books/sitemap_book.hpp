// The knowledge that a crawl's shards share of the sitemaps and feeds that it reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_set>

#include "argiope/crawl/detail/crawl_report.hpp"

namespace argiope {

// Memory: some 40 bytes for each file, each host asked for one, each answer that is no HTML, and each page that is
// asked again because of one.
// Threads: any.
class SitemapBook {
 public:
  // Of a file, a host or a page, by its fingerprint: true for who asks first in this run, who then sees to it.
  bool take(std::uint64_t fingerprint) {
    std::lock_guard lock(mutex_);
    return taken_.insert(fingerprint).second;
  }

  bool is_taken(std::uint64_t fingerprint) const {
    std::lock_guard lock(mutex_);
    return taken_.contains(fingerprint);
  }

  // The URL is known as that of a page: its answer is read as a sitemap. True: that was answered in this
  // run already, and must be asked again.
  bool want(std::uint64_t fingerprint) {
    std::lock_guard lock(mutex_);
    wanted_.insert(fingerprint);
    return passed_.contains(fingerprint);
  }
  // A page is answered: whether it is to be read as a sitemap. `may_be_one`: else it could never be.
  bool is_wanted(std::uint64_t fingerprint, bool may_be_one) {
    std::lock_guard lock(mutex_);
    if (wanted_.contains(fingerprint)) return true;
    if (may_be_one) passed_.insert(fingerprint);
    return false;
  }

  // In this run.
  struct Counts {
    std::atomic<std::uint64_t> files{0}, unchanged{0}, links{0}, dropped{0}, cut{0}, unreadable{0}, news{0};
  };
  Counts counts;

  SitemapTotals totals() const noexcept {
    return {counts.files.load(), counts.unchanged.load(),  counts.links.load(), counts.dropped.load(),
            counts.cut.load(),   counts.unreadable.load(), counts.news.load()};
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_set<std::uint64_t> taken_, wanted_, passed_;
};

}  // namespace argiope
