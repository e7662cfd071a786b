// JSON as pages have it: what is mended, and what is not.
#include "web/html/internal/lenient_json.hpp"

#include <gtest/gtest.h>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

// The text as it is read, minified.
std::string read_leniently(std::string_view text) {
  const auto json = parse_lenient_json(text);
  if (!json) return json.error().message;
  JsonErrors errors;
  return json->root(errors).json();
}

TEST(LenientJson, LeavesWhatIsStrictAsItIs) {
  for (const std::string text : {R"({"a":[1,-2.5e3,true,null,"\ud83d\ude00 // <!-- ;"]})", "[]", "\"x\"", "0"}) {
    EXPECT_EQ(mended_json(text), text);
  }
  EXPECT_EQ(mended_json(" {\"a\" : 1}\n"), " {\"a\" : 1} ");
}

TEST(LenientJson, HasAReplacementForHalfOfASurrogatePair) {
  EXPECT_EQ(read_leniently(R"({"a":"nice \ud83d","b":1})"), "{\"a\":\"nice \xef\xbf\xbd\",\"b\":1}");
  EXPECT_EQ(read_leniently(R"(["\udE00\ud83d\ud83d\ude00\uD83Dx"])"),
            "[\"\xef\xbf\xbd\xef\xbf\xbd\xf0\x9f\x98\x80\xef\xbf\xbdx\"]");
  EXPECT_EQ(read_leniently(R"({"\ud83d":1})"), "{\"\xef\xbf\xbd\":1}");
}

TEST(LenientJson, PassesOverWrappingsCommentsAndMarks) {
  for (const char* text :
       {"\xef\xbb\xbf{\"a\":1}", "<!-- {\"a\":1} -->", "//<![CDATA[\n{\"a\":1}\n//]]>",
        "\n// <![CDATA[\n{\"a\":1}\n// ]]>\n", "/*<![CDATA[*/{\"a\":1}/*]]>*/", "/* <![CDATA[ */ {\"a\":1} /* ]]> */",
        "<![CDATA[{\"a\":1}]]>", "<!--//--><![CDATA[//><!--\n{\"a\":1}\n//--><!]]>", "//<![CDATA[ {\"a\":1} //]]>",
        "// a comment\r\n{\"a\":1}", "{\"a\":1 // one\n}", "{/* one */\"a\":1}", "{\"a\":1};", "{\xc2\xa0\"a\":1}",
        "{\"a\":1}\xe2\x80\xa8"}) {
    EXPECT_EQ(read_leniently(text), "{\"a\":1}") << text;
  }
  EXPECT_EQ(read_leniently("{\"url\":\"http://x/<!--\",\"b\":\"/* ; */\",}"),
            "{\"url\":\"http://x/<!--\",\"b\":\"/* ; */\"}");
}

TEST(LenientJson, ForgivesWhatTemplatesWrite) {
  EXPECT_EQ(read_leniently("{\"a\":\"1\n2\\\"\",}"), "{\"a\":\"1 2\\\"\"}");
  EXPECT_EQ(read_leniently("{\"a\":,\"b\":}"), "{\"a\":null,\"b\":null}");
  EXPECT_EQ(read_leniently("[,1,,2,]"), "[1,2]");
  EXPECT_EQ(read_leniently("{\"a\":NaN,\"b\":-Infinity,\"c\":undefined}"), "{\"a\":null,\"b\":null,\"c\":null}");
  EXPECT_EQ(read_leniently("{\"sku\":00123,\"gtin\":12345678901234567890123,\"x\":.5,\"y\":1e999}"),
            R"({"sku":"00123","gtin":"12345678901234567890123","x":".5","y":"1e999"})");
  EXPECT_EQ(read_leniently(R"({"a":"it\'s","b":"C:\Windows\u12"})"), R"({"a":"it's","b":"C:\\Windows\\u12"})");
  EXPECT_EQ(read_leniently("{\"a\":1}}"), "{\"a\":1}");
  EXPECT_EQ(read_leniently("{\"a\":1}{\"b\":2},[3]"), "[{\"a\":1},{\"b\":2},[3]]");
}

TEST(LenientJson, IsNoReaderOfWhatIsNoJson) {
  for (const char* text : {"", "{a:1}", "{\"a\":1", "{\"a\" 1}", "{'a':1}", "<p>", "[1}", "\"x"}) {
    EXPECT_FALSE(parse_lenient_json(text)) << text;
  }
  EXPECT_EQ(read_leniently("{a:1}"), JsonText::parse("{a:1}").error().message) << "of the text as it is";
}

TEST(LenientJson, OfAnyPiecesIsMendedOnce) {
  constexpr std::string_view kPieces[] = {
      "{",  "}",    "[",   "]",         ",",   ":", "\"", "\\", "\\u", "d83d", "\\ude00", "//", "/*", "*/",
      "\n", "<!--", "-->", "<![CDATA[", "]]>", "1", "-0", ".",  "e9",  "NaN",  "true",    ";",  " ",  "a"};
  Random random{5};
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (std::uint64_t left = random.below(12); left > 0; --left) text += kPieces[random.below(std::size(kPieces))];
    const std::string mended = mended_json(text);
    // What is strict then stays as it is.
    if (JsonText::parse(mended)) EXPECT_TRUE(JsonText::parse(mended_json(mended))) << text;
    if (JsonText::parse(text)) EXPECT_TRUE(JsonText::parse(mended)) << text;
  }
}

TEST(LenientJson, ReadsQuotesThatWereEscapedForHtml) {
  EXPECT_EQ(read_leniently("{&quot;a&quot;: &quot;b &amp; c&quot;}"), "{\"a\":\"b & c\"}");
  EXPECT_EQ(read_leniently("\n[{&#34;a&#x22;:1,}]"), "[{\"a\":1}]");
  EXPECT_EQ(read_leniently("{&amp;quot;a&amp;quot;:1}"), "{\"a\":1}") << "twice";
  EXPECT_EQ(read_leniently("{\"a\":\"&quot;b&quot;\"}"), "{\"a\":\"&quot;b&quot;\"}") << "what is JSON stays";
}

}  // namespace
}  // namespace argiope
