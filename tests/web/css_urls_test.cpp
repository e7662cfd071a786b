// The URLs of style sheets, by the clauses of CSS Syntax 3, section 4.
#include "web/internal/css_urls.hpp"

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
std::vector<std::string> css_urls(std::string_view css) {
  std::vector<CssUrl> found;
  find_css_urls(css, found);
  std::vector<std::string> out;
  for (const CssUrl& one : found) {
    out.push_back((one.is_import ? "import " : "") + unescape_css(css.substr(one.begin, one.size)));
  }
  return out;
}

TEST(CssUrls, AreFoundQuotedAndNot) {
  EXPECT_THAT(css_urls("a{background:url(a.png)} b{background:url(\"b.png\")} c{src:url('c.png')}"),
              ElementsAre("a.png", "b.png", "c.png"));
}

TEST(CssUrls, MayHaveSpaceAround) {
  EXPECT_THAT(css_urls("url(\n a.png \t) url( \"b.png\" ) url(\f'c.png'\r\n)"), ElementsAre("a.png", "b.png", "c.png"));
}

TEST(CssUrls, AreNotFoundInCommentsAndStrings) {
  EXPECT_THAT(css_urls("/* url(a) */ content: \"url(b)\" /**/ url(c) '/*' url(d) /* '*/ url(e)"),
              ElementsAre("c", "d", "e"));
}

TEST(CssUrls, AreNotFoundInLongerNames) {
  EXPECT_THAT(css_urls("my-url(a) url-prefix(b) -url(c) #url(d) 3url(e) @url(f) _url(g) \xc3\xa9url(h)"), IsEmpty());
}

TEST(CssUrls, HaveANameInAnyCaseAndWithEscapes) {
  EXPECT_THAT(css_urls("URL(a) uRl('b') \\75rl(c) \\000055 RL(d) u\\rl(e)"), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(css_urls("ur\\6c(a) ur\\6c (b) ur\\6c  (c)"), ElementsAre("a", "b"))
      << "one space ends an escape, a second one the name";
}

TEST(CssUrls, OfImportsAreStyleSheets) {
  EXPECT_THAT(css_urls("@import 'a.css'; @import url(b.css) screen; @IMPORT url(\"c.css\");\n"
                       "@import/**/\"d.css\" layer(x); p{content:'e.css'}"),
              ElementsAre("import a.css", "import b.css", "import c.css", "import d.css"));
}

TEST(CssUrls, OfNamespacesAreLeftOut) {
  EXPECT_THAT(css_urls("@namespace svg url(http://www.w3.org/2000/svg); @namespace 'x' ; @namespace a url('y'); b{c:url(d)}"),
              ElementsAre("d"));
}

TEST(CssUrls, OfImageSetsAreStringsToo) {
  EXPECT_THAT(css_urls("background: image-set(\"a.png\" 1x, url(b.png) 2x, 'c.avif' type('image/avif')), 'd'"),
              ElementsAre("a.png", "b.png", "c.avif"));
  EXPECT_THAT(css_urls("-webkit-image-set(url(a) 1x) 'b'"), ElementsAre("a"));
}

TEST(CssUrls, MayHaveModifiersAndSources) {
  EXPECT_THAT(css_urls("src: url('a.woff2' crossorigin(anonymous)) format('woff2'), src(\"b.ttf\")"),
              ElementsAre("a.woff2", "b.ttf"));
}

TEST(CssUrls, ThatAreBadAreLeftOutAndWhatFollowsIsFound) {
  EXPECT_THAT(css_urls("url(a b) url(c) url(d'e) url(f) url(g(h) url(i) url(\x01) url(j) 'k\nurl(l) url('m\n) url(n)"),
              ElementsAre("c", "f", "i", "j", "l", "n"));
}

TEST(CssUrls, EndWithTheTextAtTheLatest) {
  EXPECT_THAT(css_urls("url(a"), ElementsAre("a"));
  EXPECT_THAT(css_urls("url('b"), ElementsAre("b"));
  EXPECT_THAT(css_urls("url("), ElementsAre(""));
  EXPECT_THAT(css_urls("@import \"c"), ElementsAre("import c"));
  EXPECT_THAT(css_urls("url(d\\"), ElementsAre("d\xef\xbf\xbd"));
  EXPECT_THAT(css_urls("url"), IsEmpty());
  EXPECT_THAT(css_urls("/* url(a)"), IsEmpty());
}

TEST(CssUrls, HaveTheirEscapesUndone) {
  EXPECT_THAT(css_urls("url(a\\)b) url(\"c\\\"d\") url(e\\66 g) url('h\\\ni') url('j\\00006bk') url(\\0 l)"),
              ElementsAre("a)b", "c\"d", "efg", "hi", "jkk", "\xef\xbf\xbdl"));
}

TEST(CssUrls, AreGivenByThePlaceOfTheirBytes) {
  const std::string_view css = "a:url( x.png ) url(\"y\")";
  std::vector<CssUrl> found;
  find_css_urls(css, found);
  EXPECT_THAT(found, ElementsAre(CssUrl{7, 5, 0, false}, CssUrl{20, 1, '"', false}));
}

TEST(CssUrls, AreWrittenSoThatTheyAreReadAgain) {
  Random random(20);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (auto length = random.below(12); length > 0; --length) text += "ab/'\"()\\ \t\n<>&;\x7f\xc3\xa9"[random.below(18)];
    for (const char quote : {'\0', '"', '\''}) {
      std::string written = "a{b:url(";
      if (quote != 0) written += quote;
      append_css_escaped(text, quote, written);
      if (quote != 0) written += quote;
      written += ")} c{d:url(last)}";
      EXPECT_THAT(css_urls(written), ElementsAre(text, "last")) << written;
      EXPECT_FALSE(written.contains('<'));
    }
  }
}

TEST(CssUrls, TakeTimeLinearInTheText) {
  for (const std::string_view piece : {"url(", "(", "/*", "'\\", "\\", "@import", "image-set("}) {
    std::string css;
    while (css.size() < 1'000'000) css += piece;
    std::vector<CssUrl> found;
    find_css_urls(css, found);
    EXPECT_LE(found.size(), css.size());
  }
}

}  // namespace
}  // namespace argiope
