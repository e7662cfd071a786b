// The policy of a crawl at each host: its options, and its settings for that host where there are some. Hosts of the
// same settings share a policy, so that a million hosts need no more than one.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/crawl/crawl_options.hpp"
#include "crawl/options/internal/host_rules.hpp"

namespace argiope {

struct HostPolicy {
  std::optional<double> rate;
  std::optional<Duration> delay;
  std::optional<std::uint32_t> per_host;
  // Whether the pace follows the latency, whatever the host is; nullopt: `throttles_public`, if it is public.
  std::optional<bool> autothrottle;
  bool throttles_public = true;
  double autothrottle_target = 0;
  bool robots = true;
  bool has_own_agent = false;
  std::string product_token;
  std::vector<std::pair<std::string, std::string>> headers;  // of each request
  Duration timeout{};
  std::uint32_t attempts = 1;
  std::uint64_t max_pages = 0;
};

// Threads: any.
class HostPolicies {
 public:
  // `options` outlive it.
  explicit HostPolicies(const CrawlOptions& options);
  HostPolicies(const HostPolicies&) = delete;
  HostPolicies& operator=(const HostPolicies&) = delete;

  // Of a site as Url::site_key() spells it; a path may follow. Valid as long as this is.
  const HostPolicy& of(std::string_view site);

 private:
  HostPolicy made_of(const std::vector<const HostSettings*>& settings) const;

  const CrawlOptions& options_;
  const HostRules rules_;
  const HostPolicy usual_;
  std::mutex mutex_;
  std::map<std::vector<const HostSettings*>, HostPolicy> policies_;
};

// Whether any host's depth is limited.
bool limits_depth(const CrawlOptions& options) noexcept;

}  // namespace argiope
