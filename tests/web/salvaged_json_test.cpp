// What is read of JSON that is broken.
#include "web/html/internal/salvaged_json.hpp"

#include <gtest/gtest.h>

#include "argiope/base/random.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/utf8.hpp"

namespace argiope {
namespace {

// Minified; "nothing" where it is none.
std::string salvaged(std::string_view text) {
  const std::string read = salvaged_json(text);
  const auto json = JsonText::parse(read);
  if (!json) return "nothing";
  JsonErrors errors;
  return json->root(errors).json();
}

TEST(SalvagedJson, IsFoundAmongOtherText) {
  for (const char* text : {"var x = {\"a\":1};", "({\"a\":1})", "json {\"a\":1} hello", "---\n{\"a\":1}\n",
                           "<br />\n<b>Warning</b>: x in <b>/a</b>\n{\"a\":1}", "{\"a\":1}<br>", "# one\n{\"a\":1}",
                           "<![CDATA[<![CDATA[{\"a\":1}]]]]><![CDATA[>]]>", "\"{\\\"a\\\":1}\"", "{\\\"a\\\":1}",
                           "{&amp;amp;quot;a&amp;amp;quot;:1}"}) {
    EXPECT_EQ(salvaged(text), "{\"a\":1}") << text;
  }
  EXPECT_EQ(salvaged("{\"a\":1}\n{\"b\":"), "[{\"a\":1},{\"b\":null}]");
  EXPECT_EQ(salvaged("hello"), "nothing");
}

TEST(SalvagedJson, HasWhatWasLeftOut) {
  EXPECT_EQ(salvaged("{\"a\":\"x\"\n\"b\":2 \"c\":[1 2]}"), R"({"a":"x","b":2,"c":[1,2]})");
  EXPECT_EQ(salvaged("{\"a\":[{\"b\":\"c"), R"({"a":[{"b":"c"}]})");
  EXPECT_EQ(salvaged("{\"a\":[1,2},\"b\":3"), R"({"a":[1,2]})");
  EXPECT_EQ(salvaged("{\"a\" 1,\"b\",\"c\":3}"), R"({"a":1,"b":null,"c":3})");
}

TEST(SalvagedJson, MayHaveOtherQuotesOrNone) {
  EXPECT_EQ(salvaged("{a:1,@type:Product}"), R"({"a":1,"@type":"Product"})");
  EXPECT_EQ(salvaged("{'a':'it\\'s \"b\"',`c`:`d`}"), R"({"a":"it's \"b\"","c":"d"})");
  EXPECT_EQ(salvaged("{“a”:“b”,”c”:”d“}"), R"({"a":"b","c":"d"})");
  EXPECT_EQ(salvaged("{'a':'Bob's','c':1}"), R"({"a":"Bob's","c":1})");
}

TEST(SalvagedJson, MayHaveQuotesWithinItsStrings) {
  EXPECT_EQ(salvaged(R"({"a":"24" TV","b":"say "hi" to","c":["5" disk","x"]})"),
            R"({"a":"24\" TV","b":"say \"hi\" to","c":["5\" disk","x"]})");
  EXPECT_EQ(salvaged(R"({"a":"b "c", d","e":1})"), R"({"a":"b \"c\", d","e":1})");
}

TEST(SalvagedJson, KnowsWordsOfOtherLanguages) {
  EXPECT_EQ(salvaged("{\"a\":True,\"b\":FALSE,\"c\":None,\"d\":NaN,\"e\":{{ x.y }},\"f\":yes}"),
            R"({"a":true,"b":false,"c":null,"d":null,"e":null,"f":"yes"})");
  EXPECT_EQ(salvaged("{\"a\":1,299.50,\"b\":[1,299],\"c\":0x1F}"), R"({"a":"1,299.50","b":[1,299],"c":"0x1F"})");
}

// Whatever is repeated: twice the text is twice the work, and a byte is looked at a few times on average.
TEST(SalvagedJson, IsReadInLinearTime) {
  const std::pair<std::string_view, std::string_view> kRepeated[] = {
      {"{\"a\":\"", "\""},
      {"{\"a\":\"", "\" "},
      {"{\"a\":\"", "x\","},
      {"{\"a\":\"", "\" , \"b"},
      {"{\"a\":\"", "\"'“`”’‘"},
      {"{\"a\":\"", "\"    "},
      {"{\"a\":", "{{"},
      {"{\"a\":", "{{x}} "},
      {"{\"a\":", "{"},
      {"{\"a\":1", "]"},
      {"", "[{"},
      {"[", "}"},
      {"", "/*"},
      {"", "//<![CDATA["},
      {"{\"a\":", "1,234"},
      {"{", "'a':'b' c"},
      {"{\"a\":[\"", "\" \\\""},
      {"{\"a\":\"", "\":\",\""},
      {"{\"a\":\"", "\"“name “ x"},
      {"[", "{\"a\":\"b\" c\"}"},
  };
  for (const auto& [begin, repeated] : kRepeated) {
    std::string text(begin);
    while (text.size() < (std::size_t{1} << 16)) text += repeated;
    for (const std::string_view end : {"", "}", "]}", "\"}"}) {
      std::uint64_t looked_at = 0;
      (void)salvaged_json(text + std::string(end), &looked_at);
      EXPECT_LE(looked_at, text.size() * 50) << begin << repeated << end;
    }
  }
  // As much of each kind of bracket as there are closing ones of the other kind.
  std::uint64_t looked_at = 0;
  const std::size_t many = std::size_t{1} << 16;
  (void)salvaged_json(std::string(many, '[') + std::string(many, '}'), &looked_at);
  EXPECT_LE(looked_at, 50 * 2 * many);
}

TEST(SalvagedJson, OfAnyPiecesIsStrictOrNothing) {
  constexpr std::string_view kPieces[] = {"{",         "}",   "[",     "]",    ",",      ":",   "\"", "'",
                                          "“",         "\\",  "\\u",   "d83d", "\\\"",   "//",  "\n", "<!--",
                                          "<![CDATA[", "]]>", "1,000", "-0",   "{{",     "}}",  "e9", "NaN",
                                          "true",      ";",   " ",     "a",    "&quot;", "\xff"};
  Random random{5};
  for (int i = 0; i < 5'000; ++i) {
    std::string text;
    for (std::uint64_t left = random.below(14); left > 0; --left) text += kPieces[random.below(std::size(kPieces))];
    const std::string read = salvaged_json(text);
    if (is_utf8(read)) EXPECT_TRUE(read.empty() || JsonText::parse(read)) << text << "\n" << read;
  }
}

}  // namespace
}  // namespace argiope
