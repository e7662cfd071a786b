// What a reload has changed is told by names, and without secrets.
#include "config/internal/settings_changes.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace argiope {
namespace {

Configuration configured(std::string_view text) {
  auto configuration = parse_configuration(text, "a.toml");
  EXPECT_TRUE(configuration) << configuration.error().message;
  return configuration.value_or(Configuration{});
}

std::string changes(std::string_view before, std::string_view after) {
  const Configuration old = configured(before), now = configured(after);
  const std::vector<Token> tokens;
  const std::vector<std::string> hosts;
  return changes_between({old, tokens, hosts}, {now, tokens, hosts});
}

constexpr std::string_view kBefore = R"(
[[queue]]
name = "mail"
rate = 5
[[queue]]
name = "orders"
push = { url = "https://shop.example/hook", secret = "a long word" }
[[schedule]]
name = "nightly"
trigger = "@daily"
[[notify]]
name = "ops"
push = "https://ops.example/"
)";

TEST(SettingsChanges, AreNoneOfWhatIsTheSame) { EXPECT_EQ(changes(kBefore, kBefore), "{}"); }

TEST(SettingsChanges, NameWhatCameWentAndIsAnother) {
  EXPECT_EQ(changes(kBefore, R"(
[[queue]]
name = "mail"
rate = 6
[[queue]]
name = "film"
[[schedule]]
name = "nightly"
trigger = "@hourly"
[[notify]]
name = "ops"
push = "https://ops.example/"
interval = "1h"
)"),
            R"({"queues":{"added":["film"],"changed":["mail"],"removed":["orders"]},)"
            R"("schedules":{"changed":["nightly"]},"notify":{"changed":["ops"]}})");
  EXPECT_EQ(changes(kBefore, ""), R"({"queues":{"removed":["mail","orders"]},"schedules":{"removed":["nightly"]},)"
                                  R"("notify":{"removed":["ops"]}})");
}

TEST(SettingsChanges, OfAnotherSecretSayOnlyWhoseItIs) {
  std::string after(kBefore);
  after.replace(after.find("a long word"), 11, "another one");
  EXPECT_EQ(changes(kBefore, after), R"({"queues":{"changed":["orders"]}})");
}

TEST(SettingsChanges, NameTokensHostsAndWhenTheCertificateExpires) {
  const Configuration same;
  const std::vector<Token> old{{.name = "ann", .digest = "aa"}, {.name = "bob", .digest = "bb"}};
  const std::vector<Token> now{{.name = "bob", .digest = "bb", .scope = TokenScope::admin},
                               {.name = "eve", .digest = "ee"}};
  const std::vector<std::string> none, hosts{"jobs.example"};
  EXPECT_EQ(changes_between({same, old, none}, {same, now, hosts, WallTime{std::chrono::seconds{1'790'000'000}}}),
            R"({"tokens":{"added":["eve"],"changed":["bob"],"removed":["ann"]},"hosts":["jobs.example"],)"
            R"("certificate_expires_at":"2026-09-21T14:13:20Z"})");
}

}  // namespace
}  // namespace argiope
