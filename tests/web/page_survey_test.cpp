// The survey of pages: assets, what fragments may name, what the head says, and lines. That its links are those of the
// link scanner is shown on made and damaged pages here, and on any bytes by fuzz/page_survey.cpp.
#include "web/html/internal/page_survey.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// "line kind url".
std::vector<std::string> surveyed(std::string_view html) {
  std::vector<std::string> out;
  for (const PageSurvey survey = survey_page(html); const SurveyedLink& link : survey.links) {
    out.push_back(fmt::format("{} {} {}", link.line, to_string(link.kind), link.url));
  }
  return out;
}

TEST(PageSurvey, FindsWhatABrowserFetchesToShowThePage) {
  EXPECT_THAT(
      surveyed("<link rel='shortcut icon' href=i><link rel=stylesheet href=s.css><script src=a.js></script>\n"
               "<img src='p.png' alt=p><video src=v poster=q></video><audio><source src=u><track src=t></audio>\n"
               "<embed src=e><object data=o></object><input type=image src=n><input src=no><td background=b>"),
      ElementsAre("1 icon i", "1 stylesheet s.css", "1 script a.js", "2 image p.png", "2 media v", "2 image q",
                  "2 media u", "2 media t", "3 embedded e", "3 embedded o", "3 image n", "3 image b"));
}

TEST(PageSurvey, FindsAssetsInSrcsetsAndStyles) {
  EXPECT_THAT(
      surveyed(
          "<img srcset=\"a.png 1x, b.png?x=1,2 2x\">\n<style>p { background:\nurl(c.png) }\n@import 'd.css';</style>"
          "<p style='background:url(\"e.png\")'>"),
      ElementsAre("1 image a.png", "1 image b.png?x=1,2", "3 css c.png", "4 stylesheet d.css", "4 css e.png"));
}

TEST(PageSurvey, FindsAssetsOfPicturesButNotWhatTheyHaveWithinThemselves) {
  EXPECT_THAT(
      surveyed("<svg><image xlink:href=a.png /><use href='#b'/><use href=c.svg#d /><a xlink:href=e>x</a></svg>"),
      ElementsAre("1 image a.png", "1 image c.svg#d", "1 anchor e"));
}

TEST(PageSurvey, CountsLinesFromOneToWhereATagBegins) {
  EXPECT_THAT(surveyed("<a\nhref=1>\n\n<!-- \n --><a href=2><script>\n\n</script><a href=3>"),
              ElementsAre("1 anchor 1", "5 anchor 2", "7 anchor 3"));
}

TEST(PageSurvey, KnowsWhatFragmentsMayName) {
  const PageSurvey survey = survey_page(
      "<p ID=a><a name='b &amp; c'></a><a id=d name=e><input name=no><svg id=f></svg><p id=''>"
      "<!-- <p id=no> --><script>'<p id=no>'</script>");
  EXPECT_THAT(survey.ids, ElementsAre("a", "b & c", "d", "e", "f"));
  EXPECT_TRUE(survey.has_all_ids);
  EXPECT_FALSE(survey_page("<p id=a><p id=b>", {.max_ids = 1}).has_all_ids);
  EXPECT_FALSE(survey_page("<p id=aaaa>", {.max_value_bytes = 3}).has_all_ids);
}

TEST(PageSurvey, ReadsTitleDescriptionAndHeading) {
  const PageSurvey survey = survey_page(
      "<title>\n  A &lt;title&gt;\n of it </title><meta content=' What  it\nis ' name=Description><h1 class=x>The "
      "<b>first</b>\n"
      "one</h1><h1>second</h1><svg><title>no</title></svg><link rel='canonical' href='/c?a&amp;b'>"
      "<meta name=robots content=noindex>");
  EXPECT_EQ(survey.title, "A <title> of it");
  EXPECT_EQ(survey.titles, 1u);
  EXPECT_EQ(survey.description, "What it is");
  EXPECT_EQ(survey.heading, "The first one");
  EXPECT_EQ(survey.headings, 2u);
  EXPECT_EQ(survey.canonical, "/c?a&b");
  EXPECT_TRUE(survey.robots.noindex);
  EXPECT_EQ(survey_page("<p>x").titles, 0u);
}

TEST(PageSurvey, WhatATemplateSaysOfThePageDoesNotCount) {
  const PageSurvey survey = survey_page(
      "<template><title>a</title><h1>a</h1><base href=/a/><link rel=canonical href=/a><meta name=description content=a>"
      "<meta name=robots content=noindex></template><title>b</title><h1>b</h1><base href=/b/><link rel=canonical "
      "href=/b>");
  EXPECT_EQ(survey.title, "b");
  EXPECT_EQ(survey.titles, 1u);
  EXPECT_EQ(survey.heading, "b");
  EXPECT_EQ(survey.base_href, "/b/");
  EXPECT_EQ(survey.canonical, "/b");
  EXPECT_EQ(survey.descriptions, 0u);
  EXPECT_FALSE(survey.robots.noindex);
}

TEST(PageSurvey, CutsTextsBetweenCharacters) {
  const PageSurvey survey = survey_page("<title>aé é</title>", {.max_text_bytes = 2});
  EXPECT_EQ(survey.title, "a");
}

TEST(PageSurvey, TellsRelationsAndWhatStandsForAPicture) {
  const PageSurvey survey =
      survey_page("<a rel='NoFollow me' href=a>text</a><img alt='a &quot;cat&quot;' src=b><area alt=c href=d>");
  ASSERT_EQ(survey.links.size(), 3u);
  EXPECT_EQ(survey.links[0].rel, "NoFollow me");
  EXPECT_TRUE(survey.links[0].nofollow);
  EXPECT_EQ(survey.links[1].label, "a \"cat\"");
  EXPECT_EQ(survey.links[2].label, "c");
}

TEST(PageSurvey, DropsAndCountsWhatIsBeyondItsLimits) {
  const PageSurvey few = survey_page("<a href=1><img src=2><a href=3><img srcset='4, 5'>", {.max_links = 2});
  EXPECT_EQ(few.links.size(), 2u);
  EXPECT_GE(few.dropped, 1u);
  EXPECT_EQ(survey_page("<a href=123456><a href=1>", {.max_value_bytes = 3}).links.size(), 1u);
}

TEST(PageSurvey, TakesAPageThatEndsAnywhere) {
  const std::string_view html =
      "<title>t</title><a href='x' id=i>\n<img srcset='a 1x' style='b:url(c)'><style>url(d)</style><h1>h";
  for (std::size_t size = 0; size <= html.size(); ++size) (void)survey_page(html.substr(0, size));
}

TEST(PageSurvey, FindsTheLinksThatTheLinkScannerFindsWhateverThePageIs) {
  constexpr std::string_view kPieces[] = {"<a href=x rel=nofollow>",
                                          "<a\nhref='y\"z'>",
                                          "<area href=r>",
                                          "<base href=q>",
                                          "<link rel=next href=n>",
                                          "<!--",
                                          "-->",
                                          "--!>",
                                          "<script>",
                                          "</script>",
                                          "<style>",
                                          "</style>",
                                          "<title>",
                                          "</title>",
                                          "<textarea>",
                                          "</textarea>",
                                          "<svg>",
                                          "</svg>",
                                          "<title/>",
                                          "<style/>",
                                          "<desc>",
                                          "<![CDATA[",
                                          "]]>",
                                          "<iframe src=i>",
                                          "</iframe>",
                                          "<meta http-equiv=refresh content=1;url=m>",
                                          "<img src=p>",
                                          "<p id=a style='b:url(c)'>",
                                          "\"",
                                          "'",
                                          ">",
                                          "<",
                                          "/",
                                          "=",
                                          " ",
                                          "&amp;",
                                          "<link rel='icon author' href=l>",
                                          "<?x",
                                          "<!d"};
  Random random(11);
  std::size_t links = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string html;
    for (auto n = random.below(60); n > 0; --n) html += kPieces[random.below(std::size(kPieces))];
    ScanResult scanned;
    scan_links(html, {}, scanned);
    const PageSurvey survey = survey_page(html);
    std::vector<std::string> expected, found;
    for (const ScannedLink& link : scanned.links) {
      expected.push_back(fmt::format("{} {} {}", to_string(link.kind), link.url, link.nofollow));
    }
    for (const SurveyedLink& link : survey.links) {
      if (is_followed(link.kind))
        found.push_back(fmt::format("{} {} {}", to_string(link.kind), link.url, link.nofollow));
    }
    links += found.size();
    ASSERT_EQ(found, expected) << html;
    ASSERT_EQ(survey.base_href, scanned.base_href) << html;
  }
  EXPECT_GT(links, 1000u);
}

}  // namespace
}  // namespace argiope
