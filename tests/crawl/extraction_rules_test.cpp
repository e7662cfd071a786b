// What rules take from pages.
#include "argiope/crawl/extraction_rules.hpp"

#include <gmock/gmock.h>

#include "base/internal/json_reader.hpp"
#include "crawl/internal/extraction_json.hpp"

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
ExtractedRecords extracted(const ExtractionRules& rules, std::string_view html, std::string_view type = "text/html; charset=utf-8") {
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
  EXPECT_THAT(values({"n:number=css:.price", "s:boolean=css:.stock", "u:url=css:a.more", "d:date=css:time", "i:integer=xpath:count(//li)",
                      "h:html=css:h1", "in:inner_html=css:h1", "l:lines=css:ul", "img:url=css:img", "m:number=css:meta[itemprop=price]"},
                     kShop),
              ElementsAre("1234.50", "true", "https://shop.example/shop/more?a=1&b=2", "2026-03-12T14:30:00Z", "3",
                          "<h1>Lamp <b>X</b></h1>", "Lamp <b>X</b>", "a\nb", "https://shop.example/shop/l.png", "9.50"));
}

TEST(Extraction, TakesListsWithoutEmptyValues) {
  EXPECT_THAT(values({"all[]=css:li", "none[]=css:h6", "hrefs[]=css:a::attr(href)"}, kShop), ElementsAre("[a|b]", "none", "[more?a=1&b=2]"));
}

TEST(Extraction, TakesWhatPagesSayOfThemselves) {
  EXPECT_THAT(values({"a=meta:description", "b=og:title", "c=jsonld:Product$.name", "d:number=jsonld:$.offers.price", "e=jsonld:$.offers"}, kShop),
              ElementsAre("A lamp", "The Lamp", "L", "9.5", "{\"price\":9.5}"));
  EXPECT_THAT(values({"a=page:title", "b=page:canonical", "c=page:language", "d=page:description", "e=page:headings", "f=page:url",
                      "g:integer=page:status", "h:integer=page:depth", "i=page:fetched_at", "j=page:content_type"},
                     kShop),
              ElementsAre("Lamp & more", "https://shop.example/item/7", "en", "A lamp",
                          R"json([{"level":1,"text":"Lamp X"},{"level":2,"text":"Size"}])json", "https://shop.example/item/7?x=1", "200", "3",
                          "2026-03-12T14:30:00.000Z", "text/html; charset=utf-8"));
}

TEST(Extraction, SearchesThePageByPatterns) {
  EXPECT_THAT(values({"price:number=re:EUR ([0-9.,]+)", "all[]=re:<li>(\\w+)", "whole=re:EUR \\d"}, kShop), ElementsAre("1234.50", "[a|b]", "EUR 1"));
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
  const auto rules = rules_of_json(R"json({"rule":[{"fields":{"t":["css:h6","og:title","css:h1"],"u":{"css":["h6","h2"],"meta":"description"},
    "d":{"css":"h6","default":"nothing"},"n":{"css":"h6","type":"number","default":0},"c":{"css":"a.more","attribute":"href"}}}]})json");
  const auto records = extracted(rules, kShop).records;
  ASSERT_EQ(records.size(), 1u);
  std::vector<std::string> all;
  for (const FieldValue& value : records[0].values) all.push_back(told(value));
  EXPECT_THAT(all, ElementsAre("The Lamp", "Size", "nothing", "0", "more?a=1&b=2"));
}

TEST(Extraction, MakesARecordOfEachElement) {
  constexpr std::string_view html =
      "<title>T</title><div class=i><b>1</b><a href=x>p</a></div><div class=i><b>2</b></div><div class=i></div><b>3</b>";
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
      extracted(rules_of_fields({"t=css:title", "m:url=css:media|thumbnail::attr(url)", "d:date=css:pubDate"}, "css:item"),
                "<?xml version='1.0'?><rss xmlns:media='m'><channel><title>no</title><item><title>A</title><media:thumbnail url='t.png'/>"
                "<pubDate>Thu, 12 Mar 2026 14:30:00 GMT</pubDate></item></channel></rss>",
                "application/rss+xml")
          .records;
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(told(records[0].values[0]), "A");
  EXPECT_EQ(told(records[0].values[1]), "https://shop.example/item/t.png");
  EXPECT_EQ(told(records[0].values[2]), "2026-03-12T14:30:00Z");
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
  EXPECT_EQ(mistake_in("a=h1"), "field \"a\": \"h1\": begin it with css:, xpath:, re:, meta:, og:, twitter:, jsonld:, readable: or page:");
  EXPECT_EQ(mistake_in("a=css:h1 >"), "field \"a\": css \"h1 >\": a selector is missing behind the combinator, at character 5");
  EXPECT_EQ(mistake_in("a=xpath://a["), "field \"a\": xpath \"//a[\": a step is missing, at character 5");
  EXPECT_EQ(mistake_in("a=re:("), "field \"a\": re \"(\": missing ): (");
  EXPECT_EQ(mistake_in("a=page:name"), "field \"a\": \"page:name\": there is url, status, depth, content_type, size, fetched_at, title, canonical, "
                                       "language, description, headings, text, html");
  EXPECT_EQ(mistake_in("a=jsonld:name"), "field \"a\": jsonld \"name\": write it as $.name or Product$.name, at character 1");
  EXPECT_THAT(mistake_in("url=css:h1"), HasSubstr("every record has a member of this name"));
  EXPECT_THAT(mistake_in("a=meta:"), HasSubstr("a name is missing"));
}

TEST(ExtractionMistake, InARuleIsTold) {
  EXPECT_EQ(mistake({}), "extraction needs a rule");
  EXPECT_EQ(mistake({{ExtractionRule{.name = "x"}}}), "rule \"x\": it has no fields");
  EXPECT_EQ(mistake(rules_of_fields({"a=css:h1", "a=css:h2"})), "field \"a\": it is there twice");
  EXPECT_EQ(mistake(rules_of_fields({"a=css:h1"}, "h1")), "each: \"h1\": begin it with css: or xpath:");
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
  const auto rules = rules_of_json(R"json({"rule":[{"fields":{"z":"css:a","a":{"meta":"x","css":["b","c"],"from":"page:url"}}}]})json");
  EXPECT_EQ(rules.rules[0].fields[0].name, "z");
  EXPECT_THAT(rules.rules[0].fields[1].sources, ElementsAre("meta:x", "css:b", "css:c", "page:url"));
}

TEST(ExtractionJson, RefusesWhatIsUnknownOrOfAnotherType) {
  const auto wrong = [](std::string_view text) {
    const auto json = JsonText::parse(text);
    JsonErrors errors;
    (void)read_extraction_rules(json->root(errors));
    return errors ? errors.error().message : std::string("no mistake");
  };
  EXPECT_THAT(wrong(R"json({"rules":[]})json"), HasSubstr("[[rule]]"));
  EXPECT_THAT(wrong(R"json({"rule":[{"fields":{"a":{"css":"b","requird":true}}}]})json"), HasSubstr("member \"requird\": a field has none"));
  EXPECT_THAT(wrong(R"json({"rule":[{"fields":{"a":5}}]})json"), HasSubstr("rule[0].fields.a \"5\": a string"));
  EXPECT_THAT(wrong(R"json({"rule":[{"fields":{"a":{"css":"b","type":"word"}}}]})json"), HasSubstr("fields.a.type \"word\": text, lines"));
  EXPECT_THAT(wrong(R"json({"rule":[{"fields":{"a":{"css":"b","default":[1]}}}]})json"), HasSubstr("default"));
  EXPECT_THAT(wrong(R"json({"rule":[{"name":"x"}]})json"), HasSubstr("a rule needs fields"));
  EXPECT_THAT(wrong(R"json({"rule":[{"fields":{},"path":"x"}]})json"), HasSubstr("a rule has none"));
}

}  // namespace
}  // namespace argiope
