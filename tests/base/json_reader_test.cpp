#include "base/internal/json_reader.hpp"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "base/internal/printable.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Reads a shop's form: {"name": text, "open": true or false, "shelves": [{"size": 1 to 9, "kind": "cold" or "warm"}]}.
struct Shop {
  std::string name;
  bool is_open = false;
  std::vector<std::int64_t> sizes;
};

Shop read_shop(std::string_view json, JsonErrors& errors) {
  const auto text = JsonText::parse(json);
  Shop shop;
  text->root(errors).for_each_member([&](std::string_view name, const JsonValue& value) {
    if (name == "name") {
      shop.name = value.text(1, 8);
    } else if (name == "open") {
      shop.is_open = value.flag();
    } else if (name == "shelves" && value.is_list()) {
      value.for_each([&](const JsonValue& shelf) {
        shelf.for_each_member([&](std::string_view of_shelf, const JsonValue& given) {
          if (of_shelf == "size") shop.sizes.push_back(given.whole(1, 9));
          if (of_shelf == "kind") given.one_of({"cold", "lukewarm", "warm"});
          if (of_shelf == "lamp") given.refuse_member("there is no lamp");
          if (of_shelf == "door") given.refuse("too small");
        });
      });
    } else {
      value.refuse_member("there is no member " + in_quotes(name, 20));
    }
  });
  return shop;
}

std::string error_of(std::string_view json) {
  JsonErrors errors;
  read_shop(json, errors);
  return errors ? errors.error().message : "";
}

TEST(JsonReader, ReadsTypedMembers) {
  JsonErrors errors;
  const Shop shop =
      read_shop(R"({"name": "Anna", "open": true, "shelves": [{"size": 3, "kind": "cold"}, {"size": 9}]})", errors);
  EXPECT_FALSE(errors);
  EXPECT_EQ(shop.name, "Anna");
  EXPECT_TRUE(shop.is_open);
  EXPECT_THAT(shop.sizes, ElementsAre(3, 9));
}

TEST(JsonReader, AnErrorNamesTheMembersThatLeadToIt) {
  EXPECT_EQ(error_of(R"({"name": ""})"), R"(name "": a string of 1 to 8 bytes)");
  EXPECT_EQ(error_of(R"({"open": 1})"), "open 1: true or false");
  EXPECT_EQ(error_of(R"({"shelves": [{"size": 3}, {"size": 10}]})"), "shelves[1].size 10: a whole number from 1 to 9");
  EXPECT_EQ(error_of(R"({"shelves": [{"size": 3.5}]})"), "shelves[0].size 3.5: a whole number from 1 to 9");
  EXPECT_EQ(error_of(R"({"shelves": [{"kind": "hot"}]})"), R"(shelves[0].kind "hot": "cold", "lukewarm" or "warm")");
  EXPECT_EQ(error_of(R"({"shelves": [{"lamp": 1}]})"), "shelves[0]: there is no lamp");
  EXPECT_EQ(error_of(R"({"shelves": [{"door": 1}]})"), "shelves[0].door: too small");
  EXPECT_EQ(error_of(R"({"street": "x"})"), R"(there is no member "street")");
}

TEST(JsonReader, TheFirstErrorCounts) {
  EXPECT_EQ(error_of(R"({"shelves": [{"size": 0}, {"size": "x"}], "open": 7})"),
            "shelves[0].size 0: a whole number from 1 to 9");
}

TEST(JsonReader, AnErrorIsOneShortLine) {
  EXPECT_EQ(error_of("{\"a\\nb\": 1}").find('\n'), std::string::npos);
  EXPECT_LT(error_of(R"({"name": ")" + std::string(10'000, 'x') + "\"}").size(), 300u);
  EXPECT_LT(error_of("{\"" + std::string(10'000, 'x') + "\": 1}").size(), 300u);
}

TEST(JsonReader, ThePathOfAnErrorIsThereForWhoKnowsItsLine) {
  JsonErrors errors;
  read_shop(R"({"shelves": [{"size": 3}, {"size": 10}]})", errors);
  EXPECT_EQ(errors.where(), (JsonPath{std::string("shelves"), std::size_t{1}, std::string("size")}));
  EXPECT_EQ(errors.why(), "a whole number from 1 to 9");
  EXPECT_EQ(to_string(errors.where()), "shelves[1].size");
}

TEST(JsonReader, TellsWhatIsThereWithoutComplaint) {
  JsonErrors errors;
  const auto natural = [&](std::string_view json) { return JsonText::parse(json)->root(errors).if_natural(); };
  EXPECT_EQ(natural("18446744073709551615"), 18'446'744'073'709'551'615u);
  EXPECT_EQ(natural("1e3"), 1000u);
  EXPECT_EQ(natural("1.5"), std::nullopt);
  EXPECT_EQ(natural("-1"), std::nullopt);
  EXPECT_EQ(natural("1e300"), std::nullopt);
  EXPECT_EQ(natural("\"1\""), std::nullopt);
  EXPECT_EQ(JsonText::parse("7")->root(errors).if_number(), 7.0);
  EXPECT_EQ(JsonText::parse("[1, 2]")->root(errors).size(), 2u);
  EXPECT_EQ(JsonText::parse(R"( { "a" : [ 1 , "b" ] } )")->root(errors).json(), R"({"a":[1,"b"]})");
  EXPECT_FALSE(errors);
}

TEST(JsonReader, KeepsAValueForOthersToRead) {
  JsonErrors errors;
  const auto kept = [&](std::string_view json) { return JsonText::parse(json)->root(errors).kept_json(); };
  EXPECT_EQ(kept(R"( {"a" : [1, -2, 1.5, 1.0, true, null, 18446744073709551615], "b\n": "\u00e9\/\u0001\t"} )"),
            R"({"a":[1,-2,1.5,1.0,true,null,18446744073709551615],"b\n":"é/\u0001\t"})");
  EXPECT_EQ(kept(R"({"a":1,"b":2,"a":{"c":3,"c":4}})"), R"({"a":{"c":4},"b":2})");
  EXPECT_EQ(kept("\"x\""), "\"x\"");
}

TEST(JsonReader, ShowsAStringWithoutQuotesAndOtherValuesAsJson) {
  JsonErrors errors;
  EXPECT_EQ(JsonText::parse(R"("a\"b")")->root(errors).shown(), "a\"b");
  EXPECT_EQ(JsonText::parse("[1, \"a\"]")->root(errors).shown(), R"([1,"a"])");
  EXPECT_TRUE(JsonText::parse("5.0")->root(errors).is_fraction());
  EXPECT_FALSE(JsonText::parse("5")->root(errors).is_fraction());
}

TEST(JsonReader, ANameThatIsThereTwiceComesOnceWithItsLastValue) {
  JsonErrors errors;
  std::vector<std::string> seen;
  const auto text = JsonText::parse(R"({"a":1,"b":2,"a":3})");
  text->root(errors).for_each_name([&](std::string_view name, const JsonValue& value) {
    seen.push_back(std::string(name) + value.json() + to_string(value.path()));
  });
  EXPECT_THAT(seen, ElementsAre("a3a", "b2b"));
}

TEST(JsonReader, AnErrorMayShowTheNameOrSomethingElse) {
  const auto error = [](std::string_view json, auto complain) {
    JsonErrors errors;
    const auto text = JsonText::parse(json);
    text->root(errors).for_each_member([&](std::string_view, const JsonValue& outer) {
      outer.for_each_member([&](std::string_view, const JsonValue& inner) { complain(inner); });
    });
    return errors.error();
  };
  constexpr std::string_view kText = R"({"a":{"b c":7}})";
  EXPECT_EQ(error(kText, [](const JsonValue& value) { value.complain("0 to 5"); }).message, R"(a.b c "7": 0 to 5)");
  EXPECT_EQ(error(kText, [](const JsonValue& value) { value.complain_of("x", "a word"); }).message,
            R"(a.b c "x": a word)");
  EXPECT_EQ(error(kText, [](const JsonValue& value) { value.refuse_name("no name"); }).message, R"(a "b c": no name)");
  const Error large = error(kText, [](const JsonValue& value) { value.refuse({Errc::too_large, "too much"}); });
  EXPECT_EQ(large.message, "a.b c: too much");
  EXPECT_EQ(large.code, Errc::too_large);
}

TEST(JsonReader, AnObjectIsReadWithinItsBound) {
  const auto why = [](std::string_view json) { return JsonText::parse_object("form", json, 16).error().message; };
  EXPECT_TRUE(JsonText::parse_object("form", R"({"a":1})", 16));
  EXPECT_EQ(why("[1]"), R"(form "[1]": no JSON object (another value))");
  EXPECT_THAT(why("{\"a\n"), HasSubstr(R"(form "{"a\n": no JSON object ()"));
  EXPECT_EQ(why(R"({"a":12345678901})"), "form: 17 bytes of JSON, at most 16");
}

TEST(JsonReader, RefusesWhatIsNoJson) {
  for (const char* json :
       {"", "{", "{} {}", "nonsense", "{\"a\":\"\xff\"}", "{\"a\":1e999}", "{\"a\":NaN}",
        "{\"a\":18446744073709551616}", "{\"a\":\"\\ud800\"}", "{\"a\":\"\\udc00\"}", "{\"a\":\"\n\"}", "[1,]"}) {
    const auto text = JsonText::parse(json);
    ASSERT_FALSE(text) << json;
    EXPECT_EQ(text.error().code, Errc::invalid_input);
    EXPECT_FALSE(text.error().message.empty());
  }
  EXPECT_TRUE(JsonText::parse(std::string(60, '[') + std::string(60, ']')));
  EXPECT_THAT(JsonText::parse(std::string(70, '[') + std::string(70, ']')).error().message, HasSubstr("nested deeper"));
}

TEST(JsonReader, ATextMayBeReadWhileAnotherIsOpen) {
  JsonErrors errors;
  const auto outer = JsonText::parse(R"({"name": "outer"})");
  {
    const auto inner = JsonText::parse(R"({"name": "inner", "x": [1, 2, 3]})");
    EXPECT_EQ(inner->root(errors).size(), 2u);
  }
  EXPECT_EQ(JsonText::parse("[]")->root(errors).size(), 0u);
  EXPECT_EQ(outer->root(errors).json(), R"({"name":"outer"})");
}

TEST(CountJsonValues, IsABoundThatStopsAtTheMostAndCountsAStringOnce) {
  EXPECT_EQ(count_json_values("7", 10), 1u);
  EXPECT_EQ(count_json_values(R"([1,2,3])", 10), 4u);
  EXPECT_EQ(count_json_values(R"({"a":1,"b":[1,2]})", 10), 5u);
  EXPECT_EQ(count_json_values("[{},{}]", 10), 5u) << "an empty one counts twice";
  EXPECT_EQ(count_json_values(R"(["[,{,\",[","\\",1])", 10), 4u);
  EXPECT_EQ(count_json_values("[1,2,3,4,5,6,7,8]", 4), 5u);
  EXPECT_EQ(count_json_values("", 4), 1u);
  EXPECT_EQ(count_json_values(R"("no end [,,)", 4), 1u);
}

}  // namespace
}  // namespace argiope
