// Pages with other URLs in them: which are found, what comes in their place, and that nothing else changes.
#include "web/html/internal/page_rewriter.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/random.hpp"
#include "web/html/internal/page_references.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string_view name_of(ReferenceRole role) {
  constexpr std::string_view kNames[] = {"link",  "form",   "image", "stylesheet", "script",
                                         "media", "object", "hint",  "fixed"};
  return kNames[static_cast<std::size_t>(role)];
}

// As they are kept beside their page.
std::string kept(const PageReferences& references) {
  std::string bytes;
  append_references(references, bytes);
  return bytes;
}

// "role url" of each URL of the page, in its order. Kept and read again they are the same.
std::vector<std::string> references_of(std::string_view html, std::string_view encoding = "UTF-8") {
  PageReferences references;
  scan_references(html, references);
  PageReferences read;
  EXPECT_TRUE(read_references(kept(references), html.size(), read)) << html;
  EXPECT_EQ(read.found, references.found);
  std::vector<std::string> out;
  std::string same;
  rewrite_page(
      html, references, encoding, {.as_file = false},
      [&](std::string_view url, ReferenceRole role, std::string&) {
        out.push_back(fmt::format("{} {}", name_of(role), url));
        return Rewritten::as_it_was;
      },
      same);
  EXPECT_EQ(same, html);
  return out;
}

// The page with each URL `x` become `<prefix>x`, unless it begins with '#'.
std::string rewritten(std::string_view html, std::string_view prefix = "../m/", RewriteOptions options = {},
                      std::string_view encoding = "UTF-8", Rewritten what = Rewritten::here) {
  PageReferences references;
  scan_references(html, references);
  std::string out;
  rewrite_page(
      html, references, encoding, options,
      [&](std::string_view url, ReferenceRole, std::string& text) {
        if (url.starts_with('#')) return Rewritten::as_it_was;
        text = std::string(prefix) + std::string(url);
        return what;
      },
      out);
  return out;
}

TEST(PageReferences, AreLinksAndWhatAPageIsShownWith) {
  EXPECT_THAT(references_of("<a href=a><area href=b><iframe src=c></iframe><frame src=d><form action=e>"
                            "<img src=f lowsrc=g longdesc=h><script src=i></script><audio src=j><video src=k poster=l>"
                            "<track src=m><embed src=n><object data=o><input type=image src=p><button formaction=q>"
                            "<body background=r><td background=s><blockquote cite=t>"),
              ElementsAre("link a", "link b", "link c", "link d", "form e", "image f", "image g", "link h", "script i",
                          "media j", "media k", "image l", "media m", "object n", "object o", "image p", "form q",
                          "image r", "image s", "link t"));
}

TEST(PageReferences, OfLinkElementsAreOfTheKindThatTheirRelationSays) {
  EXPECT_THAT(
      references_of(
          "<link rel=stylesheet href=a><link rel='alternate stylesheet' href=b><link rel='shortcut icon' href=c>"
          "<link rel=preload as=font href=d><link rel=preload as=style href=e><link rel=next href=f>"
          "<link rel=prefetch href=g><link rel=canonical href=h><link rel=modulepreload href=i>"
          "<link href=j><link rel=preload as=image imagesrcset='k 1x, l 2x'><link rel=manifest href=m>"),
      ElementsAre("stylesheet a", "stylesheet b", "image c", "object d", "stylesheet e", "link f", "hint g", "fixed h",
                  "script i", "link j", "image k", "image l", "fixed m"));
}

TEST(PageReferences, OfSourceSetsAreEachOfTheirCandidates) {
  EXPECT_THAT(references_of("<img srcset=\"a.png, b.png 2x,c.png 100w , d.png (x, y) 3x,e,f.png,\">"),
              ElementsAre("image a.png", "image b.png", "image c.png", "image d.png", "image e,f.png"));
  EXPECT_THAT(references_of("<source srcset=',a , b'><img srcset=''><img srcset=' , '>"),
              ElementsAre("image a", "image b"));
}

TEST(PageReferences, AreInStylesToo) {
  EXPECT_THAT(references_of("<style>@import 'a'; p{background:url(b)}</style><p style=\"background:url('c')\">"
                            "<i style=background:url(d)><STYLE>x{y:url(e)}</STYLE ><p style='color:red'>"),
              ElementsAre("stylesheet a", "object b", "object c", "object d", "object e"));
}

TEST(PageReferences, AreInDrawings) {
  EXPECT_THAT(references_of("<svg><image href=a /><use xlink:href='b#c'/><a xlink:href=d>x</a><script href=e></script>"
                            "<style>p{fill:url(f)}</style><style><![CDATA[q{fill:url(g)}]]></style></svg><img src=h>"),
              ElementsAre("image a", "object b#c", "link d", "script e", "object f", "object g", "image h"));
}

TEST(PageReferences, AreInRefreshesAndPagesWithinPages) {
  EXPECT_THAT(
      references_of(
          "<meta http-equiv=refresh content='3; url=a'><meta http-equiv=Refresh content=\"0;URL='b'\">"
          "<meta http-equiv=refresh content=5><iframe srcdoc=\"<img src='c'><a href=&quot;d&quot;>\"></iframe>"),
      ElementsAre("link a", "link b", "image c", "link d"));
}

TEST(PageReferences, AreNotInCommentsScriptsAndText) {
  EXPECT_THAT(
      references_of("<!-- <a href=a> --><script>'<img src=b>'</script><textarea><img src=c></textarea>"
                    "<title><img src=d></title><p title='<img src=e>'><xmp><img src=f></xmp><![CDATA[<img src=g>]]>"),
      IsEmpty());
  EXPECT_THAT(references_of("<noscript><img src=a></noscript><template><img src=b></template>"),
              ElementsAre("image a", "image b"));
}

TEST(PageReferences, AreWhatTheFirstAttributeOfANameSays) {
  EXPECT_THAT(references_of("<img src=a src=b><a HREF=' c '>"), ElementsAre("image a", "link c"));
  EXPECT_THAT(references_of("<img src><img src=''><a href='  '><a href=\"x"), IsEmpty());
}

TEST(PageReferences, AreMeantAsTheirCharacterReferencesSay) {
  EXPECT_THAT(references_of("<a href='?a=1&amp;b=2&copy=3&#x26;c'><img srcset='a&#32;1x&#44; b'>"),
              ElementsAre("link ?a=1&b=2&copy=3&c", "image a", "image b"));
}

TEST(PageReferences, OfOtherEncodingsAreGivenInUtf8) {
  EXPECT_THAT(references_of("<a href='caf\xe9'><p style='font:\"\xe9\";background:url(\xe9)'>", "windows-1252"),
              ElementsAre("link caf\xc3\xa9", "object \xc3\xa9"));
}

TEST(PageReferences, TellTheBaseAndWhereTheHeadIs) {
  PageReferences references;
  const auto before_head = [&](std::string_view html) {
    scan_references(html, references);
    return std::string(html.substr(0, references.head));
  };
  EXPECT_EQ(before_head("<!doctype html><html lang=en><head class=x><base href='&amp;b'><base href=c>"),
            "<!doctype html><html lang=en><head class=x>");
  EXPECT_EQ(references.base_href, "&b");
  before_head("<template><base href=/x/></template><base href=/y/>");
  EXPECT_EQ(references.base_href, "/y/");
  EXPECT_EQ(before_head("<!-- a --> <!DOCTYPE html><title>x</title>"), "<!-- a --> <!DOCTYPE html>");
  EXPECT_EQ(references.base_href, "");
  EXPECT_EQ(before_head("<html><body>"), "<html>");
  EXPECT_EQ(before_head("<p>x"), "");
}

TEST(PageRewriter, PutsUrlsInTheirPlaceAndLeavesEverythingElse) {
  EXPECT_EQ(rewritten("<P><A class=x HREF=a >1</A>\r\n<img\tsrc='b'   alt=\"<\"><a href=\" c\">&amp;"),
            "<P><A class=x HREF=\"../m/a\" >1</A>\r\n<img\tsrc='../m/b'   alt=\"<\"><a href=\"../m/c\">&amp;");
  EXPECT_EQ(rewritten("<a href=a/>x</a>"), "<a href=\"../m/a/\">x</a>");
  EXPECT_EQ(rewritten("<img srcset='a 1x, b 2x'><p style=\"background:url('c') , url( d )\">"),
            "<img srcset='../m/a 1x, ../m/b 2x'><p style=\"background:url('../m/c') , url( ../m/d )\">");
  EXPECT_EQ(rewritten("<style>@import \"a\";\nb{c:url(d)}</style><a href=#x>"),
            "<style>@import \"../m/a\";\nb{c:url(../m/d)}</style><a href=#x>");
  EXPECT_EQ(rewritten("<meta http-equiv=refresh content=\"3; url='a'\">"),
            "<meta http-equiv=refresh content=\"3; url='../m/a'\">");
}

TEST(PageRewriter, EscapesWhatItWrites) {
  EXPECT_EQ(rewritten("<a href='a?b&amp;c'><a href=\"d\">", "x&y'z\"<"),
            "<a href='x&amp;y&#39;z&quot;&lt;a?b&amp;c'><a href=\"x&amp;y&#39;z&quot;&lt;d\">");
  EXPECT_EQ(rewritten("<p style='background:url(a)'><style>b{c:url('d')}</style>", "x&y'z)<"),
            "<p style='background:url(x&amp;y\\&#39;z\\)\\3c a)'><style>b{c:url('x&y\\'z)\\3c d')}</style>");
  EXPECT_EQ(rewritten("<meta http-equiv=refresh content=\"3; url='a'\">", "x'"),
            "<meta http-equiv=refresh content=\"3; url='x%27a'\">");
  EXPECT_EQ(rewritten("<img srcset='a&#44;b 1x'><p style=background:url(a)>"),
            "<img srcset='../m/a,b 1x'><p style=\"background:url(../m/a)\">");
  EXPECT_EQ(rewritten("<img srcset='a 1x'>", ",x"), "<img srcset='%2Cxa 1x'>");
}

TEST(PageRewriter, NeutralisesBasesAndPolicies) {
  EXPECT_EQ(rewritten("<base href='/x/' target=_blank><base href=y><base target=z>"),
            "<base href='' target=_blank><base href=\"\"><base target=z>");
  EXPECT_EQ(rewritten("<template><base href=/x/></template>"), "<template><base href=\"\"></template>");
  EXPECT_EQ(rewritten("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'self'\">"),
            "<meta http-equiv=\"not-content-security-policy\" content=\"default-src 'self'\">");
}

TEST(PageRewriter, DropsIntegrityBesideAFileAlone) {
  const std::string_view page =
      "<script integrity=\"sha384-x\" src=a crossorigin></script><link rel=stylesheet crossorigin='anonymous' href=b "
      "integrity=y>";
  EXPECT_EQ(rewritten(page), "<script  src=\"../m/a\" ></script><link rel=stylesheet  href=\"../m/b\" >");
  EXPECT_EQ(rewritten(page, "https://x/", {}, "UTF-8", Rewritten::elsewhere),
            "<script integrity=\"sha384-x\" src=\"https://x/a\" crossorigin></script>"
            "<link rel=stylesheet crossorigin='anonymous' href=\"https://x/b\" integrity=y>");
  EXPECT_EQ(rewritten("<script src=a integrity=x></script>", ""), "<script src=a ></script>")
      << "also where the URL is as it was";
}

TEST(PageRewriter, DeclaresTheCharsetInTheHead) {
  EXPECT_EQ(rewritten("<html><head><title>x</title></head><a href=a>", "m/", {.declare_charset = "UTF-8"}),
            "<html><head><meta charset=\"UTF-8\"><title>x</title></head><a href=\"m/a\">");
  EXPECT_EQ(rewritten("<!doctype html>\n<p>x", "m/", {.declare_charset = "windows-1252"}),
            "<!doctype html><meta charset=\"windows-1252\">\n<p>x");
  EXPECT_EQ(rewritten("", "m/", {.declare_charset = "UTF-8"}), "<meta charset=\"UTF-8\">");
  EXPECT_EQ(rewritten("<html style=background:url(a)><head><link rel=icon href=b>", "m/", {.declare_charset = "UTF-8"}),
            "<html style=\"background:url(m/a)\"><head><meta charset=\"UTF-8\"><link rel=icon href=\"m/b\">");
}

TEST(PageRewriter, KeepsThePagesOwnEncoding) {
  EXPECT_EQ(rewritten("<p>\xe9<a href='\xe9'><p style='font:\"\xe9\";background:url(a)'>", "m/", {}, "windows-1252"),
            "<p>\xe9<a href='m/\xc3\xa9'><p style='font:\"\xe9\";background:url(m/a)'>")
      << "a decision that gives ASCII, as all do, is the caller's";
  EXPECT_EQ(rewritten("<p style='font:\"\xe9&amp;\";background:url(a)'>", "m/", {}, "windows-1252"),
            "<p style='font:&quot;&#233;&amp;&quot;;background:url(m/a)'>");
}

TEST(PageRewriter, RewritesPagesWithinPages) {
  EXPECT_EQ(
      rewritten("<iframe srcdoc='<a href=\"a\">&amp;amp;</a><base href=b>'></iframe>", "m/"),
      "<iframe srcdoc='&lt;a href=&quot;m/a&quot;&gt;&amp;amp;&lt;/a&gt;&lt;base href=&quot;&quot;&gt;'></iframe>");
  EXPECT_EQ(rewritten("<iframe srcdoc='<p>&amp;amp;'></iframe>"), "<iframe srcdoc='<p>&amp;amp;'></iframe>");
  std::string nested = "<a href=x>";
  for (int depth = 0; depth < 8; ++depth) {
    std::string escaped;
    for (const char c : nested) escaped += c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
    nested = "<iframe srcdoc=\"" + escaped + "\">";
  }
  EXPECT_EQ(rewritten(nested), nested) << "but not to any depth";
}

TEST(PageRewriter, ChangesNothingWhereEveryUrlStays) {
  const std::vector<std::string> pieces = {"<a href=",    "<img srcset='",
                                           "<style>",     "</style>",
                                           "url(",        ")",
                                           "'",           "\"",
                                           ">",           "<!--",
                                           "-->",         "<script>",
                                           "</script>",   "a&amp;b",
                                           "\xff",        "<svg>",
                                           "</svg>",      "style=",
                                           "<base href=", " ",
                                           "/",           "integrity=",
                                           "\r\n",        "<meta http-equiv=refresh content='1;url=",
                                           "srcdoc=\"",   "<iframe "};
  Random random(14);
  for (int round = 0; round < 20'000; ++round) {
    std::string page;
    for (auto count = random.below(20); count > 0; --count) page += pieces[random.below(pieces.size())];
    references_of(page, random.chance(0.5) ? "UTF-8" : "windows-1252");
    // A page that was rewritten can be rewritten again, to the same.
    const auto absolute = [](std::string_view html) {
      PageReferences references;
      scan_references(html, references);
      std::string out;
      rewrite_page(
          html, references, "UTF-8", {},
          [](std::string_view url, ReferenceRole, std::string& text) {
            if (url.starts_with("http://x/")) return Rewritten::as_it_was;
            text = "http://x/" + std::to_string(url.size());
            return Rewritten::elsewhere;
          },
          out);
      return out;
    };
    const std::string once = absolute(page);
    EXPECT_EQ(absolute(once), once) << page;
  }
}

TEST(PageRewriter, LeavesRealPagesAsTheyAre) {
  std::size_t pages = 0;
  std::error_code none;
  for (const auto* tree : {"/usr/share/cppreference/doc/html", "/usr/share/doc/python3.11/html"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(tree, none)) {
      if (entry.path().extension() != ".html" || ++pages % 20 != 0) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string page{std::istreambuf_iterator<char>(file), {}};
      EXPECT_FALSE(references_of(page).empty()) << entry.path();
    }
  }
  if (pages == 0) GTEST_SKIP() << "no documentation packages";
}

TEST(PageRewriter, VisitsTheAssets) {
  const std::string_view html =
      "<a href=a><img src=b srcset='c 1x'><style>@import 'd'</style><link rel=canonical href=e>"
      "<iframe srcdoc='<img src=f>'></iframe><script src=' g '></script><form action=h>";
  PageReferences references;
  scan_references(html, references);
  std::vector<std::string> found;
  visit_assets(html, references, "UTF-8", [&](std::string_view url, ReferenceRole role) {
    found.push_back(fmt::format("{} {}", name_of(role), url));
  });
  EXPECT_THAT(found, ElementsAre("image b", "image c", "stylesheet d", "image f", "script g"));
  found.clear();
  visit_style_assets("@import 'a'; b{c:url( d )} e{f:url()}", [&](std::string_view url, ReferenceRole role) {
    found.push_back(fmt::format("{} {}", name_of(role), url));
  });
  EXPECT_THAT(found, ElementsAre("stylesheet a", "object d"));
}

TEST(PageRewriter, AStyleIsKnownToNameAUrlHoweverThatIsWritten) {
  for (const std::string_view style : {"a{b:URL(x)}", "a{b:u\\72l(x)}", "a{b:-webkit-image-set('x' 1x)}",
                                       "a{b:Src('x')}", "@Import 'x'", "@\\69mport 'x'"}) {
    EXPECT_THAT(references_of(fmt::format("<style>{}</style>", style)), testing::SizeIs(1)) << style;
  }
  EXPECT_THAT(references_of("<p style='a:url&#40;x)'>"), testing::SizeIs(1));
  PageReferences references;
  scan_references("<style>a:lang(b){c:calc(1px)} @media print{} /* (c) */</style>", references);
  EXPECT_THAT(references.found, IsEmpty());
}

// --- kept beside their page

TEST(KeptReferences, AreThoseThatWereFound) {
  const std::string page =
      "<html><head><base href='http://b.test/x&amp;y/'><style>a{b:url(c)}</style></head><body background=d>" +
      std::string(300, ' ') + "<img integrity=x src=e srcset='f 1x'><svg><style>g{h:url(i)}</style></svg>" +
      std::string(20'000, ' ') + "<a href='j'>k</a><iframe srcdoc='<a href=l>'></iframe>";
  PageReferences found, read;
  scan_references(page, found);
  ASSERT_GE(found.found.size(), 8u);
  ASSERT_TRUE(read_references(kept(found), page.size(), read));
  EXPECT_EQ(read.found, found.found);
  EXPECT_EQ(read.base_href, "http://b.test/x&y/");
  EXPECT_EQ(read.head, found.head);
  ASSERT_TRUE(read_references(kept({}), 0, read));
  EXPECT_THAT(read.found, IsEmpty());
  EXPECT_EQ(read.base_href, "");
}

TEST(KeptReferences, SayNothingWhereTheyAreDamagedOrOfAnotherPage) {
  const std::string page = "<base href=a><a href=b>c</a><img src=d>";
  PageReferences found, read;
  scan_references(page, found);
  const std::string whole = kept(found);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(read_references(whole.substr(0, size), page.size(), read)) << size;
    EXPECT_FALSE(read_references(whole.substr(0, size) + std::string(whole.size() - size, '\0'), page.size(), read))
        << size;
    EXPECT_THAT(read.found, IsEmpty());
  }
  EXPECT_FALSE(read_references(whole, 20, read));
  // Whatever the check says: no place is outside of the page.
  for (const PageReference& wrong :
       {PageReference{.begin = 30, .size = 20, .tag = 1}, PageReference{.begin = 5, .size = 1, .tag = 9},
        PageReference{.begin = 1u << 31, .size = 1u << 31, .tag = 0}}) {
    EXPECT_FALSE(read_references(kept({.found = {wrong}}), page.size(), read));
  }
  EXPECT_FALSE(read_references(kept({.head = 40}), page.size(), read));
}

TEST(PageRewriter, RewritesStyleSheets) {
  std::string out;
  rewrite_css(
      "@charset \"UTF-8\";\n@import 'a';/* url(x) */b{c:url( \"d e\" ) url(f)}\n",
      [](std::string_view url, ReferenceRole, std::string& text) {
        if (url == "f") return Rewritten::as_it_was;
        text = "m/" + std::to_string(url.size());
        return Rewritten::here;
      },
      out);
  EXPECT_EQ(out, "@charset \"UTF-8\";\n@import 'm/1';/* url(x) */b{c:url( \"m/3\" ) url(f)}\n");
}

}  // namespace
}  // namespace argiope
