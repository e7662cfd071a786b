// The runs of a crawl and the changes it has noted, in every UrlStore.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "argiope/store/detail/url_store.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

class HistoryTest : public testing::TestWithParam<const char*> {
 protected:
  void reopen() {
    store_.reset();
    store_ = *open_url_store(path_, {.sync = SyncMode::off});
  }
  void SetUp() override {
    path_ = GetParam() == std::string("memory") ? ":memory:" : folder_.file("crawl.db");
    reopen();
  }
  std::vector<UrlRun> runs() {
    std::vector<UrlRun> found;
    EXPECT_TRUE(store_->scan_runs([&](const UrlRun& run) {
      found.push_back(run);
      return true;
    }));
    return found;
  }
  std::vector<UrlChange> changes(WallTime from) {
    std::vector<UrlChange> found;
    EXPECT_TRUE(store_->scan_changes(from, [&](const UrlChange& change) {
      found.push_back(change);
      return true;
    }));
    return found;
  }

  TemporaryFolder folder_;
  std::string path_;
  std::unique_ptr<UrlStore> store_;
};

constexpr WallTime kNoon{12h};

TEST_P(HistoryTest, KeepsRunsWithTheirEnds) {
  EXPECT_TRUE(runs().empty());
  UrlRun first{.run_id = 1, .began = kNoon};
  store_->submit({.runs = {first}});
  ASSERT_TRUE(store_->flush());
  EXPECT_EQ(runs(), std::vector{first});
  first.ended = kNoon + 1h;
  first.finished = false;
  first.stopped_by = "signal";
  first.fetched = 17;
  const UrlRun second{
      .run_id = 2, .began = kNoon + 2h, .ended = kNoon + 3h, .finished = true, .stopped_by = "", .fetched = 3};
  store_->submit({.runs = {second, first}});
  ASSERT_TRUE(store_->flush());
  if (path_ != ":memory:") reopen();
  EXPECT_EQ(runs(), (std::vector{first, second}));
}

TEST_P(HistoryTest, KeepsChangesInTheirOrder) {
  const UrlChange gone{5, kNoon, UrlChangeKind::gone, 200, 404, ""};
  const UrlChange moved{3, kNoon + 1s, UrlChangeKind::moved, 200, 301, "https://h/it's"};
  const UrlChange broken{5, kNoon + 2s, UrlChangeKind::broken, 404, 0, "dns: x"};
  store_->submit({.changes = {gone}});
  store_->submit({.changes = {moved, broken}});
  ASSERT_TRUE(store_->flush());
  if (path_ != ":memory:") reopen();
  EXPECT_EQ(changes(WallTime{}), (std::vector{gone, moved, broken}));
  EXPECT_EQ(changes(kNoon + 1s), (std::vector{moved, broken}));
  EXPECT_TRUE(changes(kNoon + 1h).empty());
}

INSTANTIATE_TEST_SUITE_P(Stores, HistoryTest, testing::Values("memory", "sqlite"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace argiope
