// CSS selectors. Names of tests that begin with a clause are of Selectors Level 3 or 4.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/random.hpp"
#include "argiope/document/document.hpp"

namespace argiope {
namespace {

// What a selector finds in a page, as text behind text.
std::string found_by_css(std::string_view html, std::string_view selector) {
  const auto compiled = Selector::css(selector);
  if (!compiled) return compiled.error().message;
  const auto document = Document::parse_html(html);
  std::string all;
  for (const Match& match : document->select(*compiled).value()) {
    if (!all.empty()) all += '|';
    all += match.raw();
  }
  return all;
}
std::string css_mistake(std::string_view selector) {
  const auto compiled = Selector::css(selector);
  return compiled ? "no mistake" : compiled.error().message;
}

constexpr std::string_view kList =
    "<ul id=u><li class='a b'>1<li class=b>2<li lang=de-AT>3<li class=A>4<li>5</ul><p class=b>6<p>7";

TEST(CssSelector, FindsByNameClassIdAndAttribute) {
  EXPECT_EQ(found_by_css(kList, "p"), "6|7");
  EXPECT_EQ(found_by_css(kList, "LI.b"), "1|2");
  EXPECT_EQ(found_by_css(kList, ".b.a"), "1");
  EXPECT_EQ(found_by_css(kList, "#u > li.A"), "4");
  EXPECT_EQ(found_by_css(kList, "li[class]"), "1|2|4");
  EXPECT_EQ(found_by_css(kList, "p, .a"), "1|6|7");
  EXPECT_EQ(found_by_css(kList, "ul *"), "1|2|3|4|5");
}

TEST(CssSelector, ComparesAttributesInEachWay) {
  constexpr std::string_view html =
      "<a title='one two'>1</a><a title='en-GB'>2</a><a title=''>3</a><a>4</a><a title='EN'>5</a>";
  EXPECT_EQ(found_by_css(html, "[title='one two']"), "1");
  EXPECT_EQ(found_by_css(html, "[title~=two]"), "1");
  EXPECT_EQ(found_by_css(html, "[title|=en]"), "2");
  EXPECT_EQ(found_by_css(html, "[title^=\"en\"]"), "2");
  EXPECT_EQ(found_by_css(html, "[title$=GB]"), "2");
  EXPECT_EQ(found_by_css(html, "[title*=' ']"), "1");
  EXPECT_EQ(found_by_css(html, "[title*='']"), "");
  EXPECT_EQ(found_by_css(html, "[title~='one two']"), "");
  EXPECT_EQ(found_by_css(html, "[title|=en i]"), "2|5");
  EXPECT_EQ(found_by_css(html, "a[title!=EN]"), "1|2|3|4");
}

TEST(CssSelector, FindsTheFirstWithoutTheOthers) {
  const std::vector<std::string> pieces = {"<p>",          "</p>", "<div class=a>", "</div>", "x",
                                           "y<b title=t>", "</b>", "<b>",           "<!---->"};
  std::vector<Selector> selectors;
  for (const char* const text :
       {"b", "p::text", "div::text", "b::attr(title)", "div::text, b::attr(title)", "p, div", "p, b::text",
        "div b::text", "*::text", "div.a::text, div::text", "p > b", "nosuch::text, b"}) {
    selectors.push_back(Selector::css(text).value());
  }
  Random random(3);
  for (int round = 0; round < 2'000; ++round) {
    std::string html;
    for (auto count = random.below(20); count > 0; --count) html += pieces[random.below(pieces.size())];
    const auto document = Document::parse_html(html);
    for (const Selector& selector : selectors) {
      const auto all = document->select(selector).value();
      const auto first = document->select_first(selector).value();
      ASSERT_EQ(first.has_value(), !all.empty()) << selector.text() << " in " << html;
      if (!first) continue;
      EXPECT_EQ(first->kind(), all[0].kind()) << selector.text() << " in " << html;
      EXPECT_EQ(first->raw(), all[0].raw()) << selector.text() << " in " << html;
      EXPECT_EQ(first->position(), all[0].position()) << selector.text() << " in " << html;
    }
  }
}

TEST(CssSelector, RelatesElements) {
  constexpr std::string_view html = "<div><p>1</p><section><p>2</p></section><p>3</p><b>4</b><p>5</p></div><p>6</p>";
  EXPECT_EQ(found_by_css(html, "div p"), "1|2|3|5");
  EXPECT_EQ(found_by_css(html, "div > p"), "1|3|5");
  EXPECT_EQ(found_by_css(html, "section + p"), "3");
  EXPECT_EQ(found_by_css(html, "section ~ p"), "3|5");
  EXPECT_EQ(found_by_css(html, "p+section>p"), "2");
  EXPECT_EQ(found_by_css(html, "body > div section p, div + p"), "2|6");
}

TEST(CssSelector, LooksBeyondTheNearestAncestorThatFits) {
  // The nearest div is no child of .x; another one is.
  EXPECT_EQ(found_by_css("<div class=x><div><i><div><b>1</b></div></i></div></div>", ".x > div b"), "1");
  EXPECT_EQ(found_by_css("<i class=x></i><div><p></p><div><b>1</b></div></div>", ".x + div b"), "1");
  EXPECT_EQ(found_by_css("<h1></h1><h2></h2><h3></h3><h2></h2><p>1", "h1 + h2 ~ p"), "1");
}

TEST(CssSelector, CountsSiblings) {
  EXPECT_EQ(found_by_css(kList, "li:first-child"), "1");
  EXPECT_EQ(found_by_css(kList, "li:last-child"), "5");
  EXPECT_EQ(found_by_css(kList, "li:nth-child(2n+1)"), "1|3|5");
  EXPECT_EQ(found_by_css(kList, "li:nth-child(odd)"), "1|3|5");
  EXPECT_EQ(found_by_css(kList, "li:nth-child( even )"), "2|4");
  EXPECT_EQ(found_by_css(kList, "li:nth-child(-n + 2)"), "1|2");
  EXPECT_EQ(found_by_css(kList, "li:nth-child(n+4)"), "4|5");
  EXPECT_EQ(found_by_css(kList, "li:nth-last-child(2)"), "4");
  EXPECT_EQ(found_by_css(kList, "p:nth-of-type(2)"), "7");
  EXPECT_EQ(found_by_css(kList, "p:nth-last-of-type(2)"), "6");
  EXPECT_EQ(found_by_css(kList, "li:nth-child(2 of .b)"), "2");
  EXPECT_EQ(found_by_css(kList, "li:nth-last-child(1 of .b)"), "2");
  EXPECT_EQ(found_by_css("<p><b>1</b></p><p><b>2</b><i>3</i></p>", "b:only-child"), "1");
  EXPECT_EQ(found_by_css("<p><b>1</b></p><p><b>2</b><i>3</i></p>", "b:only-of-type"), "1|2");
}

TEST(CssSelector, TakesListsAndWhatIsInAnElement) {
  EXPECT_EQ(found_by_css(kList, "li:not(.b, [lang])"), "4|5");
  EXPECT_EQ(found_by_css(kList, ":is(ul, body) > .b"), "1|2|6");
  EXPECT_EQ(found_by_css(kList, ":where(p).b"), "6");
  EXPECT_EQ(found_by_css("<p>1<b></b></p><p>2<i><b></b></i></p><p>3</p>", "p:has(b)"), "1|2");
  EXPECT_EQ(found_by_css("<p>1<b></b></p><p>2<i><b></b></i></p><p>3</p>", "p:has(> b)"), "1");
  EXPECT_EQ(found_by_css("<h2>1</h2><p></p><h2>2</h2><h2>3</h2><div></div><p></p>", "h2:has(+ p)"), "1");
  EXPECT_EQ(found_by_css("<h2>1</h2><p></p><h2>2</h2><div></div><p></p>", "h2:has(~ div)"), "1|2");
  EXPECT_EQ(found_by_css("<p>Total: 5</p><p>Tax</p>", "p:contains('Total')"), "Total: 5");
  EXPECT_EQ(found_by_css(kList, "li:lang(de)"), "3");
  EXPECT_EQ(found_by_css("<p></p><p><!-- --></p><p> </p><p>1", "p:empty + p:not(:empty)"), " ");
}

TEST(CssSelector, KnowsStatesThatAPageWrites) {
  constexpr std::string_view html =
      "<a href=x>1</a><a>2</a><form><button disabled>3</button><button>4</button><option selected>5</option></form>";
  EXPECT_EQ(found_by_css(html, "a:link"), "1");
  EXPECT_EQ(found_by_css(html, "button:disabled"), "3");
  EXPECT_EQ(found_by_css(html, "button:enabled"), "4");
  EXPECT_EQ(found_by_css(html, ":checked"), "5");
  constexpr std::string_view boxes =
      "<input type=CheckBox checked id=1><input type=radio checked id=2><input type=text checked id=3><input checked "
      "id=4>"
      "<input type=radio id=5>";
  EXPECT_EQ(found_by_css(boxes, ":checked::attr(id)"), "1|2") << "no other inputs have that state";
  EXPECT_EQ(found_by_css("<p>1", ":root > body p"), "1");
}

TEST(CssSelector, GivesTextsAndAttributes) {
  constexpr std::string_view html = "<p>1<b>2</b>3</p><a href=x>4</a><a>5</a>";
  EXPECT_EQ(found_by_css(html, "p::text"), "1|3");
  EXPECT_EQ(found_by_css(html, "p ::text"), "2");
  EXPECT_EQ(found_by_css(html, "a::attr(href)"), "x");
  EXPECT_EQ(found_by_css(html, "a::attr( 'HREF' ), b::text"), "2|x");
}

TEST(CssSelector, HtmlComparesSomeValuesWithoutCase) {
  constexpr std::string_view html =
      "<INPUT TYPE=SUBMIT VALUE=Go><a REL='Nofollow Me' data-k=A>1</a><a hreflang=DE-at>2</a>"
      "<svg><a type=X>3</a><foreignObject><a type=X>4</a></foreignObject></svg>";
  EXPECT_EQ(found_by_css(html, "input[type=submit]::attr(value)"), "Go");
  EXPECT_EQ(found_by_css(html, "a[rel~=nofollow]"), "1");
  EXPECT_EQ(found_by_css(html, "a[rel^=NO]"), "1");
  EXPECT_EQ(found_by_css(html, "a[hreflang|=de]"), "2");
  EXPECT_EQ(found_by_css(html, "[type=submit s]::attr(value)"), "") << "s asks for the case";
  EXPECT_EQ(found_by_css(html, "[data-k=a]"), "") << "no attribute of HTML's";
  EXPECT_EQ(found_by_css(html, "a[type=x]"), "4") << "SVG compares with case, and HTML in it does not";
  const auto xml = Document::parse_xml("<input type='SUBMIT'/>");
  EXPECT_TRUE(xml->select(*Selector::css("[type=submit]"))->empty());
}

TEST(CssSelector, FindsNamesWithCapitalsInSvg) {
  constexpr std::string_view html =
      "<lineargradient>0</lineargradient><svg viewBox='0 0 1 1'><linearGradient id=g "
      "gradientUnits=x>1</linearGradient></svg>";
  EXPECT_EQ(found_by_css(html, "svg linearGradient"), "1");
  EXPECT_EQ(found_by_css(html, "[gradientUnits=x]"), "1");
  EXPECT_EQ(found_by_css(html, "svg[viewBox]::attr(viewBox)"), "0 0 1 1");
  EXPECT_EQ(found_by_css("<svg><linearGradient>1</linearGradient></svg>", "lineargradient"), "1");
}

TEST(CssSelector, AFieldsetDisablesWhatIsInItButForItsFirstLegend) {
  constexpr std::string_view html =
      "<fieldset disabled><legend><button>1</button></legend><legend><button>2</button></legend>"
      "<fieldset><button>3</button></fieldset><select><option>4</select></fieldset>"
      "<select><optgroup disabled><option>5</optgroup><option>6</select><button>7</button>";
  EXPECT_EQ(found_by_css(html, "button:disabled"), "2|3");
  EXPECT_EQ(found_by_css(html, "button:enabled"), "1|7");
  EXPECT_EQ(found_by_css(html, "fieldset fieldset:disabled button"), "3");
  EXPECT_EQ(found_by_css(html, "option:disabled"), "5");
  EXPECT_EQ(found_by_css(html, "option:enabled"), "4|6");
}

TEST(CssSelector, TextsOfNestedElementsComeInTheOrderOfThePageAndOnce) {
  EXPECT_EQ(found_by_css("<div>1<div>2</div>3</div>", "div::text"), "1|2|3");
  EXPECT_EQ(found_by_css("<p>1</p>", "p::text, body > p::text"), "1");
}

TEST(CssSelector, ReadsEscapesStringsAndComments) {
  constexpr std::string_view html = "<p class='1a'>1</p><p id='a.b'>2</p><p title='a\"b'>3</p><p class='größe'>4</p>";
  EXPECT_EQ(found_by_css(html, ".\\31 a"), "1");
  EXPECT_EQ(found_by_css(html, "#a\\.b"), "2");
  EXPECT_EQ(found_by_css(html, "p[title='a\\\"b']"), "3");
  EXPECT_EQ(found_by_css(html, " /* x */ p.größe /* y */ "), "4");
}

TEST(CssSelector, WithinAnElementKnowsNothingAround) {
  const auto document = Document::parse_html("<div><p class=a>1<b>2</b></p></div><b>3</b>");
  const auto paragraph = document->select_first(Selector::css("p").value()).value();
  const auto within = [&](std::string_view selector) {
    return document->select(Selector::css(selector).value(), &*paragraph).value().size();
  };
  EXPECT_EQ(within("b"), 1u);
  EXPECT_EQ(within("p b"), 1u);
  EXPECT_EQ(within("div b"), 0u);
  EXPECT_EQ(within(".a"), 1u) << "the element itself counts";
  EXPECT_EQ(within(":scope > b"), 1u);
}

TEST(CssMistake, IsToldWithItsPlace) {
  EXPECT_EQ(css_mistake(""), "css \"\": a selector is missing, at character 1");
  EXPECT_EQ(css_mistake("h1 >"), "css \"h1 >\": a selector is missing behind the combinator, at character 5");
  EXPECT_EQ(css_mistake("a[href"), "css \"a[href\": the end: =, ~=, |=, ^=, $=, *= or != is missing, at character 7");
  EXPECT_EQ(css_mistake("ä ! b"), "css \"ä ! b\": \"!\" is no selector, at character 3");
  EXPECT_EQ(css_mistake("a:hover"),
            "css \"a:hover\": :hover says nothing of a page that nobody looks at, at character 2");
  EXPECT_EQ(css_mistake("a::before"),
            "css \"a::before\": ::before is unknown; ::text and ::attr(name) are known, at character 2");
  EXPECT_EQ(css_mistake("a::text b"), "css \"a::text b\": nothing may follow ::text or ::attr(), at character 8");
  EXPECT_EQ(css_mistake("p:not(a::text)"),
            "css \"p:not(a::text)\": ::text is for the end of a whole selector, at character 8");
  EXPECT_EQ(css_mistake("p:nth-child(x)"), "css \"p:nth-child(x)\": write it as 3, odd, even or 2n+1, at character 13");
  EXPECT_EQ(css_mistake("p)"), "css \"p)\": \")\" is not expected here, at character 2");
  EXPECT_EQ(css_mistake("a, "), "css \"a, \": a selector is missing, at character 4");
  EXPECT_EQ(css_mistake("[a='b]"), "css \"[a='b]\": a string without its end, at character 4");
  EXPECT_EQ(css_mistake("a /* b"), "css \"a /* b\": a comment without its end, at character 3");
}

TEST(CssMistake, InNestingThatHasNoEndIsFound) {
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += ":not(";
  EXPECT_NE(css_mistake(deep).find("nested deeper than 16"), std::string::npos);
  EXPECT_FALSE(Selector::css(std::string(Selector::kMostBytes + 1, 'a')));
}

}  // namespace
}  // namespace argiope
