// The link scanner against the clauses of the HTML standard's tokeniser. That it finds what a full parser finds on
// real and on damaged pages is link_scanner_diff_test.cpp's to show.
#include "argiope/web/link_scanner.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/one_pass.hpp"

namespace argiope {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;
using testing::IsEmpty;

ScanResult scan(std::string_view html, const ScanOptions& options = {}) {
  ScanResult result;
  scan_links(html, options, result);
  expect_same_in_one_pass(html, options, result);
  return result;
}

// "kind url", and " nofollow" where it says so.
std::vector<std::string> links(std::string_view html) {
  const ScanResult result = scan(html);
  std::vector<std::string> out;
  for (const ScannedLink& link : result.links) {
    out.push_back(fmt::format("{} {}{}", to_string(link.kind), link.url, link.nofollow ? " nofollow" : ""));
  }
  return out;
}

std::vector<std::string> urls(std::string_view html) {
  const ScanResult result = scan(html);
  std::vector<std::string> out;
  for (const ScannedLink& link : result.links) out.emplace_back(link.url);
  return out;
}

// The value of a href written `raw` between double quotes.
std::string href(std::string_view raw) {
  const std::vector<std::string> found = urls(fmt::format("<a href=\"{}\">", raw));
  return found.size() == 1 ? found[0] : "(not one link)";
}

// ---- What is a link

TEST(LinkScanner, FindsAnchorsAndAreas) {
  EXPECT_THAT(links("<p><a href=\"one\">1</a> <A HREF='two'>2</A><map><area href=three></map>"),
              ElementsAre("anchor one", "anchor two", "area three"));
}

TEST(LinkScanner, FindsFramesAndIframes) {
  EXPECT_THAT(links("<frameset><frame src=a></frameset><iframe src='b'></iframe><iframe></iframe>"),
              ElementsAre("frame a", "frame b"));
}

TEST(LinkScanner, TellsTheKindOfALinkElementByItsRel) {
  EXPECT_THAT(links("<link rel=canonical href=a><link rel='NEXT' href=b><link rel=prev href=c>"
                    "<link rel=previous href=d><link href=e rel=alternate hreflang=de><link rel=help href=f>"),
              ElementsAre("canonical a", "next b", "prev c", "prev d", "alternate e", "other f"));
}

TEST(LinkScanner, PassesOverLinkElementsThatNameResources) {
  EXPECT_THAT(
      links("<link rel=stylesheet href=a><link rel='alternate stylesheet' href=b><link rel='shortcut icon' href=c>"
            "<link rel=preload href=d><link rel=dns-prefetch href=e><link rel=manifest href=f><link href=g>"
            "<link rel='' href=h><link rel=canonical>"),
      IsEmpty());
}

TEST(LinkScanner, SaysNofollowWhenTheRelHasThatWord) {
  EXPECT_THAT(links("<a rel=nofollow href=a></a><a href=b rel='external NoFollow noopener'></a>"
                    "<a href=c rel=nofollowed></a><area rel=nofollow href=d>"),
              ElementsAre("anchor a nofollow", "anchor b nofollow", "anchor c", "area d nofollow"));
}

TEST(LinkScanner, IgnoresElementsWhoseNamesOnlyBeginAlike) {
  EXPECT_THAT(links("<abbr href=x><a-b href=x><aside href=x><linker rel=next href=x><basefont href=x><areas href=x>"
                    "<iframes src=x><framed src=x></a href=x><metadata http-equiv=refresh content='0;x'>"),
              IsEmpty());
}

TEST(LinkScanner, ReportsAnEmptyValueButNotAMissingOne) {
  EXPECT_THAT(links("<a href=''><a href><a href=><a name=x><a>"), ElementsAre("anchor ", "anchor ", "anchor "));
}

TEST(LinkScanner, LeavesTheSpaceAroundAValueAlone) { EXPECT_EQ(href(" a\tb "), " a\tb "); }

TEST(LinkScanner, TakesTheFirstBaseWithAHref) {
  EXPECT_EQ(scan("<a href=x><base target=_top><base href='/one/?a&amp;b'><base href=/two/>").base_href, "/one/?a&b");
  EXPECT_EQ(scan("<base href=''><base href=/two/>").base_href, "");
  EXPECT_EQ(scan("<a href=x>").base_href, "");
}

TEST(LinkScanner, WhatATemplateSaysOfThePageDoesNotCount) {
  const ScanResult found = scan(
      "<template><base href=/a/><meta name=robots content=noindex><template></template><base href=/b/>"
      "<meta http-equiv=refresh content='0;url=c'></TEMPLATE ><base href=/d/><a href=x>");
  EXPECT_EQ(found.base_href, "/d/");
  EXPECT_FALSE(found.robots.noindex);
  EXPECT_EQ(found.links.size(), 1u);
  EXPECT_EQ(scan("<svg><template></svg><base href=/a/>").base_href, "/a/");
  EXPECT_EQ(scan("</template><base href=/a/>").base_href, "/a/");
}

// ---- Attributes (13.2.5.32 to 40)

TEST(LinkScannerAttributes, MayBeQuotedEitherWayOrNotAtAll) {
  EXPECT_THAT(urls("<a href=\"a'>b\"><a href='a\">b'><a href=a'b\"c/d><a href = \n 'x' ><a href=y/><a/href=z>"),
              ElementsAre("a'>b", "a\">b", "a'b\"c/d", "x", "y/", "z"));
}

TEST(LinkScannerAttributes, FirstOfANameWins) {
  EXPECT_THAT(urls("<a href=one HREF=two href=three>"), ElementsAre("one"));
  EXPECT_THAT(urls("<a href href=two>"), ElementsAre(""));
}

TEST(LinkScannerAttributes, NeedNoSpaceAfterAQuotedValue) {
  EXPECT_THAT(urls("<a class='x'href='one'rel=''>"), ElementsAre("one"));
}

TEST(LinkScannerAttributes, NameMayBeginWithAnEqualsSign) {
  EXPECT_THAT(urls("<a =href=one><a ==\"> href=two\"><a x = = href=three>"), ElementsAre("three"));
}

TEST(LinkScannerAttributes, AQuoteInsideANameOrUnquotedValueOpensNothing) {
  EXPECT_THAT(urls("<a b\"=c href=one><b x=y\"z><a href=two><b \"><a href=three>"), ElementsAre("one", "two", "three"));
}

TEST(LinkScannerAttributes, QuotesHideABracketInAnyTag) {
  EXPECT_THAT(urls("<b title=\"><a href=x>\"><a href=one></b title='><a href=x>'><a href=two>"),
              ElementsAre("one", "two"));
  EXPECT_THAT(urls("<b title = \"><a href=x>\"><a href=one><b\ttitle\n=\n'><a href=x>'><a href=two>"),
              ElementsAre("one", "two"));
  EXPECT_THAT(urls("<b a=1 bb=2 ccc=3 dddd=4 title=\"><a href=x>\" e><a href=one>"), ElementsAre("one"));
}

TEST(LinkScannerAttributes, AnEqualsSignInATagNameIsPartOfIt) {
  EXPECT_THAT(urls("<b=\"><a href=one>"), ElementsAre("one"));
  EXPECT_THAT(urls("<bb=\"x\"><a href=one>\"<a href=two>"), ElementsAre("one", "two"));
}

TEST(LinkScannerAttributes, ATagThatThePageCutsShortIsNone) {
  EXPECT_THAT(urls("<a href=one><a href=two"), ElementsAre("one"));
  EXPECT_THAT(urls("<a href=one><a href='two>"), ElementsAre("one"));
  EXPECT_THAT(urls("<a href=one><a href='two'"), ElementsAre("one"));
  EXPECT_THAT(urls("<a href=one><a"), ElementsAre("one"));
  EXPECT_THAT(urls("<a href=one><"), ElementsAre("one"));
}

TEST(LinkScannerAttributes, NulAndCarriageReturnAreReplacedInAValue) {
  EXPECT_THAT(urls("<a href='a\0b\r\nc\rd'>"s), ElementsAre("a\xEF\xBF\xBD"
                                                            "b\nc\nd"));
  EXPECT_THAT(urls("<a\0 href=x><a href\0=x><a href=one>"s), ElementsAre("one"));
}

// ---- What is text, not markup

TEST(LinkScannerText, ALessThanSignWithoutALetterBehindIsText) {
  EXPECT_THAT(urls("1 < 2 <3 <<a href=one> <-a href=x> </ a href='>'><a href=two></>"), ElementsAre("one", "two"));
}

TEST(LinkScannerText, CommentsHideLinks) {
  EXPECT_THAT(urls("<!-- <a href=x> --><a href=one><!-- > - -> -- > <a href=x> -->"), ElementsAre("one"));
}

TEST(LinkScannerText, CommentsEndInOddWays) {
  EXPECT_THAT(urls("<!--><a href=1>--><!---><a href=2>--><!----><a href=3><!--x--!><a href=4><!--x--->"
                   "<a href=5><!-----><a href=6><!--x--!-->"
                   "<a href=7><!----!><a href=8>"),
              ElementsAre("1", "2", "3", "4", "5", "6", "7", "8"));
}

TEST(LinkScannerText, CommentsDoNotEndInTheseWays) {
  EXPECT_THAT(urls("<!--!><a href=x>-->"), IsEmpty());
  EXPECT_THAT(urls("<!---!><a href=x>-->"), IsEmpty());
  EXPECT_THAT(urls("<!-- --!-><a href=x>-->"), IsEmpty());
  EXPECT_THAT(urls("<!-- <a href=x>"), IsEmpty());
}

TEST(LinkScannerText, BogusCommentsAndDoctypesEndAtTheFirstBracket) {
  EXPECT_THAT(urls("<!doctype html PUBLIC \"><a href=1>\"><?php '<a href=x>' ?><a href=2><!-<a href=x><a href=3>"
                   "</1<a href=x><a href=4><![CDATA[<a href=x>]]><a href=5><!><a href=6>"),
              ElementsAre("1", "2", "3", "4", "5", "6"));
}

TEST(LinkScannerText, RawTextElementsHoldNoLinks) {
  for (const std::string name : {"script", "style", "xmp", "iframe", "noembed", "noframes", "textarea", "title"}) {
    EXPECT_THAT(urls(fmt::format("<{0} x='>'><a href=x><!-- </{0}x></ {0}> --></{0}\n><a href=one>", name)),
                ElementsAre("one"))
        << name;
    std::string upper = name;
    std::ranges::transform(upper, upper.begin(), [](char c) { return static_cast<char>(std::toupper(c)); });
    EXPECT_THAT(urls(fmt::format("<{0}/><a href=x></{1}/><a href=one>", name, upper)), ElementsAre("one")) << name;
    EXPECT_THAT(urls(fmt::format("<a href=one><{0}><a href=x>", name)), ElementsAre("one")) << name;
  }
}

TEST(LinkScannerText, PlaintextNeverEnds) {
  EXPECT_THAT(urls("<a href=1><plaintext><a href=x></plaintext>"), ElementsAre("1"));
}

TEST(LinkScannerText, NoscriptIsReadBecauseNoScriptsRun) {
  EXPECT_THAT(urls("<noscript><a href=one></noscript>"), ElementsAre("one"));
}

TEST(LinkScannerText, ACommentInAScriptDoesNotHideItsEnd) {
  EXPECT_THAT(urls("<script><!-- </script><a href=one>"), ElementsAre("one"));
}

TEST(LinkScannerText, AScriptInACommentInAScriptHidesItsEndOnce) {
  EXPECT_THAT(urls("<script><!-- <script> </script> <a href=x> </script><a href=one>"), ElementsAre("one"));
  EXPECT_THAT(urls("<script><!-- <SCRIPT/ --> </script><a href=one>"), ElementsAre("one"));
  EXPECT_THAT(urls("<script><!--><script></script><a href=one>"), ElementsAre("one"));
  EXPECT_THAT(urls("<script><!-- <scripts> </script><a href=one>"), ElementsAre("one"));
  EXPECT_THAT(urls("<script>x--><script> <!- </script><a href=one>"), ElementsAre("one"));
}

// ---- SVG and MathML

TEST(LinkScannerForeign, SelfClosedStyleInAPictureHidesNothing) {
  EXPECT_THAT(urls("<svg><title/><style type='text/css'/><script/></svg><a href=one>"), ElementsAre("one"));
  EXPECT_THAT(urls("<svg/><style/><a href=x></style><a href=one>"), ElementsAre("one"));
}

TEST(LinkScannerForeign, AnchorsInAPictureAreLinks) {
  EXPECT_THAT(urls("<svg><a xlink:href=one><path/></a><a href=two xlink:href=x></a></svg><a xlink:href=x>"),
              ElementsAre("one", "two"));
}

TEST(LinkScannerForeign, ATitleInAPictureHoldsMarkup) {
  EXPECT_THAT(urls("<svg><title><a href=one></title><style><a href=two></style></svg>"), ElementsAre("one", "two"));
}

TEST(LinkScannerForeign, CdataSectionsHideLinks) {
  EXPECT_THAT(urls("<svg><style><![CDATA[ a>b {} <a href=x> ]] ]]></style></svg><a href=one>"), ElementsAre("one"));
}

TEST(LinkScannerForeign, HtmlInAPictureIsHtml) {
  EXPECT_THAT(urls("<svg><foreignObject><style><a href=x></style><a href=1></foreignObject><style/></svg><a href=2>"),
              ElementsAre("1", "2"));
  EXPECT_THAT(urls("<svg><desc><![CDATA[><a href=1>]]></desc></svg>"), ElementsAre("1"));
}

TEST(LinkScannerForeign, AnHtmlElementEndsAnUnclosedPicture) {
  EXPECT_THAT(urls("<svg><path><p><style><a href=x></style><a href=one>"), ElementsAre("one"));
  EXPECT_THAT(urls("<div><math><mrow></div><style><a href=x></style><a href=one>"), ElementsAre("one"));
}

TEST(LinkScannerForeign, DeepNestingIsForgottenFromTheOutside) {
  std::string html;
  for (int i = 0; i < 1000; ++i) html += "<svg>";
  for (int i = 0; i < 1000; ++i) html += "</svg>";
  EXPECT_THAT(urls(html + "<a href=one>"), ElementsAre("one"));
}

// ---- Character references (13.2.5.72 to 80)

TEST(LinkScannerReferences, NamedOnesAreReplaced) {
  EXPECT_EQ(href("?a=1&amp;b=2&lt;&quot;&eacute;"), "?a=1&b=2<\"\xC3\xA9");
  EXPECT_EQ(href("&CounterClockwiseContourIntegral;"), "\xE2\x88\xB3");
  EXPECT_EQ(href("&nGt;"), "\xE2\x89\xAB\xE2\x83\x92") << "two code points";
  EXPECT_EQ(href("&zwnj;&AElig;&Afr;"), "\xE2\x80\x8C\xC3\x86\xF0\x9D\x94\x84");
}

TEST(LinkScannerReferences, WithoutSemicolonTheOldOnesAreReplacedUnlessTheTextGoesOn) {
  EXPECT_EQ(href("&amp"), "&");
  EXPECT_EQ(href("&amp/"), "&/");
  EXPECT_EQ(href("?x&copy=1"), "?x&copy=1");
  EXPECT_EQ(href("?x&copyright"), "?x&copyright");
  EXPECT_EQ(href("?x&copy1"), "?x&copy1");
  EXPECT_EQ(href("?x&copy;=1"), "?x\xC2\xA9=1");
  EXPECT_EQ(href("&notit;"), "&notit;");
  EXPECT_EQ(href("&notin;"), "\xE2\x88\x89");
  EXPECT_EQ(href("&not;in"),
            "\xC2\xAC"
            "in");
  EXPECT_EQ(href("&zwnj"), "&zwnj") << "never without semicolon";
}

TEST(LinkScannerReferences, UnknownOnesAreText) {
  EXPECT_EQ(href("&"), "&");
  EXPECT_EQ(href("&;"), "&;");
  EXPECT_EQ(href("&&amp;&"), "&&&");
  EXPECT_EQ(href("&AMP;&Amp;"), "&&Amp;");
  EXPECT_EQ(href("&bogus;&#;&#x;&#g;&#xg;"), "&bogus;&#;&#x;&#g;&#xg;");
}

TEST(LinkScannerReferences, NumericOnesAreReplaced) {
  EXPECT_EQ(href("&#65;&#x42;&#X43&#68 &#x1F600;"), "ABCD \xF0\x9F\x98\x80");
  EXPECT_EQ(href("&#38;amp;"), "&amp;") << "once only";
}

TEST(LinkScannerReferences, NumbersThatAreNoCharactersAreReplacedByTheStandardsRules) {
  const std::string replacement = "\xEF\xBF\xBD";
  for (const char* raw :
       {"&#0;", "&#x110000;", "&#xD800;", "&#xDFFF;", "&#99999999999999999999;", "&#xFFFFFFFFFFFF;"}) {
    EXPECT_EQ(href(raw), replacement) << raw;
  }
  EXPECT_EQ(href("&#128;&#x9F;"), "\xE2\x82\xAC\xC5\xB8") << "read as windows-1252";
  EXPECT_EQ(href("&#x81;"), "\xC2\x81");
  EXPECT_EQ(href("&#xFFFE;"), "\xEF\xBF\xBE") << "a noncharacter stays";
}

// ---- meta

std::vector<std::string> refresh(std::string_view content) {
  return links(fmt::format("<meta http-equiv=Refresh content=\"{}\">", content));
}

TEST(LinkScannerRefresh, UrlIsReadAsTheStandardSays) {
  EXPECT_THAT(refresh("0; url=one"), ElementsAre("refresh one"));
  EXPECT_THAT(refresh(" 5.3.1 , URL = 'a b' c"), ElementsAre("refresh a b"));
  EXPECT_THAT(refresh("5;one"), ElementsAre("refresh one"));
  EXPECT_THAT(refresh("5 one"), ElementsAre("refresh one"));
  EXPECT_THAT(refresh(".;url=one"), ElementsAre("refresh one"));
  EXPECT_THAT(refresh("0;'one"), ElementsAre("refresh one"));
  EXPECT_THAT(refresh("0;url"), ElementsAre("refresh url"));
  EXPECT_THAT(refresh("0;urn:x"), ElementsAre("refresh urn:x"));
  EXPECT_THAT(refresh("0;;url=x"), ElementsAre("refresh ;url=x"));
  EXPECT_THAT(refresh("0;url=?a&amp;b"), ElementsAre("refresh ?a&b"));
}

TEST(LinkScannerRefresh, WithoutUrlItIsNoLink) {
  for (const char* content :
       {"", " ", "5", "5;", "5; ", "url=x", "5url=x", "x5;url=x", "5;url=", "5;url=''", "-1;url=x"}) {
    EXPECT_THAT(refresh(content), IsEmpty()) << content;
  }
  EXPECT_THAT(
      links("<meta http-equiv=refreshed content='0;x'><meta name=refresh content='0;x'><meta http-equiv=refresh>"),
      IsEmpty());
}

TEST(LinkScannerRobots, MetaDirectivesAreFlags) {
  const auto robots = [](std::string_view html, std::string_view agent = "argiope") {
    const RobotsDirectives found = scan(html, {.agent = agent}).robots;
    return fmt::format("{}{}", found.noindex ? 'n' : '-', found.nofollow ? 'f' : '-');
  };
  EXPECT_EQ(robots("<p>"), "--");
  EXPECT_EQ(robots("<meta name=robots content=noindex>"), "n-");
  EXPECT_EQ(robots("<META CONTENT='index, NoFollow' NAME=Robots>"), "-f");
  EXPECT_EQ(robots("<meta name=robots content='none'>"), "nf");
  EXPECT_EQ(robots("<meta name=robots content=noindex><meta name=robots content=nofollow>"), "nf");
  EXPECT_EQ(robots("<meta name=Argiope content='max-snippet:1,noindex,'>"), "n-");
  EXPECT_EQ(robots("<meta name=otherbot content=none>"), "--");
  EXPECT_EQ(robots("<meta name='' content=none>", ""), "--");
  EXPECT_EQ(robots("<meta name=robots content='no&#105;ndex'>"), "n-");
  EXPECT_EQ(robots("<!--<meta name=robots content=none>-->"), "--");
}

// ---- Bounds

TEST(LinkScannerBounds, LinksBeyondTheLimitAreCounted) {
  std::string html;
  for (int i = 0; i < 10; ++i) html += fmt::format("<a href={}>", i);
  const ScanResult result = scan(html, {.max_links = 3});
  EXPECT_EQ(result.links.size(), 3u);
  EXPECT_EQ(result.dropped, 7u);
}

TEST(LinkScannerBounds, ValuesTooLongAreCounted) {
  const ScanResult result = scan("<base href=123456><a href=12345><a href=123456>", {.max_value_bytes = 5});
  ASSERT_EQ(result.links.size(), 1u);
  EXPECT_EQ(result.links[0].url, "12345");
  EXPECT_EQ(result.base_href, "");
  EXPECT_EQ(result.dropped, 2u);
}

TEST(LinkScannerBounds, AResultIsReusedAndMayBeMoved) {
  ScanResult result;
  const std::string html = "<a href='?a&amp;b'>";
  scan_links("<base href=/x/><meta name=robots content=none><a href='&amp;'><a href=1>", {}, result);
  scan_links(html, {}, result);
  ASSERT_EQ(result.links.size(), 1u);
  EXPECT_EQ(result.base_href, "");
  EXPECT_FALSE(result.robots.noindex);
  const ScanResult moved = std::move(result);
  EXPECT_EQ(moved.links[0].url, "?a&b");
}

TEST(LinkScannerBounds, DecodedValuesStayWhereTheyAre) {
  std::string html = "<a href='first&amp;'>";
  for (int i = 0; i < 5000; ++i) html += "<a rel='a&amp;' href='&nGt;\0'>"s;
  const ScanResult result = scan(html);
  EXPECT_EQ(result.links[0].url, "first&");
  EXPECT_EQ(result.links[5000].url, "\xE2\x89\xAB\xE2\x83\x92\xEF\xBF\xBD");
}

TEST(LinkScannerBounds, EveryPrefixOfAPageIsScanned) {
  const std::string html =
      "<!doctype html><!-- c --!><svg><title/><![CDATA[>]]></svg><script><!--<script>--></script>"
      "<base href='&amp;'><a b = \"c\" href=\"?&notin;&#x26;\" rel='nofollow'>x</a title=\"y\"><meta "
      "http-equiv=refresh "
      "content='0;url=z'><textarea></textarea><plaintext>";
  for (std::size_t length = 0; length <= html.size(); ++length) {
    const std::string prefix(html, 0, length);  // its own allocation, for the sanitizer to guard
    EXPECT_LE(scan(prefix).links.size(), 2u);
  }
  EXPECT_THAT(links(html), ElementsAre("anchor ?\xE2\x88\x89& nofollow", "refresh z"));
}

}  // namespace
}  // namespace argiope
