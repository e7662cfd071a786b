// Documents: HTML and XML as trees, and what is told of their parts. Selectors have tests of their own.
#include "argiope/document/document.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace argiope {
namespace {

using namespace std::literals;

Document tree_of(std::string_view html) { return std::move(Document::parse_html(html).value()); }
Document xml_document(std::string_view xml) { return std::move(Document::parse_xml(xml).value()); }

// The first that a CSS selector finds; there must be one.
Match only_match(const Document& document, std::string_view selector) {
  auto found = document.select_first(Selector::css(selector).value()).value();
  EXPECT_TRUE(found) << selector << " finds nothing";
  return found ? std::move(*found) : document.root();
}
std::string text_at(std::string_view html, std::string_view selector) {
  const Document document = tree_of(html);
  return only_match(document, selector).text();
}
std::string lines_at(std::string_view html, std::string_view selector = "body") {
  const Document document = tree_of(html);
  return only_match(document, selector).lines();
}
std::string html_at(std::string_view html, std::string_view selector) {
  const Document document = tree_of(html);
  return only_match(document, selector).outer_html();
}

TEST(DocumentTree, IsThatOfTheHtmlStandard) {
  // 13.2.6.4.9: a tbody is added; 13.2.6.4.7: a p ends where a div begins; 13.2.6.1: text in a table goes before it.
  EXPECT_EQ(html_at("<table>x<tr><td>1", "body"), "<body>x<table><tbody><tr><td>1</td></tr></tbody></table></body>");
  EXPECT_EQ(html_at("<p>a<div>b</div></p>", "body"), "<body><p>a</p><div>b</div><p></p></body>");
  EXPECT_EQ(html_at("<b>1<p>2</b>3", "body"), "<body><b>1</b><p><b>2</b>3</p></body>");
}

TEST(DocumentTree, OfAnythingIsThere) {
  for (const std::string_view html :
       {""sv, "<"sv, "</"sv, "<!--"sv, "<!doctype"sv, "\0<p>\0"sv, "&#xffffff;"sv, "<p a"sv}) {
    const auto document = Document::parse_html(html);
    ASSERT_TRUE(document) << html;
    EXPECT_TRUE(document->select_first(Selector::css("html > body").value()).value());
  }
}

TEST(DocumentText, IsWhatAReaderSees) {
  EXPECT_EQ(text_at("<p> one\n<b>two </b> three&nbsp;four", "p"), "one two three four");
  EXPECT_EQ(text_at("<div>a<script>b</script><style>c</style><template>d</template><noscript>e</noscript>f", "div"),
            "af");
  EXPECT_EQ(text_at("<ul><li>a<li>b</ul>c", "body"), "a b c");
  EXPECT_EQ(text_at("<table><tr><td>1<td>2<tr><td>3", "table"), "1 2 3");
  EXPECT_EQ(text_at("un<b>happ</b>y", "body"), "unhappy");
  EXPECT_EQ(text_at("a<br>b", "body"), "a b");
}

TEST(DocumentText, HasNothingOfWhatIsHidden) {
  EXPECT_EQ(text_at("<p>a<span hidden>b</span><b style='color:red; DISPLAY : none !important'>c</b><i "
                    "style='display:none;display:block'>d</i>",
                    "p"),
            "ad");
  EXPECT_EQ(text_at("<div>a<dialog>b</dialog><dialog open>c</dialog><ruby>d<rp>(</rp><rt>e</rt></ruby></div>", "div"),
            "a c de");
  EXPECT_EQ(text_at("<p hidden>a<b>b</b>", "p"), "ab") << "it was asked itself";
}

TEST(DocumentText, OfXhtmlIsThatOfHtml) {
  const auto text_of = [](const char* xml) {
    const auto document = Document::parse(xml, "text/xml");
    EXPECT_TRUE(document && document->is_xml());
    return document->root().text();
  };
  EXPECT_EQ(
      text_of("<html xmlns='http://www.w3.org/1999/xhtml'><body><p>a</p><p>b</p><script>c</script></body></html>"),
      "a b");
  EXPECT_EQ(text_of("<item><p>a</p><p>b</p></item>"), "ab");
}

TEST(DocumentText, OfAnElementThatIsNotShownIsThereWhenItIsAskedItself) {
  EXPECT_EQ(text_at("<script>let a;\n</script>", "script"), "let a;");
  EXPECT_EQ(text_at("<title> A &amp; B </title>", "title"), "A & B");
}

TEST(DocumentText, HasOneSpaceBetweenWords) {
  const auto text_of = [](const std::string& value) {
    const auto document = Document::parse_html("<p title=\"" + value + "\">");
    return document->select_first(Selector::css("p::attr(title)").value())->value().text();
  };
  EXPECT_EQ(text_of("a b c"), "a b c");
  EXPECT_EQ(text_of("a"), "a");
  EXPECT_EQ(text_of(" a"), "a");
  EXPECT_EQ(text_of("a "), "a");
  EXPECT_EQ(text_of("a  b"), "a b");
  EXPECT_EQ(text_of("a\nb"), "a b");
  EXPECT_EQ(text_of("a\xc2\xa0\xc2\xa0\xc3\xa4"), "a \xc3\xa4");
  EXPECT_EQ(text_of("\xc2\xb0"), "\xc2\xb0");
  EXPECT_EQ(text_of(" \n"), "");
}

TEST(DocumentText, OfSeveralLinesHasALineForEachBlock) {
  EXPECT_EQ(lines_at("<h1>Head</h1><p>one <i>two</i></p><p>three<br>four</p><ul><li>a<li>b</ul>"),
            "Head\n\none two\n\nthree\nfour\n\na\nb");
  EXPECT_EQ(lines_at("<pre>a\n  b</pre>c"), "a\n  b\n\nc");
  EXPECT_EQ(lines_at("<div>a</div>\n\n<div>b</div>"), "a\nb");
}

TEST(DocumentText, AsItIsHasAllCharacters) {
  const Document document = tree_of("<p> a\n<b>b</b><script>c</script> </p>");
  EXPECT_EQ(only_match(document, "p").raw(), " a\nbc ");
}

TEST(DocumentMarkup, IsWrittenAsTheHtmlStandardWritesIt) {
  EXPECT_EQ(html_at("<P CLASS='a\"b' hidden>&lt;1&amp;2&nbsp;<br><img src=x></P>", "p"),
            "<p class=\"a&quot;b\" hidden=\"\">&lt;1&amp;2&nbsp;<br><img src=\"x\"></p>");
  EXPECT_EQ(html_at("<script>a<b&&c</script>", "script"), "<script>a<b&&c</script>");
  const Document document = tree_of("<p>a<b>c</b></p>");
  EXPECT_EQ(only_match(document, "p").inner_html(), "a<b>c</b>");
}

TEST(DocumentMarkup, OfXmlIsXml) {
  const Document document = xml_document("<a><b c=\"&lt;&quot;\"/>d&amp;<![CDATA[<e>]]></a>");
  EXPECT_EQ(document.root().outer_html(), "<a><b c=\"&lt;&quot;\"/>d&amp;&lt;e&gt;</a>");
}

TEST(DocumentPlace, IsTheByteAndTheLine) {
  constexpr std::string_view html = "<html>\n<body>\n é<p>x</p><table><tr><td>1";
  const Document document = tree_of(html);
  const Match paragraph = only_match(document, "p");
  ASSERT_TRUE(paragraph.position());
  EXPECT_EQ(*paragraph.position(), html.find("<p>"));
  EXPECT_EQ(document.line_of(*paragraph.position()), 3u);
  EXPECT_FALSE(only_match(document, "tbody").position()) << "nobody has written it";
}

TEST(DocumentPlace, OfXmlIsThereToo) {
  constexpr std::string_view xml = "<?xml version='1.0'?>\n<a>\n  <b x='>'>c</b>\n</a>";
  const Document document = xml_document(xml);
  EXPECT_EQ(only_match(document, "b").position(), xml.find("<b"));
}

TEST(DocumentAttribute, IsDecodedAndFoundByItsName) {
  const Document document = tree_of("<a HREF='?a=1&amp;b=&uuml;' title>x</a>");
  const Match link = only_match(document, "a");
  EXPECT_EQ(link.attribute("href"), "?a=1&b=ü");
  EXPECT_EQ(link.attribute("title"), "");
  EXPECT_FALSE(link.attribute("rel"));
  EXPECT_EQ(link.name(), "a");
}

TEST(DocumentAttribute, OfSeveralWithOneNameTheFirstCounts) {
  const Document document = tree_of("<p id=a id=b>");
  EXPECT_EQ(only_match(document, "p").attribute("id"), "a");
}

TEST(DocumentCharset, IsThatOfHeaderOrMeta) {
  const auto by_header = Document::parse("<p>\xe4", "text/html; charset=iso-8859-1");
  EXPECT_EQ(only_match(*by_header, "p").text(), "ä");
  const auto by_meta = Document::parse("<meta charset=koi8-r><p>\xc1", "text/html");
  EXPECT_EQ(only_match(*by_meta, "p").text(), "а");
  const auto by_mark = Document::parse("\xef\xbb\xbf<p>ä", "text/html; charset=iso-8859-1");
  EXPECT_EQ(by_mark->text(), "<p>ä");
}

TEST(DocumentCharset, WhatIsNoUtf8BecomesReplacementCharacters) {
  EXPECT_EQ(text_at("<p>a\xff", "p"), "a\xef\xbf\xbd");
}

TEST(DocumentKind, IsTakenFromTheContentType) {
  EXPECT_TRUE(Document::parse("<a/>", "application/rss+xml")->is_xml());
  EXPECT_TRUE(Document::parse("<a/>", "text/xml; charset=utf-8")->is_xml());
  EXPECT_FALSE(Document::parse("<a/>", "application/xhtml+xml")->is_xml());
  EXPECT_FALSE(Document::parse("<a/>", "text/html")->is_xml());
  EXPECT_TRUE(Document::parse("<?xml version='1.0'?><rss/>", "")->is_xml());
  EXPECT_FALSE(Document::parse("<?xml version='1.0'?><html xmlns='x'/>", "")->is_xml());
}

TEST(XmlDocument, NamesAreAsTheyAreWritten) {
  const Document document = xml_document(
      "<feed xmlns='http://www.w3.org/2005/Atom' xmlns:media='m'><Entry><media:thumbnail url='u'/></Entry></feed>");
  EXPECT_EQ(only_match(document, "Entry media|thumbnail").attribute("url"), "u");
  EXPECT_FALSE(document.select_first(Selector::css("entry").value()).value());
}

TEST(XmlDocument, WhatIsNotWellFormedEndsItAndTheFrontIsKept) {
  const Document document = xml_document("<a><b>1</b><c>2</a>");
  EXPECT_EQ(only_match(document, "b").text(), "1");
  EXPECT_FALSE(Document::parse_xml("no element"));
  EXPECT_FALSE(Document::parse_xml(""));
}

TEST(XmlDocument, EntitiesOfHtmlAreKnownAndOthersAreNothing) {
  const Document document = xml_document(
      "<!DOCTYPE a [<!ENTITY b \"boom\"><!ENTITY c SYSTEM \"file:///etc/hostname\">]><a>1&nbsp;2&b;3&c;4&auml;</a>");
  EXPECT_EQ(only_match(document, "a").raw(),
            "1\xc2\xa0"
            "234ä");
}

TEST(XmlDocument, TheEncodingOfTheDeclarationIsThatOfTheBytes) {
  const auto document = Document::parse("<?xml version='1.0' encoding='iso-8859-1'?><a>\xe4</a>", "application/xml");
  EXPECT_EQ(only_match(*document, "a").text(), "ä");
}

TEST(DocumentOwner, MayMoveAndMayBeInAnotherThread) {
  Document document = tree_of("<p>a");
  Document moved = std::move(document);
  std::string text;
  std::thread([&] {
    const Document there = std::move(moved);
    text = only_match(there, "p").text();
  }).join();
  EXPECT_EQ(text, "a");
}

}  // namespace
}  // namespace argiope
