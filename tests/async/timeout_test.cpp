#include <stdexcept>
#include <string>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/queue.hpp"
#include "argiope/async/sync.hpp"
#include "support/cancellation_sweep.hpp"
#include "support/give.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

class TimeoutTest : public InSomeWorld {};
INSTANTIATE_TEST_SUITE_P(AllWorlds, TimeoutTest, kAllWorlds, world_name);

template <class T>
Coro<bool> times_out(Coro<T> coro) {
  try {
    co_await std::move(coro);
  } catch (const TimeoutError&) {
    co_return true;
  }
  co_return false;
}

TEST_P(TimeoutTest, GivesTheResultThatComesInTime) {
  EXPECT_EQ(this->run([]() -> Coro<int> { co_return co_await wait_for(give_after(1ms, 5), 1h); }), 5);
  EXPECT_EQ(this->loop.next_deadline(), kNever) << "the deadline is taken back";
}

TEST_P(TimeoutTest, ThrowsTimeoutErrorAndCancelsWhatRan) {
  std::string cleaned_up;
  this->run([&]() -> Coro<void> {
    const auto body = [&]() -> Coro<void> {
      try {
        co_await sleep(1h);
      } catch (const CancelledError&) {
        cleaned_up = "yes";
        throw;
      }
    };
    EXPECT_TRUE(co_await times_out(wait_for(body(), 1ms)));
  });
  EXPECT_EQ(cleaned_up, "yes");
}

TEST_P(TimeoutTest, LeavesTheTaskUncancelled) {
  Task<void> task;
  this->run([&]() -> Coro<void> {
    task = this->spawn([&]() -> Coro<void> {
      EXPECT_TRUE(co_await times_out(wait_for(sleep_for(1h), 1ms)));
      EXPECT_EQ(task.cancelling(), 0);
      co_await sleep(1ms);
    });
    co_await task;
  });
}

TEST_P(TimeoutTest, PassesOnOtherExceptions) {
  this->run([]() -> Coro<void> {
    const auto body = []() -> Coro<void> {
      co_await yield_now();
      throw std::runtime_error("other");
    };
    bool other = false;
    try {
      co_await wait_for(body(), 1h);
    } catch (const std::runtime_error& error) {
      other = std::string(error.what()) == "other";
    }
    EXPECT_TRUE(other);
  });
}

TEST_P(TimeoutTest, ACancellationFromOutsideStaysACancellation) {
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([]() -> Coro<void> { co_await wait_for(sleep_for(1h), 2h); });
    co_await let_others_run();
    task.cancel("outside");
    std::string caught;
    try {
      co_await task;
    } catch (const CancelledError& error) {
      caught = error.what();
    }
    EXPECT_EQ(caught, "outside");
  });
}

TEST_P(TimeoutTest, ACancellationThatComesWithTheDeadlineWins) {
  this->run([&]() -> Coro<void> {
    const TimePoint when = this->loop.time() + 1ms;
    // Both wait before a turn of the loop begins, so that one turn meets both, however late it is.
    Task<void> task = this->spawn(
        [&]() -> Coro<void> {
          Timeout timeout(when);
          co_await timeout.run(sleep_for(1h));
        },
        {}, Start::eagerly);
    this->loop.call_at(when, [task]() mutable { task.cancel(); });
    bool cancelled = false;
    try {
      co_await task;
    } catch (const CancelledError&) {
      cancelled = true;
    }
    EXPECT_TRUE(cancelled);
    EXPECT_EQ(task.cancelling(), 1);
  });
}

TEST_P(TimeoutTest, AZeroLimitLetsRunWhatNeedsNoWaiting) {
  this->run([]() -> Coro<void> {
    EXPECT_EQ(co_await wait_for(give(3), 0ms), 3);
    EXPECT_TRUE(co_await times_out(wait_for(sleep_for(1h), 0ms)));
    EXPECT_TRUE(co_await times_out(wait_for(sleep_for(1h), -1h)));
  });
}

TEST_P(TimeoutTest, AnEndlessLimitNeverStrikes) {
  this->run([]() -> Coro<void> {
    EXPECT_EQ(co_await wait_for(give_after(1ms, 1), Duration::max()), 1);
    Timeout timeout(kNever);
    EXPECT_EQ(co_await timeout.run(give_after(1ms, 2)), 2);
    EXPECT_FALSE(timeout.expired());
  });
}

TEST_P(TimeoutTest, OfTwoTimersOfOneInstantTheOneArmedFirstDecides) {
  this->run([&]() -> Coro<void> {
    const TimePoint when = this->loop.time() + 1ms;
    const auto sleep_to_it = [when]() -> Coro<void> { co_await sleep_until(when); };
    Timeout first(when);
    EXPECT_TRUE(co_await times_out(first.run(sleep_to_it())));

    const TimePoint later = this->loop.time() + 1ms;
    Timeout second(kNever);
    this->loop.call_soon([&] { second.reschedule(later); });
    const auto sleep_to_later = [later]() -> Coro<void> { co_await sleep_until(later); };
    EXPECT_FALSE(co_await times_out(second.run(sleep_to_later())));
  });
}

TEST_P(TimeoutTest, AnItemHandedOverAsTheDeadlineStrikesIsNotLost) {
  this->run([&]() -> Coro<void> {
    Queue<int> queue;
    const TimePoint when = this->loop.time() + 1ms;
    this->loop.call_at(when, [&] { queue.put_nowait(7); });
    const auto take = [&]() -> Coro<int> { co_return co_await queue.get(); };
    auto task = this->spawn([&]() -> Coro<void> {
      Timeout timeout(when);
      EXPECT_TRUE(co_await times_out(timeout.run(take())));
      EXPECT_TRUE(timeout.expired());
      EXPECT_EQ(current_task().cancelling(), 0);
      co_await yield_now();
    });
    co_await task;
    EXPECT_EQ(queue.qsize(), 1u);
    EXPECT_EQ(queue.get_nowait(), 7);
  });
}

TEST_P(TimeoutTest, AnItemPutAsTheDeadlineStrikesIsNoTimeout) {
  this->run([&]() -> Coro<void> {
    Queue<int> queue(1);
    queue.put_nowait(1);
    const TimePoint when = this->loop.time() + 1ms;
    this->loop.call_at(when, [&] { EXPECT_EQ(queue.get_nowait(), 1); });
    const auto put = [&]() -> Coro<void> { co_await queue.put(2); };
    auto task = this->spawn([&]() -> Coro<void> {
      EXPECT_FALSE(co_await times_out(Timeout(when).run(put()))) << "it has been put";
      co_await yield_now();
    });
    co_await task;
    EXPECT_EQ(queue.get_nowait(), 2);
  });
}

TEST_P(TimeoutTest, TheInnerOfTwoStrikesFirst) {
  this->run([]() -> Coro<void> {
    bool inner = false;
    const auto body = [&]() -> Coro<void> {
      inner = co_await times_out(wait_for(sleep_for(1h), 1ms));
      co_await yield_now();
    };
    EXPECT_FALSE(co_await times_out(wait_for(body(), 1h)));
    EXPECT_TRUE(inner);
  });
}

TEST_P(TimeoutTest, TheOuterOfTwoStrikesThroughTheInner) {
  this->run([]() -> Coro<void> {
    bool inner = false;
    const auto body = [&]() -> Coro<void> { inner = co_await times_out(wait_for(sleep_for(1h), 2h)); };
    EXPECT_TRUE(co_await times_out(wait_for(body(), 1ms)));
    EXPECT_FALSE(inner);
  });
}

TEST_P(TimeoutTest, TwoThatStrikeAtOneInstantAreTheOuters) {
  this->run([&]() -> Coro<void> {
    const TimePoint when = this->loop.time() + 1ms;
    bool inner = false;
    const auto body = [&]() -> Coro<void> {
      Timeout timeout(when);
      inner = co_await times_out(timeout.run(sleep_for(1h)));
    };
    Timeout outer(when);
    EXPECT_TRUE(co_await times_out(outer.run(body())));
    EXPECT_FALSE(inner) << "its cancellation could not be told from the outer one's";
  });
}

TEST_P(TimeoutTest, CanBeMovedWhileItRuns) {
  this->run([&]() -> Coro<void> {
    Timeout timeout(this->loop.time() + 1h);
    const auto body = [&]() -> Coro<void> {
      co_await yield_now();
      timeout.reschedule(this->loop.time() + 1ms);
      co_await sleep(1h);
    };
    EXPECT_TRUE(co_await times_out(timeout.run(body())));
    EXPECT_TRUE(timeout.expired());
    EXPECT_THROW(timeout.reschedule(kNever), std::logic_error);
  });
}

TEST_P(TimeoutTest, CannotBeMovedOnceItHasStruck) {
  this->run([&]() -> Coro<void> {
    Timeout timeout(this->loop.time() + 1ms);
    bool refused = false;
    const auto body = [&]() -> Coro<void> {
      try {
        co_await sleep(1h);
      } catch (const CancelledError&) {
      }
      try {
        timeout.reschedule(kNever);
      } catch (const std::logic_error&) {
        refused = true;
      }
      co_return;
    };
    EXPECT_FALSE(co_await times_out(timeout.run(body())));
    EXPECT_TRUE(refused);
    EXPECT_TRUE(timeout.expired());
  });
}

TEST_P(TimeoutTest, CanBePutOffBeforeItStrikes) {
  this->run([&]() -> Coro<void> {
    Timeout timeout(this->loop.time() + 1ms);
    timeout.reschedule(this->loop.time() + 1h);
    EXPECT_EQ(co_await timeout.run(give_after(2ms, 4)), 4);
    Timeout endless(this->loop.time() + 1ms);
    const auto body = [&]() -> Coro<void> {
      endless.reschedule(kNever);
      co_await sleep(1ms);
    };
    co_await endless.run(body());
    EXPECT_EQ(endless.when(), kNever);
  });
}

TEST_P(TimeoutTest, DoesNotRunTwiceAtOnce) {
  this->run([&]() -> Coro<void> {
    Timeout timeout(kNever);
    bool refused = false;
    const auto body = [&]() -> Coro<void> {
      try {
        co_await timeout.run(sleep_for(1ms));
      } catch (const std::logic_error&) {
        refused = true;
      }
    };
    co_await timeout.run(body());
    EXPECT_TRUE(refused);
  });
}

TEST_P(TimeoutTest, DoesNotRunForTwoTasksAndTheFirstIsNotDisturbed) {
  this->run([&]() -> Coro<void> {
    Timeout timeout(this->loop.time() + 2ms);
    auto first = this->spawn([&]() -> Coro<void> { EXPECT_TRUE(co_await times_out(timeout.run(sleep_for(1h)))); });
    co_await let_others_run();
    auto second = this->spawn([&]() -> Coro<void> { co_await timeout.run(sleep_for(1ms)); });
    while (!second.done()) co_await yield_now();
    EXPECT_THROW(second.result(), std::logic_error);
    co_await first;
  });
}

TEST_P(TimeoutTest, DoesNotRunAgainHoweverTheFirstRunEnded) {
  this->run([&]() -> Coro<void> {
    Timeout in_time(this->loop.time() + 1h), too_late(this->loop.time() + 1ms);
    co_await in_time.run(sleep_for(1ms));
    EXPECT_TRUE(co_await times_out(too_late.run(sleep_for(1h))));
    for (Timeout* timeout : {&in_time, &too_late}) {
      bool refused = false;
      try {
        co_await timeout->run(sleep_for(1ms));
      } catch (const std::logic_error& error) {
        refused = true;
        EXPECT_STREQ(error.what(), "this Timeout has run already: every run() needs one of its own");
      }
      EXPECT_TRUE(refused);
      EXPECT_THROW(timeout->reschedule(kNever), std::logic_error);
    }
  });
}

TEST_P(TimeoutTest, ABodyThatSwallowsTheCancellationGivesItsResult) {
  this->run([]() -> Coro<void> {
    const auto body = []() -> Coro<int> {
      try {
        co_await sleep(1h);
      } catch (const CancelledError&) {
      }
      co_await yield_now();
      co_return 6;
    };
    EXPECT_EQ(co_await wait_for(body(), 1ms), 6);
  });
}

TEST_P(TimeoutTest, GoesByTheNamesOfAsyncio) {
  this->run([&]() -> Coro<void> {
    auto relative = timeout(1ms);
    EXPECT_TRUE(co_await times_out(relative.run(sleep_for(1h))));
    EXPECT_TRUE(relative.expired());
    const TimePoint when = this->loop.time() + 1ms;
    auto absolute = timeout_at(when);
    EXPECT_TRUE(co_await times_out(absolute.run(sleep_for(1h))));
    EXPECT_TRUE(absolute.expired());
    EXPECT_EQ(absolute.when(), when);
    auto unused = timeout(1h);
    EXPECT_FALSE(co_await times_out(unused.run(sleep_for(1ms))));
    EXPECT_FALSE(unused.expired());
    auto disabled = timeout_at(kNever);
    EXPECT_FALSE(co_await times_out(disabled.run(sleep_for(1ms))));
    EXPECT_FALSE(disabled.expired());
  });
}

TEST_P(TimeoutTest, ADeadlineThatHasComeStrikesAtAMereYield) {
  this->run([]() -> Coro<void> {
    const auto body = []() -> Coro<void> { co_await yield_now(); };
    for (const Duration limit : {Duration{0}, Duration{-11s}}) {
      EXPECT_TRUE(co_await times_out(wait_for(body(), limit)));
    }
  });
}

TEST_P(TimeoutTest, AnExceptionOfTheCleanUpIsThrownInItsPlace) {
  this->run([]() -> Coro<void> {
    const auto crash = []() -> Coro<void> {
      try {
        co_await sleep(1h);
      } catch (const CancelledError&) {
        throw std::runtime_error("clean-up");
      }
    };
    std::string what;
    try {
      co_await wait_for(crash(), 1ms);
    } catch (const std::runtime_error& error) {
      what = error.what();
    }
    EXPECT_EQ(what, "clean-up");
    EXPECT_EQ(current_task().cancelling(), 0);
  });
}

TEST_P(TimeoutTest, ACancellationByItselfBeforeTheDeadlineStaysOne) {
  this->run([&]() -> Coro<void> {
    Timeout timeout(this->loop.time() + 1h);
    const auto cancel_itself = []() -> Coro<void> {
      current_task().cancel();
      co_await sleep(1h);
    };
    auto task = this->loop.create_task(timeout.run(cancel_itself()));
    while (!task.done()) co_await yield_now();
    EXPECT_TRUE(task.cancelled());
    EXPECT_FALSE(timeout.expired());
  });
}

TEST_P(TimeoutTest, OneInTheCleanUpOfAnotherStrikesToo) {
  this->run([]() -> Coro<void> {
    bool inner = false;
    const auto body = [&]() -> Coro<void> {
      bool cancelled = false;
      try {
        co_await sleep(1h);
      } catch (const CancelledError&) {
        cancelled = true;
      }
      inner = co_await times_out(wait_for(sleep_for(1h), 1ms));
      if (cancelled) throw CancelledError();
    };
    EXPECT_TRUE(co_await times_out(wait_for(body(), 1ms)));
    EXPECT_TRUE(inner);
  });
}

TEST_P(TimeoutTest, WorksInATaskThatSwallowedACancellation) {
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([]() -> Coro<void> {
      current_task().cancel();
      try {
        co_await sleep(1h);
      } catch (const CancelledError&) {
      }
      EXPECT_EQ(current_task().cancelling(), 1);
      EXPECT_TRUE(co_await times_out(wait_for(sleep_for(1h), 0ms)));
      EXPECT_EQ(current_task().cancelling(), 1);

      const auto cancelled_again = []() -> Coro<void> {
        current_task().cancel();
        co_await sleep(1h);
      };
      bool cancelled = false;
      try {
        co_await wait_for(cancelled_again(), 1h);
      } catch (const CancelledError&) {
        cancelled = true;
      }
      EXPECT_TRUE(cancelled);
    });
    co_await task;
  });
}

using BusyTimeoutTest = OnVirtualLoop;

// The loop was busy past the inner deadline: its work ends, and the outer strikes at what comes after.
TEST_F(BusyTimeoutTest, ABusyLoopDoesNotHideTheOuterDeadline) {
  const auto main = [this]() -> Coro<void> {
    bool inner = false;
    const auto crunch = [this]() -> Coro<void> {
      backend_.manual_clock().advance(100ms);
      co_await sleep(1h);
    };
    const auto body = [&]() -> Coro<void> {
      inner = co_await times_out(wait_for(crunch(), 10ms));
      co_await sleep(1h);
    };
    EXPECT_TRUE(co_await times_out(wait_for(body(), 101ms)));
    EXPECT_TRUE(inner);
    EXPECT_EQ(loop_.time(), TimePoint{101ms});
  };
  loop_.run_until_complete(main());
}

// --- wait_for of futures and tasks

TEST_P(TimeoutTest, WaitForGivesTheValueOfAFuture) {
  this->run([&]() -> Coro<void> {
    auto future = this->loop.template create_future<std::string>();
    future.set_result("done");
    EXPECT_EQ(co_await wait_for(future, 0ms), "done") << "what is done needs no time";
    auto later = this->loop.template create_future<std::string>();
    this->loop.call_soon([&] { later.set_result("ok"); });
    EXPECT_EQ(co_await wait_for(later, 1h), "ok");
    EXPECT_EQ(later.result(), "ok");
  });
}

TEST_P(TimeoutTest, WaitForCancelsTheTaskWhoseTimeIsUp) {
  this->run([&]() -> Coro<void> {
    for (const Duration limit : {Duration{1ms}, Duration{0}, Duration{-1s}}) {
      bool running = false;
      auto task = this->spawn([&]() -> Coro<void> {
        running = true;
        try {
          co_await sleep(1h);
        } catch (const CancelledError&) {
          running = false;
          throw;
        }
      });
      co_await let_others_run();
      EXPECT_TRUE(running);
      EXPECT_TRUE(co_await times_out(wait_for(task, limit)));
      EXPECT_TRUE(task.cancelled());
      EXPECT_FALSE(running);
    }
  });
}

TEST_P(TimeoutTest, WaitForWaitsUntilTheCancelledTaskHasEnded) {
  this->run([&]() -> Coro<void> {
    bool ended = false;
    auto task = this->spawn([&]() -> Coro<void> {
      try {
        co_await sleep(1h);
      } catch (const CancelledError&) {
      }
      co_await sleep(1ms);
      ended = true;
      throw CancelledError();
    });
    EXPECT_TRUE(co_await times_out(wait_for(task, 1ms)));
    EXPECT_TRUE(ended);
  });
}

TEST_P(TimeoutTest, ACancelledWaitForWaitsUntilTheTaskHasEndedToo) {
  this->run([&]() -> Coro<void> {
    bool ended = false;
    const auto stubborn = [&]() -> Coro<void> {
      try {
        co_await sleep(1h);
      } catch (const CancelledError&) {
      }
      co_await sleep(1ms);
      ended = true;
    };
    auto waiting = this->loop.create_task(wait_for(stubborn(), 2h));
    co_await let_others_run();
    waiting.cancel();
    while (!waiting.done()) co_await sleep(1ms);
    EXPECT_TRUE(ended);
  });
}

TEST_P(TimeoutTest, CancellingAWaitForCancelsTheTask) {
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([]() -> Coro<void> { co_await sleep(1h); });
    auto waiting = this->loop.create_task(wait_for(task, 1h));
    co_await let_others_run();
    waiting.cancel();
    while (!waiting.done()) co_await let_others_run();
    EXPECT_TRUE(waiting.cancelled());
    EXPECT_TRUE(task.cancelled());
  });
}

struct TimeoutScenario {
  int ended = 0;
  Coro<void> work() {
    struct Count {
      int& ended;
      ~Count() { ++ended; }
    } const count{ended};
    co_await sleep(2ms);
  }
  int begun = 0;
  Coro<void> run() {
    for (const Duration limit : {Duration{1ms}, Duration{3ms}, Duration{0}}) {
      ++begun;
      co_await times_out(wait_for(work(), limit));
    }
    ++begun;
    co_await times_out(wait_for(wait_for(work(), 2ms), 2ms));
    ++begun;
    co_await times_out(wait_for(EventLoop::current().create_task(work()), 1ms));
    EXPECT_EQ(current_task().cancelling(), 0);
  }
  void check() const {
    EXPECT_GE(begun, ended);
    EXPECT_LE(begun - ended, 1) << "one that was cancelled before its first step has nothing to end";
  }
};
TEST(CancellationSweep, Timeout) { sweep_cancellation_shuffled<TimeoutScenario>(); }

}  // namespace
}  // namespace argiope
