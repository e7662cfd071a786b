// DeskHost: what a HostDesk knows of a host that it is busy with, and what follows from that alone.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "argiope/async/sync.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/jobs/detail/token_level.hpp"
#include "argiope/jobs/job_queue.hpp"
#include "argiope/web/detail/ip_address.hpp"
#include "argiope/web/http.hpp"
#include "argiope/web/robots.hpp"
#include "crawl/hosts/internal/host_health.hpp"
#include "crawl/hosts/internal/host_pace.hpp"
#include "crawl/options/internal/host_policies.hpp"

namespace argiope {

// Why a host is not asked.
struct DeskLoss {
  Error cause;
  bool unreachable = false;  // else its robots.txt cannot be read
  bool verified = true;      // by who checks its certificate
  TimePoint until;
};

struct DeskHost {
  enum class Question : std::uint8_t { none, queued, under_way };

  std::uint32_t number = 0;
  std::uint32_t under_way = 0;
  const HostPolicy* policy = nullptr;
  bool loopback = false;
  bool throttled = false;
  bool asking = false;  // a request to a host that has not answered yet: nothing else meanwhile
  // Its own question has sent something, or is about to: not while it waits for where that redirects.
  bool asked = false;
  bool at_gate = false;  // waits for a place at its address
  bool wants_robots = false;
  bool verifies = true;         // who was let in last, or is asked for
  bool robots_verified = true;  // by whom robots.txt was read
  Question question = Question::none;
  std::uint8_t losses = 0;  // since it answered
  std::uint32_t robots_attempts = 0;
  std::unique_ptr<const RobotsRules> robots;  // null allows everything
  TimePoint robots_until = TimePoint::min();
  TimePoint address_until = TimePoint::min();
  TimePoint rest_until = TimePoint::min();
  // Until when a caller has been told to wait; min: none has.
  TimePoint told_until = TimePoint::min();
  Duration crawl_delay{};
  Duration pace{};
  HostHealth health;
  std::unique_ptr<DeskLoss> lost;
  // Changes while nothing is under way alone, so that what was entered is what is left.
  std::optional<IpAddress> address;
  KeyLimits limits;
  TokenLevel rate;
  std::deque<Event*> hops;  // in enter(), in their order

  HostPace as_paced() const noexcept { return {loopback, throttled, pace, crawl_delay}; }
  bool is_blocked() const noexcept {
    return question != Question::none || asking || at_gate || under_way >= limits.concurrency;
  }
  // When the next request may begin, as far as that is a matter of time.
  TimePoint next_turn(TimePoint now) const noexcept { return std::max({now, rest_until, rate.next_available(now)}); }
};

// Why a request may not begin, whatever its URL is.
struct HeldUp {
  TimePoint until;
  std::string words;
  bool counts_requests = false;  // in these words
};

// `is_due`: something is to be asked of it before, its robots.txt or whether it answers.
std::optional<HeldUp> held_up(const DeskHost& host, bool is_due, TimePoint now);

// nullopt: its address is not known, or not one that it shares with other hosts of the net.
std::optional<IpAddress> shared_address(const DeskHost& host);
// Empty: none.
std::string trouble_of(const DeskHost& host);
std::uint32_t attempts_of(const DeskHost& host) noexcept;

void rest(DeskHost& host, TimePoint until) noexcept;
// After a request that went out at `sent_at`.
void be_polite(DeskHost& host, TimePoint sent_at, TimePoint now) noexcept;
void set_limits(DeskHost& host, TimePoint now);
// It is no longer lost.
void revive(DeskHost& host);

// The fields that the policy has for requests, but those that the request has itself.
void add_fields(const HostPolicy& policy, HttpRequest& request);
// Of a question: the host's fields, and the way of the page that it is asked for, as far as certificates go.
void prepare(const DeskHost& host, HttpRequest& request);

}  // namespace argiope
