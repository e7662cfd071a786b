// What a HostDesk tells of its hosts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "project/fetch/host_desk_impl.hpp"
#include "web/url/internal/host_address.hpp"

namespace argiope {

// A pause that its own pace asks for is not the rest of a host that has asked for one, or has failed.
HostDesk::Doing HostDesk::Impl::doing_of(const DeskHost& host, TimePoint now) noexcept {
  if (host.lost && host.lost->until > now) return Doing::resting;
  if (host.under_way > 0 || host.question == DeskHost::Question::under_way) return Doing::busy;
  if (host.rest_until > now) {
    const double rate = host.limits.rate;
    const Duration pace = rate > 0 && std::isfinite(rate) ? from_seconds(1 / rate) : Duration{};
    const bool has_trouble = host.health.suspected() || host.health.failures() > 0 || host.robots_attempts > 0;
    return has_trouble || host.rest_until - now > std::max(pace, host.limits.delay) ? Doing::resting : Doing::waiting;
  }
  return host.is_blocked() || host.rate.next_available(now) > now ? Doing::waiting : Doing::ready;
}

HostDesk::Doing HostDesk::Impl::doing(std::uint32_t number) const noexcept {
  const TimePoint now = loop_.time();
  if (const auto found = records_.find(number); found != records_.end()) return doing_of(*found->second, now);
  const DeskNotes::Note note = notes_.find(number);
  return note.is_lost && note.until() > now ? Doing::resting : Doing::ready;
}

// Of a host that has nothing to do.
HostDesk::State HostDesk::Impl::look_at_note(std::uint32_t number, std::string site) const {
  State state{.site = std::move(site), .trouble = {}, .words = "nothing holds it up"};
  const TimePoint now = loop_.time();
  const DeskNotes::Note note = notes_.find(number);
  if (note.is_lost && note.until() > now) {
    state.doing = Doing::resting;
    state.rests_until = state.waits_until = note.until();
    state.trouble = note.is_unreachable ? "it could not be reached" : "its robots.txt could not be read";
    state.words = fmt::format("it is asked again in {}: {}", format_roughly(note.until() - now), state.trouble);
  }
  state.may_begin = state.doing == Doing::ready;
  state.robots_known = note.is_open && note.until() > now;
  if (const auto url = Url::parse(state.site + "/")) {
    const HostPolicy& policy = policies_.of(state.site);
    const bool loopback = is_loopback(*url);
    const KeyLimits limits = limits_of_host(policy, {.loopback = loopback, .throttled = is_throttled(*url, policy)});
    put_limits(limits, state);
    if (policy.robots && !state.robots_known && state.doing == Doing::ready)
      state.words += "; its robots.txt is read first";
  }
  return state;
}

void HostDesk::Impl::put_limits(const KeyLimits& limits, State& state) noexcept {
  state.at_most = limits.concurrency;
  if (limits.delay > Duration::zero()) state.delay = limits.delay;
  if (std::isfinite(limits.rate)) state.rate = limits.rate;
}

HostDesk::State HostDesk::Impl::look(std::uint32_t number, std::string_view site) const {
  const std::string_view kept = notes_.site(number);
  const auto found = records_.find(number);
  if (found == records_.end()) return look_at_note(number, std::string(kept.empty() ? site : kept));
  const DeskHost& host = *found->second;
  const TimePoint now = loop_.time();
  State state{.site = std::string(kept), .trouble = trouble_of(host), .words = {}};
  state.under_way = host.under_way + (host.question == DeskHost::Question::under_way ? 1 : 0);
  put_limits(host.limits, state);
  if (host.rest_until > now) state.rests_until = host.rest_until;
  state.robots_known = host.robots_until > now;
  state.doing = doing_of(host, now);
  state.reads_robots = host.question == DeskHost::Question::under_way && host.wants_robots;
  const bool wants_robots = host.policy->robots && !state.robots_known;
  if (host.lost) {
    state.rests_until = std::max(host.lost->until, state.rests_until.value_or(host.lost->until));
    if (host.lost->until > now) {
      state.waits_until = host.lost->until;
      state.words = fmt::format("it is asked again in {}: {}", format_roughly(host.lost->until - now), state.trouble);
      return state;
    }
  }
  const bool is_due = wants_robots || host.health.suspected();
  if (closing_) {
    state.words = "no host is asked any more";
  } else if (auto held = held_up(host, is_due, now)) {
    state.words = std::move(held->words);
    if (held->until != kNever) state.waits_until = held->until;
    state.counts_requests = held->counts_requests;
  } else if (!host.hops.empty()) {
    state.words = "what was redirected to it goes first";
  } else if (host.at_gate) {
    state.words = fmt::format("{} requests are under way at its address", options_.per_address);
  } else if (host.under_way > 0) {
    state.may_begin = true;
    state.counts_requests = true;
    state.words =
        fmt::format("{} of {} requests are under way, and another may begin", host.under_way, host.limits.concurrency);
  } else {
    state.may_begin = true;
    state.words = wants_robots ? "nothing holds it up; its robots.txt is read first" : "nothing holds it up";
  }
  return state;
}

}  // namespace argiope
