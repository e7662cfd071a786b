// What a crawl keeps for its reports, in every UrlStore: links page by page, what was seen of answers, and which assets
// have turned out to be links too. And a file that is only looked at.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "argiope/base/random.hpp"
#include "argiope/store/detail/url_store.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

using KeptPages = std::vector<std::pair<std::int64_t, std::vector<KeptLink>>>;

KeptLink drawn_link(Random& random) {
  KeptLink link;
  if (random.chance(0.8)) {
    link.target = random.between(1, 50);
  } else {
    link.href = "mailto:a@b, \"c\"";
    link.error = random.chance(0.5) ? "no address" : "";
  }
  link.kind = random.chance(0.5) ? "anchor" : "image";
  link.text = random.chance(0.5) ? "it's <b>\n" : "";
  link.rel = random.chance(0.2) ? "nofollow me" : "";
  link.line = static_cast<std::uint32_t>(random.below(5000)) + 1;
  link.fragment = random.chance(0.3) ? "part%202" : "";
  return link;
}

PageFacts drawn_facts(std::int64_t url_id, Random& random) {
  PageFacts facts;
  facts.url_id = url_id;
  facts.took = std::chrono::nanoseconds{random.below(10'000'000)};
  facts.wire_bytes = static_cast<std::int64_t>(random.below(1'000'000));
  facts.title = random.chance(0.8) ? "A \"title\"" : "";
  facts.description = random.chance(0.5) ? "What it is, and more" : "";
  facts.heading = random.chance(0.5) ? "Heading" : "";
  facts.titles = static_cast<std::uint32_t>(random.below(3));
  facts.descriptions = static_cast<std::uint32_t>(random.below(3));
  facts.headings = static_cast<std::uint32_t>(random.below(3));
  facts.canonical = random.chance(0.3) ? "https://h/canonical" : "";
  facts.noindex = random.chance(0.1);
  if (random.chance(0.5)) facts.words = static_cast<std::uint32_t>(random.below(1000));
  if (facts.words > 0) facts.simhash = random.next();
  if (random.chance(0.7)) {
    auto& anchors = facts.anchors.emplace();
    for (auto n = random.below(4); n > 0; --n) anchors.push_back(mix64(random.below(1000)));
    std::ranges::sort(anchors);
  }
  return facts;
}

class KeptLinksTest : public testing::TestWithParam<const char*> {
 protected:
  std::string path() const { return std::string_view{GetParam()} == "memory" ? ":memory:" : folder_.file("urls.db"); }
  std::unique_ptr<UrlStore> open(const std::string& file) {
    auto store = open_url_store(file, {.sync = SyncMode::off, .linger = 0ms});
    EXPECT_TRUE(store) << store.error().message;
    return std::move(*store);
  }
  static KeptPages links_of(UrlStore& store) {
    KeptPages pages;
    EXPECT_TRUE(store.flush());
    EXPECT_TRUE(store.scan_kept_links([&](std::int64_t url_id, std::uint32_t place, const KeptLink& link) {
      if (pages.empty() || pages.back().first != url_id) pages.push_back({url_id, {}});
      EXPECT_EQ(place, pages.back().second.size());
      pages.back().second.push_back(link);
      return true;
    }));
    return pages;
  }
  static std::vector<PageFacts> facts_of(UrlStore& store) {
    std::vector<PageFacts> all;
    EXPECT_TRUE(store.flush());
    EXPECT_TRUE(store.scan_facts([&](const PageFacts& facts) {
      EXPECT_FALSE(facts.anchors);
      all.push_back(*store.facts(facts.url_id)->operator->());
      return true;
    }));
    return all;
  }
  TemporaryFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Stores, KeptLinksTest, testing::Values("memory", "sqlite"));

TEST_P(KeptLinksTest, APageThatIsFetchedAgainHasItsNewLinksAlone) {
  auto store = open(path());
  Random random(1);
  const std::vector<KeptLink> first{drawn_link(random), drawn_link(random), drawn_link(random)};
  const std::vector<KeptLink> second{drawn_link(random)};
  store->submit({.kept_links = {{7, first}, {8, second}, {9, first}}});
  store->submit({.kept_links = {{7, second}, {9, {}}}});
  EXPECT_EQ(links_of(*store), (KeptPages{{7, second}, {8, second}}));
  std::size_t visited = 0;
  ASSERT_TRUE(store->scan_kept_links(8, [&](std::int64_t url_id, std::uint32_t, const KeptLink& link) {
    EXPECT_EQ(url_id, 8);
    EXPECT_EQ(link, second[visited++]);
    return true;
  }));
  EXPECT_EQ(visited, 1u);
}

TEST_P(KeptLinksTest, AScanOfLinksEndsWhereItIsToldTo) {
  auto store = open(path());
  Random random(2);
  store->submit({.kept_links = {{1, {drawn_link(random), drawn_link(random)}}, {2, {drawn_link(random)}}}});
  ASSERT_TRUE(store->flush());
  for (const int most : {1, 2, 3}) {
    int visited = 0;
    ASSERT_TRUE(store->scan_kept_links([&](std::int64_t, std::uint32_t, const KeptLink&) { return ++visited < most; }));
    EXPECT_EQ(visited, most);
  }
}

TEST_P(KeptLinksTest, KeepsOfAnAnswerWhatWasSeenLast) {
  auto store = open(path());
  Random random(3);
  PageFacts facts = drawn_facts(5, random);
  facts.anchors = {1, 2, 0xffff'ffff'ffff'ffff};
  facts.took = 1234567ns;
  store->submit({.facts = {drawn_facts(5, random), drawn_facts(6, random)}});
  store->submit({.facts = {facts}});
  ASSERT_TRUE(store->flush());
  facts.took = 1234us;
  EXPECT_EQ(**store->facts(5), facts);
  EXPECT_EQ(*store->facts(7), std::nullopt);
  facts.anchors.emplace();  // none are there, which is known
  store->submit({.facts = {facts}});
  ASSERT_TRUE(store->flush());
  EXPECT_EQ(**store->facts(5), facts);
}

TEST_P(KeptLinksTest, AnAssetToWhichALinkLeadsIsNoMereAssetAnyMore) {
  auto store = open(path());
  UrlBatch batch;
  const std::pair<UrlState, UrlReason> before[] = {{UrlState::excluded, UrlReason::asset},
                                                   {UrlState::done, UrlReason::asset},
                                                   {UrlState::failed, UrlReason::asset},
                                                   {UrlState::queued, UrlReason::asset},
                                                   {UrlState::done, UrlReason::cut_off}};
  for (std::int64_t id = 1; const auto& [state, reason] : before) {
    batch.discovered.push_back({.url_id = id, .url = "http://h/" + std::to_string(id), .reason = reason});
    batch.outcomes.push_back({.url_id = id, .state = state, .reason = reason});
    batch.linked.push_back(id++);
  }
  batch.linked.push_back(99);
  store->submit(std::move(batch));
  ASSERT_TRUE(store->flush());
  std::vector<UrlReason> after;
  for (std::int64_t id = 1; id <= 5; ++id) {
    EXPECT_EQ((**store->get(id)).state, before[id - 1].first);
    after.push_back((**store->get(id)).reason);
  }
  EXPECT_EQ(after, (std::vector<UrlReason>{UrlReason::off_scope, UrlReason::checked, UrlReason::checked,
                                           UrlReason::checked, UrlReason::cut_off}));
}

TEST_P(KeptLinksTest, WhatTurnsOutToBeMoreWaitsForThatButAPageStaysOne) {
  auto store = open(path());
  UrlBatch batch;
  const UrlReason before[] = {UrlReason::asset, UrlReason::checked, UrlReason::requisite, UrlReason::none};
  for (std::int64_t id = 1; const UrlReason reason : before) {
    batch.discovered.push_back({.url_id = id, .url = "http://h/" + std::to_string(id), .reason = reason});
    batch.outcomes.push_back(
        {.url_id = id++, .state = UrlState::done, .status_code = 200, .etag = "\"e\"", .reason = reason});
  }
  batch.parts = {{1, UrlReason::requisite},
                 {2, UrlReason::requisite},
                 {3, UrlReason::none},
                 {4, UrlReason::requisite},
                 {99, UrlReason::none}};
  store->submit(std::move(batch));
  ASSERT_TRUE(store->flush());
  const UrlReason after[] = {UrlReason::requisite, UrlReason::requisite, UrlReason::none, UrlReason::none};
  for (std::int64_t id = 1; id <= 4; ++id) {
    const UrlRecord record = **store->get(id);
    EXPECT_EQ(record.reason, after[id - 1]) << id;
    EXPECT_EQ(record.state, id == 4 ? UrlState::done : UrlState::queued) << id;
    EXPECT_EQ(record.etag.empty(), id != 4) << "nobody asks whether it has changed";
  }
  UrlBatch again;
  again.outcomes.push_back({.url_id = 1, .state = UrlState::done, .status_code = 200, .reason = UrlReason::requisite});
  again.parts = {{1, UrlReason::requisite}};
  store->submit(std::move(again));
  ASSERT_TRUE(store->flush());
  EXPECT_EQ((**store->get(1)).state, UrlState::done) << "it is one already";
}

TEST_P(KeptLinksTest, AgreesWithTheReferenceOnRandomSequences) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    TemporaryFolder folder;
    const std::string file = path() == ":memory:" ? path() : folder.file("a.db");
    auto store = open(file);
    auto reference = open(":memory:");
    Random random(seed);
    for (int step = 0; step < 40; ++step) {
      UrlBatch batch;
      for (auto n = random.below(3); n > 0; --n) {
        auto& page = batch.kept_links.emplace_back();
        page.url_id = random.between(1, 12);
        for (auto links = random.below(5); links > 0; --links) page.links.push_back(drawn_link(random));
      }
      for (auto n = random.below(3); n > 0; --n) batch.facts.push_back(drawn_facts(random.between(1, 12), random));
      reference->submit(batch);
      store->submit(std::move(batch));
    }
    ASSERT_TRUE(store->flush());
    if (file != ":memory:") {
      ASSERT_TRUE(store->close());
      store = open(file);
    }
    EXPECT_EQ(links_of(*store), links_of(*reference)) << "seed " << seed;
    std::vector<PageFacts> facts, expected;
    const auto collect = [](UrlStore& from, std::vector<PageFacts>& into) {
      for (std::int64_t id = 1; id <= 12; ++id) {
        if (const auto found = *from.facts(id)) into.push_back(*found);
      }
    };
    collect(*store, facts);
    collect(*reference, expected);
    EXPECT_EQ(facts, expected) << "seed " << seed;
  }
}

class LookTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  const std::string file_ = folder_.file("urls.db");
};

TEST_F(LookTest, SeesWhatAnotherHasCommittedAndWritesNothing) {
  auto writer = std::move(*open_url_store(file_));
  writer->submit({{}, {{.url_id = 1, .url = "http://h/"}}});
  ASSERT_TRUE(writer->flush());
  auto look = open_url_store_to_look(file_);
  ASSERT_TRUE(look) << look.error().message;
  EXPECT_EQ((**(*look)->get(1)).url, "http://h/");
  EXPECT_EQ((*look)->next_id(), 2);
  writer->submit({{}, {{.url_id = 2, .url = "http://h/2"}}});
  ASSERT_TRUE(writer->flush());
  EXPECT_TRUE(*(*look)->get(2)) << "what came meanwhile, too";
  EXPECT_TRUE((*look)->flush());
  (*look)->submit({{}, {{.url_id = 3, .url = "http://h/3"}}});
  EXPECT_TRUE((*look)->failure());
  EXPECT_FALSE((*look)->flush());
  EXPECT_TRUE((*look)->close());
  EXPECT_FALSE(*writer->get(3));
}

TEST_F(LookTest, RefusesWhatIsNotThereAndWhatIsNotOurs) {
  EXPECT_FALSE(open_url_store_to_look(file_));
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(file_.c_str(), &database), SQLITE_OK);
  sqlite3_exec(database, "CREATE TABLE t(x)", nullptr, nullptr, nullptr);
  sqlite3_close(database);
  const auto look = open_url_store_to_look(file_);
  ASSERT_FALSE(look);
  EXPECT_EQ(look.error().code, Errc::wrong_format);
}

// As the third version of the schema was.
TEST_F(LookTest, AFileOfAnEarlierVersionIsRefusedUntilItIsBroughtUpToDate) {
  {
    auto store = std::move(*open_url_store(file_));
    store->submit({{}, {{.url_id = 1, .url = "http://h/"}}});
    ASSERT_TRUE(store->close());
  }
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(file_.c_str(), &database), SQLITE_OK);
  ASSERT_EQ(
      sqlite3_exec(database,
                   "DROP VIEW duplicates; DROP VIEW page_link_list; DROP TABLE page_links; DROP TABLE page_facts; DROP "
                   "TABLE notes; DROP TABLE runs; DROP TABLE changes; DROP TRIGGER urls_of_others; DROP TABLE inbox; "
                   "PRAGMA user_version = 3",
                   nullptr, nullptr, nullptr),
      SQLITE_OK);
  sqlite3_close(database);
  const auto refused = open_url_store_to_look(file_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::older_version);
  {
    auto store = open_url_store(file_);
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_EQ((**(*store)->get(1)).url, "http://h/") << "all that was in it is there";
    (*store)->submit({.kept_links = {{1, {{.target = 1, .kind = "anchor", .line = 1}}}}});
    ASSERT_TRUE((*store)->close());
  }
  EXPECT_TRUE(open_url_store_to_look(file_));
}

}  // namespace
}  // namespace argiope
