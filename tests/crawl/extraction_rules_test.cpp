// What rules take from pages.
#include <gmock/gmock.h>

#include "argiope/crawl/sinks.hpp"
#include "base/internal/json_reader.hpp"
#include "crawl/extract/internal/extraction_json.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Url kPageUrl = Url::parse("https://shop.example/item/7?x=1").value();

ExtractionRules rules_of_fields(const std::vector<std::string>& fields, std::string each = "") {
  ExtractionRule rule;
  rule.each = std::move(each);
  for (const std::string& text : fields) rule.fields.push_back(parse_field(text).value());
  return {{rule}};
}
ExtractionRules rules_of_json(std::string_view text) {
  const auto json = JsonText::parse(text);
  JsonErrors errors;
  ExtractionRules rules = read_extraction_rules(json->root(errors));
  EXPECT_FALSE(errors) << errors.error().message;
  return rules;
}

// A value as a test writes it.
std::string told(const FieldValue& value) {
  if (value.kind == FieldValue::Kind::none) return "none";
  if (value.kind != FieldValue::Kind::list) return value.text;
  std::string all = "[";
  for (const FieldValue& entry : value.list) all += (all.size() > 1 ? "|" : "") + told(entry);
  return all + "]";
}
ExtractedRecords extracted(const ExtractionRules& rules, std::string_view html,
                           std::string_view type = "text/html; charset=utf-8") {
  const auto extractor = Extractor::compile(rules);
  EXPECT_TRUE(extractor) << extractor.error().message;
  ExtractedPage page{kPageUrl, html, type};
  page.depth = 3;
  page.fetched_at = WallTime{std::chrono::seconds{1773325800}};
  auto records = extractor->extract(page);
  EXPECT_TRUE(records) << records.error().message;
  return records ? std::move(*records) : ExtractedRecords{};
}
// Of the only record.
std::vector<std::string> values(const std::vector<std::string>& fields, std::string_view html) {
  const ExtractedRecords records = extracted(rules_of_fields(fields), html);
  std::vector<std::string> all;
  if (records.records.empty()) return {"no record"};
  for (const FieldValue& value : records.records[0].values) all.push_back(told(value));
  return all;
}
std::string mistake(const ExtractionRules& rules) {
  const auto extractor = Extractor::compile(rules);
  return extractor ? "no mistake" : extractor.error().message;
}
std::string mistake_in(const std::string& field) {
  const auto rule = parse_field(field);
  return rule ? mistake(rules_of_fields({field})) : rule.error().message;
}

constexpr std::string_view kShop = R"json(<html lang=en><head><title> Lamp &amp; more </title>
<meta name=description content="A lamp"><meta property=og:title content="The Lamp"><meta itemprop=price content="9.50">
<link rel=canonical href=/item/7><base href=/shop/>
<script type="application/ld+json">{"@type":"Product","name":"L","offers":{"price":9.5}}</script></head>
<body><h1>Lamp <b>X</b></h1><p class=price>EUR 1.234,50</p><p class=stock>yes</p><a class=more href="more?a=1&amp;b=2">More</a>
<time datetime="2026-03-12T14:30:00Z">yesterday</time><img src="l.png"><ul><li>a</li><li></li><li>b</li></ul><h2>Size</h2></body></html>)json";

TEST(Extraction, TakesTextInOneLineByCssAndXPath) {
  EXPECT_THAT(values({"title=css:h1", "same=xpath://h1", "raw=css:h1::text", "none=css:h6"}, kShop),
              ElementsAre("Lamp X", "Lamp X", "Lamp", "none"));
}

TEST(Extraction, ConvertsToEachType) {
  EXPECT_THAT(
      values({"n:number=css:.price", "s:boolean=css:.stock", "u:url=css:a.more", "d:date=css:time",
              "i:integer=xpath:count(//li)", "h:html=css:h1", "in:inner_html=css:h1", "l:lines=css:ul",
              "img:url=css:img", "m:number=css:meta[itemprop=price]"},
             kShop),
      ElementsAre("1234.50", "true", "https://shop.example/shop/more?a=1&b=2", "2026-03-12T14:30:00Z", "3",
                  "<h1>Lamp <b>X</b></h1>", "Lamp <b>X</b>", "a\nb", "https://shop.example/shop/l.png", "9.50"));
}

TEST(Extraction, TakesListsWithoutEmptyValues) {
  EXPECT_THAT(values({"all[]=css:li", "none[]=css:h6", "hrefs[]=css:a::attr(href)"}, kShop),
              ElementsAre("[a|b]", "none", "[more?a=1&b=2]"));
}

TEST(Extraction, TakesWhatPagesSayOfThemselves) {
  EXPECT_THAT(values({"a=meta:description", "b=og:title", "c=jsonld:Product$.name", "d:number=jsonld:$.offers.price",
                      "e=jsonld:$.offers"},
                     kShop),
              ElementsAre("A lamp", "The Lamp", "L", "9.5", "{\"price\":9.5}"));
  EXPECT_THAT(values({"a=page:title", "b=page:canonical", "c=page:language", "d=page:description", "e=page:headings",
                      "f=page:url", "g:integer=page:status", "h:integer=page:depth", "i=page:fetched_at",
                      "j=page:content_type"},
                     kShop),
              ElementsAre("Lamp & more", "https://shop.example/item/7", "en", "A lamp",
                          R"json([{"level":1,"text":"Lamp X"},{"level":2,"text":"Size"}])json",
                          "https://shop.example/item/7?x=1", "200", "3", "2026-03-12T14:30:00.000Z",
                          "text/html; charset=utf-8"));
}

TEST(Extraction, ReadsANumberThatIsRaisedOrStruckOutApart) {
  constexpr std::string_view kPrices =
      "<p id=a>$12<sup>99</sup></p><p id=b>10<sup>2</sup> kg</p><p id=c><s>15</s><b>12</b></p><p "
      "id=d>12<span>34</span></p><p id=e>85 m<sup>2</sup></p>";
  EXPECT_THAT(values({"a:number=css:#a", "c:number=css:#c", "d:number=css:#d", "e:number=css:#e"}, kPrices),
              ElementsAre("12.99", "15", "1234", "85"));
  EXPECT_EQ(extracted(rules_of_fields({"b:number=css:#b"}), kPrices).troubles.size(), 1u) << "a power";
}

TEST(Extraction, ReadsBrokenLinkedDataAndItemsWithinItems) {
  constexpr std::string_view kScript = "<script type=application/ld+json>";
  const std::string within =
      std::string(kScript) +
      R"({"@type":"ItemList","itemListElement":[{"item":{"@type":"https://schema.org/Product/","name":"P"}}]})" +
      "</script>";
  EXPECT_THAT(values({"a=jsonld:Product$.name"}, within), ElementsAre("P"));
  const std::string broken =
      std::string(kScript) + R"(var x = {"@type":"Product","size":"24" TV",'name':"P" "b":[1)" + "</script>";
  EXPECT_THAT(values({"a=jsonld:Product$.name", "b=jsonld:Product$.size"}, broken), ElementsAre("P", "24\" TV"));
}

TEST(Extraction, SearchesThePageByPatterns) {
  EXPECT_THAT(values({"price:number=re:EUR ([0-9.,]+)", "all[]=re:<li>(\\w+)", "whole=re:EUR \\d"}, kShop),
              ElementsAre("1234.50", "[a|b]", "EUR 1"));
}

TEST(Extraction, CutsValuesByPatterns) {
  const auto rules = rules_of_json(R"json({"rule":[{"fields":{"cents":{"css":".price","re":",(\\d+)","type":"integer"},
    "whole":{"css":".price","re":"\\d+"},"none":{"css":".price","re":"USD"}}}]})json");
  const auto records = extracted(rules, kShop).records;
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(told(records[0].values[0]), "50");
  EXPECT_EQ(told(records[0].values[1]), "1");
  EXPECT_EQ(told(records[0].values[2]), "none");
}

TEST(Extraction, TakesTheFirstSourceThatHasAValue) {
  const auto rules = rules_of_json(
      R"json({"rule":[{"fields":{"t":["css:h6","og:title","css:h1"],"u":{"css":["h6","h2"],"meta":"description"},
    "d":{"css":"h6","default":"nothing"},"n":{"css":"h6","type":"number","default":0},"c":{"css":"a.more","attribute":"href"}}}]})json");
  const auto records = extracted(rules, kShop).records;
  ASSERT_EQ(records.size(), 1u);
  std::vector<std::string> all;
  for (const FieldValue& value : records[0].values) all.push_back(told(value));
  EXPECT_THAT(all, ElementsAre("The Lamp", "Size", "nothing", "0", "more?a=1&b=2"));
}

TEST(Extraction, TakesTheFirstMatchThatHasAValue) {
  EXPECT_THAT(values({"a=css:p", "b=xpath://p", "c=css:p::text", "d:integer=css:p"}, "<p> <p><b>x</b> <p>7<p>8"),
              ElementsAre("x", "x", "7", "7"));
  const auto records = extracted(rules_of_fields({"n:integer=css:p", "t=css:p"}), "<p>x<p>y<p>3<p>z");
  EXPECT_EQ(told(records.records[0].values[0]), "3");
  ASSERT_EQ(records.troubles.size(), 2u) << "each match is tried once";
  EXPECT_THAT(records.troubles[0].why, HasSubstr("x"));
  EXPECT_THAT(records.troubles[1].why, HasSubstr("y"));
}

TEST(Extraction, MakesARecordOfEachElement) {
  constexpr std::string_view html =
      "<title>T</title><div class=i><b>1</b><a href=x>p</a></div><div class=i><b>2</b></div><div "
      "class=i></div><b>3</b>";
  auto rules = rules_of_fields({"n:integer=css:b", "u:url=css:a", "t=page:title"}, "css:.i");
  auto records = extracted(rules, html).records;
  ASSERT_EQ(records.size(), 3u) << "the title is a value, also of the third";
  EXPECT_EQ(told(records[0].values[1]), "https://shop.example/item/x");
  EXPECT_EQ(told(records[1].values[0]), "2");
  EXPECT_EQ(told(records[1].values[1]), "none");
  rules.rules[0].fields.pop_back();
  EXPECT_EQ(extracted(rules, html).records.size(), 2u) << "one without a value is none";
  rules.rules[0].each = "xpath://div[b]";
  EXPECT_EQ(extracted(rules, html).records.size(), 2u);
}

TEST(Extraction, DropsRecordsWithoutARequiredField) {
  auto rules = rules_of_fields({"n:integer=css:b", "a=css:a"}, "css:.i");
  rules.rules[0].fields[1].required = true;
  const auto found = extracted(rules, "<div class=i><b>1</b><a>x</a></div><div class=i><b>2</b></div>");
  EXPECT_EQ(found.records.size(), 1u);
  EXPECT_EQ(found.dropped, 1u);
  ASSERT_EQ(found.troubles.size(), 1u);
  EXPECT_EQ(found.troubles[0].field, 1u);
}

TEST(Extraction, TellsWhatCannotBeConverted) {
  const auto found = extracted(rules_of_fields({"t=css:h1", "n:number=css:p"}), "<h1>x</h1><p>free</p><p>5</p>");
  ASSERT_EQ(found.records.size(), 1u);
  EXPECT_EQ(told(found.records[0].values[1]), "5") << "the next one counts";
  ASSERT_EQ(found.troubles.size(), 1u);
  EXPECT_EQ(found.troubles[0].why, "\"free\": there is no number in it");
}

TEST(Extraction, SaysOfANumberInTheOtherNotationThatTheRuleIsWrong) {
  auto rules = rules_of_fields({"n:number=css:p"});
  EXPECT_EQ(told(extracted(rules, "<p>1,50 EUR</p>").records[0].values[0]), "1.50") << "the number tells";
  rules.rules[0].fields[0].decimal = '.';
  EXPECT_EQ(extracted(rules, "<p>1,50 EUR</p>").troubles[0].why, "\"1,50 EUR\": no number whose decimal sign is \".\"");
}

TEST(Extraction, GoesByTheFirstRuleThatMatches) {
  auto rules = rules_of_json(R"json({"rule":[{"name":"other","match":"/other/**","fields":{"a":"css:h1"}},
    {"name":"item","match":["re:/item/\\d+"],"fields":{"b":"css:h1"}},{"fields":{"a":"css:h2"}}]})json");
  const auto extractor = Extractor::compile(rules);
  EXPECT_THAT(extractor->columns(), ElementsAre("a", "b"));
  const auto found = extracted(rules, kShop);
  EXPECT_EQ(found.rule, 1u);
  EXPECT_EQ(told(found.records[0].values[0]), "none");
  EXPECT_EQ(told(found.records[0].values[1]), "Lamp X");
  EXPECT_FALSE(extractor->has_field(1, 0));
  EXPECT_EQ(extractor->rule_name(2), "3");
  rules.rules.resize(2);
  EXPECT_FALSE(Extractor::compile(rules)->matches("https://shop.example/"));
}

TEST(Extraction, ReadsXml) {
  const auto records =
      extracted(
          rules_of_fields({"t=css:title", "m:url=css:media|thumbnail::attr(url)", "d:date=css:pubDate"}, "css:item"),
          "<?xml version='1.0'?><rss xmlns:media='m'><channel><title>no</title><item><title>A</title><media:thumbnail "
          "url='t.png'/>"
          "<pubDate>Thu, 12 Mar 2026 14:30:00 GMT</pubDate></item></channel></rss>",
          "application/rss+xml")
          .records;
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(told(records[0].values[0]), "A");
  EXPECT_EQ(told(records[0].values[1]), "https://shop.example/item/t.png");
  EXPECT_EQ(told(records[0].values[2]), "2026-03-12T14:30:00Z");
}

// --- pages that are JSON

constexpr std::string_view kItemsJson = R"json({"shop":"S","a/b":{"~":"odd"},"items":[
  {"name":" Lamp ","price":9.5,"new":true,"tags":["x","y",null,""],"at":"12 March 2026","more":{"n":1},"link":"/l?a","text":"EUR 1.234,50","none":null},
  {"name":"Bulb","price":"3,50","new":false}],"matrix":[[1,2],[3]],"n":12345678901234,"*":7})json";

std::vector<std::string> json_values(const std::vector<std::string>& fields, std::string_view json = kItemsJson) {
  const ExtractedRecords records = extracted(rules_of_fields(fields), json, "application/json");
  std::vector<std::string> all;
  if (records.records.empty()) return {"no record"};
  for (const FieldValue& value : records.records[0].values) all.push_back(told(value));
  return all;
}

TEST(ExtractionOfJson, GoesByPointers) {
  EXPECT_THAT(json_values({"a=json:/shop", "b=json:/items/1/name", "c=json:/a~1b/~0", "d=json:/items/2/name",
                           "e=json:/items/01/name", "f=json:/shop/x", "g=json:/items/name", "h=json:/items/0/none",
                           "i=json:/n", "j=json:/*"}),
              ElementsAre("S", "Bulb", "odd", "none", "none", "none", "none", "none", "12345678901234", "7"));
}

TEST(ExtractionOfJson, KeepsKindsAndConvertsToOthers) {
  const auto records =
      extracted(rules_of_fields({"a=json:/items/0/price", "b=json:/items/0/new", "c:raw=json:/items/0/price",
                                 "d:json=json:/items/0/name", "e=json:/items/0/more", "f:json=json:/items/0/more",
                                 "g:number=json:/items/1/price"}),
                kItemsJson, "application/json; charset=utf-8")
          .records;
  ASSERT_EQ(records.size(), 1u);
  using Kind = FieldValue::Kind;
  EXPECT_THAT(records[0].values,
              ElementsAre(FieldValue{Kind::number, "9.5", {}}, FieldValue{Kind::boolean, "true", {}},
                          FieldValue{Kind::text, "9.5", {}}, FieldValue{Kind::json, "\" Lamp \"", {}},
                          FieldValue{Kind::json, "{\"n\":1}", {}}, FieldValue{Kind::json, "{\"n\":1}", {}},
                          FieldValue{Kind::number, "3.50", {}}));
  EXPECT_THAT(json_values({"a=json:/items/0/name", "b:date=json:/items/0/at", "c:url=json:/items/0/link",
                           "d:number=json:/items/0/text", "e:boolean=json:/items/0/new",
                           "f:integer=json:/items/0/price", "g=re:EUR ([0-9.,]+)", "h=page:url"}),
              ElementsAre("Lamp", "2026-03-12", "https://shop.example/l?a", "1234.50", "true", "none", "1.234,50",
                          "https://shop.example/item/7?x=1"));
}

TEST(ExtractionOfJson, TakesLists) {
  EXPECT_THAT(json_values({"a[]=json:/items/0/tags", "b=json:/items/0/tags", "c[]=json:/items/*/name",
                           "d[]=json:/matrix/*/*", "e[]=json:/matrix", "f=json:/matrix/*/0", "g[]=json:/shop"}),
              ElementsAre("[x|y]", "[\"x\",\"y\",null,\"\"]", "[Lamp|Bulb]", "[1|2|3]", "[[1,2]|[3]]", "1", "[S]"));
}

TEST(ExtractionOfJson, MakesARecordOfEachEntry) {
  auto found = extracted(rules_of_fields({"n=json:/name", "p:number=json:/price", "u=page:url"}, "json:/items"),
                         kItemsJson, "application/json");
  ASSERT_EQ(found.records.size(), 2u);
  EXPECT_EQ(told(found.records[1].values[0]), "Bulb");
  EXPECT_EQ(told(found.records[1].values[1]), "3.50");
  EXPECT_EQ(extracted(rules_of_fields({"n=json:/0"}, "json:/matrix"), kItemsJson, "application/json").records.size(),
            2u);
  EXPECT_EQ(extracted(rules_of_fields({"n=json:"}, "json:/matrix/*"), kItemsJson, "application/json").records.size(),
            3u);
  EXPECT_EQ(
      extracted(rules_of_fields({"n=json:/n"}, "json:/items/*/more"), kItemsJson, "application/json").records.size(),
      1u);
  EXPECT_EQ(extracted(rules_of_fields({"n=json:"}, "json:/shop"), kItemsJson, "application/json").records.size(), 0u);
  EXPECT_EQ(extracted(rules_of_fields({"n=json:/a"}, "json:"), "[{\"a\":1},{\"b\":1},{\"a\":2}]", "application/json")
                .records.size(),
            2u);
  EXPECT_EQ(extracted(rules_of_fields({"n=json:/name"}, "json:/items"), "<p>x</p>").records.size(), 0u) << "no JSON";
}

TEST(ExtractionOfJson, LivesBesideSourcesOfPages) {
  const std::vector<std::string> fields = {"a=css:h1"};
  auto rules = rules_of_fields(fields);
  rules.rules[0].fields[0].sources.insert(rules.rules[0].fields[0].sources.begin(), "json:/shop");
  rules.rules[0].fields[0].sources.push_back("meta:description");
  EXPECT_EQ(told(extracted(rules, kItemsJson, "application/json").records[0].values[0]), "S");
  EXPECT_EQ(told(extracted(rules, kShop).records[0].values[0]), "Lamp X");
  EXPECT_TRUE(extracted(rules, "{}", "application/json").records.empty());
}

TEST(ExtractionOfJson, TellsJsonByItsTypeElseByItsFirstCharacter) {
  const auto json = Extractor::compile(rules_of_fields({"a=json:/a"}));
  const auto tree = Extractor::compile(rules_of_fields({"a=css:a"}));
  const std::string href = kPageUrl.href();
  for (const std::string_view type : {"application/json", "Application/LD+JSON; charset=utf-8", "text/json"}) {
    EXPECT_TRUE(json->reads(href, type, "x"));
    EXPECT_FALSE(tree->reads(href, type, "x"));
  }
  EXPECT_TRUE(json->reads(href, "text/plain", "\xEF\xBB\xBF \n[1]"));
  EXPECT_TRUE(json->reads(href, "", "{}"));
  EXPECT_FALSE(json->reads(href, "", "GIF89a"));
  EXPECT_FALSE(json->reads(href, "text/plain", ""));
  EXPECT_TRUE(json->reads(href, "text/html", "{}")) << "a page as others; it has no such field";
  EXPECT_TRUE(tree->reads(href, "application/rss+xml", ""));
  EXPECT_EQ(json_values({"a=json:/a"}, "\xEF\xBB\xBF{\"a\":\"\u00e9\"}"), std::vector<std::string>{"\u00e9"});
  const auto latin = extracted(rules_of_fields({"a=json:/a"}), "{\"a\":\"\xE9\"}", "application/json; charset=latin1");
  EXPECT_EQ(told(latin.records.at(0).values[0]), "\u00e9");
}

TEST(ExtractionOfJson, ThatIsNoneIsAnError) {
  const auto extractor = Extractor::compile(rules_of_fields({"a=json:/a"}));
  std::string deep(10'000, '[');
  for (const std::string_view text : std::initializer_list<std::string_view>{"", "{\"a\":", "{\"a\":1}x", deep}) {
    const auto records = extractor->extract({kPageUrl, text, "application/json"});
    ASSERT_FALSE(records) << text.substr(0, 20);
    EXPECT_EQ(records.error().code, Errc::invalid_input);
  }
  EXPECT_EQ(extractor->extract({kPageUrl, std::string(11 << 20, ' '), "application/json"}).error().code,
            Errc::too_large);
}

TEST(ExtractionOfJson, IsBoundedInWork) {
  std::string list = "[0";
  for (int i = 0; i < 1'000'000; ++i) list += ",0";
  std::vector<std::string> fields;
  for (int i = 0; i < 60; ++i) fields.push_back("f" + std::to_string(i) + "=json:/" + std::to_string(900'000 + i));
  const auto extractor = Extractor::compile(rules_of_fields(fields));
  const auto records = extractor->extract({kPageUrl, list + "]", "application/json"});
  ASSERT_FALSE(records);
  EXPECT_EQ(records.error().message, "json: the pointers take too long on this page");
}

TEST(ExtractionOfJson, LeavesOutValuesThatAreTooLong) {
  const std::string text = "{\"a\":[\"" + std::string(Extractor::kMostValueBytes, 'x') + "\"],\"b\":1}";
  const auto found = extracted(rules_of_fields({"a=json:/a", "b=json:/b"}), text, "application/json");
  EXPECT_EQ(told(found.records.at(0).values[0]), "none");
  ASSERT_EQ(found.troubles.size(), 1u);
  EXPECT_THAT(found.troubles[0].why, HasSubstr("too long"));
}

TEST(Extraction, CountsWhatWasFoundInDroppedRecordsToo) {
  auto rules = rules_of_fields({"n:integer=css:b", "a=css:a", "d=css:u"}, "css:.i");
  rules.rules[0].fields[1].required = true;
  rules.rules[0].fields[2].fallback = "x";
  const auto found =
      extracted(rules, "<div class=i><b>1</b><a>x</a></div><div class=i><b>2</b></div><div class=i></div>");
  EXPECT_EQ(found.records.size(), 1u);
  EXPECT_THAT(found.found, ElementsAre(2, 1, 0));
}

TEST(Extraction, BoundsWhatElementsWithinElementsRepeat) {
  std::string deep;
  for (int i = 0; i < 300; ++i) deep += "<div>";
  deep += "<p>" + std::string(1'000'000, 'x');
  const auto extractor = Extractor::compile(rules_of_fields({"h:html=css:div"}, "css:div"));
  const auto records = extractor->extract({kPageUrl, deep, "text/html"});
  ASSERT_FALSE(records);
  EXPECT_EQ(records.error().message, "its values have more than 67108864 bytes together");
}

TEST(Extraction, KeepsARecordWithoutValuesWhereThatIsWanted) {
  auto rules = rules_of_fields({"a=css:h6", "b=css:h5"});
  rules.rules[0].fields[0].required = true;
  rules.rules[0].fields[1].fallback = "x";
  EXPECT_TRUE(extracted(rules, kShop).records.empty());
  rules.rules[0].keeps_empty = true;
  const auto found = extracted(rules, kShop);
  ASSERT_EQ(found.records.size(), 1u);
  EXPECT_EQ(told(found.records[0].values[1]), "x");
  EXPECT_EQ(found.dropped, 0u);
}

TEST(Extraction, NeedsNoTreeForWhatIsKnownWithoutOne) {
  const std::string deep(100'000, '<');
  EXPECT_THAT(values({"u=page:url"}, deep + "div>"), ElementsAre("https://shop.example/item/7?x=1"));
}

TEST(Extraction, OfAPageThatCannotBeReadIsAnError) {
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "<div>";
  const auto extractor = Extractor::compile(rules_of_fields({"a=css:h1"}));
  const auto records = extractor->extract({kPageUrl, deep, "text/html"});
  ASSERT_FALSE(records);
  EXPECT_EQ(records.error().message, "elements are nested deeper than 512");
}

TEST(ExtractionMistake, InAFieldIsTold) {
  EXPECT_THAT(mistake_in("css:h1"), HasSubstr("write it as NAME=css:SELECTOR"));
  EXPECT_THAT(mistake_in("=css:h1"), HasSubstr("write it as NAME=css:SELECTOR"));
  EXPECT_THAT(mistake_in("a:word=css:h1"), HasSubstr("the types are text, lines, raw"));
  EXPECT_EQ(
      mistake_in("a=h1"),
      "field \"a\": \"h1\": begin it with css:, xpath:, re:, meta:, og:, twitter:, jsonld:, json:, readable: or page:");
  EXPECT_EQ(mistake_in("a=css:h1 >"),
            "field \"a\": css \"h1 >\": a selector is missing behind the combinator, at character 5");
  EXPECT_EQ(mistake_in("a=xpath://a["), "field \"a\": xpath \"//a[\": a step is missing, at character 5");
  EXPECT_EQ(mistake_in("a=re:("), "field \"a\": re \"(\": missing ): (");
  EXPECT_EQ(
      mistake_in("a=page:name"),
      "field \"a\": \"page:name\": there is url, status, depth, content_type, size, fetched_at, title, canonical, "
      "language, description, headings, text, html");
  EXPECT_EQ(mistake_in("a=jsonld:name"),
            "field \"a\": jsonld \"name\": write it as $.name or Product$.name, at character 1");
  EXPECT_THAT(mistake_in("url=css:h1"), HasSubstr("every record has a member of this name"));
  EXPECT_THAT(mistake_in("a=meta:"), HasSubstr("a name is missing"));
  EXPECT_EQ(mistake_in("a=json:items"), "field \"a\": json \"items\": begin it with a slash, as in /items/0/price");
  EXPECT_EQ(mistake_in("a=json:/a~2"),
            "field \"a\": json \"/a~2\": behind \"~\" there is 0 or 1: \"~0\" stands for \"~\", \"~1\" for \"/\"");
  EXPECT_THAT(mistake_in("a=json:/a~"), HasSubstr("behind \"~\""));
  EXPECT_THAT(mistake_in("a=json:/" + std::string(9'000, 'x')), HasSubstr("more than 8192 bytes"));
}

TEST(ExtractionMistake, InARuleIsTold) {
  EXPECT_EQ(mistake({}), "extraction needs a rule");
  EXPECT_EQ(mistake({{ExtractionRule{.name = "x"}}}), "rule \"x\": it has no fields");
  EXPECT_EQ(mistake(rules_of_fields({"a=css:h1", "a=css:h2"})), "field \"a\": it is there twice");
  EXPECT_EQ(mistake(rules_of_fields({"a=css:h1"}, "h1")), "each: \"h1\": begin it with css:, xpath: or json:");
  EXPECT_THAT(mistake(rules_of_fields({"a=json:/a"}, "json:items")),
              HasSubstr("each: json \"items\": begin it with a slash"));
  EXPECT_EQ(mistake(rules_of_fields({"a=json:/a", "b=css:h1"}, "json:/items")),
            "field \"b\": \"css:h1\": there is no such thing within each record, which is JSON");
  EXPECT_EQ(mistake(rules_of_fields({"a=json:/a"}, "css:.i")),
            "field \"a\": \"json:/a\": there is no such thing within each record, which is an element of a page");
  auto rules = rules_of_fields({"a:number=css:h1"});
  rules.rules[0].fields[0].fallback = "none";
  EXPECT_EQ(mistake(rules), "field \"a\": default \"none\": there is no number in it");
  rules = rules_of_fields({"a=meta:x"});
  rules.rules[0].fields[0].attribute = "href";
  EXPECT_EQ(mistake(rules), "field \"a\": attribute is for css and xpath alone");
  rules = rules_of_fields({"a=css:h1"});
  rules.rules[0].match = {"re:("};
  EXPECT_THAT(mistake(rules), HasSubstr("match"));
}

TEST(ExtractionJson, KeepsTheOrderOfFieldsAndSources) {
  const auto rules = rules_of_json(
      R"json({"rule":[{"fields":{"z":"css:a","a":{"meta":"x","css":["b","c"],"json":"/d","from":"page:url"}}}]})json");
  EXPECT_EQ(rules.rules[0].fields[0].name, "z");
  EXPECT_THAT(rules.rules[0].fields[1].sources, ElementsAre("meta:x", "css:b", "css:c", "json:/d", "page:url"));
}

TEST(ExtractionJson, RefusesWhatIsUnknownOrOfAnotherType) {
  const auto wrong = [](std::string_view text) {
    const auto json = JsonText::parse(text);
    JsonErrors errors;
    (void)read_extraction_rules(json->root(errors));
    return errors ? errors.error().message : std::string("no mistake");
  };
  EXPECT_THAT(wrong(R"json({"rules":[]})json"), HasSubstr("[[rule]]"));
  EXPECT_THAT(wrong(R"json({"rule":[{"fields":{"a":{"css":"b","requird":true}}}]})json"),
              HasSubstr("member \"requird\": a field has none"));
  EXPECT_THAT(wrong(R"json({"rule":[{"fields":{"a":5}}]})json"), HasSubstr("rule[0].fields.a \"5\": a string"));
  EXPECT_THAT(wrong(R"json({"rule":[{"fields":{"a":{"css":"b","type":"word"}}}]})json"),
              HasSubstr("fields.a.type \"word\": text, lines"));
  EXPECT_THAT(wrong(R"json({"rule":[{"fields":{"a":{"css":"b","default":[1]}}}]})json"), HasSubstr("default"));
  EXPECT_THAT(wrong(R"json({"rule":[{"name":"x"}]})json"), HasSubstr("a rule needs fields"));
  EXPECT_THAT(wrong(R"json({"rule":[{"fields":{},"path":"x"}]})json"), HasSubstr("a rule has none"));
}

TEST(ExtractionRules, ATextIsInOneLineWhateverItsSource) {
  const std::string page =
      "<meta name=description content='two\n   lines'><script "
      "type='application/ld+json'>{\"@type\":\"A\",\"n\":\"two\\n  lines\"}</script>"
      "<p title='two\n  lines'>two\n   lines</p><data value=' two\tlines '>2</data>";
  EXPECT_THAT(values({"a=css:p", "b=css:p::attr(title)", "c=xpath://p/@title", "d=meta:description", "e=jsonld:A$.n",
                      "f=re:<p[^>]*>([^<]*)", "g=css:data", "h=page:description"},
                     page),
              testing::Each("two lines"));
  EXPECT_THAT(values({"a:lines=meta:description", "b:raw=re:<p[^>]*>([^<]*)"}, page), testing::Each("two\n   lines"));
  EXPECT_THAT(values({"a=page:text"}, "<p>one</p><p>two</p>"), ElementsAre("one\n\ntwo")) << "its lines are what it is";
}

}  // namespace
}  // namespace argiope
