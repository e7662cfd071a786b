// A store that is slow, or busy for long: nothing is lost, and worker and housekeeper go on.
#include <gmock/gmock.h>

#include "argiope/engine/worker.hpp"
#include "engine/broker_fixture.hpp"
#include "support/open_engine.hpp"
#include "support/slow_store.hpp"

namespace argiope {
namespace {

class PatienceTest : public BrokerTest {
 protected:
  template <class Body>
  void with_slow_broker(Body body) {
    loop_.run_until_complete(keeping([&]() -> Coro<void> {
      engine_ = co_await open_engine(slow_);
      value_or_throw(co_await engine_->book().configure(
          "q", {.lease_time = 6s, .max_lease_expiries = 1, .keep_done = 1h, .keep_cancelled = 1h}));
      co_await body();
      slow_.delay = {};
      slow_.busy_until = {};
      EXPECT_TRUE(co_await engine_->close());
      engine_.reset();
    }));
  }
  Coro<JobRecord> record(JobId id) {
    auto found = co_await engine_->book().get(id);
    if (!found) throw std::runtime_error(found.error().message);
    co_return std::move(*found);
  }
  SlowStore slow_{store_};
};

TEST_F(PatienceTest, ALeaseThatTheStoreIsLongInWritingDownDoesNotRunOut) {
  with_slow_broker([&]() -> Coro<void> {
    const JobId id = co_await put(job("q"));
    slow_.delay = 30s;
    auto leasing = loop_.create_task(engine_->lease({.queues = {"q"}, .worker = "w"}));
    co_await sleep(29s);
    auto looking =
        loop_.create_task(engine_->book().put(job("q", "another", -1)));  // has the broker look at what is due
    const auto leased = co_await leasing;
    EXPECT_EQ(leased->size(), 1u);
    slow_.delay = {};
    co_await sleep(5s);  // it has all of its lease before it
    EXPECT_TRUE(co_await settle(leased->at(0).token));
    EXPECT_TRUE(co_await looking);
    EXPECT_EQ((co_await record(id)).state, JobState::done);
    EXPECT_EQ((co_await record(id)).expiries, 0u);
  });
}

TEST_F(PatienceTest, ARunThatIsBeingSettledIsNotCancelledByItsHeartbeat) {
  with_slow_broker([&]() -> Coro<void> {
    const JobId plain = co_await put(job("q", "plain"));
    const JobId followed = co_await put(job("q", "followed"));
    Worker worker(*engine_, {.queues = {"q"}, .until_empty = true});
    worker.add("q", [&](JobContext& context) -> Coro<void> {
      if (context.payload() == "followed") context.follow_up(job("new", "follow-up"));
      slow_.delay = 60s;  // ten times its lease
      co_return;
    });
    EXPECT_TRUE(co_await worker.run());
    EXPECT_EQ(worker.counts().done, 2u);
    EXPECT_EQ(worker.counts().cancelled, 0u);
    slow_.delay = {};
    EXPECT_EQ((co_await record(plain)).state, JobState::done);
    EXPECT_EQ((co_await record(followed)).state, JobState::done);
    EXPECT_EQ(co_await payloads("new"), "follow-up ");
  });
}

TEST_F(PatienceTest, AStoreThatIsBusyForLongLosesNoSettlementAndEndsNoWorker) {
  with_slow_broker([&]() -> Coro<void> {
    std::vector<JobId> ids;
    for (int i = 0; i < 20; ++i) ids.push_back(co_await put(job("q")));
    Worker worker(*engine_, {.queues = {"q"}, .concurrency = 4});
    int runs = 0;
    worker.add("q", [&](JobContext&) -> Coro<void> {
      if (++runs % 5 == 0) slow_.busy_until = loop_.time() + 25s;
      co_await sleep(100ms);
    });
    auto working = loop_.create_task(worker.run());
    co_await sleep(10min);
    EXPECT_FALSE(working.done());
    EXPECT_EQ(runs, 20);
    EXPECT_GE(slow_.times_busy, 4u);
    for (const JobId id : ids) EXPECT_EQ((co_await record(id)).state, JobState::done) << id;
    // The housekeeper goes on: what is too old is pruned.
    co_await sleep(2h);
    EXPECT_EQ((co_await engine_->book().get(ids[0])).error().code, Errc::not_found);
    worker.stop();
    EXPECT_TRUE(co_await working);
  });
}

TEST_F(PatienceTest, APutAllThatIsCancelledGivesBackTheRoomItTook) {
  with_slow_broker([&]() -> Coro<void> {
    EXPECT_TRUE(co_await engine_->book().configure("a", {.capacity = 2, .at_capacity = CapacityPolicy::wait}));
    EXPECT_TRUE(co_await engine_->book().configure("b", {.capacity = 1, .at_capacity = CapacityPolicy::wait}));
    co_await put(job("b"));
    for (int i = 0; i < 3; ++i) {
      auto putting = loop_.create_task(engine_->book().put_all({job("a"), job("a"), job("b")}));
      co_await sleep(1s);
      putting.cancel();
      co_await sleep(1s);
      EXPECT_TRUE(putting.cancelled());
    }
    EXPECT_TRUE(co_await engine_->book().put_all({job("a"), job("a")}));
  });
}

TEST_F(PatienceTest, APutAllThatNobodyWaitsForAnyMoreIsRunAllTheSame) {
  with_slow_broker([&]() -> Coro<void> {
    slow_.delay = 1s;
    auto putting = loop_.create_task(engine_->book().put_all({job("q", "a"), job("q", "b")}));
    co_await sleep(500ms);
    putting.cancel();
    co_await sleep(5s);
    EXPECT_EQ(co_await payloads("q"), "a b ");
  });
}

TEST_F(PatienceTest, AChangeThatNobodyWaitsForAnyMoreIsKnownToTheQueue) {
  with_slow_broker([&]() -> Coro<void> {
    EXPECT_TRUE(co_await engine_->book().configure("q", {.capacity = 1}));
    const JobId id = co_await put(job("q"));
    slow_.delay = 1s;
    auto cancelling = loop_.create_task(engine_->book().cancel(id));
    co_await sleep(500ms);
    cancelling.cancel();
    co_await sleep(5s);
    EXPECT_TRUE(co_await engine_->book().put(job("q", "next")));  // there is room again
    EXPECT_EQ(co_await payloads("q"), "next ");
  });
}

}  // namespace
}  // namespace argiope
