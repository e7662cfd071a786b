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
  const auto others_end = [](std::uint32_t features) {
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
