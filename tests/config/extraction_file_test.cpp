// Files of rules for extraction.
#include "config/internal/extraction_file.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;

std::string wrong_rules(std::string_view text) {
  const auto rules = parse_extraction(text, "a.toml");
  return rules ? "no mistake" : rules.error().message;
}

TEST(ExtractionRuleFile, IsReadInTheOrderInWhichItIsWritten) {
  const auto rules = parse_extraction(R"(
[[rule]]
name = "shop"
match = ["https://shop.example/item/*", "re:/p/[0-9]+$"]
each = "css:.item"

[rule.fields]
title = "css:h2"
price = { css = ".price", type = "number", required = true, decimal = "," }
images = { css = "img", attribute = "src", type = "url", all = true }
brand = ["jsonld:Product$.brand.name", "css:.brand"]
added = { xpath = "//time", type = "date", day_first = true, default = "2026-01-01" }

[[rule]]
fields = { title = "page:title" }
)",
                                      "a.toml");
  ASSERT_TRUE(rules) << rules.error().message;
  ASSERT_EQ(rules->rules.size(), 2u);
  const ExtractionRule& shop = rules->rules[0];
  EXPECT_EQ(shop.name, "shop");
  EXPECT_THAT(shop.match, ElementsAre("https://shop.example/item/*", "re:/p/[0-9]+$"));
  std::vector<std::string> names;
  for (const FieldRule& field : shop.fields) names.push_back(field.name);
  EXPECT_THAT(names, ElementsAre("title", "price", "images", "brand", "added"));
  EXPECT_TRUE(shop.fields[1].required);
  EXPECT_EQ(shop.fields[1].decimal, ',');
  EXPECT_EQ(shop.fields[2].attribute, "src");
  EXPECT_EQ(shop.fields[2].type, FieldType::url);
  EXPECT_THAT(shop.fields[3].sources, ElementsAre("jsonld:Product$.brand.name", "css:.brand"));
  EXPECT_EQ(shop.fields[4].day_first, true);
}

TEST(ExtractionRuleFile, TellsWhatIsWrongAndWhere) {
  EXPECT_EQ(wrong_rules("[[rule]]\nfields = { a = \"css:h1 >\" }"),
            "a.toml:2: field \"a\": css \"h1 >\": a selector is missing behind the combinator, at character 5");
  EXPECT_EQ(wrong_rules(
                "[[rule]]\nname = \"x\"\n[rule.fields]\nb = \"css:p\"\n[rule.fields.a]\ncss = \"p\"\ntype = \"word\""),
            "a.toml:7: rule[0].fields.a.type \"word\": text, lines, raw, html, inner_html, number, integer, boolean, "
            "date, url or json");
  EXPECT_EQ(wrong_rules("[[rule]]\nname = \"x\"\n[rule.fields]\nb = \"css:p\"\na = \"p\""),
            "a.toml:5: rule \"x\": field \"a\": \"p\": begin it with css:, xpath:, re:, meta:, og:, twitter:, jsonld:, "
            "json:, readable: or page:");
  EXPECT_EQ(wrong_rules("[[rules]]"), "a.toml:1: member \"rules\": rules are under [[rule]]");
  EXPECT_EQ(wrong_rules("[[rule]]\nname = \"x\""), "a.toml:1: rule[0]: a rule needs fields");
  EXPECT_TRUE(wrong_rules("[[rule]\n").starts_with("a.toml:1: "));
  EXPECT_EQ(wrong_rules("a = nan"), "a.toml:1: a number must be finite");
}

TEST(ExtractionRuleFile, ThatIsNotThereIsAnError) {
  EXPECT_EQ(read_extraction_file("/nowhere/a.toml").error().message, "/nowhere/a.toml: No such file or directory");
  const TemporaryFolder folder;
  std::ofstream(folder.file("a.toml")) << "[[rule]]\nfields = { a = \"css:h1\" }\n";
  EXPECT_TRUE(read_extraction_file(folder.file("a.toml")));
}

}  // namespace
}  // namespace argiope
