// What a program gets of a crawl while it goes on: each answer once, before it counts, whatever its handler does.
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <stdexcept>

#include "support/simulated_web.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

std::map<std::string, int> times(const std::vector<std::string>& urls) {
  std::map<std::string, int> count;
  for (const std::string& url : urls) ++count[url];
  return count;
}

TEST(PageHandler, GetsEachAnswerOnceWithWhatItConsistsOf) {
  Simulation sim({.hosts = 2, .pages = 30, .latency = 10ms, .features = 0});
  std::vector<std::string> seen;
  std::set<std::uint32_t> depths;
  std::size_t links = 0;
  bool has_text = false;
  sim.options.on_page = [&](const Page& page) {
    seen.emplace_back(page.url.href());
    depths.insert(page.depth);
    if (page.status() != 200 || !page.is_html()) return;
    EXPECT_FALSE(page.body().empty()) << page.url.href();
    for (const PageLink& link : page.links()) {
      ++links;
      has_text = has_text || !link.text.empty();
      EXPECT_TRUE(Url::parse(link.url)) << link.url;
    }
  };
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  EXPECT_EQ(seen.size(), report.stats.fetched);
  for (const auto& [url, count] : times(seen)) EXPECT_EQ(count, 1) << url;
  EXPECT_GT(links, 100u);
  EXPECT_TRUE(has_text);
  EXPECT_GE(depths.size(), 2u);
  EXPECT_EQ(report.stats.handler_errors, 0u);
}

TEST(PageHandler, ThatIsACoroutineIsAwaitedBeforeThePageCounts) {
  Simulation sim({.hosts = 1, .pages = 10, .features = 0});
  sim.options.rate = 1000;
  std::size_t begun = 0, ended = 0, most = 0;
  sim.options.on_page = [&](const Page&) -> Coro<void> {
    ++begun;
    most = std::max(most, begun - ended);
    co_await sleep(5s);
    ++ended;
  };
  const CrawlReport report = sim.run();
  EXPECT_EQ(report.stats.pages, 10u);
  EXPECT_EQ(ended, 10u);
  EXPECT_EQ(most, 1u) << "its request is under way until it has ended, and this host gets one at a time";
}

TEST(PageHandler, ThatThrowsHarmsNoOtherPage) {
  Simulation sim({.hosts = 2, .pages = 20, .features = 0});
  std::size_t calls = 0;
  sim.options.on_page = [&](const Page& page) {
    ++calls;
    if (page.url.href().ends_with('/')) throw std::runtime_error("no room\nleft");
    if (calls % 7 == 0) throw 7;
  };
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  EXPECT_EQ(report.stats.pages, 40u) << "its links are still followed";
  EXPECT_EQ(calls, 40u);
  EXPECT_GE(report.stats.handler_errors, 3u);
  EXPECT_EQ(report.broken_count, 0u);
  const auto seed = sim.store->get(1);
  ASSERT_TRUE(seed && *seed);
  EXPECT_EQ((*seed)->state, UrlState::done);
  EXPECT_NE((*seed)->error.find("the page handler has thrown: no room"), std::string::npos) << (*seed)->error;
}

TEST(PageHandler, ThatAwaitsWhatIsCancelledHoldsTheCrawlUpNoMoreThanOneThatThrows) {
  Simulation sim({.hosts = 1, .pages = 8, .features = 0});
  sim.options.rate = 1000;
  sim.options.max_time = 1h;
  sim.options.on_page = [&](const Page&) -> Coro<void> {
    Future<void> given_up = EventLoop::current().create_future<void>();
    given_up.cancel();
    co_await given_up;
  };
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished) << report.stopped_by;
  EXPECT_EQ(report.stats.pages, 8u);
  EXPECT_EQ(report.stats.handler_errors, 8u);
}

TEST(PageHandler, GetsAPageAgainWhenTheCrawlWasCancelledMeanwhile) {
  Simulation sim({.hosts = 1, .pages = 12, .features = 0});
  sim.options.rate = 1000;
  sim.options.max_time = 1s;
  sim.options.drain_limit = 1s;
  std::vector<std::string> begun, ended;
  Duration takes = 1h;
  sim.options.on_page = [&](const Page& page) -> Coro<void> {
    const std::string url(page.url.href());
    begun.push_back(url);
    co_await sleep(takes);
    ended.push_back(url);
  };
  EXPECT_FALSE(sim.run().finished);
  EXPECT_EQ(begun.size(), 1u);
  EXPECT_TRUE(ended.empty());
  takes = 1ms;
  sim.options.max_time.reset();
  EXPECT_TRUE(sim.run().finished);
  EXPECT_EQ(times(begun)[begun[0]], 2);
  EXPECT_EQ(ended.size(), 12u);
  for (const auto& [url, count] : times(ended)) EXPECT_EQ(count, 1) << url;
}

TEST(PageHandler, DoesNotGetWhatIsTriedAgainNorWhatIsOnlyChecked) {
  Simulation sim({.hosts = 1, .pages = 20, .features = kFriendlyFeatures});
  sim.options.check_links = true;
  std::vector<std::string> seen;
  std::set<int> statuses;
  sim.options.on_page = [&](const Page& page) {
    seen.emplace_back(page.url.href());
    statuses.insert(page.status());
    EXPECT_TRUE(page.url.href().starts_with("http://host0.test/")) << page.url.href();
  };
  const CrawlReport report = sim.run();
  EXPECT_TRUE(report.finished);
  EXPECT_GT(report.stats.retries, 0u);
  for (const auto& [url, count] : times(seen)) EXPECT_EQ(count, 1) << url;
  EXPECT_TRUE(statuses.contains(404));
  EXPECT_FALSE(statuses.contains(503));
}

}  // namespace
}  // namespace argiope
