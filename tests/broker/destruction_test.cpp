// A broker, a worker or a guest may be destroyed at any moment, with calls under way and without close().
#include <gmock/gmock.h>

#include "argiope/async/waiting.hpp"
#include "argiope/engine/guest.hpp"
#include "argiope/engine/worker.hpp"
#include "broker/broker_fixture.hpp"
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

// Every call of a broker is under way when it is destroyed, and its store right after it, at each step of theirs.
TEST_F(DestructionTest, ABrokerMayBeDestroyedWithEveryCallUnderWay) {
  for (std::size_t steps = 0; steps < 60; ++steps) {
    inner_ = std::make_unique<MemoryStore>();
    store_ = std::make_unique<SlowStore>(*inner_);
    Errors errors;
    std::size_t calls = 0;
    loop_.run_until_complete(keeping([&]() -> Coro<void> {
      auto broker = std::move(*co_await Broker::open(*store_));
      EXPECT_TRUE(co_await broker->configure("full", {.capacity = 1, .at_capacity = CapacityPolicy::wait}));
      EXPECT_TRUE(co_await broker->put(job("full")));
      EXPECT_TRUE(co_await broker->put_all({job(), job(), job()}));
      const auto leased = co_await broker->lease_now({.queues = {"q"}, .most = 2, .worker = "w"});
      store_->delay = 1s;
      const auto start = [&](auto call) {
        loop_.create_task(told(std::move(call), errors));
        ++calls;
      };
      start(broker->put(job()));
      start(broker->put(job("new")));
      start(broker->put(job("full")));
      start(broker->put_all({job(), job("full"), job("newer")}));
      start(broker->put_batch({job()}, job()));
      start(broker->lease({.queues = {"nothing here"}}));
      start(broker->lease({.queues = {"q"}, .most = 5}));
      start(broker->lease_now({.queues = {"q"}}));
      start(broker->settle(leased->at(0).token, {}));
      Verdict followed;
      followed.follow_ups.push_back(job("newest"));
      start(broker->settle(leased->at(1).token, std::move(followed)));
      start(broker->cancel(leased->at(1).job.id, {}));
      start(broker->cancel(4, {}));
      start(broker->set_priority(4, 7));
      start(broker->configure("q", {}));
      start(broker->pause("q"));
      start(broker->get(1));
      start(broker->explain(4));
      start(broker->counts());
      start(broker->worker_gone("w"));
      start(broker->fire({}));
      start(broker->erase(3));
      for (std::size_t i = 0; i < steps; ++i) {
        if (i % 10 == 9) {
          co_await sleep(300ms);
        } else {
          co_await yield_now();
        }
      }
      broker.reset();
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

TEST_F(DestructionTest, ABrokerThatIsUnwoundByAnExceptionLeavesTheLoopGoing) {
  bool worked = false;
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    Task<Result<PutReply>> putting;
    Task<Result<std::vector<LeasedJob>>> leasing;
    try {
      auto broker = std::move(*co_await Broker::open(*store_));
      store_->delay = 1s;
      leasing = loop_.create_task(broker->lease({.queues = {"q"}}));
      co_await sleep(2s);
      putting = loop_.create_task(broker->put(job()));
      throw std::runtime_error("something else");
    } catch (const std::runtime_error&) {
      worked = true;
    }
    EXPECT_EQ((co_await putting).error().code, Errc::cancelled);  // it had not begun
    EXPECT_TRUE((co_await leasing)->empty());
  }));
  EXPECT_TRUE(worked);
}

TEST_F(DestructionTest, ABrokerMayOutliveItsLoop) {
  std::unique_ptr<Broker> broker;
  {
    VirtualBackend backend;
    EventLoop loop(backend);
    loop.run_until_complete(keeping([&]() -> Coro<void> {
      broker = std::move(*co_await Broker::open(*store_));
      store_->delay = 1s;
      loop.create_task(broker->put(job()));
      loop.create_task(broker->lease({.queues = {"q"}}));
      co_await sleep(100ms);
    }));
  }
  broker.reset();
}

TEST_F(DestructionTest, AListenerMayDestroyItsBroker) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    auto broker = std::move(*co_await Broker::open(*store_));
    int told_of = 0;
    broker->add_listener(kAllJobEvents, [&](const JobEvent&) {
      ++told_of;
      broker.reset();
    });
    broker->add_listener(kAllJobEvents, [&](const JobEvent&) { ++told_of; });
    Broker& same = *broker;
    (void)co_await same.put_all({job(), job()});
    EXPECT_EQ(told_of, 1);
  }));
}

TEST_F(DestructionTest, AWorkerThatIsDestroyedGivesItsJobsBack) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    auto broker = std::move(*co_await Broker::open(*store_));
    (void)co_await broker->put(job());
    auto worker = std::make_unique<Worker>(*broker, WorkerOptions{.queues = {"q"}});
    worker->add("q", [](JobContext&) -> Coro<void> { co_await sleep(1h); });
    auto working = loop_.create_task(worker->run());
    co_await sleep(1s);
    worker.reset();
    EXPECT_TRUE(co_await working);
    const auto again = co_await broker->lease_now({.queues = {"q"}});
    EXPECT_EQ(again->at(0).attempt, 1u);
    EXPECT_TRUE(co_await broker->close());
  }));
}

TEST_F(DestructionTest, AWorkerWhoseBrokerIsDestroyedEnds) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    auto broker = std::move(*co_await Broker::open(*store_));
    (void)co_await broker->put(job());
    Worker worker(*broker, {.queues = {"q"}});
    worker.add("q", [](JobContext& context) -> Coro<void> {
      co_await sleep(5s);
      context.progress(0.5);
    });
    auto working = loop_.create_task(worker.run());
    co_await sleep(1s);
    broker.reset();
    store_.reset();
    inner_.reset();
    co_await working;
    EXPECT_LE(loop_.time(), TimePoint{} + 20s);
  }));
}

TEST_F(DestructionTest, AGuestMayBeDestroyedOrMovedWithCallsUnderWay) {
  for (std::size_t steps = 0; steps < 30; ++steps) {
    inner_ = std::make_unique<MemoryStore>();
    store_ = std::make_unique<SlowStore>(*inner_);
    Errors errors;
    loop_.run_until_complete(keeping([&]() -> Coro<void> {
      auto guest = std::make_unique<Guest>(std::move(*co_await Guest::open(*store_)));
      store_->delay = 1s;
      const auto start = [&](auto call) { loop_.create_task(told(std::move(call), errors)); };
      start(guest->put({job(), job("other")}));
      start(guest->change({{.id = 1, .kind = ChangeKind::cancel}}));
      start(guest->get(1));
      start(guest->list({}));
      start(guest->counts());
      start(guest->explain(1, false));
      start(guest->history(1));
      for (std::size_t i = 0; i < steps; ++i) {
        if (i % 5 == 4) {
          co_await sleep(300ms);
        } else {
          co_await yield_now();
        }
        if (i == 3) guest = std::make_unique<Guest>(std::move(*guest));
      }
      guest.reset();
      store_.reset();
      inner_.reset();
      co_await sleep(1min);
      EXPECT_EQ(errors.size(), 7u);
    }));
  }
}

}  // namespace
}  // namespace argiope
