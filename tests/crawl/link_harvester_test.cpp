#include "crawl/page/internal/link_harvester.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crawl/page/internal/refresh_field.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;

class LinkHarvesterTest : public testing::Test {
 protected:
  // The links of a page, as URLs; those marked nofollow end in " nofollow".
  std::vector<std::string> links(std::string_view url, std::string_view html,
                                 std::string_view content_type = "text/html; charset=utf-8",
                                 std::uint64_t context = 0) {
    HttpResponse response;
    response.status = 200;
    response.headers.content_type = content_type;
    response.body = html;
    std::vector<std::string> found;
    summary = harvester.harvest(*Url::parse(url), response, context, [&](const LinkHarvester::Link& link) {
      found.push_back(std::string(link.url.href()) + (link.nofollow ? " nofollow" : ""));
    });
    return found;
  }

  LinkHarvester harvester{"argiope"};
  LinkHarvester::Summary summary;
};

TEST_F(LinkHarvesterTest, ResolvesAgainstThePageAndDropsFragments) {
  EXPECT_THAT(links("http://a.test/d/p.html", "<a href=q.html#x><a href=/r><a href=//b.test/><a href='?s'>"),
              ElementsAre("http://a.test/d/q.html", "http://a.test/r", "http://b.test/", "http://a.test/d/p.html?s"));
}

TEST_F(LinkHarvesterTest, ResolvesAgainstTheBaseElement) {
  EXPECT_THAT(links("http://a.test/d/p.html", "<base href=/other/><a href=q><a href=''><a href='#x'>"),
              ElementsAre("http://a.test/other/q", "http://a.test/other/", "http://a.test/other/"));
}

TEST_F(LinkHarvesterTest, ReportsALinkOfADirectoryOnce) {
  const char* navigation = "<a href=home.html><a href=?page=2>";
  EXPECT_THAT(links("http://a.test/d/1", navigation),
              ElementsAre("http://a.test/d/home.html", "http://a.test/d/1?page=2"));
  EXPECT_THAT(links("http://a.test/d/2", navigation), ElementsAre("http://a.test/d/2?page=2"));
  EXPECT_THAT(links("http://a.test/e/2", navigation),
              ElementsAre("http://a.test/e/home.html", "http://a.test/e/2?page=2"));
  EXPECT_THAT(links("http://a.test/d/3", "<base href=/e/><a href=home.html>"), ElementsAre());
}

TEST_F(LinkHarvesterTest, ReportsItAgainInAnotherContext) {
  const char* page = "<a href=q>";
  EXPECT_THAT(links("http://a.test/1", page, "text/html", 1), ElementsAre("http://a.test/q"));
  EXPECT_THAT(links("http://a.test/1", page, "text/html", 1), ElementsAre());
  EXPECT_THAT(links("http://a.test/1", page, "text/html", 2), ElementsAre("http://a.test/q"));
}

TEST_F(LinkHarvesterTest, WritesQueriesInThePagesEncoding) {
  EXPECT_THAT(links("http://a.test/1", "<a href='q?x=\xe9'>", "text/html; charset=windows-1252"),
              ElementsAre("http://a.test/q?x=%E9"));
  EXPECT_THAT(links("http://a.test/2", "<a href='q?x=\xc3\xa9'>"), ElementsAre("http://a.test/q?x=%C3%A9"));
}

TEST_F(LinkHarvesterTest, SaysWhatTheLinkAndThePageAskFor) {
  EXPECT_THAT(links("http://a.test/1", "<a rel=nofollow href=q><a href=r>"),
              ElementsAre("http://a.test/q nofollow", "http://a.test/r"));
  EXPECT_THAT(links("http://a.test/2", "<meta name=robots content=nofollow><a href=s>"), ElementsAre());
  EXPECT_TRUE(summary.nofollow);
  EXPECT_THAT(links("http://a.test/2", "<meta name=argiope content=none><a href=s>"), ElementsAre());
  EXPECT_TRUE(summary.nofollow && summary.noindex);
}

TEST_F(LinkHarvesterTest, CountsWhatItCannotReport) {
  EXPECT_THAT(links("http://a.test/1", "<a href=mailto:x@y><a href='http://[::1'><a href='javascript:1'>"),
              ElementsAre());
  EXPECT_EQ(summary.links, 3u);
  EXPECT_EQ(summary.other_scheme, 2u);
  EXPECT_EQ(summary.invalid, 1u);
}

TEST(LinkHarvester, TellsWhatWasRememberedOfALinkThatIsMetAgain) {
  LinkHarvester harvester("argiope");
  const Url page = *Url::parse("http://a.test/");
  const std::string body = "<a href=/x>x</a><a href=/y>y</a>";
  std::vector<std::uint64_t> again;
  std::uint64_t seen = 0;
  for (int times = 0; times < 2; ++times) {
    PageView view(page, body, "text/html");
    auto summary = harvester.summary_of(view);
    const auto visit = [&](const LinkHarvester::Link& link) -> std::uint64_t {
      ++seen;
      return link.url.href() == "http://a.test/x" ? 7 : 0;
    };
    harvester.follow(view, summary, 0, visit, [&](std::uint64_t what) { again.push_back(what); });
  }
  EXPECT_EQ(seen, 2u);
  EXPECT_EQ(again, std::vector<std::uint64_t>{7}) << "of the other nothing was remembered";
}

// --- the field Refresh

std::string refresh_target(std::string_view field, std::string_view page = "http://a.test/d/p.html?q") {
  Url target;
  return find_refresh(*Url::parse(page), field, target) ? target.href() : std::string{};
}

TEST(RefreshField, IsReadAsAMetaElementIs) {
  for (const char* field : {"0;url=x", "0;url='x'", "0; URL=\"x\"", "5, URL=x", "5,url = 'x' ignored", "5 x", "0;x",
                            ".5;url=x", "  1 ; url=  x", "0;url='x"}) {
    EXPECT_EQ(refresh_target(field), "http://a.test/d/x") << field;
  }
}

TEST(RefreshField, LeadsNowhereWithoutAUrlOrToThePageItself) {
  for (const char* field : {"", "5", "5;", "0;url=", "0;url=''", "url=x", "x", ";url=x", "0;url=p.html?q",
                            "0;url=?q#part", "0;url=http://"}) {
    EXPECT_EQ(refresh_target(field), "") << field;
  }
}

TEST(RefreshField, NamesAUrlThatIsRelativeToThePage) {
  EXPECT_EQ(refresh_target("0;url=//user:secret@b.test/x#part"), "http://b.test/x");
  EXPECT_EQ(refresh_target("0;url=?r"), "http://a.test/d/p.html?r");
  EXPECT_EQ(refresh_target("0;url=/caf\xe9"), "http://a.test/caf%E9") << "bytes as they came";
  EXPECT_EQ(refresh_target("0;url=mailto:x@y.test"), "") << "no URL of the web, as with links";
}

}  // namespace
}  // namespace argiope
