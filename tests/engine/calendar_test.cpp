// What a jump of the calendar does to times that are past, and to books that stay open beside the owner.
#include <gmock/gmock.h>

#include "argiope/engine/book.hpp"
#include "engine/broker_fixture.hpp"

namespace argiope {
namespace {

class CalendarTest : public BrokerTest {
 protected:
  WallTime now() const { return loop_.clock().wall_now(); }
  void jump(Duration by) { backend_.manual_clock().set_wall(now() + by); }
  Coro<JobRecord> record(JobId id) {
    auto found = co_await engine_->book().get(id);
    if (!found) throw std::runtime_error(found.error().message);
    co_return std::move(*found);
  }
};

TEST_F(CalendarTest, AJumpDoesNotMoveWhatIsPast) {
  for (const Duration by : {Duration{5h}, Duration{-7h}}) {
    JobId id = 0;
    WallTime created, ended;
    store_.reopen();
    with_broker([&]() -> Coro<void> {
      EXPECT_TRUE(co_await engine_->book().configure("q", {.keep_done = std::chrono::hours{1000}}));
      created = now();
      id = co_await put(job("q"));
      co_await sleep(10min);
      jump(by);
      co_await sleep(10min);
      EXPECT_EQ((co_await record(id)).created_at, created);
      ended = now();
      EXPECT_TRUE(co_await settle((co_await one("q")).token));
      jump(-2 * by);
      co_await sleep(10min);
      EXPECT_EQ((co_await record(id)).created_at, created);
      EXPECT_EQ((co_await record(id)).ended_at, ended);
      const JobId later = co_await put(delayed("q", 1h));
      EXPECT_EQ((co_await record(later)).due_at, now() + 1h);
      EXPECT_EQ((co_await record(later)).created_at, now());
      EXPECT_TRUE(co_await engine_->book().erase(later));
    });
    // The next owner and those beside him know of the jumps.
    store_.reopen();
    with_broker([&]() -> Coro<void> {
      EXPECT_EQ((co_await record(id)).created_at, created);
      EXPECT_EQ((co_await record(id)).ended_at, ended);
      auto beside = std::move(*co_await Book::open(store_));
      EXPECT_EQ((co_await beside.get(id))->created_at, created);
      EXPECT_EQ((co_await beside.get(id))->ended_at, ended);
    });
  }
}

TEST_F(CalendarTest, OfVeryManyJumpsTheLastAreRemembered) {
  with_broker([&]() -> Coro<void> {
    std::vector<std::pair<JobId, WallTime>> created;
    for (int i = 0; i < 100; ++i) {
      created.emplace_back(0, now());
      created.back().first = co_await put(job("q"));
      co_await sleep(1min);
      jump(i % 3 == 0 ? 1h : -20min);
      co_await sleep(1min);
    }
    for (std::size_t i = 37; i < created.size(); ++i) {
      EXPECT_EQ((co_await record(created[i].first)).created_at, created[i].second) << i;
    }
  });
}

TEST_F(CalendarTest, ABookThatStaysOpenPutsForTheTimeItIsAskedFor) {
  with_broker([&]() -> Coro<void> {
    auto beside = std::move(*co_await Book::open(store_));
    for (const Duration by : {Duration{5h}, Duration{-7h}}) {
      jump(by);
      // At once, before the owner has looked.
      const auto put = co_await beside.put(delayed("q", 1min));
      const JobId id = put->id;
      EXPECT_EQ((co_await beside.get(id))->due_at, (co_await record(id)).due_at);
      const Duration until = (co_await record(id)).due_at - now();
      EXPECT_LE(until, 1min);
      EXPECT_GT(until, 50s);
      EXPECT_LE(beside.job_now() - (*co_await store_.get(id))->created_at, 3s);
      co_await sleep(10min);
      EXPECT_EQ((co_await beside.get(id))->state, JobState::ready);
    }
  });
}

TEST_F(CalendarTest, WithoutAnOwnerAJumpIsTimeThatPasses) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    auto beside = std::move(*co_await Book::open(store_));
    jump(5h);
    const auto put = co_await beside.put(delayed("q", 1min));
    EXPECT_LE((*co_await store_.get(put->id))->due_at - now(), 1min);
    EXPECT_GT((*co_await store_.get(put->id))->due_at - now(), 50s);
  }));
}

}  // namespace
}  // namespace argiope
