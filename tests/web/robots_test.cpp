// robots.txt, and robots directives in headers. Tests named Rfc9309 check a clause of that RFC (its number is above
// them); those named Google what Google documents and does beyond it and we do too; those named Choice what is our own.
#include "argiope/web/robots.hpp"

#include <gtest/gtest.h>

#include "argiope/base/random.hpp"
#include "argiope/web/detail/robots_meta.hpp"

namespace argiope {
namespace {

using namespace std::literals;

bool allowed(std::string_view file, std::string_view path, std::string_view agent = "argiope") {
  return RobotsRules::parse(file, agent).allowed(path);
}
// Whether a rule with `pattern` matches `path`.
bool matches(std::string_view pattern, std::string_view path) {
  return !allowed("User-agent: *\nDisallow: " + std::string(pattern), path);
}

// 2.2.1
TEST(Rfc9309, GroupsAreChosenByProductTokenWithoutRegardToCase) {
  constexpr std::string_view file = "User-Agent: ARGIOPE\nDisallow: /a\n\nuser-agent: *\nDisallow: /b\n";
  EXPECT_FALSE(allowed(file, "/a"));
  EXPECT_TRUE(allowed(file, "/b"));
  EXPECT_FALSE(allowed(file, "/b", "other"));
  EXPECT_TRUE(allowed(file, "/a", "other"));
}

TEST(Rfc9309, TheProductTokenMatchesWholeAndNotItsBeginning) {
  constexpr std::string_view file = "User-agent: argio\nDisallow: /a\nUser-agent: argiope-images\nDisallow: /b\n";
  EXPECT_TRUE(allowed(file, "/a"));
  EXPECT_TRUE(allowed(file, "/b"));
  EXPECT_FALSE(allowed(file, "/b", "Argiope-Images"));
}

TEST(Rfc9309, TheGroupForEverybodyCountsOnlyWhereNoneNamesUs) {
  // ... even where the group that does has no rule.
  EXPECT_TRUE(allowed("User-agent: *\nDisallow: /\n\nUser-agent: argiope\nDisallow:\n", "/a"));
  EXPECT_TRUE(allowed("User-agent: argiope\n\nUser-agent: x\nAllow: /\nUser-agent: *\nDisallow: /\n", "/a"));
  EXPECT_FALSE(allowed("User-agent: *\nDisallow: /a\nUser-agent: *\nDisallow: /b", "/b"));
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
  constexpr std::string_view file =
      "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b/c\nAllow: /x\nDisallow: /x\n";
  EXPECT_FALSE(allowed(file, "/a/z"));
  EXPECT_TRUE(allowed(file, "/a/b/z"));
  EXPECT_FALSE(allowed(file, "/a/b/cz"));
  EXPECT_TRUE(allowed(file, "/x/y"));
  EXPECT_TRUE(allowed(file, "/else"));
}

TEST(Rfc9309, ComparesPathsPercentNormalised) {
  constexpr std::string_view file =
      "User-agent: *\nDisallow: /foo/bar?baz=https://foo.bar\nDisallow: /a%62c\nDisallow: /ツ\n"
      "Disallow: /slash%2Fed\nDisallow: /low%e3\n";
  EXPECT_FALSE(allowed(file, "/foo/bar?baz=https://foo.bar"));
  EXPECT_FALSE(allowed(file, "/abc"));
  EXPECT_FALSE(allowed(file, "/%E3%83%84"));
  EXPECT_FALSE(allowed(file, "/%e3%83%84"));
  EXPECT_TRUE(allowed(file, "/slash/ed"));
  EXPECT_FALSE(allowed(file, "/slash%2fed"));
  EXPECT_FALSE(allowed(file, "/low%E3"));
}

TEST(Rfc9309, TheTableOfExamplesOfPercentEncodingHolds) {
  EXPECT_TRUE(matches("/foo/bar?baz=quz", "/foo/bar?baz=quz"));
  EXPECT_TRUE(matches("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"));
  EXPECT_TRUE(matches("/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https://foo.bar"));
  EXPECT_TRUE(matches("/foo/bar/ツ", "/foo/bar/%E3%83%84"));
  EXPECT_TRUE(matches("/foo/bar/%E3%83%84", "/foo/bar/ツ"));
  EXPECT_TRUE(matches("/foo/bar/%62%61%7A", "/foo/bar/baz"));
  EXPECT_TRUE(matches("/foo/bar/baz", "/foo/bar/%62%61%7a"));
}

TEST(Rfc9309, ASeparatorIsNotItsEscape) {
  EXPECT_FALSE(matches("/a%2Fb", "/a/b"));
  EXPECT_FALSE(matches("/a/b", "/a%2Fb"));
  EXPECT_TRUE(matches("/a%2fb", "/a%2Fb"));
  EXPECT_FALSE(matches("/a?b", "/a%3Fb"));
  EXPECT_FALSE(matches("/a?x=1%26y", "/a?x=1&y"));
  EXPECT_TRUE(matches("/a?x=1%26y", "/a?x=1%26y"));
  // In a query "/" separates nothing, wherever the pattern has it from.
  EXPECT_TRUE(matches("/*to=%2F", "/go?to=%2Fhome"));
  EXPECT_TRUE(matches("/*to=%2F", "/go?to=/home"));
  EXPECT_TRUE(matches("/*/home", "/go?to=%2Fhome"));
  EXPECT_FALSE(matches("/*%2Fhome$", "/x/home?"));
}

TEST(Rfc9309, ReservedCharactersThatSeparateNothingMatchTheirEscapes) {
  EXPECT_TRUE(matches("/a(1);b=c,d", "/a%281%29%3Bb=c%2cd"));
  EXPECT_TRUE(matches("/*?x%5B%5D=", "/p?x[]=1"));
  EXPECT_TRUE(matches("/*?x[]=", "/p?x%5B%5D=1"));
  EXPECT_TRUE(matches("/{id}|<x>", "/%7Bid%7D%7c%3Cx%3E"));
  EXPECT_TRUE(matches("/a b", "/a%20b"));
}

TEST(Rfc9309, APercentSignThatBeginsNoEscapeIsItself) {
  EXPECT_TRUE(matches("/100%", "/100%"));
  EXPECT_TRUE(matches("/100%", "/100%25"));
  EXPECT_FALSE(matches("/%%411", "/%A1"));
  EXPECT_TRUE(matches("/%zz", "/%zz%4"));
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

TEST(Rfc9309, SpecialCharactersAreMatchedByTheirEscapes) {
  EXPECT_TRUE(matches("/path/file-with-a-%2A.html", "/path/file-with-a-*.html"));
  EXPECT_FALSE(matches("/path/file-with-a-%2A.html", "/path/file-with-a-b.html"));
  EXPECT_TRUE(matches("/path/foo-%24", "/path/foo-$bar"));
  EXPECT_TRUE(matches("/path/foo-%24$", "/path/foo-%24"));
  EXPECT_FALSE(matches("/path/foo-%24", "/path/foo-"));
}

TEST(Rfc9309, ADollarBeforeTheEndIsItself) {
  EXPECT_TRUE(matches("/a$b", "/a$bc"));
  EXPECT_TRUE(matches("/a$$", "/a$"));
  EXPECT_FALSE(matches("/a$$", "/a"));
}

TEST(Rfc9309, PatternsAreComparedWithRespectToCase) {
  EXPECT_FALSE(matches("/Fish", "/fish"));
  EXPECT_FALSE(matches("/*.php", "/windows.PHP"));
}

// 2.2.4
TEST(Rfc9309, OtherRecordsDoNotEndAGroup) {
  constexpr std::string_view file =
      "User-agent: argiope\nSitemap: http://h/s.xml\nCrawl-delay: 3\nHost: h\nUser-agent: b\nDisallow: /x\n";
  EXPECT_FALSE(allowed(file, "/x"));
  EXPECT_FALSE(allowed(file, "/x", "b"));
  EXPECT_FALSE(allowed("User-agent: b\nDisallow: /x\nSitemap: http://h/s\nDisallow: /y\n", "/y", "b"));
}

TEST(Rfc9309, CommentsSpacesAndLineEndsDoNotMatter) {
  EXPECT_FALSE(allowed("User-agent: argiope\rDisallow: /a\r", "/a"));
  EXPECT_FALSE(allowed("# us\n\n  User-agent: argiope\n\n\nDisallow: /a#bc", "/ad"));
  EXPECT_FALSE(allowed("\xef\xbb\xbfUser-agent : argiope # us\r\n  disallow:\t/a # that\r\r", "/a"));
}

// 2.3.1
TEST(Rfc9309, TheAnswersStatusSaysWhatItMeans) {
  EXPECT_EQ(robots_policy(200), RobotsVerdict::parse);
  EXPECT_EQ(robots_policy(204), RobotsVerdict::parse);
  EXPECT_EQ(robots_policy(302), RobotsVerdict::allow_all);  // followed as far as it goes
  EXPECT_EQ(robots_policy(400), RobotsVerdict::allow_all);
  EXPECT_EQ(robots_policy(401), RobotsVerdict::allow_all);
  EXPECT_EQ(robots_policy(404), RobotsVerdict::allow_all);
  EXPECT_EQ(robots_policy(499), RobotsVerdict::allow_all);
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

// 2.4
TEST(Rfc9309, LinesThatAreNotUnderstoodAreSkipped) {
  EXPECT_FALSE(allowed("<html>\nUser-agent: *\n:\n: /b\n\0\nnonsense\nDisallow: /a\nDisallow"sv, "/a"));
  EXPECT_TRUE(allowed("<html><body>It works! http://example.org/</body></html>", "/a"));
}

TEST(Choice, ALineCutByTheLimitDoesNotCount) {
  const std::string start = "User-agent: *\nDisallow: /early\n";
  std::string file = start + std::string(RobotsRules::kMostBytes - start.size() - 14, '#') + "\n";
  file += "Disallow: /abcdef\n";
  ASSERT_EQ(file.substr(0, RobotsRules::kMostBytes).substr(RobotsRules::kMostBytes - 13), "Disallow: /ab");
  EXPECT_TRUE(allowed(file, "/abc"));
  EXPECT_TRUE(allowed(file.substr(0, RobotsRules::kMostBytes), "/abc"));  // whoever fetched it may have cut it as well
  EXPECT_FALSE(allowed(file, "/early"));
}

TEST(Google, UserAgentsAreReadUpToWhatIsNoTokenAnyMore) {
  EXPECT_FALSE(allowed("User-agent: argiope/1.0 (bot)\nDisallow: /a\n", "/a"));
  EXPECT_FALSE(allowed("User-agent: Argiope Images\nDisallow: /a\n", "/a", "argiope/2.0"));
  EXPECT_FALSE(allowed("User-agent: * # all\nDisallow: /a\n", "/a"));
  EXPECT_TRUE(allowed("User-agent: *bot\nDisallow: /a\n", "/a"));
  EXPECT_TRUE(allowed("User-agent:\nDisallow: /a\n", "/a", ""));
}

TEST(Google, AForgottenColonIsSupplied) {
  EXPECT_FALSE(allowed("user-agent argiope\ndisallow /a # no\n", "/a"));
  EXPECT_TRUE(allowed("user-agent argiope\ndisallow /a or b\n", "/a"));
}

TEST(Google, CommonMisspellingsAreUnderstood) {
  for (const std::string key : {"Dissallow", "dissalow", "Disalow", "diasllow", "DISALLAW"}) {
    EXPECT_FALSE(allowed("User-agent: *\n" + key + ": /a\n", "/a")) << key;
  }
  EXPECT_FALSE(allowed("useragent: *\nDisallow: /a\n", "/a"));
  EXPECT_FALSE(allowed("user agent: *\nDisallow: /a\n", "/a"));
}

TEST(Google, TheDocumentedExamplesOfPrecedenceHold) {
  const auto both = [](std::string_view allow, std::string_view disallow, std::string_view path) {
    return allowed("User-agent: *\nAllow: " + std::string(allow) + "\nDisallow: " + std::string(disallow) + "\n", path);
  };
  EXPECT_TRUE(both("/p", "/", "/page"));
  EXPECT_TRUE(both("/folder", "/folder", "/folder/page"));
  EXPECT_FALSE(both("/page", "/*.htm", "/page.htm"));
  EXPECT_TRUE(both("/$", "/", "/"));
  EXPECT_FALSE(both("/$", "/", "/page.htm"));
  EXPECT_TRUE(both("/page", "/*.ph", "/page.php5"));
}

TEST(Choice, APatternWithoutItsSlashIsGivenOne) {
  EXPECT_TRUE(matches("private/", "/private/x"));
  EXPECT_TRUE(matches("*.pdf$", "/a/b.pdf"));
}

TEST(Choice, DigitsBelongToAName) {
  EXPECT_TRUE(allowed("User-agent: argiope2\nDisallow: /a\n", "/a"));
  EXPECT_FALSE(allowed("User-agent: argiope2\nDisallow: /a\n", "/a", "argiope2"));
}

TEST(Choice, AFileInUtf16IsReadByItsMark) {
  std::string little = "\xff\xfe", big = "\xfe\xff";
  for (const char c : std::string_view("User-agent: *\r\nDisallow: /a\r\n")) {
    little.append({c, '\0'});
    big.append({'\0', c});
  }
  for (const std::string& file : {little, big}) {
    EXPECT_FALSE(allowed(file, "/a"));
    EXPECT_TRUE(allowed(file, "/b"));
  }
}

TEST(Choice, RulesThatHaveNotChangedAreNotKnown) { EXPECT_EQ(robots_policy(304), RobotsVerdict::disallow_all); }

TEST(Choice, TooManyRequestsIsTakenAsNo) { EXPECT_EQ(robots_policy(429), RobotsVerdict::disallow_all); }

TEST(Choice, CrawlDelayIsReadForTheGroupAndBounded) {
  EXPECT_EQ(RobotsRules::parse("User-agent: *\nCrawl-delay: 1.5\n", "a").crawl_delay(), 1500ms);
  EXPECT_EQ(RobotsRules::parse("User-agent: b\nCrawl-delay: 2\n", "a").crawl_delay(), std::nullopt);
  EXPECT_EQ(RobotsRules::parse("User-agent: *\nCrawl-delay: 1e9\n", "a").crawl_delay(),
            RobotsRules::kLongestCrawlDelay);
  EXPECT_EQ(RobotsRules::parse("User-agent: *\nCrawl-delay: 1e400\n", "a").crawl_delay(),
            RobotsRules::kLongestCrawlDelay);
  EXPECT_EQ(RobotsRules::parse("User-agent: *\nCrawl-delay: 1e-400\n", "a").crawl_delay(), 0s);
  EXPECT_EQ(RobotsRules::parse("User-agent: *\nCrawl-delay: 10s\nCrawl-delay: 2\n", "a").crawl_delay(), 10s);
  // For those named so far, as other records are no part of the group's making.
  EXPECT_EQ(RobotsRules::parse("User-agent: b\nCrawl-delay: 2\nUser-agent: a\nDisallow: /\n", "a").crawl_delay(),
            std::nullopt);
  for (const char* half : {"0.5", "0,5", "+.5", "5e-1", "0.5s", "0,50 # seconds"}) {
    EXPECT_EQ(RobotsRules::parse("User-agent: *\nCrawl-delay: " + std::string(half), "a").crawl_delay(), 500ms) << half;
  }
  EXPECT_EQ(RobotsRules::parse("User-agent: *\nCrawl-delay: -1\nCrawl-delay: soon\n", "a").crawl_delay(), std::nullopt);
}

TEST(Choice, SitemapsBelongToNoGroupAndEndNone) {
  const auto rules = RobotsRules::parse("User-agent: a\nSitemap: http://h/s.xml\nDisallow: /x\n", "a");
  EXPECT_EQ(rules.sitemaps(), std::vector<std::string>{"http://h/s.xml"});
  EXPECT_FALSE(rules.allowed("/x"));
}

TEST(Choice, SitemapsAreBounded) {
  std::string file;
  for (std::size_t i = 0; i < RobotsRules::kMostSitemaps + 5; ++i) file += "Sitemap: http://h/\n";
  EXPECT_EQ(RobotsRules::parse(file, "a").sitemaps().size(), RobotsRules::kMostSitemaps);
}

TEST(Choice, AFileThatTakesTooLongToJudgeAPathForbidsIt) {
  const std::string path = "/" + std::string(2000, 'a');
  std::string file = "User-agent: *\n";
  for (int i = 0; i < 50; ++i) file += "Disallow: /" + std::string(100, '*') + "a*a*a*a*a*a*a*a*b\n";
  EXPECT_TRUE(allowed(file, path));  // bad, but not that bad
  for (int i = 0; i < 1000; ++i) file += "Disallow: /*" + std::string(300, 'a') + "b\n";
  EXPECT_FALSE(allowed(file, path));
  EXPECT_TRUE(allowed(file, "/b"));
}

// Whether `pattern` matches `path` by the definition: no normalisation, and every way to read a "*" tried.
bool defined_to_match(std::string_view pattern, std::string_view path) {
  if (pattern.empty()) return true;
  if (pattern == "$") return path.empty();
  if (pattern.front() == '*') {
    return defined_to_match(pattern.substr(1), path) || (!path.empty() && defined_to_match(pattern, path.substr(1)));
  }
  return !path.empty() && path.front() == pattern.front() && defined_to_match(pattern.substr(1), path.substr(1));
}

TEST(RobotsRules, AgreeWithTheDefinitionOnRandomFiles) {
  Random random(9309);
  const auto text = [&](std::string_view letters, std::size_t most) {
    std::string made = "/";
    for (std::size_t size = random.below(most); size > 0; --size) made += letters[random.below(letters.size())];
    return made;
  };
  for (int round = 0; round < 20'000; ++round) {
    std::string file = "User-agent: *\n";
    std::vector<std::pair<std::string, bool>> rules;
    for (std::size_t count = random.below(5); count > 0; --count) {
      const bool allow = random.below(2) == 0;
      rules.emplace_back(text("ab/*", 12) + (random.below(4) == 0 ? "$" : ""), allow);
      file += (allow ? "Allow: " : "Disallow: ") + rules.back().first + "\n";
    }
    const std::string path = text("aab/", 20);
    bool expected = true;
    std::size_t longest = 0;
    for (const auto& [pattern, allow] : rules) {
      if (!defined_to_match(pattern, path) || pattern.size() < longest) continue;
      expected = allow || (pattern.size() == longest && expected && longest > 0);
      longest = pattern.size();
    }
    ASSERT_EQ(allowed(file, path), expected) << file << path;
  }
}

TEST(RobotsTag, IsReadForUsAndForEverybody) {
  EXPECT_TRUE(parse_robots_tag("NoFollow", "argiope").nofollow);
  EXPECT_TRUE(parse_robots_tag("none", "argiope").noindex);
  EXPECT_TRUE(parse_robots_tag("otherbot: noindex\nargiope: nofollow", "Argiope").nofollow);
  EXPECT_TRUE(parse_robots_tag("*: nofollow", "argiope").nofollow);
  EXPECT_FALSE(parse_robots_tag("otherbot: nofollow", "argiope").nofollow);
  EXPECT_FALSE(parse_robots_tag("", "argiope").nofollow);
}

TEST(RobotsTag, NamesInOneFieldAreToldApart) {
  const auto us = parse_robots_tag("noindex, otherbot: noindex, nofollow", "argiope");
  EXPECT_TRUE(us.noindex);
  EXPECT_FALSE(us.nofollow);
  EXPECT_TRUE(parse_robots_tag("otherbot: noindex, argiope: noarchive, nofollow", "argiope").nofollow);
}

TEST(RobotsTag, DirectivesWithValuesNameNobody) {
  EXPECT_TRUE(parse_robots_tag("unavailable_after: 25 Jun 2030 15:00:00 PST, nofollow", "argiope").nofollow);
  EXPECT_TRUE(parse_robots_tag("unavailable_after: Friday, 25-Jun-30 15:00:00 PST, nofollow", "argiope").nofollow);
  EXPECT_TRUE(parse_robots_tag("max-snippet:-1, max-image-preview: none, nofollow", "argiope").nofollow);
  EXPECT_FALSE(parse_robots_tag("max-image-preview: none", "argiope").noindex);
}

TEST(RobotsMeta, IsAListOfWords) {
  RobotsDirectives directives;
  directives.add("index,follow, max-snippet:20");
  EXPECT_FALSE(directives.noindex || directives.nofollow);
  directives.add("NOINDEX nofollow");
  EXPECT_TRUE(directives.noindex && directives.nofollow);
}

}  // namespace
}  // namespace argiope
