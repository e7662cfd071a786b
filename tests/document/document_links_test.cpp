// Addresses made absolute, elements by their numbers, and selecting within several.
#include <gtest/gtest.h>

#include "argiope/document/document.hpp"

namespace argiope {
namespace {

using Texts = std::vector<std::string>;

// All attributes named so, after links were made absolute.
Texts absolute_links(std::string_view html, std::string_view url = "https://a.test/b/c?d") {
  Document document = std::move(Document::parse_html(html).value());
  const auto page = Url::parse(url);
  EXPECT_TRUE(document.make_links_absolute(page ? &*page : nullptr));
  const auto found = document.select(Selector::xpath("//@href | //@src | //@action | //@data").value()).value();
  Texts values;
  for (const Match& match : found) values.push_back(match.raw());
  return values;
}
Texts texts_within(const Document& document, const Selector& selector, const std::vector<Match>& within,
                   std::size_t most = 1'000) {
  Texts texts;
  const auto found = document.select(selector, within, most);
  for (const Match& match : found.value()) texts.push_back(match.text());
  return texts;
}

TEST(DocumentLinks, AreAbsoluteWhereTheyLead) {
  EXPECT_EQ(absolute_links(
                "<a href=x><area href=/y><link href=//z.test><img src=1><script src=2></script><iframe src=3></iframe>"
                "<video src=4><source src=5></video><audio src=6></audio><form action='?7'></form>"),
            (Texts{"https://a.test/b/x", "https://a.test/y", "https://z.test/", "https://a.test/b/1",
                   "https://a.test/b/2", "https://a.test/b/3", "https://a.test/b/4", "https://a.test/b/5",
                   "https://a.test/b/6", "https://a.test/b/c?7"}));
}

TEST(DocumentLinks, ElsewhereStayAsTheyAre) {
  EXPECT_EQ(absolute_links("<div href=a></div><object data=b></object><embed src=c><a src=d>"),
            (Texts{"a", "b", "c", "d"}));
}

TEST(DocumentLinks, ThatCannotBeResolvedStayAsTheyAre) {
  EXPECT_EQ(absolute_links("<a href='javascript:x()'></a><a href='mailto:a@b'></a><a href='http://'></a>"),
            (Texts{"javascript:x()", "mailto:a@b", "http://"}));
  EXPECT_EQ(absolute_links("<a href=x></a><a href='https://b.test'></a>", "data:,x"), (Texts{"x", "https://b.test/"}));
}

TEST(DocumentLinks, AreAgainstTheFirstBaseThatHasAnAddress) {
  EXPECT_EQ(absolute_links("<base target=x><base href='/base/'><base href='/other/'><a href=x>"),
            (Texts{"/base/", "/other/", "https://a.test/base/x"}));
  EXPECT_EQ(absolute_links("<template><base href='/base/'></template><a href=x>"),
            (Texts{"/base/", "https://a.test/b/x"}));
  EXPECT_EQ(absolute_links("<base href='https://b.test/c/'><a href=x>", "data:,x"),
            (Texts{"https://b.test/c/", "https://b.test/c/x"}));
  EXPECT_EQ(absolute_links("<base href='mailto:x'><a href=x>"), (Texts{"mailto:x", "https://a.test/b/x"}));
}

TEST(DocumentLinks, HaveTheirQueriesInTheEncodingOfThePage) {
  Document document = std::move(Document::parse("<a href='?\xe9'>", "text/html; charset=iso-8859-1").value());
  const Url page = Url::parse("https://a.test/").value();
  EXPECT_EQ(document.make_links_absolute(&page).value(), std::string("https://a.test/?%E9").size());
  EXPECT_EQ(document.select_first(Selector::css("a").value()).value()->attribute("href"), "https://a.test/?%E9");
}

TEST(DocumentLinks, AreSeenBySelectorsAndInTheMarkup) {
  Document document = std::move(Document::parse_html("<a href=x>y</a>").value());
  const Url page = Url::parse("https://a.test/").value();
  ASSERT_TRUE(document.make_links_absolute(&page));
  const Document moved = std::move(document);
  const auto found = moved.select_first(Selector::css("a[href^=http]").value()).value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->outer_html(), "<a href=\"https://a.test/x\">y</a>");
}

TEST(DocumentElements, HaveNumbersAndAttributes) {
  const Document document = std::move(Document::parse_html("<p id=a title>x<b>y</b>").value());
  const auto p = document.select_first(Selector::css("p").value()).value();
  ASSERT_TRUE(p && p->number());
  EXPECT_EQ(document.element(*p->number())->outer_html(), p->outer_html());
  EXPECT_EQ(p->attributes(), (std::vector<std::pair<std::string_view, std::string_view>>{{"id", "a"}, {"title", ""}}));
  const auto text = document.select_first(Selector::css("p::text").value()).value();
  EXPECT_FALSE(text->number());
  EXPECT_TRUE(text->attributes().empty());
  EXPECT_FALSE(document.element(*p->number() + 1));  // the text
  EXPECT_FALSE(document.element(document.most_number()));
  EXPECT_TRUE(document.element(0));
  EXPECT_EQ(document.root().number(), 0u);
}

TEST(DocumentElements, CostWhatIsInThem) {
  const Document document = std::move(Document::parse_html("<p>" + std::string(1'200, 'x') + "</p><i></i>").value());
  const auto cost = [&](std::string_view css) {
    return document.cost_of(*document.select_first(Selector::css(css).value()).value());
  };
  EXPECT_GE(cost("p"), 100u);
  EXPECT_LE(cost("i"), 3u);
  EXPECT_GE(cost("body"), cost("p") + cost("i"));
  EXPECT_GE(cost("p::text"), 100u);
}

TEST(DocumentSelect, LooksWithinSeveralElements) {
  const Document document = std::move(Document::parse_html("<ul><li>a<b>1</b><li>b<b>2</b></ul><b>3</b>").value());
  const auto items = document.select(Selector::css("li").value()).value();
  const auto all = document.select(Selector::css("ul, li, b").value()).value();
  const Selector css = Selector::css("b").value(), xpath = Selector::xpath(".//b").value();
  EXPECT_EQ(texts_within(document, css, {items[1], items[0]}), (Texts{"1", "2"}));
  EXPECT_EQ(texts_within(document, xpath, {items[1], items[0]}), (Texts{"1", "2"}));
  EXPECT_EQ(texts_within(document, css, all), (Texts{"1", "2", "3"}));
  EXPECT_EQ(texts_within(document, css, all, 2), (Texts{"1", "2"}));
  EXPECT_EQ(texts_within(document, Selector::css("b::text").value(), all), (Texts{"1", "2", "3"}));
  EXPECT_EQ(texts_within(document, Selector::xpath("string(b)").value(), items), (Texts{"1", "2"}));
  EXPECT_EQ(texts_within(document, css, {}), Texts{});
}

// Each of many elements is looked at, and all of them together may cost what one may.
TEST(DocumentSelect, WithinManyCostsNoMoreThanWithinOne) {
  std::string html;
  for (int i = 0; i < 9'000; ++i) html += "<p>";
  const Document document = std::move(Document::parse_html(html).value());
  const auto all = document.select(Selector::css("p").value()).value();
  const auto found = document.select(Selector::xpath("//p").value(), all);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::too_large);
}

}  // namespace
}  // namespace argiope
