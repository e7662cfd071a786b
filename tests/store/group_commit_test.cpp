// What GroupCommit promises its callers, with transactions that only write down what becomes of them. That nothing is
// answered before it is on the disk is shown over files, by the fault suites of both stores.
#include "store/sqlite/internal/group_commit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include "argiope/store/detail/url_store.hpp"
#include "argiope/store/store.hpp"
#include "support/few_threads.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using Call = GroupCommit::Call;
using Lines = std::vector<std::string>;

const Error kBroken{Errc::io, "broken"};
const Error kLocked{Errc::busy, "locked"};
const Error kAway{Errc::network, "away"};

// What has happened, told by several threads.
class Happened {
 public:
  void note(std::string line) {
    std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
    more_.notify_all();
  }
  Lines lines() {
    std::lock_guard lock(mutex_);
    return lines_;
  }
  // Returns once `line` is there.
  void await(const std::string& line) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(more_.wait_for(lock, 60s, [&] { return std::ranges::find(lines_, line) != lines_.end(); })) << line;
  }

 private:
  std::mutex mutex_;
  std::condition_variable more_;
  Lines lines_;
};

class NotedTransactions final : public Transactions {
 public:
  NotedTransactions(Happened& happened, std::function<void(const std::string&)> trouble)
      : happened_(happened), trouble_(std::move(trouble)) {}
  ~NotedTransactions() override { happened_.note("closed"); }
  void begin(bool to_write) override {
    step(to_write ? "begin to write" : "begin to read");
    inside_ = true;
  }
  void commit() override {
    step("commit");
    inside_ = false;
  }
  void roll_back() noexcept override {
    happened_.note("roll back");
    inside_ = false;
  }
  bool in_transaction() const noexcept override { return inside_; }
  Result<void> in_place() const override {
    try {
      trouble_("in place");
    } catch (DatabaseFailed& error) {
      return std::unexpected(error.error);
    }
    return {};
  }
  void stop_waiting() override {}
  SqliteLog* log() noexcept override { return &log_; }
  bool ends_all(const Error& error) const noexcept override {
    return error.code != Errc::busy && error.code != Errc::network;
  }
  bool passes(const Error& error) const noexcept override { return error.code == Errc::network; }
  void when_overdue(std::function<void(const Error&)> tell) override { overdue_ = std::move(tell); }
  std::optional<Duration> renew_interval() const noexcept override { return interval_; }
  void renew() noexcept override { happened_.note("renewed"); }
  void set_interval(Duration interval) { interval_ = interval; }
  // The first commit is waited for until others have waited long enough.
  void begin_in_doubt() { in_doubt_ = true; }

 private:
  void step(const std::string& what) {
    if (what == "commit" && in_doubt_.exchange(false)) overdue_(kAway);
    trouble_(what);
    happened_.note(what);
  }
  Happened& happened_;
  const std::function<void(const std::string&)> trouble_;
  std::function<void(const Error&)> overdue_;
  std::atomic<bool> in_doubt_ = false;
  bool inside_ = false;
  std::optional<Duration> interval_;
  SqliteDatabase database_ = *SqliteDatabase::open(":memory:", SQLITE_OPEN_READWRITE);
  SqliteLog log_{database_, ":memory:", 1000};
};

class GroupCommitTest : public testing::Test {
 protected:
  class NotedCall final : public Call {
   public:
    NotedCall(GroupCommitTest& test, std::string name, Kind kind, std::size_t size)
        : Call(kind, size, name.starts_with("patient")), test_(test), name_(std::move(name)) {}
    void run() override {
      outcome_ = " done";
      test_.trouble(name_);
      test_.happened_.note(name_);
    }
    void fail(const Error& error) override { outcome_ = " failed: " + error.message; }
    bool writes() override { return name_ != "writes nothing"; }
    std::string answer() const { return name_ + outcome_; }

   private:
    GroupCommitTest& test_;
    const std::string name_;
    std::string outcome_ = " done";
  };

  GroupCommit& start(const GroupCommit::Rules& rules = {}) {
    return start_with(
        std::make_unique<NotedTransactions>(happened_, [this](const std::string& what) { trouble(what); }), rules);
  }
  GroupCommit& start_with(std::unique_ptr<Transactions> transactions, const GroupCommit::Rules& rules) {
    commit_.emplace(std::move(transactions), rules, [this](GroupCommit::Calls calls) {
      for (const auto& call : calls) happened_.note(static_cast<NotedCall&>(*call).answer());
    });
    return *commit_;
  }
  bool write(const std::string& name, std::size_t size = 1) {
    return commit_->submit(std::make_unique<NotedCall>(*this, name, Call::Kind::write, size));
  }
  bool read(const std::string& name) {
    return commit_->submit(std::make_unique<NotedCall>(*this, name, Call::Kind::read, 1));
  }
  // `what` throws from now on; nothing does.
  void let_fail(std::string what, Error error = kBroken) {
    std::lock_guard lock(mutex_);
    failing_ = std::move(what);
    error_ = std::move(error);
  }
  void trouble(const std::string& what) {
    std::lock_guard lock(mutex_);
    if (what == failing_) throw DatabaseFailed{error_};
  }
  // What happens from the waking of what was submitted to the answer to `last`.
  Lines wake_and_await(const std::string& last) {
    const std::size_t before = happened_.lines().size();
    commit_->wake();
    happened_.await(last);
    const Lines all = happened_.lines();
    return {all.begin() + static_cast<std::ptrdiff_t>(before), all.end()};
  }

  Happened happened_;
  std::mutex mutex_;
  std::string failing_;
  Error error_;
  std::optional<GroupCommit> commit_;
};

TEST_F(GroupCommitTest, RunsWhatWaitsInOneTransactionAndThenAnswersInOrder) {
  start();
  EXPECT_TRUE(write("a"));
  EXPECT_TRUE(read("b"));
  EXPECT_TRUE(write("c"));
  EXPECT_EQ(wake_and_await("c done"), (Lines{"begin to write", "a", "b", "c", "commit", "a done", "b done", "c done"}));
}

TEST_F(GroupCommitTest, OnlyWhatWritesTakesATransactionThatWrites) {
  start();
  read("a");
  write("writes nothing");
  EXPECT_EQ(wake_and_await("writes nothing done"),
            (Lines{"begin to read", "a", "writes nothing", "commit", "a done", "writes nothing done"}));
}

TEST_F(GroupCommitTest, ATransactionEndsBeforeItIsTooLargeAndNoCallIsSplit) {
  start({.most_in_transaction = 10});
  write("a", 6);
  write("b", 4);
  write("c", 1);
  write("d", 30);
  write("e");
  EXPECT_EQ(wake_and_await("e done"),
            (Lines{"begin to write", "a", "b", "commit", "a done", "b done", "begin to write", "c", "commit", "c done",
                   "begin to write", "d", "commit", "d done", "begin to write", "e", "commit", "e done"}));
}

TEST_F(GroupCommitTest, ACallThatLingersIsRunWithoutBeingWoken) {
  start({.linger = 1ms});
  write("a");
  happened_.await("a done");
}

TEST_F(GroupCommitTest, WhatIsLargeTogetherLingersNoLonger) {
  start({.linger = 1h, .most_lingering = 10});
  write("a", 5);
  write("b", 4);
  EXPECT_TRUE(happened_.lines().empty());
  write("c", 1);
  happened_.await("c done");
  EXPECT_EQ(happened_.lines(), (Lines{"begin to write", "a", "b", "c", "commit", "a done", "b done", "c done"}));
  write("d", 9);
  EXPECT_EQ(wake_and_await("d done"), (Lines{"begin to write", "d", "commit", "d done"})) << "counted from nothing";
}

TEST_F(GroupCommitTest, AWriteThatFailsFailsItsTransactionAndAllLaterWrites) {
  start();
  let_fail("b");
  for (const char* name : {"a", "b", "c"}) write(name);
  EXPECT_EQ(wake_and_await("c failed: broken"),
            (Lines{"begin to write", "a", "roll back", "a failed: broken", "b failed: broken", "c failed: broken"}));
  EXPECT_EQ(commit_->failure()->message, "broken");
  let_fail("");
  write("d");
  EXPECT_EQ(wake_and_await("d failed: broken"), Lines{"d failed: broken"});
  write("e");
  read("f");
  EXPECT_EQ(wake_and_await("f done"), (Lines{"begin to read", "f", "commit", "e failed: broken", "f done"}));
  EXPECT_EQ(commit_->stop().error().message, "broken");
}

TEST_F(GroupCommitTest, ACommitThatFailsFailsWhatWasInIt) {
  start();
  let_fail("commit");
  write("a");
  EXPECT_EQ(wake_and_await("a failed: broken"), (Lines{"begin to write", "a", "roll back", "a failed: broken"}));
  EXPECT_TRUE(commit_->failure());
}

TEST_F(GroupCommitTest, AReadThatFailsFailsAlone) {
  start();
  let_fail("b");
  write("a");
  read("b");
  write("c");
  EXPECT_EQ(wake_and_await("c done"),
            (Lines{"begin to write", "a", "c", "commit", "a done", "b failed: broken", "c done"}));
  EXPECT_FALSE(commit_->failure());
}

TEST_F(GroupCommitTest, AForeignLockFailsWhatWaitedForItAndNothingElse) {
  start();
  let_fail("begin to write", kLocked);
  write("a");
  EXPECT_EQ(wake_and_await("a failed: locked"), (Lines{"roll back", "a failed: locked"}));
  EXPECT_FALSE(commit_->failure());
  let_fail("");
  write("b");
  wake_and_await("b done");
}

TEST_F(GroupCommitTest, AForeignLockIsAFailureWhereCallersAreNotThereToTryAgain) {
  start({.busy_is_failure = true});
  let_fail("begin to write", kLocked);
  write("a");
  wake_and_await("a failed: locked");
  let_fail("");
  write("b");
  wake_and_await("b failed: locked");
  EXPECT_EQ(commit_->failure()->code, Errc::busy);
}

TEST_F(GroupCommitTest, WhatWasWrittenToAFileThatIsGoneHasFailed) {
  start();
  let_fail("in place");
  read("a");
  wake_and_await("a done");
  EXPECT_FALSE(commit_->failure()) << "it was only read";
  write("b");
  wake_and_await("b failed: broken");
  EXPECT_TRUE(commit_->failure());
}

TEST_F(GroupCommitTest, AFailureFromOutsideRefusesWritesToo) {
  start().fail(kBroken);
  commit_->fail(kLocked);
  write("a");
  wake_and_await("a failed: broken");
  EXPECT_EQ(commit_->stop().error().message, "broken");
}

TEST_F(GroupCommitTest, StoppingFinishesWhatWasSubmittedAndTakesNothingMore) {
  start({.linger = 1h});
  write("a");
  read("b");
  EXPECT_TRUE(commit_->stop());
  EXPECT_EQ(happened_.lines(), (Lines{"begin to write", "a", "b", "commit", "a done", "b done", "closed"}));
  EXPECT_FALSE(write("c"));
  EXPECT_TRUE(commit_->stop()) << "twice";
  commit_->wake();
  EXPECT_EQ(happened_.lines().back(), "closed");
}

TEST_F(GroupCommitTest, WhatAnAnswerSubmitsIsRunToo) {
  // As a loop does that goes on with what it was told.
  bool again = true;
  commit_.emplace(std::make_unique<NotedTransactions>(happened_, [](const std::string&) {}), GroupCommit::Rules{},
                  [&](GroupCommit::Calls calls) {
                    for (const auto& call : calls) happened_.note(static_cast<NotedCall&>(*call).answer());
                    if (!std::exchange(again, false)) return;
                    write("b");
                    commit_->wake();
                  });
  write("a");
  EXPECT_EQ(wake_and_await("b done"),
            (Lines{"begin to write", "a", "commit", "a done", "begin to write", "b", "commit", "b done"}));
  commit_.reset();  // before what its answers look at
}

TEST_F(GroupCommitTest, PatientCallsAreKeptInTheirOrderWhileTheServerIsAway) {
  start({.most_in_transaction = 2});
  let_fail("begin to write", kAway);
  write("patient a");
  write("b");
  write("patient c");
  write("d");
  wake_and_await("d failed: away");
  let_fail("");
  happened_.await("patient c done");
  Lines answers = happened_.lines();
  std::erase_if(answers, [](const std::string& line) { return !line.ends_with(" done") && !line.contains("failed"); });
  EXPECT_EQ(answers, (Lines{"b failed: away", "d failed: away", "patient a done", "patient c done"}));
  EXPECT_FALSE(commit_->failure());
}

TEST_F(GroupCommitTest, PatientCallsFailWithTheServerOnceItIsStopped) {
  start();
  let_fail("begin to write", kAway);
  write("patient a");
  write("b");
  wake_and_await("b failed: away");
  EXPECT_TRUE(commit_->stop());
  EXPECT_EQ(std::ranges::count(happened_.lines(), "patient a failed: away"), 1);
}

TEST_F(GroupCommitTest, ThoseBehindACommitInDoubtFailInTimeButForPatientOnes) {
  auto transactions = std::make_unique<NotedTransactions>(happened_, [](const std::string&) {});
  transactions->begin_in_doubt();
  start_with(std::move(transactions), {.most_in_transaction = 2});
  for (const char* name : {"a", "b", "c", "patient d", "e"}) write(name);
  EXPECT_EQ(wake_and_await("patient d done"),
            (Lines{"begin to write", "a", "b", "c failed: away", "e failed: away", "commit", "a done", "b done",
                   "begin to write", "patient d", "commit", "patient d done"}));
  EXPECT_FALSE(commit_->failure());
}

TEST_F(GroupCommitTest, RenewsWithoutCallsAndUnderEndlessOnes) {
  auto transactions = std::make_unique<NotedTransactions>(happened_, [](const std::string&) {});
  transactions->set_interval(1ms);
  std::size_t renewed_before = 0;  // the calls
  commit_.emplace(std::move(transactions), GroupCommit::Rules{}, [&](GroupCommit::Calls) {
    const Lines lines = happened_.lines();
    if (renewed_before == 0) renewed_before = static_cast<std::size_t>(std::ranges::count(lines, "renewed"));
    if (static_cast<std::size_t>(std::ranges::count(lines, "renewed")) > renewed_before + 2) {
      return happened_.note("renewed under calls");
    }
    read("again");
    commit_->wake();
  });
  happened_.await("renewed");
  read("first");
  commit_->wake();
  happened_.await("renewed under calls");
  commit_.reset();
}

TEST(GroupCommit, ThatIsRefusedAThreadSaysSoAndLetsGoOfItsFile) {
#ifdef ARGIOPE_SANITIZED
  GTEST_SKIP() << "sanitizers take all addresses there are";
#endif
  const TemporaryFolder folder;
  const std::string jobs = "sqlite:" + folder.file("jobs");
  const std::string urls = folder.file("urls");
  for (const rlim_t threads : {0, 1}) {
    const FewThreads few(threads);
    EXPECT_THROW((void)open_store(jobs, {.sync = SyncMode::full}), std::system_error) << threads;
    EXPECT_THROW((void)open_url_store(urls, {.sync = SyncMode::full}), std::system_error) << threads;
  }
  EXPECT_TRUE(open_store(jobs, {.sync = SyncMode::full}));
  EXPECT_TRUE(open_url_store(urls, {.sync = SyncMode::full}));
}

}  // namespace
}  // namespace argiope
