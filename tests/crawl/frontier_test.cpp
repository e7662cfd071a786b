#include "crawl/run/frontier.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "argiope/base/random.hpp"
#include "argiope/store/detail/url_store.hpp"

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
    task.url = *Url::parse(url);
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
  frontier().hold(host("http://a.test/"), at(0s));
  EXPECT_EQ(ids(), Ids({2}));
  EXPECT_EQ(frontier().hosts_waiting(), 1u);
  frontier().let_go(host("http://a.test/"), at(1s));
  EXPECT_EQ(ids(at(1s)), Ids({1}));
}

TEST_F(FrontierTest, LettingAHostGoDoesNotEndItsRest) {
  put(1, "http://a.test/");
  Host& a = host("http://a.test/");
  frontier().hold(a, at(0s));
  frontier().rest(a, at(1h), at(0s));
  frontier().let_go(a, at(1s));
  EXPECT_EQ(ids(at(1s)), Ids());
  EXPECT_EQ(ids(at(1h)), Ids({1}));
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

TEST_F(FrontierTest, WhatEarlierRunsHaveAskedComesBehindWhatNoneHasTheLongestAgoFirst) {
  options.per_host = 10;
  const auto resume = [this](std::int64_t id, WallTime asked, UrlReason reason = UrlReason::none) {
    UrlRecord record;
    record.url_id = id;
    record.url = "http://localhost/" + std::to_string(id);
    record.mtime = asked;
    record.reason = reason;
    UrlTask task;
    task.id = id;
    task.url = *Url::parse(record.url);
    if (reason == UrlReason::requisite) task.purpose = Purpose::requisite;
    frontier().resume(record, host(record.url), std::move(task));
  };
  for (const CrawlOrder order : {CrawlOrder::bfs, CrawlOrder::dfs, CrawlOrder::priority, CrawlOrder::random}) {
    options.order = order;
    resume(1, WallTime{1000s});
    resume(2, WallTime{500s});
    resume(3, WallTime{900s}, UrlReason::requisite);
    put(4, "http://localhost/deep/4", 4'000'000'000);
    EXPECT_EQ(ids(), Ids({4, 2, 3, 1})) << static_cast<int>(order);
    for (const auto& ticket : std::exchange(tickets, {})) frontier().done(ticket, {});
  }
}

TEST_F(FrontierTest, APriorityInTheCrawlsOrderIsAboveThatOfAllThatWasAsked) {
  CrawlOptions by_chance;
  by_chance.order = CrawlOrder::random;
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_GE(crawl_priority(by_chance, 0, "http://localhost/" + std::to_string(i)), kLeastPriority);
  }
  for (const CrawlOrder order : {CrawlOrder::bfs, CrawlOrder::dfs, CrawlOrder::priority}) {
    by_chance.order = order;
    EXPECT_GE(crawl_priority(by_chance, 4'294'967'295, std::string(10'000, '/')), kLeastPriority);
  }
  for (const WallTime asked : {WallTime::min(), WallTime{1ms}, WallTime{60s * 60 * 24 * 365 * 60}, WallTime::max()}) {
    EXPECT_LT(late_priority(asked), kLeastPriority);
  }
  EXPECT_GT(late_priority(WallTime{1000s}), late_priority(WallTime{1010s}));
}

TEST_F(FrontierTest, ALinkFoundNearerMovesWhatIsQueuedAndNothingElse) {
  options.per_host = 10;
  options.max_depth = 20;
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

// --- hosts that come and go

// So many hosts that those with nothing to do are let go of.
constexpr int kManyHosts = 25'000;

class FrontierHostsTest : public FrontierTest {
 protected:
  static std::string url_of(int host) { return "http://host" + std::to_string(host) + ".test/"; }
  // Queues and fetches a page of each host from `first` on, of 1,000 hosts in a second.
  void visit(int first, int count, TimePoint now) {
    for (int host = first; host < first + count; ++host) {
      put(++id_, url_of(host), 0, now);
      if (host % 1000 != 999 && host + 1 != first + count) continue;
      while (auto ticket = frontier().next(now)) frontier().done(*ticket, now);
      now += 1s;
    }
  }

 private:
  std::int64_t id_ = 1'000'000;
};

TEST_F(FrontierHostsTest, HostsWithNothingToDoAreLetGoAndComeBackAsWhatTheyWere) {
  visit(0, 10, at(0s));
  host(url_of(1)).health.page_answered();
  Host& lost = host(url_of(2));
  lost.lost = std::make_unique<HostLoss>(HostLoss{.cause = {Errc::dns, "unknown"}, .unreachable = true});
  visit(10, kManyHosts, at(1h));
  EXPECT_EQ(frontier().host_count(), std::size_t{kManyHosts} + 10);
  EXPECT_LT(frontier().active_hosts(), std::size_t{kManyHosts} / 2);
  EXPECT_EQ(host(url_of(0)).urls, 1u);
  EXPECT_FALSE(host(url_of(0)).health.answered());
  EXPECT_TRUE(host(url_of(1)).health.known_to_answer());
  EXPECT_EQ(host(url_of(1)).robots_until, TimePoint::min());  // asked for again
  ASSERT_TRUE(host(url_of(2)).lost);
  EXPECT_EQ(host(url_of(2)).lost->cause.code, Errc::dns);
  EXPECT_TRUE(host(url_of(2)).lost->unreachable);
  EXPECT_EQ(frontier().host_count(), std::size_t{kManyHosts} + 10);
}

TEST_F(FrontierHostsTest, AHostIsNotLetGoWhileAnythingItDidIsAReasonToWait) {
  options.rate = 0.001;  // the last page of each was fetched less than 1,000 s ago
  visit(0, kManyHosts, at(0s));
  EXPECT_EQ(frontier().active_hosts(), std::size_t{kManyHosts});
  put(1, url_of(7), 0, at(999s));
  EXPECT_EQ(ids(at(999s)), Ids());
  EXPECT_EQ(ids(at(1000s)), Ids({1}));
  options.rate.reset();
}

TEST_F(FrontierHostsTest, ARestAPinAndUrlsInMemoryKeepAHost) {
  for (const int kept : {0, 1, 2}) put(10 + kept, url_of(kept), 0, at(0s));
  Host* const rests = &host(url_of(0));
  Host* const pinned = &host(url_of(1));
  Host* const queued = &host(url_of(2));
  while (auto ticket = frontier().next(at(0s))) frontier().done(*ticket, at(0s));
  put(20, url_of(2), 0, at(1s));
  frontier().hold(*queued, at(1s));
  frontier().rest(*rests, at(3h), at(0s));
  ++pinned->pins;
  visit(10, kManyHosts, at(1h));
  EXPECT_EQ(&host(url_of(0)), rests);
  EXPECT_EQ(&host(url_of(1)), pinned);
  EXPECT_EQ(&host(url_of(2)), queued);
  put(1, url_of(0), 0, at(2h));
  EXPECT_EQ(ids(at(2h)), Ids());
  EXPECT_EQ(ids(at(3h)), Ids({1}));
}

// --- beyond the memory -----------------------------------------------------------------------------------------------

// A frontier and the store that it reads on from, as a shard would do it.
class FrontierStoreTest : public FrontierTest {
 protected:
  std::string url_of(int host, std::int64_t id) {
    return "http://host" + std::to_string(host) + ".test/" + std::to_string(id);
  }
  void discover(std::int64_t id, int host, std::uint32_t depth) {
    UrlBatch batch;
    batch.discovered.push_back({id, url_of(host, id), depth, -static_cast<std::int32_t>(depth)});
    store->submit(std::move(batch));
    put(id, url_of(host, id), depth, now);
    write();
  }
  void write() {
    UrlBatch batch;
    batch.moves = frontier().take_moves();
    store->submit(std::move(batch));
  }
  Frontier::Row row_of(const UrlRecord& record) {
    UrlTask task;
    task.id = record.url_id;
    task.fingerprint = static_cast<std::uint64_t>(record.url_id);
    task.url = *Url::parse(record.url);
    task.depth = record.depth;
    return {task, &host(record.url), record.due};
  }
  void read_on() {
    while (frontier().wants_read(now)) {
      const auto reads = frontier().begin_read(now);
      write();
      EXPECT_TRUE(store->flush());
      if (reads.empty()) continue;
      for (const Frontier::Read& read : reads) {
        std::vector<Frontier::Row> rows;
        EXPECT_TRUE(store->read_shelf(read.load.read, read.sites, [&](const UrlRecord& record) {
          rows.push_back(row_of(record));
          return true;
        }));
        frontier().take_rows(read, std::move(rows), now);
      }
      frontier().end_read(now);
      write();
      most_seen = std::max(most_seen, frontier().size());
    }
  }
  std::optional<Frontier::Ticket> next() {
    read_on();
    auto ticket = frontier().next(now);
    if (!ticket) {
      read_on();
      ticket = frontier().next(now);
    }
    return ticket;
  }
  void settle(const Frontier::Ticket& ticket) {
    UrlBatch batch;
    UrlOutcome outcome;
    outcome.url_id = frontier().task(ticket).id;
    batch.outcomes.push_back(outcome);
    store->submit(std::move(batch));
    frontier().done(ticket, now);
  }
  // Fetches all that is there, one at a time; returns the ids in that order.
  Ids drain() {
    Ids fetched;
    for (int idle = 0; idle < 10'000;) {
      const auto ticket = next();
      if (!ticket) {
        const TimePoint wakeup = frontier().next_wakeup(now);
        if (wakeup == kNever) break;
        now = std::max(now + 1ms, wakeup);
        ++idle;
        continue;
      }
      idle = 0;
      fetched.push_back(frontier().task(*ticket).id);
      settle(*ticket);
    }
    return fetched;
  }

  std::unique_ptr<UrlStore> store = *open_url_store(":memory:");
  TimePoint now{};
  std::size_t most_seen = 0;
};

TEST_F(FrontierStoreTest, FetchesAllOnceInTheOrderOfPriorityHoweverSmallTheMemory) {
  options.queue_size = 20;
  options.rate = 1e6;
  Random random(7);
  std::map<std::int64_t, std::uint32_t> depths;
  for (std::int64_t id = 1; id <= 500; ++id) {
    depths[id] = static_cast<std::uint32_t>(random.below(20));
    discover(id, 1, depths[id]);
  }
  EXPECT_LE(frontier().size(), 60u);
  const Ids fetched = drain();
  ASSERT_EQ(fetched.size(), 500u);
  EXPECT_LE(most_seen, 60u);
  for (std::size_t i = 1; i < fetched.size(); ++i) {
    EXPECT_LE(std::pair(depths[fetched[i - 1]], fetched[i - 1]), std::pair(depths[fetched[i]], fetched[i])) << i;
  }
}

TEST_F(FrontierStoreTest, AFloodOfOneHostLeavesRoomForOthers) {
  options.queue_size = 50;
  std::int64_t id = 1;
  for (; id <= 2000; ++id) discover(id, 0, 1);
  for (; id <= 2100; ++id) discover(id, static_cast<int>(id - 2000), 1);
  // All that may be fetched at this moment: one page of each host.
  std::set<std::string> sites;
  std::vector<Frontier::Ticket> taken;
  while (auto ticket = next()) {
    sites.insert(ticket->host->site);
    taken.push_back(*ticket);
    ASSERT_LE(taken.size(), 101u);
  }
  EXPECT_EQ(sites.size(), 101u);
  EXPECT_LE(most_seen, 50u + 50u / 4 + 101);
  for (const auto& ticket : taken) settle(ticket);
  EXPECT_EQ(drain().size(), 1999u);
}

TEST_F(FrontierStoreTest, RetriesWaitInTheStoreAndComeBackWhenTheyAreDue) {
  options.queue_size = 16;
  options.rate = 1e6;
  constexpr int kUrls = 200;
  for (int id = 1; id <= kUrls; ++id) discover(id, id, 0);
  std::map<std::int64_t, TimePoint> due;
  while (static_cast<int>(due.size()) < kUrls) {
    const auto ticket = next();
    ASSERT_TRUE(ticket);
    const std::int64_t id = frontier().task(*ticket).id;
    due[id] = now + std::chrono::seconds{1000 - id};
    UrlBatch batch;
    UrlOutcome outcome;
    outcome.url_id = id;
    outcome.state = UrlState::queued;
    outcome.due = frontier().stored_time(due[id]);
    batch.outcomes.push_back(outcome);
    store->submit(std::move(batch));
    frontier().retry(*ticket, due[id], now);
    read_on();
    EXPECT_LE(frontier().size(), 40u);
  }
  int fetched = 0;
  for (int idle = 0; fetched < kUrls && idle < 10'000; ++idle) {
    if (const auto ticket = next()) {
      const std::int64_t id = frontier().task(*ticket).id;
      EXPECT_GE(now, due[id]);
      EXPECT_LE(now, due[id] + 100ms);
      settle(*ticket);
      ++fetched;
    } else {
      const TimePoint wakeup = frontier().next_wakeup(now);
      ASSERT_NE(wakeup, kNever);
      now = std::max(now + 1ms, wakeup);
    }
  }
  EXPECT_EQ(fetched, kUrls);
}

TEST_F(FrontierStoreTest, WhatWasSettledWhileItWasReadDoesNotComeBack) {
  options.queue_size = 16;
  options.per_host = 100;
  options.rate = 1e6;
  for (std::int64_t id = 1; id <= 100; ++id) discover(id, 1, 0);
  std::map<std::int64_t, int> times;
  for (int idle = 0; idle < 50;) {
    now += 21ms;
    const bool reads_now = frontier().wants_read(now);
    std::vector<std::pair<Frontier::Read, std::vector<Frontier::Row>>> answers;
    if (reads_now) {
      for (Frontier::Read& read : frontier().begin_read(now)) {
        write();
        std::vector<Frontier::Row> rows;
        EXPECT_TRUE(store->read_shelf(read.load.read, read.sites, [&](const UrlRecord& record) {
          rows.push_back(row_of(record));
          return true;
        }));
        answers.emplace_back(std::move(read), std::move(rows));
      }
    }
    ++idle;
    // Everything in memory is fetched between the reading and its answer.
    while (const auto ticket = frontier().next(now)) {
      idle = 0;
      ++times[frontier().task(*ticket).id];
      settle(*ticket);
    }
    for (auto& [read, rows] : answers) frontier().take_rows(read, std::move(rows), now);
    if (reads_now) frontier().end_read(now);
    write();
  }
  EXPECT_EQ(times.size(), 100u);
  for (const auto& [id, count] : times) EXPECT_EQ(count, 1) << id;
}

// What happens to a shard in any order: links are found nearer, visits end in every way, and the store answers late.
class FrontierSequenceTest : public FrontierStoreTest, public testing::WithParamInterface<std::uint64_t> {
 protected:
  static constexpr std::int64_t kUrls = 300;

  FrontierSequenceTest() {
    options.order = GetParam() % 2 == 0 ? CrawlOrder::bfs : CrawlOrder::dfs;
    options.queue_size = 16 + GetParam() % 5 * 8;
    options.max_depth = 100;
    options.per_host = 1 + GetParam() % 7;
    options.rate = 1e6;
  }
  void begin_read() {
    if (!answers_.empty() || !frontier().wants_read(now)) return;
    auto reads = frontier().begin_read(now);
    write();
    for (Frontier::Read& read : reads) {
      auto& answer = answers_.emplace_back(std::move(read), std::vector<Frontier::Row>{});
      EXPECT_TRUE(store->read_shelf(answer.first.load.read, answer.first.sites, [&](const UrlRecord& record) {
        answer.second.push_back(row_of(record));
        return true;
      }));
    }
  }
  void end_read() {
    if (answers_.empty()) return;
    for (auto& [read, rows] : std::exchange(answers_, {})) frontier().take_rows(read, std::move(rows), now);
    frontier().end_read(now);
    write();
  }
  void retry(const Frontier::Ticket& ticket) {
    const TimePoint due = now + std::chrono::milliseconds{random.below(100)};
    UrlBatch batch;
    UrlOutcome outcome;
    outcome.url_id = frontier().task(ticket).id;
    outcome.state = UrlState::queued;
    outcome.due = frontier().stored_time(due);
    batch.outcomes.push_back(outcome);
    store->submit(std::move(batch));
    frontier().retry(ticket, due, now);
  }
  void end_a_visit() {
    if (tickets.empty()) return;
    const auto chosen = tickets.begin() + static_cast<std::ptrdiff_t>(random.below(tickets.size()));
    const Frontier::Ticket ticket = *chosen;
    tickets.erase(chosen);
    switch (random.below(3)) {
      case 0: return frontier().put_back(ticket, now);
      case 1: return retry(ticket);
      default: return settle_once(ticket);
    }
  }
  void settle_once(const Frontier::Ticket& ticket) {
    const std::int64_t id = frontier().task(ticket).id;
    EXPECT_TRUE(settled.insert(id).second) << id;
    settle(ticket);
  }

  Random random{GetParam()};
  std::int64_t last = 0;
  std::set<std::int64_t> settled;

 private:
  std::vector<std::pair<Frontier::Read, std::vector<Frontier::Row>>> answers_;
};

TEST_P(FrontierSequenceTest, EveryUrlIsFetchedOnce) {
  for (int step = 0; step < 4000; ++step) {
    now += std::chrono::milliseconds{random.below(10)};
    switch (random.below(8)) {
      case 0:
        if (last == kUrls) break;
        discover(++last, static_cast<int>(random.below(1 + GetParam() % 11)),
                 static_cast<std::uint32_t>(random.below(1 + GetParam() % 20)));
        break;
      case 1:
        frontier().found_nearer(1 + random.below(kUrls), static_cast<std::uint32_t>(random.below(20)), now);
        break;
      case 2: (void)frontier().next_wakeup(now); break;
      case 3: begin_read(); break;
      case 4: end_read(); break;
      case 5:
      case 6:
        if (const auto ticket = frontier().next(now)) tickets.push_back(*ticket);
        break;
      default: end_a_visit();
    }
  }
  end_read();
  for (const auto& ticket : std::exchange(tickets, {})) settle_once(ticket);
  for (const std::int64_t id : drain()) EXPECT_TRUE(settled.insert(id).second) << id;
  EXPECT_EQ(settled.size(), std::size_t{kUrls});
}

INSTANTIATE_TEST_SUITE_P(Seeds, FrontierSequenceTest, testing::Range<std::uint64_t>(1, 41));

}  // namespace
}  // namespace argiope
