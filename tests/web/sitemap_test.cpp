// Sitemaps and feeds as they are met: by the protocol, by its extensions, and broken.
#include "web/html/internal/sitemap.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "base/internal/rfc3339.hpp"
#include "support/deflate.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct ReadSitemap {
  SitemapReport report;
  std::vector<std::string> entries;  // "kind URL", and " @date" where there is one
};

ReadSitemap read_all(std::string_view body, std::string_view content_type = "application/xml",
                     const SitemapLimits& limits = {}) {
  constexpr std::string_view kKinds[] = {"page", "sitemap", "alternate", "enclosure", "image"};
  ReadSitemap read;
  read.report = read_sitemap(body, content_type, limits, [&](const SitemapEntry& entry) {
    std::string text = fmt::format("{} {}", kKinds[static_cast<std::size_t>(entry.kind)], entry.url);
    if (!entry.base.empty()) text += fmt::format(" in {}", entry.base);
    if (entry.modified) text += " @" + to_rfc3339(entry.modified->at);
    read.entries.push_back(std::move(text));
  });
  return read;
}

std::string urlset(std::string_view inside) {
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset "
      "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{}</urlset>\n",
      inside);
}

TEST(Sitemap, HasPagesWithTheirDates) {
  const auto read = read_all(
      urlset("<url><loc> http://h/a?x=1&amp;y=2 </loc><lastmod>2026-03-01</lastmod><changefreq>daily</changefreq>"
             "<priority>0.8</priority></url>\n<url><loc><![CDATA[http://h/b&c]]></loc></url>"));
  EXPECT_EQ(read.report.kind, SitemapKind::urls);
  EXPECT_THAT(read.entries, ElementsAre("page http://h/a?x=1&y=2 @2026-03-01T00:00:00Z", "page http://h/b&c"));
  EXPECT_EQ(read.report.entries, 2u);
  EXPECT_EQ(read.report.trouble, "");
}

TEST(Sitemap, HasHintsAsTheyAreWritten) {
  std::string told;
  const std::string body =
      urlset("<url><loc>http://h/</loc><changefreq>hourly</changefreq><priority>1.0</priority></url>");
  read_sitemap(body, "", {},
               [&](const SitemapEntry& entry) { told = fmt::format("{} {}", entry.changefreq, entry.priority); });
  EXPECT_EQ(told, "hourly 1.0");
}

TEST(Sitemap, OfAnIndexHasSitemaps) {
  const auto read = read_all(
      "<sitemapindex xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><sitemap><loc>http://h/1.xml.gz</loc>"
      "<lastmod>2026-01-02T03:04:05+01:00</lastmod></sitemap><sitemap><loc>http://h/2.xml</loc></sitemap></"
      "sitemapindex>");
  EXPECT_EQ(read.report.kind, SitemapKind::index);
  EXPECT_THAT(read.entries, ElementsAre("sitemap http://h/1.xml.gz @2026-01-02T02:04:05Z", "sitemap http://h/2.xml"));
}

TEST(Sitemap, ReadsPrefixesAndExtensions) {
  const auto read = read_all(
      "<s:urlset xmlns:s='http://www.sitemaps.org/schemas/sitemap/0.9' "
      "xmlns:i='http://www.google.com/schemas/sitemap-image/1.1' "
      "xmlns:x='http://www.w3.org/1999/xhtml' xmlns:v='http://www.google.com/schemas/sitemap-video/1.1' "
      "xmlns:n='http://www.google.com/schemas/sitemap-news/0.9'>"
      "<s:url><s:loc>http://h/en</s:loc><x:link rel='alternate' hreflang='de' href='http://h/de?a=1&amp;b=2'/>"
      "<x:link rel='stylesheet' href='/no'/><i:image><i:loc>http://h/p.png</i:loc><i:title>loc</i:title></i:image>"
      "<v:video><v:thumbnail_loc>http://h/t.jpg</v:thumbnail_loc><v:content_loc>http://h/v.mp4</v:content_loc></"
      "v:video>"
      "<n:news><n:publication_date>2026-02-03</n:publication_date><n:title>x</n:title></n:news></s:url></s:urlset>");
  EXPECT_THAT(read.entries, ElementsAre("page http://h/en @2026-02-03T00:00:00Z", "alternate http://h/de?a=1&b=2",
                                        "image http://h/p.png", "image http://h/t.jpg", "image http://h/v.mp4"));
  EXPECT_EQ(read.report.entries, 1u);
  EXPECT_EQ(read.report.links, 5u);
}

TEST(Sitemap, KnowsTheUsualPrefixesWhereNothingDeclaresThem) {
  const auto read = read_all(
      "<urlset><url><loc>http://h/</loc><xhtml:link rel=alternate href=http://h/fr />"
      "<image:image><image:loc>http://h/p</image:loc></image:image></url></urlset>");
  EXPECT_THAT(read.entries, ElementsAre("page http://h/", "alternate http://h/fr", "image http://h/p"));
}

TEST(Sitemap, MayBeText) {
  const auto read =
      read_all("\xEF\xBB\xBFhttp://h/a\r\n\r\n# a remark\nhttps://h/b \nnonsense\nHTTP://h/c", "text/plain");
  EXPECT_EQ(read.report.kind, SitemapKind::text);
  EXPECT_THAT(read.entries, ElementsAre("page http://h/a", "page https://h/b", "page HTTP://h/c"));
  EXPECT_EQ(read.report.dropped, 1u);
}

TEST(Sitemap, OfRss2HasItemsAndEnclosures) {
  const auto read = read_all(R"(<?xml version="1.0"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"
      xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><title>News</title><link>http://h/</link>
    <atom:link href="http://h/feed" rel="self"/><image><url>http://h/logo.png</url><link>http://h/x</link></image>
    <item><title>A &amp; B</title><link>/a?utm=1&amp;x=2</link><guid isPermaLink="false">17</guid>
      <pubDate>Sat, 07 Sep 2002 00:00:01 GMT</pubDate><enclosure url="http://h/a.mp3" length="1" type="audio/mpeg"/>
      <content:encoded><![CDATA[<a href="/none">no</a><link>http://h/no</link>]]></content:encoded></item>
    <item><guid>http://h/b</guid><pubDate>7 Sep 02 10:00 EST</pubDate></item><item><title>nothing</title></item>
    </channel></rss>)");
  EXPECT_EQ(read.report.kind, SitemapKind::feed);
  EXPECT_THAT(read.entries, ElementsAre("page http://h/", "page /a?utm=1&x=2 @2002-09-07T00:00:01Z",
                                        "enclosure http://h/a.mp3", "page http://h/b @2002-09-07T15:00:00Z"));
  EXPECT_EQ(read.report.entries, 3u);
  EXPECT_EQ(read.report.dropped, 1u);
}

TEST(Sitemap, OfRss1HasItems) {
  const auto read =
      read_all(R"(<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
      xmlns:d="http://purl.org/dc/elements/1.1/"><channel rdf:about="http://h/"><link>http://h/</link></channel>
    <item rdf:about="http://h/1"><link>http://h/1</link><d:date>2026-01-01T00:00:00Z</d:date></item>
    <item rdf:about="http://h/2"><title>t</title></item></rdf:RDF>)");
  EXPECT_THAT(read.entries, ElementsAre("page http://h/", "page http://h/1 @2026-01-01T00:00:00Z", "page http://h/2"));
}

TEST(Sitemap, OfAtomHasEntriesWithTheirBases) {
  const auto read = read_all(R"(<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://h/blog/">
    <link rel="self" href="feed"/><link href="/"/><updated>2026-05-05T00:00:00Z</updated>
    <entry><link href="one"/><link rel="enclosure" href="one.mp3"/><link rel="alternate" type="text/plain" href="one.txt"/>
      <link rel="edit" href="no"/><published>2026-01-01T00:00:00Z</published><updated>2026-02-02T00:00:00Z</updated>
      <content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><link href="no"/></div></content></entry>
    <entry xml:base="http://h/b/"><link rel="alternate" href="two"/></entry></feed>)");
  EXPECT_THAT(read.entries, ElementsAre("page / in http://h/blog/", "page one in http://h/blog/ @2026-02-02T00:00:00Z",
                                        "enclosure one.mp3 in http://h/blog/", "alternate one.txt in http://h/blog/",
                                        "page two in http://h/b/"));
}

TEST(Sitemap, IsUnpackedWhateverItsName) {
  const std::string plain = urlset("<url><loc>http://h/a</loc></url>");
  EXPECT_THAT(read_all(gzip(plain), "text/html").entries, ElementsAre("page http://h/a"));
  EXPECT_THAT(read_all(gzip(gzip(plain))).entries, ElementsAre("page http://h/a"));
  EXPECT_EQ(read_all(gzip("no URL")).report.kind, SitemapKind::none);
}

TEST(Sitemap, ThatIsPackedAndDamagedIsReadUpToThere) {
  std::string inside;
  for (int i = 0; i < 5000; ++i) inside += fmt::format("<url><loc>http://h/{}</loc></url>", i * 7919);
  const std::string packed = gzip(urlset(inside));
  const auto read = read_all(std::string_view(packed).substr(0, packed.size() / 2));
  EXPECT_GT(read.entries.size(), 100u);
  EXPECT_LT(read.entries.size(), 5000u);
  EXPECT_NE(read.report.trouble, "");
}

TEST(Sitemap, IsReadInItsEncoding) {
  EXPECT_THAT(
      read_all("<?xml version='1.0' encoding='ISO-8859-1'?><urlset><url><loc>http://h/\xE9</loc></url></urlset>")
          .entries,
      ElementsAre("page http://h/é"));
  std::string wide = "\xFF\xFE";
  for (const char c : std::string("<urlset><url><loc>http://h/w</loc></url></urlset>")) wide += std::string{c, '\0'};
  EXPECT_THAT(read_all(wide).entries, ElementsAre("page http://h/w"));
}

TEST(Sitemap, KeepsAnAmpersandThatBeginsNoReference) {
  EXPECT_THAT(
      read_all(urlset("<url><loc>http://h/?a=1&b=2&copy=3&amp;d=&#52;&#x35;&bogus;&#xD800;</loc></url>")).entries,
      ElementsAre("page http://h/?a=1&b=2&copy=3&d=45&bogus;&#xD800;"));
}

TEST(Sitemap, DeclaresNoEntity) {
  const auto read = read_all(
      "<!DOCTYPE urlset [<!ENTITY a \"]>aaaaaaaaaa\"><!ENTITY b '&a;&a;&a;&a;'> <!-- ]> --> <!ENTITY x SYSTEM "
      "\"file:///etc/passwd\">]>"
      "<urlset><url><loc>http://h/&b;&x;</loc></url></urlset>");
  EXPECT_THAT(read.entries, ElementsAre("page http://h/&b;&x;"));
}

TEST(Sitemap, ThatIsBrokenIsReadAsItWasMeant) {
  EXPECT_THAT(read_all("<urlset><url><loc>http://h/1</loc><url><loc>http://h/2</loc></wrong></url><url><loc>http://h/"
                       "3</url></urlset>")
                  .entries,
              ElementsAre("page http://h/1", "page http://h/2", "page http://h/3"));
  EXPECT_THAT(
      read_all("<urlset><!-- <url><loc>http://h/no</loc></url> --><url a=b c><loc>http://h/1 < 2</loc></url></urlset>")
          .entries,
      ElementsAre("page http://h/1 < 2"));
}

TEST(Sitemap, ThatEndsTooEarlyHasWhatIsWhole) {
  const auto read = read_all("<urlset><url><loc>http://h/1</loc></url><url><loc>http://h/2</loc><lastmod>20");
  EXPECT_THAT(read.entries, ElementsAre("page http://h/1", "page http://h/2"));
  EXPECT_THAT(read.report.trouble, HasSubstr("ends"));
  EXPECT_THAT(read_all("<urlset><url><loc>http://h/cut-o").entries, IsEmpty());
  EXPECT_THAT(read_all("<urlset><url><loc>http://h/1</loc></url><url><lo").entries, ElementsAre("page http://h/1"));
}

TEST(Sitemap, IsNothingElse) {
  for (const std::string_view body :
       {"", " ", "<!DOCTYPE html><html><body><url><loc>http://h/</loc></url></body></html>", "hello\nhttp://h/",
        "{\"a\":1}", "<a>", "<", "<urls><url><loc>http://h/</loc></url></urls>", "\x1f\x8b", "\x1f\x8bgarbage"}) {
    const auto read = read_all(body);
    EXPECT_EQ(read.report.kind, SitemapKind::none) << body;
    EXPECT_THAT(read.entries, IsEmpty()) << body;
  }
  EXPECT_EQ(read_all("<urlset/>").report.kind, SitemapKind::urls);
}

TEST(Sitemap, EndsAtItsLimits) {
  std::string inside;
  for (int i = 0; i < 10; ++i) inside += fmt::format("<url><loc>http://h/{}</loc></url>", i);
  const auto few = read_all(urlset(inside), "", {.most_entries = 3});
  EXPECT_EQ(few.entries.size(), 3u);
  EXPECT_TRUE(few.report.cut);
  EXPECT_EQ(few.report.trouble, "only the first 3 entries were read");
  const auto small = read_all(gzip(urlset(inside)), "", {.most_bytes = 200});
  EXPECT_GT(small.entries.size(), 0u);
  EXPECT_LT(small.entries.size(), 10u);
  EXPECT_EQ(small.report.trouble, "it ends before its last element does");
  EXPECT_EQ(read_all("http://h/1\nhttp://h/2\nhttp://h/3", "", {.most_entries = 2}).entries.size(), 2u);
  const auto long_url =
      read_all(urlset("<url><loc>http://h/" + std::string(5000, 'a') + "</loc></url><url><loc>http://h/b</loc></url>"),
               "", {.most_url_bytes = 1000});
  EXPECT_THAT(long_url.entries, ElementsAre("page http://h/b"));
  EXPECT_GT(long_url.report.dropped, 0u);
}

TEST(Sitemap, ThatIsHostileCostsLittle) {
  std::string deep = "<urlset>";
  for (int i = 0; i < 200'000; ++i) deep += "<a>";
  EXPECT_THAT(read_all(deep).report.trouble, HasSubstr("nested deeper"));
  std::string ends = "<urlset>";
  for (int i = 0; i < 200'000; ++i) ends += "</x>";
  EXPECT_THAT(read_all(ends).report.trouble, HasSubstr("has not begun"));
  std::string many = "<urlset><url";
  for (int i = 0; i < 200'000; ++i) many += fmt::format(" xmlns:a{}='x'", i);
  EXPECT_THAT(read_all(many + "><loc>http://h/</loc></url></urlset>").entries, ElementsAre("page http://h/"));
  const auto open = read_all(std::string(300'000, '<') + "<!--");
  EXPECT_THAT(open.entries, IsEmpty());
}

std::string at(std::optional<FeedDate> date) {
  constexpr std::string_view kPrecisions[] = {"year", "month", "day", "moment"};
  return date ? to_rfc3339(date->at) + " " + std::string(kPrecisions[static_cast<std::size_t>(date->precision)])
              : "none";
}

TEST(FeedDate, ReadsW3cDatesInAllPrecisions) {
  EXPECT_EQ(at(parse_w3c_date("1997")), "1997-01-01T00:00:00Z year");
  EXPECT_EQ(at(parse_w3c_date("1997-07")), "1997-07-01T00:00:00Z month");
  EXPECT_EQ(at(parse_w3c_date(" 1997-07-16 ")), "1997-07-16T00:00:00Z day");
  EXPECT_EQ(at(parse_w3c_date("1997-07-16T19:20+01:00")), "1997-07-16T18:20:00Z moment");
  EXPECT_EQ(at(parse_w3c_date("1997-07-16T19:20:30+01:00")), "1997-07-16T18:20:30Z moment");
  EXPECT_EQ(at(parse_w3c_date("1997-07-16T19:20:30.45-0130")), "1997-07-16T20:50:30.450Z moment");
  EXPECT_EQ(at(parse_w3c_date("1997-07-16 19:20:30")), "1997-07-16T19:20:30Z moment");
  EXPECT_EQ(at(parse_w3c_date("2024-02-29T24:00Z")), "2024-03-01T00:00:00Z moment");
  for (const std::string_view wrong : {"", "97", "1997-13", "1997-02-30", "1997-07-16T", "1997-07-16T25:00Z",
                                       "1997-07-16T19:20:30.Z", "19970716", "1997-07-16T19:20+1:00", "1960-01-01",
                                       "2300-01-01", "1997-07T10:00Z", "1997-07-16x", "1970-01-01T00:00+01:00"}) {
    EXPECT_EQ(at(parse_w3c_date(wrong)), "none") << wrong;
  }
}

TEST(FeedDate, ReadsRfc822DatesAsTheyAreMet) {
  EXPECT_EQ(at(parse_rfc822_date("Sat, 07 Sep 2002 00:00:01 GMT")), "2002-09-07T00:00:01Z moment");
  EXPECT_EQ(at(parse_rfc822_date("7 Sep 2002 09:42 +0200")), "2002-09-07T07:42:00Z moment");
  EXPECT_EQ(at(parse_rfc822_date("Saturday, 7 September 02 09:42:31 PDT")), "2002-09-07T16:42:31Z moment");
  EXPECT_EQ(at(parse_rfc822_date("07-Sep-99 09:42:31 Z")), "1999-09-07T09:42:31Z moment");
  EXPECT_EQ(at(parse_rfc822_date("Sat, 07 Sep 2002")), "2002-09-07T00:00:00Z day");
  EXPECT_EQ(at(parse_rfc822_date("Sat, 07 Sep 2002 00:00:01 XYZ")), "2002-09-07T00:00:01Z moment");
  for (const std::string_view wrong :
       {"", "Sat", "Sat, 31 Feb 2002 00:00:00 GMT", "7 Foo 2002", "2002-09-07", "Sat, 7 Sep 2002 99:00 GMT"}) {
    EXPECT_EQ(at(parse_rfc822_date(wrong)), "none") << wrong;
  }
}

TEST(FeedDate, OfADayMayBeItsEnd) {
  EXPECT_EQ(to_rfc3339(latest_of(*parse_feed_date("2026-01-02"))), "2026-01-02T23:59:59.999Z");
  EXPECT_EQ(to_rfc3339(latest_of(*parse_feed_date("2026-01"))), "2026-01-01T00:00:00Z");
  EXPECT_EQ(to_rfc3339(latest_of(*parse_feed_date("Fri, 02 Jan 2026 10:00:00 GMT"))), "2026-01-02T10:00:00Z");
}

}  // namespace
}  // namespace argiope
