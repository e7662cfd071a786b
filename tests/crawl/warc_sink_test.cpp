// Crawls into archives and out of them again.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "argiope/crawl/sinks.hpp"
#include "argiope/warc/warc.hpp"
#include "crawl/page/internal/page_view.hpp"
#include "support/simulated_web.hpp"
#include "support/temporary_folder.hpp"
#include "warc/internal/cdxj.hpp"
#include "warc/internal/sha1.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

class WarcSinkTest : public testing::Test {
 protected:
  std::shared_ptr<WarcSink> open(WarcOptions options = {}) {
    options.path = path_;
    auto sink = WarcSink::open(options, clock_, Random{++seed_});
    EXPECT_TRUE(sink) << (sink ? "" : sink.error().message);
    return sink ? *sink : nullptr;
  }
  std::size_t index_lines() const {
    std::ifstream in(path_ + ".cdxj");
    std::size_t lines = 0;
    for (std::string line; std::getline(in, line); ++lines) EXPECT_TRUE(parse_cdxj(line)) << line;
    return lines;
  }
  static Result<void> show(CrawlSink& sink, const std::string& url, const std::string& body,
                           ExchangeKind kind = ExchangeKind::page, HttpMethod method = HttpMethod::get) {
    HttpRequest request;
    request.method = method;
    request.url = *Url::parse(url);
    HttpResponse response;
    response.status = 200;
    response.body = body;
    return sink.take({kind, request, response, WallTime{1h}});
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.file("site");
  ManualClock clock_;
  std::uint64_t seed_ = 0;
};

TEST_F(WarcSinkTest, ACrawlOfAnArchiveFindsWhatTheCrawlThatMadeItFound) {
  const auto known = [](UrlStore& store) {
    std::map<std::string, std::string> pages;
    EXPECT_TRUE(store.scan(1, [&](const UrlRecord& record) {
      pages[record.url] = fmt::format("{} {} {} {} {}", to_string(record.state), record.status_code, record.digest,
                                      record.redirect_to, record.depth);
      return true;
    }));
    return pages;
  };
  Simulation net(
      {.hosts = 3, .pages = 60, .features = *parse_web_features("redirects,broken,duplicates,robots,encodings")});
  net.options.max_depth = 30;
  auto sink = open({.seeds = net.options.seeds});
  net.options.sinks.push_back(sink);
  const CrawlReport first = net.run();
  EXPECT_TRUE(first.finished);
  EXPECT_EQ(sink->totals().responses + sink->totals().revisits, first.stats.fetched + 3)
      << "and three times robots.txt";
  EXPECT_EQ(index_lines(), first.stats.fetched + 3);

  const auto replay = WarcReplay::open({path_ + ".warc.gz"});
  ASSERT_TRUE(replay) << replay.error().message;
  ASSERT_EQ((*replay)->seeds(), net.options.seeds);
  CrawlOptions options = net.options;
  options.sinks.clear();
  options.heed_crawl_delay = false;
  const auto store = *open_url_store(":memory:");
  Crawler crawler(options, *store, 2);
  ASSERT_TRUE(crawler.open(net.backend.clock().wall_now()));
  const auto transport = WarcReplay::transport(*replay);
  net.loop.run_until_complete(crawler.work(0, *transport, nullptr));
  const auto second = crawler.report();
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->finished);
  EXPECT_EQ(second->failures, (std::map<std::string, std::uint64_t>{}));
  EXPECT_EQ(known(*store), known(*net.store));
}

TEST_F(WarcSinkTest, WhatIsNotInTheArchiveFailsAtOnceAndIsToldApart) {
  auto sink = open();
  ASSERT_TRUE(show(*sink, "http://a.test/", "<html><a href=/b><a href=/c>"));
  ASSERT_TRUE(show(*sink, "http://a.test/b", "<html>"));
  ASSERT_TRUE(sink->finish());
  const auto replay = WarcReplay::open({sink->file()});
  ASSERT_TRUE(replay);
  VirtualBackend backend;
  EventLoop loop{backend};
  const auto store = *open_url_store(":memory:");
  CrawlOptions options{.seeds = (*replay)->seeds()};
  Crawler crawler(options, *store, 1);
  ASSERT_TRUE(crawler.open(backend.clock().wall_now()));
  const auto transport = WarcReplay::transport(*replay);
  loop.run_until_complete(crawler.work(0, *transport, nullptr));
  const auto report = crawler.report();
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->finished);
  EXPECT_EQ(report->stats.fetched, 2u);
  EXPECT_EQ(report->stats.retries, 0u);
  EXPECT_EQ(report->failures, (std::map<std::string, std::uint64_t>{{"not_found", 1}}));
  ASSERT_EQ(report->broken.size(), 1u);
  EXPECT_EQ(report->broken[0].error, "not_found: http://a.test/c: not in the archive");
}

TEST_F(WarcSinkTest, KeepsABodyThatItArchivesAsItIsAndCopiesACodedOne) {
  auto sink = open();
  HttpRequest request;
  for (const bool is_coded : {false, true}) {
    auto page = std::make_shared<FetchedPage>();
    request.url = *Url::parse(is_coded ? "http://a.test/coded" : "http://a.test/plain");
    page->response.status = 200;
    page->response.headers.content_type = "text/html";
    page->response.body = "<p>body";
    page->response.wire.head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    page->response.wire.is_coded = is_coded;
    page->response.wire.coded_body = is_coded ? "packed" : "";
    page->begin(request.url);
    ASSERT_TRUE(sink->take({.kind = ExchangeKind::page,
                            .request = request,
                            .response = page->response,
                            .began = WallTime{1h},
                            .fetched = page.get()}));
    EXPECT_EQ(page->is_shared(), !is_coded) << "the next answer has the memory of a body that was decoded";
    page->view.end();
    if (is_coded) page->response = {};
    ASSERT_TRUE(sink->keep());
    EXPECT_EQ(page.use_count(), 1);
  }
  EXPECT_EQ(sink->backlog(), 0u);
  ASSERT_TRUE(sink->finish());
  Sha1 sha1;
  std::vector<std::string> digests;
  std::ifstream in(path_ + ".cdxj");
  for (std::string line; std::getline(in, line);) digests.push_back(parse_cdxj(line)->digest);
  EXPECT_THAT(digests, testing::UnorderedElementsAre(to_base32(sha1.of({"<p>body"})), to_base32(sha1.of({"packed"}))));
}

TEST_F(WarcSinkTest, LeavesOutWhatIsNoCapture) {
  auto sink = open();
  ASSERT_TRUE(show(*sink, "http://a.test/", "x", ExchangeKind::check));
  ASSERT_TRUE(show(*sink, "http://a.test/", "x", ExchangeKind::probe));
  ASSERT_TRUE(show(*sink, "http://a.test/robots.txt", "x", ExchangeKind::robots));
  ASSERT_TRUE(show(*sink, "http://a.test/x.bin", "", ExchangeKind::page, HttpMethod::head));
  ASSERT_TRUE(sink->finish());
  EXPECT_EQ(sink->totals().responses, 1u);
}

TEST_F(WarcSinkTest, HasOnTheDiskWhatItHasKept) {
  auto sink = open();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(show(*sink, "http://a.test/" + std::to_string(i), "<html>" + std::to_string(i)));
    ASSERT_TRUE(sink->keep());
    EXPECT_EQ(index_lines(), static_cast<std::size_t>(i + 1));
    ASSERT_TRUE(sink->keep()) << "of what is kept already";
  }
  EXPECT_EQ(sink->backlog(), 0u);
}

TEST_F(WarcSinkTest, TakesFromManyThreadsAtOnce) {
  auto sink = open({.most_bytes = 100'000});
  constexpr int kThreads = 4, kEach = 300;
  std::atomic<bool> failed{false};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) {
          const std::string url = fmt::format("http://a.test/{}/{}", t, i);
          if (!show(*sink, url, fmt::format("<html>{:0{}}", i, 50 + i % 1000))) failed = true;
          if (i % 50 == 0 && !sink->keep()) failed = true;
        }
      });
    }
  }
  ASSERT_FALSE(failed);
  ASSERT_TRUE(sink->finish());
  EXPECT_EQ(sink->totals().responses + sink->totals().revisits, static_cast<std::uint64_t>(kThreads * kEach));
  EXPECT_EQ(index_lines(), static_cast<std::size_t>(kThreads * kEach));
}

TEST_F(WarcSinkTest, ThatIsDroppedWithoutAnEndLeavesWhatWasKept) {
  auto sink = open();
  ASSERT_TRUE(show(*sink, "http://a.test/1", "<html>"));
  ASSERT_TRUE(sink->keep());
  ASSERT_TRUE(show(*sink, "http://a.test/2", "<html>"));
  sink.reset();
  sink = open();
  ASSERT_TRUE(sink->finish());
  EXPECT_GE(index_lines(), 1u);
}

TEST_F(WarcSinkTest, ThatCannotBeOpenedSaysWhy) {
  const auto missing = WarcSink::open({.path = folder_.file("no/folder/site")}, clock_, Random{1});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::io);
  EXPECT_THAT(missing.error().message, testing::HasSubstr("no/folder/site.cdxj: cannot be opened for writing"));
}

}  // namespace
}  // namespace argiope
