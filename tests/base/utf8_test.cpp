#include "base/internal/utf8.hpp"

#include <gtest/gtest.h>

#include <string>

namespace argiope {
namespace {

constexpr std::size_t kAnyLength = 1'000;

TEST(Utf8, ACharactersLengthIsThatOfTheWellFormedOneInFront) {
  EXPECT_EQ(utf8_length("ab"), 1u);
  EXPECT_EQ(utf8_length("\xc3\xa4x"), 2u);
  EXPECT_EQ(utf8_length("\xe2\x82\xacx"), 3u);
  EXPECT_EQ(utf8_length("\xf0\x9f\x95\xb7x"), 4u);
  for (const char* broken :
       {"\x80", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", "\xe2\x82"}) {
    EXPECT_EQ(utf8_length(broken), 0u) << broken;
  }
}

TEST(Utf8, ACharactersCodePointIsThatOfUnicode) {
  EXPECT_EQ(code_point_of("a"), U'a');
  EXPECT_EQ(code_point_of("\xc3\xa4"), U'\u00e4');
  EXPECT_EQ(code_point_of("\xe2\x82\xac"), U'\u20ac');
  EXPECT_EQ(code_point_of("\xf0\x9f\x95\xb7"), U'\U0001f577');
}

TEST(Utf8, ATextThatFitsIsNotCut) {
  EXPECT_EQ(cut_between_characters("", 0), "");
  EXPECT_EQ(cut_between_characters("\xc3\xa4", 2), "\xc3\xa4");
  EXPECT_EQ(cut_between_characters("abc", kAnyLength), "abc");
}

TEST(Utf8, ACutGoesThroughNoCharacterAndTakesAllThatFit) {
  for (const std::string character : {"x", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x95\xb7"}) {
    std::string text;
    for (int i = 0; i < 5; ++i) text += character;
    for (std::size_t most = 0; most < text.size(); ++most) {
      EXPECT_EQ(cut_between_characters(text, most).size(), most / character.size() * character.size())
          << character << " at " << most;
    }
  }
}

TEST(Utf8, WhatIsNoUtf8IsCutToTheByte) {
  const std::string broken(10, '\x82');
  for (std::size_t most = 0; most < broken.size(); ++most) EXPECT_EQ(cut_between_characters(broken, most).size(), most);
  EXPECT_EQ(cut_between_characters("ab\xe2\x82zz", 4), "ab\xe2\x82") << "no character goes on behind the cut";
}

}  // namespace
}  // namespace argiope
