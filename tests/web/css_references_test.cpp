// The URLs of style sheets, by the clauses of CSS Syntax 3, section 4.
#include "web/html/internal/css_references.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// What each URL of `css` stands for; "import " before those of @import.
std::vector<std::string> css_urls_in(std::string_view css) {
  std::vector<CssReference> found;
  find_css_references(css, found);
  std::vector<std::string> out;
  for (const CssReference& one : found) {
    out.push_back((one.is_import ? "import " : "") + unescape_css(css.substr(one.begin, one.size)));
  }
  return out;
}

TEST(CssReferences, AreFoundQuotedAndNot) {
  EXPECT_THAT(css_urls_in("a{background:url(a.png)} b{background:url(\"b.png\")} c{src:url('c.png')}"),
              ElementsAre("a.png", "b.png", "c.png"));
}

TEST(CssReferences, MayHaveSpaceAround) {
  EXPECT_THAT(css_urls_in("url(\n a.png \t) url( \"b.png\" ) url(\f'c.png'\r\n)"),
              ElementsAre("a.png", "b.png", "c.png"));
}

TEST(CssReferences, AreNotFoundInCommentsAndStrings) {
  EXPECT_THAT(css_urls_in("/* url(a) */ content: \"url(b)\" /**/ url(c) '/*' url(d) /* '*/ url(e)"),
              ElementsAre("c", "d", "e"));
}

TEST(CssReferences, AreNotFoundInLongerNames) {
  EXPECT_THAT(css_urls_in("my-url(a) url-prefix(b) -url(c) #url(d) 3url(e) @url(f) _url(g) \xc3\xa9url(h)"), IsEmpty());
}

TEST(CssReferences, HaveANameInAnyCaseAndWithEscapes) {
  EXPECT_THAT(css_urls_in("URL(a) uRl('b') \\75rl(c) \\000055 RL(d) u\\rl(e)"), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(css_urls_in("ur\\6c(a) ur\\6c (b) ur\\6c  (c)"), ElementsAre("a", "b"))
      << "one space ends an escape, a second one the name";
}

TEST(CssReferences, OfImportsAreStyleSheets) {
  EXPECT_THAT(css_urls_in("@import 'a.css'; @import url(b.css) screen; @IMPORT url(\"c.css\");\n"
                          "@import/**/\"d.css\" layer(x); p{content:'e.css'}"),
              ElementsAre("import a.css", "import b.css", "import c.css", "import d.css"));
}

TEST(CssReferences, OfNamespacesAreLeftOut) {
  EXPECT_THAT(
      css_urls_in(
          "@namespace svg url(http://www.w3.org/2000/svg); @namespace 'x' ; @namespace a url('y'); b{c:url(d)}"),
      ElementsAre("d"));
}

TEST(CssReferences, OfImageSetsAreStringsToo) {
  EXPECT_THAT(css_urls_in("background: image-set(\"a.png\" 1x, url(b.png) 2x, 'c.avif' type('image/avif')), 'd'"),
              ElementsAre("a.png", "b.png", "c.avif"));
  EXPECT_THAT(css_urls_in("-webkit-image-set(url(a) 1x) 'b'"), ElementsAre("a"));
}

TEST(CssReferences, MayHaveModifiersAndSources) {
  EXPECT_THAT(css_urls_in("src: url('a.woff2' crossorigin(anonymous)) format('woff2'), src(\"b.ttf\")"),
              ElementsAre("a.woff2", "b.ttf"));
}

TEST(CssReferences, ThatAreBadAreLeftOutAndWhatFollowsIsFound) {
  EXPECT_THAT(
      css_urls_in("url(a b) url(c) url(d'e) url(f) url(g(h) url(i) url(\x01) url(j) 'k\nurl(l) url('m\n) url(n)"),
      ElementsAre("c", "f", "i", "j", "l", "n"));
}

TEST(CssReferences, EndWithTheTextAtTheLatest) {
  EXPECT_THAT(css_urls_in("url(a"), ElementsAre("a"));
  EXPECT_THAT(css_urls_in("url('b"), ElementsAre("b"));
  EXPECT_THAT(css_urls_in("url("), ElementsAre(""));
  EXPECT_THAT(css_urls_in("@import \"c"), ElementsAre("import c"));
  EXPECT_THAT(css_urls_in("url(d\\"), ElementsAre("d\xef\xbf\xbd"));
  EXPECT_THAT(css_urls_in("url"), IsEmpty());
  EXPECT_THAT(css_urls_in("/* url(a)"), IsEmpty());
}

TEST(CssReferences, HaveTheirEscapesUndone) {
  EXPECT_THAT(css_urls_in("url(a\\)b) url(\"c\\\"d\") url(e\\66 g) url('h\\\ni') url('j\\00006bk') url(\\0 l)"),
              ElementsAre("a)b", "c\"d", "efg", "hi", "jkk", "\xef\xbf\xbdl"));
}

TEST(CssReferences, AreGivenByThePlaceOfTheirBytes) {
  const std::string_view css = "a:url( x.png ) url(\"y\")";
  std::vector<CssReference> found;
  find_css_references(css, found);
  EXPECT_THAT(found, ElementsAre(CssReference{7, 5, 0, false}, CssReference{20, 1, '"', false}));
}

TEST(CssReferences, AreWrittenSoThatTheyAreReadAgain) {
  Random random(20);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (auto length = random.below(12); length > 0; --length)
      text += "ab/'\"()\\ \t\n<>&;\x7f\xc3\xa9"[random.below(18)];
    for (const char quote : {'\0', '"', '\''}) {
      std::string written = "a{b:url(";
      if (quote != 0) written += quote;
      append_css_escaped(text, quote, written);
      if (quote != 0) written += quote;
      written += ")} c{d:url(last)}";
      EXPECT_THAT(css_urls_in(written), ElementsAre(text, "last")) << written;
      EXPECT_FALSE(written.contains('<'));
    }
  }
}

TEST(CssReferences, TakeTimeLinearInTheText) {
  for (const std::string_view piece : {"url(", "(", "/*", "'\\", "\\", "@import", "image-set("}) {
    std::string css;
    while (css.size() < 1'000'000) css += piece;
    std::vector<CssReference> found;
    find_css_references(css, found);
    EXPECT_LE(found.size(), css.size());
  }
}

}  // namespace
}  // namespace argiope
