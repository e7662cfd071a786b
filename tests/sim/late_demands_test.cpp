// A new demand on old data: runs with other options on one store, held against one fresh run with those options.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "crawl/check/internal/link_check.hpp"
#include "crawl/report/internal/graph_export.hpp"
#include "crawl/report/internal/site_report.hpp"
#include "support/simulated_web.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

// Keeps what it is shown of pages, as an archive would.
class DemandingSink final : public CrawlSink {
 public:
  Result<void> take(const Exchange& exchange) override {
    if (exchange.kind == ExchangeKind::page && exchange.response.status == 200)
      bodies[exchange.request.url.href()] = exchange.response.body;
    return {};
  }
  std::string demand() const override { return "archive/1"; }
  bool begins_anew() const noexcept override { return bodies.empty(); }

  std::map<std::string, std::string> bodies;
};

// Two pages with a fault of each kind, whose tag changes with their text.
struct LateSite {
  LateSite() {
    sim.options.seeds = {*Url::parse("http://a.test/")};
    sim.options.rate = 10'000;
    sim.transport.before_reply = [this](const SyntheticRequest& request, TimePoint) { return answer(request); };
  }

  SyntheticReply answer(const SyntheticRequest& request) {
    SyntheticReply reply;
    reply.content_type = "text/html";
    const std::string path(request.target);
    if (path == "/robots.txt") return reply;
    asked.push_back(path);
    if (fails > 0 && path == "/b") {
      --fails;
      reply.status = 503;
    } else if (path == "/" || path == "/b") {
      const std::string tag = "\"" + path + std::to_string(edition) + "\"";
      reply.headers.emplace_back("ETag", tag);
      if (request.if_none_match == tag) {
        reply.status = 304;
        ++unchanged;
      } else {
        reply.body = body_of(path);
      }
    } else {
      reply.status = 404;
    }
    return reply;
  }
  std::string body_of(const std::string& path) const {
    return "<title>" + path + std::to_string(edition) + "</title>" +
           (path == "/b" && hides ? "<meta name=robots content=noindex>" : "") +
           "<a href=/b>b</a> <a href='/#nope'>n</a> <a href='mailto:bad@@'>m</a> <img src=/gone" +
           std::to_string(edition) + ".png>";
  }

  CrawlReport run() {
    asked.clear();
    unchanged = 0;
    report = sim.run();
    sim.backend.manual_clock().advance(1s);
    return report;
  }
  void check() {
    CrawlOptions& options = sim.options;
    options.check_links = options.check_assets = options.check_fragments = options.keep_links = true;
  }
  void check_no_more() {
    CrawlOptions& options = sim.options;
    options.check_links = options.check_assets = options.check_fragments = options.keep_links = false;
  }
  // Each finding as kind and URL.
  std::set<std::pair<std::string, std::string>> findings() {
    result = *check_links(*sim.store, {});
    std::set<std::pair<std::string, std::string>> found;
    for (const LinkFinding& finding : result.findings) found.emplace(to_string(finding.kind), finding.url);
    return found;
  }
  std::set<std::string> whole() const { return {asked.begin(), asked.end()}; }

  Simulation sim{{.hosts = 1, .pages = 1}, {"http://a.test"}};
  int edition = 1;
  int fails = 0;  // of /b
  bool hides = false;
  std::vector<std::string> asked;
  int unchanged = 0;
  CrawlReport report;
  CheckResult result;
};

TEST(LateDemands, ACheckOfAKnownSiteFindsWhatAFreshOneFinds) {
  LateSite fresh;
  fresh.check();
  fresh.run();
  const auto truth = fresh.findings();
  EXPECT_EQ(truth.size(), 3u) << "broken, fragment, mail";
  for (const bool asks_all : {false, true}) {
    LateSite site;
    site.run();
    EXPECT_NE(site.findings(), truth);
    EXPECT_EQ(site.result.unread, 2u);
    EXPECT_FALSE(site.result.is_good()) << "what is not known is not good";
    site.check();
    if (asks_all) site.sim.options.age = 0s;
    site.run();
    EXPECT_EQ(site.unchanged, 0);
    EXPECT_EQ(site.findings(), truth);
    EXPECT_EQ(site.result.unread, 0u);
    EXPECT_EQ(site.report.asked_for_outputs, asks_all ? 0u : 2u);
    site.sim.options.age.reset();
    site.run();
    EXPECT_EQ(site.asked, std::vector<std::string>{}) << "all is known now";
    site.sim.options.age = 0s;
    site.run();
    EXPECT_EQ(site.unchanged, 2) << "and asked whether it has changed alone";
    EXPECT_EQ(site.findings(), truth);
  }
}

TEST(LateDemands, WhatARunWithoutThemHasAskedIsAskedAgain) {
  LateSite site;
  site.check();
  site.run();
  site.check_no_more();
  site.edition = 2;
  site.sim.options.age = 0s;
  site.run();
  site.findings();
  EXPECT_EQ(site.result.unread, 2u) << "the links are those of the first edition";
  site.check();
  site.sim.options.age.reset();
  site.run();
  const auto found = site.findings();
  EXPECT_TRUE(found.contains({"broken", "http://a.test/gone2.png"}));
  EXPECT_EQ(site.result.unread, 0u);
}

TEST(LateDemands, APageThatMayBeHiddenIsInNoSitemapUntilItIsKnown) {
  const TemporaryFolder folder;
  LateSite site;
  site.hides = true;
  site.run();
  SitemapCount count = *write_sitemap(*site.sim.store, folder.file("map.xml"));
  EXPECT_EQ(count.urls, 0u);
  EXPECT_EQ(count.unknown, 2u);
  EXPECT_EQ(gather_site_report(*site.sim.store, {})->unseen, 2u);
  site.sim.options.keep_facts = true;
  site.run();
  count = *write_sitemap(*site.sim.store, folder.file("map.xml"));
  EXPECT_EQ(count.urls, 1u);
  EXPECT_EQ(count.unknown, 0u);
  // Shown again, which a run has met that did not look.
  site.sim.options.keep_facts = false;
  site.hides = false;
  site.edition = 2;
  site.sim.options.age = 0s;
  site.run();
  EXPECT_EQ(write_sitemap(*site.sim.store, folder.file("map.xml"))->unknown, 2u);
  site.sim.options.keep_facts = true;
  site.run();
  EXPECT_EQ(write_sitemap(*site.sim.store, folder.file("map.xml"))->urls, 2u);
}

TEST(LateDemands, ASinkThatIsNewIsShownPagesWholeAndToldOfWhatItMisses) {
  LateSite site;
  site.run();
  const auto sink = std::make_shared<DemandingSink>();
  site.sim.options.sinks = {sink};
  site.run();
  EXPECT_EQ(site.asked, std::vector<std::string>{}) << "it is not worth a crawl of its own";
  EXPECT_EQ(site.report.unseen, (std::map<std::string, std::uint64_t>{{"archive", 2}}));
  site.sim.options.age = 0s;
  site.run();
  EXPECT_EQ(site.unchanged, 0);
  EXPECT_EQ(sink->bodies.size(), 2u);
  EXPECT_TRUE(site.report.unseen.empty());
  site.run();
  EXPECT_EQ(site.unchanged, 2);
  // Another edition, which the sink did not see.
  site.edition = 2;
  site.sim.options.sinks.clear();
  site.run();
  EXPECT_EQ(site.unchanged, 0);
  site.sim.options.sinks = {sink};
  site.run();
  EXPECT_EQ(site.unchanged, 0);
  EXPECT_EQ(sink->bodies.at("http://a.test/b"), site.body_of("/b"));
  // What it had is gone.
  sink->bodies.clear();
  site.run();
  EXPECT_EQ(site.unchanged, 0);
  EXPECT_EQ(sink->bodies.size(), 2u);
}

TEST(LateDemands, AnAttemptThatFailsMakesNoConditionalRequestOfTheNext) {
  for (const bool is_stopped : {false, true}) {
    LateSite site;
    site.run();
    site.check();
    site.fails = 1;
    if (is_stopped) site.sim.options.max_time = 200ms;
    site.run();
    if (is_stopped) {
      EXPECT_FALSE(site.report.finished);
      site.sim.options.max_time.reset();
      site.run();
    }
    EXPECT_EQ(site.unchanged, 0);
    site.findings();
    EXPECT_EQ(site.result.unread, 0u);
    EXPECT_EQ(site.result.counts[static_cast<std::size_t>(FindingKind::fragment)], 1u);
  }
}

TEST(LateDemands, AHostThatIsDownLeavesPagesAsTheyAreAndUnknown) {
  LateSite site;
  site.run();
  site.check();
  site.sim.transport.connect_fails = [](std::uint32_t, TimePoint) { return std::optional(Errc::network); };
  site.run();
  site.findings();
  EXPECT_EQ(site.result.unread, 1u) << "one of its URLs has failed with it";
  EXPECT_FALSE(site.result.is_good());
  site.sim.transport.connect_fails = nullptr;
  site.run();
  site.findings();
  EXPECT_EQ(site.result.unread, 0u);
}

TEST(LateDemands, AStoreThatNoCrawlHasWrittenIsJudgedByWhatItHas) {
  const auto store = std::move(*open_url_store(":memory:"));
  UrlBatch batch;
  batch.discovered.push_back({.url_id = 1, .url = "http://a.test/"});
  UrlOutcome outcome;
  outcome.url_id = 1;
  outcome.status_code = 200;
  outcome.content_type = "text/html";
  batch.outcomes.push_back(outcome);
  store->submit(std::move(batch));
  EXPECT_TRUE(check_links(*store, {})->is_good());
}

}  // namespace
}  // namespace argiope
