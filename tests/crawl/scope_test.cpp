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
  scope.allow_host("late.test");
  EXPECT_TRUE(scope.contains(*Url::parse("http://late.test/")));
}

TEST(Trap, DepthLengthAndRepetitionAreBounded) {
  CrawlOptions options = options_for({"http://a.test/"});
  options.max_depth = 3;
  const Scope scope(options);
  const auto url = *Url::parse("http://a.test/x");
  EXPECT_EQ(scope.trap(url, 3), Exclusion::none);
  EXPECT_EQ(scope.trap(url, 4), Exclusion::depth);
  EXPECT_EQ(scope.trap(*Url::parse("http://a.test/" + std::string(3000, 'x')), 0), Exclusion::url_length);
  EXPECT_EQ(scope.trap(*Url::parse("http://a.test/a/b/a/b/a/b/a/b/"), 0), Exclusion::repeated_segment);
  EXPECT_EQ(scope.trap(*Url::parse("http://a.test/a/b/a/b/a/b/"), 0), Exclusion::none);
}

TEST(Trap, CountsRepeatedSegments) {
  EXPECT_EQ(most_repeated_segment("/"), 0u);
  EXPECT_EQ(most_repeated_segment("/a/b/c"), 1u);
  EXPECT_EQ(most_repeated_segment("/a//a/b/a"), 3u);
}

}  // namespace
}  // namespace argiope
