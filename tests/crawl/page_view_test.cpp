#include "crawl/page/internal/page_view.hpp"

#include <gtest/gtest.h>

#include <string>

namespace argiope {
namespace {

const Url kUrl = *Url::parse("http://h/d/");

TEST(PageView, IsTheBodyItselfWhereThatIsUtf8) {
  const std::string body = "\xEF\xBB\xBF<p>caf\xC3\xA9";
  PageView page(kUrl, body, "text/html");
  EXPECT_EQ(page.charset().name, "UTF-8");
  EXPECT_EQ(page.text(), "<p>caf\xC3\xA9");
  EXPECT_EQ(page.text().data(), body.data() + 3) << "not a copy";
  EXPECT_FALSE(page.is_text_as_it_came()) << "but for its mark";
}

TEST(PageView, IsTranscodedOnce) {
  const std::string body = "<p>caf\xE9";
  PageView page(kUrl, body, "text/html; charset=iso-8859-1");
  const std::string_view first = page.text();
  EXPECT_EQ(first, "<p>caf\xC3\xA9");
  EXPECT_EQ(page.text().data(), first.data());
  EXPECT_EQ(page.charset().name, "windows-1252");
}

TEST(PageView, IsThatOfTheLastBody) {
  const std::string one = "<p>caf\xE9", other = "<p>\xA3";
  PageView page(kUrl, one, "text/html; charset=iso-8859-1");
  EXPECT_EQ(page.text(), "<p>caf\xC3\xA9");
  page.begin(kUrl, other, "text/html; charset=iso-8859-2");
  EXPECT_EQ(page.charset().name, "ISO-8859-2");
  EXPECT_EQ(page.text(), "<p>\xC5\x81");
  page.begin(kUrl, {}, "text/html");
  EXPECT_EQ(page.text(), "");
}

TEST(PageView, MakesEachPartOnceHoweverOftenItIsAskedFor) {
  const std::string body = "<base href=/e/><title>caf\xE9</title><a href=a>one two</a><img src=i>";
  PageBufferPool pool;
  PageView page(kUrl, body, "text/html; charset=iso-8859-1");
  page.read_as({.find_references = true, .pool = &pool});
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(page.is_html());
    EXPECT_EQ(page.scan().links.size(), 1u);
    EXPECT_EQ(page.references().found.size(), 3u) << "of the base, the link and the picture";
    EXPECT_EQ(page.resolver().base().href(), "http://h/e/");
    EXPECT_EQ(page.survey().title, "caf\xC3\xA9");
    EXPECT_EQ(page.words().count, 3u);
    ASSERT_TRUE(page.document());
    EXPECT_EQ(page.document()->text(), page.text());
  }
  EXPECT_EQ(page.made().texts, 1u);
  EXPECT_EQ(page.made().scans, 1u);
  EXPECT_EQ(page.made().surveys, 1u);
  EXPECT_EQ(page.made().words, 1u);
  EXPECT_EQ(page.made().trees, 1u);
}

TEST(PageView, FindsReferencesThatItWasNotToldOf) {
  const std::string one = "<a href=a></a><img src=i>", other = "<img src=j>";
  PageBufferPool pool;
  for (const std::string* body : {&one, &other}) {
    PageView page(kUrl, *body, "text/html");
    page.read_as({.pool = &pool});
    page.scan();
    EXPECT_EQ(page.references().found.size(), body == &one ? 2u : 1u) << "and none of the page before";
  }
}

TEST(PageView, RefusesATreeOfAPageThatIsTooLargeAsItCame) {
  std::string body = "\xFF\xFE";
  body.resize(DocumentLimits{}.most_bytes + 2, '\0');
  PageView page(kUrl, body, "text/html");
  EXPECT_EQ(page.document().error().code, Errc::too_large);
  EXPECT_EQ(page.made().texts, 0u) << "what is not worth it is not converted";
}

TEST(FetchedPage, StaysForThoseWhoKeepIt) {
  auto page = std::make_shared<FetchedPage>();
  page->response.body = "<p>a";
  page->response.headers.content_type = "text/html";
  page->begin(kUrl);
  EXPECT_FALSE(page->is_shared());
  const auto kept = page->share();
  EXPECT_TRUE(page->is_shared());
  page->view.scan();
  page->view.end();
  page.reset();
  EXPECT_EQ(kept->view.text().data(), kept->response.body.data()) << "not a copy";
  EXPECT_EQ(kept->view.url().href(), "http://h/d/");
}

}  // namespace
}  // namespace argiope
