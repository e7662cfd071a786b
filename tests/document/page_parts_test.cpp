// What pages say of themselves: title, meta, canonical URL, headings, JSON-LD.
#include "document/internal/page_parts.hpp"

#include <gmock/gmock.h>

#include "document/internal/linked_data.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Document page_of(std::string_view html) { return std::move(Document::parse_html(html).value()); }

TEST(PageTitle, IsTheFirstTitleThatIsNotOfAPicture) {
  EXPECT_EQ(page_title(page_of("<svg><title>no</title></svg><title> A\n page </title><title>b</title>")), "A page");
  EXPECT_EQ(page_title(page_of("<p>none")), "");
}

TEST(PageMeta, IsFoundByNamePropertyItempropOrHttpEquivInAnyCase) {
  const Document page = page_of(
      "<meta name=Description content=' a '><meta property=og:title content=b><meta itemprop=price content=c>"
      "<meta http-equiv=refresh content=5><meta property=og:title content=d><meta name=empty content=''><meta "
      "name=none>");
  EXPECT_THAT(meta_values(page, "description"), ElementsAre("a"));
  EXPECT_THAT(meta_values(page, "og:title"), ElementsAre("b", "d"));
  EXPECT_THAT(meta_values(page, "PRICE"), ElementsAre("c"));
  EXPECT_THAT(meta_values(page, "refresh"), ElementsAre("5"));
  EXPECT_THAT(meta_values(page, "empty"), IsEmpty());
}

TEST(PageUrls, AreResolvedAgainstTheBase) {
  const Url url = Url::parse("http://h/a/b").value();
  EXPECT_EQ(canonical_url(page_of("<link rel='x CANONICAL' href='c?d#e'>"), url)->href(), "http://h/a/c?d");
  EXPECT_EQ(canonical_url(page_of("<base href=//i/><link rel=canonical href=c>"), url)->href(), "http://i/c");
  EXPECT_FALSE(canonical_url(page_of("<link rel=canonical href=' '><link rel=icon href=x>"), url));
  EXPECT_FALSE(canonical_url(page_of("<link rel=canonical href='http://['>"), url));
  EXPECT_EQ(base_url(page_of("<base target=x><base href=/y/>"), url).href(), "http://h/y/");
  EXPECT_EQ(base_url(page_of("<template><base href=/x/></template><base href=/y/>"), url).href(), "http://h/y/");
  EXPECT_EQ(base_url(page_of("<template><base href=/x/></template>"), url).href(), "http://h/a/b");
  EXPECT_EQ(base_url(page_of(""), url).href(), "http://h/a/b");
}

TEST(PageHeadings, ComeInTheirOrderWithTheirLevels) {
  const auto found = headings(page_of("<h2>b</h2><h1>a <i>c</i></h1><header>x</header><hr><h6>d</h6>"));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].level, 2);
  EXPECT_EQ(found[1].text, "a c");
  EXPECT_EQ(found[2].level, 6);
}

TEST(PageLanguage, IsThatOfTheRoot) {
  EXPECT_EQ(page_language(page_of("<html lang=' de-AT '><p lang=en>")), "de-AT");
  EXPECT_EQ(page_language(page_of("<p lang=en>")), "");
}

// --- JSON-LD --------------------------------------------------------------------------------------------------------

std::vector<std::string> linked(std::string_view json, std::string_view path) {
  const Document page = page_of("<script type='application/ld+json'>" + std::string(json) + "</script>");
  const auto parsed = LinkedDataPath::parse(path);
  if (!parsed) return {parsed.error().message};
  std::vector<std::string> texts;
  for (const LinkedValue& value : LinkedData(page).find(*parsed)) texts.push_back(value.text);
  return texts;
}

constexpr std::string_view kProduct = R"({"@context":"https://schema.org","@graph":[
  {"@type":"WebSite","name":"Shop"},
  {"@type":["Product","Thing"],"name":"Lamp","offers":[{"price":"9.50","n":1},{"price":8,"ok":true}],"brand":{"name":"B"},"x":null}]})";

TEST(LinkedDataPaths, FindMembersOfItems) {
  EXPECT_THAT(linked(kProduct, "$.name"), ElementsAre("Shop", "Lamp"));
  EXPECT_THAT(linked(kProduct, "Product$.name"), ElementsAre("Lamp"));
  EXPECT_THAT(linked(kProduct, "Product$.brand.name"), ElementsAre("B"));
  EXPECT_THAT(linked(kProduct, "Product$.brand"), ElementsAre("{\"name\":\"B\"}"));
  EXPECT_THAT(linked(kProduct, "Person$.name"), IsEmpty());
  EXPECT_THAT(linked(kProduct, "$.x"), IsEmpty()) << "null is no value";
  EXPECT_THAT(linked(kProduct, "$..ok"), ElementsAre("true"));
}

TEST(LinkedDataPaths, GoIntoLists) {
  EXPECT_THAT(linked(kProduct, "$.offers.price"), ElementsAre("9.50", "8"));
  EXPECT_THAT(linked(kProduct, "$.offers[*].price"), ElementsAre("9.50", "8"));
  EXPECT_THAT(linked(kProduct, "$.offers[1].price"), ElementsAre("8"));
  EXPECT_THAT(linked(kProduct, "$.brand[0].name"), ElementsAre("B")) << "one stands for a list of one";
  EXPECT_THAT(linked(kProduct, "$..price"), ElementsAre("9.50", "8"));
  EXPECT_THAT(linked("[{\"a\":1},[{\"a\":2}]]", "$.a"), ElementsAre("1", "2"));
}

TEST(LinkedDataPaths, TakeATypeWithItsNamespace) {
  EXPECT_THAT(linked(R"({"@type":"http://schema.org/Product","name":"a"})", "Product$.name"), ElementsAre("a"));
  EXPECT_THAT(linked(R"({"@type":"IndividualProduct","name":"a"})", "Product$.name"), IsEmpty());
}

TEST(LinkedDataPaths, ForgiveWhatPeopleWrite) {
  EXPECT_THAT(linked("<!-- {\"a\":\"1\"} -->", "$.a"), ElementsAre("1"));
  EXPECT_THAT(linked("//<![CDATA[\n{\"a\":\"1\"}\n//]]>", "$.a"), ElementsAre("1"));
  EXPECT_THAT(linked("{\"a\":\"1\n2\\\"\",}", "$.a"), ElementsAre("1 2\""));
  EXPECT_THAT(linked("{\"a\":[1,],};", "$.a"), ElementsAre("[1]"));
}

TEST(LinkedDataPaths, LoseNoItemByOneBadCharacter) {
  EXPECT_THAT(linked(R"({"@type":"Product","name":"N","description":"nice \ud83d"})", "Product$.name"),
              ElementsAre("N"));
  EXPECT_THAT(linked("\n// <![CDATA[\n{\"@type\":\"Product\",\"name\":\"N\"}\n// ]]>\n", "Product$.name"),
              ElementsAre("N"));
  EXPECT_THAT(linked("\xef\xbb\xbf{\"a\":\"1\"}{\"a\":\"2\"}", "$.a"), ElementsAre("1", "2"));
  const Document page = page_of("<script type='application/ld+json'>// nothing</script>");
  EXPECT_EQ(LinkedData(page).unreadable(), 0u);
}

TEST(LinkedDataPaths, CountWhatCannotBeRead) {
  const Document page =
      page_of("<script type='application/ld+json'>hello</script><script type='application/ld+json'>{\"a\":1}</script>");
  EXPECT_EQ(LinkedData(page).unreadable(), 1u);
  EXPECT_EQ(LinkedData(page).find(*LinkedDataPath::parse("$.a")).size(), 1u);
}

TEST(LinkedDataPaths, AreToldWhatIsWrongWithThem) {
  EXPECT_THAT(linked("{}", "name"),
              ElementsAre("jsonld \"name\": write it as $.name or Product$.name, at character 1"));
  EXPECT_THAT(linked("{}", "$."), ElementsAre("jsonld \"$.\": a name is missing, at character 3"));
  EXPECT_THAT(linked("{}", "$.a[x]"), ElementsAre("jsonld \"$.a[x]\": write [0], [1] … or [*], at character 4"));
  EXPECT_THAT(linked("{}", "$.a[0"), ElementsAre("jsonld \"$.a[0\": \"]\" is missing, at character 4"));
  EXPECT_THAT(linked("{}", "$name"), ElementsAre("jsonld \"$name\": \".\" or \"[\" is missing, at character 2"));
}

}  // namespace
}  // namespace argiope
