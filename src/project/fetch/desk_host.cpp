#include "project/fetch/desk_host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "web/text/internal/ascii.hpp"
#include "web/url/internal/host_address.hpp"

namespace argiope {

std::optional<HeldUp> held_up(const DeskHost& host, bool is_due, TimePoint now) {
  using Question = DeskHost::Question;
  if (host.question == Question::under_way) {
    return HeldUp{kNever, host.wants_robots ? "its robots.txt is being read" : "it is being asked whether it answers"};
  }
  if (host.question == Question::queued) return HeldUp{kNever, "many hosts are to be asked for the first time"};
  if (host.asking) return HeldUp{kNever, "one request at a time until it has answered"};
  if (now < host.rest_until)
    return HeldUp{host.rest_until, fmt::format("rests for {}", format_roughly(host.rest_until - now))};
  if (is_due && host.under_way > 0) return HeldUp{kNever, "is asked for its robots.txt when its requests have ended"};
  if (host.under_way >= host.limits.concurrency) {
    return HeldUp{kNever, fmt::format("{} of {} requests are under way", host.under_way, host.limits.concurrency),
                  true};
  }
  if (const TimePoint next = host.rate.next_available(now); next > now) {
    return HeldUp{next, fmt::format("its pace allows the next request in {}", format_roughly(next - now))};
  }
  return std::nullopt;
}

std::optional<IpAddress> shared_address(const DeskHost& host) {
  return host.address && classify(*host.address) == AddressClass::public_ ? host.address : std::nullopt;
}

std::string trouble_of(const DeskHost& host) {
  if (host.lost) return host.lost->cause.message;
  if (host.health.suspected()) return "it answered none of its last requests";
  if (host.health.failures() > 1)
    return fmt::format("it could not be reached {} times in a row", host.health.failures());
  if (host.health.failures() == 1) return "it could not be reached just now";
  if (host.robots_attempts > 0) return "its robots.txt could not be read";
  return {};
}

std::uint32_t attempts_of(const DeskHost& host) noexcept { return host.losses > 0 ? 1 : host.policy->attempts; }

void rest(DeskHost& host, TimePoint until) noexcept { host.rest_until = std::max(host.rest_until, until); }

void be_polite(DeskHost& host, TimePoint sent_at, TimePoint now) noexcept {
  // Counted from when the request went out, so that the server sees no two closer than this, however long the first
  // took to connect.
  if (host.limits.rate > 0 && std::isfinite(host.limits.rate))
    rest(host, saturating_add(sent_at, from_seconds(1.0 / host.limits.rate)));
  if (host.limits.delay > Duration::zero()) rest(host, saturating_add(now, host.limits.delay));
}

void set_limits(DeskHost& host, TimePoint now) {
  host.limits = limits_of_host(*host.policy, host.as_paced());
  host.rate.set(host.limits.rate, 1, now);
}

void revive(DeskHost& host) {
  host.lost.reset();
  host.health = {};
  host.robots_until = TimePoint::min();
  host.robots_attempts = 0;
}

void add_fields(const HostPolicy& policy, HttpRequest& request) {
  for (const auto& field : policy.headers) {
    const bool has_it = std::ranges::any_of(
        request.headers, [&](const auto& own) { return equals_ignoring_case(own.first, field.first); });
    const bool may_go = !request.is_anonymous || equals_lower(field.first, "user-agent");
    if (!has_it && may_go) request.headers.push_back(field);
  }
}

void prepare(const DeskHost& host, HttpRequest& request) {
  if (!host.verifies) {
    static const auto kUnverified = std::make_shared<const HttpWay>(HttpWay{.verifies = false});
    request.way = kUnverified;
    request.is_anonymous = true;
  }
  add_fields(*host.policy, request);
}

}  // namespace argiope
