// Batches of pages that flush() has acknowledged are there after the disk has failed, whenever and however it did; of
// the others the first few, each whole. As store/url_store_faults_test.cpp, for the store of projects.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "argiope/base/random.hpp"
#include "project/page_store_fixture.hpp"
#include "support/faulty_vfs.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

constexpr int kPageRounds = 14;
constexpr ProjectId kFaultProjects = 2;

class PageStoreFaultsTest : public ::testing::Test {
 protected:
  struct Case {
    Fault fault = Fault::none;
    std::uint64_t at = 0;
    SyncMode sync = SyncMode::full;
  };

  // All that a store has, but for what says nothing of its batches.
  static std::string contents(PageStore& store) {
    std::string all;
    for (const ProjectRecord& project : *store.projects())
      all += fmt::format("project {} {}\n", project.id, project.counters);
    for (ProjectId project = 1; project <= kFaultProjects; ++project) {
      for (const PageRecord& page : all_pages(store, project)) {
        all += fmt::format("{} {} {} {} {}\n", page.id, page.rule, to_string(page.known.state), page.status_code,
                           page.error.size());
      }
      for (const std::string& row : all_results(store, project)) all += row + "\n";
      for (const std::string& news : feed_of(store, project)) all += news + "\n";
      for (const RoundRecord& round : *store.rounds(project, 100))
        all += fmt::format("round {} {}\n", round.number, round.pages);
      for (const SinkRow& sink : *store.sinks(project)) all += fmt::format("sink {} {}\n", sink.name, sink.cursor);
      all += fmt::format("{} results\n", *store.count_results(project));
    }
    return all;
  }
  void expect_named(const Error& error, Fault fault) {
    EXPECT_EQ(error.code, fault == Fault::full ? Errc::disk_full : Errc::io) << error.message;
    EXPECT_NE(error.message.find(file_), std::string::npos) << error.message;
  }

  PageBatch draw_batch(Random& random, ProjectId project, std::int64_t& last) {
    PageBatch batch{.at = kStoreNoon};
    const auto any = [&] { return page_at(random.between(1, last), project); };
    for (auto n = 1 + random.below(6); n > 0; --n) {
      batch.added.push_back(some_page(page_at(++last, project)));
      batch.added.back().context = std::string(random.below(500), 'c');
      batch.added.back().rule = fmt::format("rule{}", random.below(4));
    }
    for (auto n = random.below(4); n > 0; --n) {
      batch.changes.push_back(
          {.id = any(),
           .known = {.state = random.chance(0.5) ? PageState::done : PageState::failed},
           .outcome = PageChange::Outcome{.status_code = 200, .error = std::string(random.below(200), 'e')}});
    }
    for (auto n = random.below(4); n > 0; --n) {
      if (random.chance(0.3)) batch.replaced.push_back({any(), {"0"}});
      batch.results.push_back(
          result(any(), fmt::format("{}", random.below(3)),
                 random.chance(0.2) ? std::optional<std::string>() : std::string(random.below(300), 'v')));
    }
    batch.rounds.push_back(
        {.project = project, .number = 1, .pages = static_cast<std::uint64_t>(last), .cause = "start"});
    if (random.chance(0.3)) batch.sinks.push_back({project, "s", last, "", ""});
    ProjectRecord record = some_project(project);
    record.counters = fmt::format("{}", last);
    batch.projects.push_back(record);
    return batch;
  }

  // Batches, and what a store in memory has after each.
  void draw(std::uint64_t seed) {
    Random random(seed);
    const auto reference = open_pages(":memory:");
    rounds_.assign(kPageRounds, {});
    states_ = {contents(*reference)};
    std::int64_t last[kFaultProjects] = {0, 0};
    for (int number = 0; number < kPageRounds; ++number) {
      for (auto batches = 1 + random.below(3); batches > 0; --batches) {
        const ProjectId project = number > 9 || random.chance(0.5) ? 1 : 2;
        PageBatch& batch =
            rounds_[static_cast<std::size_t>(number)].emplace_back(draw_batch(random, project, last[project - 1]));
        if (number == 9 && batches == 1) batch.forgotten = {2};
        reference->submit(batch);
        EXPECT_TRUE(reference->flush());
        states_.push_back(contents(*reference));
      }
    }
  }

  std::unique_ptr<PageStore> open_or_expect(const Case& now) {
    auto opened = open_page_store(file_, {.sync = now.sync, .linger = 1ms});
    if (opened) return std::move(*opened);
    expect_named(opened.error(), now.fault);
    return nullptr;
  }

  std::uint64_t run(std::uint64_t seed, const Case& now) {
    FaultyDisk disk(mix64(seed) + now.at);
    disk.plan(now.fault, now.at);
    acknowledged_ = submitted_ = 0;
    std::unique_ptr<PageStore> store = open_or_expect(now);
    if (store != nullptr) play(store, now);
    store.reset();
    const std::uint64_t operations = disk.operations();
    if (disk.has_failed()) ++faults_;
    disk.restart();
    check();
    return operations;
  }

  void play(std::unique_ptr<PageStore>& store, const Case& now) {
    for (std::size_t round = 0; round < rounds_.size(); ++round) {
      if (round % 5 == 4) {
        (void)store->close();
        store = open_or_expect(now);
        if (store == nullptr) return;
      }
      for (const PageBatch& batch : rounds_[round]) {
        store->submit(batch);
        ++submitted_;
      }
      if (const auto flushed = store->flush(); !flushed) return refused(*store, flushed.error(), now);
      acknowledged_ = submitted_;
    }
  }
  void refused(PageStore& store, const Error& error, const Case& now) {
    expect_named(error, now.fault);
    ASSERT_TRUE(store.failure());
    store.submit({.added = {some_page(page_at(1'000'000))}});
    const auto flushed = store.flush();
    ASSERT_FALSE(flushed);
    expect_named(flushed.error(), now.fault);
  }

  void check() {
    const auto store = open_pages(file_);
    ASSERT_NE(store, nullptr);
    const std::string found = contents(*store);
    bool as_some = false;
    for (std::size_t i = acknowledged_; i <= submitted_; ++i) as_some |= found == states_[i];
    EXPECT_TRUE(as_some) << found << "\nacknowledged:\n"
                         << states_[acknowledged_] << "\nsubmitted:\n"
                         << states_[submitted_];
    put(*store, {.added = {some_page(page_at(1'000'000))}});
    EXPECT_TRUE(store->close());
  }

  void sweep(Case now) {
    for (std::uint64_t seed = 1; seed <= fault_seeds(); ++seed) {
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
  std::string file_ = folder_.file("pages.db");
  std::vector<std::vector<PageBatch>> rounds_;
  std::vector<std::string> states_;  // after so many batches
  std::size_t acknowledged_ = 0, submitted_ = 0;
  std::uint64_t faults_ = 0;
};

TEST_F(PageStoreFaultsTest, SurvivesAWriteThatFails) { sweep({.fault = Fault::write}); }
TEST_F(PageStoreFaultsTest, SurvivesATornWrite) { sweep({.fault = Fault::torn_write}); }
TEST_F(PageStoreFaultsTest, SurvivesAFullDisk) { sweep({.fault = Fault::full}); }
TEST_F(PageStoreFaultsTest, SurvivesASyncThatFails) { sweep({.fault = Fault::sync}); }
TEST_F(PageStoreFaultsTest, SurvivesAPowerCut) { sweep({.fault = Fault::power_cut}); }
TEST_F(PageStoreFaultsTest, SurvivesADeath) { sweep({.fault = Fault::kill}); }
TEST_F(PageStoreFaultsTest, SurvivesADeathWithNormalSyncs) { sweep({.fault = Fault::kill, .sync = SyncMode::normal}); }

}  // namespace
}  // namespace argiope
