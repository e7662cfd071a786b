// The pace to which a host's policy comes: how many requests at a time, how fast, with what rest between. Pure. The
// crawl's frontier and the projects' HostDesk go by it.
#pragma once

#include <cstdint>

#include "argiope/base/clock.hpp"
#include "argiope/jobs/job_queue.hpp"
#include "argiope/web/url.hpp"
#include "crawl/options/internal/host_policies.hpp"

namespace argiope {

inline constexpr double kPublicRate = 5;  // requests a second to a public host, unless told otherwise

// Facts that are known of a host beside its policy.
struct HostPace {
  bool loopback = false;
  bool throttled = false;  // see is_throttled()
  Duration pace{};         // from one request to the next, where it is throttled
  Duration crawl_delay{};  // that of its robots.txt
};

// Whether the host's pace follows its latency. Unless its settings say so, a host that is not public needs no care.
bool is_throttled(const Url& url, const HostPolicy& policy);
// The most requests that it is sent in a second, however fast it answers.
double fastest_rate(const HostPolicy& policy, bool loopback) noexcept;
KeyLimits limits_of_host(const HostPolicy& policy, const HostPace& pace);
// From one request to the next, at the least.
Duration rest_between_requests(const KeyLimits& limits) noexcept;
// The pace after a request that has taken `latency`; the limits' rate is then `rate`.
struct NextPace {
  Duration pace{};
  double rate = 0;
};
NextPace next_pace(const HostPolicy& policy, const HostPace& pace, Duration latency, bool is_error);

}  // namespace argiope
