// Crawls that read sitemaps and feeds, in virtual time: where they are looked for, what is followed, and what is asked
// again.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "crawl/check/internal/link_check.hpp"
#include "crawl/report/internal/site_report.hpp"
#include "crawl/urls/internal/url_explanation.hpp"
#include "sim/checked_site.hpp"
#include "support/deflate.hpp"

namespace argiope {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::UnorderedElementsAre;

constexpr const char* kHost = "http://host0.test";

struct ListedSite : CheckedSite {
  ListedSite() {
    sim.options.check_links = sim.options.check_assets = sim.options.check_fragments = false;
    sim.options.keep_links = sim.options.keep_facts = false;
    sim.options.sitemaps = true;
    page("/", "<a href=/a>a</a>");
    page("/a", "");
  }
  void robots(const std::string& text, std::uint32_t host = 0) { file("/robots.txt", "text/plain", text, host); }
  void sitemap(const std::string& target, const std::vector<std::string>& urls, std::uint32_t host = 0) {
    std::string xml = "<urlset>";
    for (const std::string& url : urls) xml += "<url><loc>" + url + "</loc></url>";
    file(target, "application/xml", xml + "</urlset>", host);
  }
  std::set<std::string> asked_once() const {
    const auto all = asked();
    const std::set<std::string> each(all.begin(), all.end());
    EXPECT_EQ(each.size(), all.size()) << "something was asked twice";
    return each;
  }
};

TEST(Sitemaps, AreThoseThatRobotsTxtNames) {
  ListedSite site;
  site.robots("User-agent: *\nDisallow: /no\nSitemap: http://host0.test/s/one.xml\nSitemap: /two.txt\n");
  site.sitemap("/s/one.xml", {std::string(kHost) + "/b", std::string(kHost) + "/no"});
  site.file("/two.txt", "text/plain", "http://host0.test/c\nhttp://host0.test/a\n");
  for (const char* page : {"/b", "/c", "/no"}) site.page(page, "");
  const CrawlReport report = site.run();
  EXPECT_THAT(site.asked_once(),
              UnorderedElementsAre("GET 0/", "GET 0/s/one.xml", "GET 0/two.txt", "GET 0/a", "GET 0/b", "GET 0/c"));
  EXPECT_TRUE(report.finished);
  EXPECT_EQ(report.sitemaps.files, 2u);
  EXPECT_EQ(report.sitemaps.links, 4u);
  EXPECT_EQ(report.stats.pages, 4u);
  EXPECT_EQ(site.record("http://host0.test/s/one.xml").reason, UrlReason::sitemap);
  EXPECT_EQ(site.record("http://host0.test/s/one.xml").state, UrlState::done);
  EXPECT_EQ(site.record("http://host0.test/b").depth, 0u);
  EXPECT_EQ(report.broken_count, 0u);
}

TEST(Sitemaps, ThatListAUrlDoNotRedirectThere) {
  for (const bool keeps_links : {false, true}) {
    ListedSite site;
    site.sim.options.keep_links = keeps_links;
    site.sitemap("/sitemap.xml", {"http://host0.test/b"});
    site.page("/b", "");
    site.run();
    const auto told =
        explain_url(*site.sim.store, *Url::parse("http://host0.test/b"), site.sim.backend.clock().wall_now());
    ASSERT_TRUE(told && *told);
    ASSERT_EQ((*told)->linked_from.size(), 1u);
    EXPECT_EQ((*told)->linked_from.front().url, "http://host0.test/sitemap.xml");
    EXPECT_FALSE((*told)->linked_from.front().redirects);
  }
}

TEST(Sitemaps, AreLookedForAtTheUsualPlaces) {
  ListedSite site;
  site.sitemap("/sitemap_index.xml", {"http://host0.test/b"});
  site.page("/b", "");
  const CrawlReport report = site.run();
  EXPECT_THAT(site.asked_once(), UnorderedElementsAre("HEAD 0/sitemap.xml", "HEAD 0/sitemap_index.xml", "GET 0/",
                                                      "GET 0/sitemap_index.xml", "GET 0/a", "GET 0/b"));
  EXPECT_EQ(report.broken_count, 0u) << "what was only guessed is no broken link";
  EXPECT_EQ(report.sitemaps.unreadable, 0u);
}

TEST(Sitemaps, AreNoPagesOfHtml) {
  ListedSite site;
  site.page("/sitemap.xml", "<html>not found, says nobody</html>");
  site.run();
  EXPECT_THAT(site.asked_once(),
              UnorderedElementsAre("HEAD 0/sitemap.xml", "HEAD 0/sitemap_index.xml", "GET 0/", "GET 0/a"));
}

TEST(Sitemaps, AreNotLookedForUnlessAsked) {
  ListedSite site;
  site.sim.options.sitemaps = false;
  site.robots("Sitemap: /s.xml\n");
  site.sitemap("/s.xml", {"http://host0.test/b"});
  site.run();
  EXPECT_THAT(site.asked_once(), UnorderedElementsAre("GET 0/", "GET 0/a"));
}

TEST(Sitemaps, OfIndexesAreReadToABoundedDepthAndOnce) {
  ListedSite site;
  const auto index = [&](int number, const std::string& more) {
    site.file("/i" + std::to_string(number), "text/xml",
              "<sitemapindex>" + more + "<sitemap><loc>http://host0.test/i0</loc></sitemap></sitemapindex>");
  };
  site.robots("Sitemap: /i0\n");
  for (int i = 0; i < 6; ++i)
    index(i, "<sitemap><loc>http://host0.test/i" + std::to_string(i + 1) + "</loc></sitemap>");
  const CrawlReport report = site.run();
  EXPECT_THAT(site.asked_once(),
              UnorderedElementsAre("GET 0/", "GET 0/a", "GET 0/i0", "GET 0/i1", "GET 0/i2", "GET 0/i3"));
  EXPECT_EQ(report.sitemaps.cut, 1u);
  EXPECT_EQ(site.record("http://host0.test/i3").error, "read in part: 1 sitemap below it left out");
}

TEST(Sitemaps, MayRedirectBePackedAndLieElsewhere) {
  ListedSite site;
  site.robots("Sitemap: http://host1.test/maps\n");
  site.redirect("/maps", 301, "/maps/all.gz", 1);
  site.file("/maps/all.gz", "text/html",
            gzip("<urlset><url><loc>http://host0.test/b#x</loc></url><url><loc>http://host1.test/foreign</loc></url></"
                 "urlset>"),
            1);
  site.page("/b", "");
  const CrawlReport report = site.run();
  EXPECT_THAT(site.asked_once(),
              UnorderedElementsAre("GET 0/", "GET 0/a", "GET 1/maps", "GET 1/maps/all.gz", "GET 0/b"));
  EXPECT_EQ(site.record("http://host1.test/foreign").reason, UrlReason::off_scope);
  EXPECT_EQ(report.sitemaps.files, 1u);
}

TEST(Sitemaps, MayBeGivenOutright) {
  ListedSite site;
  site.sim.options.sitemaps = false;
  site.sim.options.sitemap_urls = {*Url::parse("http://host0.test/list.txt")};
  site.file("/list.txt", "text/plain", "http://host0.test/b");
  site.page("/b", "");
  site.run();
  EXPECT_THAT(site.asked_once(), UnorderedElementsAre("GET 0/", "GET 0/a", "GET 0/list.txt", "GET 0/b"));
  site.run();
  EXPECT_THAT(site.asked_once(), UnorderedElementsAre("GET 0/list.txt")) << "a later run reads it again";
}

TEST(Sitemaps, ThatFailAreToldAndTriedAgain) {
  ListedSite site;
  site.robots("Sitemap: /gone.xml\nSitemap: /odd.xml\n");
  site.file("/odd.xml", "application/xml", "<html></html>");
  CrawlReport report = site.run();
  EXPECT_EQ(report.sitemaps.unreadable, 2u);
  EXPECT_EQ(site.record("http://host0.test/odd.xml").error, "neither sitemap nor feed");
  EXPECT_EQ(report.broken_count, 1u) << "robots.txt names what is not there";
  site.sitemap("/gone.xml", {"http://host0.test/a"});
  report = site.run();
  EXPECT_EQ(report.sitemaps.files, 1u);
  EXPECT_EQ(report.broken_count, 0u);
}

TEST(Sitemaps, AreReadWhereALinkLeadsToThemToo) {
  ListedSite site;
  site.sim.options.seeds.push_back(*Url::parse("http://host1.test/"));
  site.page("/", "<a href=http://host1.test/s.xml>the map of another host</a>");
  site.page("/", "", 1);
  site.robots("Sitemap: /s.xml\n", 1);
  site.sitemap("/s.xml", {"http://host1.test/b"}, 1);
  site.page("/b", "", 1);
  const CrawlReport report = site.run();
  EXPECT_TRUE(report.finished);
  EXPECT_THAT(site.asked(), Contains("GET 1/b"));
  EXPECT_EQ(std::ranges::count(site.asked(), "GET 1/s.xml"), 1);
}

TEST(Sitemaps, ThatAnEarlierRunTookForPagesAreReadNow) {
  ListedSite site;
  site.sim.options.sitemaps = false;
  site.page("/", "<a href=/s.xml>map</a>");
  site.robots("Sitemap: /s.xml\n");
  site.sitemap("/s.xml", {"http://host0.test/b"});
  site.page("/b", "");
  site.run();
  EXPECT_THAT(site.asked_once(), UnorderedElementsAre("GET 0/", "GET 0/s.xml"));
  site.sim.options.sitemaps = true;
  const CrawlReport report = site.run();
  EXPECT_TRUE(report.finished);
  EXPECT_THAT(site.asked_once(), UnorderedElementsAre("GET 0/", "GET 0/s.xml", "GET 0/b"))
      << "the seed is asked, so that its host is";
  EXPECT_EQ(site.record("http://host0.test/s.xml").reason, UrlReason::sitemap);
}

// Dates are those of the virtual clock, which begins at the epoch.
TEST(Sitemaps, SayWhatToAskAgain) {
  ListedSite site;
  const auto list = [&](const std::string& a, const std::string& b) {
    site.file("/sitemap.xml", "application/xml",
              "<urlset><url><loc>http://host0.test/a</loc><lastmod>" + a +
                  "</lastmod></url><url><loc>http://host0.test/b</loc><lastmod>" + b + "</lastmod></url></urlset>");
  };
  site.page("/b", "");
  list("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z");
  site.run();
  EXPECT_THAT(site.asked(), IsSupersetOf({"GET 0/a", "GET 0/b"}));
  site.run();
  EXPECT_THAT(site.asked_once(), UnorderedElementsAre("GET 0/", "GET 0/sitemap.xml")) << "nothing has changed";
  list("1970-01-01T00:00:00Z", "2040-01-01");
  CrawlReport report = site.run();
  EXPECT_THAT(site.asked_once(), UnorderedElementsAre("GET 0/", "GET 0/sitemap.xml", "GET 0/b"));
  EXPECT_EQ(report.sitemaps.news, 1u);
  report = site.run();
  EXPECT_THAT(site.asked_once(), UnorderedElementsAre("GET 0/", "GET 0/sitemap.xml")) << "the same sitemap is no news";
  EXPECT_EQ(report.sitemaps.unchanged, 1u);
}

TEST(Sitemaps, ThatWereReadArentForgottenByAStop) {
  ListedSite site;
  site.page("/b", "");
  site.sitemap("/sitemap.xml", {"http://host0.test/b"});
  site.run();
  site.file("/sitemap.xml", "application/xml",
            "<urlset><url><loc>http://host0.test/b</loc><lastmod>2040-01-01</lastmod></url></urlset>");
  const auto answer = site.sim.transport.before_reply;
  site.sim.transport.before_reply = [&](const SyntheticRequest& request, TimePoint now) {
    SyntheticReply reply = answer(request, now);
    if (request.target == "/b") reply.latency = std::chrono::seconds{20};
    return reply;
  };
  site.sim.options.max_time = std::chrono::seconds{5};
  site.sim.options.drain_limit = std::chrono::milliseconds{1};
  EXPECT_FALSE(site.run().finished);
  EXPECT_EQ(site.record("http://host0.test/b").state, UrlState::queued);
  EXPECT_EQ(site.record("http://host0.test/b").status_code, 200) << "what is known of it stays";
  site.sim.options.max_time.reset();
  site.sim.transport.before_reply = answer;
  site.sim.options.sitemaps = false;
  EXPECT_TRUE(site.run().finished);
  EXPECT_THAT(site.asked_once(), UnorderedElementsAre("GET 0/b"));
}

TEST(Feeds, OfPagesAreRead) {
  ListedSite site;
  site.sim.options.sitemaps = false;
  site.sim.options.feeds = true;
  site.page("/",
            "<link rel=alternate type='application/rss+xml' href=/feed><link rel=alternate type=application/atom+xml "
            "href='http://host1.test/feed'>"
            "<link rel=alternate hreflang=de href=/de>");
  site.file("/feed", "text/xml", "<rss><channel><item><link>/b</link></item></channel></rss>");
  site.page("/b", "");
  site.page("/de", "");
  const CrawlReport report = site.run();
  EXPECT_THAT(site.asked_once(), UnorderedElementsAre("GET 0/", "GET 0/feed", "GET 0/b", "GET 0/de"));
  EXPECT_EQ(site.record("http://host0.test/feed").reason, UrlReason::sitemap);
  EXPECT_EQ(site.record("http://host0.test/b").depth, 1u);
  EXPECT_EQ(report.sitemaps.files, 1u);
}

TEST(Sitemaps, ObeyTheScopeAndTheDepth) {
  ListedSite site;
  site.sim.options.max_depth = 0;
  site.sim.options.exclude = {"/b*"};
  site.sitemap("/sitemap.xml", {"http://host0.test/b1", "http://host0.test/c"});
  site.page("/c", "<a href=/d>d</a>");
  site.run();
  EXPECT_THAT(site.asked_once(), UnorderedElementsAre("HEAD 0/sitemap.xml", "GET 0/", "GET 0/sitemap.xml", "GET 0/c"));
  EXPECT_EQ(site.record("http://host0.test/b1").reason, UrlReason::exclude);
}

TEST(Sitemaps, AreHeldAgainstTheSiteInTheReport) {
  ListedSite site;
  site.sim.options.keep_links = site.sim.options.keep_facts = true;
  const std::string host = kHost;
  site.sitemap("/sitemap.xml",
               {host + "/", host + "/a", host + "/orphan", host + "/moved", host + "/gone", host + "/hidden"});
  site.page("/", "<a href=/a>a</a><a href=/unlisted>u</a><a href=/hidden>h</a>");
  site.page("/a", "<a href=/>home</a>");
  site.page("/orphan", "");
  site.page("/unlisted", "");
  site.page("/hidden", "<meta name=robots content=noindex>");
  site.redirect("/moved", 301, "/a");
  site.run();
  const auto report = gather_site_report(*site.sim.store, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->sitemaps, 1u);
  EXPECT_EQ(report->listed, 6u);
  EXPECT_THAT(report->listed_orphans.pages, ElementsAre(host + "/orphan"));
  EXPECT_THAT(report->listed_redirects.pages, ElementsAre(host + "/moved"));
  EXPECT_THAT(report->listed_broken.pages, ElementsAre(host + "/gone"));
  EXPECT_THAT(report->listed_noindex.pages, ElementsAre(host + "/hidden"));
  EXPECT_THAT(report->not_listed.pages, ElementsAre(host + "/unlisted"));
  EXPECT_THAT(html_site_report(*report), testing::HasSubstr("In a sitemap, and redirected"));
}

TEST(Sitemaps, AndFeedsOfTheSyntheticWebAreReadWhole) {
  Simulation sim({.hosts = 3, .pages = 60, .features = kFriendlyFeatures | kListedFeatures});
  sim.options.sitemaps = sim.options.feeds = true;
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  EXPECT_EQ(report.sitemaps.files, 3u * 6);
  EXPECT_EQ(report.sitemaps.cut + report.sitemaps.unreadable + report.sitemaps.dropped, 0u);
  std::set<std::string> fetched;
  ASSERT_TRUE(sim.store->scan(1, [&](const UrlRecord& record) {
    if (record.status_code == 200) fetched.insert(record.url);
    return true;
  }));
  for (std::uint32_t host = 0; host < 3; ++host) {
    const SyntheticTruth truth = sim.web.truth(host);
    EXPECT_EQ(truth.listed.size() + truth.posts.size(), 18u);
    for (const auto* list : {&truth.pages, &truth.listed, &truth.posts}) {
      for (const std::string& url : *list) EXPECT_TRUE(fetched.contains(url)) << url;
    }
  }
}

TEST(Sitemaps, ThatPagesLinkToAreNoRedirects) {
  ListedSite site;
  site.robots("Sitemap: /s.xml\n");
  site.page("/", "<a href=/s.xml>all</a>");
  site.sitemap("/s.xml", {"http://host0.test/missing", "http://host0.test/b"});
  site.page("/b", "");
  site.sim.options.check_links = site.sim.options.check_fragments = site.sim.options.keep_links =
      site.sim.options.keep_facts = true;
  site.run();
  const auto checked = check_links(*site.sim.store, {});
  ASSERT_TRUE(checked);
  ASSERT_EQ(checked->findings.size(), 1u);
  EXPECT_EQ(checked->findings[0].url, "http://host0.test/missing");
  EXPECT_THAT(checked->findings[0].places, IsEmpty()) << "no page has that link";
  EXPECT_EQ(checked->findings[0].page, "http://host0.test/s.xml");
}

TEST(Sitemaps, ThatNameNewsLeavePagesTheirIntervals) {
  ListedSite site;
  site.robots("Sitemap: /s.xml\n");
  const auto list = [&](const std::string& date) {
    site.file("/s.xml", "text/xml",
              "<urlset><url><loc>http://host0.test/a</loc><lastmod>" + date + "</lastmod></url></urlset>");
  };
  list("2001-01-01T00:00:00Z");
  site.sim.options.adaptive = RevisitBounds{std::chrono::minutes{1}, std::chrono::hours{24 * 7}};
  site.sim.options.age = std::chrono::hours{48};
  site.run();
  const auto interval = [&] {
    const UrlRecord record = site.record("http://host0.test/a");
    return std::chrono::round<std::chrono::hours>(record.due - record.mtime);
  };
  EXPECT_EQ(interval(), std::chrono::hours{48});
  site.sim.backend.manual_clock().set_wall(site.sim.backend.clock().wall_now() + std::chrono::hours{50});
  site.run();
  EXPECT_EQ(interval(), std::chrono::hours{72});
  list("2099-01-01T00:00:00Z");
  site.run();
  EXPECT_THAT(site.asked(), Contains("GET 0/a"));
  EXPECT_EQ(interval(), std::chrono::hours{108});
}

TEST(Sitemaps, ThatArePagesAreReadAsPages) {
  for (const std::string named : {"/", "/a", "/map.html", "/moved"}) {
    ListedSite site;
    site.robots("Sitemap: " + named + "\n");
    site.page("/", "<html><a href=/a>a</a><a href=/map.html>m</a>");
    site.page("/map.html", "<html><a href=/b>b</a>");
    site.redirect("/moved", 301, "/map.html");
    site.page("/b", "<html>");
    std::multiset<std::string> handled;
    site.sim.options.on_page = [&](const Page& page) -> Coro<void> {
      handled.insert(std::string(page.url.path_and_query()));
      co_return;
    };
    const CrawlReport report = site.run();
    EXPECT_TRUE(report.finished);
    EXPECT_EQ(report.stats.pages, 4u) << named;
    EXPECT_EQ(report.sitemaps.unreadable, 1u) << named;
    EXPECT_EQ(handled.count("/map.html"), 1u) << named;
    EXPECT_EQ(handled.count("/b"), 1u) << named;
    for (const char* page : {"/", "/a", "/map.html", "/b"})
      EXPECT_EQ(site.record(kHost + std::string(page)).reason, UrlReason::none) << named << " " << page;
    const CrawlReport again = site.run();
    EXPECT_TRUE(again.finished);
    for (const char* page : {"/", "/a", "/map.html", "/b"})
      EXPECT_EQ(site.record(kHost + std::string(page)).reason, UrlReason::none) << named << " " << page;
  }
}

}  // namespace
}  // namespace argiope
