// The state of each host that a shard's projects share: its robots.txt, its rests, its connections and its health. A
// visit asks here before it begins; so two projects on one host are no harder on it than one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/web/detail/dns.hpp"
#include "argiope/web/http.hpp"

namespace argiope {

// Obeys at hosts these options of a crawl: rate, delay, per_host, per_address, robots, heed_crawl_delay, autothrottle,
// host settings, timeout, retries, user agent, product token; the others count for nothing.
//
// All limits hold for the callers of a desk together: `per_host` requests under way, none sooner than 1/`rate` after
// the last began, none within `delay` or the Crawl-delay of the end of the last, `per_address` at a public address. A
// host that has not answered yet is asked one question at a time, robots.txt before all else. A host that cannot be
// reached rests, longer each time and an hour at most, and is asked again for ever.
//
// Memory:   some 12 bytes and its name for each host that was ever met; a record of a few hundred while it has anything
//           to do, or robots.txt has rules for us (of at most about 20,000 such hosts; others have it read anew when
//           they come back).
// Lifetime: `options`, transport and resolver outlive it. close() before it goes, unless nothing of its own is under
// way. Threads:  the loop's own.
class HostDesk {
 public:
  HostDesk(const CrawlOptions& options, EventLoop& loop, HttpTransport& transport, Resolver* resolver,
           std::uint64_t seed);
  ~HostDesk();
  HostDesk(HostDesk&&) = delete;

  // Called once when a host for which begin() has said "wait" without a time may be asked, or its time is known now;
  // and when it may be asked sooner than begin() has said. Never within a call of the desk's. The loop's handler gets
  // its exceptions.
  void on_free(std::function<void(std::uint32_t host)> told);

  // `site` as Url::site_key() spells it; `host` is the caller's number for it, from 1.
  void add(std::uint32_t host, std::string_view site);
  // Gives the caller's number for the host of a URL to which a robots.txt redirects: it is asked in that host's turn.
  // Without it such a robots.txt counts as one that cannot be read.
  void number_by(std::function<std::uint32_t(const Url&)> number_of);

  enum class Leave : std::uint8_t {
    go,         // it counts as under way until end()
    wait,       // not now: until `until`, or (kNever) until on_free
    forbidden,  // robots.txt forbids this URL
    lost,       // the host cannot be reached, or its robots.txt cannot be read: it rests until `until`
  };
  struct Answer {
    Leave leave = Leave::wait;
    TimePoint until = kNever;
    Error why{};              // of lost
    bool is_refused = false;  // of lost: it is we who do not ask it, as of a private address
    // Of wait, for people: "its robots.txt is being read", "8 of 8 requests are under way", "rests until …"
    std::string words;
  };
  // Whether a URL of the host may be asked for now. Where the host's robots.txt is to be read first, that is begun.
  // Suspends: never. `asks_robots`: false for a page that does not heed it. `verifies`: false for one that takes
  // any peer that answers for its https host; its robots.txt is read so, too, and counts for such pages alone.
  Answer begin(std::uint32_t host, const Url& url, bool asks_robots = true, bool verifies = true);
  // How it went, for each go: `sent` is what the transport said; the response as it came, of the last request to this
  // host.
  void end(std::uint32_t host, const Result<void>& sent, const HttpResponse& response);
  // The same for a go that sent nothing.
  void give_back(std::uint32_t host);

  // begin(), and waits until it is something else than "wait", or until `deadline`: for requests that follow from one
  // that was sent already. They go before all that ask by begin().
  // Suspends. Cancel: throws CancelledError, and nothing is under way of it.
  Coro<Answer> enter(std::uint32_t host, Url url, bool asks_robots, TimePoint deadline, bool verifies = true);
  // Adds the fields that the host's settings have for it, but for those that the request has itself. To an anonymous
  // one only its User-Agent.
  void dress(std::uint32_t host, HttpRequest& request);

  // For explain and the API: without beginning anything.
  enum class Doing : std::uint8_t {
    ready,    // a request may begin now
    busy,     // requests are under way
    waiting,  // none is, and its pace, or what goes before it, lets none begin yet
    resting,  // it has failed, or has asked for a rest
  };
  struct State {
    std::string site;
    std::uint32_t under_way = 0, at_most = 0;
    std::optional<TimePoint> rests_until;
    std::optional<Duration> delay;
    std::optional<double> rate;
    bool robots_known = false;
    std::string trouble;  // empty: none
    Doing doing{};
    bool counts_requests = false;            // the words say how many are under way
    std::string words;                       // why no request begins now, or that one may
    std::optional<TimePoint> waits_until{};  // when another request may begin, as far as that is a matter of time
    bool may_begin = false;                  // one may begin now, or the question for robots.txt that goes before it
    bool reads_robots = false;               // that is being read now
  };
  // `site`: where the host may not have been added. Cost: that of the words.
  State look(std::uint32_t host, std::string_view site = {}) const;
  // The same in short. Cost: O(1), and no memory is taken.
  Doing doing(std::uint32_t host) const noexcept;

  // Requests of its own (robots.txt, probes) that are under way are cancelled and waited for.
  // From then on all hosts must wait.
  Coro<void> close();

  // Hosts with something to do, or rules.
  std::size_t active_hosts() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};
// "ready", "busy", "waiting", "resting".
std::string_view to_string(HostDesk::Doing doing) noexcept;

}  // namespace argiope
