// The questions that come before a host's URLs: robots.txt, whether it is alive, its address; and what its failures
// come to.
#pragma once

#include "argiope/web/detail/dns.hpp"
#include "crawl/run/shard.hpp"

namespace argiope {

class Crawler::Shard::HostQuestions : private Part {
 public:
  HostQuestions(Core& core, HostDesk& desk, HostHops& hops, SitemapDesk& sitemaps);
  // Before anything is asked. Null: no addresses are looked up.
  void start(Resolver* resolver) noexcept { resolver_ = resolver; }

  static bool are_due(const Host& host, TimePoint now) noexcept;
  // Asks the host for robots.txt, or, where that is not read, for a sign of life if it is suspected to be dead.
  Coro<void> ask(Host& host);

  void question_failed(Host& host, Error error, Duration patience, TimePoint now);
  // False: the host is lost now. `owes_failure`: the URL that was to be asked is still queued.
  bool host_failed(Host& host, Error error, bool owes_failure, TimePoint now);
  // In a crawl that goes on: a host that was given up may be asked again.
  void revive(Host& host, TimePoint now);

 private:
  Coro<void> fetch_robots(Host& host);
  Coro<void> probe(Host& host);
  Coro<void> find_address(Host& host);
  void robots_refused(Host& host, Error cause, Duration at_least, TimePoint now);
  void probe_answered(Host& host, TimePoint now);
  void lose(Host& host, Error cause, HostLoss loss, TimePoint now);
  Duration rest_of_lost_hosts() const noexcept;

  HostDesk& desk_;
  HostHops& hops_;
  SitemapDesk& sitemaps_;
  Resolver* resolver_ = nullptr;
};

}  // namespace argiope
