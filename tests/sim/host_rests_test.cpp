// What hosts have asked for holds over the runs of a crawl, in virtual time: rests, the limit of redirects, and what
// budgets count.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "crawl/urls/internal/url_explanation.hpp"
#include "support/simulated_web.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

// A few hosts, whose answers are given by URL; what is not is a page without links.
struct RestingSite {
  explicit RestingSite(std::vector<std::string> names = {"http://a.test"})
      : origins(std::move(names)), sim({.hosts = static_cast<std::uint32_t>(origins.size())}, origins) {
    sim.options.seeds = {*Url::parse(origins.front() + "/")};
    sim.options.autothrottle = false;
    sim.options.rate = 10'000;
    sim.transport.before_reply = [this](const SyntheticRequest& request, TimePoint) {
      const std::string url = origins[request.host] + std::string(request.target);
      if (const auto known = answers.find(url); known != answers.end()) return known->second;
      return SyntheticReply{.status = request.target == "/robots.txt" ? 404 : 200};
    };
  }
  static SyntheticReply page(const std::vector<std::string>& links) {
    SyntheticReply reply;
    for (const std::string& link : links) reply.body += "<a href=\"" + link + "\">x</a>";
    return reply;
  }
  static SyntheticReply away(int status, std::string name, std::string value) {
    SyntheticReply reply{.status = status};
    reply.headers.emplace_back(std::move(name), std::move(value));
    return reply;
  }
  // Of a run that ends after `time`: which URLs were asked, and when.
  std::vector<ServedRequest> run_for(Duration time) {
    sim.transport.log.clear();
    sim.options.max_time = time;
    report = sim.run();
    return sim.transport.log;
  }
  static std::vector<std::string> targets(const std::vector<ServedRequest>& log) {
    std::vector<std::string> found;
    for (const ServedRequest& one : log) found.push_back(one.target);
    return found;
  }
  std::string why(const std::string& url) {
    const auto told = explain_url(*sim.store, *Url::parse(url), sim.backend.clock().wall_now());
    return told && *told ? (*told)->what : "unknown";
  }

  std::vector<std::string> origins;
  std::map<std::string, SyntheticReply> answers;
  Simulation sim;
  CrawlReport report;
};

TEST(RestOfARun, RetryAfterHoldsForTheNextRun) {
  RestingSite site;
  site.answers["http://a.test/"] = RestingSite::page({"/busy", "/other"});
  site.answers["http://a.test/busy"] = RestingSite::away(503, "Retry-After", "600");
  const auto first = site.run_for(5s);
  EXPECT_THAT(RestingSite::targets(first), testing::ElementsAre("/robots.txt", "/", "/busy"));
  EXPECT_TRUE(site.run_for(5s).empty()) << "not even its robots.txt";
  EXPECT_THAT(site.why("http://a.test/other"), testing::HasSubstr("its Retry-After asks for that"));
  const auto later = site.run_for(700s);
  ASSERT_FALSE(later.empty());
  EXPECT_GE(later.front().at - first.back().ended, 600s);
  EXPECT_THAT(RestingSite::targets(later), testing::Contains("/other"));
}

TEST(RestOfARun, ThatRobotsTxtHasAskedForHoldsAlsoWhereTheHostWasGivenUp) {
  RestingSite site;
  site.sim.options.retries = 0;
  site.answers["http://a.test/robots.txt"] = RestingSite::away(429, "Retry-After", "3600");
  const auto first = site.run_for(10s);
  EXPECT_EQ(first.size(), 1u);
  EXPECT_TRUE(site.run_for(10s).empty());
  const auto later = site.run_for(2h);
  ASSERT_FALSE(later.empty());
  EXPECT_GE(later.front().at - first.back().ended, 1h);
}

TEST(RestOfARun, DelaysAreKeptBetweenTheLastRequestOfOneRunAndTheFirstOfTheNext) {
  for (const bool by_robots : {false, true}) {
    RestingSite site;
    site.answers["http://a.test/"] = RestingSite::page({"/1", "/2", "/3"});
    if (by_robots) {
      site.answers["http://a.test/robots.txt"].body = "User-agent: *\nCrawl-delay: 20\n";
    } else {
      site.sim.options.delay = 20s;
    }
    std::vector<ServedRequest> all;
    for (int run = 0; run < 8; ++run) std::ranges::copy(site.run_for(30s), std::back_inserter(all));
    ASSERT_GT(all.size(), 5u);
    for (std::size_t i = 1; i < all.size(); ++i) EXPECT_GE(all[i].at - all[i - 1].ended, 20s) << all[i].target;
  }
}

TEST(RestOfARun, BackOffOfAHostThatDoesNotAnswerGoesOn) {
  RestingSite site;
  std::vector<TimePoint> tries;
  site.sim.options.retries = 20;
  site.sim.transport.connect_fails = [&](std::uint32_t, TimePoint now) {
    tries.push_back(now);
    return std::optional(Errc::network);
  };
  site.run_for(20s);
  const std::size_t before = tries.size();
  ASSERT_GT(before, 2u);
  site.run_for(5min);
  ASSERT_GT(tries.size(), before);
  EXPECT_GE(tries[before] - tries[before - 1], 1s);
}

TEST(RestOfARun, OfTheCrawlsOwnPaceIsNoLongerThanTheNextRunsPace) {
  RestingSite site;
  site.answers["http://a.test/"] = RestingSite::page({"/1"});
  site.sim.options.delay = 1h;
  EXPECT_EQ(site.run_for(10s).size(), 1u);
  site.sim.options.delay = 1s;
  EXPECT_EQ(site.run_for(30s).size(), 3u);
}

// --- Crawl-delay ----------------------------------------------------------------------------------------------------

TEST(CrawlDelay, OfADayOrForEverCountsAsTheMostThatIsHeeded) {
  for (const char* delay : {"86400", "1e9", "inf", "99999999999999999999"}) {
    RestingSite site;
    site.answers["http://a.test/robots.txt"].body = fmt::format("User-agent: *\nCrawl-delay: {}\n", delay);
    site.answers["http://a.test/"] = RestingSite::page({"/1"});
    site.sim.options.max_crawl_delay = 2min;
    const auto log = site.run_for(1h);
    EXPECT_TRUE(site.report.finished) << delay;
    ASSERT_EQ(log.size(), 3u) << delay;
    EXPECT_GE(log[2].at - log[1].ended, 2min);
    EXPECT_LT(log[2].at - log[1].ended, 2min + 1s);
  }
}

TEST(CrawlDelay, TheHostThatHoldsUpTheRunIsNamed) {
  RestingSite site({"http://a.test", "http://slow.test"});
  site.answers["http://a.test/"] = RestingSite::page({"http://slow.test/x"});
  site.answers["http://slow.test/robots.txt"].body = "User-agent: *\nCrawl-delay: 86400\n";
  site.sim.options.check_links = true;
  CrawlStats seen;
  site.sim.loop.call_later(60s, [&] { seen = site.sim.running->stats(); });
  site.run_for(1h);
  EXPECT_EQ(seen.resting_site, "http://slow.test");
  EXPECT_GT(seen.resting_until, TimePoint{} + 4min);
  EXPECT_TRUE(site.report.finished);
}

// --- budgets --------------------------------------------------------------------------------------------------------

TEST(MaxPages, CountsEachRequestAlsoThoseThatAreAskedAgain) {
  RestingSite site;
  std::vector<std::string> links;
  for (int i = 0; i < 30; ++i) {
    links.push_back(fmt::format("/{}", i));
    site.answers["http://a.test" + links.back()] = SyntheticReply{.status = i % 3 == 0 ? 503 : i % 3 == 1 ? 429 : 200};
  }
  site.answers["http://a.test/"] = RestingSite::page(links);
  site.sim.options.max_pages = 10;
  const auto log = site.run_for(24h);
  EXPECT_EQ(site.report.stopped_by, "max_pages");
  EXPECT_LE(site.report.stats.fetched, 10u);
  EXPECT_LE(log.size(), 11u) << "and robots.txt";
  EXPECT_GT(site.report.stats.retries, 0u);
}

TEST(MaxPages, CountsRedirectsAndBothRequestsOfACheckedLink) {
  RestingSite site({"http://a.test", "http://b.test"});
  std::vector<std::string> links;
  for (int i = 0; i < 30; ++i) {
    links.push_back(fmt::format("/r{}", i));
    links.push_back(fmt::format("http://b.test/{}", i));
    site.answers["http://a.test/r" + std::to_string(i)] = RestingSite::away(302, "Location", fmt::format("/to{}", i));
    site.answers["http://b.test/" + std::to_string(i)] = SyntheticReply{.status = 405};  // to HEAD, so GET follows
  }
  site.answers["http://a.test/"] = RestingSite::page(links);
  site.sim.options.check_links = true;
  site.sim.options.max_pages = 12;
  auto log = site.run_for(24h);
  std::erase_if(log, [](const ServedRequest& one) { return one.target == "/robots.txt"; });
  EXPECT_LE(log.size(), 12u);
  EXPECT_GE(log.size(), 11u) << "HEAD is not begun where GET would find no room";
}

TEST(MaxPages, LetsRunsThatCheckLinksByBothMethodsGetOn) {
  for (const std::uint64_t pages : {1, 2, 5}) {
    RestingSite site({"http://a.test", "http://b.test", "http://c.test", "http://d.test"});
    for (int i = 1; i < 4; ++i)
      site.answers[site.origins[static_cast<std::size_t>(i)] + "/"] = SyntheticReply{.status = 405};
    site.answers["http://a.test/"] = RestingSite::page({"http://b.test/", "http://c.test/", "http://d.test/"});
    site.sim.options.check_links = true;
    site.sim.options.max_pages = pages;
    int runs = 0;
    for (site.report.finished = false; !site.report.finished && runs < 20; ++runs) site.run_for(1h);
    EXPECT_LT(runs, 10) << pages;
  }
}

TEST(MostRedirects, AreCountedOverRuns) {
  for (const std::uint64_t pages : {1, 3, 4}) {
    RestingSite site;
    for (int i = 0; i < 60; ++i) {
      site.answers[fmt::format("http://a.test/r{}", i)] =
          RestingSite::away(302, "Location", fmt::format("/r{}", i + 1));
    }
    site.sim.options.seeds = {*Url::parse("http://a.test/r0")};
    site.sim.options.max_pages = pages;
    std::vector<std::string> asked;
    for (int run = 0; run < 30; ++run) {
      for (const ServedRequest& one : site.run_for(1h)) {
        if (one.target != "/robots.txt") asked.push_back(one.target);
      }
    }
    EXPECT_EQ(asked.size(), site.sim.options.max_redirects + 1) << pages;
    const auto last = site.sim.store->get(static_cast<std::int64_t>(asked.size()));
    ASSERT_TRUE(last && *last);
    EXPECT_EQ((*last)->error, "more than 10 redirects");
  }
}

TEST(MostRedirects, AreCountedOverRunsAlsoWhereTheyGoBackWithCookies) {
  RestingSite site;
  int visits = 0;
  const auto usual = site.sim.transport.before_reply;
  site.sim.transport.before_reply = [&](const SyntheticRequest& request, TimePoint now) {
    if (request.target != "/") return usual(request, now);
    SyntheticReply reply = RestingSite::away(302, "Location", "/");
    reply.headers.emplace_back("Set-Cookie", fmt::format("n={}", ++visits));
    return reply;
  };
  site.sim.options.max_pages = 3;
  for (int run = 0; run < 20; ++run) site.run_for(1h);
  EXPECT_EQ(visits, 11);
}

// --- robots.txt elsewhere -------------------------------------------------------------------------------------------

struct Neighbours : RestingSite {
  static std::vector<std::string> names(int count) {
    std::vector<std::string> all{"http://main.test"};
    for (int i = 0; i < count; ++i) all.push_back(fmt::format("http://h{}.test", i));
    return all;
  }
  explicit Neighbours(int count) : RestingSite(names(count)) {
    std::vector<std::string> links;
    for (std::size_t i = 1; i < origins.size(); ++i) {
      links.push_back(origins[i] + "/");
      answers[origins[i] + "/robots.txt"] = away(301, "Location", fmt::format("http://main.test/robots.txt?{}", i));
    }
    answers["http://main.test/"] = page(links);
    for (std::size_t i = 1; i < origins.size(); ++i) {
      answers[fmt::format("http://main.test/robots.txt?{}", i)] =
          SyntheticReply{.body = "User-agent: *\nDisallow: /no\n", .latency = 50ms};
    }
    sim.options.rate.reset();
    sim.options.autothrottle = false;
    sim.options.whitelist = {"test"};
  }
  std::vector<ServedRequest> of_main(std::vector<ServedRequest> log) {
    std::erase_if(log, [](const ServedRequest& one) { return one.host != 0; });
    return log;
  }
};

TEST(RobotsElsewhere, IsAskedAtThePaceOfTheHostThatItIsOn) {
  Neighbours site(60);
  site.run_for(1h);
  EXPECT_TRUE(site.report.finished);
  EXPECT_EQ(site.report.stats.pages, 61u);
  const auto log = site.of_main(site.sim.transport.log);
  EXPECT_EQ(log.size(), 62u);
  for (std::size_t i = 1; i < log.size(); ++i) {
    EXPECT_GE(log[i].at, log[i - 1].ended) << "one at a time";
    EXPECT_GE(log[i].at - log[i - 1].at, 200ms) << "five a second";
  }
}

TEST(RobotsElsewhere, HoldsUpNeitherThatHostsPagesNorOtherHosts) {
  Neighbours site(150);
  std::vector<std::string> links;
  for (int i = 0; i < 20; ++i) links.push_back(fmt::format("/page{}", i));
  for (std::size_t i = 1; i + 1 < site.origins.size(); ++i) links.push_back(site.origins[i] + "/");
  links.push_back(site.origins.back() + "/");
  site.answers[site.origins.back() + "/robots.txt"] = SyntheticReply{.status = 404};
  site.answers["http://main.test/"] = RestingSite::page(links);
  site.sim.options.concurrency = 40;
  site.run_for(1h);
  EXPECT_TRUE(site.report.finished);
  TimePoint last_page{}, other{};
  for (const ServedRequest& one : site.sim.transport.log) {
    if (one.target.starts_with("/page")) last_page = one.at;
    if (one.host + 1 == site.origins.size()) other = one.at;
  }
  EXPECT_LT(last_page - TimePoint{}, 15s) << "of 150 robots files and 20 pages, five a second";
  EXPECT_LT(other - TimePoint{}, 25s) << "150 hosts ask in the meantime, 40 at a time, for longer than half a minute";
}

TEST(RobotsElsewhere, OfTwoHostsThatNameEachOtherEndsAndIsNoKnot) {
  RestingSite site({"http://a.test", "http://b.test"});
  site.answers["http://a.test/robots.txt"] = RestingSite::away(301, "Location", "http://b.test/robots.txt");
  site.answers["http://b.test/robots.txt"] = RestingSite::away(301, "Location", "http://a.test/robots.txt");
  site.answers["http://a.test/"] = RestingSite::page({"http://b.test/"});
  site.sim.options.seeds.push_back(*Url::parse("http://b.test/"));
  site.sim.options.rate.reset();
  site.run_for(1h);
  EXPECT_TRUE(site.report.finished);
  EXPECT_EQ(site.report.stats.pages, 2u) << "more than five redirects: nothing is forbidden";
}

TEST(RobotsElsewhere, OnTheSameHostKeepsItsPace) {
  RestingSite site;
  site.answers["http://a.test/robots.txt"] = RestingSite::away(301, "Location", "/r1");
  site.answers["http://a.test/r1"] = RestingSite::away(301, "Location", "/r2");
  site.answers["http://a.test/r2"].body = "User-agent: *\nDisallow: /no\n";
  site.answers["http://a.test/"] = RestingSite::page({"/no", "/yes"});
  site.sim.options.delay = 10s;
  const auto log = site.run_for(1h);
  EXPECT_THAT(RestingSite::targets(log), testing::ElementsAre("/robots.txt", "/r1", "/r2", "/", "/yes"));
  for (std::size_t i = 1; i < log.size(); ++i) EXPECT_GE(log[i].at - log[i - 1].ended, 10s);
}

TEST(RobotsElsewhere, OnAHostThatAsksForARestWaitsForIt) {
  RestingSite site({"http://a.test", "http://b.test"});
  site.answers["http://a.test/"] = RestingSite::page({"/busy", "http://b.test/"});
  site.answers["http://a.test/busy"] = RestingSite::away(503, "Retry-After", "300");
  site.answers["http://b.test/robots.txt"] = RestingSite::away(301, "Location", "http://a.test/r");
  site.answers["http://a.test/r"].body = "User-agent: *\nDisallow: /no\n";
  site.sim.options.retries = 0;
  site.sim.options.whitelist = {"test"};
  const auto log = site.run_for(1h);
  const auto at = [&](std::string_view target) { return std::ranges::find(log, target, &ServedRequest::target)->at; };
  EXPECT_TRUE(site.report.finished);
  EXPECT_GE(at("/r") - at("/busy"), 300s);
  EXPECT_EQ(std::ranges::count(log, "/robots.txt", &ServedRequest::target), 2)
      << "b.test is not asked again for where it is";
}

}  // namespace
}  // namespace argiope
