// The real crawler in virtual time, asked to fetch what pages are shown with: what it asks of whom, that each is asked
// once, and what later runs do about it.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/checked_site.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const std::string kFirst = "http://host0.test/";

// Notes what it is shown, and has what it is told to have.
class KeepingSink final : public CrawlSink {
 public:
  Result<void> take(const Exchange& exchange) override {
    if (exchange.kind == ExchangeKind::requisite) shown.push_back(exchange.request.url.href());
    if (exchange.kind == ExchangeKind::page && exchange.response.status == 200)
      pages.push_back(exchange.request.url.href());
    return {};
  }
  bool can_lack() const noexcept override { return can; }
  bool lacks(std::string_view url) const override { return lacking.contains(std::string(url)); }

  std::vector<std::string> shown, pages;
  std::set<std::string> lacking;
  bool can = false;
};

struct SavedSite : CheckedSite {
  explicit SavedSite(std::uint32_t hosts = 2) : CheckedSite(hosts) {
    sim.options.check_links = sim.options.check_assets = sim.options.check_fragments = false;
    sim.options.keep_links = sim.options.keep_facts = false;
    sim.options.requisites = Requisites::all;
    sim.options.sinks.push_back(sink);
  }
  std::shared_ptr<KeepingSink> sink = std::make_shared<KeepingSink>();
};

TEST(SavedAssets, AreFetchedWhereverTheyAreAndCountedApart) {
  SavedSite site;
  site.page("/",
            "<img src=a.png srcset='b.png 2x'><script src=http://host1.test/c.js></script><link rel=icon href=gone.ico>"
            "<p style='background:url(d.png)'><a href=http://host1.test/far>f</a><img src=data:image/png,x>");
  for (const char* name : {"/a.png", "/b.png", "/d.png"}) site.file(name, "image/png");
  site.file("/c.js", "text/javascript", "x", 1);
  const CrawlReport report = site.run();
  EXPECT_TRUE(report.finished);
  EXPECT_THAT(site.asked(), UnorderedElementsAre("GET 0/", "GET 0/a.png", "GET 0/b.png", "GET 1/c.js", "GET 0/gone.ico",
                                                 "GET 0/d.png"));
  EXPECT_EQ(report.stats.requisites, 5u);
  EXPECT_EQ(report.stats.pages, 1u);
  EXPECT_EQ(site.sink->shown.size(), 5u);
  EXPECT_EQ(site.record(kFirst + "a.png").reason, UrlReason::requisite);
  EXPECT_EQ(site.record(kFirst + "a.png").state, UrlState::done);
  ASSERT_EQ(report.broken_count, 1u);
  EXPECT_EQ(report.broken[0].url, kFirst + "gone.ico");
  EXPECT_EQ(report.left_out, (std::map<std::string, std::uint64_t>{{"off_scope", 1}}));
}

TEST(SavedAssets, OfStyleSheetsAreFoundOnAnyHost) {
  SavedSite site;
  site.page("/", "<link rel=stylesheet href=http://host1.test/css/a.css>");
  site.file("/css/a.css", "text/css", "@import 'b.css'; p { background: url(../p.png) }", 1);
  site.file("/css/b.css", "text/css", "@font-face { src: url('f.woff2') }", 1);
  site.file("/p.png", "image/png", "x", 1);
  site.file("/css/f.woff2", "font/woff2", "x", 1);
  EXPECT_TRUE(site.run().finished);
  EXPECT_THAT(site.asked(),
              UnorderedElementsAre("GET 0/", "GET 1/css/a.css", "GET 1/css/b.css", "GET 1/p.png", "GET 1/css/f.woff2"));
}

TEST(SavedAssets, ThatArePagesHaveTheirOwnWordsAmongTheFacts) {
  SavedSite site;
  site.sim.options.keep_facts = site.sim.options.duplicates.keep_simhashes = true;
  site.page("/", "<embed src=part.html><p>one two three four five");
  site.page("/part.html", "<p>six seven");
  EXPECT_TRUE(site.run().finished);
  ASSERT_EQ(site.record(kFirst + "part.html").reason, UrlReason::requisite);
  std::map<std::int64_t, std::uint32_t> words;
  EXPECT_TRUE(site.sim.store->scan_facts([&](const PageFacts& facts) {
    words[facts.url_id] = facts.words;
    return true;
  }));
  EXPECT_EQ(words[site.record(kFirst).url_id], 5u);
  EXPECT_EQ(words[site.record(kFirst + "part.html").url_id], 2u);
}

// A server may have another one behind each for ever.
TEST(SavedAssets, OfStyleSheetsEndBehindTwentyInARow) {
  SavedSite site;
  site.page("/", "<link rel=stylesheet href=/0.css>");
  site.sheets_in_a_row(40);
  const CrawlReport report = site.run();
  EXPECT_TRUE(report.finished);
  EXPECT_THAT(site.asked(), testing::SizeIs(22)) << "the page, its sheet, and twenty behind that";
  EXPECT_EQ(site.asked().back(), "GET 0/20.css");
  EXPECT_EQ(report.stats.excluded[static_cast<std::size_t>(Exclusion::nesting)], 1u);
  EXPECT_THAT(site.record(kFirst + "20.css").error, testing::HasSubstr("left out"));
  EXPECT_EQ(site.record(kFirst + "20.css").state, UrlState::done);
  site.sim.options.age = 0s;
  site.sim.backend.manual_clock().advance(1s);
  EXPECT_EQ(site.run().stats.excluded[static_cast<std::size_t>(Exclusion::nesting)], 1u);
  EXPECT_THAT(site.asked(), testing::Not(testing::Contains("GET 0/21.css"))) << "nor does a later run go further";
}

TEST(SavedAssets, OfStyleSheetsAreCountedOnByLaterRuns) {
  SavedSite site;
  site.sim.options.retries = 0;
  site.page("/", "<link rel=stylesheet href=/0.css>");
  site.sheets_in_a_row(40);
  site.replies[{0, "/10.css"}].status = 503;
  site.run();
  EXPECT_THAT(site.asked(), testing::SizeIs(12));
  site.replies[{0, "/10.css"}].status = 200;
  site.sim.backend.manual_clock().advance(24h);
  EXPECT_TRUE(site.run().finished);
  EXPECT_EQ(site.asked().back(), "GET 0/20.css");
}

TEST(SavedAssets, OfStyleSheetsThatLieTooDeepAreThoseOfAnotherPage) {
  SavedSite site;
  site.page("/", "<link rel=stylesheet href=/0.css><a href=/next>n</a>");
  site.page("/next", "<link rel=stylesheet href=/21.css>");
  site.sheets_in_a_row(25);
  EXPECT_TRUE(site.run().finished);
  EXPECT_THAT(site.asked(), testing::SizeIs(28)) << "two pages, 25 sheets, and the one that does not exist";
}

TEST(SavedAssets, OfStyleSheetsInACircleEndWhereOneIsKnown) {
  SavedSite site;
  site.page("/", "<link rel=stylesheet href=/a.css>");
  site.file("/a.css", "text/css", "@import 'b.css'; @import 'a.css';");
  site.file("/b.css", "text/css", "@import 'c.css'; @import url(a.css);");
  site.file("/c.css", "text/css", "@import 'a.css';");
  const CrawlReport report = site.run();
  EXPECT_TRUE(report.finished);
  EXPECT_THAT(site.asked(), UnorderedElementsAre("GET 0/", "GET 0/a.css", "GET 0/b.css", "GET 0/c.css"));
  EXPECT_EQ(report.stats.excluded[static_cast<std::size_t>(Exclusion::nesting)], 0u);
}

TEST(SavedAssets, OnlyOfTheCrawlsHostsWhenAskedFor) {
  SavedSite site;
  site.sim.options.requisites = Requisites::same_host;
  site.page("/", "<img src=http://host1.test/a.png><img src=b.png>");
  site.file("/a.png", "image/png", "x", 1);
  site.file("/b.png", "image/png");
  EXPECT_TRUE(site.run().finished);
  EXPECT_THAT(site.asked(), UnorderedElementsAre("GET 0/", "GET 0/b.png"));
  site.sim.options.requisites = Requisites::all;
  EXPECT_TRUE(site.run().finished);
  EXPECT_THAT(site.asked(), ElementsAre("GET 1/a.png")) << "what was left out is known";
}

TEST(SavedAssets, AreNotPagesWhateverTheyAre) {
  SavedSite site;
  site.page("/", "<object data=/o></object>");
  site.page("/o", "<a href=/deep>d</a><img src=/i.png>");
  site.page("/deep", "");
  const CrawlReport report = site.run();
  EXPECT_EQ(report.stats.pages, 1u);
  EXPECT_THAT(site.asked(), UnorderedElementsAre("GET 0/", "GET 0/o"));
}

// Whichever is met first.
TEST(SavedAssets, ThatAreLinkedTooAreFollowed) {
  for (const bool link_first : {false, true}) {
    SavedSite site;
    const std::string link = "<a href=/both>b</a>", image = "<object data=/both></object>";
    site.page("/", link_first ? link + image + "<a href=/next>n</a>" : image + "<a href=/next>n</a>");
    site.page("/next", link_first ? "" : link);
    site.page("/both", "<a href=/deep>d</a>");
    site.page("/deep", "");
    const CrawlReport report = site.run();
    EXPECT_TRUE(report.finished);
    EXPECT_EQ(report.stats.pages, 4u) << link_first;
    EXPECT_EQ(site.record(kFirst + "both").reason, UrlReason::none);
  }
}

// Left out as a link, whatever for, and shown all the same.
TEST(SavedAssets, AreFetchedThoughLinksToThemAreNot) {
  for (const bool link_first : {false, true}) {
    SavedSite site;
    site.sim.options.accept_extensions = {"html"};
    const std::string links = "<a href=/a.png>a</a><a href=http://host1.test/b.png>b</a>";
    const std::string images = "<img src=/a.png><img src=http://host1.test/b.png>";
    site.page("/", (link_first ? links : images) + "<a href=/next.html>n</a>");
    site.page("/next.html", link_first ? images : links);
    site.file("/a.png", "image/png");
    site.file("/b.png", "image/png", "x", 1);
    EXPECT_TRUE(site.run().finished);
    EXPECT_THAT(site.sink->shown, UnorderedElementsAre(kFirst + "a.png", "http://host1.test/b.png")) << link_first;
    EXPECT_EQ(site.record(kFirst + "a.png").reason, UrlReason::requisite);
  }
}

TEST(SavedAssets, AreFetchedThoughTheyAreNoPagesThatAreAccepted) {
  for (const bool link_first : {false, true}) {
    SavedSite site;
    site.sim.options.accept_types = {"text/html"};
    const std::string link = "<a href=/a.png>a</a><a href=/b.png>b</a>", image = "<img src=/a.png>";
    site.page("/", link_first ? link + "<a href=/next>n</a>" : image + "<a href=/next>n</a>");
    site.page("/next", link_first ? image : link);
    site.file("/a.png", "image/png");
    site.file("/b.png", "image/png");
    EXPECT_TRUE(site.run().finished);
    EXPECT_THAT(site.sink->shown, testing::Contains(kFirst + "a.png")) << link_first;
    EXPECT_EQ(site.record(kFirst + "b.png").reason, UrlReason::content_type);
  }
}

TEST(SavedAssets, AreFetchedByAllMeansWhereLinksAreCheckedToo) {
  SavedSite site;
  site.sim.options.check_links = true;
  site.page("/", "<a href=http://host1.test/b.png>b</a><a href=/next>n</a>");
  site.page("/next", "<img src=http://host1.test/b.png>");
  site.file("/b.png", "image/png", "x", 1);
  EXPECT_TRUE(site.run().finished);
  EXPECT_THAT(site.sink->shown, ElementsAre("http://host1.test/b.png"));
}

TEST(SavedAssets, ObeyRobotsAndExcludes) {
  SavedSite site;
  site.sim.options.exclude = {"/big/**"};
  site.page("/", "<img src=/no/a.png><img src=/big/b.png><img src=/c.png>");
  site.file("/c.png", "image/png");
  site.file("/robots.txt", "text/plain", "User-agent: *\nDisallow: /no\n");
  EXPECT_TRUE(site.run().finished);
  EXPECT_THAT(site.asked(), UnorderedElementsAre("GET 0/", "GET 0/c.png"));
  EXPECT_EQ(site.record(kFirst + "no/a.png").state, UrlState::excluded);
  EXPECT_EQ(site.record(kFirst + "no/a.png").reason, UrlReason::requisite);
}

TEST(SavedAssets, ThatRedirectAreFollowedToTheirEnd) {
  SavedSite site;
  site.page("/", "<img src=/a>");
  site.redirect("/a", 302, "http://host1.test/b");
  site.redirect("/b", 301, "c.png", 1);
  site.file("/c.png", "image/png", "x", 1);
  EXPECT_TRUE(site.run().finished);
  EXPECT_THAT(site.sink->shown, ElementsAre(kFirst + "a", "http://host1.test/b", "http://host1.test/c.png"));
}

TEST(SavedAssets, DoNotCountAsPagesOfTheBudget) {
  SavedSite site;
  site.sim.options.max_pages = 2;
  site.page("/", "<img src=/a.png><img src=/b.png><a href=/next>n</a><a href=/last>l</a>");
  site.page("/next", "<img src=/c.png>");
  site.page("/last", "");
  for (const char* name : {"/a.png", "/b.png", "/c.png"}) site.file(name, "image/png");
  const CrawlReport report = site.run();
  EXPECT_EQ(report.stopped_by, "max_pages");
  EXPECT_THAT(site.sink->pages, ElementsAre(kFirst, kFirst + "next"));
  EXPECT_THAT(site.sink->shown, UnorderedElementsAre(kFirst + "a.png", kFirst + "b.png", kFirst + "c.png"))
      << "the pages that were let in are whole";
  site.sim.options.max_pages = 0;
  EXPECT_EQ(site.run().stats.pages, 1u) << "and the others are fetched by the next run";
}

TEST(SavedAssets, AreAskedWhetherTheyHaveChangedAsPagesAre) {
  SavedSite site;
  site.page("/", "<img src=/a.png>");
  site.file("/a.png", "image/png");
  EXPECT_TRUE(site.run().finished);
  EXPECT_TRUE(site.run().finished);
  EXPECT_THAT(site.asked(), IsEmpty()) << "nothing is due";
  site.sim.options.age = 0s;
  site.sim.backend.manual_clock().advance(1s);
  site.run();
  EXPECT_THAT(site.asked(), UnorderedElementsAre("GET 0/", "GET 0/a.png"));
}

TEST(SavedAssets, ThatAnEarlierRunHasNotFetchedAre) {
  SavedSite site;
  site.page("/", "<img src=/a.png>");
  site.file("/a.png", "image/png");
  site.sim.options.requisites = Requisites::none;
  EXPECT_TRUE(site.run().finished);
  EXPECT_THAT(site.asked(), ElementsAre("GET 0/"));
  // The page is fetched again because the sink has not got it, and so the asset is found.
  site.sim.options.requisites = Requisites::all;
  site.sink->can = true;
  site.sink->lacking = {kFirst};
  EXPECT_TRUE(site.run().finished);
  EXPECT_THAT(site.asked(), ElementsAre("GET 0/", "GET 0/a.png"));
  site.sink->lacking = {kFirst + "a.png"};
  EXPECT_TRUE(site.run().finished);
  EXPECT_THAT(site.asked(), ElementsAre("GET 0/a.png"));
  site.sink->lacking.clear();
  EXPECT_TRUE(site.run().finished);
  EXPECT_THAT(site.asked(), IsEmpty());
}

TEST(SavedAssets, AreNotLookedForUnlessAskedFor) {
  SavedSite site;
  site.sim.options.requisites = Requisites::none;
  site.page("/", "<img src=a.png>");
  EXPECT_TRUE(site.run().finished);
  EXPECT_THAT(site.asked(), ElementsAre("GET 0/"));
}

}  // namespace
}  // namespace argiope
