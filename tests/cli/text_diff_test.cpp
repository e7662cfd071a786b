// What `diff -u` would say.
#include "cli/text_diff.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace argiope {
namespace {

std::string difference(std::string_view before, std::string_view after) {
  return unified_diff(before, after, "a", "b");
}

TEST(TextDiff, TheSameIsNothing) {
  EXPECT_EQ(difference("", ""), "");
  EXPECT_EQ(difference("x\ny\n", "x\ny\n"), "");
}

TEST(TextDiff, ALineThatChangedHasThreeAroundIt) {
  EXPECT_EQ(difference("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nV\n6\n7\n8\n9\n"),
            "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+V\n 6\n 7\n 8\n");
}

TEST(TextDiff, FromNothingAndToNothing) {
  EXPECT_EQ(difference("", "x\n"), "--- a\n+++ b\n@@ -0,0 +1 @@\n+x\n");
  EXPECT_EQ(difference("x\ny\n", ""), "--- a\n+++ b\n@@ -1,2 +0,0 @@\n-x\n-y\n");
}

TEST(TextDiff, ALastLineWithoutItsEndIsTold) {
  EXPECT_EQ(difference("x", "x\n"), "--- a\n+++ b\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n");
}

TEST(TextDiff, ChangesFarApartAreToldApartAndNearOnesTogether) {
  std::string before, near = "N\n", far;
  for (int i = 1; i <= 30; ++i) before += std::to_string(i) + "\n";
  near += before;
  far = near;
  near.replace(near.find("\n6\n"), 3, "\nV\n");
  far.replace(far.find("\n20\n"), 4, "\nV\n");
  const auto hunks = [&](const std::string& after) {
    const std::string text = difference(before, after);
    std::size_t count = 0;
    for (std::size_t at = text.find("\n@@ "); at != std::string::npos; at = text.find("\n@@ ", at + 1)) ++count;
    return count;
  };
  EXPECT_EQ(hunks(near), 1u);
  EXPECT_EQ(hunks(far), 2u);
}

// Applies what the difference says: the other text must come out.
std::string patched(const std::string& before, const std::string& difference) {
  const auto lines_of = [](const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      lines.push_back(text.substr(at, end - at + 1));
      at = end + 1;
    }
    return lines;
  };
  const std::vector<std::string> lines = lines_of(before);
  std::string after;
  std::size_t at = 0;
  for (const std::string& line : lines_of(difference)) {
    if (line.starts_with("--- ") || line.starts_with("+++ ")) continue;
    if (line.starts_with("@@ -")) {
      const std::size_t from = std::stoul(line.substr(4));
      const bool is_none = line.substr(0, line.find(" +")).ends_with(",0");
      for (; at + (is_none ? 0 : 1) < from; ++at) after += lines[at];
    } else if (line[0] == '+') {
      after += line.substr(1);
    } else {
      EXPECT_EQ(lines[at], line.substr(1));
      if (line[0] == ' ') after += lines[at];
      ++at;
    }
  }
  for (; at < lines.size(); ++at) after += lines[at];
  return after;
}

TEST(TextDiff, WhatItSaysMakesTheOneOfTheOther) {
  std::uint32_t state = 7;
  const auto chance = [&](std::uint32_t most) {
    state = state * 1'664'525 + 1'013'904'223;
    return (state >> 8) % most;
  };
  for (int round = 0; round < 300; ++round) {
    std::string before, after;
    for (std::uint32_t i = chance(40); i > 0; --i) before += std::string(1, static_cast<char>('a' + chance(5))) + "\n";
    for (std::size_t at = 0; at < before.size(); at += 2) {
      if (chance(4) != 0) after += before.substr(at, 2);
      if (chance(6) == 0) after += std::string(1, static_cast<char>('a' + chance(5))) + "\n";
    }
    EXPECT_EQ(patched(before, difference(before, after)), after) << before << "\n-\n" << after;
  }
}

TEST(TextDiff, TextsWithNothingInCommonEndInTime) {
  std::string before, after;
  for (int i = 0; i < 20'000; ++i) {
    before += "a" + std::to_string(i) + "\n";
    after += "b" + std::to_string(i) + "\n";
  }
  EXPECT_EQ(patched(before, difference(before, after)), after);
}

}  // namespace
}  // namespace argiope
