// XPath on the trees of HTML and XML.
#include <gtest/gtest.h>

#include <thread>

#include "argiope/document/document.hpp"

namespace argiope {
namespace {

std::string found_by_xpath(const Document& document, std::string_view expression) {
  const auto compiled = Selector::xpath(expression);
  if (!compiled) return compiled.error().message;
  const auto found = document.select(*compiled);
  if (!found) return found.error().message;
  std::string all;
  for (const Match& match : *found) {
    if (!all.empty()) all += '|';
    all += match.raw();
  }
  return all;
}
std::string found_by_xpath(std::string_view html, std::string_view expression) {
  return found_by_xpath(Document::parse_html(html).value(), expression);
}

constexpr std::string_view kPage =
    "<h1>T</h1><ul><li><a href=x class='n m'>1</a><li><a>2</a><li>3<!--c--></ul><p>4<b>5</b>6";

TEST(XPath, FindsElementsTextsAttributesAndComments) {
  EXPECT_EQ(found_by_xpath(kPage, "//h1"), "T");
  EXPECT_EQ(found_by_xpath(kPage, "/html/body/ul/li[2]/a"), "2");
  EXPECT_EQ(found_by_xpath(kPage, "//p/text()"), "4|6");
  EXPECT_EQ(found_by_xpath(kPage, "//a/@href"), "x");
  EXPECT_EQ(found_by_xpath(kPage, "//comment()"), "c");
  EXPECT_EQ(found_by_xpath(kPage, "//li[not(a)] | //h1"), "T|3");
  EXPECT_EQ(found_by_xpath(kPage, "//b/ancestor::p/preceding-sibling::h1"), "T");
}

TEST(XPath, ComputesStringsNumbersAndTruth) {
  EXPECT_EQ(found_by_xpath(kPage, "count(//li)"), "3");
  EXPECT_EQ(found_by_xpath(kPage, "string(//p)"), "456");
  EXPECT_EQ(found_by_xpath(kPage, "sum(//a) div 2"), "1.5");
  EXPECT_EQ(found_by_xpath(kPage, "//li = '3'"), "true");
  EXPECT_EQ(found_by_xpath(kPage, "normalize-space(' a  b ')"), "a b");
}

TEST(XPath, SeesTheTreeThatCssSees) { EXPECT_EQ(found_by_xpath("<table><tr><td>1", "//table/tbody/tr/td"), "1"); }

TEST(XPath, SeesWhatIsNestedDeeply) {
  std::string deep;
  for (int i = 0; i < 500; ++i) deep += "<div>";
  EXPECT_EQ(found_by_xpath(deep + "<b>x</b>", "//b"), "x") << "libxml2's own tree would end at 256";
}

TEST(XPath, KnowsClassesAndPatterns) {
  EXPECT_EQ(found_by_xpath(kPage, "//a[has-class('m')]"), "1");
  EXPECT_EQ(found_by_xpath(kPage, "//a[has-class('m', 'n')]"), "1");
  EXPECT_EQ(found_by_xpath(kPage, "//a[has-class('m', 'o')]"), "");
  EXPECT_EQ(found_by_xpath(kPage, "//li[re:test(., '^[13]$')]"), "1|3");
  EXPECT_EQ(found_by_xpath(kPage, "//h1[re:test(., 't', 'i')]"), "T");
}

TEST(XPath, FindsNamesWithPrefixesAsTheyAreWritten) {
  const auto feed = Document::parse_xml("<feed xmlns='a' xmlns:m='b'><entry><m:t u='1'>2</m:t></entry></feed>");
  EXPECT_EQ(found_by_xpath(*feed, "//entry/m:t"), "2");
  EXPECT_EQ(found_by_xpath(*feed, "//m:t/@u"), "1");
  EXPECT_EQ(found_by_xpath(*feed, "//t"), "");
  EXPECT_EQ(found_by_xpath(*feed, "//x:t"), "");
  EXPECT_EQ(found_by_xpath("<svg><a xlink:href=u></a></svg>", "//a/@xlink:href"), "u");
}

TEST(XPath, BeginsAtTheElementItIsGiven) {
  const auto document = Document::parse_html(kPage);
  const auto list = document->select_first(Selector::css("ul").value()).value();
  const auto within = [&](std::string_view expression) {
    return document->select(Selector::xpath(expression).value(), &*list).value().size();
  };
  EXPECT_EQ(within(".//a"), 2u);
  EXPECT_EQ(within("li"), 3u);
  EXPECT_EQ(within("//h1"), 1u) << "two slashes are everywhere";
}

TEST(XPath, IsUsedByThreadsAtATime) {
  const Selector selector = Selector::xpath("//li[contains(., '2')]").value();
  std::vector<std::size_t> counts(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      threads.emplace_back([&, i] {
        for (int round = 0; round < 50; ++round) {
          counts[i] += Document::parse_html(kPage)->select(selector).value().size();
        }
      });
    }
  }
  EXPECT_EQ(counts, (std::vector<std::size_t>{50, 50, 50, 50}));
}

TEST(XPath, WithPlacesCountsAlongTheAxis) {
  EXPECT_EQ(found_by_xpath(kPage, "//li[1]"), "1");
  EXPECT_EQ(found_by_xpath(kPage, "//li[last()]"), "3");
  EXPECT_EQ(found_by_xpath(kPage, "//p/preceding::li[1]"), "3");
  EXPECT_EQ(found_by_xpath(kPage, "(//p/preceding::li)[1]"), "1");
  EXPECT_EQ(found_by_xpath(kPage, "//li[a][2]"), "2");
  EXPECT_EQ(found_by_xpath("<p><b>1</b><b>2</b></p><p><b>3</b></p>", "//b[1]"), "1|3") << "the first of each parent";
  EXPECT_EQ(found_by_xpath("<p><b>1</b><b>2</b></p><p><b>3</b></p>", "//b[position() > 1]"), "2");
}

TEST(XPath, ComparesAsTheStandardSays) {
  // 3.4: of nodes, some pair must compare so.
  EXPECT_EQ(found_by_xpath(kPage, "//li = //a"), "true");
  EXPECT_EQ(found_by_xpath(kPage, "//li != //a"), "true");
  EXPECT_EQ(found_by_xpath(kPage, "//h1 != //h1"), "false");
  EXPECT_EQ(found_by_xpath(kPage, "//li > 2"), "true");
  EXPECT_EQ(found_by_xpath(kPage, "3 < //li"), "false");
  EXPECT_EQ(found_by_xpath(kPage, "//li < //p"), "true");
  EXPECT_EQ(found_by_xpath(kPage, "//nothing = //nothing"), "false");
  EXPECT_EQ(found_by_xpath(kPage, "//nothing = false()"), "true");
  EXPECT_EQ(found_by_xpath(kPage, "'1.0' = 1"), "true");
  EXPECT_EQ(found_by_xpath(kPage, "'a' < 'b'"), "false");
  EXPECT_EQ(found_by_xpath(kPage, "1 < 2 < 3"), "true");
  EXPECT_EQ(found_by_xpath(kPage, "- - 7 mod 4 - 2 * 3 div 2"), "0");
}

TEST(XPath, HasTheFunctionsOfTheStandard) {
  // 4.2, with its own examples.
  EXPECT_EQ(found_by_xpath(kPage, "substring('12345', 2, 3)"), "234");
  EXPECT_EQ(found_by_xpath(kPage, "substring('12345', 1.5, 2.6)"), "234");
  EXPECT_EQ(found_by_xpath(kPage, "substring('12345', 0, 3)"), "12");
  EXPECT_EQ(found_by_xpath(kPage, "substring('12345', 0 div 0, 3)"), "");
  EXPECT_EQ(found_by_xpath(kPage, "substring('12345', -42, 1 div 0)"), "12345");
  EXPECT_EQ(found_by_xpath(kPage, "substring('äöü', 2, 1)"), "ö");
  EXPECT_EQ(found_by_xpath(kPage, "translate('bar', 'abc', 'AB')"), "BAr");
  EXPECT_EQ(found_by_xpath(kPage, "translate('--aaa--', 'abc-', 'ABC')"), "AAA");
  EXPECT_EQ(found_by_xpath(kPage, "substring-before('1999/04/01', '/')"), "1999");
  EXPECT_EQ(found_by_xpath(kPage, "substring-after('1999/04/01', '/')"), "04/01");
  EXPECT_EQ(found_by_xpath(kPage, "concat('a', 1, true())"), "a1true");
  EXPECT_EQ(found_by_xpath(kPage, "string-length('äö')"), "2");
  EXPECT_EQ(found_by_xpath(kPage, "round(-1.5)"), "-1");
  EXPECT_EQ(found_by_xpath(kPage, "floor(-1.5) + ceiling(1.2)"), "0");
  EXPECT_EQ(found_by_xpath(kPage, "number('x')"), "NaN");
  EXPECT_EQ(found_by_xpath(kPage, "-1 div 0"), "-Infinity");
  EXPECT_EQ(found_by_xpath(kPage, "name(//*[3])"), "li");
  EXPECT_EQ(found_by_xpath("<p id=a>1<p id=b>2", "id('b a')"), "1|2");
  EXPECT_EQ(found_by_xpath("<p lang=en-GB>1", "//p[lang('en')]"), "1");
}

TEST(XPathMistake, IsToldWithItsPlace) {
  EXPECT_EQ(found_by_xpath(kPage, "//a["), "xpath \"//a[\": a step is missing, at character 5");
  EXPECT_EQ(found_by_xpath(kPage, ""), "xpath \"\": a step is missing, at character 1");
  EXPECT_EQ(found_by_xpath(kPage, "//a]"), "xpath \"//a]\": \"]\" is not expected here, at character 4");
  EXPECT_EQ(found_by_xpath(kPage, "//a[foo(.)]"), "xpath \"//a[foo(.)]\": there is no function foo(), at character 5");
  EXPECT_EQ(found_by_xpath(kPage, "//a[$x]"), "xpath \"//a[$x]\": there are no variables, at character 5");
  EXPECT_EQ(found_by_xpath(kPage, "//a[re:test(., '(')]"),
            "xpath \"//a[re:test(., '(')]\": the pattern of re:test(): missing ): (, at character 5");
  EXPECT_EQ(found_by_xpath(kPage, "count('a')"), "xpath \"count('a')\": count() needs nodes, at character 1");
  EXPECT_EQ(found_by_xpath(kPage, "contains('a')"),
            "xpath \"contains('a')\": contains() with 1 arguments, at character 1");
  EXPECT_EQ(found_by_xpath(kPage, "'a'/b"), "xpath \"'a'/b\": \"/\" needs nodes, at character 1");
  EXPECT_EQ(found_by_xpath(kPage, "//a | 1"), "xpath \"//a | 1\": \"|\" needs nodes, at character 1");
  EXPECT_EQ(found_by_xpath(kPage, "up::a"), "xpath \"up::a\": there is no axis up, at character 1");
  EXPECT_EQ(found_by_xpath(kPage, "'a"), "xpath \"'a\": a text without its end, at character 1");
  EXPECT_EQ(found_by_xpath(kPage, "//a[.='foo(' or position () = 9]"), "");
}

TEST(XPathMistake, InNestingThatHasNoEndIsFound) {
  for (const std::string_view part : {"(", "a[", "-", "not("}) {
    std::string deep;
    for (int i = 0; i < 1000; ++i) deep += part;
    EXPECT_NE(found_by_xpath(kPage, deep).find("nested deeper than 64"), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace argiope
