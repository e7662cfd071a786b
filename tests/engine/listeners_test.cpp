// Listeners may remove themselves and others while they are told, add some, and throw.
#include "base/internal/listeners.hpp"

#include <gmock/gmock.h>

#include "argiope/engine/worker.hpp"
#include "engine/broker_fixture.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;

class ListenersTest : public testing::Test {
 protected:
  std::uint64_t add(int name, std::function<void()> act = {}, std::uint32_t mask = 1) {
    return listeners_.add(mask, [this, name, act = std::move(act)](const int&) {
      told_.push_back(name);
      if (act) act();
      told_.push_back(-name);  // what it has captured is there still
    });
  }
  std::vector<int> tell(std::uint32_t kind = 1) {
    told_.clear();
    listeners_.tell(kind, 0);
    return told_;
  }
  Listeners<int> listeners_;
  std::vector<int> told_;
};

TEST_F(ListenersTest, AreToldInTheOrderAddedOfWhatTheyAskedFor) {
  add(1);
  add(2, {}, 2);
  add(3, {}, 3);
  EXPECT_THAT(tell(1), ElementsAre(1, -1, 3, -3));
  EXPECT_THAT(tell(2), ElementsAre(2, -2, 3, -3));
  EXPECT_FALSE(listeners_.listens(4));
}

TEST_F(ListenersTest, OneThatRemovesItselfIsToldOnce) {
  std::uint64_t id = 0;
  id = add(1, [&] { listeners_.remove(id); });
  add(2);
  EXPECT_THAT(tell(), ElementsAre(1, -1, 2, -2));
  EXPECT_THAT(tell(), ElementsAre(2, -2));
}

TEST_F(ListenersTest, OneThatIsRemovedByAnotherIsNotToldAnyMore) {
  std::uint64_t third = 0;
  const std::uint64_t first = add(1);
  add(2, [&] {
    listeners_.remove(first);
    listeners_.remove(third);
  });
  third = add(3);
  EXPECT_THAT(tell(), ElementsAre(1, -1, 2, -2));
  EXPECT_THAT(tell(), ElementsAre(2, -2));
}

TEST_F(ListenersTest, OneThatIsAddedMeanwhileHearsTheNextEvent) {
  bool added = false;
  add(1, [&] {
    if (!std::exchange(added, true)) {
      for (int i = 0; i < 100; ++i) add(2);
    }
  });
  EXPECT_THAT(tell(), ElementsAre(1, -1));
  EXPECT_EQ(tell().size(), 202u);
}

TEST_F(ListenersTest, AllMayBeClearedByOneOfThemWithinAnother) {
  bool nested = false;
  add(1, [&] {
    if (!std::exchange(nested, true)) listeners_.tell(1, 0);
  });
  add(2, [&] { listeners_.clear(); });
  EXPECT_THAT(tell(), ElementsAre(1, 1, -1, 2, -2, -1));
  EXPECT_FALSE(listeners_.listens(1));
}

TEST_F(ListenersTest, WhatOneThrowsIsCountedAndTheOthersAreTold) {
  add(1, [] { throw std::runtime_error("broken"); });
  add(2, [] { throw 7; });
  add(3);
  EXPECT_THAT(tell(), ElementsAre(1, 2, 3, -3));
  EXPECT_EQ(listeners_.errors(), 2u);
}

class JobListenersTest : public BrokerTest {};

TEST_F(JobListenersTest, JobsGoOnWhateverAListenerThrows) {
  with_broker([&]() -> Coro<void> {
    engine_->add_listener(kAllJobEvents, [](const JobEvent&) { throw std::runtime_error("broken"); });
    std::vector<std::string> told;
    Engine::ListenerId id = 0;
    id = engine_->add_listener(static_cast<std::uint32_t>(JobEventKind::done), [&](const JobEvent& event) {
      told.emplace_back(to_string(event.kind));
      engine_->remove_listener(id);
    });
    for (int i = 0; i < 3; ++i) co_await put(job("q"));
    Worker worker(*engine_, {.queues = {"q"}, .until_empty = true});
    worker.add("q", [](JobContext& context) -> Coro<void> {
      context.progress(0.5);
      co_return;
    });
    EXPECT_TRUE(co_await worker.run());
    EXPECT_EQ(worker.counts().done, 3u);
    EXPECT_THAT(told, ElementsAre("done"));
    EXPECT_GE(engine_->listener_errors(), 12u);  // added, leased, progress and done of each
    EXPECT_EQ(co_await payloads("q"), "");
  });
}

TEST_F(JobListenersTest, WhoeverIsAskedToStopMayThrow) {
  with_broker([&]() -> Coro<void> {
    const JobId id = co_await put(job("q"));
    LeaseCall call{.queues = {"q"}, .worker = "w"};
    call.on_cancel = [](std::uint64_t) { throw std::runtime_error("broken"); };
    const auto leased = co_await engine_->lease_now(std::move(call));
    EXPECT_TRUE(co_await engine_->book().cancel(id));
    EXPECT_TRUE(co_await settle(leased->at(0).token, {.outcome = Outcome::retry}));
    EXPECT_EQ((co_await engine_->book().get(id)).error().code, Errc::not_found);
  });
}

}  // namespace
}  // namespace argiope
