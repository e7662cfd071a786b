// The failures of a run, for its report: how many URLs for which reason, which hosts were given up, and what the crawl
// cannot do without.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "argiope/base/error.hpp"
#include "argiope/crawl/detail/crawl_report.hpp"

namespace argiope {

// Threads: any.
class CrawlFailures {
 public:
  // A URL has failed.
  void count(std::string_view reason) {
    std::lock_guard lock(mutex_);
    ++counts_[std::string(reason)];
  }

  // Nothing more is asked of the host in this run.
  void note_lost(const std::string& site, const Error& cause) {
    std::lock_guard lock(mutex_);
    if (lost_hosts_.contains(site)) return;
    ++lost_host_count_;
    if (lost_hosts_.size() >= CrawlReport::kMostLostHosts) return;
    lost_hosts_.try_emplace(site, LostHost{site, fmt::format("{}: {}", to_string(cause.code), cause.message), 0});
  }
  // A URL of it was passed over.
  void count_not_asked(const std::string& site) {
    std::lock_guard lock(mutex_);
    if (const auto found = lost_hosts_.find(site); found != lost_hosts_.end()) ++found->second.not_asked;
  }

  // Of a sink or the renderer; the first counts.
  void note_fatal(Error why) {
    std::lock_guard lock(mutex_);
    if (!fatal_) fatal_ = std::move(why);
  }
  std::optional<Error> fatal() const {
    std::lock_guard lock(mutex_);
    return fatal_;
  }

  void tell(CrawlReport& report) const {
    std::lock_guard lock(mutex_);
    report.failures = counts_;
    for (const auto& [site, lost] : lost_hosts_) report.lost_hosts.push_back(lost);
    report.lost_host_count = lost_host_count_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::uint64_t> counts_;
  std::map<std::string, LostHost> lost_hosts_;  // the first of them
  std::uint64_t lost_host_count_ = 0;
  std::optional<Error> fatal_;
};

}  // namespace argiope
