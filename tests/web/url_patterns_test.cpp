#include "web/url/internal/url_patterns.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "argiope/web/url.hpp"

namespace argiope {
namespace {

bool fits(const std::string& pattern, const std::string& url) {
  const auto compiled = UrlPatterns::compile({pattern});
  EXPECT_TRUE(compiled) << (compiled ? "" : compiled.error().message);
  const auto parsed = Url::parse(url);
  EXPECT_TRUE(parsed) << url;
  return compiled && parsed && compiled->match(parsed->href());
}
std::string refused(const std::string& pattern) {
  const auto compiled = UrlPatterns::compile({pattern});
  EXPECT_FALSE(compiled) << pattern;
  return compiled ? "" : compiled.error().message;
}

struct Fit {
  const char* pattern;
  std::vector<const char*> fits, others;
};
void expect_fits(const std::vector<Fit>& table) {
  for (const Fit& row : table) {
    for (const char* url : row.fits) EXPECT_TRUE(fits(row.pattern, url)) << row.pattern << ' ' << url;
    for (const char* url : row.others) EXPECT_FALSE(fits(row.pattern, url)) << row.pattern << ' ' << url;
  }
}

TEST(UrlPatterns, AGlobThatBeginsWithASlashIsComparedWithThePathOfAnyHost) {
  expect_fits({
      {"/docs/**",
       {"http://a.test/docs/", "https://b.test:8080/docs/x/y.html"},
       {"http://a.test/", "http://a.test/docs", "http://a.test/x/docs/y"}},
      {"/*.html", {"http://a.test/x.html"}, {"http://a.test/x/y.html", "http://a.test/x.htm"}},
      {"/", {"http://a.test/", "http://a.test/?x"}, {"http://a.test/x"}},
      {"/a/**/z",
       {"http://a.test/a/z", "http://a.test/a/b/z", "http://a.test/a/b/c/z"},
       {"http://a.test/az", "http://a.test/a/bz"}},
  });
}

TEST(UrlPatterns, AGlobWithASlashElsewhereIsComparedWithTheWholeUrl) {
  expect_fits({
      {"https://example.org/**",
       {"https://example.org/", "https://example.org/x"},
       {"http://example.org/", "https://www.example.org/"}},
      {"https://example.org", {"https://example.org/"}, {"https://example.org/x"}},
      {"HTTPS://Example.ORG/Docs/**",
       {"https://example.org/Docs/x"},
       {"http://example.org/Docs/x", "https://example.org/docs/x"}},
      {"//example.org/**",
       {"https://example.org/", "http://example.org/x/y"},
       {"https://www.example.org/", "http://a.test//example.org/x"}},
      {"//example.org", {"https://example.org/"}, {"https://example.org/x"}},
      {"https://example.org:443/**", {"https://example.org/x"}, {"https://example.org:444/x"}},
      {"http://example.org:80", {"http://example.org/"}, {"http://example.org:8080/"}},
      {"example.org:443/**",
       {"https://example.org/x", "http://example.org:443/x"},
       {"http://example.org/x", "https://example.org:444/x"}},
      {"//*.example.org:80/a", {"http://www.example.org/a"}, {"https://www.example.org/a", "http://www.example.org/b"}},
      {"http{,s}://example.org:443", {"https://example.org/"}, {"http://example.org/"}},
      {"https://**",
       {"https://example.org/", "https://example.org/x", "https://example.org/x/y?z"},
       {"http://example.org/"}},
      {"https://**.pdf", {"https://example.org/x/y.pdf", "https://example.pdf/"}, {"https://example.org/x.pdf/y"}},
      {"*://**example.org", {"https://example.org/", "http://www.example.org/"}, {"http://www.example.org/x"}},
      {"https://{a,**}", {"https://a/", "https://b/x"}, {"http://a/"}},
      {"https://**/*",
       {"https://example.org/", "https://example.org/x", "https://example.org/x/y"},
       {"http://example.org/"}},
      {"https://*", {"https://example.org/"}, {"https://example.org/x"}},
      {"http{,s}://example.org/x", {"http://example.org/x", "https://example.org/x"}, {}},
      {"example.org/docs/*",
       {"http://example.org/docs/x", "https://example.org/docs/"},
       {"http://example.org/docs/x/y", "http://www.example.org/docs/x"}},
      {"*.example.org/**",
       {"http://a.example.org/x", "http://a.b.example.org/"},
       {"http://example.org/", "http://x.test/?a.example.org/"}},
      {"**/private/**",
       {"http://a.test/private/", "http://a.test/x/private/y/z"},
       {"http://a.test/private", "http://a.test/xprivate/y"}},
      {"http://[::1]:8080/**", {"http://[::1]:8080/x"}, {"http://[::2]:8080/x"}},
      {"Example.ORG/X", {"http://example.org/X"}, {"http://example.org/x"}},
  });
}

TEST(UrlPatterns, AGlobWithoutASlashIsComparedWithTheWholeUrlAndItsStarCrossesSlashes) {
  expect_fits({
      {"*.pdf",
       {"http://a.test/x/y.pdf", "http://a.test/y.pdf?download=1"},
       {"http://a.test/pdf", "http://a.test/x.pdf.html"}},
      {"*facebook*", {"https://www.facebook.com/", "https://a.test/share?to=facebook"}, {"https://a.test/"}},
      {"*", {"https://a.test/", "https://a.test/x/y?z"}, {}},
  });
}

TEST(UrlPatterns, AQueryMayFollowWhateverAGlobCovers) {
  expect_fits({
      {"/search", {"http://a.test/search", "http://a.test/search?q=1"}, {"http://a.test/searching"}},
      {"/search?q=*",
       {"http://a.test/search?q=1", "http://a.test/search?q=a/b"},
       {"http://a.test/search", "http://a.test/search?p=1"}},
      {"/**?sort=*", {"http://a.test/x/y?sort=price"}, {"http://a.test/x/y?page=2"}},
      {"/*.html", {"http://a.test/x.html?y"}, {"http://a.test/x.php?f=y.html"}},
  });
}

TEST(UrlPatterns, ClassesAlternativesAndSingleCharactersAreThoseOfShells) {
  expect_fits({
      {"/page[0-9]", {"http://a.test/page3"}, {"http://a.test/pagex", "http://a.test/page33"}},
      {"/page[!0-9]", {"http://a.test/pagex"}, {"http://a.test/page3", "http://a.test/page/"}},
      {"/[]a]", {"http://a.test/]", "http://a.test/a"}, {"http://a.test/b"}},
      {"/*.{jpg,p{ng,df}}",
       {"http://a.test/x.jpg", "http://a.test/x.png", "http://a.test/x.pdf"},
       {"http://a.test/x.pjpg"}},
      {"/a?c", {"http://a.test/abc"}, {"http://a.test/ac", "http://a.test/a/c"}},
      {"/a.c", {"http://a.test/a.c"}, {"http://a.test/abc"}},
      {"/a(b|c)+$", {"http://a.test/a(b|c)+$"}, {"http://a.test/ab"}},
      {"/a\\*b", {"http://a.test/a*b"}, {"http://a.test/axb"}},
      {"/a,b", {"http://a.test/a,b"}, {}},
  });
}

TEST(UrlPatterns, WhatUrlsEscapeMayBeWrittenPlainlyOrEscaped) {
  expect_fits({
      {"/stra\xc3\x9f"
       "e/*",
       {"http://a.test/stra\xc3\x9f"
        "e/x",
        "http://a.test/stra%c3%9fe/x"},
       {"http://a.test/strasse/x"}},
      {"/a b", {"http://a.test/a b", "http://a.test/a%20b"}, {"http://a.test/ab"}},
      {"/a%2fb", {"http://a.test/a%2Fb"}, {"http://a.test/a/b"}},
      {"/\\{x\\}", {"http://a.test/{x}", "http://a.test/%7bx%7d"}, {"http://a.test/x"}},
      {"b\xc3\xbc"
       "cher.example/*",
       {"http://xn--bcher-kva.example/x"},
       {"http://bucher.example/x"}},
  });
}

TEST(UrlPatterns, AnExpressionIsFoundAnywhereInTheUrl) {
  expect_fits({
      {"re:[?&]session=", {"http://a.test/x?session=1", "http://a.test/x?y=1&session=1"}, {"http://a.test/session=1"}},
      {"re:^https", {"https://a.test/"}, {"http://a.test/https"}},
      {"re:(?i)LOGIN", {"http://a.test/Login"}, {"http://a.test/log"}},
  });
}

TEST(UrlPatterns, WhatIsNoPatternIsRefusedWithItsReason) {
  EXPECT_EQ(refused("/[a-z"), "pattern \"/[a-z\": [ without ]; write \\[ for the character");
  EXPECT_EQ(refused("/{a,b"), "pattern \"/{a,b\": { without }; write \\{ for the character");
  EXPECT_EQ(refused("/a\\"), "pattern \"/a\\\": ends with \\; write \\\\ for the character");
  for (const char* glob :
       {"example.org", "secret*", "page?", "{a,b}.html", "example.org:8080", "[a-z]", "ftp:*", "https", "index.html"}) {
    EXPECT_TRUE(refused(glob).contains("fits no URL")) << glob;
  }
  for (const char* glob : {"*", "http*", "https:*", "h*", "[h]*", "{http,ftp}*", "*.pdf", "\\h*"}) {
    EXPECT_TRUE(UrlPatterns::compile({glob})) << glob;
  }
  EXPECT_EQ(refused(""), "pattern \"\": is empty");
  EXPECT_EQ(refused("re:"), "pattern \"re:\": is empty");
  EXPECT_TRUE(refused("!https://example.com/a/**").contains("negates nothing"));
  EXPECT_TRUE(refused("https://example.com/a#top").contains("without their fragment"));
  EXPECT_TRUE(refused("FTP://**").contains("only those of http and https"));
  for (const char* glob : {"*://example.com/**", "http*://**", "HTTPS://example.com/**", "example.com/x://y"})
    EXPECT_TRUE(UrlPatterns::compile({glob})) << glob;
  EXPECT_TRUE(refused("https://ann@example.com/**").contains("URLs are compared without it"));
  for (const char* glob : {"https:///docs/**", "https://", "//"})
    EXPECT_TRUE(refused(glob).contains("has no host")) << glob;
  for (const char* glob : {"my docs/**", "https://exa mple.com/", "http://a:99999/x"})
    EXPECT_TRUE(refused(glob).contains("is no host")) << glob;
  for (const char* expression : {"re:^www\\.example", "re:^example.com/", "re:^ftp:", "re:^httpx"})
    EXPECT_TRUE(refused(expression).contains("a URL with its scheme")) << expression;
  for (const char* expression :
       {"re:^https?:", "re:^h", "re:^http[^:]", "re:^x*http", "re:^(www|http)", "re:^www|x", "re:^", "re:^.*x"})
    EXPECT_TRUE(UrlPatterns::compile({expression})) << expression;
  EXPECT_EQ(refused("re:^/docs/"),
            "pattern \"re:^/docs/\": begins with ^/, but a URL with its scheme; write ^https?://[^/]*/");
  EXPECT_TRUE(refused("re:/m\xc3\xbcll").contains("must be ASCII"));
  EXPECT_TRUE(refused("re:(").starts_with("pattern \"re:(\": missing )"));
  EXPECT_TRUE(refused("re:(?=x)").contains("invalid perl operator")) << "linear time knows no look-ahead";
  EXPECT_TRUE(refused("/[z-a]").contains("invalid character class range"));
  EXPECT_TRUE(refused("/[\xc3\xa4]").contains("must be ASCII"));
  EXPECT_TRUE(refused(std::string(70'000, 'x')).contains("longer than"));
  EXPECT_TRUE(refused("/" + std::string(30, '{')).contains("more than 20 braces"));
}

TEST(UrlPatterns, OfSeveralOneIsEnough) {
  const auto compiled = UrlPatterns::compile({"/a/**", "*.pdf", "re:x=1"});
  ASSERT_TRUE(compiled);
  EXPECT_TRUE(compiled->match("http://a.test/a/"));
  EXPECT_TRUE(compiled->match("http://a.test/b.pdf"));
  EXPECT_TRUE(compiled->match("http://a.test/?x=1"));
  EXPECT_FALSE(compiled->match("http://a.test/b"));
  EXPECT_FALSE(UrlPatterns{}.match("http://a.test/"));
  EXPECT_TRUE(UrlPatterns::compile({})->empty());
}

TEST(UrlPatterns, SlowExpressionsOfOtherEnginesTakeLinearTime) {
  const auto compiled = UrlPatterns::compile({"re:(a*)*b$", "re:(a|aa)+$", "/" + std::string(40, '*') + "x"});
  ASSERT_TRUE(compiled);
  EXPECT_TRUE(compiled->match("http://a.test/" + std::string(60'000, 'a')));
  EXPECT_FALSE(compiled->match("http://a.test/" + std::string(60'000, 'a') + "c"));
}

TEST(UrlPatterns, ManyAreMatchedRightlyFromSeveralThreads) {
  std::vector<std::string> patterns;
  for (int i = 0; i < 2000; ++i) patterns.push_back("/p" + std::to_string(i) + "/**/x*y*.html");
  const auto compiled = UrlPatterns::compile(patterns);
  ASSERT_TRUE(compiled);
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        const std::string folder = "http://a.test/p" + std::to_string(7 * i);
        EXPECT_EQ(compiled->match(folder + "/a/b/xxyxyyx.html"), 7 * i < 2000);
        EXPECT_FALSE(compiled->match(folder + "/a/b/xxyxyyx.htm"));
      }
    });
  }
}

}  // namespace
}  // namespace argiope
