#include "crawl/hosts/internal/host_pace.hpp"

#include <algorithm>
#include <cmath>

#include "crawl/hosts/internal/autothrottle.hpp"
#include "web/url/internal/host_address.hpp"

namespace argiope {
namespace {

constexpr std::uint32_t kLoopbackConnections = 8;
constexpr double kMostTarget = 1000;  // requests under way at one host for the sake of its pace

}  // namespace

bool is_throttled(const Url& url, const HostPolicy& policy) {
  if (policy.autothrottle) return *policy.autothrottle;
  if (!policy.throttles_public || is_loopback(url)) return false;
  const auto address = address_of_host(url.host());
  return !address || classify(*address) == AddressClass::public_;
}

double fastest_rate(const HostPolicy& policy, bool loopback) noexcept {
  if (policy.rate) return *policy.rate;
  return !loopback && !policy.delay ? kPublicRate : kUnlimitedRate;
}

KeyLimits limits_of_host(const HostPolicy& policy, const HostPace& pace) {
  KeyLimits limits;
  const double target = pace.throttled ? std::ceil(policy.autothrottle_target) : 1;
  const auto usual = static_cast<std::uint32_t>(std::clamp(target, 1.0, kMostTarget));
  limits.concurrency = policy.per_host.value_or(pace.loopback ? kLoopbackConnections : usual);
  limits.rate = fastest_rate(policy, pace.loopback);
  if (pace.pace > Duration::zero()) limits.rate = std::min(limits.rate, 1 / to_seconds(pace.pace));
  if (policy.delay) limits.delay = *policy.delay;
  limits.delay = std::max(limits.delay, pace.crawl_delay);
  if (limits.delay > Duration::zero()) limits.concurrency = 1;  // a rest between requests makes sense only one by one
  return limits;
}

Duration rest_between_requests(const KeyLimits& limits) noexcept {
  const bool has_rate = limits.rate > 0 && std::isfinite(limits.rate);
  return std::max(limits.delay, has_rate ? from_seconds(1 / limits.rate) : Duration::zero());
}

NextPace next_pace(const HostPolicy& policy, const HostPace& pace, Duration latency, bool is_error) {
  const double fastest = fastest_rate(policy, pace.loopback);
  const Autothrottle throttle{policy.autothrottle_target,
                              std::isfinite(fastest) ? from_seconds(1 / fastest) : Duration::zero()};
  const Duration next = throttle.next(std::max(pace.pace, throttle.fastest), latency, is_error);
  return {next, next > throttle.fastest ? std::min(fastest, 1 / to_seconds(next)) : fastest};
}

}  // namespace argiope
