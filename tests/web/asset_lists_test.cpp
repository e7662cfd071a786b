// URLs in style sheets and in `srcset`, by the clauses of their standards.
#include "web/internal/asset_lists.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace argiope {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> in_sheet(std::string_view css) {
  std::vector<std::string> out;
  for (const CssUrl& url : css_urls(css, 100)) out.push_back((url.is_import ? "import " : "") + url.value);
  return out;
}

TEST(CssUrls, AreQuotedOrNotAndMayHaveSpaceAround) {
  EXPECT_THAT(in_sheet("a{b:url(c.png)} d{e: URL( 'f g.png' ) , url(\"h.png\"\t)}"), ElementsAre("c.png", "f g.png", "h.png"));
}

TEST(CssUrls, OfImportsAreStringsOrUrls) {
  EXPECT_THAT(in_sheet("@import 'a.css'; @import url(b.css) print;@IMPORT\n/* x */\"c.css\";@important 'd'"),
              ElementsAre("import a.css", "import b.css", "import c.css"));
}

TEST(CssUrls, AreNotInCommentsAndStrings) {
  EXPECT_THAT(in_sheet("/* url(a) */ b{content:\"url(c)\"} d{e:my-url(f);g:curl(h)} /* url(i)"), IsEmpty());
}

TEST(CssUrls, HaveTheirEscapesUndone) {
  EXPECT_THAT(in_sheet("a{b:url(c\\)d\\26 e\\000041f)}"), ElementsAre("c)d&eAf"));
  EXPECT_THAT(in_sheet("a{b:url('\\e9\\0\\110000 \\\nx')}"), ElementsAre("é��x"));
}

TEST(CssUrls, ThatAreBrokenAreNone) {
  EXPECT_THAT(in_sheet("url(a b) url(c\"d) url('e\n') url(f"), IsEmpty());
  EXPECT_THAT(in_sheet("url(a b); x{y:url(c)}"), ElementsAre("c")) << "and what follows is read";
}

TEST(CssUrls, TellWhereTheyBegin) {
  const auto urls = css_urls("/*\n*/a{b:url(c)} @import 'd';", 10);
  ASSERT_EQ(urls.size(), 2u);
  EXPECT_EQ(urls[0].at, 9u);
  EXPECT_EQ(urls[1].at, 25u);
}

TEST(CssUrls, EndWithTheLastThatIsWanted) { EXPECT_EQ(css_urls("url(a)url(b)url(c)", 2).size(), 2u); }

TEST(SrcsetUrls, AreSeparatedByCommasBehindTheirDescriptors) {
  EXPECT_THAT(srcset_urls("a.png 1x, b.png 2x", 10), ElementsAre("a.png", "b.png"));
  EXPECT_THAT(srcset_urls(" ,a,b.png ,, c?x=1,2 100w , d", 10), ElementsAre("a,b.png", "c?x=1,2", "d"));
  EXPECT_THAT(srcset_urls("a, b", 10), ElementsAre("a", "b"));
  EXPECT_THAT(srcset_urls("data:image/png;base64,AA== 1x, b (x, y) 2x, c", 10), ElementsAre("data:image/png;base64,AA==", "b", "c"));
  EXPECT_THAT(srcset_urls("", 10), IsEmpty());
  EXPECT_THAT(srcset_urls("a 1x, b 2x", 1), ElementsAre("a"));
}

}  // namespace
}  // namespace argiope
