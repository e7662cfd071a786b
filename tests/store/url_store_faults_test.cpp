// Batches of URLs that flush() has acknowledged are there after the disk has failed, whenever and however it did; of
// the others the first few, each whole. As store_faults_test.cpp, for the store of the crawl.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "argiope/base/random.hpp"
#include "argiope/store/detail/url_store.hpp"
#include "support/faulty_vfs.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

constexpr int kUrlRounds = 24;

class UrlStoreFaultsTest : public ::testing::Test {
 protected:
  using Contents = std::vector<UrlRecord>;
  struct Case {
    Fault fault = Fault::none;
    std::uint64_t at = 0;
    SyncMode sync = SyncMode::full;
    Fault then = Fault::none;  // what comes after the failure, before the store can be closed
  };

  Result<std::unique_ptr<UrlStore>> open(SyncMode sync) { return open_url_store(file_, {.sync = sync}); }
  static Contents contents(UrlStore& store) {
    Contents all;
    const auto read = store.scan(1, [&](const UrlRecord& record) {
      all.push_back(record);
      return true;
    });
    EXPECT_TRUE(read) << read.error().message;
    return all;
  }
  void expect_named(const Error& error, Fault fault) {
    EXPECT_EQ(error.code, fault == Fault::full ? Errc::disk_full : Errc::io) << error.message;
    EXPECT_NE(error.message.find(file_), std::string::npos) << error.message;
  }

  // Batches, and what a store in memory has after each.
  void draw(std::uint64_t seed) {
    Random random(seed);
    const auto reference = std::move(*open_url_store(":memory:"));
    rounds_.assign(kUrlRounds, {});
    states_ = {{}};
    std::int64_t last = 0;
    for (auto& round : rounds_) {
      for (auto batches = 1 + random.below(3); batches > 0; --batches) {
        UrlBatch& batch = round.emplace_back();
        for (auto n = random.below(6); n > 0 && last > 0; --n) {
          const auto id = random.between(1, last);
          batch.outcomes.push_back({.url_id = id,
                                    .state = static_cast<UrlState>(random.below(4)),
                                    .mtime = WallTime{2'000s},
                                    .status_code = 200,
                                    .error = std::string(random.below(200), 'e')});
        }
        for (auto n = 1 + random.below(8); n > 0; --n) {
          ++last;
          const std::string path(random.below(400), 'u');
          batch.discovered.push_back({.url_id = last, .url = fmt::format("http://h/{}/{}", last, path)});
        }
        reference->submit(batch);
        EXPECT_TRUE(reference->flush());
        states_.push_back(contents(*reference));
      }
    }
  }

  std::uint64_t run(std::uint64_t seed, const Case& now) {
    FaultyDisk disk(mix64(seed) + now.at);
    disk.plan(now.fault, now.at);
    acknowledged_ = submitted_ = 0;
    std::unique_ptr<UrlStore> store = open_or_expect(now);
    if (store != nullptr) play(store, now);
    if (now.then != Fault::none && disk.has_failed()) disk.die(now.then);
    store.reset();
    const std::uint64_t operations = disk.operations();
    if (disk.has_failed()) ++faults_;
    disk.restart();
    if (now.then == Fault::kill) work_until_power_cut(disk, now.sync);
    check(now.sync);
    return operations;
  }
  std::unique_ptr<UrlStore> open_or_expect(const Case& now) {
    auto opened = open(now.sync);
    if (opened) return std::move(*opened);
    expect_named(opened.error(), now.fault);
    return nullptr;
  }

  void play(std::unique_ptr<UrlStore>& store, const Case& now) {
    for (std::size_t round = 0; round < rounds_.size(); ++round) {
      if (round % 7 == 6) {
        (void)store->close();
        store = open_or_expect(now);
        if (store == nullptr) return;
      }
      for (const UrlBatch& batch : rounds_[round]) {
        store->submit(batch);
        ++submitted_;
      }
      if (const auto flushed = store->flush(); !flushed) return refused(*store, flushed.error(), now);
      acknowledged_ = submitted_;
    }
  }
  void refused(UrlStore& store, const Error& error, const Case& now) {
    expect_named(error, now.fault);
    ASSERT_TRUE(store.failure());
    store.submit({.outcomes = {}, .discovered = {{.url_id = 1'000'000, .url = "http://late/"}}});
    const auto flushed = store.flush();
    ASSERT_FALSE(flushed);
    expect_named(flushed.error(), now.fault);
  }

  // What the second owner was told is there for the third.
  void work_until_power_cut(FaultyDisk& disk, SyncMode sync) {
    auto opened = open(sync);
    ASSERT_TRUE(opened) << opened.error().message;
    const auto at = std::ranges::find(states_, contents(**opened));
    ASSERT_NE(at, states_.end());
    UrlStore& store = **opened;
    store.submit({.outcomes = {}, .discovered = {{.url_id = 1'000'000, .url = "http://second/"}}});
    ASSERT_TRUE(store.flush());
    Contents expected = contents(store);
    disk.die(Fault::power_cut);
    opened->reset();
    disk.restart();
    auto third = open(sync);
    ASSERT_TRUE(third) << third.error().message;
    EXPECT_EQ(contents(**third), expected);
  }

  void check(SyncMode sync) {
    auto opened = open(sync);
    ASSERT_TRUE(opened) << opened.error().message;
    UrlStore& store = **opened;
    Contents found = contents(store);
    std::erase_if(found, [](const UrlRecord& record) { return record.url_id == 1'000'000; });
    bool as_some = false;
    for (std::size_t i = acknowledged_; i <= submitted_; ++i) as_some |= found == states_[i];
    EXPECT_TRUE(as_some) << found.size() << " URLs, acknowledged " << states_[acknowledged_].size() << ", submitted "
                         << states_[submitted_].size();
    store.submit({.outcomes = {}, .discovered = {{.url_id = store.next_id(), .url = "http://later/"}}});
    EXPECT_TRUE(store.close());
  }

  void sweep(Case now) {
    const std::uint64_t last = fault_seeds() * (now.fault == Fault::sync ? 6 : 1);
    for (std::uint64_t seed = 1; seed <= last; ++seed) {
      draw(seed);
      Case without = now;
      without.at = ~std::uint64_t{0};
      const std::uint64_t operations = run(seed, without);
      ASSERT_FALSE(HasFailure()) << "without a fault, seed " << seed;
      for (now.at = 0; now.at < operations; now.at += fault_stride()) {
        run(seed, now);
        ASSERT_FALSE(HasFailure()) << "seed " << seed << ", operation " << now.at << " of " << operations;
      }
    }
    RecordProperty("fault_points", static_cast<int>(faults_));
    fmt::print("{} faults\n", faults_);
  }

  TemporaryFolder folder_;  // for the lock; the rest is on the disk in memory
  std::string file_ = folder_.file("urls.db");
  std::vector<std::vector<UrlBatch>> rounds_;
  std::vector<Contents> states_;  // after so many batches
  std::size_t acknowledged_ = 0, submitted_ = 0;
  std::uint64_t faults_ = 0;
};

TEST_F(UrlStoreFaultsTest, SurvivesAWriteThatFails) { sweep({.fault = Fault::write}); }
TEST_F(UrlStoreFaultsTest, SurvivesATornWrite) { sweep({.fault = Fault::torn_write}); }
TEST_F(UrlStoreFaultsTest, SurvivesAFullDisk) { sweep({.fault = Fault::full}); }
TEST_F(UrlStoreFaultsTest, SurvivesASyncThatFails) { sweep({.fault = Fault::sync}); }
TEST_F(UrlStoreFaultsTest, SurvivesASyncThatFailsThenADeathAndLaterAPowerCut) {
  sweep({.fault = Fault::sync, .then = Fault::kill});
}
TEST_F(UrlStoreFaultsTest, SurvivesAPowerCut) { sweep({.fault = Fault::power_cut}); }
TEST_F(UrlStoreFaultsTest, SurvivesADeath) { sweep({.fault = Fault::kill}); }
TEST_F(UrlStoreFaultsTest, SurvivesADeathWithNormalSyncs) { sweep({.fault = Fault::kill, .sync = SyncMode::normal}); }
TEST_F(UrlStoreFaultsTest, SurvivesADeathWithoutSyncs) { sweep({.fault = Fault::kill, .sync = SyncMode::off}); }

}  // namespace
}  // namespace argiope
