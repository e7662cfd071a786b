#include "web/text/internal/content_type.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace argiope {
namespace {

TEST(ContentType, IsTheTypeAndTheFirstCharset) {
  const ContentType both = parse_content_type(" Text/HTML ; charset=UTF-8 ");
  EXPECT_EQ(both.type, "Text/HTML");
  EXPECT_EQ(both.charset, "UTF-8");
  EXPECT_EQ(parse_content_type("text/html;charset=a;charset=b").charset, "a");
  EXPECT_EQ(parse_content_type("text/html; x=y; CHARSET = a").charset, "") << "no space is allowed before the sign";
  EXPECT_EQ(parse_content_type("text/html; x=y;;; CHARSET=a ; z").charset, "a");
}

TEST(ContentType, CharsetMayBeQuoted) {
  EXPECT_EQ(parse_content_type("text/html; charset=\"utf-8\"").charset, "utf-8");
  EXPECT_EQ(parse_content_type("text/html; x=\"a;charset=b\\\";c\" d; charset=\"e\" f").charset, "e");
  EXPECT_EQ(parse_content_type("text/html; charset=\"utf-8").charset, "utf-8");
  EXPECT_EQ(parse_content_type("text/html; charset=\"utf-8\\").charset, "utf-8\\");
  EXPECT_EQ(parse_content_type("text/html; charset='utf-8'").charset, "'utf-8'") << "only double quotes quote";
}

TEST(ContentType, IsEmptyWhenTheHeaderIsNoType) {
  for (const char* header : {"", " ", "html", "/html", "text/", "te xt/html", "text, html", ";", ",", "*/*"}) {
    EXPECT_EQ(parse_content_type(header).type, "") << header;
  }
}

TEST(ContentType, OfAListIsTheLastThatIsAType) {
  struct Case {
    const char *header, *type, *charset;
  };
  for (const Case& one : {Case{"text/html, text/html", "text/html", ""},
                          {"text/html,text/html; charset=a", "text/html", "a"},
                          {"text/html; charset=a, text/html", "text/html", "a"},
                          {"text/html;charset=a, text/plain", "text/plain", ""},
                          {"text/html;charset=a,text/plain,text/html", "text/html", ""},
                          {"text/html, x", "text/html", ""},
                          {"text/html, */*", "text/html", ""},
                          {"text/h,tml", "text/h", ""},
                          {",text/html,", "text/html", ""},
                          {"text/html; x=\"a, text/plain\"", "text/html", ""},
                          {"text/html; x=\"a\\\", b/c\", d/e", "d/e", ""}}) {
    EXPECT_EQ(parse_content_type(one.header).type, one.type) << one.header;
    EXPECT_EQ(parse_content_type(one.header).charset, one.charset) << one.header;
  }
}

TEST(ContentType, ParametersMayFollowASpace) {
  EXPECT_EQ(parse_content_type("text/html charset=utf-8").type, "text/html");
  EXPECT_EQ(parse_content_type("text/html charset=utf-8").charset, "utf-8");
  EXPECT_EQ(parse_content_type("text/html\tx; charset=utf-8").charset, "utf-8");
}

TEST(ContentType, HtmlAndXhtmlAreHtml) {
  EXPECT_TRUE(is_html("text/html"));
  EXPECT_TRUE(is_html("TEXT/HTML; charset=utf-8"));
  EXPECT_TRUE(is_html("application/xhtml+xml"));
  for (const char* other :
       {"", "text/plain", "text/htmlx", "application/xml", "image/svg+xml", "text/html, text/plain"}) {
    EXPECT_FALSE(is_html(other)) << other;
  }
}

TEST(ContentType, BodiesThatBeginLikeHtmlAreHtml) {
  for (const char* body : {"<!DOCTYPE html>", "<!doctype HTML PUBLIC", " \n\t\r\f<html>", "<head >", "<Script ", "<b>",
                           "<!-- x", "<p>", "<a href=x>", "\xEF\xBB\xBF<html>", "<table>", "<h1>"}) {
    EXPECT_TRUE(sniff_is_html(body)) << body;
  }
  for (const char* body : {"", "<", "<html", "<htmlx>", "<?xml version=\"1.0\"?>", "<!DOCTYPE svg>", "text <html>",
                           "%PDF-", "<svg>", "<!--", "<!-->x"}) {
    EXPECT_EQ(sniff_is_html(body), std::string(body) == "<!-->x") << body;
  }
  EXPECT_FALSE(sniff_is_html(std::string(5000, ' ') + "<html>"));
}

TEST(ContentType, AnAnswerIsAPageByItsTypeAndOnlyWithoutOneByItsBody) {
  EXPECT_TRUE(is_html_page("text/html", "%PDF-"));
  EXPECT_FALSE(is_html_page("application/pdf", "<html><p>"));
  EXPECT_TRUE(is_html_page("", "<html><p>"));
  EXPECT_TRUE(is_html_page("html", "<html><p>")) << "what is no type says nothing";
  EXPECT_FALSE(is_html_page("", "%PDF-"));
}

TEST(ContentType, IsOneOfAListOfTypesAndOfTheirGroups) {
  const std::vector<std::string> types = {"text/html", "image/*"};
  EXPECT_TRUE(has_media_type("text/html; charset=utf-8", types));
  EXPECT_TRUE(has_media_type("Image/PNG", types));
  EXPECT_FALSE(has_media_type("text/plain", types));
  EXPECT_FALSE(has_media_type("imagery/png", types));
  EXPECT_FALSE(has_media_type("", types));
  EXPECT_TRUE(has_media_type("x/y", std::vector<std::string>{"*/*"}));
  EXPECT_FALSE(has_media_type("no type", std::vector<std::string>{"*/*"}));
}

TEST(ContentType, IsToldByTheFirstBytesWhereNothingElseTellsIt) {
  EXPECT_EQ(sniff_type("  <html >"), "text/html");
  EXPECT_EQ(sniff_type("\n<?xml version='1.0'?>"), "text/xml");
  EXPECT_EQ(sniff_type("%PDF-1.7"), "application/pdf");
  EXPECT_EQ(sniff_type("\x89PNG\r\n\x1a\n..."), "image/png");
  EXPECT_EQ(sniff_type("RIFF....WEBPVP8 "), "image/webp");
  EXPECT_EQ(sniff_type("PK\3\4"), "application/zip");
  EXPECT_EQ(sniff_type("a note"), "text/plain");
  EXPECT_EQ(sniff_type(std::string_view("\0\1\2", 3)), "application/octet-stream");
  EXPECT_EQ(sniff_type("\xff\xfe"
                       "a"),
            "text/plain")
      << "UTF-16 by its mark";
  EXPECT_EQ(sniff_type(""), "text/plain");
}

}  // namespace
}  // namespace argiope
