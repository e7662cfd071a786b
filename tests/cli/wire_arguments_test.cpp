// From words and the environment to how a crawl's bytes come.
#include "cli/crawl/wire_arguments.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "support/typed_words.hpp"

namespace argiope {
namespace {

using ::testing::HasSubstr;
using Environment = std::map<std::string, std::string>;

struct WireTaken {
  CrawlOptions options;
  CrawlSetup setup;
};

Result<WireTaken> wire_taken_of(std::vector<std::string> words, const Environment& environment = {}) {
  WireArguments arguments;
  type_into(arguments, words, "Each request", "How fast");
  WireTaken made;
  const auto applied = arguments.apply(made.options, made.setup, [&](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  });
  if (!applied) return std::unexpected(applied.error());
  return made;
}
CrawlSetup taken(std::vector<std::string> words, const Environment& environment = {}) {
  return accepted(wire_taken_of(std::move(words), environment)).setup;
}
std::string refusal(std::vector<std::string> words, const Environment& environment = {}) {
  return refused(wire_taken_of(std::move(words), environment));
}
std::string proxies(const CrawlSetup& setup) {
  std::string text;
  for (const Proxy& proxy : setup.proxies.for_http) text += proxy.name() + " ";
  text += "| ";
  for (const Proxy& proxy : setup.proxies.for_https) text += proxy.name() + " ";
  return text;
}

TEST(WireArguments, WithoutWordsAndVariablesThereIsNoProxy) { EXPECT_TRUE(taken({}).proxies.empty()); }

TEST(WireArguments, ProxiesAreForBothSchemesInTheirOrder) {
  EXPECT_EQ(proxies(taken({"--proxy", "http://a:1", "--proxy", "socks5h://b"})),
            "http://a:1 socks5h://b:1080 | http://a:1 socks5h://b:1080 ");
}

TEST(WireArguments, TheEnvironmentCountsWhereNoOptionIsGiven) {
  const Environment environment{{"http_proxy", "a:1"}, {"https_proxy", "b:2"}, {"no_proxy", "c.test"}};
  EXPECT_EQ(proxies(taken({}, environment)), "http://a:1 | http://b:2 ");
  EXPECT_TRUE(taken({}, environment).proxies.direct.contains("c.test"));
  EXPECT_TRUE(taken({}, environment).proxies.direct.contains("127.0.0.1"));
  const CrawlSetup named = taken({"--proxy", "d:3"}, environment);
  EXPECT_EQ(proxies(named), "http://d:3 | http://d:3 ");
  EXPECT_TRUE(named.proxies.direct.contains("c.test")) << "as curl has it";
  EXPECT_FALSE(named.proxies.direct.contains("127.0.0.1")) << "who names a proxy means it";
  const CrawlSetup other = taken({"--no-proxy", "e.test"}, environment);
  EXPECT_TRUE(other.proxies.direct.contains("e.test"));
  EXPECT_FALSE(other.proxies.direct.contains("c.test"));
  EXPECT_TRUE(taken({"--no-proxy", "*"}, environment).proxies.empty());
  EXPECT_TRUE(taken({"--no-proxy", "*"}, {{"http_proxy", "nonsense://x"}}).proxies.empty());
}

TEST(WireArguments, WhatIsNoProxyIsRefusedByNameAndWithoutItsPassword) {
  EXPECT_EQ(refusal({"--proxy", "socks4://ann:secret@p"}),
            "--proxy \"socks4://…@p\": scheme \"socks4\" is not known; use http, https, socks5 or socks5h");
  EXPECT_THAT(refusal({"--no-proxy", "a b/c"}), HasSubstr("--no-proxy \"b/c\": neither a host name"));
}

TEST(WireArguments, WhatIsNoProxyInTheEnvironmentIsTroubleOfRequestsThatNeedIt) {
  const ProxySettings proxies = taken({}, {{"https_proxy", "gopher://p"}}).proxies;
  EXPECT_THAT(proxies.trouble_for_https,
              HasSubstr("https_proxy: proxy \"gopher://p\": scheme \"gopher\" is not known"));
  EXPECT_EQ(proxies.trouble_for_http, "");
}

TEST(WireArguments, SizesHaveUnitsAndALeast) {
  const auto made = wire_taken_of({"--rate-limit", "500K", "--quota", "2g"});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->setup.rate_limit, 500u * 1024);
  EXPECT_EQ(made->options.quota, 2u << 30);
  EXPECT_EQ(wire_taken_of({})->options.quota, 0u);
  for (const std::string option : {"--rate-limit", "--quota"}) {
    for (const std::string bad : {"0", "0K", "fast", "-1", "1X", "1.5M", "99999999999G", "1", "1023"}) {
      EXPECT_EQ(why_not_parsed<WireArguments>({option, bad}, "Each request", "How fast"),
                option + ": \"" + bad + "\": at least 1K bytes, as in 1000000, 500M or 1G");
    }
  }
}

TEST(WireArguments, AClientsCertificateIsReadAtTheStart) {
  EXPECT_THROW((void)wire_taken_of({"--client-key", "/dev/null"}), CLI::ParseError) << "without the certificate";
  EXPECT_THROW((void)wire_taken_of({"--client-cert", "/nowhere.pem"}), CLI::ParseError);
  EXPECT_THAT(refusal({"--client-cert", "/dev/null"}),
              HasSubstr("--client-cert, --client-key: \"/dev/null\": is no certificate in PEM"));
}

}  // namespace
}  // namespace argiope
