// What a book does beside the owner of its store, and while the store has none.
#include "argiope/engine/book.hpp"

#include <gmock/gmock.h>

#include "engine/broker_fixture.hpp"
#include "engine/internal/job_clock.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class BookTest : public BrokerTest {
 protected:
  template <class Body>
  void with_book(Body body, BookOptions options = {}) {
    loop_.run_until_complete(keeping([&]() -> Coro<void> {
      auto book = co_await Book::open(store_, options);
      if (!book) throw std::runtime_error(book.error().message);
      co_await body(*book);
    }));
  }
  static Coro<JobId> put(Book& book, NewJob job) { co_return value_or_throw(co_await book.put(std::move(job))).id; }
  // By a book that was told whether somebody owns the store.
  Coro<JobExplanation> explained(JobId id, bool owned) {
    auto book = value_or_throw(co_await Book::open(store_, {.owned = owned}));
    co_return value_or_throw(co_await book.explain(id));
  }
  static BookOptions with_queue(QueueConfig config) { return {.new_queue = std::move(config)}; }
  WallTime now() const { return loop_.clock().wall_now(); }
};

TEST_F(BookTest, OneBadJobKeepsNoOtherBack) {
  with_book(
      [&](Book& book) -> Coro<void> {
        std::vector<NewJob> jobs{job("q", "first"), job("q", std::string(11, 'x')), job(""), job("q", "last")};
        jobs[3].waits_for = {99};  // there has been none of that id: the store finds out, and refuses the batch
        jobs.push_back(job("q", "good"));
        const auto replies = co_await book.put_each(std::move(jobs));
        EXPECT_TRUE(replies);
        EXPECT_EQ(replies->size(), 5u);
        EXPECT_TRUE(replies->at(0));
        EXPECT_EQ(replies->at(1).error().code, Errc::too_large);
        EXPECT_THAT(replies->at(1).error().message, HasSubstr("queue \"q\""));
        EXPECT_EQ(replies->at(2).error().code, Errc::invalid_input);
        EXPECT_EQ(replies->at(3).error().code, Errc::invalid_input);
        EXPECT_TRUE(replies->at(4));
        const auto there = co_await book.list({.queue = "q"});
        EXPECT_EQ(there->size(), 2u);
        EXPECT_EQ(there->at(1).payload, "good");
      },
      with_queue({.max_payload_bytes = 10}));
}

TEST_F(BookTest, AFullQueueRefuses) {
  with_book(
      [&](Book& book) -> Coro<void> {
        const auto replies = co_await book.put_each({job("q"), job("q"), job("q")});
        EXPECT_TRUE(replies->at(1));
        EXPECT_EQ(replies->at(2).error().code, Errc::refused);
        EXPECT_EQ(co_await put(book, job("elsewhere")), 3u);
      },
      with_queue({.capacity = 2, .at_capacity = CapacityPolicy::refuse}));
}

TEST_F(BookTest, AFullQueueIsWaitedForWithThoseBeforeAlreadyIn) {
  with_book(
      [&](Book& book) -> Coro<void> {
        auto putting = loop_.create_task(book.put_each({job("q", "first"), job("q", "second")}));
        co_await sleep(10s);
        EXPECT_FALSE(putting.done());
        EXPECT_EQ((co_await book.list({.queue = "q"}))->size(), 1u);
        value_or_throw(co_await book.change({{.id = 1, .kind = ChangeKind::erase}}));
        const auto replies = co_await putting;
        EXPECT_EQ((*replies)[1]->id, 2u);
      },
      with_queue({.capacity = 1, .at_capacity = CapacityPolicy::wait}));
}

TEST_F(BookTest, ADelayedJobWhoseTimeHasComeIsReadyToWhoLooks) {
  with_book([&](Book& book) -> Coro<void> {
    const JobId id = co_await put(book, delayed("q", 60s));
    EXPECT_EQ((co_await book.get(id))->state, JobState::delayed);
    EXPECT_EQ((co_await book.get(id))->due_at, now() + 60s);
    EXPECT_EQ((co_await book.list({.queue = "q", .state = JobState::ready}))->size(), 0u);
    EXPECT_EQ((co_await book.counts("q"))->at(0).second.delayed, 1u);
    EXPECT_EQ((co_await explained(id, false)).until, now() + 60s);
    co_await sleep(60s);
    EXPECT_EQ((co_await book.get(id))->state, JobState::ready);
    EXPECT_EQ((co_await book.list({.queue = "q", .state = JobState::ready}))->size(), 1u);
    EXPECT_EQ((co_await book.list({.queue = "q", .state = JobState::delayed}))->size(), 0u);
    const auto counts = co_await book.counts("q");
    EXPECT_EQ(counts->at(0).second.ready, 1u);
    EXPECT_EQ(counts->at(0).second.delayed, 0u);
  });
}

TEST_F(BookTest, TimesAreTheCalendarsThoughTheOwnersRunDiffersFromIt) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    // The calendar was set an hour ahead once.
    value_or_throw(co_await store_.remember(kCalendarOffset, Duration{-1h}.count()));
    auto book = co_await Book::open(store_);
    const JobId id = co_await put(*book, delayed("q", 60s));
    EXPECT_EQ((co_await store_.get(id))->value().due_at, now() + 60s - 1h);
    EXPECT_EQ((co_await book->get(id))->due_at, now() + 60s);
    EXPECT_EQ(book->job_now(), now() - 1h);
  }));
}

TEST_F(BookTest, FindsByNumberAndByName) {
  with_book([&](Book& book) -> Coro<void> {
    NewJob named = job("q");
    named.name = "invoice-7";
    const JobId id = co_await put(book, std::move(named));
    EXPECT_EQ(*co_await book.find("invoice-7"), id);
    EXPECT_EQ(*co_await book.find(std::to_string(id)), id);
    EXPECT_EQ((co_await book.find("41")).error().code, Errc::not_found);
    EXPECT_EQ((co_await book.find("invoice-8")).error().code, Errc::not_found);
    EXPECT_EQ((co_await book.get(41)).error().code, Errc::not_found);
    EXPECT_EQ((co_await book.counts("nowhere")).error().code, Errc::not_found);
  });
}

TEST_F(BookTest, ExplainsWhatTheStoreAloneTells) {
  with_broker([&]() -> Coro<void> {
    const JobId first = co_await BrokerTest::put(job("q", "a", 5));
    const JobId second = co_await BrokerTest::put(job("q", "b"));
    NewJob dependant = job("q");
    dependant.waits_for = {second};
    const JobId third = co_await BrokerTest::put(std::move(dependant));
    EXPECT_EQ((co_await explained(first, true)).reason, WaitReason::none);
    const auto behind = co_await explained(second, true);
    EXPECT_EQ(behind.reason, WaitReason::more_important_jobs);
    EXPECT_EQ(behind.ahead, 1u);
    EXPECT_EQ((co_await explained(second, false)).reason, WaitReason::no_owner);
    const auto waits = co_await explained(third, true);
    EXPECT_EQ(waits.reason, WaitReason::other_jobs);
    EXPECT_THAT(waits.waits_for, ElementsAre(second));
    const LeasedJob leased = co_await one("q");
    const auto runs = co_await explained(first, true);
    EXPECT_EQ(runs.reason, WaitReason::running);
    EXPECT_EQ(runs.attempts, 1u);
    EXPECT_EQ(runs.worker, "w");
    EXPECT_EQ((co_await explained(first, false)).reason, WaitReason::no_owner);
    co_await settle(leased.token, {.outcome = Outcome::bury, .error = "broken"});
    const auto buried = co_await explained(first, true);
    EXPECT_EQ(buried.reason, WaitReason::buried);
    EXPECT_EQ(buried.error, "broken");
    value_or_throw(co_await engine_->book().pause("q"));
    EXPECT_EQ((co_await explained(second, true)).reason, WaitReason::queue_paused);
  });
}

// What the store shows of limits is said; what it does not show is named, instead of "it is the next one".
class BookExplainsLimits : public BookTest {
 protected:
  // The explanation of the last of two jobs while the first runs, or of the only one.
  JobExplanation explained_with(QueueConfig config, bool first_runs, std::string other_key = "k") {
    JobExplanation why;
    const std::string queue = "q" + std::to_string(++queues_);  // what was explained before lies in others
    with_broker([&]() -> Coro<void> {
      value_or_throw(co_await engine_->book().configure(queue, config));
      if (first_runs) {
        NewJob first = job(queue);
        first.key = other_key;
        co_await BrokerTest::put(first);
        co_await one(queue);
      }
      NewJob second = job(queue);
      second.key = "k";
      const JobId id = co_await BrokerTest::put(second);
      why = co_await explained(id, true);
    });
    return why;
  }
  int queues_ = 0;
};

TEST_F(BookExplainsLimits, TheQueueRunsAsManyAsItMay) {
  EXPECT_EQ(explained_with({.limits = {.concurrency = 1}}, true).reason, WaitReason::queue_concurrency);
  EXPECT_EQ(explained_with({.limits = {.concurrency = 2}}, true).reason, WaitReason::none);
}

TEST_F(BookExplainsLimits, SoDoesItsKey) {
  EXPECT_EQ(explained_with({.key_limits = {.concurrency = 1}}, true).reason, WaitReason::key_concurrency);
  EXPECT_EQ(explained_with({.key_limits = {.concurrency = 1}}, true, "another").reason, WaitReason::none);
  EXPECT_EQ(explained_with({.key_limits = {.concurrency = 2}}, true).reason, WaitReason::none);
}

TEST_F(BookExplainsLimits, ARateOfNothingStartsNothing) {
  EXPECT_EQ(explained_with({.limits = {.rate = 0}}, false).reason, WaitReason::queue_rate);
}

TEST_F(BookExplainsLimits, WhatOnlyTheOwnerKnowsIsNamed) {
  const auto idle = explained_with({}, false);
  EXPECT_EQ(idle.reason, WaitReason::none);
  EXPECT_THAT(idle.owner_knows, ElementsAre(WaitReason::no_worker));
  EXPECT_THAT(to_sentence(idle),
              HasSubstr("only the process that owns the store knows whether it runs jobs of this queue at all"));
  EXPECT_THAT(to_json(idle), HasSubstr("\"owner_knows\":[\"no worker\"]"));
  const auto rated = explained_with({.limits = {.rate = 5}, .key_limits = {.rate = 1, .delay = 1s}}, true, "another");
  EXPECT_THAT(rated.owner_knows, ElementsAre(WaitReason::queue_rate, WaitReason::key_resting, WaitReason::key_rate));
  EXPECT_THAT(to_sentence(rated), HasSubstr("when the queue's rate lets the next one start, how long its key rests"));
  // That its queue is worked on is seen by what runs; nothing else is unknown then.
  EXPECT_EQ(to_sentence(explained_with({}, true)), "it is the next one to run");
}

TEST_F(BookExplainsLimits, JobsOfTheSamePriorityAreNotCalledMoreImportant) {
  EXPECT_EQ(to_sentence({.reason = WaitReason::more_important_jobs, .ahead = 3}),
            "3 jobs are ahead of it, of higher priority or put before it");
  EXPECT_EQ(to_sentence({.reason = WaitReason::more_important_jobs, .ahead = 1}),
            "1 job is ahead of it, of higher priority or put before it");
}

class LooksInTurn : public BrokerTest {
 protected:
  static constexpr std::size_t kJobs = 4'000;

  Coro<void> fill() {
    std::vector<NewJob> jobs(kJobs, job("q"));
    EXPECT_TRUE(co_await engine_->book().put_each(std::move(jobs)));
  }
  // How long a look at all jobs takes, one that finds nothing.
  Coro<Duration> look_at_all() {
    const TimePoint began = loop_.time();
    const auto found = co_await engine_->book().list({.queue = "q", .key = "none"});
    EXPECT_TRUE(found && found->empty());
    co_return loop_.time() - began;
  }
};

TEST_F(LooksInTurn, TakeNoTimeWhereNobodyElseIsAtWork) {
  with_broker([&]() -> Coro<void> {
    co_await fill();
    co_await look_at_all();
    EXPECT_EQ(co_await look_at_all(), Duration::zero());
  });
}

TEST_F(LooksInTurn, LeaveTheStoreToThosePuttingMostOfTheTime) {
  with_broker([&]() -> Coro<void> {
    co_await fill();
    bool over = false;
    const auto puts = [&]() -> Coro<int> {
      int count = 0;
      while (!over) {
        co_await put(job("other"));
        co_await sleep(100us);
        ++count;
      }
      co_return count;
    };
    auto putting = loop_.create_task(puts());
    std::vector<Task<Duration>> looks;
    for (int i = 0; i < 8; ++i) looks.push_back(loop_.create_task(look_at_all()));
    Duration longest{};
    for (auto& look : looks) longest = std::max(longest, co_await look);
    over = true;
    EXPECT_GT(longest, 8 * kJobs * 4us);
    EXPECT_GT(co_await putting, 1'000) << "a store in memory answers at once, and eight looks let so many puts in";
  });
}

}  // namespace
}  // namespace argiope
