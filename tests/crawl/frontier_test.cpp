#include "crawl/frontier.hpp"

#include <gtest/gtest.h>

namespace argiope {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint at(Duration since) { return TimePoint{since}; }

class FrontierTest : public testing::Test {
 protected:
  // Queues `url`; its fingerprint is its id.
  void put(std::int64_t id, const std::string& url, std::uint32_t depth = 0, TimePoint due = {}) {
    UrlTask task;
    task.id = id;
    task.fingerprint = static_cast<std::uint64_t>(id);
    task.url = url;
    task.depth = depth;
    frontier().put(std::move(task), host(url), due, due);
  }
  Host& host(const std::string& url) { return frontier().host_of(*Url::parse(url)); }
  // Takes all that may be fetched at `now`.
  std::vector<std::int64_t> ids(TimePoint now = {}) {
    std::vector<std::int64_t> ids;
    while (auto ticket = frontier().next(now)) {
      tickets.push_back(*ticket);
      ids.push_back(frontier().task(*ticket).id);
    }
    return ids;
  }
  // Made at first use, when the test has set the options.
  Frontier& frontier() {
    if (!frontier_) frontier_.emplace(options);
    return *frontier_;
  }

  CrawlOptions options;
  std::vector<Frontier::Ticket> tickets;

 private:
  std::optional<Frontier> frontier_;
};

using Ids = std::vector<std::int64_t>;

TEST_F(FrontierTest, KnowsAHostBySchemeNameAndPort) {
  Host& host_of_a = host("http://a.test/x");
  EXPECT_EQ(&host_of_a, &host("http://A.test:80/y"));
  EXPECT_NE(&host_of_a, &host("https://a.test/x"));
  EXPECT_NE(&host_of_a, &host("http://a.test:81/x"));
  EXPECT_EQ(frontier().host_count(), 3u);
}

TEST_F(FrontierTest, AsksAPublicHostOnePageAtATimeAndFiveASecond) {
  for (int i = 1; i <= 3; ++i) put(i, "http://a.test/" + std::to_string(i));
  EXPECT_EQ(ids(), Ids({1}));
  frontier().done(tickets[0], at(10ms));
  EXPECT_EQ(ids(at(199ms)), Ids());
  EXPECT_EQ(frontier().next_wakeup(at(10ms)), at(200ms));
  EXPECT_EQ(ids(at(200ms)), Ids({2}));
}

TEST_F(FrontierTest, AsksALoopbackHostWithoutARate) {
  options.per_host = 2;
  for (int i = 1; i <= 3; ++i) put(i, "http://127.0.0.1/" + std::to_string(i));
  EXPECT_EQ(ids(), Ids({1, 2}));
  frontier().done(tickets[0], at(0ms));
  EXPECT_EQ(ids(), Ids({3}));
}

TEST_F(FrontierTest, OneHostThatRestsHoldsUpNoOther) {
  put(1, "http://a.test/");
  put(2, "http://b.test/");
  frontier().rest(host("http://a.test/"), at(1h), at(0s));
  EXPECT_EQ(ids(), Ids({2}));
  EXPECT_EQ(frontier().hosts_waiting(), 1u);
  frontier().let_go(host("http://a.test/"), at(1s));
  EXPECT_EQ(ids(at(1s)), Ids({1}));
}

TEST_F(FrontierTest, PutsTheNearestTheDeepestOrTheSimplestFirst) {
  options.per_host = 10;
  const auto fill = [this] {
    put(1, "http://localhost/a/b/c", 2);
    put(2, "http://localhost/a/b/c/d/e?f", 1);
    put(3, "http://localhost/", 3);
    return ids();
  };
  EXPECT_EQ(fill(), Ids({2, 1, 3}));
  options.order = CrawlOrder::dfs;
  for (const auto& ticket : std::exchange(tickets, {})) frontier().done(ticket, {});
  EXPECT_EQ(fill(), Ids({3, 1, 2}));
  options.order = CrawlOrder::priority;
  for (const auto& ticket : std::exchange(tickets, {})) frontier().done(ticket, {});
  EXPECT_EQ(fill(), Ids({3, 1, 2}));
}

TEST_F(FrontierTest, ALinkFoundNearerMovesWhatIsQueuedAndNothingElse) {
  options.per_host = 10;
  put(1, "http://localhost/1", 5);
  put(2, "http://localhost/2", 6);
  frontier().found_nearer(2, 4, {});
  frontier().found_nearer(1, 9, {});   // farther: no news
  frontier().found_nearer(77, 1, {});  // not queued
  EXPECT_EQ(ids(), Ids({2, 1}));
  EXPECT_EQ(frontier().task(tickets[0]).depth, 4u);
  EXPECT_EQ(frontier().task(tickets[1]).depth, 5u);
}

TEST_F(FrontierTest, TakesTheSameUrlOnce) {
  options.per_host = 10;
  put(1, "http://localhost/1");
  put(1, "http://localhost/1");
  EXPECT_EQ(frontier().size(), 1u);
  EXPECT_EQ(ids(), Ids({1}));
}

TEST_F(FrontierTest, PutsBackAtTheOldPlaceAndRetriesLater) {
  options.per_host = 1;
  put(1, "http://localhost/1");
  put(2, "http://localhost/2");
  EXPECT_EQ(ids(), Ids({1}));
  frontier().put_back(tickets[0], {});
  EXPECT_EQ(ids(), Ids({1}));
  frontier().retry(tickets[1], at(1min), {});
  EXPECT_EQ(ids(), Ids({2}));
  frontier().done(tickets[2], {});
  EXPECT_EQ(ids(at(59s)), Ids());
  EXPECT_EQ(ids(at(1min)), Ids({1}));
}

TEST_F(FrontierTest, ACrawlDelayIsObeyedUnlessTheUsersIsLonger) {
  options.delay = 2s;
  put(1, "http://a.test/1");
  put(2, "http://a.test/2");
  frontier().set_crawl_delay(host("http://a.test/"), 5s, {});
  EXPECT_EQ(ids(), Ids({1}));
  frontier().done(tickets[0], at(1s));
  EXPECT_EQ(ids(at(5900ms)), Ids());
  EXPECT_EQ(ids(at(6s)), Ids({2}));
  put(3, "http://b.test/1");
  put(4, "http://b.test/2");
  frontier().set_crawl_delay(host("http://b.test/"), 1s, at(6s));
  EXPECT_EQ(ids(at(6s)), Ids({3}));
  frontier().done(tickets[2], at(7s));
  EXPECT_EQ(ids(at(8900ms)), Ids());
  EXPECT_EQ(ids(at(9s)), Ids({4}));
}

}  // namespace
}  // namespace argiope
