// Which findings are news, night by night.
#include "crawl/check/internal/finding_news.hpp"

#include <gmock/gmock.h>

#include "sim/checked_site.hpp"

namespace argiope {
namespace {

class FindingNewsTest : public testing::Test {
 protected:
  static LinkFinding broken(const std::string& url, const std::string& page = "http://a.test/") {
    return {.kind = FindingKind::broken, .url = url, .page = page};
  }
  FindingNews night(const std::vector<LinkFinding>& findings, std::uint32_t kinds = 1, bool is_whole = true) {
    const auto news = note_findings(*store_, findings, kinds, is_whole);
    EXPECT_TRUE(news);
    return *news;
  }
  std::unique_ptr<UrlStore> store_ = *open_url_store(":memory:");
};

TEST_F(FindingNewsTest, TheFirstRunHasNothingToCompareWith) {
  const FindingNews news = night({broken("http://a.test/x"), broken("http://a.test/y")});
  EXPECT_EQ(news.fresh, std::nullopt);
  EXPECT_EQ(news.first, "http://a.test/x on http://a.test/");
}

TEST_F(FindingNewsTest, WhatTheRunBeforeHadFoundIsNoNews) {
  night({});
  EXPECT_EQ(night({broken("http://a.test/x")}).fresh, 1u) << "nothing was wrong, and that is known";
  EXPECT_EQ(night({broken("http://a.test/x")}).fresh, 0u);
  const FindingNews news = night({broken("http://a.test/x"), broken("http://a.test/y"), broken("http://a.test/z")});
  EXPECT_EQ(news.fresh, 2u);
  EXPECT_EQ(news.first, "http://a.test/y on http://a.test/") << "the first new one";
  EXPECT_EQ(night({broken("http://a.test/z")}).fresh, 0u);
  EXPECT_EQ(night({broken("http://a.test/x")}).fresh, 1u) << "it has come back";
}

TEST_F(FindingNewsTest, KindsAreToldApartAndWarningsAreNone) {
  night({}, 3);
  EXPECT_EQ(night({broken("http://a.test/x")}, 3).fresh, 1u);
  LinkFinding other = broken("http://a.test/x");
  other.kind = FindingKind::fragment;
  EXPECT_EQ(night({other}, 3).fresh, 1u);
  other.kind = FindingKind::redirect;
  const FindingNews news = night({other}, 3);
  EXPECT_EQ(news.fresh, 0u);
  EXPECT_EQ(news.first, "");
  EXPECT_EQ(night({}, 1).fresh, std::nullopt) << "no run has looked for these kinds";
}

TEST_F(FindingNewsTest, WhatIsNotWholeIsNeitherComparedNorRemembered) {
  night({});
  EXPECT_EQ(night({broken("http://a.test/x")}, 1, false).fresh, std::nullopt);
  EXPECT_EQ(night({broken("http://a.test/x")}).fresh, std::nullopt);
}

TEST_F(FindingNewsTest, AUrlThatWasGivenHasNoPage) {
  EXPECT_EQ(night({broken("http://a.test/x", "")}).first, "http://a.test/x, which was given");
}

TEST(FindingNews, CountsThePagesBesideTheFirst) {
  CheckedSite site;
  site.page("/", "<a href=/gone>1</a><a href=/gone>2</a><a href=/b>b</a><a href=/c>c</a>");
  site.page("/b", "<a href=/gone>3</a><a href=/gone>4</a>");
  site.page("/c", "<a href=/gone>5</a>");
  site.run();
  const auto found = check_links(*site.sim.store, {});
  ASSERT_TRUE(found);
  const auto news = note_findings(*site.sim.store, found->findings, 1, true);
  ASSERT_TRUE(news);
  EXPECT_EQ(news->first, "http://host0.test/gone on http://host0.test/ and 2 more pages");
}

}  // namespace
}  // namespace argiope
