// An engine, a worker or a book may be destroyed at any moment, with calls under way and without close().
#include <gmock/gmock.h>

#include "argiope/async/group.hpp"
#include "argiope/engine/book.hpp"
#include "argiope/engine/worker.hpp"
#include "engine/broker_fixture.hpp"
#include "support/open_engine.hpp"
#include "support/slow_store.hpp"

namespace argiope {
namespace {

using Errors = std::vector<std::string>;

class DestructionTest : public OnVirtualLoop {
 protected:
  static NewJob job(std::string queue = "q") {
    NewJob made;
    made.queue = std::move(queue);
    return made;
  }
  template <class T>
  static Coro<void> told(Coro<Result<T>> call, Errors& errors) {
    const auto answer = co_await std::move(call);
    errors.push_back(answer ? "" : std::string(to_string(answer.error().code)));
  }

  std::unique_ptr<MemoryStore> inner_ = std::make_unique<MemoryStore>();
  std::unique_ptr<SlowStore> store_ = std::make_unique<SlowStore>(*inner_);
};

// Every call of an engine is under way when it is destroyed, and its store right after it, at each step of theirs.
TEST_F(DestructionTest, AnEngineMayBeDestroyedWithEveryCallUnderWay) {
  for (std::size_t steps = 0; steps < 60; ++steps) {
    inner_ = std::make_unique<MemoryStore>();
    store_ = std::make_unique<SlowStore>(*inner_);
    Errors errors;
    std::size_t calls = 0;
    loop_.run_until_complete(keeping([&]() -> Coro<void> {
      auto engine = co_await open_engine(*store_);
      EXPECT_TRUE(co_await engine->book().configure("full", {.capacity = 1, .at_capacity = CapacityPolicy::wait}));
      EXPECT_TRUE(co_await engine->book().put(job("full")));
      EXPECT_TRUE(co_await engine->book().put_all({job(), job(), job()}));
      const auto leased = co_await engine->lease_now({.queues = {"q"}, .most = 2, .worker = "w"});
      store_->delay = 1s;
      const auto start = [&](auto call) {
        loop_.create_task(told(std::move(call), errors));
        ++calls;
      };
      start(engine->book().put(job()));
      start(engine->book().put(job("new")));
      start(engine->book().put(job("full")));
      start(engine->book().put_all({job(), job("full"), job("newer")}));
      start(engine->book().put_batch({job()}, job()));
      start(engine->lease({.queues = {"nothing here"}}));
      start(engine->lease({.queues = {"q"}, .most = 5}));
      start(engine->lease_now({.queues = {"q"}}));
      start(engine->settle(leased->at(0).token, {}));
      Verdict followed;
      followed.follow_ups.push_back(job("newest"));
      start(engine->settle(leased->at(1).token, std::move(followed)));
      start(engine->book().cancel(leased->at(1).job.id, {}));
      start(engine->book().cancel(4, {}));
      start(engine->book().set_priority(4, 7));
      start(engine->book().configure("q", {}));
      start(engine->book().pause("q"));
      start(engine->book().get(1));
      start(engine->book().output(1, {.wait = 1h}));
      start(engine->book().explain(4));
      start(engine->book().counts());
      start(engine->worker_gone("w"));
      start(engine->fire({}));
      start(engine->book().erase(3));
      for (std::size_t i = 0; i < steps; ++i) {
        if (i % 10 == 9) {
          co_await sleep(300ms);
        } else {
          co_await yield_now();
        }
      }
      engine.reset();
      store_.reset();
      inner_.reset();
      co_await sleep(1min);
      EXPECT_EQ(errors.size(), calls) << "after " << steps << " steps";
      for (const std::string& error : errors) {
        EXPECT_THAT(error, testing::AnyOf("", "cancelled", "not_found", "refused")) << "after " << steps << " steps";
      }
    }));
  }
}

// It waits for the store, then for news, and for the store again.
TEST_F(DestructionTest, AFollowerOfOutputMayBeCancelledOrLoseItsEngineAtAnyStep) {
  for (const bool is_cancelled : {true, false}) {
    for (std::size_t steps = 0; steps < 30; ++steps) {
      inner_ = std::make_unique<MemoryStore>();
      store_ = std::make_unique<SlowStore>(*inner_);
      loop_.run_until_complete(keeping([&]() -> Coro<void> {
        auto engine = co_await open_engine(*store_);
        EXPECT_TRUE(co_await engine->book().put(job()));
        const auto leased = co_await engine->lease_now({.queues = {"q"}, .worker = "w"});
        const auto tell = [&] { EXPECT_TRUE(engine->set_progress(leased->at(0).token, 0.5, "half")); };
        store_->delay = 1s;
        auto following = loop_.create_task(engine->book().output(1, {.run = 1, .wait = 1h}));
        for (std::size_t i = 0; i < steps; ++i) {
          if (i % 5 == 4) {
            co_await sleep(300ms);
          } else {
            co_await yield_now();
          }
          if (i == 22) tell();
        }
        if (is_cancelled) {
          following.cancel();
          tell();
          co_await sleep(10s);
          EXPECT_TRUE(following.cancelled()) << "after " << steps << " steps";
          tell();
        }
        engine.reset();
        store_.reset();
        inner_.reset();
        co_await sleep(10s);
        EXPECT_TRUE(following.done()) << "after " << steps << " steps";
        if (!is_cancelled && following.done()) {
          EXPECT_EQ((co_await following).error().code, Errc::cancelled) << "after " << steps << " steps";
        }
      }));
    }
  }
}

TEST_F(DestructionTest, AnEngineThatIsUnwoundByAnExceptionLeavesTheLoopGoing) {
  bool worked = false;
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    Task<Result<PutReply>> putting;
    Task<Result<std::vector<LeasedJob>>> leasing;
    try {
      auto engine = co_await open_engine(*store_);
      store_->delay = 1s;
      leasing = loop_.create_task(engine->lease({.queues = {"q"}}));
      co_await sleep(2s);
      putting = loop_.create_task(engine->book().put(job()));
      throw std::runtime_error("something else");
    } catch (const std::runtime_error&) {
      worked = true;
    }
    EXPECT_EQ((co_await putting).error().code, Errc::cancelled);  // it had not begun
    EXPECT_TRUE((co_await leasing)->empty());
  }));
  EXPECT_TRUE(worked);
}

TEST_F(DestructionTest, AnEngineMayOutliveItsLoop) {
  std::unique_ptr<Engine> engine;
  {
    VirtualBackend backend;
    EventLoop loop(backend);
    loop.run_until_complete(keeping([&]() -> Coro<void> {
      engine = co_await open_engine(*store_);
      store_->delay = 1s;
      loop.create_task(engine->book().put(job()));
      loop.create_task(engine->lease({.queues = {"q"}}));
      co_await sleep(100ms);
    }));
  }
  engine.reset();
}

TEST_F(DestructionTest, AListenerMayDestroyItsEngine) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    auto engine = co_await open_engine(*store_);
    int told_of = 0;
    engine->add_listener(kAllJobEvents, [&](const JobEvent&) {
      ++told_of;
      engine.reset();
    });
    engine->add_listener(kAllJobEvents, [&](const JobEvent&) { ++told_of; });
    (void)co_await engine->book().put_all({job(), job()});
    EXPECT_EQ(told_of, 1);
  }));
}

TEST_F(DestructionTest, AWorkerThatIsDestroyedGivesItsJobsBack) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    auto engine = co_await open_engine(*store_);
    (void)co_await engine->book().put(job());
    auto worker = std::make_unique<Worker>(*engine, WorkerOptions{.queues = {"q"}});
    worker->add("q", [](JobContext&) -> Coro<void> { co_await sleep(1h); });
    auto working = loop_.create_task(worker->run());
    co_await sleep(1s);
    worker.reset();
    EXPECT_TRUE(co_await working);
    const auto again = co_await engine->lease_now({.queues = {"q"}});
    EXPECT_EQ(again->at(0).attempt, 1u);
    EXPECT_TRUE(co_await engine->close());
  }));
}

TEST_F(DestructionTest, AWorkerWhoseEngineIsDestroyedEnds) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    auto engine = co_await open_engine(*store_);
    (void)co_await engine->book().put(job());
    Worker worker(*engine, {.queues = {"q"}});
    worker.add("q", [](JobContext& context) -> Coro<void> {
      co_await sleep(5s);
      context.progress(0.5);
    });
    auto working = loop_.create_task(worker.run());
    co_await sleep(1s);
    engine.reset();
    store_.reset();
    inner_.reset();
    (void)co_await working;
    EXPECT_LE(loop_.time(), TimePoint{} + 20s);
  }));
}

TEST_F(DestructionTest, ABookBesideTheOwnerMayBeDestroyedOrMovedWithCallsUnderWay) {
  for (std::size_t steps = 0; steps < 30; ++steps) {
    inner_ = std::make_unique<MemoryStore>();
    store_ = std::make_unique<SlowStore>(*inner_);
    Errors errors;
    loop_.run_until_complete(keeping([&]() -> Coro<void> {
      auto book = std::make_unique<Book>(std::move(*co_await Book::open(*store_)));
      store_->delay = 1s;
      const auto start = [&](auto call) { loop_.create_task(told(std::move(call), errors)); };
      start(book->put_each({job(), job("other")}));
      start(book->put_all({job(), job("third")}));
      start(book->change({{.id = 1, .kind = ChangeKind::cancel}}));
      start(book->get(1));
      start(book->list({}));
      start(book->counts());
      start(book->explain(1));
      start(book->history(1));
      for (std::size_t i = 0; i < steps; ++i) {
        if (i % 5 == 4) {
          co_await sleep(300ms);
        } else {
          co_await yield_now();
        }
        if (i == 3) book = std::make_unique<Book>(std::move(*book));
      }
      book.reset();
      store_.reset();
      inner_.reset();
      co_await sleep(1min);
      EXPECT_EQ(errors.size(), 8u);
    }));
  }
}

}  // namespace
}  // namespace argiope
