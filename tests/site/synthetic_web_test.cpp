#include "site/internal/synthetic_web.hpp"

#include <gtest/gtest.h>

namespace argiope {
namespace {

SyntheticWeb make(SyntheticWebOptions options) {
  std::vector<std::string> origins;
  for (std::uint32_t host = 0; host < options.hosts; ++host)
    origins.push_back("http://h" + std::to_string(host) + ".test");
  return SyntheticWeb(options, origins);
}

TEST(SyntheticWeb, GivesTheSameBytesForTheSameSeed) {
  auto a = make({.seed = 1}), b = make({.seed = 1}), c = make({.seed = 2});
  const SyntheticRequest request{.host = 1, .target = "/docs/alpha/page-6.html"};
  EXPECT_EQ(a.reply(request).body, b.reply(request).body);
  EXPECT_NE(a.reply(request).body, c.reply(request).body);
}

TEST(SyntheticWeb, AnswersNotModifiedToItsOwnEtag) {
  auto web = make({});
  const auto first = web.reply({.target = "/"});
  std::string etag;
  for (const auto& [name, value] : first.headers) {
    if (name == "ETag") etag = value;
  }
  EXPECT_EQ(web.reply({.target = "/", .if_none_match = etag}).status, 304);
  EXPECT_EQ(web.reply({.target = "/", .if_none_match = "\"other\""}).status, 200);
}

TEST(SyntheticWeb, KeepsHostilityToTheLastHosts) {
  auto web = make({.hosts = 3, .features = kFriendlyFeatures | kHostileFeatures});
  EXPECT_EQ(web.reply({.host = 0, .target = "/silent/0"}).status, 404);
  EXPECT_EQ(web.reply({.host = 2, .target = "/silent/0"}).behaviour, SyntheticReply::Behaviour::silent);
}

TEST(SyntheticWeb, FailsAFlakyPageOnce) {
  auto web = make({});
  EXPECT_EQ(web.reply({.target = "/flaky/1.html"}).status, 503);
  EXPECT_EQ(web.reply({.target = "/flaky/1.html"}).status, 200);
}

TEST(SyntheticWeb, HasItsFeaturesNamed) {
  EXPECT_EQ(parse_web_features("friendly"), kFriendlyFeatures);
  EXPECT_EQ(parse_web_features("drip,bomb"), bit(WebFeature::drip) | bit(WebFeature::bomb));
  EXPECT_EQ(parse_web_features("none"), 0u);
  const auto wrong = parse_web_features("drip,sloth");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("sloth"), std::string::npos);
}

}  // namespace
}  // namespace argiope
