// Queues that are erased, and pauses that end by themselves.
#include "argiope/engine/worker.hpp"
#include "engine/broker_fixture.hpp"
#include "support/slow_store.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

class QueuesTest : public BrokerTest {
 protected:
  WallTime now() const { return loop_.clock().wall_now(); }
  Coro<QueueConfig> config(std::string queue = "q") {
    auto found = co_await engine_->book().queue(queue);
    if (!found) throw std::runtime_error(found.error().message);
    co_return found->config;
  }
};

// --- erased ----------------------------------------------------------------------------------------------------------

TEST_F(QueuesTest, OnlyAnEmptyQueueIsErased) {
  with_broker([&]() -> Coro<void> {
    Book& book = engine_->book();
    EXPECT_EQ((co_await book.erase_queue("q")).error().code, Errc::not_found);
    const JobId id = co_await put(job("q"));
    EXPECT_EQ((co_await book.erase_queue("q")).error().code, Errc::refused);
    EXPECT_TRUE(co_await book.erase(id));
    EXPECT_TRUE(co_await book.erase_queue("q"));
    EXPECT_EQ((co_await book.queue("q")).error().code, Errc::not_found);
    EXPECT_TRUE((co_await book.queues())->empty());
    EXPECT_TRUE((co_await book.counts())->empty());
    EXPECT_TRUE(engine_->queue_names().empty());
    EXPECT_EQ((co_await book.erase_queue("q")).error().code, Errc::not_found);
  });
}

TEST_F(QueuesTest, OneThatAnotherProcessHasMadeIsThereWhereNoMoreMayBeMade) {
  with_broker(
      [&]() -> Coro<void> {
        co_await put(job("a"));
        co_await put(job("b"));
        auto beside = std::move(*co_await Book::open(store_));
        for (const std::string name : {"c", "d"}) {
          EXPECT_TRUE(co_await beside.put(job(name)));
          co_await sleep(2s);
          if (name == "c") {
            EXPECT_TRUE(co_await engine_->book().put(job(name)));
          } else {
            EXPECT_TRUE(co_await engine_->book().configure(name, {.weight = 3}));
          }
        }
        EXPECT_EQ((co_await engine_->book().put(job("e"))).error().code, Errc::refused);
      },
      {.most_queues = 2});
}

TEST_F(QueuesTest, APutMakesItAnewForWhoWaitsForItsJobs) {
  with_broker(
      [&]() -> Coro<void> {
        Book& book = engine_->book();
        EXPECT_TRUE(co_await book.configure("q", {.weight = 5}));
        auto leasing = loop_.create_task(engine_->lease({.queues = {"q"}, .worker = "w"}));
        co_await sleep(1s);
        EXPECT_TRUE(co_await book.erase_queue("q"));
        co_await sleep(5min);  // the housekeeper passes it over
        co_await put(job("q", "x"));
        EXPECT_EQ((co_await leasing)->at(0).job.payload, "x");
        EXPECT_EQ((co_await config()).weight, 7u) << "as new queues are";
      },
      {.new_queue = {.weight = 7}});
}

TEST_F(QueuesTest, APutThatComesWhileItIsErasedIsNotLost) {
  with_broker([&]() -> Coro<void> {
    Book& book = engine_->book();
    EXPECT_TRUE(co_await book.configure("q", {}));
    for (int turns = 0; turns < 4; ++turns) {
      auto erasing = loop_.create_task(book.erase_queue("q"));
      for (int i = 0; i < turns; ++i) co_await sleep(0s);
      const JobId id = co_await put(job("q", "x"));
      (void)co_await erasing;
      EXPECT_EQ(co_await payloads("q"), "x ") << turns;
      EXPECT_TRUE(co_await settle(tokens_.back()));
      EXPECT_EQ((co_await book.get(id)).error().code, Errc::not_found);
    }
  });
}

TEST_F(QueuesTest, AFollowUpMakesItAnew) {
  with_broker([&]() -> Coro<void> {
    EXPECT_TRUE(co_await engine_->book().configure("next", {}));
    EXPECT_TRUE(co_await engine_->book().erase_queue("next"));
    co_await put(job("q"));
    Verdict verdict;
    verdict.follow_ups.push_back(job("next", "follow-up"));
    EXPECT_TRUE(co_await settle((co_await one("q")).token, std::move(verdict)));
    EXPECT_EQ(co_await payloads("next"), "follow-up ");
  });
}

TEST_F(QueuesTest, AQueueErasedBesideItsOwnerIsMadeAnewThere) {
  TemporaryFolder folder;
  const std::string where = "sqlite:" + folder.file("jobs.db");
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    Engine engine = value_or_throw(co_await Engine::open(where));
    value_or_throw(co_await engine.book().configure("q", {.weight = 5}));
    Book beside = value_or_throw(co_await Book::open(where));
    value_or_throw(co_await beside.erase_queue("q"));
    co_await sleep(1s);
    EXPECT_TRUE(engine.queue_names().empty());
    value_or_throw(co_await beside.put(job("q", "x")));
    const auto leased = value_or_throw(co_await engine.lease({.queues = {"q"}, .worker = "w"}));
    EXPECT_EQ(leased.at(0).job.payload, "x");
  }));
}

// --- pauses ----------------------------------------------------------------------------------------------------------

TEST_F(QueuesTest, APauseMayEndByItself) {
  with_broker([&]() -> Coro<void> {
    co_await put(job("q", "x"));
    const WallTime until = now() + 10s;
    EXPECT_TRUE(co_await engine_->book().pause("q", until));
    EXPECT_EQ((co_await config()).paused_until, until);
    EXPECT_EQ(co_await payloads("q"), "");
    const TimePoint start = loop_.time();
    EXPECT_EQ((co_await engine_->lease({.queues = {"q"}}))->size(), 1u);
    EXPECT_EQ(loop_.time() - start, 10s);
    EXPECT_FALSE((co_await config()).limits.paused);
  });
}

TEST_F(QueuesTest, APauseGoesOnUnderTheNextOwner) {
  with_broker([&]() -> Coro<void> {
    co_await put(job("q", "x"));
    EXPECT_TRUE(co_await engine_->book().pause("q", now() + 10s));
    engine_.reset();
    co_await sleep(4s);
    store_.reopen();
    engine_ = co_await open_engine(store_);
    const TimePoint start = loop_.time();
    EXPECT_EQ((co_await engine_->lease({.queues = {"q"}}))->size(), 1u);
    EXPECT_EQ(loop_.time() - start, 6s);
  });
}

TEST_F(QueuesTest, APauseWhoseTimeIsOverIsNone) {
  with_broker([&]() -> Coro<void> {
    co_await put(job("q", "x"));
    EXPECT_TRUE(co_await engine_->book().pause("q", now() + 10s));
    engine_.reset();
    co_await sleep(1min);
    store_.reopen();
    Book beside = value_or_throw(co_await Book::open(store_));
    EXPECT_FALSE((co_await beside.queue("q"))->config.limits.paused);
    engine_ = co_await open_engine(store_);
    EXPECT_EQ(co_await payloads("q"), "x ");
  });
}

TEST_F(QueuesTest, ItMayBeResumedBeforeAndPausedForGood) {
  with_broker([&]() -> Coro<void> {
    co_await put(job("q", "x"));
    EXPECT_TRUE(co_await engine_->book().pause("q", now() + 10s));
    EXPECT_TRUE(co_await engine_->book().pause("q"));
    co_await sleep(1min);
    EXPECT_EQ(co_await payloads("q"), "");
    EXPECT_TRUE(co_await engine_->book().pause("q", now() + 1h));
    EXPECT_TRUE(co_await engine_->book().resume("q"));
    EXPECT_EQ(co_await payloads("q"), "x ");
    EXPECT_EQ((co_await config()).paused_until, WallTime{});
  });
}

// --- housekeeping

TEST_F(QueuesTest, ALookForChangesThatThrowsEndsNoneThatFollows) {
  SlowStore slow(store_);
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    engine_ = co_await open_engine(slow, {});
    slow.looks_that_throw = 3;
    EXPECT_TRUE(co_await engine_->book().configure("q", {.keep_done = 1s}));
    const JobId id = co_await put(job("q"));
    EXPECT_TRUE(co_await settle((co_await one("q")).token));
    co_await sleep(5min);
    EXPECT_EQ(slow.looks_that_throw, 0u);
    EXPECT_EQ((co_await engine_->book().get(id)).error().code, Errc::not_found) << "it was pruned";
    EXPECT_TRUE(co_await engine_->close());
    engine_.reset();
  }));
}

TEST_F(QueuesTest, AServerThatIsAwayForLongEndsNoLookForChanges) {
  SlowStore slow(store_);
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    engine_ = co_await open_engine(slow, {});
    slow.looks_unanswered = 3;
    EXPECT_TRUE(co_await engine_->book().configure("q", {.keep_done = 1s}));
    const JobId id = co_await put(job("q"));
    EXPECT_TRUE(co_await settle((co_await one("q")).token));
    co_await sleep(5min);
    EXPECT_EQ(slow.looks_unanswered, 0u);
    EXPECT_EQ((co_await engine_->book().get(id)).error().code, Errc::not_found) << "it was pruned";
    EXPECT_TRUE(co_await engine_->close());
    engine_.reset();
  }));
}

TEST_F(QueuesTest, ALookForChangesThatIsRefusedForGoodEndsAll) {
  SlowStore slow(store_);
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    engine_ = co_await open_engine(slow, {});
    EXPECT_TRUE(co_await engine_->book().configure("q", {}));
    auto leasing = loop_.create_task(engine_->lease({.queues = {"q"}, .worker = "w"}));
    slow.why_no_looks = Error{Errc::refused, "another process has taken it over"};
    co_await sleep(1min);
    EXPECT_TRUE(leasing.done());
    if (leasing.done()) {
      EXPECT_EQ(leasing.result().error().code, Errc::refused);
    }
    EXPECT_TRUE(engine_->failure()) << "its program is to end";
    EXPECT_EQ((co_await engine_->close()).error().code, Errc::refused);
    engine_.reset();
  }));
}

// The store tells of them once.
TEST_F(QueuesTest, ChangesOfOthersAreTakenAlthoughTheServerGoesAwayOnceItHasToldOfThem) {
  SlowStore slow(store_);
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    engine_ = co_await open_engine(slow, {});
    EXPECT_TRUE(co_await engine_->book().configure("q", {}));
    for (std::uint64_t* const away : {&slow.queues_unanswered, &slow.finds_unanswered, &slow.counts_unanswered}) {
      EXPECT_EQ(co_await payloads("q"), "") << "it has read all that there was";
      std::vector<PutRequest> requests(1);
      requests[0].job = job("q", "x");
      const auto put_by_another = co_await store_.put(std::move(requests), now());
      slow.changed.jobs = {put_by_another->at(0)->id};
      *away = 3;
      co_await sleep(1min);
      EXPECT_EQ(*away, 0u);
      EXPECT_EQ(co_await payloads("q"), "x ");
      EXPECT_TRUE(co_await settle(tokens_.back()));
    }
    EXPECT_TRUE(co_await engine_->close());
    engine_.reset();
  }));
}

TEST_F(QueuesTest, AServerThatIsAwayWhenJobsAreCountedAnewEndsNothing) {
  SlowStore slow(store_);
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    engine_ = co_await open_engine(slow, {});
    EXPECT_TRUE(co_await engine_->book().configure("q", {.capacity = 2, .at_capacity = CapacityPolicy::refuse}));
    NewJob after = job("q", "after");
    after.waits_for = {co_await put(job("q", "a"))};
    co_await put(after);
    const LeasedJob first = co_await one("q");
    auto leasing = loop_.create_task(engine_->lease({.queues = {"q"}, .worker = "w"}));
    slow.counts_unanswered = 3;
    EXPECT_TRUE(co_await settle(first.token, {.outcome = Outcome::bury, .error = "no"}));
    co_await sleep(1min);
    EXPECT_EQ(slow.counts_unanswered, 0u);
    EXPECT_FALSE(leasing.done());
    co_await put(job("q", "b"));
    co_await put(job("q", "c"));
    EXPECT_TRUE(co_await leasing);
    EXPECT_TRUE(co_await engine_->close());
    engine_.reset();
  }));
}

}  // namespace
}  // namespace argiope
