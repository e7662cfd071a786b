// One suite for the store of pages, on a file and in memory.
#include "project/store/internal/page_store.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>
#include <limits>
#include <optional>
#include <thread>

#include "project/page_store_fixture.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PageStoreTest : public testing::TestWithParam<const char*> {
 protected:
  std::string path() const { return std::string_view{GetParam()} == "memory" ? ":memory:" : folder_.file("pages.db"); }
  bool on_file() const { return path() != ":memory:"; }
  // The same store, opened anew where it is on a file.
  void reopen() {
    if (!on_file()) return;
    ASSERT_TRUE(store_->close());
    store_ = open_pages(path());
  }
  TemporaryFolder folder_;
  std::unique_ptr<PageStore> store_ = open_pages(path());
};
INSTANTIATE_TEST_SUITE_P(Stores, PageStoreTest, testing::Values("memory", "sqlite"));

// --- pages -----------------------------------------------------------------------------------------------------------

TEST_P(PageStoreTest, BeginsEmpty) {
  EXPECT_TRUE(store_->projects()->empty());
  EXPECT_EQ(store_->next_project_id(), 1);
  EXPECT_TRUE(store_->hosts()->empty());
  EXPECT_TRUE(all_pages(*store_).empty());
  EXPECT_TRUE(known_ids(*store_).empty());
  EXPECT_EQ(*store_->find_page(1, "http://h/1"), std::nullopt);
  EXPECT_EQ(*store_->count_results(1), 0u);
  EXPECT_TRUE(store_->read_feed(1, 0, 10)->empty());
  EXPECT_EQ(store_->backlog(), 0u);
  EXPECT_TRUE(store_->flush());
}

TEST_P(PageStoreTest, GivesAPageBackAsItWasAdded) {
  const PageRecord empty = [] {
    PageRecord page;
    page.id = page_at(3);
    return page;
  }();
  put(*store_, {.added = {some_page(page_at(1)), full_page(page_at(2)), empty}});
  reopen();
  EXPECT_THAT(all_pages(*store_), ElementsAre(some_page(page_at(1)), full_page(page_at(2)), empty));
  const PageId asked[] = {page_at(2), page_at(9), page_at(1)};
  EXPECT_THAT(*store_->pages(asked), ElementsAre(full_page(page_at(2)), some_page(page_at(1))));
}

TEST_P(PageStoreTest, KeepsLimitsOfEveryNumber) {
  PageRecord page =
      full_page(page_at((std::int64_t{1} << kPageNumberBits) - 1, std::numeric_limits<std::int32_t>::max() / 1024));
  page.fingerprint = std::numeric_limits<std::uint64_t>::max();
  page.host_id = std::numeric_limits<std::uint32_t>::max();
  page.known.priority = std::numeric_limits<std::int32_t>::min();
  page.known.retried = std::numeric_limits<std::uint32_t>::max();
  page.known.tag = std::numeric_limits<std::uint64_t>::max();
  page.known.due = WallTime::max();
  page.known.interval = 0s;
  page.known.own.age = 1ms;
  page.known.own.priority = std::numeric_limits<std::int32_t>::max();
  page.round = std::numeric_limits<std::int64_t>::max();
  put(*store_, {.added = {page}});
  EXPECT_THAT(all_pages(*store_, project_of(page.id)), ElementsAre(page));
}

TEST_P(PageStoreTest, KeepsTimesInMillisecondsAndSpansNeverShorter) {
  PageRecord page = some_page(page_at(1));
  page.known.ended_at = kStoreNoon + 1999us;
  page.known.own.age = 1ns;
  page.known.interval = 1500us;
  put(*store_, {.added = {page}});
  const PageRecord found = all_pages(*store_).at(0);
  EXPECT_EQ(found.known.ended_at, kStoreNoon + 1ms);
  EXPECT_EQ(found.known.own.age, 1ms);
  EXPECT_EQ(found.known.interval, 2ms);
}

TEST_P(PageStoreTest, ChangesWhatIsSaidAndKeepsTheRest) {
  PageRecord expected = full_page(page_at(1));
  put(*store_, {.added = {expected}});
  PageChange change{.id = expected.id, .known = {.state = PageState::done, .ended_at = kStoreNoon + 1min}, .round = 5};
  put(*store_, {.changes = {change}});
  expected.known = change.known;
  expected.round = 5;
  EXPECT_EQ(all_pages(*store_).at(0), expected) << "neither texts nor outcome";

  change.outcome = PageChange::Outcome{.status_code = 200, .digest = 9};
  change.save = "";
  change.rule = "list";
  put(*store_, {.changes = {change}});
  expected.status_code = 200;
  expected.crashes = 0;
  expected.digest = 9;
  expected.etag = expected.last_modified = expected.error = expected.save = "";
  expected.rule = "list";
  EXPECT_EQ(all_pages(*store_).at(0), expected);

  change.outcome = std::nullopt;
  change.save = std::nullopt;
  change.rule = "";
  change.settings = "{}";
  change.context = "null";
  change.url = "http://h/third";
  put(*store_, {.changes = {change, {.id = page_at(77), .known = {}}}});
  expected.rule = "";
  expected.settings = "{}";
  expected.context = "null";
  expected.url = "http://h/third";
  reopen();
  EXPECT_THAT(all_pages(*store_), ElementsAre(expected)) << "a change of no page changes none";
}

TEST_P(PageStoreTest, ScansTheKnownOfOneProjectInOrder) {
  PageBatch batch;
  for (std::int64_t number = 10'000; number > 0; --number) {
    if (number % 7 != 0)
      batch.added.push_back(number % 2 == 0 ? full_page(page_at(number, 2)) : some_page(page_at(number, 2)));
  }
  batch.added.push_back(some_page(page_at(1, 1)));
  batch.added.push_back(some_page(page_at(1, 3)));
  put(*store_, std::move(batch));
  std::int64_t number = 0;
  EXPECT_TRUE(store_->scan_known(2, [&](const PageStore::KnownRow& row) {
    if (++number % 7 == 0) ++number;
    const PageRecord expected = number % 2 == 0 ? full_page(page_at(number, 2)) : some_page(page_at(number, 2));
    EXPECT_EQ(row.id, expected.id);
    EXPECT_EQ(row.fingerprint, expected.fingerprint);
    EXPECT_EQ(row.host_id, expected.host_id);
    EXPECT_EQ(row.rule, expected.rule);
    EXPECT_EQ(row.known, expected.known);
    EXPECT_EQ(row.round, expected.round);
    return !testing::Test::HasFailure();
  }));
  EXPECT_EQ(number, 10'000);
  EXPECT_THAT(known_ids(*store_, 1), ElementsAre(page_at(1, 1)));
  EXPECT_EQ(all_pages(*store_, 2, page_at(9'998, 2)).size(), 2u);
}

TEST_P(PageStoreTest, ScansTheKnownOfManyPagesWithGaps) {
  std::vector<PageId> expected;
  PageBatch batch;
  const auto add = [&](std::int64_t number) {
    batch.added.push_back(some_page(page_at(number)));
    batch.added.back().rule = number % 2 == 0 ? "even" : number % 3 == 0 ? "odd" : "";
    expected.push_back(page_at(number));
  };
  for (std::int64_t number = 10; number < 60'000; number += 1 + number % 5) add(number);
  for (std::int64_t number = 1'000'000'000; number < 1'000'010'000; number += 7) add(number);
  add((std::int64_t{1} << kPageNumberBits) - 1);
  batch.added.push_back(some_page(page_at(1, 2)));
  put(*store_, std::move(batch));
  EXPECT_EQ(known_ids(*store_), expected);
  std::size_t visited = 0, right = 0;
  EXPECT_TRUE(store_->scan_known(1, [&](const PageStore::KnownRow& row) {
    right += row.rule == (row.id % 2 == 0 ? "even" : number_of(row.id) % 3 == 0 ? "odd" : "");
    return ++visited < 20'000;
  }));
  EXPECT_EQ(visited, 20'000u);
  EXPECT_EQ(right, visited);
  EXPECT_THAT(known_ids(*store_, 2), ElementsAre(page_at(1, 2)));
}

TEST_P(PageStoreTest, StopsAScanAndMayBeCalledFromIt) {
  PageBatch batch;
  for (std::int64_t number = 1; number <= 3'000; ++number) batch.added.push_back(some_page(page_at(number)));
  put(*store_, std::move(batch));
  int visited = 0;
  EXPECT_TRUE(store_->scan_pages(1, 0, [&](const PageRecord& page) {
    put(*store_, {.changes = {{.id = page.id, .known = {.state = PageState::done}}}});
    EXPECT_EQ(all_pages(*store_, 1, page_at(2'999)).size(), 1u);
    EXPECT_TRUE(store_->find_page(1, page.name));
    return ++visited < 3;
  }));
  EXPECT_EQ(visited, 3);
  EXPECT_TRUE(store_->scan_known(1, [&](const PageStore::KnownRow& row) {
    put(*store_, {.changes = {{.id = row.id, .known = {.state = PageState::failed}}}});
    EXPECT_EQ(known_ids(*store_).size(), 3'000u);
    return ++visited < 6;
  }));
  EXPECT_EQ(visited, 6);
}

TEST_P(PageStoreTest, ScansRowsOfMegabytes) {
  PageBatch batch;
  for (std::int64_t number = 1; number <= 12; ++number) {
    batch.added.push_back(some_page(page_at(number)));
    batch.added.back().context = std::string(1 << 20, 'c');
    batch.results.push_back(result(page_at(number), "p", std::string(1 << 20, 'v')));
  }
  put(*store_, std::move(batch));
  EXPECT_EQ(all_pages(*store_).size(), 12u);
  EXPECT_EQ(all_results(*store_).size(), 12u);
}

TEST_P(PageStoreTest, FindsAPageByItsName) {
  put(*store_, {.added = {some_page(page_at(1)), full_page(page_at(2)), some_page(page_at(1, 2))}});
  EXPECT_EQ(*store_->find_page(1, "http://h/2"), full_page(page_at(2)));
  EXPECT_EQ(*store_->find_page(2, "http://h/1"), some_page(page_at(1, 2)));
  EXPECT_EQ(*store_->find_page(2, "http://h/2"), std::nullopt);
  EXPECT_EQ(*store_->find_page(1, ""), std::nullopt);
  PageRecord same = some_page(page_at(3));
  same.name = "another of the same fingerprint";
  same.fingerprint = page_fingerprint("http://h/2");
  put(*store_, {.added = {same}});
  EXPECT_EQ((*store_->find_page(1, "http://h/2"))->id, page_at(2));
}

TEST_P(PageStoreTest, KeepsBytesAsTheyAre) {
  PageRecord page = some_page(page_at(1));
  page.context = std::string("a\0b\xff\n", 5);
  page.name = "x' OR 1=1 --";
  page.fingerprint = page_fingerprint(page.name);
  page.rule = std::string("r\0", 2);
  put(*store_, {.added = {page}, .results = {result(page.id, std::string("\0", 1), std::string("v\0w", 3))}});
  EXPECT_EQ(*store_->find_page(1, page.name), page);
  EXPECT_EQ(store_->read_feed(1, 0, 1)->at(0).value, std::string("v\0w", 3));
}

// --- projects and what they have -------------------------------------------------------------------------------------

TEST_P(PageStoreTest, KeepsProjectsAndNeverGivesAnIdOutTwice) {
  ProjectRecord full{.id = 2,
                     .name = "shop",
                     .version = 7,
                     .status = "STOP",
                     .group = "g",
                     .rate = 0.5,
                     .burst = 0,
                     .pause = "p",
                     .counters = "c",
                     .description = "{}",
                     .trouble = "t",
                     .made_at = kStoreNoon,
                     .changed_at = kStoreNoon + 1s,
                     .deleted_at = WallTime{},
                     .ticks = "{}"};
  put(*store_, {.projects = {some_project(1), full}});
  EXPECT_EQ(store_->next_project_id(), 3);
  store_->submit({.projects = {some_project(9)}});
  EXPECT_EQ(store_->next_project_id(), 10) << "before it is committed";
  ASSERT_TRUE(store_->flush());
  EXPECT_THAT(*store_->projects(), ElementsAre(some_project(1), full, some_project(9)));
  full.rate = std::nullopt;
  full.deleted_at = kStoreNoon + 2s;
  put(*store_, {.projects = {full}, .forgotten = {9}});
  EXPECT_THAT(*store_->projects(), ElementsAre(some_project(1), full));
  reopen();
  EXPECT_THAT(*store_->projects(), ElementsAre(some_project(1), full));
  EXPECT_EQ(store_->next_project_id(), 10);
}

TEST_P(PageStoreTest, KeepsVersionsHostsRoundsAndSinks) {
  const auto version = [](std::int64_t number) {
    return ProjectVersion{.project = 1,
                          .number = number,
                          .made_at = kStoreNoon,
                          .text = "{}",
                          .source = "a = 1",
                          .script = "s",
                          .note = "n"};
  };
  const auto round = [](std::int64_t number, std::optional<WallTime> ended) {
    return RoundRecord{.project = 1,
                       .number = number,
                       .began = kStoreNoon,
                       .ended = ended,
                       .finished_told = ended.has_value(),
                       .pages = 5,
                       .failed = 1,
                       .results = 3,
                       .cause = "every"};
  };
  PageBatch batch{.versions = {version(1), version(2), version(3)},
                  .hosts = {{2, "https://b"}, {1, "data:"}},
                  .rounds = {round(1, {}), round(2, {})},
                  .sinks = {{1, "b", 7, "{}", "t"}, {1, "a", 0, "", ""}, {2, "a", 1, "", ""}}};
  put(*store_, batch);
  put(*store_, {.rounds = {round(1, kStoreNoon + 1s)}, .sinks = {{1, "b", 8, "", ""}}});
  reopen();
  EXPECT_THAT(*store_->versions(1, 2), ElementsAre(version(3), version(2)));
  EXPECT_EQ(*store_->version(1, 1), version(1));
  EXPECT_EQ(*store_->version(1, 4), std::nullopt);
  EXPECT_EQ(*store_->version(2, 1), std::nullopt);
  EXPECT_THAT(*store_->rounds(1, 10), ElementsAre(round(2, {}), round(1, kStoreNoon + 1s)));
  EXPECT_EQ(store_->rounds(1, 1)->size(), 1u);
  EXPECT_TRUE(store_->rounds(1, 0)->empty());
  const auto hosts = *store_->hosts();
  ASSERT_EQ(hosts.size(), 2u);
  EXPECT_EQ(hosts[0].site, "data:");
  EXPECT_EQ(hosts[1].id, 2u);
  const auto sinks = *store_->sinks(1);
  ASSERT_EQ(sinks.size(), 2u);
  EXPECT_EQ(sinks[0].name, "a");
  EXPECT_EQ(sinks[1].cursor, 8);
  EXPECT_EQ(sinks[1].trouble, "");
}

// --- results ---------------------------------------------------------------------------------------------------------

TEST_P(PageStoreTest, TellsOfResultsWhatBecameOfThem) {
  const PageId page = page_at(1), other = page_at(2);
  put(*store_, {.added = {some_page(page), some_page(other)},
                .results = {result(page, "a", "1"), result(page, "b", "2"), result(other, "", "3")}});
  EXPECT_THAT(all_results(*store_), ElementsAre("1/a=1", "1/b=2", "2/=3"));
  EXPECT_THAT(feed_of(*store_), ElementsAre("added 1/a=1", "added 1/b=2", "added 2/=3"));
  const std::int64_t seen = store_->read_feed(1, 0, 3)->back().number;

  put(*store_, {.results = {result(page, "a", "1"), result(page, "b", "5"), result(page, "c", std::nullopt)},
                .at = kStoreNoon + 1s});
  EXPECT_THAT(feed_of(*store_, 1, seen), ElementsAre("changed 1/b=5"));
  put(*store_, {.results = {result(page, "b", std::nullopt)}, .at = kStoreNoon + 2s});
  EXPECT_THAT(feed_of(*store_, 1, seen), ElementsAre("changed 1/b=5", "gone 1/b=5"));
  EXPECT_EQ(*store_->count_results(1), 2u);
  reopen();
  EXPECT_EQ(*store_->count_results(1), 2u);
  put(*store_, {.results = {result(other, "", "4")}, .at = kStoreNoon + 3s});
  const auto news = *store_->read_feed(1, seen + 2, 10);
  ASSERT_EQ(news.size(), 1u) << "numbers ascend over openings";
  EXPECT_EQ(news[0].page_name, "http://h/2");
  EXPECT_EQ(news[0].rule, "item");
  EXPECT_EQ(news[0].at, kStoreNoon + 3s);
  EXPECT_TRUE(store_->scan_results(1, {}, [&](const ResultRow& row) {
    EXPECT_EQ(row.added_at, kStoreNoon);
    EXPECT_EQ(row.changed_at, row.page == other ? kStoreNoon + 3s : kStoreNoon);
    EXPECT_EQ(row.page_name, fmt::format("http://h/{}", number_of(row.page)));
    return true;
  }));
  EXPECT_THAT(all_results(*store_, 1, PageStore::ResultPlace{page, "a"}), ElementsAre("2/=4"));
  EXPECT_THAT(all_results(*store_, 2), IsEmpty());
  EXPECT_THAT(feed_of(*store_, 2), IsEmpty());
}

TEST_P(PageStoreTest, ShowsMoreResultsAndPagesThanOneStretchHolds) {
  constexpr int kPages = 3, kParts = 700;
  PageBatch batch{.at = kStoreNoon};
  std::vector<std::string> expected;
  for (int page = 1; page <= kPages; ++page) {
    batch.added.push_back(some_page(page_at(page)));
    for (int part = 0; part < kParts; ++part) {
      // Long and short by turns, so that a text that is read over would be seen.
      const std::string name = fmt::format("{:03}{}", part, std::string(part % 7 * 5, '.'));
      batch.results.push_back(result(page_at(page), name, fmt::format("{}", part)));
      expected.push_back(fmt::format("{}/{}={}", page, name, part));
    }
  }
  put(*store_, std::move(batch));
  EXPECT_EQ(all_results(*store_), expected);
  PageBatch many{.at = kStoreNoon};
  for (int page = kPages + 1; page <= 1500; ++page) many.added.push_back(some_page(page_at(page)));
  put(*store_, std::move(many));
  PageId last = 0;
  int pages = 0;
  EXPECT_TRUE(store_->scan_pages(1, 0, [&](const PageRecord& page) {
    EXPECT_GT(page.id, last);
    last = page.id;
    return ++pages < 1400;
  }));
  EXPECT_EQ(pages, 1400);
  EXPECT_TRUE(store_->scan_pages(1, last, [&](const PageRecord&) { return ++pages > 0; }));
  EXPECT_EQ(pages, 1500);
}

TEST_P(PageStoreTest, TellsTheNewestNewsFirst) {
  put(*store_,
      {.projects = {some_project(2)}, .added = {some_page(page_at(1)), some_page(page_at(1, 2))}, .at = kStoreNoon});
  put(*store_,
      {.results = {result(page_at(1), "a", "1"), result(page_at(1, 2), "", "other"), result(page_at(1), "b", "22")},
       .at = kStoreNoon});
  put(*store_, {.results = {result(page_at(1), "c", "333")}, .at = kStoreNoon});
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  const auto values = [&](std::int64_t before, std::size_t most, std::size_t most_bytes) {
    std::vector<std::string> found;
    const auto rows = store_->read_feed_back(1, before, most, most_bytes);
    EXPECT_TRUE(rows) << rows.error().message;
    for (const FeedRow& row : *rows) found.push_back(row.value);
    return found;
  };
  EXPECT_THAT(values(kEnd, 10, 1000), ElementsAre("333", "22", "1"));
  EXPECT_THAT(values(kEnd, 2, 1000), ElementsAre("333", "22"));
  EXPECT_THAT(values(kEnd, 10, 4), ElementsAre("333", "22")) << "the one with which it is too much is the last";
  EXPECT_THAT(values(kEnd, 10, 1), ElementsAre("333"));
  const auto newest = store_->read_feed_back(1, kEnd, 1, 1000);
  ASSERT_TRUE(newest);
  EXPECT_THAT(values(newest->front().number, 10, 1000), ElementsAre("22", "1"));
  EXPECT_THAT(values(1, 10, 1000), IsEmpty());
}

TEST_P(PageStoreTest, GivesNoMoreOfAFeedAtOnceThanHasRoom) {
  constexpr std::size_t kLarge = PageStore::kMostFeedBytes / 3;
  for (std::int64_t page = 1; page <= 5; ++page) {
    put(*store_, {.results = {result(page_at(page), "a", std::string(kLarge, 'x'))}, .at = kStoreNoon});
  }
  std::size_t seen = 0;
  for (std::int64_t after = 0;;) {
    const auto rows = store_->read_feed(1, after, 1000);
    ASSERT_TRUE(rows) << rows.error().message;
    if (rows->empty()) break;
    EXPECT_LE(rows->size(), 4u);
    seen += rows->size();
    after = rows->back().number;
  }
  EXPECT_EQ(seen, 5u);
}

TEST_P(PageStoreTest, RemovesThePartsThatAVisitNoLongerGives) {
  const PageId page = page_at(1);
  put(*store_, {.added = {some_page(page)},
                .results = {result(page, "a", "1"), result(page, "b", "2"), result(page, "c", "3"),
                            result(page_at(2), "a", "9")}});
  const std::int64_t seen = store_->read_feed(1, 0, 10)->back().number;
  put(*store_, {.replaced = {{page, {"c", "d"}}}, .results = {result(page, "c", "3"), result(page, "d", "4")}});
  EXPECT_THAT(feed_of(*store_, 1, seen), ElementsAre("gone 1/a=1", "gone 1/b=2", "added 1/d=4"));
  EXPECT_THAT(all_results(*store_), ElementsAre("1/c=3", "1/d=4", "2/a=9"));
  put(*store_, {.replaced = {{page, {}}, {page_at(7), {}}}});
  EXPECT_THAT(all_results(*store_), ElementsAre("2/a=9"));
  EXPECT_EQ(*store_->count_results(1), 1u);
}

TEST_P(PageStoreTest, GoesThroughManyResultsInOrder) {
  PageBatch batch;
  std::vector<std::string> expected;
  for (std::int64_t number = 1; number <= 400; ++number) {
    for (const char* part : {"a", "b", "c"}) {
      batch.results.push_back(result(page_at(number), part, fmt::format("{}", number)));
      expected.push_back(fmt::format("{}/{}={}", number, part, number));
    }
  }
  put(*store_, std::move(batch));
  EXPECT_EQ(all_results(*store_), expected);
  EXPECT_EQ(*store_->count_results(1), 1200u);
  EXPECT_EQ(store_->read_feed(1, 0, 100)->size(), 100u);
}

TEST_P(PageStoreTest, TellsWhoeverListensAfterACommitWithNews) {
  std::atomic<int> told = 0;
  store_->on_feed([&] { ++told; });
  put(*store_, {.added = {some_page(page_at(1))}});
  EXPECT_EQ(told, 0);
  put(*store_, {.results = {result(page_at(1), "a", "1")}});
  EXPECT_EQ(told, 1);
  put(*store_, {.results = {result(page_at(1), "a", "1")}});
  EXPECT_EQ(told, 1) << "nothing has changed";
  store_->on_feed(nullptr);
  put(*store_, {.results = {result(page_at(1), "a", "2")}});
  EXPECT_EQ(told, 1);
}

TEST_P(PageStoreTest, PrunesTheFeedThatIsOldAndRead) {
  PageBatch batch{.at = kStoreNoon};
  for (std::int64_t number = 1; number <= 9'000; ++number) batch.results.push_back(result(page_at(number), "a", "1"));
  put(*store_, std::move(batch));
  put(*store_, {.results = {result(page_at(1), "b", "2"), result(page_at(2), "b", "2")}, .at = kStoreNoon + 1h});
  const auto rows = *store_->read_feed(1, 0, 20'000);
  ASSERT_EQ(rows.size(), 9'002u);
  put(*store_, {.pruned = {{1, rows[9].number, kStoreNoon + 1h}}});
  EXPECT_EQ(store_->read_feed(1, 0, 20'000)->size(), 8'992u) << "a sink needs the rest";
  put(*store_, {.pruned = {{1, rows.back().number, kStoreNoon}, {2, rows.back().number, kStoreNoon + 2h}}});
  EXPECT_EQ(store_->read_feed(1, 0, 20'000)->size(), 8'992u) << "nothing is old";
  put(*store_, {.pruned = {{1, rows.back().number, kStoreNoon + 1h}}});
  EXPECT_GT(store_->read_feed(1, 0, 20'000)->size(), 2u) << "in steps";
  for (int i = 0; i < 3; ++i) put(*store_, {.pruned = {{1, rows.back().number, kStoreNoon + 1h}}});
  EXPECT_EQ(store_->read_feed(1, 0, 20'000)->size(), 2u);
  put(*store_, {.pruned = {{1, rows.back().number, kStoreNoon + 2h}}});
  EXPECT_TRUE(store_->read_feed(1, 0, 20'000)->empty());
  reopen();
  put(*store_, {.results = {result(page_at(3), "b", "2")}});
  EXPECT_GT(store_->read_feed(1, 0, 1)->at(0).number, rows.back().number) << "no number comes twice";
}

// --- batches ---------------------------------------------------------------------------------------------------------

TEST_P(PageStoreTest, CommitsBatchesInTheOrderOfTheirSubmission) {
  put(*store_, {.added = {some_page(page_at(1))}});
  for (int i = 1; i <= 500; ++i) {
    store_->submit({.changes = {{.id = page_at(1), .known = {.priority = i}}},
                    .results = {result(page_at(1), "n", fmt::format("{}", i))},
                    .at = kStoreNoon});
  }
  ASSERT_TRUE(store_->flush());
  EXPECT_EQ(all_pages(*store_).at(0).known.priority, 500);
  const auto news = feed_of(*store_);
  ASSERT_EQ(news.size(), 500u);
  for (std::size_t i = 1; i < news.size(); ++i) ASSERT_EQ(news[i], fmt::format("changed 1/n={}", i + 1));
}

TEST_P(PageStoreTest, SaysWhenWhatWasSubmittedIsCommitted) {
  EXPECT_TRUE(store_->flushed(store_->begin_flush())) << "there is nothing";
  store_ = nullptr;
  store_ = open_pages(path(), {.linger = 1h});
  store_->submit({.added = {some_page(page_at(1)), some_page(page_at(2))}});
  store_->submit({});
  EXPECT_EQ(store_->backlog(), 2u);
  EXPECT_TRUE(all_pages(*store_).empty()) << "it lingers";
  const auto flush = store_->begin_flush();
  while (!store_->flushed(flush)) std::this_thread::yield();
  EXPECT_EQ(store_->backlog(), 0u);
  EXPECT_EQ(all_pages(*store_).size(), 2u);
  store_->submit({.added = {some_page(page_at(3))}});
  EXPECT_TRUE(store_->flushed(flush)) << "of what came before";
  ASSERT_TRUE(store_->flush());
  EXPECT_EQ(all_pages(*store_).size(), 3u);
  EXPECT_EQ(store_->failure(), std::nullopt);
}

TEST_P(PageStoreTest, RefusesEverythingAfterAWriteThatFails) {
  put(*store_, {.added = {some_page(page_at(1))}});
  store_->submit({.added = {some_page(page_at(2)), some_page(page_at(1))}});
  const auto flushed = store_->flush();
  ASSERT_FALSE(flushed) << "there can be no two of one id";
  EXPECT_THAT(flushed.error().message, HasSubstr(path()));
  ASSERT_TRUE(store_->failure());
  store_->submit({.added = {some_page(page_at(3))}});
  EXPECT_FALSE(store_->flush());
  EXPECT_THAT(known_ids(*store_), ElementsAre(page_at(1)))
      << "what was committed is there, and nothing of a batch that failed";
  EXPECT_FALSE(store_->close());
}

// --- forgetting ------------------------------------------------------------------------------------------------------

TEST_P(PageStoreTest, ForgetsAProjectAndNothingElse) {
  put(*store_, whole_project(1, 30));
  put(*store_, whole_project(2, 9'000));
  put(*store_, whole_project(3, 30));
  put(*store_, {.forgotten = {2}});
  expect_nothing_of(*store_, 2);
  EXPECT_EQ(store_->backlog(), 0u);
  // A project that is forgotten goes step by step; each flush lets one step pass at least.
  for (int i = 0; i < 30; ++i) put(*store_, {.changes = {{.id = page_at(1), .known = {}}}});
  expect_nothing_of(*store_, 2);
  if (on_file()) EXPECT_EQ(rows_in_file(path(), 2), 0);
  for (const ProjectId other : {1, 3}) {
    EXPECT_EQ(known_ids(*store_, other).size(), 30u);
    EXPECT_EQ(all_results(*store_, other).size(), 30u);
    EXPECT_EQ(store_->versions(other, 100)->size(), 50u);
    EXPECT_EQ(store_->sinks(other)->size(), 1u);
    EXPECT_EQ(all_pages(*store_, other).at(0).rule, "item");
  }
  put(*store_, {.projects = {some_project(4)}, .added = {some_page(page_at(1, 4))}});
  EXPECT_EQ(all_pages(*store_, 4).at(0).rule, "item");
}

}  // namespace
}  // namespace argiope
