// One suite for every UrlStore; then what only a file can do: be somebody else's, be full, be killed.
#include "argiope/store/detail/url_store.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <thread>

#include "argiope/base/random.hpp"
#include "base/internal/fingerprint.hpp"
#include "store/urls/internal/url_export.hpp"
#include "store/urls/internal/url_inbox.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::unique_ptr<UrlStore> open(const std::string& path, const UrlStoreOptions& options = {}) {
  auto store = open_url_store(path, options);
  EXPECT_TRUE(store) << store.error().message;
  return std::move(*store);
}

std::vector<UrlRecord> all(UrlStore& store, std::int64_t from = 1) {
  std::vector<UrlRecord> records;
  EXPECT_TRUE(store.flush());
  EXPECT_TRUE(store.scan(from, [&](const UrlRecord& record) {
    records.push_back(record);
    return true;
  }));
  return records;
}

NewUrl new_url(std::int64_t id) {
  return {id,
          "http://h/" + std::to_string(id),
          static_cast<std::uint32_t>(id % 7),
          -static_cast<std::int32_t>(id % 3),
          id / 2,
          WallTime{1000s + std::chrono::milliseconds{id % (std::int64_t{1} << 40)}}};
}

UrlOutcome outcome(std::int64_t id, Random& random) {
  UrlOutcome outcome;
  outcome.url_id = id;
  outcome.state = static_cast<UrlState>(random.below(4));
  outcome.mtime = WallTime{2000s + std::chrono::milliseconds{random.below(1000)}};
  outcome.due = random.chance(0.2) ? WallTime{3000s} : WallTime{};
  outcome.status_code = static_cast<int>(random.below(600));
  outcome.attempts = static_cast<std::uint32_t>(random.below(5));
  outcome.not_modified = random.chance(0.2);
  outcome.content_type = random.chance(0.5) ? "text/html" : "";
  outcome.size = static_cast<std::int64_t>(random.below(100'000));
  outcome.redirect_to = random.chance(0.1) ? "http://elsewhere/" : "";
  outcome.etag = random.chance(0.3) ? "\"e\"" : "";
  outcome.last_modified = random.chance(0.3) ? "yesterday" : "";
  outcome.digest = random.chance(0.5) ? "abc" : "";
  outcome.error = random.chance(0.1) ? "it's \"bad\"" : "";
  outcome.reason = static_cast<UrlReason>(random.below(kUrlReasons));
  outcome.limit = random.chance(0.3) ? static_cast<std::int64_t>(random.below(1000)) : 0;
  return outcome;
}

class UrlStoreTest : public testing::TestWithParam<const char*> {
 protected:
  std::string path() const { return std::string_view{GetParam()} == "memory" ? ":memory:" : folder_.file("urls.db"); }
  TemporaryFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Stores, UrlStoreTest, testing::Values("memory", "sqlite"));

TEST_P(UrlStoreTest, BeginsEmptyWithTheFirstId) {
  auto store = open(path());
  EXPECT_EQ(store->next_id(), 1);
  EXPECT_TRUE(all(*store).empty());
  EXPECT_EQ(*store->get(1), std::nullopt);
}

TEST_P(UrlStoreTest, KeepsANewUrlQueuedUntilItsOutcome) {
  auto store = open(path());
  store->submit({{}, {new_url(1)}});
  EXPECT_EQ(store->next_id(), 2);
  ASSERT_TRUE(store->flush());
  EXPECT_EQ((*store->get(1))->state, UrlState::queued);
  UrlOutcome done;
  done.url_id = 1;
  done.state = UrlState::done;
  done.status_code = 200;
  done.etag = "\"x\"";
  store->submit({{done}, {new_url(2)}});
  ASSERT_TRUE(store->flush());
  EXPECT_EQ((*store->get(1))->status_code, 200);
  EXPECT_EQ((*store->get(1))->url, "http://h/1");
  EXPECT_EQ((*store->get(2))->state, UrlState::queued);
}

TEST_P(UrlStoreTest, KeepsWhatItKnowsOfContentThatWasNotModified) {
  auto store = open(path());
  UrlOutcome first;
  first.url_id = 1;
  first.status_code = 200;
  first.digest = "d";
  first.size = 9;
  UrlOutcome again;
  again.url_id = 1;
  again.status_code = 304;
  again.not_modified = true;
  store->submit({{first}, {new_url(1)}});
  store->submit({{again}, {}});
  ASSERT_TRUE(store->flush());
  const UrlRecord record = **store->get(1);
  EXPECT_EQ(record.status_code, 200) << "that of the content, which is the same";
  EXPECT_EQ(record.digest, "d");
  EXPECT_EQ(record.size, 9);
}

TEST_P(UrlStoreTest, KeepsNotesByNameUntilTheyAreEmptied) {
  auto store = open(path());
  const auto notes = [&](std::string_view prefix) {
    std::vector<std::string> found;
    EXPECT_TRUE(store->flush());
    EXPECT_TRUE(store->scan_notes(prefix, [&](const UrlNote& note) {
      found.push_back(note.name + "=" + note.text);
      return found.size() < 3;
    }));
    return found;
  };
  using Notes = std::vector<std::string>;
  store->submit({.notes = {{"b/2", "two\nlines"}, {"b/1", "one \xff"}, {"a/1", "x"}, {"c", "y"}}});
  EXPECT_EQ(notes("b/"), Notes({"b/1=one \xff", "b/2=two\nlines"}));
  EXPECT_EQ(notes(""), Notes({"a/1=x", "b/1=one \xff", "b/2=two\nlines"})) << "until it is told to stop";
  store->submit({.notes = {{"b/1", ""}, {"b/2", "other"}, {"b/none", ""}}});
  EXPECT_EQ(notes("b/"), Notes({"b/2=other"}));
  EXPECT_EQ(notes("d"), Notes{});
}

TEST_P(UrlStoreTest, ScansInOrderFromAnIdUntilToldToStop) {
  auto store = open(path());
  UrlBatch batch;
  for (std::int64_t id = 1; id <= 20; ++id) batch.discovered.push_back(new_url(id));
  store->submit(std::move(batch));
  const auto records = all(*store, 15);
  ASSERT_EQ(records.size(), 6u);
  EXPECT_EQ(records.front().url_id, 15);
  int visited = 0;
  ASSERT_TRUE(store->scan(1, [&](const UrlRecord&) { return ++visited < 3; }));
  EXPECT_EQ(visited, 3);
}

// What scan_known() gives is what scan() does.
void expect_known(UrlStore& store, const UrlStore::KnownQuestion& question) {
  const auto records = all(store, question.from);
  std::size_t seen = 0;
  std::vector<std::int64_t> whole;
  ASSERT_TRUE(store.scan_known(question, [&](const UrlStore::KnownUrls& known) {
    EXPECT_GE(known.most, records.size());
    EXPECT_EQ(known.ids.size(), known.fingerprints.size());
    for (std::size_t i = 0; i < known.ids.size(); ++i, ++seen) {
      EXPECT_EQ(known.ids[i], records.at(seen).url_id);
      EXPECT_EQ(known.fingerprints[i], fingerprint(records.at(seen).url, question.seed));
    }
    for (const UrlRecord& record : known.records) {
      whole.push_back(record.url_id);
      if (question.fields == UrlStore::Fields::all) {
        EXPECT_EQ(record, *std::ranges::find(records, record.url_id, &UrlRecord::url_id));
      }
    }
    return true;
  }));
  EXPECT_EQ(seen, records.size());
  std::vector<std::int64_t> wanted;
  for (const UrlRecord& record : records) {
    if (question.settled || !is_settled(record)) wanted.push_back(record.url_id);
  }
  EXPECT_EQ(whole, wanted);
}

TEST_P(UrlStoreTest, TellsWhatIsKnown) {
  auto store = open(path());
  expect_known(*store, {.seed = 7});
  Random random(8);
  // With holes, one so large that nobody goes through it id by id, and stretches of settled, open and mixed ones.
  for (const std::int64_t first :
       {std::int64_t{1}, std::int64_t{9'000}, std::int64_t{200'000}, std::int64_t{1} << 61}) {
    UrlBatch batch;
    for (std::int64_t id = first; id < first + 5'000; ++id) batch.discovered.push_back(new_url(id));
    for (std::int64_t id = first; id < first + 4'500; ++id) {
      UrlOutcome settled = outcome(id, random);
      if (id % 50 != 0 && (id < first + 2'000 || random.chance(0.5))) {
        settled.state = UrlState::done;
        settled.reason = UrlReason::none;
        settled.redirect_to.clear();
        settled.not_modified = false;
      }
      batch.outcomes.push_back(std::move(settled));
    }
    for (std::int64_t id = first; id < first + 5'000; id += 97) batch.moves.push_back({id, Shelf::ready, 77, -1, 3});
    store->submit(std::move(batch));
    for (const bool settled : {false, true}) {
      expect_known(*store, {.seed = 7, .settled = settled});
      expect_known(*store, {.from = 300, .seed = 9, .fields = UrlStore::Fields::all, .settled = settled});
    }
  }
}

TEST_P(UrlStoreTest, StopsToTellWhatIsKnownWhenAsked) {
  auto store = open(path());
  UrlBatch batch;
  for (std::int64_t id = 1; id <= 60'000; ++id) batch.discovered.push_back(new_url(id));
  store->submit(std::move(batch));
  ASSERT_TRUE(store->flush());
  int visited = 0;
  ASSERT_TRUE(store->scan_known({}, [&](const UrlStore::KnownUrls& known) {
    // A visitor may write down what becomes of what it sees.
    store->submit({.outcomes = {}, .discovered = {}, .moves = {{known.ids.front(), Shelf::ready, 77, -1, 3}}});
    EXPECT_TRUE(store->flush());
    return ++visited < 3;
  }));
  EXPECT_EQ(visited, 3);
  EXPECT_EQ((*store->get(1))->shelf, Shelf::ready);
}

TEST_P(UrlStoreTest, ScansWhatACrawlNeedsToGoOn) {
  auto store = open(path());
  Random random(7);
  UrlBatch batch;
  for (std::int64_t id = 1; id <= 50; ++id) batch.discovered.push_back(new_url(id));
  for (std::int64_t id = 1; id <= 50; id += 2) batch.outcomes.push_back(outcome(id, random));
  batch.moves.push_back({2, Shelf::ready, 77, -1, 3});
  store->submit(std::move(batch));
  const auto needed = [](const UrlRecord& r) {
    return std::tuple(r.url_id, r.url, r.state, r.mtime, r.due, r.depth, r.priority, r.attempts, r.referrer,
                      r.redirect_to, r.shelf, r.site, r.reason, r.limit);
  };
  const auto whole = all(*store, 10);
  std::size_t visited = 0;
  ASSERT_TRUE(store->scan(
      10,
      [&](const UrlRecord& record) {
        EXPECT_EQ(needed(record), needed(whole.at(visited)));
        return ++visited < 30;
      },
      UrlStore::Fields::to_go_on));
  EXPECT_EQ(visited, 30u);
}

TEST_P(UrlStoreTest, ScansTheBrokenAlone) {
  auto store = open(path());
  UrlBatch batch;
  const std::pair<UrlState, int> kinds[] = {{UrlState::queued, 503}, {UrlState::done, 200},     {UrlState::done, 404},
                                            {UrlState::failed, 0},   {UrlState::excluded, 404}, {UrlState::done, 399}};
  for (std::int64_t id = 1; const auto& [state, status] : kinds) {
    batch.discovered.push_back(new_url(id));
    UrlOutcome outcome;
    outcome.url_id = id++;
    outcome.state = state;
    outcome.status_code = status;
    batch.outcomes.push_back(outcome);
  }
  store->submit(std::move(batch));
  ASSERT_TRUE(store->flush());
  for (int round = 0; round < 2; ++round) {
    std::vector<std::int64_t> ids;
    ASSERT_TRUE(store->scan_broken([&](const UrlRecord& record) {
      ids.push_back(record.url_id);
      return true;
    }));
    EXPECT_EQ(ids, (std::vector<std::int64_t>{3, 4}));
    int visited = 0;
    ASSERT_TRUE(store->scan_broken([&](const UrlRecord&) { return ++visited < 1; }));
    EXPECT_EQ(visited, 1);
  }
}

TEST_P(UrlStoreTest, ScansTheRedirectsAloneAndThoseToNowhereAsBroken) {
  auto store = open(path());
  UrlBatch batch;
  struct Kind {
    int status;
    const char* target;
    const char* error;
  };
  const Kind kinds[] = {{200, "", ""},          {302, "http://h/2", ""}, {301, "http://h/3", "redirects in a circle"},
                        {308, "", "no URL"},    {304, "", "cut off"},    {300, "", "odd"},
                        {303, "http://h/1", ""}};
  for (std::int64_t id = 1; const Kind& kind : kinds) {
    batch.discovered.push_back(new_url(id));
    UrlOutcome outcome;
    outcome.url_id = id++;
    outcome.status_code = kind.status;
    outcome.redirect_to = kind.target;
    outcome.error = kind.error;
    batch.outcomes.push_back(outcome);
  }
  store->submit(std::move(batch));
  ASSERT_TRUE(store->flush());
  std::vector<std::int64_t> redirects, broken;
  ASSERT_TRUE(store->scan_redirects([&](const UrlRecord& record) {
    redirects.push_back(record.url_id);
    return true;
  }));
  ASSERT_TRUE(store->scan_broken([&](const UrlRecord& record) {
    broken.push_back(record.url_id);
    return true;
  }));
  EXPECT_EQ(redirects, (std::vector<std::int64_t>{2, 3, 7}));
  EXPECT_EQ(broken, (std::vector<std::int64_t>{3, 4}));
}

TEST_P(UrlStoreTest, KeepsWhyALinkIsLeftOut) {
  auto store = open(path());
  NewUrl off_scope = new_url(1);
  off_scope.reason = UrlReason::off_scope;
  UrlOutcome cut;
  cut.url_id = 2;
  cut.reason = UrlReason::cut_off;
  cut.limit = 1000;
  UrlOutcome same;
  same.url_id = 2;
  same.not_modified = true;
  store->submit({{cut}, {off_scope, new_url(2)}});
  store->submit({{same}, {}});
  ASSERT_TRUE(store->flush());
  EXPECT_EQ((*store->get(1))->state, UrlState::excluded);
  EXPECT_EQ((*store->get(1))->reason, UrlReason::off_scope);
  EXPECT_EQ((*store->get(2))->reason, UrlReason::cut_off) << "what has not changed is as it was";
  EXPECT_EQ((*store->get(2))->limit, 1000);
}

TEST_P(UrlStoreTest, WhatHasNotChangedSinceItFailedIsDoneAndHasTheStatusThatItHad) {
  auto store = open(path());
  UrlOutcome failed;
  failed.url_id = 1;
  failed.state = UrlState::failed;
  failed.status_code = 503;
  failed.etag = "\"e\"";
  failed.digest = "d";
  failed.limit = 2;
  UrlOutcome waits;
  waits.url_id = 1;
  waits.state = UrlState::queued;
  waits.not_modified = true;
  store->submit({{failed}, {new_url(1)}});
  store->submit({{waits}, {}});
  ASSERT_TRUE(store->flush());
  EXPECT_EQ((*store->get(1))->status_code, 503);
  UrlOutcome same;
  same.url_id = 1;
  same.not_modified = true;
  store->submit({{failed}, {}});
  store->submit({{same}, {}});
  ASSERT_TRUE(store->flush());
  const UrlRecord record = **store->get(1);
  EXPECT_EQ(record.status_code, 200);
  EXPECT_EQ(record.limit, 0) << "how often it was given up counts no more";
  EXPECT_EQ(record.digest, "d");
}

TEST_P(UrlStoreTest, DoesNotCallBrokenWhatWasNotAsked) {
  auto store = open(path());
  UrlOutcome outcome;
  outcome.url_id = 1;
  outcome.state = UrlState::failed;
  outcome.reason = UrlReason::host_down;
  store->submit({{outcome}, {new_url(1)}});
  ASSERT_TRUE(store->flush());
  ASSERT_TRUE(store->scan_broken([](const UrlRecord& record) -> bool {
    ADD_FAILURE() << record.url;
    return true;
  }));
}

TEST_P(UrlStoreTest, KeepsWhereUrlsLead) {
  auto store = open(path());
  const std::vector<UrlLinks> expected = {{1, false, {1, 2, 300, 1'000'000'000'000}}, {2, true, {7}}, {5, false, {}}};
  UrlBatch batch;
  batch.links.push_back({2, false, {9, 8}});
  batch.links.push_back({5, false, {}});
  batch.links.push_back({1, false, {300, 2, 1, 1'000'000'000'000, 2}});
  store->submit(std::move(batch));
  UrlBatch anew;
  anew.links.push_back(expected[1]);
  store->submit(std::move(anew));
  ASSERT_TRUE(store->flush());
  std::vector<UrlLinks> found;
  ASSERT_TRUE(store->scan_links([&](const UrlLinks& links) {
    found.push_back(links);
    return true;
  }));
  EXPECT_EQ(found, expected);
}

UrlMove move(std::int64_t id, std::optional<Shelf> shelf, std::uint64_t site, std::int32_t priority) {
  return {id, shelf, shelf ? site : 0, priority, 0};
}

std::vector<std::int64_t> ids_on_shelf(UrlStore& store, const ShelfRead& read, const ShelfSites& sites = {}) {
  std::vector<std::int64_t> ids;
  EXPECT_TRUE(store.flush());
  EXPECT_TRUE(store.read_shelf(read, sites, [&](const UrlRecord& record) {
    EXPECT_EQ(record.shelf, read.shelf);
    ids.push_back(record.url_id);
    return true;
  }));
  return ids;
}

std::optional<Shelf> drawn_shelf(Random& random) {
  const auto shelf = random.below(4);
  return shelf == 3 ? std::nullopt : std::optional(static_cast<Shelf>(shelf));
}

using Ids = std::vector<std::int64_t>;
constexpr std::int32_t kFirst = std::numeric_limits<std::int32_t>::max();

TEST_P(UrlStoreTest, ReadsAShelfInItsOrderFromAPlaceOn) {
  auto store = open(path());
  UrlBatch batch;
  for (std::int64_t id = 1; id <= 10; ++id) batch.discovered.push_back(new_url(id));
  constexpr std::uint64_t kLarge = 0xf000'0000'0000'0001;
  for (const std::int64_t id : {4, 2, 6}) batch.moves.push_back(move(id, Shelf::ready, 7, 5));
  batch.moves.push_back(move(3, Shelf::ready, 8, 9));
  batch.moves.push_back(move(5, Shelf::ready, 8, -9));
  for (const std::int64_t id : {8, 7}) batch.moves.push_back(move(id, Shelf::set_aside, kLarge, id == 7 ? 0 : 1));
  batch.moves.push_back(move(9, Shelf::set_aside, 8, 0));
  store->submit(std::move(batch));
  EXPECT_EQ(ids_on_shelf(*store, {.shelf = Shelf::ready, .after = {kFirst, 0}, .limit = 100}), Ids({3, 2, 4, 6, 5}));
  EXPECT_EQ(ids_on_shelf(*store, {.shelf = Shelf::ready, .after = {5, 2}, .limit = 100}), Ids({4, 6, 5}));
  EXPECT_EQ(ids_on_shelf(*store, {.shelf = Shelf::ready, .after = {5, 2}, .limit = 2}), Ids({4, 6}));
  EXPECT_EQ(ids_on_shelf(*store, {.shelf = Shelf::ready, .after = {kFirst, 0}, .limit = 9}, {.part = 0, .parts = 2}),
            Ids({3, 5}));
  EXPECT_EQ(ids_on_shelf(*store, {.shelf = Shelf::set_aside, .after = {kFirst, 0}, .limit = 9}, {.site = kLarge}),
            Ids({8, 7}));
  EXPECT_EQ((*store->get(8))->site, kLarge);
  // From shelf to shelf, and off it.
  store->submit({{}, {}, {move(3, Shelf::set_aside, 8, 9), move(2, std::nullopt, 0, 5)}});
  EXPECT_EQ(ids_on_shelf(*store, {.shelf = Shelf::ready, .after = {kFirst, 0}, .limit = 100}), Ids({4, 6, 5}));
  EXPECT_EQ(ids_on_shelf(*store, {.shelf = Shelf::set_aside, .after = {kFirst, 0}, .limit = 9}, {.site = 8}),
            Ids({3, 9}));
}

TEST_P(UrlStoreTest, AnOutcomeTakesFromTheShelfAndRetriesAreReadByWhenTheyAreDue) {
  auto store = open(path());
  UrlBatch batch;
  for (std::int64_t id = 1; id <= 4; ++id) {
    batch.discovered.push_back(new_url(id));
    batch.moves.push_back(move(id, Shelf::ready, 7, 5));
  }
  store->submit(std::move(batch));
  UrlBatch later;
  for (std::int64_t id = 1; id <= 3; ++id) {
    UrlOutcome outcome;
    outcome.url_id = id;
    outcome.state = UrlState::queued;
    outcome.due = WallTime{std::chrono::seconds{100 - id}};
    later.outcomes.push_back(outcome);
  }
  store->submit(std::move(later));
  EXPECT_EQ(ids_on_shelf(*store, {.shelf = Shelf::ready, .after = {kFirst, 0}, .limit = 100}), Ids({4}));
  store->submit(
      {{}, {}, {move(1, Shelf::delayed, 7, 5), move(2, Shelf::delayed, 7, 5), move(3, Shelf::delayed, 8, 5)}});
  EXPECT_EQ(ids_on_shelf(*store, {.shelf = Shelf::delayed, .limit = 100}), Ids({3, 2, 1}));
  EXPECT_EQ(ids_on_shelf(*store, {.shelf = Shelf::delayed, .due_after = {WallTime{97s}, 3}, .limit = 1}), Ids({2}));
  EXPECT_EQ(ids_on_shelf(*store, {.shelf = Shelf::delayed, .limit = 9}, {.part = 1, .parts = 2}), Ids({2, 1}));
}

UrlBatch three_ready_at_depth_two() {
  UrlBatch batch;
  for (std::int64_t id = 1; id <= 3; ++id) {
    batch.discovered.push_back(new_url(id));
    batch.moves.push_back(move(id, Shelf::ready, 7, -5));
    batch.moves.back().depth = 2;
  }
  return batch;
}

TEST_P(UrlStoreTest, AUrlThatIsNearerThanWasKnownMovesOnItsShelf) {
  auto store = open(path());
  UrlBatch batch = three_ready_at_depth_two();
  batch.depths = {{3, 1, -1}, {2, 2, -1}, {1, 3, -1}};
  store->submit(std::move(batch));
  EXPECT_EQ(ids_on_shelf(*store, {.shelf = Shelf::ready, .after = {kFirst, 0}, .limit = 100}), Ids({3, 1, 2}));
  EXPECT_EQ((*store->get(3))->depth, 1u);
  EXPECT_EQ((*store->get(1))->depth, 2u) << "no way that is longer counts";
}

TEST_P(UrlStoreTest, AUrlThatKeepsItsPlaceIsNearerOnTheSamePlace) {
  auto store = open(path());
  UrlBatch batch = three_ready_at_depth_two();
  batch.moves.back().shelf.reset();
  batch.depths = {{2, 0, -1, true}, {3, 0, -1, true}};
  store->submit(std::move(batch));
  EXPECT_EQ(ids_on_shelf(*store, {.shelf = Shelf::ready, .after = {kFirst, 0}, .limit = 100}), Ids({1, 2}));
  EXPECT_EQ((*store->get(2))->depth, 0u);
  EXPECT_EQ((*store->get(3))->priority, -1) << "it is on no shelf";
}

TEST_P(UrlStoreTest, AFlushThatNobodyWaitsForComesToItsEnd) {
  auto store = open(path(), {.linger = 1h});
  store->submit({{}, {new_url(1)}});
  const std::uint64_t flush = store->begin_flush();
  const auto give_up_at = std::chrono::steady_clock::now() + 30s;
  while (!store->flushed(flush)) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up_at);
    std::this_thread::yield();
  }
  EXPECT_TRUE(*store->get(1));
}

// The memory store is the reference: whatever is done to it, another must agree.
TEST_P(UrlStoreTest, AgreesWithTheReferenceOnRandomSequences) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    TemporaryFolder folder;
    const std::string file = path() == ":memory:" ? path() : folder.file("a.db");
    auto store = open(file, {.sync = SyncMode::off, .linger = 0ms});
    auto reference = open(":memory:");
    Random random(seed);
    std::int64_t next = 1;
    for (int step = 0; step < 60; ++step) {
      UrlBatch batch;
      for (std::uint64_t i = random.below(4); i > 0 && next > 1; --i) {
        batch.outcomes.push_back(outcome(random.between(1, next - 1), random));
      }
      for (std::uint64_t i = random.below(4); i > 0; --i) batch.discovered.push_back(new_url(next++));
      for (std::uint64_t i = random.below(4); i > 0 && next > 1; --i) {
        const auto id = random.between(1, next - 1);
        batch.moves.push_back(move(id, drawn_shelf(random), random.below(3) << 62 | random.below(4),
                                   static_cast<std::int32_t>(random.between(-2, 2))));
      }
      reference->submit(batch);
      store->submit(std::move(batch));
      if (file != ":memory:" && random.chance(0.05)) {
        ASSERT_TRUE(store->close());
        store = open(file, {.sync = SyncMode::off, .linger = 0ms});
      }
      ASSERT_EQ(store->next_id(), reference->next_id());
      const auto id = static_cast<JobId>(random.between(0, next));
      const ShelfRead read{.shelf = static_cast<Shelf>(random.below(3)),
                           .after = {static_cast<std::int32_t>(random.between(-2, 3)), id},
                           .due_after = {WallTime{std::chrono::seconds{random.between(1, 3001)}}, id},
                           .limit = random.below(20)};
      const ShelfSites sites{.site = random.below(3) << 62 | random.below(4),
                             .part = static_cast<std::uint32_t>(random.below(2)),
                             .parts = 2};
      if (step % 10 == 0) {
        ASSERT_EQ(ids_on_shelf(*store, read, sites), ids_on_shelf(*reference, read, sites));
      }
    }
    ASSERT_EQ(all(*store), all(*reference)) << "seed " << seed;
  }
}

TEST_P(UrlStoreTest, ThreadsThatSubmitAndFlushAtOnceEachFindTheirOwn) {
  auto store = open(path());
  constexpr std::int64_t kThreads = 4, kEach = 100;
  std::vector<std::thread> threads;
  for (std::int64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::int64_t i = 0; i < kEach; ++i) {
        const std::int64_t id = 1 + thread * kEach + i;
        store->submit({{}, {new_url(id)}});
        if (i % 2 == 0) {
          EXPECT_TRUE(store->flush());
        } else {
          const std::uint64_t flush = store->begin_flush();
          while (!store->flushed(flush)) std::this_thread::yield();
        }
        const auto found = store->get(id);
        ASSERT_TRUE(found);
        EXPECT_TRUE(found->has_value()) << id;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store->backlog(), 0u);
  EXPECT_EQ(all(*store).size(), static_cast<std::size_t>(kThreads * kEach));
}

TEST_P(UrlStoreTest, ExportsEveryRecord) {
  auto store = open(path());
  NewUrl odd = new_url(1);
  odd.url = "http://h/\"quoted\",x";
  store->submit({{}, {odd, new_url(2)}});
  ASSERT_TRUE(store->flush());
  for (const char* name : {"out.jsonl", "out.csv"}) {
    ASSERT_TRUE(export_urls(*store, folder_.file(name)));
    std::ifstream file(folder_.file(name));
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    EXPECT_NE(text.find(name[4] == 'j' ? R"("url":"http://h/\"quoted\",x")" : R"("http://h/""quoted"",x")"),
              std::string::npos)
        << text;
    EXPECT_FALSE(fs::exists(folder_.file(name) + std::string(".part")));
  }
  UrlBatch linked;
  linked.discovered.push_back({3, "http://h/gone", 1, 0, 2});
  UrlOutcome gone;
  gone.url_id = 3;
  gone.status_code = 404;
  gone.reason = UrlReason::checked;
  linked.outcomes.push_back(gone);
  store->submit(std::move(linked));
  ASSERT_TRUE(store->flush());
  const auto lines = [&](const std::string& name) {
    std::ifstream file(folder_.file(name));
    return std::string((std::istreambuf_iterator<char>(file)), {});
  };
  ASSERT_TRUE(export_urls(*store, folder_.file("linked.jsonl")));
  EXPECT_NE(lines("linked.jsonl").find(R"("referrer":"http://h/2",)"), std::string::npos);
  EXPECT_NE(lines("linked.jsonl").find(R"("reason":"checked"})"), std::string::npos);
  const std::string exported = lines("linked.jsonl");
  const std::string last = exported.substr(exported.find(R"({"url_id":3,)"));
  EXPECT_EQ(last, R"({"url_id":3,"url":"http://h/gone","state":"done","status_code":404,"content_type":"","size":0,)"
                  R"("depth":1,"attempts":0,"ctime":"","mtime":"","referrer":"http://h/2","redirect_to":"","etag":"",)"
                  R"("last_modified":"","digest":"","error":"","reason":"checked"})"
                  "\n");
  ASSERT_TRUE(export_broken(*store, folder_.file("broken.csv")));
  EXPECT_EQ(lines("broken.csv"), "url,status,error,linked_from\r\nhttp://h/gone,404,,http://h/2\r\n");
  ASSERT_TRUE(export_broken(*store, folder_.file("broken.jsonl")));
  EXPECT_EQ(lines("broken.jsonl"), R"({"url":"http://h/gone","status":404,"error":"","linked_from":"http://h/2"})"
                                   "\n");
  // Where links are stored, every page that has it is named, over redirects, too: 1 and 5 link to 4, which redirects to
  // 3.
  UrlBatch more;
  more.discovered.push_back({4, "http://h/moved", 1, 0, 1});
  more.discovered.push_back({5, "http://h/5", 1, 0, 1});
  more.links = {{1, false, {2, 4, 5}}, {2, false, {3}}, {4, true, {3}}, {5, false, {4}}};
  store->submit(std::move(more));
  ASSERT_TRUE(store->flush());
  ASSERT_TRUE(export_broken(*store, folder_.file("all.csv")));
  EXPECT_EQ(lines("all.csv"),
            "url,status,error,linked_from\r\nhttp://h/gone,404,,\"http://h/\"\"quoted\"\",x\"\r\n"
            "http://h/gone,404,,http://h/2\r\nhttp://h/gone,404,,http://h/5\r\n");
  EXPECT_EQ(export_urls(*store, folder_.file("out.xml")).error().code, Errc::invalid_input);
  EXPECT_EQ(export_urls(*store, "/nonexistent/x.csv").error().code, Errc::io);
}

// --- files -------------------------------------------------------------------------------------------------------

class SqliteFileTest : public testing::Test {
 protected:
  void run_sql(const std::string& file, const char* sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(file.c_str(), &database), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
  std::string bytes_of(const std::string& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  TemporaryFolder folder_;
  const std::string file_ = folder_.file("urls.db");
};

TEST_F(SqliteFileTest, KeepsEverythingOverAReopening) {
  auto store = open(file_);
  store->submit({{}, {new_url(1), new_url(2)}});
  const auto before = all(*store);
  ASSERT_TRUE(store->close());
  EXPECT_FALSE(fs::exists(file_ + "-wal"));
  store = open(file_);
  EXPECT_EQ(all(*store), before);
  EXPECT_EQ(store->next_id(), 3);
}

TEST_F(SqliteFileTest, TakesUrlsOfOtherProgramsOnce) {
  auto store = open(file_);
  EXPECT_TRUE((*store->read_given(10)).empty());
  store->submit({{}, {new_url(1)}});
  ASSERT_TRUE(store->flush());
  run_sql(file_,
          "INSERT INTO urls (url) VALUES ('http://h/a'), ('http://h/b');"
          "INSERT OR IGNORE INTO urls (url, depth) VALUES ('http://h/c', 3);"
          "INSERT INTO inbox (url, depth) VALUES (x'fffe', 'deep'), ('', -5);");
  const auto given = store->read_given(10);
  ASSERT_TRUE(given);
  ASSERT_EQ(given->size(), 5u);
  EXPECT_EQ(given->at(0).url, "http://h/a");
  EXPECT_EQ(given->at(2).url, "http://h/c");
  EXPECT_EQ(given->at(2).depth, 3);
  EXPECT_EQ(given->at(3).depth, 0);
  EXPECT_EQ(given->at(4).depth, -5);
  EXPECT_EQ(store->read_given(2)->size(), 2u);
  EXPECT_EQ(all(*store).size(), 1u);
  EXPECT_EQ(store->next_id(), 2);
  UrlBatch batch{.outcomes = {}, .discovered = {new_url(2)}};
  batch.taken = {given->at(0).number, given->at(3).number, given->at(4).number};
  store->submit(std::move(batch));
  ASSERT_TRUE(store->flush());
  EXPECT_EQ(store->read_given(10)->size(), 2u);
  ASSERT_TRUE(store->close());
  store = open(file_);
  EXPECT_EQ(store->read_given(10)->front().url, "http://h/b");
  // A whole row is the business of who writes it.
  run_sql(file_, "INSERT INTO urls (url, ctime) VALUES ('http://h/whole', 5)");
  EXPECT_EQ(all(*store).size(), 3u);
}

TEST_F(SqliteFileTest, TakesWhatIsToBeFetchedAgainWhileItIsWrittenOrNot) {
  const std::vector<GivenUrl> given{{.url = new_url(1).url, .depth = 2, .again = 1}, {.url = "http://h/new"}};
  EXPECT_EQ(put_into_inbox(file_, given).error().code, Errc::io) << "nothing is made";
  EXPECT_FALSE(fs::exists(file_));
  auto store = open(file_);
  store->submit({{}, {new_url(1)}});
  ASSERT_TRUE(put_into_inbox(file_, given));
  ASSERT_TRUE(store->close());
  ASSERT_TRUE(put_into_inbox(file_, std::span(given).first(1)));
  store = open(file_);
  const auto taken = store->read_given(10);
  ASSERT_TRUE(taken);
  ASSERT_EQ(taken->size(), 3u);
  EXPECT_EQ(taken->at(0).url, new_url(1).url);
  EXPECT_EQ(taken->at(0).depth, 2);
  EXPECT_EQ(taken->at(0).again, 1);
  EXPECT_EQ(taken->at(1).again, 0);
  EXPECT_EQ(taken->at(2).again, 1);
  const std::string other = folder_.file("other.db");
  run_sql(other, "CREATE TABLE inbox (number INTEGER PRIMARY KEY, url TEXT, depth INTEGER, again INTEGER)");
  EXPECT_EQ(put_into_inbox(other, given).error().code, Errc::wrong_format);
}

// The table as the first version of the format made it, and what the second added; with what crawls left in it.
constexpr const char* kFirstVersion = R"sql(
CREATE TABLE urls (
  url_id INTEGER PRIMARY KEY, url TEXT NOT NULL, ctime INTEGER NOT NULL, mtime INTEGER,
  state TEXT NOT NULL DEFAULT 'queued', due INTEGER, depth INTEGER NOT NULL DEFAULT 0, priority INTEGER NOT NULL DEFAULT 0,
  status_code INTEGER, content_type TEXT, size INTEGER, attempts INTEGER NOT NULL DEFAULT 0, referrer INTEGER,
  redirect_to TEXT, etag TEXT, last_modified TEXT, digest TEXT, error TEXT);
CREATE VIEW pages AS SELECT u.url_id, u.url FROM urls u;
INSERT INTO urls (url_id, url, ctime, mtime, state, status_code, size, digest, error, redirect_to) VALUES
  (1, 'http://h/page', 5, 6, 'done', 200, 9, 'd', NULL, NULL),
  (2, 'http://h/queued', 5, NULL, 'queued', NULL, NULL, NULL, NULL, NULL),
  (3, 'http://h/asked-by-head', 5, 6, 'done', 200, 0, NULL, NULL, NULL),
  (4, 'http://h/robots', 5, 6, 'excluded', NULL, NULL, NULL, 'robots.txt', NULL),
  (5, 'http://h/too-many', 5, NULL, 'excluded', NULL, NULL, NULL, 'pages_per_host', NULL),
  (6, 'http://h/busy', 5, 6, 'done', 503, 3, 'e', NULL, NULL),
  (7, 'http://h/large', 5, 6, 'done', 200, 1000, 'f', 'cut off at 1000 bytes', NULL),
  (8, 'http://h/far', 5, 6, 'done', 302, 0, NULL, 'more than 10 redirects', 'http://h/page'),
  (9, 'http://h/moved', 5, 6, 'done', 301, 0, NULL, NULL, 'http://h/page'),
  (10, 'http://h/down', 5, 6, 'failed', NULL, NULL, NULL, 'timeout: no answer', NULL);
PRAGMA application_id = 1098016617; PRAGMA user_version = 1;
)sql";
constexpr const char* kSecondVersion = R"sql(
ALTER TABLE urls ADD COLUMN shelf INTEGER; ALTER TABLE urls ADD COLUMN site INTEGER;
CREATE INDEX urls_ready ON urls (priority DESC, url_id, site) WHERE shelf = 1;
CREATE INDEX urls_set_aside ON urls (site, priority DESC, url_id) WHERE shelf = 2;
CREATE INDEX urls_delayed ON urls (due, url_id, site) WHERE shelf = 3;
UPDATE urls SET shelf = 1, site = 77 WHERE url_id = 2;
PRAGMA user_version = 2;
)sql";

TEST_F(SqliteFileTest, BringsADatabaseOfAnOlderVersionUpToDate) {
  for (const int version : {1, 2}) {
    const std::string file = folder_.file("version" + std::to_string(version) + ".db");
    run_sql(file, kFirstVersion);
    if (version == 2) run_sql(file, kSecondVersion);
    auto store = open(file);
    const auto records = all(*store);
    ASSERT_EQ(records.size(), 10u);
    using Known = std::tuple<UrlState, UrlReason, std::int64_t>;
    const std::vector<Known> expected = {{UrlState::done, UrlReason::none, 0},
                                         {UrlState::queued, UrlReason::none, 0},
                                         {UrlState::done, UrlReason::checked, 0},
                                         {UrlState::excluded, UrlReason::robots, 0},
                                         {UrlState::excluded, UrlReason::pages_per_host, 1},
                                         {UrlState::failed, UrlReason::none, 0},
                                         {UrlState::done, UrlReason::cut_off, 1000},
                                         {UrlState::done, UrlReason::redirects, 10},
                                         {UrlState::done, UrlReason::none, 0},
                                         {UrlState::failed, UrlReason::none, 0}};
    std::vector<Known> found;
    for (const UrlRecord& record : records) found.emplace_back(record.state, record.reason, record.limit);
    EXPECT_EQ(found, expected);
    EXPECT_EQ(records[0].digest, "d");
    EXPECT_EQ(records[1].shelf, version == 2 ? std::optional(Shelf::ready) : std::nullopt);
    EXPECT_EQ(records[5].error, "HTTP 503");
    store->submit({{}, {}, {move(2, Shelf::set_aside, 7, 5)}});
    EXPECT_EQ(ids_on_shelf(*store, {.shelf = Shelf::set_aside, .after = {kFirst, 0}, .limit = 9}, {.site = 7}),
              Ids({2}));
    ASSERT_TRUE(store->close());
    EXPECT_EQ(all(*open(file)).size(), 10u) << "the second opening changes nothing";
    run_sql(file, "SELECT reason FROM pages");
  }
}

TEST_F(SqliteFileTest, IsForItsOwnerAloneWhereItWillHoldSecrets) {
  const auto mode = [&] { return fs::status(file_).permissions() & fs::perms::all; };
  const auto owner_alone = fs::perms::owner_read | fs::perms::owner_write;
  ASSERT_TRUE(open(file_)->close());
  fs::permissions(file_, owner_alone | fs::perms::group_read | fs::perms::others_read);
  auto store = open(file_, {.is_private = true});
  EXPECT_EQ(mode(), owner_alone);
  store->submit({{}, {new_url(1)}});
  ASSERT_TRUE(store->flush());
  EXPECT_EQ(fs::status(file_ + "-wal").permissions() & fs::perms::all, owner_alone);
  ASSERT_TRUE(store->close());
  ASSERT_TRUE(open(file_)->close());
  EXPECT_EQ(mode(), owner_alone) << "and stays so";
}

TEST_F(SqliteFileTest, IsForItsOwnerAloneOnceItHasASecret) {
  const auto mode = [](const std::string& file) { return fs::status(file).permissions() & fs::perms::all; };
  const auto owner_alone = fs::perms::owner_read | fs::perms::owner_write;
  auto store = open(file_);
  fs::permissions(file_, owner_alone | fs::perms::group_read | fs::perms::others_read);
  UrlBatch batch;
  batch.notes = {{.name = "open", .text = "1"}, {.name = "forgotten", .text = {}, .is_secret = true}};
  store->submit(std::move(batch));
  ASSERT_TRUE(store->flush());
  EXPECT_NE(mode(file_), owner_alone);
  UrlBatch secret;
  secret.notes = {{.name = "cookies/h", .text = "a", .is_secret = true}};
  store->submit(std::move(secret));
  ASSERT_TRUE(store->flush());
  EXPECT_EQ(mode(file_), owner_alone);
  EXPECT_EQ(mode(file_ + "-wal"), owner_alone);
}

TEST_F(SqliteFileTest, LeavesTheModeOfAFileThatIsNotOurs) {
  run_sql(file_, "CREATE TABLE t (a)");
  const auto before = fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read | fs::perms::others_read;
  fs::permissions(file_, before);
  EXPECT_FALSE(open_url_store(file_, {.is_private = true}));
  EXPECT_EQ(fs::status(file_).permissions() & fs::perms::all, before);
}

// Another process holds the write lock, as a program that looks into the database may for a moment.
class Locker {
 public:
  explicit Locker(const std::string& file) {
    EXPECT_EQ(sqlite3_open(file.c_str(), &database_), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  }
  ~Locker() { sqlite3_close(database_); }

 private:
  sqlite3* database_ = nullptr;
};

TEST_F(SqliteFileTest, WaitsWhileAnotherProcessHoldsTheWriteLock) {
  auto store = open(file_, {.linger = 0ms});
  {
    const Locker locker(file_);
    for (std::int64_t id = 1; id <= 50; ++id) {
      store->submit({{}, {new_url(id)}});
      std::this_thread::sleep_for(2ms);
    }
    EXPECT_EQ(store->failure(), std::nullopt);
    EXPECT_EQ(store->backlog(), 50u);
  }
  EXPECT_EQ(all(*store).size(), 50u);
  EXPECT_TRUE(store->close());
}

TEST_F(SqliteFileTest, AFlushWaitsForAForeignLockOnlySoLong) {
  auto store = open(file_, {.busy_limit = 100ms});
  const Locker locker(file_);
  store->submit({{}, {new_url(1)}});
  EXPECT_EQ(store->flush().error().code, Errc::busy);
}

TEST_F(SqliteFileTest, NoticesThatItWasDeletedOrReplaced) {
  for (const bool replaced : {false, true}) {
    for (const bool writes : {false, true}) {
      const std::string file = folder_.file("gone" + std::to_string(replaced) + std::to_string(writes) + ".db");
      auto store = open(file);
      store->submit({{}, {new_url(1)}});
      ASSERT_TRUE(store->flush());
      fs::remove(file);
      if (replaced) std::ofstream(file) << "another";
      Result<void> noticed;
      if (writes) {
        store->submit({{}, {new_url(2)}});
        noticed = store->flush();
      } else {
        noticed = store->close();
      }
      ASSERT_FALSE(noticed);
      EXPECT_EQ(noticed.error().code, Errc::io);
      EXPECT_NE(noticed.error().message.find(replaced ? "replaced" : "deleted"), std::string::npos);
      EXPECT_NE(noticed.error().message.find(file), std::string::npos);
    }
  }
}

TEST_F(SqliteFileTest, NoticesThatItsLogWasDeletedOrReplaced) {
  for (const bool replaced : {false, true}) {
    const std::string file = folder_.file("log" + std::to_string(replaced) + ".db");
    auto store = open(file);
    store->submit({{}, {new_url(1)}});
    ASSERT_TRUE(store->flush());
    fs::remove(file + "-wal");
    if (replaced) std::ofstream(file + "-wal") << "another";
    store->submit({{}, {new_url(2)}});
    const Result<void> noticed = store->flush();
    ASSERT_FALSE(noticed);
    EXPECT_EQ(noticed.error().code, Errc::io);
    EXPECT_NE(noticed.error().message.find(file + "-wal"), std::string::npos);
  }
}

TEST_F(SqliteFileTest, CanBeReadByOthersWhileItIsWritten) {
  auto store = open(file_);
  store->submit({{}, {new_url(1)}});
  ASSERT_TRUE(store->flush());
  run_sql(file_, "SELECT * FROM pages");
}

TEST_F(SqliteFileTest, FindsAUrlWhileItIsWritten) {
  auto store = open(file_);
  store->submit({{}, {new_url(1), {2, "http://h/two", 1, 0, 1, WallTime{1000s}}}});
  ASSERT_TRUE(store->flush());
  const auto found = find_url(file_, "http://h/two");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->record, **store->get(2));
  EXPECT_EQ((*found)->referrer, "http://h/1");
  EXPECT_EQ((*find_url(file_, "http://h/1"))->referrer, "");
  EXPECT_EQ(*find_url(file_, "http://h/three"), std::nullopt);
  EXPECT_EQ(find_url(file_ + ".none", "http://h/1").error().code, Errc::io);
}

TEST_F(SqliteFileTest, RefusesASecondWriter) {
  auto store = open(file_);
  EXPECT_EQ(open_url_store(file_).error().code, Errc::busy);
  ASSERT_TRUE(store->close());
  EXPECT_TRUE(open_url_store(file_));
}

TEST_F(SqliteFileTest, RefusesADatabaseThatIsNotOursAndLeavesItAlone) {
  run_sql(file_, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
  const std::string before = bytes_of(file_);
  const auto refused = open_url_store(file_);
  EXPECT_EQ(refused.error().code, Errc::wrong_format);
  EXPECT_NE(refused.error().message.find(file_), std::string::npos);
  EXPECT_EQ(bytes_of(file_), before);
}

TEST_F(SqliteFileTest, RefusesAFileThatIsNoDatabaseAndLeavesItAlone) {
  const std::string text =
      "These are my notes, and they are longer than a database's header of a hundred bytes; really they are.";
  std::ofstream(file_) << text;
  EXPECT_EQ(open_url_store(file_).error().code, Errc::wrong_format);
  EXPECT_EQ(bytes_of(file_), text);
}

TEST_F(SqliteFileTest, RefusesANewerVersion) {
  ASSERT_TRUE(open(file_)->close());
  run_sql(file_, "PRAGMA user_version = 99");
  EXPECT_EQ(open_url_store(file_).error().code, Errc::newer_version);
}

TEST_F(SqliteFileTest, NamesWhatCannotBeOpened) {
  const auto refused = open_url_store("/nonexistent/urls.db");
  EXPECT_EQ(refused.error().code, Errc::io);
  EXPECT_NE(refused.error().message.find("/nonexistent/urls.db"), std::string::npos);
}

TEST_F(SqliteFileTest, SaysThatTheDiskIsFullAndKeepsWhatWasCommitted) {
  auto store = open(file_, {.linger = 0ms, .max_bytes = 200 * 1024});
  store->submit({{}, {new_url(1)}});
  ASSERT_TRUE(store->flush());
  std::int64_t next = 2;
  Result<void> flushed;
  while (flushed && next < 100'000) {
    UrlBatch batch;
    for (int i = 0; i < 500; ++i) batch.discovered.push_back(new_url(next++));
    store->submit(std::move(batch));
    flushed = store->flush();
  }
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, Errc::disk_full);
  ASSERT_TRUE(store->failure());
  store->submit({{}, {new_url(next)}});
  EXPECT_FALSE(store->flush());
  EXPECT_FALSE(store->close());
  store = open(file_);
  const auto records = all(*store);
  EXPECT_GE(records.size(), 501u);
  EXPECT_EQ((records.size() - 1) % 500, 0u) << "a batch is there whole or not at all";
}

// Batches of ten URLs each are submitted as fast as possible and the process is killed. What is there must be whole
// batches, the first ones, and at least those that flush() had confirmed.
std::string kept_note(UrlStore& store) {
  std::string text;
  EXPECT_TRUE(store.scan_notes("kept", [&](const UrlNote& note) {
    text = note.text;
    return true;
  }));
  return text;
}

TEST_F(SqliteFileTest, CommitsNothingBeforeWhatMustBeKeptIsKept) {
  int asked = 0;
  bool fails = false;
  std::size_t seen = 0;
  {
    const auto store = open(file_, {.before_commit = [&]() -> Result<std::vector<UrlNote>> {
                              ++asked;
                              // What the transaction writes is not there yet for others.
                              const auto other = find_url(file_, "http://h/1");
                              seen += other && *other ? 1 : 0;
                              if (fails) return fail(Errc::disk_full, "the archive is full");
                              return std::vector<UrlNote>{{"kept", std::to_string(asked)}};
                            }});
    EXPECT_EQ(asked, 0) << "opening changes nothing";
    store->submit({.outcomes = {}, .discovered = {new_url(1)}});
    ASSERT_TRUE(store->flush());
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(seen, 0u);
    EXPECT_EQ(kept_note(*store), "1") << "a note of the same commit";
    fails = true;
    store->submit({.outcomes = {}, .discovered = {new_url(2)}});
    const auto flushed = store->flush();
    ASSERT_FALSE(flushed);
    EXPECT_EQ(flushed.error().code, Errc::disk_full);
    EXPECT_EQ(flushed.error().message, "the archive is full");
    EXPECT_TRUE(store->failure());
    EXPECT_FALSE(store->close());
  }
  const auto store = open(file_);
  EXPECT_EQ(all(*store).size(), 1u) << "what was not kept was not committed";
  EXPECT_EQ(kept_note(*store), "1");
}

TEST_F(SqliteFileTest, SurvivesBeingKilledAtAnyInstant) {
  for (int round = 0; round < 10; ++round) {
    const std::string file = folder_.file("kill" + std::to_string(round) + ".db");
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      auto store = open_url_store(file, {.linger = 1ms});
      for (std::int64_t batch_number = 0; store; ++batch_number) {
        UrlBatch batch;
        for (std::int64_t i = 1; i <= 10; ++i) batch.discovered.push_back(new_url(batch_number * 10 + i));
        (*store)->submit(std::move(batch));
        if (batch_number % 5 == 0 && (*store)->flush()) {
          [[maybe_unused]] const auto n = ::write(pipe[1], &batch_number, sizeof batch_number);
        }
      }
      ::_exit(1);
    }
    ::close(pipe[1]);
    // Killed after a number of confirmations, so that no clock is involved.
    std::int64_t confirmed = -1;
    for (int i = 0; i <= round * 3; ++i) {
      if (::read(pipe[0], &confirmed, sizeof confirmed) != sizeof confirmed) break;
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    while (::read(pipe[0], &confirmed, sizeof confirmed) == sizeof confirmed) {
    }
    ::close(pipe[0]);
    auto store = open(file);
    const auto records = all(*store);
    EXPECT_EQ(records.size() % 10, 0u);
    EXPECT_GE(static_cast<std::int64_t>(records.size()), (confirmed + 1) * 10);
    for (std::size_t i = 0; i < records.size(); ++i) ASSERT_EQ(records[i].url_id, static_cast<std::int64_t>(i) + 1);
  }
}

}  // namespace
}  // namespace argiope
