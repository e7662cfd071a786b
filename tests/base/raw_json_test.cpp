#include "base/internal/raw_json.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/internal/json_reader.hpp"

namespace argiope {
namespace {

TEST(RawJson, AValueIsFoundAsItWasWritten) {
  const std::string text = " { \"a\\\"b\" : [ 1.0 , { \"x\" : \"]}\" } ,\"last\" ] ,\n\"c\":  1e3  } ";
  ASSERT_TRUE(JsonText::parse(text));
  RawJson whole(text);
  RawJson list(whole, 0), number(whole, 1), first(list, 0), object(list, 1), last(list, 2), member(object, 0);
  EXPECT_EQ(whole.text(), text.substr(1, text.size() - 2));
  EXPECT_EQ(member.text(), "\"]}\"");
  EXPECT_EQ(object.text(), "{ \"x\" : \"]}\" }");
  EXPECT_EQ(first.text(), "1.0");
  EXPECT_EQ(last.text(), "\"last\"");
  EXPECT_EQ(number.text(), "1e3");
}

TEST(RawJson, ValuesAreFoundInAnyOrder) {
  RawJson list("[0,[1],{\"a\":2},\"\\\\\",4]");
  for (const std::size_t place : {3u, 3u, 0u, 4u, 2u, 1u, 4u}) {
    static constexpr const char* kTexts[] = {"0", "[1]", "{\"a\":2}", "\"\\\\\"", "4"};
    RawJson value(list, place);
    EXPECT_EQ(value.text(), kTexts[place]);
  }
}

TEST(RawJson, AStringEndsAtTheQuoteThatNothingEscapes) {
  constexpr auto kNone = std::string_view::npos;
  EXPECT_EQ(end_of_json_string(R"("")", 1), 1u);
  EXPECT_EQ(end_of_json_string(R"("a\"b")", 1), 5u);
  EXPECT_EQ(end_of_json_string(R"("a\\")", 1), 4u);
  EXPECT_EQ(end_of_json_string(R"("\\\"")", 1), 5u);
  EXPECT_EQ(end_of_json_string(R"(\"")", 2), 2u) << "what is in front of it escapes nothing";
  EXPECT_EQ(end_of_json_string(R"("a\")", 1), kNone);
  EXPECT_EQ(end_of_json_string("\"", 1), kNone);
}

TEST(RawJson, WhatIsNotAskedForIsNotLookedAt) {
  RawJson broken("[");
  RawJson value(broken, 7);
  SUCCEED();
}

}  // namespace
}  // namespace argiope
