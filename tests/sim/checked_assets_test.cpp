// The real crawler in virtual time, asked to check assets and fragments and to keep links: what it asks of whom, what
// it keeps, and that what it takes for an asset is still fetched when it is a page.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "argiope/base/random.hpp"
#include "base/internal/fingerprint.hpp"
#include "crawl/page/page_notes.hpp"
#include "sim/checked_site.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const std::string kHome = "http://host0.test/";

TEST(CheckedAssets, AreAskedByHeadWhereverTheyAre) {
  CheckedSite site;
  site.page(
      "/",
      "<img src=a.png><script src=http://host1.test/b.js></script><link rel=icon href=gone.ico><video poster=c.png>");
  site.file("/a.png", "image/png");
  site.file("/c.png", "image/png");
  site.file("/b.js", "text/javascript", "x", 1);
  const CrawlReport report = site.run();
  EXPECT_TRUE(report.finished);
  EXPECT_THAT(site.asked(), UnorderedElementsAre("GET 0/", "HEAD 0/a.png", "HEAD 1/b.js", "HEAD 0/gone.ico",
                                                 "GET 0/gone.ico", "HEAD 0/c.png"));
  ASSERT_EQ(report.broken_count, 1u);
  EXPECT_EQ(report.broken[0].url, kHome + "gone.ico");
  EXPECT_EQ(report.broken[0].referrer, kHome);
  EXPECT_EQ(site.record(kHome + "a.png").reason, UrlReason::asset);
  EXPECT_EQ(report.stats.pages, 1u);
  EXPECT_TRUE(report.left_out.empty()) << "an asset that was checked is not left out";
}

TEST(CheckedAssets, MentionsAreAskedAndNotFollowedUnlessTheyMustNotBe) {
  CheckedSite site;
  site.page("/",
            "<q cite=quoted></q><link rel=me href=http://host1.test/me><link rel='me nofollow' href=no>"
            "<link rel=preconnect href=http://host1.test/><a href=mute>x</a>");
  site.page("/mute", "<meta name=robots content=nofollow><q cite=not></q>");
  site.page("/quoted", "<a href=further>x</a>");
  site.file("/me", "text/html", "<a href=further>x</a>", 1);
  EXPECT_TRUE(site.run().finished);
  EXPECT_THAT(site.asked(), UnorderedElementsAre("GET 0/", "HEAD 0/quoted", "HEAD 1/me", "GET 0/mute"));
  const auto links = site.links(kHome);
  ASSERT_EQ(links.size(), 4u);
  EXPECT_EQ(links[0].kind, "mention");
}

TEST(CheckedAssets, OfStyleSheetsEndBehindTwentyInARow) {
  CheckedSite site;
  site.page("/", "<link rel=stylesheet href=/0.css>");
  site.sheets_in_a_row(40);
  const CrawlReport report = site.run();
  EXPECT_TRUE(report.finished);
  EXPECT_THAT(site.asked(), testing::Contains("HEAD 0/20.css"));
  EXPECT_THAT(site.asked(), testing::Not(testing::Contains("HEAD 0/21.css")));
  EXPECT_EQ(report.stats.excluded[static_cast<std::size_t>(Exclusion::nesting)], 1u);
}

TEST(CheckedAssets, OfStyleSheetsAreFoundInTheirBodies) {
  CheckedSite site;
  site.page("/", "<link rel=stylesheet href=/css/a.css><link rel=stylesheet href=http://host1.test/far.css>");
  site.file("/css/a.css", "text/css; charset=utf-8", "@import 'b.css';\np { background: url(../p.png) }");
  site.file("/css/b.css", "text/css", "@font-face { src: url('f.woff2') }");
  site.file("/p.png", "image/png");
  site.file("/css/f.woff2", "font/woff2");
  site.file("/far.css", "text/css", "p { background: url(q.png) }", 1);
  EXPECT_TRUE(site.run().finished);
  EXPECT_THAT(site.asked(),
              UnorderedElementsAre("GET 0/", "HEAD 0/css/a.css", "GET 0/css/a.css", "HEAD 0/css/b.css",
                                   "GET 0/css/b.css", "HEAD 0/p.png", "HEAD 0/css/f.woff2", "HEAD 1/far.css"));
  const auto links = site.links(kHome + "css/a.css");
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[0].kind, "stylesheet");
  EXPECT_EQ(links[1].line, 2u);
  EXPECT_EQ(links[1].target, site.record(kHome + "p.png").url_id);
}

TEST(CheckedAssets, OfTheDeepestPagesAreCheckedToo) {
  CheckedSite site;
  site.sim.options.max_depth = 0;
  site.page("/", "<a href=/b>b</a><img src=a.png>");
  site.file("/a.png", "image/png");
  site.page("/b", "");
  EXPECT_TRUE(site.run().finished);
  EXPECT_THAT(site.asked(), UnorderedElementsAre("GET 0/", "HEAD 0/a.png"));
}

TEST(CheckedAssets, ThatRobotsForbidAreNotAsked) {
  CheckedSite site;
  site.page("/", "<img src=/no/a.png>");
  site.file("/no/a.png", "image/png");
  site.file("/robots.txt", "text/plain", "User-agent: *\nDisallow: /no\n");
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(site.run().finished);
    EXPECT_EQ(site.record(kHome + "no/a.png").state, UrlState::excluded);
    EXPECT_EQ(site.record(kHome + "no/a.png").reason, UrlReason::asset);
  }
  EXPECT_THAT(site.asked(), IsEmpty());
}

TEST(CheckedAssets, AreNotLookedForUnlessAskedFor) {
  CheckedSite site;
  site.sim.options.check_assets = site.sim.options.check_fragments = false;
  site.sim.options.keep_links = site.sim.options.keep_facts = false;
  site.page("/", "<title>t</title><p id=a><img src=a.png><a href=b#a>x</a>");
  site.page("/b", "");
  EXPECT_TRUE(site.run().finished);
  EXPECT_THAT(site.asked(), ElementsAre("GET 0/", "GET 0/b"));
  EXPECT_THAT(site.links(kHome), IsEmpty());
  EXPECT_FALSE(*site.sim.store->facts(site.record(kHome).url_id));
}

// Whichever is met first, and whether or not it has been asked by then.
TEST(CheckedAssets, ThatAreLinkedTooAreFetchedAsPages) {
  for (const bool link_first : {false, true}) {
    CheckedSite site;
    const std::string link = "<a href=/both>b</a>", image = "<img src=/both>";
    site.page("/", link_first ? link + image + "<a href=/next>n</a>" : image + "<a href=/next>n</a>");
    site.page("/next", link_first ? "" : link);
    site.page("/both", "<a href=/deep>d</a>");
    site.page("/deep", "");
    const CrawlReport report = site.run();
    EXPECT_TRUE(report.finished);
    EXPECT_EQ(report.stats.pages, 4u) << link_first;
    EXPECT_EQ(site.record(kHome + "both").reason, UrlReason::none);
    EXPECT_EQ(std::ranges::count(site.asked(), "GET 0/both"), 1);
    EXPECT_EQ(std::ranges::count(site.asked(), "HEAD 0/both"), link_first ? 0 : 1);
  }
}

TEST(CheckedAssets, ThatALaterRunFindsALinkToAreFetchedAsPages) {
  for (const bool checks_again : {false, true}) {
    CheckedSite site;
    site.page("/", "<img src=/both>");
    site.page("/both", "<a href=/deep>d</a>");
    site.page("/deep", "");
    EXPECT_EQ(site.run().stats.pages, 1u);
    site.page("/", "<a href=/both>b</a>");
    site.sim.options.check_assets = checks_again;
    site.sim.options.requeue = Requeue::all;
    EXPECT_EQ(site.run().stats.pages, 3u);
    EXPECT_EQ(site.record(kHome + "both").reason, UrlReason::none);
  }
}

TEST(CheckedAssets, ElsewhereThatAreLinkedTooAreLinksToWhoTakesThatHostIn) {
  CheckedSite site;
  site.page("/", "<img src=http://host1.test/both><a href=/next>n</a>");
  site.page("/next", "<a href=http://host1.test/both>b</a>");
  site.page("/both", "<a href=/deep>d</a>", 1);
  site.page("/deep", "", 1);
  EXPECT_EQ(site.run().stats.pages, 2u);
  EXPECT_EQ(site.record("http://host1.test/both").reason, UrlReason::checked);
  site.sim.options.whitelist = {"host1.test"};
  EXPECT_EQ(site.run().stats.pages, 2u);
  EXPECT_THAT(site.asked(), ElementsAre("GET 1/both", "GET 1/deep"));
}

TEST(CheckedAssets, StayAssetsForWhoTakesTheirHostIn) {
  CheckedSite site;
  site.page("/", "<img src=http://host1.test/a.png>");
  site.file("/a.png", "image/png", "x", 1);
  site.run();
  site.sim.options.whitelist = {"host1.test"};
  site.run();
  EXPECT_THAT(site.asked(), IsEmpty());
}

TEST(CheckedAssets, AreCheckedAgainWhenTheirVerdictIsOldOrBad) {
  CheckedSite site;
  site.page("/", "<img src=a.png><img src=b.png>");
  site.file("/a.png", "image/png");
  site.run();
  site.sim.options.check_age = 24h;
  site.run();
  EXPECT_THAT(site.asked(), ElementsAre("HEAD 0/b.png", "GET 0/b.png")) << "it may be mended";
  site.sim.backend.manual_clock().advance(25h);
  site.run();
  EXPECT_THAT(site.asked(), UnorderedElementsAre("HEAD 0/a.png", "HEAD 0/b.png", "GET 0/b.png"))
      << "pages have no such age";
}

TEST(CheckedAssets, GoOnWhereACrawlWasStopped) {
  CheckedSite site;
  std::string html;
  for (int i = 0; i < 40; ++i) {
    html += "<img src=/" + std::to_string(i) + ".png>";
    site.file("/" + std::to_string(i) + ".png", "image/png");
  }
  site.page("/", html);
  site.sim.options.queue_size = 8;  // most of them wait on the shelf
  site.sim.options.max_pages = 7;
  std::multiset<std::string> asked;
  for (int runs = 0; runs < 20; ++runs) {
    const bool finished = site.run().finished;
    for (const std::string& request : site.asked()) asked.insert(request);
    if (finished) break;
  }
  EXPECT_EQ(asked.size(), 41u);
  EXPECT_EQ(std::set<std::string>(asked.begin(), asked.end()).size(), 41u) << "each once";
}

TEST(KeptPages, HaveEachLinkWithItsTextAndLine) {
  CheckedSite site;
  site.page("/",
            "<a href='/b#part'>To <b>b</b></a>\n<img src=a.png alt='A picture'>\n<a rel='nofollow x' href=/no>no</a>"
            "<a href='mailto:nobody'>m</a>\n<a href='http://:bad/'>x</a><a href='#here'>y</a><a href='data:,x'>z</a>");
  site.page("/b", "");
  site.file("/a.png", "image/png");
  site.run();
  const auto links = site.links(kHome);
  ASSERT_EQ(links.size(), 6u);
  EXPECT_EQ(
      links[0],
      (KeptLink{
          .target = site.record(kHome + "b").url_id, .kind = "anchor", .text = "To b", .line = 1, .fragment = "part"}));
  EXPECT_EQ(links[1],
            (KeptLink{.target = site.record(kHome + "a.png").url_id, .kind = "image", .text = "A picture", .line = 2}));
  EXPECT_EQ(links[2], (KeptLink{.href = "/no", .kind = "anchor", .text = "no", .rel = "nofollow x", .line = 3}));
  EXPECT_EQ(links[3].error, "\"nobody\" has no @");
  EXPECT_NE(links[4].error, "");
  EXPECT_EQ(links[5].target, site.record(kHome).url_id);
  EXPECT_EQ(links[5].fragment, "here");
}

TEST(KeptPages, ThatAreFetchedAgainHaveTheirNewLinksAlone) {
  CheckedSite site;
  site.page("/", "<a href=/b>b</a><a href=/c>c</a>");
  site.page("/b", "<a href=/>back</a>");
  site.page("/c", "");
  site.run();
  EXPECT_EQ(site.links(kHome).size(), 2u);
  site.page("/", "<a href=/c>c</a>");
  site.redirect("/b", 301, "/c");
  site.sim.options.requeue = Requeue::all;
  site.run();
  EXPECT_EQ(site.links(kHome).size(), 1u);
  EXPECT_THAT(site.links(kHome + "b"), IsEmpty());
}

TEST(KeptPages, KnowWhatTheirHeadsSayAndHowLongTheyTook) {
  CheckedSite site;
  site.page(
      "/",
      "<title>T</title><meta name=description content=D><h1 id=a>H</h1><a name=b></a><link rel=canonical href=/x>");
  site.replies[{0, "/"}].latency = 250ms;
  site.replies[{0, "/"}].headers.emplace_back("X-Robots-Tag", "noindex");
  site.run();
  const PageFacts facts = site.facts(kHome);
  EXPECT_EQ(facts.title, "T");
  EXPECT_EQ(facts.description, "D");
  EXPECT_EQ(facts.heading, "H");
  EXPECT_EQ(facts.canonical, kHome + "x");
  EXPECT_TRUE(facts.noindex);
  EXPECT_EQ(facts.took, 250ms);
  ASSERT_TRUE(facts.anchors);
  EXPECT_TRUE(names_anchor("a", *facts.anchors));
  EXPECT_TRUE(names_anchor("b", *facts.anchors));
  EXPECT_FALSE(names_anchor("c", *facts.anchors));
}

TEST(KeptPages, ElsewhereAreReadForTheirIdsWhenAFragmentLeadsThere) {
  for (const bool fragment_first : {true, false}) {
    CheckedSite site;
    site.sim.options.check_foreign_fragments = true;
    const std::string plain = "<a href=http://host1.test/p>p</a>", part = "<a href='http://host1.test/p#a'>p</a>";
    site.page("/", fragment_first ? part : plain + "<a href=/next>n</a>");
    site.page("/next", part);
    site.page("/p", "<p id=a><a href=/deep>not followed</a>", 1);
    EXPECT_TRUE(site.run().finished);
    EXPECT_EQ(std::ranges::count(site.asked(), "GET 1/p"), 1) << fragment_first;
    EXPECT_EQ(std::ranges::count(site.asked(), "GET 1/deep"), 0);
    EXPECT_THAT(*site.facts("http://host1.test/p").anchors, ElementsAre(fingerprint("a")));
    EXPECT_THAT(site.links("http://host1.test/p"), IsEmpty());
  }
}

TEST(KeptPages, ElsewhereAreNotReadUnlessAskedFor) {
  CheckedSite site;
  site.page("/", "<a href='http://host1.test/p#a'>p</a>");
  site.page("/p", "<p id=a>", 1);
  site.run();
  EXPECT_THAT(site.asked(), ElementsAre("GET 0/", "HEAD 1/p"));
}

// Pages, assets and links between them at random: all pages are fetched once, all else is asked by HEAD, in whatever
// order and over however many runs.
TEST(CheckedAssets, AndPagesAreToldApartHoweverTheyAreMixed) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    CheckedSite site;
    constexpr std::uint64_t kUrls = 30;
    std::vector<std::vector<std::pair<std::uint64_t, bool>>> refers(kUrls);
    for (std::uint64_t from = 0; from < kUrls; ++from) {
      std::string html;
      for (auto n = random.below(5); n > 0; --n) {
        const std::uint64_t to = random.below(kUrls);
        const bool is_link = random.chance(0.5);
        refers[from].emplace_back(to, is_link);
        html += is_link ? "<a href=/" + std::to_string(to) + ">x</a>" : "<img src=/" + std::to_string(to) + ">";
      }
      site.page("/" + std::to_string(from), html);
    }
    site.page("/", "<a href=/0>x</a>");
    std::set<std::uint64_t> pages{0}, assets;
    for (std::vector<std::uint64_t> next{0}; !next.empty();) {
      const std::uint64_t from = next.back();
      next.pop_back();
      for (const auto& [to, is_link] : refers[from]) {
        if (!is_link) assets.insert(to);
        if (is_link && pages.insert(to).second) next.push_back(to);
      }
    }
    if (random.chance(0.5)) site.sim.options.max_pages = 5;
    if (random.chance(0.5)) site.sim.options.queue_size = 4;
    if (random.chance(0.5)) site.sim.options.order = CrawlOrder::dfs;
    std::map<std::string, int> asked;
    for (int runs = 0; runs < 40; ++runs) {
      const bool finished = site.run().finished;
      for (const std::string& request : site.asked()) ++asked[request];
      if (finished) break;
    }
    for (std::uint64_t url = 0; url < kUrls; ++url) {
      const std::string name = std::to_string(url);
      const bool is_page = pages.contains(url), is_asset = assets.contains(url);
      EXPECT_EQ(asked["GET 0/" + name], is_page ? 1 : 0) << "seed " << seed << " url " << url;
      EXPECT_LE(asked["HEAD 0/" + name], is_asset ? 1 : 0) << "seed " << seed << " url " << url;
      if (is_asset && !is_page) {
        EXPECT_EQ(asked["HEAD 0/" + name], 1) << "seed " << seed << " url " << url;
      }
    }
  }
}

}  // namespace
}  // namespace argiope
