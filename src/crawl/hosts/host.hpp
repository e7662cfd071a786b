// The knowledge of one scheme, host and port while it has something to do, and the little that is kept when it has not.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/jobs/job.hpp"
#include "argiope/jobs/job_queue.hpp"
#include "argiope/store/store.hpp"
#include "argiope/web/detail/ip_address.hpp"
#include "argiope/web/robots.hpp"
#include "argiope/web/url.hpp"
#include "crawl/hosts/host_rests.hpp"
#include "crawl/hosts/internal/host_health.hpp"
#include "crawl/hosts/internal/host_pace.hpp"

namespace argiope {

struct HostPolicy;

// The address of a host is stable while anybody refers to it: while it has URLs in memory, or pins.
struct Host {
  std::string site;  // "http://example.org:8080"
  std::uint64_t site_fingerprint = 0;
  KeyId key{};
  const HostPolicy* policy = nullptr;
  bool loopback = false;
  bool throttled = false;  // its pace follows its latency
  bool asking = false;     // its first question is under way, or a probe: nothing else is asked meanwhile
  // A redirect of another host's robots.txt waits for its turn here, or is being asked; and nothing else is asked
  // meanwhile.
  bool has_hop = false;
  bool holds_for_hop = false;
  std::uint32_t asked = 0;        // requests to it that are under way
  std::uint32_t pins = 0;         // who refers to it beside its URLs in memory
  std::uint32_t rendering = 0;    // its visits that render their page, and ask for nothing themselves
  std::uint32_t parts_asked = 0;  // requests of these pages to this host that are under way
  std::uint32_t urls = 0;         // ever queued; stays at the largest number there is
  std::uint32_t robots_attempts = 0;
  std::uint8_t sitemap_guess = 0;  // the next of the usual places to look at for a sitemap, from 1; 0: none
  // robots.txt: null allows everything. Valid until `robots_until`; before the first fetch that is the beginning of
  // time.
  std::unique_ptr<const RobotsRules> robots;
  TimePoint robots_until = TimePoint::min();
  TimePoint rest_until = TimePoint::min();
  RestReason rest_why = RestReason::pace;
  // Where the answer to a question has redirected to, which could not be asked at once.
  struct Detour {
    std::string question;  // the URL that was asked first
    Url next;
    int hops = 0;  // before `next`
  };
  std::unique_ptr<Detour> detour;
  Duration crawl_delay{};  // that of robots.txt
  HostHealth health;
  std::unique_ptr<HostLoss> lost;  // null: it may be asked
  TimePoint lost_until = kNever;   // then it may be again, in a crawl that goes on
  std::optional<IpAddress> address;
  // The most and the least important of its URLs that may be on the shelf of ready ones.
  struct Stretch {
    Rank first;
    Rank last;
  };
  std::optional<Stretch> on_shelf;
  KeyLimits limits;
  Duration pace{};  // from one request to the next, where it is throttled

  // Nothing new is asked of it now.
  bool is_held() const noexcept { return asking || holds_for_hop; }
  HostPace as_paced() const noexcept { return {loopback, throttled, pace, crawl_delay}; }

  // Without scheme and port, as a URL has it.
  std::string_view name() const noexcept {
    std::string_view rest = std::string_view{site}.substr(site.find("://") + 3);
    return rest.substr(0, rest.starts_with('[') ? rest.find(']') + 1 : rest.find(':'));
  }
};

}  // namespace argiope
