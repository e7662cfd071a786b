#include "crawl/page/internal/page_view.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace argiope {
namespace {

const Url kUrl = *Url::parse("http://h/d/");

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
  }
  EXPECT_EQ(page.made().texts, 1u);
  EXPECT_EQ(page.made().scans, 1u);
  EXPECT_EQ(page.made().surveys, 1u);
  EXPECT_EQ(page.made().words, 1u);
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

TEST(PageView, TellsATextThatIsTheBody) {
  const std::string marked = "\xEF\xBB\xBF<p>a", plain = "<p>a", latin = "<p>caf\xE9";
  const std::string_view type = "text/html; charset=iso-8859-1";
  EXPECT_FALSE(PageView(kUrl, marked, type).is_text_as_it_came());
  EXPECT_FALSE(PageView(kUrl, latin, type).is_text_as_it_came());
  EXPECT_TRUE(PageView(kUrl, plain, type).is_text_as_it_came());
}

TEST(PageView, RefersToNothingOfItsReadingOnceItHasEnded) {
  const std::string body = "<meta name=bot content=noindex>";
  PageView page(kUrl, body, "text/html");
  {
    PageBufferPool pool;
    page.read_as({.agent = std::string("bot"), .pool = &pool});
    page.end();
  }
  EXPECT_FALSE(page.scan().robots.noindex) << "nobody is addressed as that";
}

TEST(PageView, IsScannedOnceForReadersOnSeveralThreads) {
  const std::string body = "<base href=/e/><a href=a>one</a>";
  PageView page(kUrl, body, "text/html");
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&page] {
      EXPECT_EQ(page.scan().links.size(), 1u);
      EXPECT_EQ(page.resolver().base().href(), "http://h/e/");
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(page.made().scans, 1u);
}

TEST(PageBufferPool, KeepsAFewBuffers) {
  PageBufferPool pool;
  std::vector<std::unique_ptr<PageBuffers>> used;
  for (std::size_t i = 0; i < 3 * PageBufferPool::kMostIdle; ++i) used.push_back(pool.take());
  EXPECT_EQ(pool.idle(), 0u);
  for (auto& buffers : used) pool.give(std::move(buffers));
  EXPECT_EQ(pool.idle(), PageBufferPool::kMostIdle);
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

TEST(FetchedPage, HasNoMemoryOfATextThatNobodyHolds) {
  auto page = std::make_shared<FetchedPage>();
  page->response.body = "<p>caf\xE9";
  page->response.headers.content_type = "text/html; charset=iso-8859-1";
  page->begin(kUrl);
  auto text = page->share_text();
  EXPECT_TRUE(page->is_shared());
  const std::string_view first = page->view.text();
  page->view.end();
  EXPECT_EQ(text->utf8().data(), first.data());
  EXPECT_EQ(text->times_made(), 1u);
  text.reset();
  EXPECT_EQ(page->view.text(), "<p>caf\xC3\xA9");
  EXPECT_EQ(page->view.made().texts, 2u) << "the first one is gone";
}

}  // namespace
}  // namespace argiope
