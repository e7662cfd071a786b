// Which settings are a host's, and what a crawl makes of them.
#include "crawl/options/internal/host_rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argiope/crawl/detail/scope.hpp"
#include "crawl/hosts/internal/autothrottle.hpp"
#include "crawl/options/internal/host_policies.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

HostSettings at(std::vector<std::string> match, double rate) {
  HostSettings settings;
  settings.match = std::move(match);
  settings.rate = rate;
  return settings;
}

std::vector<double> rates_at(const HostRules& rules, std::string_view site) {
  std::vector<double> rates;
  for (const HostSettings* one : rules.of(site)) rates.push_back(*one->rate);
  return rates;
}

TEST(HostPlace, IsSpelledAsUrlsAre) {
  EXPECT_EQ(*parse_host_place("Example.ORG"), "example.org");
  EXPECT_EQ(*parse_host_place("example.org:80"), "example.org:80");
  EXPECT_EQ(*parse_host_place("https://example.org:443"), "https://example.org");
  EXPECT_EQ(*parse_host_place("*.Bücher.example"), "*.xn--bcher-kva.example");
  EXPECT_EQ(*parse_host_place("[::1]:8080"), "[::1]:8080");
  EXPECT_EQ(*parse_host_place("*"), "*");
  EXPECT_EQ(*parse_host_place("_a.b-c.example"), "_a.b-c.example");
  for (const char* nowhere : {".example.org", "*..example.org", "a..b", "a,b", "ex*mple.org", "."}) {
    EXPECT_FALSE(parse_host_place(nowhere)) << nowhere;
  }
  for (const char* wrong : {"", "*.", "*.*.org", "a.*", "example.org/path", "ftp://example.org", "*.example.org:80",
                            "user@a.test", "*.http://a.test", "a b"}) {
    const auto place = parse_host_place(wrong);
    ASSERT_FALSE(place) << wrong << " is " << *place;
    EXPECT_THAT(place.error().message, testing::HasSubstr("a host, HOST:PORT, http://HOST, *.DOMAIN")) << wrong;
  }
}

TEST(HostRulesTest, TheMostSpecificPlaceComesFirstWhateverTheOrder) {
  const HostRules rules({at({"*"}, 1), at({"*.test"}, 2), at({"*.b.test"}, 3), at({"a.b.test"}, 4),
                         at({"a.b.test:8080"}, 5), at({"https://a.b.test:8080"}, 6)});
  EXPECT_THAT(rates_at(rules, "https://a.b.test:8080/x?y"), ElementsAre(6, 5, 4, 3, 2, 1));
  EXPECT_THAT(rates_at(rules, "http://a.b.test:8080"), ElementsAre(5, 4, 3, 2, 1));
  EXPECT_THAT(rates_at(rules, "http://a.b.test"), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(rates_at(rules, "http://b.test"), ElementsAre(2, 1));
  EXPECT_THAT(rates_at(rules, "http://other.example"), ElementsAre(1));
}

TEST(HostRulesTest, UsualPortsAreNamedTooAndAmongEqualsTheFirstCounts) {
  const HostRules rules({at({"a.test:443"}, 1), at({"a.test", "*.test"}, 2), at({"a.test"}, 3), at({"[::1]:80"}, 4)});
  EXPECT_THAT(rates_at(rules, "https://a.test"), ElementsAre(1, 2, 3));
  EXPECT_THAT(rates_at(rules, "http://a.test"), ElementsAre(2, 3));
  EXPECT_THAT(rates_at(rules, "http://[::1]"), ElementsAre(4));
}

TEST(HostPoliciesTest, EachSettingComesFromTheMostSpecificThatHasIt) {
  CrawlOptions options;
  options.retries = 2;
  options.hosts.resize(2);
  options.hosts[0].match = {"*.test"};
  options.hosts[0].rate = 1;
  options.hosts[0].user_agent = "Other/2 (x)";
  options.hosts[0].headers = {{"X-Key", "1"}, {"user-agent", "no"}};
  options.hosts[1].match = {"a.test"};
  options.hosts[1].rate = 7;
  options.hosts[1].retries = 0;
  HostPolicies policies(options);
  const HostPolicy& policy = policies.of("http://a.test");
  EXPECT_EQ(policy.rate, 7);
  EXPECT_EQ(policy.attempts, 1u);
  EXPECT_EQ(policy.product_token, "other");
  EXPECT_THAT(policy.headers, ElementsAre(testing::Pair("X-Key", "1"), testing::Pair("User-Agent", "Other/2 (x)")));
  EXPECT_EQ(policies.of("http://b.test").rate, 1);
  EXPECT_EQ(&policies.of("http://b.test"), &policies.of("http://c.test"));  // one policy for both
  const HostPolicy& usual = policies.of("http://a.example");
  EXPECT_FALSE(usual.rate);
  EXPECT_EQ(usual.attempts, 3u);
  EXPECT_EQ(usual.product_token, "argiope");
}

TEST(HostPoliciesTest, TheirPatternsStandForTheOptionsAndDepthIsTheirOwn) {
  CrawlOptions options;
  for (const char* seed : {"http://a.test/", "http://b.test/"}) options.seeds.push_back(*Url::parse(seed));
  options.exclude = {"/x/**"};
  options.max_depth = 3;
  options.hosts.resize(1);
  options.hosts[0].match = {"a.test"};
  options.hosts[0].exclude = {"/y/**"};
  options.hosts[0].include = {"/d/**", "/y/**"};
  options.hosts[0].path_prefixes = {"/d", "/y", "/x"};
  options.hosts[0].max_depth = 1;
  const Scope scope(options);
  EXPECT_EQ(scope.place_of("http://a.test/y/1", 1), Exclusion::exclude);
  EXPECT_EQ(scope.place_of("http://a.test/x/1", 1), Exclusion::include);
  EXPECT_EQ(scope.place_of("http://a.test/e", 1), Exclusion::path_prefix);
  EXPECT_EQ(scope.place_of("http://a.test/d/1", 1), Exclusion::none);
  EXPECT_EQ(scope.place_of("http://a.test/d/1", 2), Exclusion::depth);
  EXPECT_EQ(scope.place_of("http://b.test/x/1", 1), Exclusion::exclude);
  EXPECT_EQ(scope.place_of("http://b.test/e", 3), Exclusion::none);
  EXPECT_EQ(scope.bars_check("http://a.test/y/1", 0), Exclusion::exclude);
  EXPECT_EQ(scope.bars_check("http://a.test/x/1", 0), Exclusion::none);
}

TEST(AutothrottleTest, GrowsAtOnceShrinksByHalfAndKeepsWithinItsBounds) {
  const Autothrottle throttle{0.5, 200ms};
  EXPECT_EQ(throttle.next(200ms, 50ms, false), 200ms);
  EXPECT_EQ(throttle.next(200ms, 2s, false), 4s);
  EXPECT_EQ(throttle.next(4s, 100ms, false), 2100ms);
  EXPECT_EQ(throttle.next(2100ms, 100ms, false), 1150ms);
  EXPECT_EQ(throttle.next(200ms, 500s, false), 60s);
  EXPECT_EQ(throttle.next(60s, Duration::max(), false), 60s);
  EXPECT_EQ(throttle.next(200ms, -1s, false), 200ms);
  EXPECT_EQ((Autothrottle{0.01, 100s}.next(100s, 10s, false)), 100s);  // a slower rate was asked for
}

TEST(AutothrottleTest, AnErrorNeverMakesItFaster) {
  const Autothrottle throttle{1, 200ms};
  EXPECT_EQ(throttle.next(4s, 1ms, true), 4s);
  EXPECT_EQ(throttle.next(4s, 9s, true), 9s);
}

}  // namespace
}  // namespace argiope
