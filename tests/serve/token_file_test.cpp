// The file of tokens: what is taken, what is refused, and how it is written.
#include "serve/gate/internal/token_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "serve/gate/internal/token_digest.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kDigest = to_hex(digest_of_token("words"));

std::string line(std::string_view name, std::string_view more = "") {
  return R"({"name":")" + std::string(name) + R"(","digest":")" + kDigest + R"(","scope":"work")" + std::string(more) +
         "}\n";
}
std::string refusal(std::string_view text) {
  const auto tokens = parse_tokens(text, "tokens.jsonl");
  return tokens ? "taken" : tokens.error().message;
}
KeptToken named(std::string name) {
  KeptToken kept;
  kept.token.name = std::move(name);
  kept.token.digest = kDigest;
  return kept;
}

TEST(TokenWords, Are32BytesOfChanceThatFitIntoAUrl) {
  std::array<std::uint8_t, 32> chance;
  chance.fill(0xff);
  EXPECT_EQ(token_words(chance), "argiope___________________________________________8");
  chance.fill(0xfb);
  EXPECT_THAT(token_words(chance), StartsWith("argiope_-_v7"));
  EXPECT_EQ(token_words(chance).size(), 8u + 43u);
}

TEST(TokenFile, WhatIsWrittenIsReadBack) {
  KeptToken kept = named("ci \"1\"");
  kept.token.scope = TokenScope::admin;
  kept.token.prefixes = {"mail", "sms/"};
  kept.token.expires_at = WallTime{std::chrono::seconds{1'800'000'000}};
  kept.created_at = WallTime{std::chrono::seconds{1'700'000'000}};
  const std::string text = to_text({kept, named("other")});
  const auto tokens = parse_tokens("\n" + text + "  \r\n", "f");
  ASSERT_TRUE(tokens) << tokens.error().message;
  ASSERT_EQ(tokens->size(), 2u);
  EXPECT_EQ((*tokens)[0].token.name, "ci \"1\"");
  EXPECT_EQ((*tokens)[0].token.prefixes, kept.token.prefixes);
  EXPECT_EQ((*tokens)[0].token.expires_at, kept.token.expires_at);
  EXPECT_EQ((*tokens)[0].created_at, kept.created_at);
  EXPECT_EQ((*tokens)[1].token.scope, TokenScope::read);
  EXPECT_EQ(to_text(*tokens), text);
  EXPECT_EQ(text.find("words"), std::string::npos);
}

TEST(TokenFile, WhatIsWrongIsToldWithItsLine) {
  EXPECT_THAT(refusal(line("a") + line("b", R"(,"scop":"read")")), StartsWith("tokens.jsonl:2: "));
  EXPECT_THAT(refusal(line("a") + "\n" + line("a")), "tokens.jsonl:3: name \"a\": there twice");
  EXPECT_THAT(refusal(R"({"name":"a","digest":"abc","scope":"read"})"), HasSubstr("digest"));
  EXPECT_THAT(refusal(R"({"name":"a","digest":")" + std::string(64, 'x') + R"(","scope":"read"})"),
              HasSubstr("digest"));
  EXPECT_THAT(refusal(R"({"name":"a","digest":")" + kDigest + R"("})"), HasSubstr("needs the member `scope`"));
  EXPECT_THAT(refusal(line("a", R"(,"scope":"read")")), HasSubstr("there twice"));
  for (const char* bad : {"x", "[]", "{}", "{", R"({"name":"a")", "null", "\"a\""})
    EXPECT_NE(refusal(bad), "taken") << bad;
  for (const char* more : {R"(,"prefixes":"mail")", R"(,"prefixes":[""])", R"(,"prefixes":[1])",
                           R"(,"expires_at":"soon")", R"(,"expires_at":null)", R"(,"words":"secret")"}) {
    EXPECT_NE(refusal(line("a", more)), "taken") << more;
  }
  EXPECT_NE(refusal(line("")), "taken");
  EXPECT_NE(refusal(line(std::string(65, 'x'))), "taken");
  EXPECT_NE(refusal(line("a\\u0007")), "taken") << "a terminal would beep";
  EXPECT_NE(refusal(R"({"name":"a","digest":")" + kDigest + R"(","scope":"none"})"), "taken");
}

TEST(TokenFile, ATokenIsAddedOnceAndRemovedOnce) {
  std::vector<KeptToken> tokens;
  EXPECT_TRUE(add_token(tokens, named("ci")));
  EXPECT_EQ(add_token(tokens, named("ci")).error().code, Errc::refused);
  EXPECT_EQ(add_token(tokens, named("")).error().code, Errc::invalid_input);
  EXPECT_EQ(remove_token(tokens, "nobody").error().code, Errc::not_found);
  EXPECT_TRUE(remove_token(tokens, "ci"));
  EXPECT_TRUE(tokens.empty());
}

class TokenFileTest : public ::testing::Test {
 protected:
  ::mode_t mode() const {
    struct ::stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mode & 0777;
  }
  Result<void> add(std::string name) {
    return edit_token_file(path, [&](std::vector<KeptToken>& tokens) { return add_token(tokens, named(name)); });
  }

  TemporaryFolder folder;
  std::string path = folder.file("tokens.jsonl");
};

TEST_F(TokenFileTest, AFileThatIsNotThereHasNoTokens) {
  const auto tokens = read_token_file(path);
  ASSERT_TRUE(tokens);
  EXPECT_TRUE(tokens->empty());
}

TEST_F(TokenFileTest, OnlyItsOwnerMayReadAndWriteIt) {
  EXPECT_TRUE(add("ci"));
  EXPECT_EQ(mode(), 0600u);
  ::chmod(path.c_str(), 0620);
  EXPECT_EQ(read_token_file(path).error().code, Errc::refused);
  EXPECT_EQ(add("other").error().code, Errc::refused);
  ::chmod(path.c_str(), 0644);
  EXPECT_EQ(read_token_file(path)->size(), 1u) << "digests tell nothing";
  EXPECT_TRUE(add("other"));
  EXPECT_EQ(mode(), 0600u);
}

TEST_F(TokenFileTest, AnEditThatFailsLeavesTheFileAsItWas) {
  EXPECT_TRUE(add("ci"));
  EXPECT_FALSE(add("ci"));
  EXPECT_EQ(read_token_file(path)->size(), 1u);
  { std::ofstream(path, std::ios::app) << "nonsense\n"; }
  EXPECT_FALSE(add("other"));
  EXPECT_EQ(read_token_file(path).error().code, Errc::invalid_input) << "it was not written over";
}

TEST_F(TokenFileTest, WhatAKilledWriterHasLeftIsNoHindrance) {
  { std::ofstream(path + ".new") << "half of a li"; }
  EXPECT_TRUE(add("ci"));
  EXPECT_EQ(read_token_file(path)->size(), 1u);
}

TEST_F(TokenFileTest, IsWhereALinkLeads) {
  std::filesystem::create_symlink("real.jsonl", path);
  EXPECT_TRUE(add("ci"));
  EXPECT_TRUE(add("other"));
  EXPECT_TRUE(std::filesystem::is_symlink(path));
  EXPECT_EQ(read_token_file(folder.file("real.jsonl"))->size(), 2u);
}

TEST_F(TokenFileTest, ADeviceOrFolderIsNoFileOfTokens) {
  EXPECT_EQ(read_token_file("/dev/null").error().code, Errc::refused);
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_token_file(folder.file("pipe")).error().code, Errc::refused)
      << "its writer would be waited for at each reload";
  EXPECT_FALSE(read_token_file(folder.file("")));
}

TEST_F(TokenFileTest, TwoWhoAddAtTheSameTimeBothAdd) {
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([this, t] {
        for (int i = 0; i < 20; ++i) EXPECT_TRUE(add("t" + std::to_string(t) + "-" + std::to_string(i)));
      });
    }
  }
  EXPECT_EQ(read_token_file(path)->size(), 40u);
}

}  // namespace
}  // namespace argiope
