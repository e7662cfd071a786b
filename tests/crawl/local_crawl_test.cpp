#include "argiope/crawl/local_crawl.hpp"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <system_error>

#include "support/few_threads.hpp"

namespace argiope {
namespace {

TEST(LocalCrawl, ThatIsRefusedAThreadEndsThoseItHasAndSaysSo) {
#ifdef ARGIOPE_SANITIZED
  GTEST_SKIP() << "sanitizers take all addresses there are";
#endif
  CrawlOptions options{.seeds = {*Url::parse("http://127.0.0.1:9/")}};
  auto crawl = LocalCrawl::open(std::move(options), {.threads = 5});
  ASSERT_TRUE(crawl) << crawl.error().message;
  const FewThreads two(2);
  EXPECT_THROW((void)(*crawl)->run(), std::system_error);
}

TEST(LocalCrawl, WhatWasToRunBesideItIsNoForgottenCoroutineWhereTheLoginFails) {
  CrawlOptions options{.seeds = {*Url::parse("http://127.0.0.1:9/")}};
  options.login = LoginStep{.page = options.seeds.front()};
  auto crawl = LocalCrawl::open(std::move(options));
  ASSERT_TRUE(crawl) << crawl.error().message;
  bool began = false;
  const auto beside = [&]() -> Coro<void> {
    began = true;
    co_return;
  };
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  const auto report = (*crawl)->run(beside());
  spdlog::set_default_logger(before);
  EXPECT_FALSE(report);
  EXPECT_FALSE(began);
  EXPECT_EQ(log.str().find("never awaited"), std::string::npos) << log.str();
}

}  // namespace
}  // namespace argiope
