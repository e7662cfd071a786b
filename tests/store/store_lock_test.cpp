// Another process that keeps the file locked: an owner waits and loses nothing, others are told. The other process is a
// second connection of SQLite; it lets go when the log tells that it is waited for, so nothing here depends on the
// clock.
#include <gtest/gtest.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sqlite3.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "store/sqlite/internal/lock_wait.hpp"
#include "store/sqlite_store_fixture.hpp"

namespace argiope {
namespace {

// What is logged while it lives.
class LoggedLines {
 public:
  LoggedLines() : sink_(std::make_shared<Sink>()), before_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink_));
  }
  ~LoggedLines() { spdlog::set_default_logger(before_); }
  // Returns once a line with `text` in it has been logged.
  bool await(std::string_view text) {
    std::unique_lock lock(sink_->mutex);
    return sink_->more.wait_for(lock, 60s, [&] { return count(text) > 0; });
  }
  std::size_t times(std::string_view text) {
    std::lock_guard lock(sink_->mutex);
    return count(text);
  }

 private:
  struct Sink final : spdlog::sinks::base_sink<spdlog::details::null_mutex> {
    std::mutex mutex;
    std::condition_variable more;
    std::vector<std::string> lines;
    void sink_it_(const spdlog::details::log_msg& message) override {
      std::lock_guard lock(mutex);
      lines.emplace_back(message.payload.data(), message.payload.size());
      more.notify_all();
    }
    void flush_() override {}
  };
  std::size_t count(std::string_view text) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(sink_->lines, [&](const std::string& line) { return line.find(text) != line.npos; }));
  }
  std::shared_ptr<Sink> sink_;
  std::shared_ptr<spdlog::logger> before_;
};

constexpr std::string_view kWaits = "kept it locked";
constexpr std::string_view kOver = "can be written again";

class StoreLockTest : public SqliteStoreTest {
 protected:
  // The owner's patience is told of after longer than others have at all.
  std::unique_ptr<Store> open_to_wait(StoreAccess access = StoreAccess::own) {
    auto opened = open_store("sqlite:" + file_, {.access = access, .busy_limit = 30ms, .busy_warning = 150ms});
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    return opened ? std::move(*opened) : nullptr;
  }
  // What another process does; its connection lives as long as this.
  class Other {
   public:
    explicit Other(const std::string& file) { EXPECT_EQ(sqlite3_open(file.c_str(), &database_), SQLITE_OK); }
    ~Other() { sqlite3_close(database_); }
    void run(const char* sql) {
      EXPECT_EQ(sqlite3_exec(database_, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database_);
    }

   private:
    sqlite3* database_ = nullptr;
  };
  LoggedLines log_;
};

TEST_F(StoreLockTest, AnOwnersCallsWaitAsLongAsItTakesAndLoseNothing) {
  auto owner = open_to_wait();
  for (int i = 0; i < 3; ++i) put(*owner);
  ASSERT_TRUE(lease(*owner, 1, 1));
  Other other(file_);
  std::size_t times = 0;
  for (const char* lock : {"BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"}) {
    other.run(lock);
    std::thread lets_go([&, seen = ++times] {
      while (log_.times(kWaits) < seen) ASSERT_TRUE(log_.await(kWaits));
      other.run("COMMIT");
    });
    const std::uint64_t token = owner->last_token();
    const JobId job = times;
    auto body = [&]() -> Coro<void> {
      auto settled = loop_.create_task(owner->settle({{.id = job, .token = token, .at = kNow}}));
      auto renewed = loop_.create_task(owner->renew({{job, token, kNow + 90s, "w"}}));
      auto leased = loop_.create_task(owner->lease({{job + 1, token + 1, kNow + 60s, "w"}}));
      auto seen = loop_.create_task(owner->get(job));
      auto changes = loop_.create_task(owner->changed_elsewhere());
      EXPECT_TRUE((co_await settled)->at(0).settled);
      EXPECT_TRUE(co_await renewed);
      EXPECT_TRUE((co_await leased)->at(0));
      EXPECT_FALSE((co_await seen)->has_value()) << "it was asked for after its end";
      EXPECT_TRUE(co_await changes);
    };
    loop_.run_until_complete(body());
    lets_go.join();
    EXPECT_FALSE(owner->failure());
    EXPECT_EQ(log_.times(kWaits), times) << "told once each time";
    EXPECT_EQ(log_.times(kOver), times);
  }
  EXPECT_TRUE(owner->close());
  owner = open_to_wait();
  EXPECT_EQ(ask(owner->counts())->at(0), (QueueCounts{1, {.running = 1}, 2}));
}

TEST_F(StoreLockTest, AShortLockIsNotToldOf) {
  auto opened = open_store("sqlite:" + file_, {.sync = SyncMode::off, .busy_warning = 10min});
  ASSERT_TRUE(opened) << opened.error().message;
  auto owner = std::move(*opened);
  Other other(file_);
  other.run("BEGIN IMMEDIATE");
  std::thread lets_go([&] { other.run("COMMIT"); });
  put(*owner);
  lets_go.join();
  EXPECT_EQ(log_.times("database"), 0u);
}

TEST_F(StoreLockTest, WhoSharesOrReadsIsToldAfterTheLimitAndNothingIsDone) {
  auto owner = open_to_wait();
  auto sharer = open_to_wait(StoreAccess::share);
  auto reader = open_to_wait(StoreAccess::read);
  Other other(file_);
  other.run("BEGIN IMMEDIATE");
  const auto refused = ask(sharer->put({{{.queue = "q"}}}, kNow));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::busy);
  EXPECT_EQ(refused.error().message, "database " + file_ + ": another process is writing it");
  EXPECT_FALSE(sharer->failure()) << "nothing has gone wrong with the file";
  EXPECT_TRUE(ask(reader->list({}))->empty()) << "who reads need not wait for who writes";
  other.run("COMMIT");
  EXPECT_EQ(put(*sharer), 1u);
  EXPECT_EQ(ask(reader->list({}))->size(), 1u);
  EXPECT_EQ(log_.times(kWaits), 0u) << "it is in the answer";
}

TEST_F(StoreLockTest, AHurryEndsPatienceForAsLongAsItLasts) {
  put(*open());
  Other other(file_);
  LockWait wait(file_, 30ms, 150ms);
  auto database = SqliteDatabase::open(file_, SQLITE_OPEN_READWRITE);
  ASSERT_TRUE(database);
  wait.serve(*database);
  wait.be_patient();
  other.run("BEGIN IMMEDIATE");
  wait.begin_hurry();
  wait.begin_hurry();
  wait.end_hurry();
  EXPECT_EQ(database->execute("BEGIN IMMEDIATE").error().code, Errc::busy);
  EXPECT_EQ(log_.times(kWaits), 0u);
  wait.end_hurry();
  std::thread lets_go([&] {
    EXPECT_TRUE(log_.await(kWaits));
    other.run("COMMIT");
  });
  EXPECT_TRUE(database->execute("BEGIN IMMEDIATE")) << "longer than the limit";
  lets_go.join();
}

TEST_F(StoreLockTest, OpeningIsToldAfterTheLimit) {
  put(*open_to_wait());
  Other other(file_);
  other.run("BEGIN IMMEDIATE");
  const auto refused = open_store("sqlite:" + file_, {.busy_limit = 30ms});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::busy);
  EXPECT_NE(open_to_wait(StoreAccess::share), nullptr) << "who only shares writes nothing yet";
  other.run("COMMIT");
  EXPECT_NE(open_to_wait(), nullptr);
}

TEST_F(StoreLockTest, ClosingIsBoundedAndSaysWhatCouldNotBeWritten) {
  auto owner = open_to_wait();
  put(*owner);
  Other other(file_);
  other.run("BEGIN IMMEDIATE");
  std::vector<PutRequest> many(1'000, {{.queue = "q"}});
  auto body = [&]() -> Coro<void> {
    // More than one transaction: they have one limit together.
    std::vector<Task<Result<std::vector<Result<PutReply>>>>> calls;
    for (int i = 0; i < 50; ++i) calls.push_back(loop_.create_task(owner->put(many, kNow)));
    co_await yield_now();
    EXPECT_TRUE(owner->close()) << "the store has not failed: its callers have been told";
    for (auto& call : calls) {
      const auto& answer = co_await call;
      EXPECT_FALSE(answer);
      if (!answer) EXPECT_EQ(answer.error().code, Errc::busy);
    }
  };
  loop_.run_until_complete(body());
  other.run("COMMIT");
  owner = open_to_wait();
  EXPECT_EQ(ask(owner->list({}))->size(), 1u);
}

TEST_F(StoreLockTest, ClosingWaitsForALockThatEndsInTime) {
  auto opened = open_store("sqlite:" + file_, {.busy_limit = 10min, .busy_warning = 0ms});
  auto owner = std::move(*opened);
  Other other(file_);
  other.run("BEGIN IMMEDIATE");
  auto body = [&]() -> Coro<void> {
    const std::vector<PutRequest> many(1'000, {{.queue = "q"}});
    auto call = loop_.create_task(owner->put(many, kNow));
    co_await yield_now();
    EXPECT_TRUE(log_.await(kWaits));
    std::thread lets_go([&] { other.run("COMMIT"); });
    EXPECT_TRUE(owner->close());
    EXPECT_TRUE(co_await call);
    lets_go.join();
  };
  loop_.run_until_complete(body());
}

TEST_F(StoreLockTest, AReaderThatKeepsTheLogFromBeingMovedHoldsUpNobody) {
  auto owner = open();
  put(*owner);
  std::optional<Other> other(file_);
  other->run("BEGIN; SELECT * FROM jobs");
  for (int i = 0; i < 40; ++i) put(*owner, {.payload = std::string(1'000'000, 'p')});
  EXPECT_GT(std::filesystem::file_size(file_ + "-wal"), 40'000'000u);
  other.reset();
  for (int i = 0; i < 10; ++i) put(*owner, {.payload = std::string(1'000'000, 'p')});
  EXPECT_TRUE(owner->close());
  EXPECT_FALSE(std::filesystem::exists(file_ + "-wal")) << "all of it is in the database";
  owner = open();
  EXPECT_EQ(ask(owner->counts())->at(0).counts.ready, 51u);
}

TEST_F(StoreLockTest, ACheckpointOfAnotherProcessIsWaitedFor) {
  auto opened = open_store("sqlite:" + file_, {.busy_limit = 30ms, .busy_warning = 150ms});
  auto owner = std::move(*opened);
  put(*owner);
  Other reads(file_), moves(file_);
  reads.run("BEGIN; SELECT * FROM jobs");
  put(*owner);
  // It holds the writer's lock while it waits for the reader.
  std::thread checkpoint([&] { moves.run("PRAGMA busy_timeout = 60000; PRAGMA wal_checkpoint(RESTART)"); });
  std::thread lets_go([&] {
    ASSERT_TRUE(log_.await(kWaits));
    reads.run("COMMIT");
  });
  while (log_.times(kWaits) == 0) put(*owner);
  checkpoint.join();
  lets_go.join();
  EXPECT_GE(log_.times(kOver), 1u);
  const auto ready = ask(owner->counts())->at(0).counts.ready;
  EXPECT_GE(ready, 3u);
  owner = after_death_of(std::move(owner));
  EXPECT_EQ(ask(owner->counts())->at(0).counts.ready, ready);
}

}  // namespace
}  // namespace argiope
