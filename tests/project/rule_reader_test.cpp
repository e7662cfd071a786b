// What a project's rules make of an answer.
#include "project/process/internal/rule_reader.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <cstdio>

namespace argiope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr WallTime kReadAt = std::chrono::sys_days{std::chrono::year{2026} / 11 / 23};
const std::string kShopPage = "http://shop.test/list/1";

ExtractionRule rule_of(std::string name, std::vector<std::string> match, const std::vector<std::string>& fields = {}) {
  ExtractionRule rule{.name = std::move(name), .match = std::move(match)};
  for (const std::string& field : fields) rule.fields.push_back(parse_field(field).value());
  return rule;
}

// item (0): price and title; list (1): follows all; api (2): JSON, a record for each of its items
ProjectDefinition shop_rules() {
  ProjectDefinition shop{.name = "shop", .start = {*Url::parse("http://shop.test/")}};
  shop.rules.resize(3);
  shop.rules[0].extraction = rule_of("item", {"/item/*"}, {"title=css:h1", "price:number=css:.p"});
  shop.rules[0].follow = false;
  shop.rules[1].extraction = rule_of("list", {"/list/*", "/"});
  shop.rules[2].extraction = rule_of("api", {"/api/**"}, {"name=json:/name", "price=json:/price"});
  shop.rules[2].extraction.each = "json:/items";
  return shop;
}

PageResponse answer_of(std::string body, std::string type = "text/html; charset=utf-8") {
  PageResponse response{.status = 200};
  response.headers = {{"Server", "x"}, {"content-TYPE", std::move(type)}};
  response.body = std::move(body);
  return response;
}

class RuleReaderTest : public testing::Test {
 protected:
  RuleReader reader_for(const ProjectDefinition& project) {
    auto map = ProjectMap::make(project);
    EXPECT_TRUE(map);
    auto reader = RuleReader::make(project, *map, "argiope");
    EXPECT_TRUE(reader) << reader.error().message;
    return std::move(*reader);
  }
  const RuleReading& read(std::size_t rule, const PageResponse& response, const std::string& url = kShopPage) {
    reader_.read(rule, url, response, kReadAt, reading_);
    return reading_;
  }
  std::vector<std::string> values() const {
    std::vector<std::string> all;
    if (!reading_.results) return {"as they are"};
    for (const PageResult& result : *reading_.results) all.push_back(result.part + ": " + result.value_json);
    return all;
  }

  ProjectDefinition shop_ = shop_rules();
  RuleReader reader_ = reader_for(shop_);
  RuleReading reading_;
};

TEST_F(RuleReaderTest, FollowsLinksThatARuleMatchesEachOnce) {
  read(1,
       answer_of(
           "<a href='/item/1#a'>x</a><a href=../item/1>x</a><a href='/item/2' rel='nofollow'>x</a><a href=/about>x</a>"
           "<a href=http://other.test/item/1>x</a><a href=mailto:a@b>x</a><a href='2'>x</a><a "
           "href=//www.shop.test/item/3?a=%20b>x</a>"));
  EXPECT_THAT(reading_.links,
              ElementsAre("http://shop.test/item/1", "http://shop.test/list/2", "http://www.shop.test/item/3?a=%20b"));
  EXPECT_THAT(reading_.rules, ElementsAre(0, 1, 0));
  EXPECT_EQ(reading_.results, std::nullopt);
  EXPECT_FALSE(reading_.not_read);
}

TEST_F(RuleReaderTest, FollowsARefreshFieldAsALinkOfThePage) {
  PageResponse page = answer_of("<base href=/elsewhere/><a href=/item/1>x</a>");
  page.headers.emplace_back("Refresh", "0; URL='../item/2#part'");
  EXPECT_THAT(read(1, page).links, ElementsAre("http://shop.test/item/1", "http://shop.test/item/2"));
  page.body.clear();
  page.headers[1].second = "text/plain";
  EXPECT_THAT(read(1, page).links, ElementsAre("http://shop.test/item/2"));
  EXPECT_THAT(read(1, page).links, ElementsAre("http://shop.test/item/2")) << "each page anew";
  page.headers.emplace_back("X-Robots-Tag", "nofollow");
  EXPECT_THAT(read(1, page).links, IsEmpty());
}

TEST_F(RuleReaderTest, FindsTheLinksOfEachPageAnew) {
  const PageResponse page = answer_of("<a href=/item/1>x</a>");
  EXPECT_EQ(read(1, page).links.size(), 1u);
  EXPECT_EQ(read(1, page).links.size(), 1u);
  RuleReader other = reader_.another();
  RuleReading reading;
  other.read(1, kShopPage, page, kReadAt, reading);
  EXPECT_EQ(reading.links, reading_.links);
}

TEST_F(RuleReaderTest, ResolvesLinksAgainstWhereRedirectsLed) {
  PageResponse page = answer_of("<a href=2>x</a>");
  page.url = "http://shop.test/item/deep/#x";
  EXPECT_THAT(read(1, page).links, IsEmpty()) << "http://shop.test/item/deep/2 matches no rule";
  page.url = "http://shop.test/list/y";
  EXPECT_THAT(read(1, page).links, ElementsAre("http://shop.test/list/2"));
  page.body = "<base href='/item/'>" + page.body;
  EXPECT_THAT(read(1, page).links, ElementsAre("http://shop.test/item/2"));
}

TEST_F(RuleReaderTest, GoesByWhatTheRuleFollows) {
  const PageResponse page = answer_of("<a href=/item/1>x</a><a href=/list/2>x</a>");
  EXPECT_THAT(read(0, page).links, IsEmpty());
  shop_.rules[1].follow_only = {"/list/*"};
  reader_ = reader_for(shop_);
  EXPECT_THAT(read(1, page).links, ElementsAre("http://shop.test/list/2"));
}

TEST_F(RuleReaderTest, FollowsNothingWherePagesAskForThat) {
  const std::string link = "<a href=/item/1>x</a>";
  EXPECT_THAT(read(1, answer_of("<meta name=robots content=nofollow>" + link)).links, IsEmpty());
  EXPECT_TRUE(reading_.nofollow);
  EXPECT_THAT(read(1, answer_of("<meta name=Argiope content=none>" + link)).links, IsEmpty());
  EXPECT_EQ(read(1, answer_of("<meta name=otherbot content=nofollow>" + link)).links.size(), 1u);
  EXPECT_FALSE(reading_.nofollow);
  PageResponse page = answer_of(link);
  page.headers.emplace_back("X-Robots-Tag", "argiope: nofollow");
  EXPECT_THAT(read(1, page).links, IsEmpty());
  EXPECT_TRUE(reading_.nofollow);
  page.headers.back().second = "otherbot: nofollow";
  EXPECT_EQ(read(1, page).links.size(), 1u);
}

TEST_F(RuleReaderTest, TakesNothingFromWhatIsNoSuccess) {
  PageResponse page = answer_of("<a href=/item/1>x</a><h1>A</h1>");
  for (const int status : {0, 204, 301, 304, 404, 500}) {
    page.status = status;
    EXPECT_THAT(read(1, page).links, IsEmpty());
    EXPECT_EQ(read(0, page).results, std::nullopt);
    EXPECT_FALSE(reading_.not_read);
  }
  page.status = 200;
  page.error_kind = "too_large";
  EXPECT_THAT(read(1, page).links, IsEmpty());
  page.error_kind.clear();
  EXPECT_THAT(read(1, page, "data:,on_start").links, IsEmpty());
  EXPECT_THAT(read(1, answer_of("<a href=/item/1>x</a>", "application/pdf")).links, IsEmpty());
}

TEST_F(RuleReaderTest, GivesARecordOfThePage) {
  read(0, answer_of("<h1>Lamp</h1><p class=p>EUR 9.50</p>"), "http://shop.test/item/1");
  EXPECT_THAT(values(), ElementsAre(R"(: {"title":"Lamp","price":9.50})"));
  EXPECT_THAT(reading_.found, ElementsAre(1, 1));
  EXPECT_THAT(reader_.columns(0), ElementsAre("title", "price"));
  read(0, answer_of("<h1>Lamp</h1><p class=p>free</p>"));
  EXPECT_THAT(values(), ElementsAre(R"(: {"title":"Lamp","price":null})"));
  EXPECT_THAT(reading_.found, ElementsAre(1, 0));
  ASSERT_EQ(reading_.troubles.size(), 1u);
  EXPECT_EQ(reading_.troubles[0].field, "price");
  EXPECT_THAT(reading_.troubles[0].why, HasSubstr("there is no number in it"));
}

TEST_F(RuleReaderTest, SaysThatAPageHasNoResultsAnyMore) {
  read(0, answer_of("<p>nothing</p>"));
  ASSERT_TRUE(reading_.results);
  EXPECT_THAT(*reading_.results, IsEmpty());
  EXPECT_EQ(reading_.records(), 0u);
}

TEST_F(RuleReaderTest, LeavesResultsAsTheyAreWhereThePageCannotBeRead) {
  read(0, answer_of("%PDF", "application/pdf"));
  EXPECT_EQ(reading_.results, std::nullopt);
  ASSERT_TRUE(reading_.not_read);
  EXPECT_EQ(reading_.not_read->message, "nothing is taken from pages of type application/pdf");
  read(2, answer_of("{\"items\":", "application/json"));
  EXPECT_EQ(reading_.results, std::nullopt);
  EXPECT_TRUE(reading_.not_read);
  read(2, answer_of("{}", "application/json"));
  EXPECT_TRUE(reading_.results);
  EXPECT_FALSE(reading_.not_read);
}

TEST_F(RuleReaderTest, CountsFieldsOfRecordsThatWereDropped) {
  shop_.rules[0].extraction.fields[1].required = true;
  reader_ = reader_for(shop_);
  read(0, answer_of("<h1>Lamp</h1>"));
  EXPECT_THAT(values(), IsEmpty());
  EXPECT_EQ(reading_.dropped, 1u);
  EXPECT_EQ(reading_.records(), 1u);
  EXPECT_THAT(reading_.found, ElementsAre(1, 0));
}

TEST_F(RuleReaderTest, NumbersTheRecordsOfAPage) {
  read(2, answer_of(R"({"items":[{"name":"A","price":3},{"price":4.5},{},{"name":null}]})", "application/json"));
  EXPECT_THAT(values(), ElementsAre(R"(0: {"name":"A","price":3})", R"(1: {"name":null,"price":4.5})"));
  EXPECT_THAT(reading_.found, ElementsAre(1, 2));
}

TEST_F(RuleReaderTest, TellsRecordsApartByTheFieldThatIsTheirPart) {
  shop_.rules[2].part = "name";
  reader_ = reader_for(shop_);
  read(2, answer_of(R"({"items":[{"name":"A","price":3},{"price":4},{"name":"B","price":5},{"name":"A","price":6}]})",
                    "application/json"));
  EXPECT_THAT(values(), ElementsAre(R"(A: {"name":"A","price":6})", R"(B: {"name":"B","price":5})"));
  EXPECT_EQ(reading_.dropped, 2u);
  ASSERT_EQ(reading_.troubles.size(), 2u);
  EXPECT_EQ(reading_.troubles[0].field, "name");
  EXPECT_EQ(reading_.troubles[0].why, "it is the part of the record, and not there");
  EXPECT_EQ(reading_.troubles[1].why, "\"A\": several records have this part, and the last counts");
  read(2, answer_of("{\"items\":[{\"name\":\"" + std::string(2'000, 'x') + "\"}]}", "application/json"));
  EXPECT_THAT(values(), IsEmpty());
  EXPECT_EQ(reading_.troubles[0].why, "a part has at most 1000 bytes");
}

TEST_F(RuleReaderTest, BoundsWhatAPageGives) {
  std::string many = "{\"items\":[";
  for (int i = 0; i < 10'200; ++i) many += "{\"price\":" + std::to_string(i) + "},";
  many += "{\"name\":\"" + std::string(2'000'000, 'x') + "\"}]}";
  read(2, answer_of(many, "application/json"));
  EXPECT_EQ(reading_.results->size(), RuleReader::kMostResults);
  EXPECT_EQ(reading_.dropped, 201u);
  EXPECT_EQ(reading_.troubles.size(), RuleReader::kMostTroubles);
  read(2, answer_of("{\"items\":[{\"name\":\"" + std::string(2'000'000, 'x') + "\"}]}", "application/json"));
  EXPECT_EQ(reading_.dropped, 1u);
  EXPECT_THAT(reading_.troubles[0].why, HasSubstr("at most 1048576 are kept"));
}

TEST_F(RuleReaderTest, RefusesRulesThatAreNone) {
  shop_.rules[0].extraction.fields[0].sources = {"css:h1 >"};
  const auto reader = RuleReader::make(shop_, *ProjectMap::make(shop_), "argiope");
  ASSERT_FALSE(reader);
  EXPECT_THAT(reader.error().message, HasSubstr("rule \"item\": field \"title\": css"));
  shop_ = shop_rules();
  shop_.rules[2].part = "sku";
  EXPECT_FALSE(RuleReader::make(shop_, *ProjectMap::make(shop_), "argiope"));
}

// --- for scripts

TEST(ScriptFieldsTest, GivesAllFieldsOfAPage) {
  const auto fields = ScriptFields::compile(
      R"({"title":"css:h1","price":{"css":".p","type":"number","required":true},"stock":{"css":".s","default":"no"}})");
  ASSERT_TRUE(fields) << fields.error().message;
  std::vector<std::string> troubles;
  EXPECT_EQ(fields->read(kShopPage, answer_of("<h1>Lamp</h1><p class=p>9</p>"), kReadAt, troubles),
            R"({"title":"Lamp","price":9,"stock":"no"})");
  EXPECT_THAT(troubles, IsEmpty());
  EXPECT_EQ(fields->read(kShopPage, answer_of("<p class=p>free</p>"), kReadAt, troubles),
            R"({"title":null,"price":null,"stock":"no"})");
  EXPECT_THAT(troubles, ElementsAre("field \"price\": \"free\": there is no number in it"));
}

TEST(ScriptFieldsTest, GivesNullsOfWhatCannotBeRead) {
  const auto fields = ScriptFields::compile(R"({"a":["json:/a","css:h1"]})");
  ASSERT_TRUE(fields);
  std::vector<std::string> troubles;
  EXPECT_EQ(fields->read(kShopPage, answer_of("GIF", "image/gif"), kReadAt, troubles), R"({"a":null})");
  EXPECT_THAT(troubles, ElementsAre("fields: nothing is taken from pages of type image/gif"));
  troubles.clear();
  EXPECT_EQ(fields->read("data:,on_start", answer_of("{}", "application/json"), kReadAt, troubles), R"({"a":null})");
  EXPECT_EQ(troubles.size(), 1u);
  EXPECT_EQ(fields->read(kShopPage, answer_of(R"({"a":{"b":1}})", "application/json"), kReadAt, troubles),
            R"({"a":{"b":1}})");
  EXPECT_EQ(fields->read(kShopPage, answer_of("<h1>x</h1>"), kReadAt, troubles), R"({"a":"x"})");
}

TEST(ScriptFieldsTest, RefusesWhatIsNoSource) {
  EXPECT_FALSE(ScriptFields::compile("{"));
  EXPECT_FALSE(ScriptFields::compile("[]"));
  EXPECT_FALSE(ScriptFields::compile(R"({"a":"h1"})"));
  EXPECT_FALSE(ScriptFields::compile(R"({"a":{"css":"h1","typ":"text"}})"));
  const auto wrong = ScriptFields::compile(R"({"a":"css:h1 >"})");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("field \"a\": css \"h1 >\""));
  std::vector<std::string> troubles;
  EXPECT_EQ(ScriptFields::compile("{}")->read(kShopPage, answer_of("x"), kReadAt, troubles), "{}");
}

}  // namespace
}  // namespace argiope
