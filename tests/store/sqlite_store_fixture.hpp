// What the tests share that look at a store's file: opening it in every way, and as it lies after a death.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argiope/store/store.hpp"
#include "support/loop_fixture.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {

using namespace std::chrono_literals;

class SqliteStoreTest : public OnVirtualLoop {
 protected:
  static constexpr WallTime kNow{1'800'000'000s};

  std::unique_ptr<Store> open(StoreAccess access = StoreAccess::own, std::int64_t max_bytes = 0) {
    auto opened = tried(file_, access, max_bytes);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    return opened ? std::move(*opened) : nullptr;
  }
  static Result<std::unique_ptr<Store>> tried(const std::string& file, StoreAccess access = StoreAccess::own,
                                              std::int64_t max_bytes = 0) {
    return open_store("sqlite:" + file, {.access = access, .sync = SyncMode::off, .max_bytes = max_bytes});
  }
  Error refusal(const std::string& file, StoreAccess access = StoreAccess::own) {
    auto opened = tried(file, access);
    EXPECT_FALSE(opened);
    return opened ? Error{} : opened.error();
  }
  template <class T>
  Result<T> ask(Coro<Result<T>> call) {
    return loop_.run_until_complete(std::move(call));
  }
  JobId put(Store& store, NewJob job = {}) {
    job.queue = "q";
    auto replies = ask(store.put({{.job = std::move(job)}}, kNow));
    EXPECT_TRUE(replies) << replies.error().message;
    return replies->at(0)->id;
  }
  std::optional<JobRecord> lease(Store& store, JobId id, std::uint64_t token) {
    return ask(store.lease({{id, token, kNow + 60s, "w"}}))->at(0);
  }
  bool settle(Store& store, JobId id, std::uint64_t token, Outcome outcome = Outcome::done) {
    return ask(store.settle({{.id = id, .token = token, .outcome = outcome, .at = kNow}}))->at(0).settled;
  }
  ScheduleId add_schedule(Store& store, std::string name) {
    auto added = ask(store.put_schedules({{.name = std::move(name), .trigger = "t", .place = {.next = kNow}}}));
    EXPECT_TRUE(added) << added.error().message;
    return added->at(0).id;
  }
  StoredSchedule schedule(Store& store, ScheduleId id) { return ask(store.load_schedules({id}))->at(0).value(); }
  FireReply fire(Store& store, ScheduleId id) {
    const StoredSchedule now = schedule(store, id);
    FireRequest request{.id = id, .version = now.version, .place = now.place};
    request.runs.push_back({.number = ++request.place.entries, .planned = now.place.next, .fired_at = kNow});
    request.jobs.push_back({.job = {.queue = "q", .payload = "p"}, .run = request.place.entries});
    return ask(store.fire({std::move(request)}, kNow))->at(0).value();
  }
  ScheduleRun last_run(Store& store, ScheduleId id) { return ask(store.schedule_runs(id, 1))->at(0); }
  JobState state(Store& store, JobId id) { return ask(store.get(id))->value().state; }
  void run_sql(const char* sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(file_.c_str(), &database), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
  std::int64_t count_of(const std::string& table) {
    sqlite3* database = nullptr;
    std::int64_t count = -1;
    EXPECT_EQ(sqlite3_open(file_.c_str(), &database), SQLITE_OK);
    const auto read = [](void* to, int, char** values, char**) {
      *static_cast<std::int64_t*>(to) = std::stoll(values[0]);
      return 0;
    };
    sqlite3_exec(database, ("SELECT count(*) FROM " + table).c_str(), read, &count, nullptr);
    sqlite3_close(database);
    return count;
  }
  // A copy as a death now would leave it: the file and its log.
  std::string copy_as_it_lies(const std::string& name = "image.db") const {
    std::string image = folder_.file(name);
    std::filesystem::copy_file(file_, image);
    std::filesystem::copy_file(file_ + "-wal", image + "-wal");
    return image;
  }
  // As if `owner` had died now, and another had opened what it has left.
  std::unique_ptr<Store> after_death_of(std::unique_ptr<Store> owner) {
    std::string image = copy_as_it_lies();
    EXPECT_TRUE(owner->close());
    file_ = std::move(image);
    return open();
  }
  static std::string bytes_of(const std::string& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  using Ids = std::vector<JobId>;
  TemporaryFolder folder_;
  std::string file_ = folder_.file("jobs.db");
};

}  // namespace argiope
