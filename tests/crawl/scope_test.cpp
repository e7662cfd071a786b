#include "argiope/crawl/scope.hpp"

#include <gtest/gtest.h>

namespace argiope {
namespace {

CrawlOptions options_for(std::initializer_list<const char*> seeds) {
  CrawlOptions options;
  for (const char* seed : seeds) options.seeds.push_back(*Url::parse(seed));
  return options;
}

TEST(Scope, IsTheSeedsHostsOnAnyPort) {
  const Scope scope(options_for({"http://example.org/", "https://other.example:8443/x"}));
  EXPECT_TRUE(scope.contains(*Url::parse("https://example.org/y")));
  EXPECT_TRUE(scope.contains(*Url::parse("http://other.example/")));
  EXPECT_FALSE(scope.contains(*Url::parse("http://www.example.org/")));
  EXPECT_FALSE(scope.contains(*Url::parse("http://notexample.org/")));
}

TEST(Scope, IncludesWhitelistedDomainsWithTheirSubdomains) {
  CrawlOptions options = options_for({"http://a.test/"});
  options.whitelist = {"example.org"};
  Scope scope(options);
  EXPECT_TRUE(scope.contains(*Url::parse("http://example.org/")));
  EXPECT_TRUE(scope.contains(*Url::parse("http://x.y.example.org/")));
  EXPECT_FALSE(scope.contains(*Url::parse("http://badexample.org/")));
}

TEST(Scope, ASeedsRedirectBringsItsSiteAndOfAnotherSiteOnlyThatPage) {
  Scope scope(options_for({"http://example.org/", "http://short.test/x"}));
  EXPECT_TRUE(scope.follow_seed("http://example.org/", *Url::parse("https://www.example.org/en")));
  EXPECT_TRUE(scope.contains(*Url::parse("https://www.example.org/other")));
  EXPECT_TRUE(scope.follow_seed("http://short.test/x", *Url::parse("http://long.test/page?q")));
  EXPECT_TRUE(scope.contains(*Url::parse("http://long.test/page?q")));
  EXPECT_FALSE(scope.contains(*Url::parse("http://long.test/")));
  EXPECT_FALSE(scope.follow_seed("http://short.test/x", *Url::parse("http://long.test/page?q"))) << "known already";
  EXPECT_TRUE(scope.is_seed("http://long.test/page?q"));
  EXPECT_FALSE(is_same_site("example.org", "docs.example.org"));
}

TEST(Scope, PlacesAUrlWithoutParsingItAsItDoesWithParsingIt) {
  CrawlOptions options = options_for({"http://example.org/", "http://[::1]:8080/", "http://10.0.0.1/deep/a/a/a"});
  options.whitelist = {"example.net"};
  options.max_depth = 2;
  options.max_segment_repeats = 2;
  const Scope scope(options);
  const std::pair<const char*, Exclusion> cases[] = {
      {"https://example.org:8443/", Exclusion::none},
      {"https://me:secret@example.org/x", Exclusion::none},
      {"http://example.org?q=/a/a/a/", Exclusion::none},
      {"http://[::1]/x", Exclusion::none},
      {"http://[::2]:8080/", Exclusion::off_scope},
      {"http://a.b.example.net:1/", Exclusion::none},
      {"http://notexample.net/", Exclusion::off_scope},
      {"http://example.org/?u=http://example.net/", Exclusion::none},
      {"http://other.test/?http://example.org/", Exclusion::off_scope},
      {"http://example.org/a/a/a", Exclusion::repeated_segment},
      {"http://example.org/a/a/?a/a", Exclusion::none},
  };
  for (const auto& [href, place] : cases) {
    const auto url = *Url::parse(href);
    EXPECT_EQ(scope.place_of(url.href(), 0), place) << href;
    EXPECT_EQ(scope.contains(url), place != Exclusion::off_scope) << href;
  }
  EXPECT_EQ(scope.place_of("http://example.org/x", 3), Exclusion::depth);
  EXPECT_EQ(scope.place_of("http://10.0.0.1/deep/a/a/a", 3), Exclusion::none) << "a seed";
}

TEST(Trap, DepthLengthAndRepetitionAreBounded) {
  CrawlOptions options = options_for({"http://a.test/"});
  options.max_depth = 3;
  const Scope scope(options);
  const auto url = *Url::parse("http://a.test/x");
  EXPECT_EQ(scope.trap(url.href(), 3), Exclusion::none);
  EXPECT_EQ(scope.trap(url.href(), 4), Exclusion::depth);
  EXPECT_EQ(scope.trap("http://a.test/" + std::string(9000, 'x'), 0), Exclusion::url_length);
  std::string path = "http://a.test/";
  for (int i = 0; i < 10; ++i) path += "a/b/";
  EXPECT_EQ(scope.trap(path, 0), Exclusion::none);
  EXPECT_EQ(scope.trap(path + "a/", 0), Exclusion::repeated_segment);
}

TEST(Trap, CountsRepeatedSegments) {
  EXPECT_EQ(most_repeated_segment("/"), 0u);
  EXPECT_EQ(most_repeated_segment("/a/b/c"), 1u);
  EXPECT_EQ(most_repeated_segment("/a//a/b/a"), 3u);
}

}  // namespace
}  // namespace argiope
