// Pages made to cost time and memory. What counts is that each ends with a tree or an error; the bounds of time are far
// above what it takes, and far below what it took without limits.
#include <gtest/gtest.h>
#include <time.h>

#include "argiope/document/document.hpp"
#include "document/internal/readable.hpp"

namespace argiope {
namespace {

std::string times(std::string_view text, int count) {
  std::string all;
  all.reserve(text.size() * static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) all += text;
  return all;
}
template <class Text>
std::string numbered(int count, Text text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text(std::to_string(i));
  return all;
}

// CPU seconds of this thread: others on the machine do not count.
double cpu_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
constexpr double kLongest = 10;  // also under a sanitizer

// Reads the page and asks all kinds of questions; what was wrong with the page itself.
std::string ask_everything(const std::string& html) {
  const double start = cpu_time();
  std::string trouble;
  if (const auto document = Document::parse_html(html)) {
    (void)document->root().lines();
    (void)document->root().outer_html();
    (void)find_article(*document);
    for (const char* const selector :
         {"div div div div p > a", "p ~ p ~ b", ":has(x)", "li:nth-last-child(3)", "b::text"}) {
      (void)document->select(Selector::css(selector).value());
    }
    for (const char* const expression : {"//div//div//p", "//p/following::b", "//*[@a1=//b]"}) {
      (void)document->select(Selector::xpath(expression).value());
    }
  } else {
    trouble = document.error().message;
  }
  EXPECT_LT(cpu_time() - start, kLongest);
  return trouble;
}

TEST(HostileDocument, OfManyNestedElementsIsAnError) {
  EXPECT_EQ(ask_everything(times("<div>", 100'000)), "elements are nested deeper than 512");
  EXPECT_EQ(ask_everything(times("<b>", 50'000)), "elements are nested deeper than 512");
  EXPECT_EQ(ask_everything(times("<table><tr><td>", 20'000)), "elements are nested deeper than 512");
  EXPECT_EQ(ask_everything(times("<svg><foreignObject>", 50'000)), "elements are nested deeper than 512");
  EXPECT_EQ(ask_everything(times("<template>", 50'000)), "elements are nested deeper than 512");
  EXPECT_EQ(ask_everything(numbered(20'000, [](auto i) { return "<div><b id=" + i + "></div>x"; })),
            "elements are nested deeper than 512");
}

TEST(HostileDocument, OfElementsThatAreNestedAsDeepAsMayBeIsRead) {
  EXPECT_EQ(ask_everything(times("<div>", 500) + times("<p>x</p>", 10'000)), "");
  EXPECT_EQ(ask_everything(times("<span>", 500) + times("</x>", 100'000)), "");
}

TEST(HostileDocument, OfTagsThatReopenOthersIsAnError) {
  // Each p opens 500 elements again.
  const std::string formatting = "<p>" + numbered(500, [](auto i) { return "<b id=" + i + ">"; });
  EXPECT_EQ(ask_everything(formatting + times("<p>x", 20'000)), "a page of more than 300000 nodes");
}

TEST(HostileDocument, OfTagsThatLookAtAllThatIsOpenIsAnError) {
  EXPECT_EQ(ask_everything(times("<span>", 500) + times("</x>", 1'000'000)),
            "a page whose tags would take too long to put in order");
}

TEST(HostileDocument, OfManyNodesIsAnError) {
  EXPECT_EQ(ask_everything(times("<p>", 400'000)), "a page of more than 300000 nodes");
  EXPECT_EQ(ask_everything(times("<!---->", 400'000)), "a page of more than 300000 nodes");
}

TEST(HostileDocument, OfManyAttributesIsBounded) {
  const std::string attributes = numbered(50'000, [](auto i) { return " a" + i + "=1"; });
  EXPECT_EQ(ask_everything("<p" + attributes + ">x"), "");
  EXPECT_EQ(ask_everything(times("<p" + numbered(900, [](auto i) { return " a" + i; }) + ">", 400)),
            "a page of more than 300000 attributes");
}

TEST(HostileDocument, OfManyTablesSelectsAndEntitiesIsRead) {
  EXPECT_EQ(ask_everything(times("<table>", 20'000)), "");
  EXPECT_EQ(ask_everything(times("<select><option>", 50'000)), "");
  EXPECT_EQ(ask_everything(times("&amp", 300'000)), "");
  EXPECT_EQ(ask_everything("<p a=\"" + times("x", 3'000'000)), "");
  EXPECT_EQ(ask_everything(times("<table>x", 20'000)), "");
}

TEST(HostileDocument, ThatIsTooLargeIsNotRead) {
  const auto document = Document::parse(std::string(DocumentLimits{}.most_bytes + 1, 'x'), "text/html");
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().code, Errc::too_large);
}

TEST(HostileDocument, IsNoHarmToTheNext) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_FALSE(Document::parse_html(times("<div>", 1000)));
    const auto good = Document::parse_html("<p>good");
    EXPECT_EQ(good->root().text(), "good");
  }
}

TEST(HostileSelector, ThatComparesTooMuchIsAnError) {
  const auto siblings = Document::parse_html(times("<b></b>", 100'000));
  for (const auto& selector : {Selector::css("i ~ b, b ~ b ~ p, b:has(~ i)"), Selector::css("b:nth-child(2 of b)")}) {
    const auto found = siblings->select(*selector);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, Errc::too_large);
    EXPECT_NE(found.error().message.find("takes too long on this page"), std::string::npos);
  }
  const auto found =
      siblings->select(Selector::xpath("//b[count(preceding-sibling::b) = count(following-sibling::b)]").value());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::too_large);
}

TEST(HostileXml, OfDepthAttributesOrEntitiesIsBounded) {
  EXPECT_EQ(Document::parse_xml(times("<a>", 100'000)).error().message, "elements are nested deeper than 250");
  const std::string attributes = numbered(50'000, [](auto i) { return " a" + i + "='1'"; });
  EXPECT_EQ(Document::parse_xml("<a" + attributes + "/>").error().message, "a tag of more than 2000 attributes");
  std::string bomb = "<!DOCTYPE a [<!ENTITY e0 \"ha\">";
  for (int i = 1; i < 30; ++i) {
    bomb += "<!ENTITY e" + std::to_string(i) + " \"" + times("&e" + std::to_string(i - 1) + ";", 10) + "\">";
  }
  const double start = cpu_time();
  const auto document = Document::parse_xml(bomb + "]><a b='&e29;'>x&e29;y</a>");
  ASSERT_TRUE(document);
  EXPECT_LT(document->root().raw().size(), 10u);
  EXPECT_LT(cpu_time() - start, kLongest);
}

}  // namespace
}  // namespace argiope
