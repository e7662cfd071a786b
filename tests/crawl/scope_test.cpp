#include "argiope/crawl/detail/scope.hpp"

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

// Each URL's place, in words.
std::string places(const Scope& scope, std::initializer_list<const char*> urls) {
  std::string said;
  for (const char* url : urls) said.append(to_string(scope.place_of(Url::parse(url)->href(), 0))).append(" ");
  return said;
}

TEST(Scope, TakesInTheRegistrableDomainsOfItsSeedsWhenAsked) {
  CrawlOptions options = options_for({"http://www.example.co.uk/", "http://10.0.0.1/", "http://ann.github.io/"});
  options.registrable_domains = true;
  const Scope scope(options);
  EXPECT_EQ(places(scope, {"http://example.co.uk/", "https://a.b.example.co.uk/", "http://ann.github.io/x"}),
            "none none none ");
  EXPECT_EQ(places(scope, {"http://other.co.uk/", "http://bob.github.io/", "http://1.10.0.0.1.test/", "http://0.0.1/"}),
            "off_scope off_scope off_scope off_scope ");
}

TEST(Scope, IsOnThePortsThatAreNamed) {
  CrawlOptions options = options_for({"http://a.test/", "http://a.test:9000/seed"});
  options.whitelist = {"b.test", "c.test:8080", "[::1]:81"};
  options.ports = {80, 8080, 81};
  const Scope scope(options);
  EXPECT_EQ(places(scope, {"http://a.test/x", "http://a.test:8080/", "http://b.test/", "http://x.c.test:8080/",
                           "http://[::1]:81/"}),
            "none none none none none ");
  EXPECT_EQ(places(scope,
                   {"https://a.test/", "http://a.test:9000/", "http://c.test/", "http://[::1]/", "http://b.test:443/"}),
            "off_scope off_scope off_scope off_scope off_scope ");
  EXPECT_EQ(places(scope, {"http://a.test:9000/seed"}), "none ") << "a seed";
}

TEST(Scope, LeavesOutWhatItsPatternsPrefixesAndExtensionsSay) {
  CrawlOptions options = options_for({"http://a.test/private/seed"});
  options.include = {"/docs/**", "/img/**"};
  options.exclude = {"*/drafts/*", "re:[?&]session="};
  options.path_prefixes = {"/docs/", "/img/"};
  options.reject_extensions = {"zip", "tar.gz"};
  options.accept_extensions = {"html", "zip", "gz"};
  const Scope scope(options);
  EXPECT_EQ(places(scope, {"http://a.test/docs/", "http://a.test/docs/x.HTML", "http://a.test/docs/x.gz",
                           "http://a.test/docs/v1.2", "http://a.test/docs/.profile", "http://a.test/img/x?y.pdf"}),
            "none none none none none none ");
  EXPECT_EQ(places(scope, {"http://a.test/", "http://a.test/imgs/x"}), "path_prefix path_prefix ");
  EXPECT_EQ(places(scope, {"http://a.test/docs/x.zip", "http://a.test/docs/x.Tar.Gz", "http://a.test/docs/x.pdf"}),
            "extension extension extension ");
  EXPECT_EQ(places(scope, {"http://a.test/docs/x?session=1"}), "exclude ");
  EXPECT_EQ(places(scope, {"http://a.test/private/seed", "http://b.test/docs/"}), "none off_scope ");
  options.path_prefixes.clear();
  EXPECT_EQ(places(Scope(options), {"http://a.test/", "http://a.test/drafts/"}), "include exclude ");
  options.exclude = {"["};
  EXPECT_THROW(Scope{options}, std::invalid_argument);
}

TEST(Scope, WhatIsExcludedIsNotEvenCheckedOnOtherHosts) {
  CrawlOptions options = options_for({"http://a.test/"});
  options.exclude = {"*.ads.test/**"};
  options.include = {"http://a.test/**"};
  const Scope scope(options);
  EXPECT_EQ(scope.bars_check("http://x.ads.test/", 0), Exclusion::exclude);
  EXPECT_EQ(scope.bars_check("http://b.test/", 0), Exclusion::none)
      << "what is included says nothing of links that are only checked";
}

TEST(Scope, DoesNotAscendFromTheFoldersOfItsSeeds) {
  CrawlOptions options = options_for({"http://a.test/docs/index.html", "http://a.test:8080/b/c/", "http://x.test/"});
  options.whitelist = {"w.test"};
  options.no_parent = true;
  Scope scope(options);
  EXPECT_EQ(places(scope, {"http://a.test/docs/", "https://a.test/docs/x/y", "http://a.test/b/c/d", "http://w.test/",
                           "http://x.test/any"}),
            "none none none none none ")
      << "a host that is not a seed's has no folders";
  EXPECT_EQ(places(scope, {"http://a.test/", "http://a.test/docs", "http://a.test/b/", "http://a.test/docsets/",
                           "http://a.test/?/docs/"}),
            "parent parent parent parent parent ");
  EXPECT_TRUE(scope.follow_seed("http://a.test/docs/index.html", *Url::parse("http://a.test/en/start")));
  EXPECT_EQ(places(scope, {"http://a.test/en/x", "http://a.test/docs/x", "http://a.test/"}), "none none parent ")
      << "where a seed leads is a folder, too";
}

TEST(Scope, WhichHostsHaveFoldersDoesNotDependOnWhatHasAnswered) {
  CrawlOptions options = options_for({"http://www.a.test/docs/", "http://b.test/x/", "http://www.b.test/y/"});
  options.whitelist = {"a.test", "w.test"};
  options.no_parent = true;
  Scope scope(options);
  const std::initializer_list<const char*> urls{
      "http://a.test/",        "http://a.test/docs/x",  "http://www.a.test/docs/x", "http://www.a.test/",
      "http://w.test/",        "http://sub.a.test/any", "http://b.test/x/1",        "http://b.test/y/1",
      "http://www.b.test/y/1", "http://www.b.test/x/1"};
  const std::string before = "parent none none parent none none none parent none parent ";
  EXPECT_EQ(places(scope, urls), before);
  EXPECT_TRUE(scope.follow_seed("http://www.a.test/docs/", *Url::parse("http://a.test/docs/")));
  EXPECT_EQ(places(scope, urls), before) << "what a seed leads to takes nothing out of scope";
  EXPECT_TRUE(scope.follow_seed("http://www.a.test/docs/", *Url::parse("http://a.test/en/")));
  EXPECT_EQ(places(scope, {"http://a.test/en/x", "http://a.test/docs/x"}), "none none ");
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
