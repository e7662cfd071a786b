// How far from the seeds URLs are: by the shortest way, whatever the order in which runs find the ways. The second run
// may fetch what the first one left out, and leads to the same depths as one run that fetches all of it at once.
#include <gmock/gmock.h>

#include "sim/checked_site.hpp"

namespace argiope {
namespace {

constexpr const char* kHost = "http://host0.test";

std::map<std::string, std::uint32_t> depths_of(CheckedSite& site) {
  std::map<std::string, std::uint32_t> depths;
  EXPECT_TRUE(site.sim.store->scan(1, [&](const UrlRecord& record) {
    depths[record.url] = record.depth;
    return true;
  }));
  return depths;
}

// /far is three links away, and /near one; both refer to the same.
void fill(CheckedSite& site, const std::string& both) {
  site.page("/", "<a href=/near>n</a><a href=/1>1</a>");
  site.page("/1", "<a href=/2>2</a>");
  site.page("/2", "<a href=/far>f</a>");
  site.page("/far", both);
  site.page("/near", both);
}

// With the limit the database is counted again when it is opened as well; without at the end alone.
class DepthsOfRuns : public testing::TestWithParam<bool> {
 protected:
  void limit(CheckedSite& site) const {
    if (GetParam()) site.sim.options.max_depth = 1000;
  }
  void expect_same_as_at_once(const std::function<void(CheckedSite&)>& fill_site, const std::string& url,
                              std::uint32_t depth) const {
    CheckedSite at_once, in_two;
    for (CheckedSite* site : {&at_once, &in_two}) {
      limit(*site);
      fill_site(*site);
    }
    in_two.sim.options.exclude = {"/near"};
    in_two.run();
    EXPECT_GT(in_two.record(url).depth, depth);
    in_two.sim.options.exclude.clear();
    in_two.run();
    at_once.run();
    EXPECT_EQ(in_two.record(url).depth, depth);
    EXPECT_EQ(depths_of(in_two), depths_of(at_once));
  }
};

TEST_P(DepthsOfRuns, AreTheSameOfWhatIsOnlyChecked) {
  const std::pair<const char*, const char*> kinds[] = {
      {"<img src=/x>", "/x"},
      {"<script src=/x></script>", "/x"},
      {"<q cite=/x>q</q>", "/x"},
      {"<p style='background: url(/x)'>", "/x"},
      {"<link rel=stylesheet href=/x.css>", "/x.css"},
      {"<img src=/moved>", "/moved"},
  };
  for (const auto& [html, target] : kinds) {
    SCOPED_TRACE(html);
    expect_same_as_at_once(
        [&](CheckedSite& site) {
          fill(site, html);
          site.file("/x", "image/png");
          site.file("/x.css", "text/css", "@import '/y.css'; p { background: url(/z.png) }");
          site.file("/y.css", "text/css", "p { background: url(/w.png) }");
          site.redirect("/moved", 302, "http://host1.test/picture");
        },
        std::string(kHost) + target, 2);
  }
}

TEST_P(DepthsOfRuns, AreTheSameOfLinksElsewhereAndWhereRedirectsLead) {
  expect_same_as_at_once([](CheckedSite& site) { fill(site, "<a href=http://host1.test/x>x</a>"); },
                         "http://host1.test/x", 2);
  expect_same_as_at_once(
      [](CheckedSite& site) {
        fill(site, "<a href=/moved>x</a>");
        site.redirect("/moved", 301, "/end");
        site.page("/end", "<a href=/behind>b</a>");
      },
      std::string(kHost) + "/behind", 3);
}

// Which of both is found first makes no difference.
TEST_P(DepthsOfRuns, AreTheSameOfAPictureThatIsAPage) {
  expect_same_as_at_once(
      [](CheckedSite& site) {
        fill(site, "<img src=/both>");
        site.page("/far", "<a href=/both>b</a>");
        site.page("/both", "<a href=/behind>b</a>");
      },
      std::string(kHost) + "/both", 2);
}

TEST_P(DepthsOfRuns, AreTheSameOfSitemapsAndWhatTheyList) {
  CheckedSite site;
  limit(site);
  fill(site, "<img src=/x.png>");
  site.file("/x.png", "image/png");
  site.page("/near", "");
  site.page("/far", "<a href=/map.xml>map</a><img src=/x.png><a href=/listed>l</a>");
  site.page("/listed", "<a href=/behind>b</a>");
  site.file("/map.xml", "application/xml",
            "<urlset xmlns:image='http://www.google.com/schemas/sitemap-image/1.1'><url><loc>http://host0.test/listed"
            "</loc><image:image><image:loc>http://host0.test/x.png</image:loc></image:image></url></urlset>");
  site.run();
  EXPECT_EQ(site.record("http://host0.test/map.xml").depth, 4u);
  site.sim.options.sitemap_urls = {*Url::parse("http://host0.test/map.xml")};
  site.run();
  EXPECT_EQ(site.record("http://host0.test/map.xml").depth, 0u);
  EXPECT_EQ(site.record("http://host0.test/listed").depth, 0u);
  EXPECT_EQ(site.record("http://host0.test/behind").depth, 1u);
  EXPECT_EQ(site.record("http://host0.test/x.png").depth, 1u);
}

TEST_P(DepthsOfRuns, AreCountedFromUrlsThatAreGivenLater) {
  for (const bool keeps_links : {true, false}) {
    CheckedSite site;
    limit(site);
    site.sim.options.check_links = site.sim.options.check_assets = site.sim.options.check_fragments = keeps_links;
    site.sim.options.keep_links = site.sim.options.keep_facts = keeps_links;
    fill(site, "<a href=/behind>b</a>");
    site.sim.options.exclude = {"/far"};
    site.run();
    EXPECT_EQ(site.record("http://host0.test/far").depth, 3u);
    site.sim.options.exclude.clear();
    site.sim.options.seeds.push_back(*Url::parse("http://host0.test/far"));
    site.run();
    // Without either a crawl does not keep which record a URL has that it knew before.
    if (!keeps_links && !GetParam()) continue;
    EXPECT_EQ(site.record("http://host0.test/far").depth, 0u);
    EXPECT_EQ(site.record("http://host0.test/behind").depth, 1u);
  }
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutALimit, DepthsOfRuns, testing::Bool(),
                         [](const auto& info) { return info.param ? "limited" : "unlimited"; });

}  // namespace
}  // namespace argiope
