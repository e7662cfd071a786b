// The real crawler over a simulated web in virtual time: days of politeness, hostile hosts, robots that fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/simulated_web.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

std::map<std::uint32_t, std::vector<ServedRequest>> by_host(const std::vector<ServedRequest>& log) {
  std::map<std::uint32_t, std::vector<ServedRequest>> hosts;
  for (const ServedRequest& request : log) hosts[request.host].push_back(request);
  return hosts;
}

constexpr TimePoint at_seconds(int seconds) { return TimePoint{std::chrono::seconds{seconds}}; }

TEST(CrawlSim, FetchesEveryPageOfAFriendlyWebOnce) {
  Simulation sim({.hosts = 5, .pages = 100, .latency = 50ms});
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  std::uint64_t expected = 0;
  for (std::uint32_t host = 0; host < 5; ++host) expected += sim.web.expected_pages(host);
  EXPECT_EQ(report.stats.pages, expected);
  // By robots.txt, by nofollow, or because it only looks like a link.
  std::set<std::string> forbidden;
  for (std::uint32_t host = 0; host < 5; ++host) {
    const SyntheticTruth truth = sim.web.truth(host);
    forbidden.insert(truth.disallowed.begin(), truth.disallowed.end());
    forbidden.insert(truth.shunned.begin(), truth.shunned.end());
  }
  std::map<std::pair<std::uint32_t, std::string>, int> times;
  for (const ServedRequest& request : sim.transport.log) {
    if (request.status != 503) ++times[{request.host, request.target}];
    EXPECT_FALSE(forbidden.contains(sim.web.origins()[request.host] + request.target)) << request.target;
  }
  for (const auto& [request, count] : times) EXPECT_EQ(count, 1) << request.second;
}

// At most one request at a time to a public host, and no two closer than the rate allows: the defaults.
TEST(CrawlSim, KeepsToTheDefaultPaceOfPublicHosts) {
  Simulation sim({.hosts = 10, .pages = 60, .latency = 30ms});
  sim.run();
  for (const auto& [host, requests] : by_host(sim.transport.log)) {
    for (std::size_t i = 1; i < requests.size(); ++i) {
      EXPECT_GE(requests[i].at - requests[i - 1].at, 200ms) << host;
      EXPECT_GE(requests[i].at, requests[i - 1].ended) << host;
    }
  }
}

// 1,000 hosts and a simulated day: a third with a Crawl-delay of 700 s in robots.txt, the rest at --delay 400; some
// answer 429 with Retry-After now and then. No request may come too early.
TEST(CrawlSim, BreaksNoPromiseToAThousandHostsInADay) {
  constexpr std::uint32_t kHosts = 1000;
  Simulation sim({.hosts = kHosts, .pages = 100'000, .links = 4, .size = 0, .features = 0});
  sim.options.delay = 400s;
  sim.options.max_crawl_delay = 1h;
  sim.options.max_time = 24h;
  sim.options.concurrency = 2000;
  sim.options.queue_size = 10'000'000;
  std::vector<TimePoint> not_before(kHosts);
  std::uint64_t too_early = 0;
  sim.transport.before_reply = [&](const SyntheticRequest& request, TimePoint now) {
    SyntheticReply reply;
    too_early += now < not_before[request.host];
    if (request.target == "/robots.txt" && request.host % 3 == 0) {
      reply.content_type = "text/plain";
      reply.body = "User-agent: *\nCrawl-delay: 700\n";
    } else if (request.host % 5 == 0 && now.time_since_epoch() / 1h % 6 == 5 && request.target != "/robots.txt") {
      reply.status = 429;
      reply.headers.emplace_back("Retry-After", "3000");
      not_before[request.host] = now + 3000s;
    } else {
      reply = sim.web.reply(request);
    }
    reply.latency = 200ms;
    return reply;
  };
  const CrawlReport report = sim.run();
  EXPECT_EQ(report.stopped_by, "max_time");
  EXPECT_EQ(too_early, 0u) << "Retry-After was not kept to";
  std::size_t requests_seen = 0;
  for (const auto& [host, requests] : by_host(sim.transport.log)) {
    const Duration delay = host % 3 == 0 ? 700s : 400s;
    requests_seen += requests.size();
    EXPECT_GT(requests.size(), 50u) << host;
    for (std::size_t i = 1; i < requests.size(); ++i) {
      ASSERT_GE(requests[i].at - requests[i - 1].ended, delay) << "host " << host << " request " << i;
    }
  }
  EXPECT_GT(requests_seen, 100'000u);
}

TEST(CrawlSim, OneEvilHostAmongAHundredHarmsOnlyItself) {
  // When the other 99 were done, and how much of them was fetched.
  const auto others_end = [](WebFeatures features) {
    Simulation sim({.hosts = 100, .pages = 30, .latency = 100ms, .features = kFriendlyFeatures | features});
    sim.options.max_pages_per_host = 200;
    const CrawlReport report = sim.run();
    EXPECT_TRUE(report.finished);
    TimePoint end{};
    std::size_t requests = 0;
    for (const ServedRequest& request : sim.transport.log) {
      if (request.host == 99) continue;
      end = std::max(end, request.ended);
      ++requests;
    }
    return std::pair{to_seconds(end.time_since_epoch()), requests};
  };
  const auto [calm, calm_requests] = others_end(0);
  const auto [evil, evil_requests] = others_end(kHostileFeatures);
  EXPECT_EQ(evil_requests, calm_requests);
  EXPECT_LE(evil, calm * 1.1);
}

TEST(CrawlSim, FetchesNothingElseOfAHostWhoseRobotsFail) {
  struct Failure {
    const char* name;
    int status;
    SyntheticReply::Behaviour behaviour;
  };
  for (const Failure& failure : {Failure{"HTTP 500", 500, SyntheticReply::Behaviour::normal},
                                 Failure{"HTTP 429", 429, SyntheticReply::Behaviour::normal},
                                 Failure{"silence", 200, SyntheticReply::Behaviour::silent},
                                 Failure{"a reset", 200, SyntheticReply::Behaviour::reset}}) {
    Simulation sim({.hosts = 2, .pages = 10});
    sim.transport.before_reply = [&](const SyntheticRequest& request, TimePoint) {
      SyntheticReply reply = sim.web.reply(request);
      if (request.host == 1 && request.target == "/robots.txt") {
        reply.status = failure.status;
        reply.behaviour = failure.behaviour;
      }
      return reply;
    };
    const CrawlReport report = sim.run();
    EXPECT_TRUE(report.finished) << failure.name;
    EXPECT_EQ(report.stats.pages, sim.web.expected_pages(0)) << failure.name;
    for (const ServedRequest& request : sim.transport.log) {
      if (request.host == 1) {
        EXPECT_EQ(request.target, "/robots.txt") << failure.name;
      }
    }
  }
}

TEST(CrawlSim, TreatsAMissingRobotsFileAsPermission) {
  Simulation sim({.hosts = 1, .pages = 10, .features = 0});
  EXPECT_EQ(sim.run().stats.pages, 10u);
}

TEST(CrawlSim, EndsRedirectLoopsEndlessChainsAndEndlessPaths) {
  Simulation sim({.hosts = 1, .pages = 5, .features = bit(WebFeature::loops) | bit(WebFeature::endless)});
  sim.options.max_pages_per_host = 300;
  sim.options.rate = 1000;
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  EXPECT_LE(sim.transport.log.size(), 400u);
  EXPECT_GT(report.stats.excluded[static_cast<std::size_t>(Exclusion::pages_per_host)], 0u);
}

TEST(CrawlSim, RetriesWhatMayPassAndGivesUpWhatDoesNot) {
  Simulation sim({.hosts = 1, .pages = 3, .features = bit(WebFeature::silent) | bit(WebFeature::flaky)});
  sim.options.retries = 2;
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  EXPECT_EQ(report.failures.at("timeout"), 1u);
  const auto asked = std::ranges::count(sim.transport.log, "/silent/0", &ServedRequest::target);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(report.broken_count, 1u);
  EXPECT_EQ(report.broken[0].referrer, "http://host0.test/");
}

TEST(CrawlSim, GoesOnWhereItWasStopped) {
  Simulation sim({.hosts = 3, .pages = 80, .latency = 50ms});
  sim.options.max_pages = 40;
  std::uint64_t pages = 0;
  for (int runs = 0; runs < 50; ++runs) {
    const CrawlReport report = sim.run();
    pages += report.stats.pages;
    if (report.finished) break;
    EXPECT_EQ(report.stopped_by, "max_pages");
  }
  std::uint64_t expected = 0;
  for (std::uint32_t host = 0; host < 3; ++host) expected += sim.web.expected_pages(host);
  EXPECT_EQ(pages, expected);
}

TEST(CrawlSim, AsksWhetherAnAgedPageHasChanged) {
  Simulation sim({.hosts = 1, .pages = 20, .features = 0});
  EXPECT_EQ(sim.run().stats.pages, 20u);
  EXPECT_EQ(sim.run().stats.fetched, 0u);  // young enough
  sim.backend.manual_clock().advance(10h);
  sim.options.age = 5h;
  const CrawlReport again = sim.run();
  EXPECT_EQ(again.statuses.at(304), 20u);
  EXPECT_EQ(again.stats.pages, 0u);
}

TEST(CrawlSim, KeepsToItsDepthAndItsSize) {
  Simulation sim({.hosts = 1, .pages = 2000, .features = 0});
  sim.options.rate = 10'000;
  sim.options.max_depth = 0;
  EXPECT_EQ(sim.run().stats.pages, 1u);
  Simulation one({.hosts = 1, .pages = 2000, .features = 0});
  one.options.rate = 10'000;
  one.options.max_depth = 1;
  EXPECT_GE(one.run().stats.pages, 400u);  // the front page's index
}

TEST(CrawlSim, FetchesEveryPageOnceWithADepthLimitToo) {
  Simulation sim({.hosts = 3, .pages = 300, .features = 0});
  sim.options.rate = 1000;
  sim.options.max_depth = 20;
  EXPECT_EQ(sim.run().stats.pages, 900u);
  std::map<std::pair<std::uint32_t, std::string>, int> times;
  for (const ServedRequest& request : sim.transport.log) ++times[{request.host, request.target}];
  for (const auto& [request, count] : times) EXPECT_EQ(count, 1) << request.second;
}

TEST(CrawlSim, HoldsNoMoreInMemoryThanItMayAndStillFetchesAll) {
  Simulation sim({.hosts = 2, .pages = 3000, .features = 0});
  sim.options.rate = 10'000;
  sim.options.queue_size = 50;
  EXPECT_EQ(sim.run().stats.pages, 6000u);
}

// A hog with 5,000 links that are found first, and 199 hosts with some pages each.
struct HogWeb {
  static constexpr std::uint32_t kHosts = 200;
  static constexpr int kHogPages = 5000;
  static constexpr int kPages = 20;

  explicit HogWeb(Simulation& sim, int hog_pages = kHogPages) {
    sim.options.queue_size = 50;
    sim.options.concurrency = 500;
    // The hog alone is a seed; its front page names its own pages, then the other hosts.
    sim.options.seeds.resize(1);
    for (const std::string& origin : sim.web.origins()) sim.options.whitelist.emplace_back(Url::parse(origin)->host());
    sim.transport.before_reply = [this, &sim, hog_pages](const SyntheticRequest& request, TimePoint) {
      const CrawlStats stats = sim.running->stats();
      most_in_memory = std::max(most_in_memory, stats.in_memory - std::min(stats.in_memory, stats.in_flight));
      SyntheticReply reply;
      reply.latency = request.host == 0 ? 3s : 50ms;
      reply.content_type = "text/html";
      const auto link = [&](const std::string& url) { reply.body += "<a href=\"" + url + "\">x</a>"; };
      if (request.target == "/robots.txt") {
        reply.status = 404;
      } else if (request.target == "/" && request.host == 0) {
        for (int page = 0; page < hog_pages; ++page) link("/hog/" + std::to_string(page));
        for (std::uint32_t host = 1; host < kHosts; ++host) link(sim.web.origins()[host] + "/");
      } else if (request.target == "/") {
        // Half of them one step from the front page; each of those leads to one more.
        for (int page = 0; page < kPages / 2; ++page) link("/near/" + std::to_string(page));
      } else if (request.target.starts_with("/near/")) {
        link("/far/" + std::string(request.target.substr(6)));
      }
      return reply;
    };
  }

  std::uint64_t most_in_memory = 0;  // and not being fetched
};

// When the last host but the hog was done; and that each page was fetched once, in the order of its host.
double others_end(int hog_pages) {
  Simulation sim({.hosts = HogWeb::kHosts, .pages = 1});
  HogWeb web(sim, hog_pages);
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  const auto hosts = by_host(sim.transport.log);
  EXPECT_EQ(hosts.size(), HogWeb::kHosts);
  TimePoint end{};
  for (const auto& [host, requests] : hosts) {
    std::set<std::string> targets;
    for (const ServedRequest& request : requests) EXPECT_TRUE(targets.insert(request.target).second) << request.target;
    EXPECT_EQ(targets.size(), 2u + static_cast<unsigned>(host == 0 ? hog_pages : HogWeb::kPages)) << host;
    if (host == 0) continue;
    end = std::max(end, requests.back().ended);
    bool far = false;
    for (const ServedRequest& request : requests) {
      far |= request.target.starts_with("/far/");
      EXPECT_FALSE(far && request.target.starts_with("/near/")) << host << request.target;
    }
  }
  EXPECT_LE(web.most_in_memory, 70u);
  return to_seconds(end.time_since_epoch());
}

TEST(CrawlSim, AHogWithASmallMemoryHoldsUpNobody) {
  const double without = others_end(0);
  const double with = others_end(HogWeb::kHogPages);
  EXPECT_LE(with, without * 1.1);
}

TEST(CrawlSim, AHogWithASmallMemoryIsResumedWhereItStopped) {
  Simulation sim({.hosts = HogWeb::kHosts, .pages = 1});
  HogWeb web(sim);
  sim.options.rate = 100;
  sim.options.max_pages = 700;
  CrawlReport report;
  for (int runs = 0; runs < 30 && !report.finished; ++runs) report = sim.run();
  EXPECT_TRUE(report.finished);
  std::map<std::pair<std::uint32_t, std::string>, int> times;
  for (const ServedRequest& request : sim.transport.log) ++times[{request.host, request.target}];
  std::size_t pages = 0;
  for (const auto& [request, count] : times) {
    if (request.second == "/robots.txt") continue;
    EXPECT_EQ(count, 1) << request.first << request.second;
    ++pages;
  }
  EXPECT_EQ(pages, std::size_t{HogWeb::kHogPages} + 1 + (HogWeb::kHosts - 1) * (HogWeb::kPages + 1));
}

// As a database of the first version is: nothing on a shelf, and every priority 0.
TEST(CrawlSim, ADatabaseWithoutShelvesIsResumed) {
  Simulation sim({.hosts = HogWeb::kHosts, .pages = 1});
  HogWeb web(sim, 0);
  UrlBatch batch;
  for (std::int64_t id = 1; id <= 3000; ++id) {
    const std::string url = sim.web.origins()[static_cast<std::size_t>(id % 3)] + "/old/" + std::to_string(id);
    batch.discovered.push_back({id, url, static_cast<std::uint32_t>(1 + id % 5), 0, 1});
  }
  UrlOutcome later;
  later.url_id = 7;
  later.state = UrlState::queued;
  later.attempts = 1;
  later.due = sim.backend.clock().wall_now() + 30min;
  batch.outcomes.push_back(later);
  sim.store->submit(std::move(batch));
  sim.options.rate = 100;
  EXPECT_TRUE(sim.run().finished);
  std::map<std::string, int> times;
  for (const ServedRequest& request : sim.transport.log) {
    if (!request.target.starts_with("/old/")) continue;
    ++times[request.target];
    if (request.target == "/old/7") {
      EXPECT_GE(request.at, TimePoint{30min});
    }
  }
  EXPECT_EQ(times.size(), 3000u);
  for (const auto& [target, count] : times) EXPECT_EQ(count, 1) << target;
  EXPECT_LE(web.most_in_memory, 70u);
}

// --- hosts and their failures

// A page that links to `targets`.
SyntheticReply page_with_links(const std::vector<std::string>& targets) {
  SyntheticReply reply;
  for (const std::string& target : targets) reply.body += "<a href=\"" + target + "\">x</a>";
  return reply;
}

std::vector<std::string> numbered(const std::string& prefix, int count) {
  std::vector<std::string> targets;
  for (int i = 0; i < count; ++i) targets.push_back(prefix + std::to_string(i));
  return targets;
}

std::size_t pages_with(const CrawlReport& report, int status) {
  const auto found = report.statuses.find(status);
  return found == report.statuses.end() ? 0 : found->second;
}

TEST(CrawlSim, UrlsThatAreResetDoNotMakeTheirHostDead) {
  for (const int resets : {30, 200}) {
    Simulation sim({.hosts = 1, .pages = 1});
    sim.transport.before_reply = [&](const SyntheticRequest& request, TimePoint) {
      if (request.target == "/") {
        auto targets = numbered("/reset/", resets);
        std::ranges::copy(numbered("/good/", 500), std::back_inserter(targets));
        return page_with_links(targets);
      }
      SyntheticReply reply;
      if (request.target.starts_with("/reset/")) reply.behaviour = SyntheticReply::Behaviour::reset;
      return reply;
    };
    const CrawlReport report = sim.run();
    EXPECT_TRUE(report.finished);
    EXPECT_EQ(report.stats.pages, 501u);
    EXPECT_EQ(report.broken_count, static_cast<std::size_t>(resets));
    EXPECT_EQ(report.stats.not_asked, 0u);
    EXPECT_EQ(report.lost_host_count, 0u);
    EXPECT_LT(to_seconds(sim.loop.time().time_since_epoch()), 100 + 1.5 * resets);
  }
}

TEST(CrawlSim, TheThirtyResetsOfTheSyntheticWebCostItsHostNoPage) {
  Simulation sim({.hosts = 1, .pages = 300, .features = bit(WebFeature::reset)});
  const CrawlReport report = sim.run();
  EXPECT_EQ(report.stats.pages, 301u);  // and the one that leads to the thirty
  EXPECT_EQ(report.failures.at("network"), 30u);
}

TEST(CrawlSim, AHostThatDiesIsProbedAndWhatWasNotAskedIsNotBroken) {
  Simulation sim({.hosts = 2, .pages = 1});
  TimePoint dies = at_seconds(20);
  sim.transport.connect_fails = [&](std::uint32_t host, TimePoint now) {
    return host == 1 && now >= dies ? std::optional(Errc::network) : std::nullopt;
  };
  sim.transport.before_reply = [&](const SyntheticRequest& request, TimePoint) {
    return request.target == "/" ? page_with_links(numbered("/page/", 500)) : SyntheticReply{};
  };
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  EXPECT_EQ(report.failures, (std::map<std::string, std::uint64_t>{{"network", 1}}));
  EXPECT_EQ(report.broken_count, 1u);
  EXPECT_EQ(report.lost_host_count, 1u);
  EXPECT_EQ(report.stats.not_asked + report.stats.fetched + 1, 1002u);
  ASSERT_EQ(report.lost_hosts.size(), 1u);
  EXPECT_EQ(report.lost_hosts[0].site, "http://host1.test");
  EXPECT_EQ(report.lost_hosts[0].error, "network: connect host1.test");
  EXPECT_EQ(report.lost_hosts[0].not_asked, report.stats.not_asked);
  // It comes back, and the next run takes up all of it.
  dies = kNever;
  sim.backend.manual_clock().advance(1h);
  const CrawlReport again = sim.run();
  EXPECT_TRUE(again.finished);
  EXPECT_EQ(again.stats.fetched, report.stats.not_asked + 1);
  EXPECT_EQ(again.broken_count, 0u);
}

TEST(CrawlSim, AHostThatIsDownForAMinuteLosesNothing) {
  Simulation sim({.hosts = 1, .pages = 1});
  sim.transport.connect_fails = [&](std::uint32_t, TimePoint now) {
    return now >= at_seconds(20) && now < at_seconds(80) ? std::optional(Errc::network) : std::nullopt;
  };
  sim.transport.before_reply = [&](const SyntheticRequest& request, TimePoint) {
    return request.target == "/" ? page_with_links(numbered("/page/", 500)) : SyntheticReply{};
  };
  const CrawlReport report = sim.run();
  EXPECT_EQ(pages_with(report, 200), 501u);
  EXPECT_EQ(report.broken_count, 0u);
  EXPECT_EQ(report.stats.errors, 0u);
}

TEST(CrawlSim, AHostThatFallsSilentIsProbedBeforeItIsGivenUp) {
  Simulation sim({.hosts = 1, .pages = 1});
  sim.transport.before_reply = [&](const SyntheticRequest& request, TimePoint now) {
    SyntheticReply reply = request.target == "/" ? page_with_links(numbered("/page/", 500)) : SyntheticReply{};
    if (now >= at_seconds(20)) reply.behaviour = SyntheticReply::Behaviour::silent;
    return reply;
  };
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  EXPECT_EQ(report.lost_host_count, 1u);
  EXPECT_GT(report.stats.not_asked, 300u);
  EXPECT_LT(report.broken_count, 40u);  // those that were asked
  EXPECT_GE(std::ranges::count(sim.transport.log, "/robots.txt", &ServedRequest::target), 5);
}

TEST(CrawlSim, AHostThatCannotBeReachedNamesItsTrueCause) {
  struct Trouble {
    Errc code;
    const char* name;
    std::uint64_t attempts;
  };
  for (const bool robots : {true, false}) {
    for (const Trouble& trouble :
         {Trouble{Errc::dns, "dns", 3}, Trouble{Errc::tls, "tls", 1}, Trouble{Errc::network, "network", 3},
          Trouble{Errc::timeout, "timeout", 3}, Trouble{Errc::refused, "refused", 1}}) {
      Simulation sim({.hosts = 1, .pages = 5});
      std::uint64_t attempts = 0;
      sim.options.robots = robots;
      sim.transport.connect_fails = [&](std::uint32_t, TimePoint) {
        ++attempts;
        return trouble.code;
      };
      const CrawlReport report = sim.run();
      EXPECT_TRUE(report.finished);
      EXPECT_EQ(report.failures, (std::map<std::string, std::uint64_t>{{trouble.name, 1}}));
      ASSERT_EQ(report.broken_count, 1u);
      EXPECT_EQ(report.broken[0].error, std::string(trouble.name) + ": connect host0.test");
      // The first question is asked with little patience, and does not count when there was no answer in that time.
      EXPECT_EQ(attempts, trouble.attempts + (trouble.code == Errc::timeout ? 1 : 0)) << trouble.name;
    }
  }
}

TEST(CrawlSim, EachCheckedLinkToAHostThatDoesNotExistIsBroken) {
  Simulation sim({.hosts = 1, .pages = 1});
  sim.options.check_links = true;
  sim.transport.before_reply = [&](const SyntheticRequest& request, TimePoint) {
    if (request.target != "/") return SyntheticReply{};
    return page_with_links({"http://gone.test/a", "http://gone.test/b", "http://gone.test/c"});
  };
  const CrawlReport report = sim.run();
  EXPECT_EQ(report.failures, (std::map<std::string, std::uint64_t>{{"dns", 3}}));
  EXPECT_EQ(report.broken_count, 3u);
  EXPECT_EQ(report.stats.not_asked, 0u);
}

// The page of host 0 links to host 1, which is only checked.
struct CheckedWeb {
  explicit CheckedWeb(Simulation& sim, std::vector<std::string> links) {
    sim.options.check_links = true;
    sim.options.seeds.resize(1);
    sim.transport.before_reply = [this, links](const SyntheticRequest& request, TimePoint) {
      if (request.host == 0 && request.target == "/") return page_with_links(links);
      return answer(request);
    };
  }
  std::function<SyntheticReply(const SyntheticRequest&)> answer = [](const SyntheticRequest&) {
    return SyntheticReply{};
  };
};

TEST(CrawlSim, ACheckedLinkIsAskedByGetWhenHeadProvesNothing) {
  Simulation sim({.hosts = 2, .pages = 1});
  const std::vector<int> statuses{400, 401, 403, 404, 405, 406, 500, 501, 503};
  std::vector<std::string> links;
  for (const int status : statuses) links.push_back("http://host1.test/" + std::to_string(status));
  links.push_back("http://host1.test/drops-head");
  links.push_back("http://host1.test/gone");
  CheckedWeb web(sim, links);
  web.answer = [](const SyntheticRequest& request) {
    SyntheticReply reply;
    if (request.target == "/gone") reply.status = 404;
    if (!request.head) return reply;
    if (request.target == "/drops-head") reply.behaviour = SyntheticReply::Behaviour::closed;
    if (request.target[1] >= '4' && request.target[1] <= '5')
      reply.status = std::stoi(std::string(request.target.substr(1)));
    return reply;
  };
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  ASSERT_EQ(report.broken_count, 1u);
  EXPECT_EQ(report.broken[0].url, "http://host1.test/gone");
  EXPECT_EQ(report.broken[0].status, 404);
  for (const int status : statuses) {
    const auto requests = std::ranges::count(sim.transport.log, "/" + std::to_string(status), &ServedRequest::target);
    EXPECT_EQ(requests, 2) << status;  // by HEAD, then by GET, and no more than these
  }
  EXPECT_EQ(pages_with(report, 404), 1u);
}

std::map<std::string, BrokenLink> broken_by_target(const CrawlReport& report) {
  std::map<std::string, BrokenLink> broken;
  for (const BrokenLink& link : report.broken) broken[link.url.substr(link.url.find('/', 8))] = link;
  return broken;
}

TEST(CrawlSim, RedirectsThatLeadNowhereAreBrokenLinks) {
  Simulation sim({.hosts = 1, .pages = 1});
  sim.options.max_redirects = 3;
  const std::map<std::string, std::string, std::less<>> redirects{
      {"/circle/a", "/circle/b"}, {"/circle/b", "/circle/a"},  // both of them linked, too
      {"/into", "/circle/a"},     {"/self", "/self"},          {"/long/0", "/long/1"},     {"/long/1", "/long/2"},
      {"/long/2", "/long/3"},     {"/long/3", "/long/4"},      {"/short/0", "/short/1"},   {"/short/1", "/fine"},
      {"/nothing", ""},           {"/nonsense", "http://:x/"}, {"/to-gone", "/to-gone/2"}, {"/to-gone/2", "/gone"}};
  sim.transport.before_reply = [&](const SyntheticRequest& request, TimePoint) {
    if (request.target == "/") return page_with_links({"/list"});
    if (request.target == "/list") {
      return page_with_links(
          {"/circle/a", "/circle/b", "/into", "/self", "/long/0", "/short/0", "/nothing", "/nonsense", "/to-gone"});
    }
    SyntheticReply reply;
    if (request.target == "/gone") reply.status = 404;
    if (const auto found = redirects.find(request.target); found != redirects.end()) {
      reply.status = 302;
      reply.headers.emplace_back("Location", found->second);
    }
    return reply;
  };
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  const auto broken = broken_by_target(report);
  std::set<std::string> targets;
  for (const auto& [target, link] : broken) {
    targets.insert(target);
    EXPECT_EQ(link.referrer, "http://host0.test/list") << target;
  }
  EXPECT_EQ(targets, (std::set<std::string>{"/circle/a", "/circle/b", "/into", "/self", "/long/3", "/nothing",
                                            "/nonsense", "/gone"}));
  for (const char* circle : {"/circle/a", "/circle/b", "/into", "/self"}) {
    EXPECT_EQ(broken.at(circle).error, "redirects in a circle");
    EXPECT_EQ(broken.at(circle).status, 302);
  }
  EXPECT_EQ(broken.at("/long/3").error, "more than 3 redirects");
}

TEST(CrawlSim, NothingIsBrokenOfAHostWhoseRobotsFail) {
  Simulation sim({.hosts = 1, .pages = 5, .features = bit(WebFeature::robots_500)});
  const CrawlReport report = sim.run();
  EXPECT_EQ(report.broken_count, 0u);
  EXPECT_EQ(report.stats.not_asked, 1u);
  ASSERT_EQ(report.lost_hosts.size(), 1u);
  EXPECT_EQ(report.lost_hosts[0].error, "refused: robots.txt answered HTTP 500");
}

TEST(CrawlSim, AsksNothingBeforeRobotsTxtHoweverManyRequestsAHostMayGet) {
  Simulation sim({.hosts = 1, .pages = 1});
  sim.options.per_host = 8;
  sim.options.seeds.clear();
  for (const std::string& target : numbered("/page/", 8)) {
    sim.options.seeds.push_back(*Url::parse(sim.web.origins()[0] + target));
  }
  sim.transport.before_reply = [&](const SyntheticRequest&, TimePoint) {
    SyntheticReply reply;
    reply.latency = 50ms;
    return reply;
  };
  sim.run();
  ASSERT_EQ(sim.transport.log.size(), 9u);
  EXPECT_EQ(sim.transport.log[0].target, "/robots.txt");
  EXPECT_GE(sim.transport.log[1].at, sim.transport.log[0].ended);
}

// When the hundred good hosts were done, beside so many that never answer. All are seeds, the silent ones first or
// last.
double good_hosts_end(std::uint32_t silent, bool silent_first) {
  Simulation sim({.hosts = 100 + silent,
                  .pages = 400,
                  .links = 3,
                  .size = 0,
                  .latency = 100ms,
                  .features = bit(WebFeature::mute),
                  .evil_hosts = silent,
                  .cross_links = false});
  if (silent_first) std::ranges::reverse(sim.options.seeds);
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  EXPECT_EQ(report.stats.pages, 100u * 400u);
  EXPECT_EQ(report.lost_host_count, silent);
  TimePoint end{};
  for (const ServedRequest& request : sim.transport.log) end = std::max(end, request.ended);
  return to_seconds(end.time_since_epoch());
}

TEST(CrawlSim, ThreeHundredSilentHostsSlowAHundredGoodOnesByLessThanATenth) {
  const double calm = good_hosts_end(0, false);
  EXPECT_LE(good_hosts_end(300, false), calm * 1.1);
  EXPECT_LE(good_hosts_end(300, true), calm * 1.1);
}

TEST(CrawlSim, OneGoodHostIsNotStarvedByThreeHundredSilentOnes) {
  Simulation sim({.hosts = 301,
                  .pages = 500,
                  .latency = 10ms,
                  .features = bit(WebFeature::mute),
                  .evil_hosts = 300,
                  .cross_links = false});
  std::ranges::reverse(sim.options.seeds);
  sim.options.rate = 1000;
  sim.options.max_time = 5s;
  const CrawlReport report = sim.run();
  EXPECT_GE(report.stats.pages, 150u);  // the first three seconds it waits among the silent ones
}

// As silent, but only once robots.txt has been answered.
TEST(CrawlSim, HostsThatAnswerNothingButRobotsDoNotStarveTheOthers) {
  const auto end_of_good = [](std::uint32_t silent) {
    Simulation sim({.hosts = 100 + silent, .pages = 1});
    std::ranges::reverse(sim.options.seeds);
    sim.transport.before_reply = [&](const SyntheticRequest& request, TimePoint) {
      SyntheticReply reply = request.target == "/" ? page_with_links(numbered("/page/", 1000)) : SyntheticReply{};
      reply.latency = 50ms;
      if (request.host >= 100 && request.target != "/robots.txt") {
        reply.behaviour = SyntheticReply::Behaviour::silent;
      }
      return reply;
    };
    EXPECT_EQ(sim.run().stats.pages, 100u * 1001u);
    TimePoint end{};
    for (const ServedRequest& request : sim.transport.log) {
      if (request.host < 100) end = std::max(end, request.ended);
    }
    return to_seconds(end.time_since_epoch());
  };
  EXPECT_LE(end_of_good(300), end_of_good(0) * 1.1);
}

TEST(CrawlSim, StopsWhenNothingHappensForTooLong) {
  Simulation sim({.hosts = 1, .pages = 10, .features = 0});
  sim.options.max_idle = 30s;
  sim.transport.before_reply = [&](const SyntheticRequest& request, TimePoint) {
    SyntheticReply reply = sim.web.reply(request);
    if (request.target != "/robots.txt") {
      reply.status = 503;
      reply.headers.emplace_back("Retry-After", "3600");
    }
    return reply;
  };
  const CrawlReport report = sim.run();
  EXPECT_FALSE(report.finished);
  EXPECT_EQ(report.stopped_by, "idle");
}

TEST(CrawlSim, EndsCleanlyWhereverItIsCancelled) {
  // The number of turns after which the crawl is cancelled is the sweep.
  for (int turns = 0; turns < 400; turns += 3) {
    Simulation sim({.hosts = 3, .pages = 20, .latency = 10ms});
    Crawler crawler(sim.options, *sim.store, 1);
    ASSERT_TRUE(crawler.open(sim.backend.clock().wall_now()));
    auto body = [&]() -> Coro<void> {
      auto work = sim.loop.create_task(crawler.work(0, sim.transport, nullptr));
      for (int i = 0; i < turns && !work.done(); ++i) co_await sleep(1ms);
      work.cancel();
      try {
        co_await work;
      } catch (const CancelledError&) {
      }
    };
    sim.loop.run_until_complete(body());
    ASSERT_EQ(crawler.stats().in_flight, 0u);
  }
}

}  // namespace
}  // namespace argiope
