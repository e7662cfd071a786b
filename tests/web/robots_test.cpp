// robots.txt. Tests named Rfc… check a clause of RFC 9309; those named Choice… what we do where it leaves a choice.
#include "argiope/web/robots.hpp"

#include <gtest/gtest.h>

#include "argiope/web/robots_meta.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

bool allowed(std::string_view file, std::string_view path, std::string_view agent = "argiope") {
  return RobotsRules::parse(file, agent).allowed(path);
}

// 2.2.1
TEST(Rfc9309, GroupsAreChosenByProductTokenWithoutRegardToCase) {
  constexpr std::string_view file = "User-Agent: ARGIOPE\nDisallow: /a\n\nuser-agent: *\nDisallow: /b\n";
  EXPECT_FALSE(allowed(file, "/a"));
  EXPECT_TRUE(allowed(file, "/b"));
  EXPECT_FALSE(allowed(file, "/b", "other"));
  EXPECT_TRUE(allowed(file, "/a", "other"));
}

TEST(Rfc9309, GroupsOfTheSameCrawlerAreOne) {
  constexpr std::string_view file =
      "User-agent: argiope\nDisallow: /a\nUser-agent: x\nDisallow: /x\nUser-agent: argiope\nDisallow: /b\n";
  EXPECT_FALSE(allowed(file, "/a"));
  EXPECT_FALSE(allowed(file, "/b"));
  EXPECT_TRUE(allowed(file, "/x"));
}

TEST(Rfc9309, SeveralUserAgentLinesShareAGroup) {
  constexpr std::string_view file = "User-agent: x\nUser-agent: argiope\nUser-agent: y\nDisallow: /a\n";
  EXPECT_FALSE(allowed(file, "/a"));
  EXPECT_FALSE(allowed(file, "/a", "y"));
}

TEST(Rfc9309, WithoutAGroupEverythingIsAllowed) {
  EXPECT_TRUE(allowed("", "/"));
  EXPECT_TRUE(allowed("User-agent: other\nDisallow: /\n", "/x"));
  EXPECT_TRUE(allowed("Disallow: /\n", "/x"));  // a rule outside of any group
}

// 2.2.2
TEST(Rfc9309, TheLongestMatchDecidesAndAllowWinsATie) {
  constexpr std::string_view file = "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b/c\nAllow: /x\nDisallow: /x\n";
  EXPECT_FALSE(allowed(file, "/a/z"));
  EXPECT_TRUE(allowed(file, "/a/b/z"));
  EXPECT_FALSE(allowed(file, "/a/b/cz"));
  EXPECT_TRUE(allowed(file, "/x/y"));
  EXPECT_TRUE(allowed(file, "/else"));
}

TEST(Rfc9309, ComparesPathsPercentNormalised) {
  constexpr std::string_view file = "User-agent: *\nDisallow: /foo/bar?baz=https://foo.bar\nDisallow: /a%62c\nDisallow: /ツ\n"
                                    "Disallow: /slash%2Fed\nDisallow: /low%e3\n";
  EXPECT_FALSE(allowed(file, "/foo/bar?baz=https://foo.bar"));
  EXPECT_FALSE(allowed(file, "/abc"));
  EXPECT_FALSE(allowed(file, "/%E3%83%84"));
  EXPECT_FALSE(allowed(file, "/%e3%83%84"));
  EXPECT_TRUE(allowed(file, "/slash/ed"));
  EXPECT_FALSE(allowed(file, "/slash%2fed"));
  EXPECT_FALSE(allowed(file, "/low%E3"));
}

TEST(Rfc9309, AnEmptyPatternMatchesNothing) { EXPECT_TRUE(allowed("User-agent: *\nDisallow:\n", "/x")); }

TEST(Rfc9309, RobotsTxtItselfIsAlwaysAllowed) { EXPECT_TRUE(allowed("User-agent: *\nDisallow: /\n", "/robots.txt")); }

// 2.2.3
TEST(Rfc9309, StarMatchesAnyRunAndDollarTheEnd) {
  constexpr std::string_view file = "User-agent: *\nDisallow: /*.php$\nDisallow: /a*b*c\nDisallow: /exact$\n";
  EXPECT_FALSE(allowed(file, "/x/y.php"));
  EXPECT_TRUE(allowed(file, "/x/y.php?z"));
  EXPECT_FALSE(allowed(file, "/a/x/b/y/c/z"));
  EXPECT_TRUE(allowed(file, "/acb"));
  EXPECT_FALSE(allowed(file, "/exact"));
  EXPECT_TRUE(allowed(file, "/exactly"));
}

TEST(Rfc9309, CommentsSpacesAndLineEndsDoNotMatter) {
  EXPECT_FALSE(allowed("\xef\xbb\xbfUser-agent : argiope # us\r\n  disallow:\t/a # that\r\r", "/a"));
}

// 2.3.1
TEST(Rfc9309, TheAnswersStatusSaysWhatItMeans) {
  EXPECT_EQ(robots_policy(200), RobotsVerdict::parse);
  EXPECT_EQ(robots_policy(404), RobotsVerdict::allow_all);
  EXPECT_EQ(robots_policy(403), RobotsVerdict::allow_all);
  EXPECT_EQ(robots_policy(500), RobotsVerdict::disallow_all);
  EXPECT_EQ(robots_policy(503), RobotsVerdict::disallow_all);
  EXPECT_EQ(robots_policy(Error{Errc::network, ""}), RobotsVerdict::disallow_all);
  EXPECT_EQ(robots_policy(Error{Errc::timeout, ""}), RobotsVerdict::disallow_all);
  EXPECT_EQ(robots_policy(Error{Errc::not_found, ""}), RobotsVerdict::allow_all);  // too many redirects: unavailable
}

// 2.5
TEST(Rfc9309, AtLeast500KibibytesAreRead) {
  std::string file = "User-agent: *\nDisallow: /early\n";
  while (file.size() < 499 * 1024) file += "# filler\n";
  file += "Disallow: /late\n";
  EXPECT_FALSE(allowed(file, "/late"));
  file.append(10 * 1024, '#');
  file += "\nDisallow: /never\n";
  EXPECT_FALSE(allowed(file, "/early"));
  EXPECT_TRUE(allowed(file, "/never"));
}

TEST(Choice, TooManyRequestsIsTakenAsNo) { EXPECT_EQ(robots_policy(429), RobotsVerdict::disallow_all); }

TEST(Choice, CrawlDelayIsReadForTheGroupAndBounded) {
  EXPECT_EQ(RobotsRules::parse("User-agent: *\nCrawl-delay: 1.5\n", "a").crawl_delay(), 1500ms);
  EXPECT_EQ(RobotsRules::parse("User-agent: b\nCrawl-delay: 2\n", "a").crawl_delay(), std::nullopt);
  EXPECT_EQ(RobotsRules::parse("User-agent: *\nCrawl-delay: 1e9\n", "a").crawl_delay(), RobotsRules::kLongestCrawlDelay);
  EXPECT_EQ(RobotsRules::parse("User-agent: *\nCrawl-delay: -1\nCrawl-delay: soon\n", "a").crawl_delay(), std::nullopt);
}

TEST(Choice, SitemapsBelongToNoGroupAndEndNone) {
  const auto rules = RobotsRules::parse("User-agent: a\nSitemap: http://h/s.xml\nDisallow: /x\n", "a");
  EXPECT_EQ(rules.sitemaps(), std::vector<std::string>{"http://h/s.xml"});
  EXPECT_FALSE(rules.allowed("/x"));
}

TEST(Choice, HostilePatternsCostNoMoreThanTheirLength) {
  std::string file = "User-agent: *\n";
  for (int i = 0; i < 50; ++i) file += "Disallow: /" + std::string(100, '*') + "a*a*a*a*a*a*a*a*b\n";
  EXPECT_TRUE(allowed(file, "/" + std::string(2000, 'a')));
}

TEST(RobotsTag, IsReadForUsAndForEverybody) {
  EXPECT_TRUE(parse_robots_tag("NoFollow", "argiope").nofollow);
  EXPECT_TRUE(parse_robots_tag("none", "argiope").noindex);
  EXPECT_TRUE(parse_robots_tag("otherbot: noindex\nargiope: nofollow", "Argiope").nofollow);
  EXPECT_FALSE(parse_robots_tag("otherbot: nofollow", "argiope").nofollow);
  EXPECT_TRUE(parse_robots_tag("unavailable_after: 25 Jun 2030 15:00:00 PST, nofollow", "argiope").nofollow);
  EXPECT_FALSE(parse_robots_tag("", "argiope").nofollow);
}

}  // namespace
}  // namespace argiope
