// Settings of hosts, and paces that follow latencies, in virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crawl/hosts/internal/autothrottle.hpp"
#include "support/simulated_web.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

// The times between the starts of two pages of a host.
std::vector<Duration> gaps(const Simulation& sim, std::uint32_t host) {
  std::vector<Duration> gaps;
  std::optional<TimePoint> last;
  for (const ServedRequest& request : sim.transport.log) {
    if (request.host != host || request.target == "/robots.txt") continue;
    if (last) gaps.push_back(request.at - *last);
    last = request.at;
  }
  return gaps;
}

// A web whose first host takes as long as `latency` says of its n-th page; the others 50 ms.
struct ThrottledWeb {
  explicit ThrottledWeb(std::function<Duration(int)> latency, std::uint32_t hosts = 2)
      : sim({.hosts = hosts, .pages = 60, .features = 0, .cross_links = false}) {
    sim.transport.before_reply = [this, latency](const SyntheticRequest& request, TimePoint) {
      SyntheticReply reply = sim.web.reply(request);
      if (request.target == "/robots.txt") return reply;
      reply.latency = request.host == 0 ? latency(page++) : 50ms;
      return reply;
    };
  }
  Simulation sim;
  int page = 0;
};

TEST(Autothrottled, ThePaceOfASlowPublicHostFollowsItAndThoseOfOthersDoNot) {
  // Quick at first, then slow, then quick again.
  ThrottledWeb web([](int page) { return page >= 20 && page < 30 ? 3s : Duration(50ms); });
  web.sim.run();
  const auto slow = gaps(web.sim, 0);
  ASSERT_GE(slow.size(), 55u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(slow[static_cast<std::size_t>(i)], 200ms) << i;
  // Half of the time it rests.
  for (int i = 20; i < 30; ++i) {
    EXPECT_EQ(std::chrono::round<std::chrono::milliseconds>(slow[static_cast<std::size_t>(i)]), 6s) << i;
  }
  for (std::size_t i = 31; i < slow.size(); ++i) EXPECT_LE(slow[i], slow[i - 1]) << i;
  EXPECT_GT(slow[31], 1s);
  EXPECT_EQ(slow.back(), 200ms);
  for (const Duration gap : gaps(web.sim, 1)) EXPECT_EQ(gap, 200ms);
}

TEST(Autothrottled, ItIsOffWithARateWithADelayWhereItIsNotWantedAndOnLoopback) {
  const auto longest = [](auto&& change) {
    ThrottledWeb web([](int) { return 2s; }, 1);
    change(web.sim.options);
    web.sim.run();
    return std::ranges::max(gaps(web.sim, 0));
  };
  EXPECT_EQ(longest([](CrawlOptions&) {}), 4s);
  EXPECT_EQ(longest([](CrawlOptions& options) { options.rate = 1; }), 2s);
  EXPECT_EQ(longest([](CrawlOptions& options) { options.delay = 100ms; }), 2100ms);
  EXPECT_EQ(longest([](CrawlOptions& options) { options.autothrottle = false; }), 2s);
  EXPECT_EQ(longest([](CrawlOptions& options) { options.autothrottle_target = 1; }), 2s);
  EXPECT_EQ(longest([](CrawlOptions& options) {
              options.rate = 0.1;
              options.autothrottle = true;
            }),
            10s);
  const auto of_settings = [](auto&& change) {
    return [change](CrawlOptions& options) {
      options.hosts.resize(1);
      options.hosts[0].match = {"*.test"};
      change(options.hosts[0]);
    };
  };
  EXPECT_EQ(longest(of_settings([](HostSettings& host) { host.rate = 5; })), 2s);
  EXPECT_EQ(longest(of_settings([](HostSettings& host) { host.autothrottle = false; })), 2s);
  EXPECT_EQ(longest(of_settings([](HostSettings& host) { host.autothrottle_target = 0.25; })), 8s);

  Simulation local({.hosts = 1, .pages = 30, .latency = 2s, .features = 0}, {"http://127.0.0.1:8080"});
  local.options.per_host = 1;
  local.run();
  for (const Duration gap : gaps(local, 0)) EXPECT_EQ(gap, 2s);
  Simulation private_one({.hosts = 1, .pages = 30, .latency = 2s, .features = 0}, {"http://10.1.2.3"});
  private_one.run();
  for (const Duration gap : gaps(private_one, 0)) EXPECT_EQ(gap, 2s);
}

TEST(Autothrottled, SeveralRequestsUnderWayWhereThatIsTheTarget) {
  ThrottledWeb web([](int) { return 2s; }, 1);
  web.sim.options.autothrottle_target = 4;
  web.sim.run();
  const auto slow = gaps(web.sim, 0);
  ASSERT_GT(slow.size(), 30u);
  // Two a second are four under way; the first page is asked for alone.
  for (std::size_t i = 10; i < slow.size(); ++i) EXPECT_EQ(slow[i], 500ms) << i;
}

TEST(Autothrottled, ErrorsThatComeQuicklyDoNotMakeItFaster) {
  ThrottledWeb web([](int page) { return page < 5 ? 2s : Duration(10ms); }, 1);
  auto slow_first = web.sim.transport.before_reply;
  web.sim.transport.before_reply = [&, slow_first](const SyntheticRequest& request, TimePoint now) {
    SyntheticReply reply = slow_first(request, now);
    if (web.page > 5 && request.target != "/robots.txt") reply.status = 404;
    return reply;
  };
  web.sim.run();
  const auto slow = gaps(web.sim, 0);
  ASSERT_GT(slow.size(), 20u);
  for (std::size_t i = 1; i < slow.size(); ++i) EXPECT_EQ(slow[i], 4s) << i;
}

TEST(Autothrottled, CrawlDelayAndRetryAfterKeepTheirPrecedence) {
  Simulation sim({.hosts = 1, .pages = 20, .latency = 1s, .features = bit(WebFeature::robots), .crawl_delay = 7s});
  sim.run();
  for (const Duration gap : gaps(sim, 0)) EXPECT_GE(gap, 8s);
  ThrottledWeb web([](int) { return 1s; }, 1);
  auto usual = web.sim.transport.before_reply;
  bool refused = false;
  TimePoint not_before{};
  web.sim.transport.before_reply = [&, usual](const SyntheticRequest& request, TimePoint now) {
    EXPECT_GE(now, not_before);
    SyntheticReply reply = usual(request, now);
    if (web.page == 10 && !std::exchange(refused, true)) {
      reply.status = 429;
      reply.headers.emplace_back("Retry-After", "100");
      not_before = now + 100s;
    }
    return reply;
  };
  web.sim.run();
  EXPECT_TRUE(refused);
}

TEST(HostSettingsSim, EachHostIsAskedAsItsSettingsSay) {
  Simulation sim({.hosts = 4, .pages = 30, .latency = 20ms, .features = bit(WebFeature::robots)});
  sim.options.hosts.resize(4);
  sim.options.hosts[0].match = {"host0.test"};
  sim.options.hosts[0].delay = 3s;
  sim.options.hosts[1].match = {"host1.test"};
  sim.options.hosts[1].rate = 20;
  sim.options.hosts[1].robots = false;
  sim.options.hosts[2].match = {"http://host2.test"};
  sim.options.hosts[2].max_pages = 5;
  sim.options.hosts[3].match = {"*"};
  sim.options.hosts[3].rate = 1;
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  for (const Duration gap : gaps(sim, 0)) EXPECT_EQ(gap, 3020ms);
  for (const Duration gap : gaps(sim, 1)) EXPECT_LE(gap, 100ms);
  EXPECT_EQ(gaps(sim, 2).size(), 4u);
  for (const Duration gap : gaps(sim, 3)) EXPECT_EQ(gap, 1s);
  const auto asks_robots = [&](std::uint32_t host) {
    return std::ranges::any_of(sim.transport.log, [&](const ServedRequest& request) {
      return request.host == host && request.target == "/robots.txt";
    });
  };
  EXPECT_TRUE(asks_robots(0));
  EXPECT_FALSE(asks_robots(1));
  EXPECT_EQ(report.left_out.at("pages_per_host") > 0, true);

  // A run with a larger limit takes up the rest of that host, and nothing else of the others.
  sim.options.hosts[2].max_pages = 1000;
  const std::size_t before = sim.transport.log.size();
  sim.run();
  ASSERT_GT(sim.transport.log.size(), before + 20);
  for (std::size_t i = before; i < sim.transport.log.size(); ++i) {
    const ServedRequest& request = sim.transport.log[i];
    if (request.target != "/robots.txt") EXPECT_TRUE(request.host == 2 || request.status >= 400) << request.target;
  }
}

TEST(HostSettingsSim, ADepthAndPatternsOfOneHostAreItsOwn) {
  Simulation sim({.hosts = 3, .pages = 200, .links = 2, .features = 0, .cross_links = false});
  sim.options.hosts.resize(2);
  sim.options.hosts[0].match = {"host0.test"};
  sim.options.hosts[0].max_depth = 1;
  sim.options.hosts[1].match = {"host1.test"};
  sim.options.hosts[1].exclude = {"/**"};
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  std::map<std::uint32_t, std::size_t> pages;
  for (const ServedRequest& request : sim.transport.log) pages[request.host] += request.target != "/robots.txt";
  EXPECT_EQ(pages[1], 1u);  // the URL that was given
  EXPECT_GE(pages[2], 200u);
  ASSERT_TRUE(sim.store->scan(1, [&](const UrlRecord& record) {
    if (record.url.starts_with("http://host0.test/") && record.state == UrlState::done)
      EXPECT_LE(record.depth, 1u) << record.url;
    return true;
  }));
  // With the limit gone the whole host is crawled, as if there had been none.
  sim.options.hosts[0].max_depth.reset();
  sim.options.hosts[1].exclude.reset();
  sim.run();
  pages.clear();
  for (const ServedRequest& request : sim.transport.log) pages[request.host] += request.target != "/robots.txt";
  EXPECT_EQ(pages[0], pages[2]);
  EXPECT_EQ(pages[1], pages[2]);
}

TEST(HostSettingsSim, TimeoutsAndRetriesAreTheirs) {
  Simulation sim({.hosts = 2, .pages = 3, .features = 0, .cross_links = false});
  sim.options.hosts.resize(1);
  sim.options.hosts[0].match = {"host0.test"};
  sim.options.hosts[0].timeout = 4s;
  sim.options.hosts[0].retries = 0;
  sim.transport.before_reply = [&](const SyntheticRequest& request, TimePoint) {
    SyntheticReply reply = sim.web.reply(request);
    if (request.target != "/robots.txt" && request.target != "/") reply.latency = 5s;
    return reply;
  };
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.failures.contains("timeout"));
  std::map<std::pair<std::uint32_t, std::string>, int> times;
  for (const ServedRequest& request : sim.transport.log) ++times[{request.host, request.target}];
  for (const auto& [request, count] : times) EXPECT_EQ(count, 1) << request.second;
  ASSERT_TRUE(sim.store->scan(1, [&](const UrlRecord& record) {
    const bool is_impatient = record.url.starts_with("http://host0.test/") && record.url != "http://host0.test/";
    EXPECT_EQ(record.state, is_impatient ? UrlState::failed : UrlState::done) << record.url;
    return true;
  }));
}

}  // namespace
}  // namespace argiope
