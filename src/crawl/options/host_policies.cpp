#include "crawl/options/internal/host_policies.hpp"

#include <algorithm>

#include "web/text/internal/ascii.hpp"

namespace argiope {

HostPolicies::HostPolicies(const CrawlOptions& options)
    : options_(options), rules_(options.hosts), usual_(made_of({})) {}

const HostPolicy& HostPolicies::of(std::string_view site) {
  if (rules_.empty()) return usual_;
  const auto settings = rules_.of(site);
  if (settings.empty()) return usual_;
  std::lock_guard lock(mutex_);
  const auto known = policies_.find(settings);
  return known != policies_.end() ? known->second : policies_.emplace(settings, made_of(settings)).first->second;
}

HostPolicy HostPolicies::made_of(const std::vector<const HostSettings*>& settings) const {
  HostPolicy policy;
  const auto take = [&](auto& out, auto member, const auto& usual) {
    const auto* given = setting_of(settings, member);
    if (given != nullptr) {
      out = *given;
    } else {
      out = usual;
    }
  };
  take(policy.rate, &HostSettings::rate, options_.rate);
  take(policy.delay, &HostSettings::delay, options_.delay);
  take(policy.per_host, &HostSettings::per_host, options_.per_host);
  take(policy.autothrottle, &HostSettings::autothrottle, std::optional<bool>{});
  policy.throttles_public = options_.autothrottle.value_or(!policy.rate && !policy.delay);
  take(policy.autothrottle_target, &HostSettings::autothrottle_target, options_.autothrottle_target);
  take(policy.robots, &HostSettings::robots, options_.robots);
  take(policy.timeout, &HostSettings::timeout, options_.timeout);
  take(policy.max_pages, &HostSettings::max_pages, options_.max_pages_per_host);
  std::uint32_t retries = 0;
  take(retries, &HostSettings::retries, options_.retries);
  policy.attempts = retries + 1;
  if (const auto* headers = setting_of(settings, &HostSettings::headers)) policy.headers = *headers;
  const auto* agent = setting_of(settings, &HostSettings::user_agent);
  policy.has_own_agent = agent != nullptr;
  policy.product_token = agent != nullptr ? product_token_of(*agent) : options_.product_token;
  if (agent != nullptr) {
    std::erase_if(policy.headers, [](const auto& field) { return equals_lower(field.first, "user-agent"); });
    policy.headers.emplace_back("User-Agent", *agent);
  }
  return policy;
}

bool limits_depth(const CrawlOptions& options) noexcept {
  return options.max_depth ||
         std::ranges::any_of(options.hosts, [](const HostSettings& one) { return one.max_depth.has_value(); });
}

}  // namespace argiope
