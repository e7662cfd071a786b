// What a directory keeps from one opening to the next. That it is a store like the others is in
// store_conformance_test.cpp and store_schedules_test.cpp.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "store/directory_driver.hpp"
#include "support/loop_fixture.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

class DirectoryStoreTest : public OnVirtualLoop {
 protected:
  static constexpr WallTime kNow{std::chrono::seconds{1'800'000'000}};

  template <class T>
  Result<T> ask(Coro<Result<T>> call) {
    return loop_.run_until_complete(std::move(call));
  }
  // Its id, or the error.
  Result<JobId> put(std::string name) {
    std::vector<PutRequest> jobs;
    jobs.push_back({.job = {.name = std::move(name), .queue = "q", .payload = "p"}});
    auto replies = ask(store_->put(std::move(jobs), kNow));
    if (!replies) return std::unexpected(replies.error());
    return replies->at(0)->id;
  }
  void reopen() {
    EXPECT_TRUE(store_->close());
    store_ = open_directory(root_);
  }

  TemporaryFolder folder_;
  const std::string root_ = folder_.file("jobs");
  std::unique_ptr<Store> store_ = open_directory(root_);
};

TEST_F(DirectoryStoreTest, KeepsAllForTheNextOpening) {
  ASSERT_EQ(put("a").value(), 1u);
  ASSERT_EQ(put("b").value(), 2u);
  ASSERT_TRUE(ask(store_->lease({{2, 7, kNow + std::chrono::seconds{60}, "w"}}))->at(0));
  ASSERT_TRUE(ask(store_->put_schedules({{.name = "s", .trigger = "t", .place = {.next = kNow}}})));
  ASSERT_TRUE(ask(store_->remember("offset", -5)));
  const auto job = ask(store_->get(1)).value();
  const auto schedule = ask(store_->find_schedule("s")).value();
  reopen();
  EXPECT_TRUE(ask(store_->get(1)).value() == job);
  EXPECT_TRUE(ask(store_->find_schedule("s")).value() == schedule);
  EXPECT_EQ(ask(store_->recall("offset")).value(), std::optional<std::int64_t>{-5});
  const auto old = ask(store_->old_leases());
  ASSERT_EQ(old->size(), 1u);
  EXPECT_EQ(old->at(0).token, 7u);
  EXPECT_EQ(store_->last_token(), 7u);
  EXPECT_EQ(put("c").value(), 3u);
}

TEST_F(DirectoryStoreTest, ForgetsWhatIsErased) {
  ASSERT_EQ(put("a").value(), 1u);
  ASSERT_TRUE(ask(store_->change({{.id = 1, .kind = ChangeKind::erase, .at = kNow}})));
  EXPECT_TRUE(std::filesystem::is_empty(root_ + "/jobs"));
  reopen();
  EXPECT_FALSE(ask(store_->get(1))->has_value());
}

TEST_F(DirectoryStoreTest, FinishesACommitThatHasBegun) {
  ASSERT_EQ(put("a").value(), 1u);
  std::filesystem::rename(root_ + "/jobs", root_ + "/aside");
  std::ofstream(root_ + "/jobs") << "in the way";
  const auto refused = put("b");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::io);
  EXPECT_FALSE(ask(store_->get(2))->has_value()) << "it was rolled back";
  std::filesystem::remove(root_ + "/jobs");
  std::filesystem::rename(root_ + "/aside", root_ + "/jobs");
  reopen();
  EXPECT_EQ(ask(store_->find_name("b")).value(), std::optional<JobId>{2});
}

}  // namespace
}  // namespace argiope
