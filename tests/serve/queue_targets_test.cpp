// The queues whose jobs the daemon runs itself: set, set anew, and stopped.
#include "serve/internal/queue_targets.hpp"

#include <gtest/gtest.h>

#include "argiope/async/event_loop.hpp"
#include "support/loop_fixture.hpp"
#include "support/open_engine.hpp"

namespace argiope {
namespace {

class QueueTargetsTest : public OnVirtualLoop {
 public:  // for the coroutines of its tests
  using Act = Coro<void> (*)(QueueTargetsTest& test, Engine& engine, QueueTargets& targets);
  void run(Act act) {
    loop_.run_until_complete([](QueueTargetsTest& test, Act what) -> Coro<void> {
      auto store = open_store("memory:");
      auto engine = co_await open_engine(*store.value(), {.new_queue = {.keep_done = 1h}});
      QueueTargets targets(*engine, "here", 10s);
      co_await what(test, *engine, targets);
      co_await targets.stop();
      EXPECT_TRUE(co_await engine->close());
    }(*this, act));
  }
  // Runs jobs of `queue` by sleeping so long.
  QueueTarget sleeper(std::string queue, Duration time, std::string made_from = "a") {
    return {.queue = std::move(queue),
            .workers = 1,
            .run = [this, time](JobContext&) { return sleep_and_count(time); },
            .made_from = std::move(made_from)};
  }
  Coro<void> sleep_and_count(Duration time) {
    ++begun;
    co_await sleep(time);
    ++ended;
  }
  static Coro<void> put(Engine& engine, std::string queue) {
    EXPECT_TRUE(co_await engine.book().put({.queue = std::move(queue)}));
  }

  int begun = 0, ended = 0;
};

TEST_F(QueueTargetsTest, RunTheJobsOfTheirQueues) {
  run([](QueueTargetsTest& test, Engine& engine, QueueTargets& targets) -> Coro<void> {
    std::vector<QueueTarget> wanted;
    wanted.push_back(test.sleeper("a", 1s));
    wanted.push_back(test.sleeper("b", 1s));
    targets.set(std::move(wanted));
    for (const char* queue : {"a", "b", "c"}) co_await put(engine, queue);
    co_await sleep(5s);
    EXPECT_EQ(test.ended, 2) << "c has no target";
  });
}

TEST_F(QueueTargetsTest, AreLeftAloneWhereTheyAreTheSameAndReplacedWhereNot) {
  run([](QueueTargetsTest& test, Engine& engine, QueueTargets& targets) -> Coro<void> {
    const auto set = [&](std::string made_from) {
      std::vector<QueueTarget> wanted;
      wanted.push_back(test.sleeper("a", 8s, std::move(made_from)));
      targets.set(std::move(wanted));
    };
    set("one");
    co_await put(engine, "a");
    co_await put(engine, "a");
    co_await sleep(1s);
    set("one");
    co_await sleep(1s);
    EXPECT_EQ(test.begun, 1) << "one worker, as before";
    set("two");
    co_await sleep(1s);
    EXPECT_EQ(test.begun, 2) << "the new one begins while the old one ends";
    co_await sleep(10s);
    EXPECT_EQ(test.ended, 2);
    targets.set({});
    co_await put(engine, "a");
    co_await sleep(10s);
    EXPECT_EQ(test.begun, 2);
  });
}

TEST_F(QueueTargetsTest, LetTheirRunsEndWithinTheDrainLimit) {
  run([](QueueTargetsTest& test, Engine& engine, QueueTargets& targets) -> Coro<void> {
    std::vector<QueueTarget> wanted;
    wanted.push_back(test.sleeper("short", 5s));
    wanted.push_back(test.sleeper("long", 1h));
    targets.set(std::move(wanted));
    for (const char* queue : {"short", "long"}) co_await put(engine, queue);
    co_await sleep(1s);
    const TimePoint start = EventLoop::current().time();
    co_await targets.stop();
    EXPECT_EQ(EventLoop::current().time() - start, 10s);
    EXPECT_EQ(test.ended, 1);
    EXPECT_EQ(value_or_throw(co_await engine.book().get(2)).state, JobState::ready) << "given back";
  });
}

TEST_F(QueueTargetsTest, GiveBackAtOnceWhenTheyAreHurriedEvenBeforeTheyStop) {
  run([](QueueTargetsTest& test, Engine& engine, QueueTargets& targets) -> Coro<void> {
    std::vector<QueueTarget> wanted;
    wanted.push_back(test.sleeper("long", 1h));
    targets.set(std::move(wanted));
    co_await put(engine, "long");
    co_await sleep(1s);
    const TimePoint start = EventLoop::current().time();
    targets.hurry();
    co_await targets.stop();
    EXPECT_EQ(EventLoop::current().time(), start);
    const JobRecord job = value_or_throw(co_await engine.book().get(1));
    EXPECT_EQ(job.state, JobState::ready);
    EXPECT_EQ(job.attempts, 0u);
  });
}

TEST_F(QueueTargetsTest, ThatCannotWorkLeaveTheirJobsAloneAndTryAgain) {
  run([](QueueTargetsTest& test, Engine& engine, QueueTargets& targets) -> Coro<void> {
    QueueTarget broken = test.sleeper("a", 1s);
    broken.run = [&test](JobContext&) -> Coro<void> {
      if (++test.begun == 1) throw WorkerUnfit("no such program");
      return test.sleep_and_count(1s);
    };
    std::vector<QueueTarget> wanted;
    wanted.push_back(std::move(broken));
    targets.set(std::move(wanted));
    co_await put(engine, "a");
    co_await sleep(5s);
    EXPECT_EQ(targets.troubles().size(), 1u);
    EXPECT_EQ(targets.troubles().at(0).text, "no such program");
    co_await sleep(10s);
    EXPECT_EQ(test.ended, 1);
    EXPECT_TRUE(targets.troubles().empty());
  });
}

}  // namespace
}  // namespace argiope
