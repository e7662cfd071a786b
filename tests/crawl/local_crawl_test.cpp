#include "argiope/crawl/local_crawl.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace argiope
