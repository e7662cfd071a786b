// first_of: several at once, and the first that ends is kept.
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "argiope/async/queue.hpp"
#include "argiope/async/sync.hpp"
#include "support/cancellation_sweep.hpp"
#include "support/give.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

template <class... As>
concept CanRace = requires(As... as) {
  first_of(std::move(as)...);
};
static_assert(CanRace<Coro<int>, Task<void>, SleepUntil> && CanRace<Coro<int>> && !CanRace<> && !CanRace<int>);
static_assert(std::is_same_v<AwaitValue<decltype(first_of(give(1), sleep(1s), std::declval<Future<std::string>>()))>,
                             std::variant<int, std::monostate, std::string>>);

class FirstOfTest : public InSomeWorld {};
INSTANTIATE_TEST_SUITE_P(AllWorlds, FirstOfTest, kAllWorlds, world_name);

Coro<std::string> text_after_turns(int turns, std::string text) {
  for (int i = 0; i < turns; ++i) co_await yield_now();
  co_return text;
}
Coro<int> throw_after_turns(int turns, std::string what) {
  for (int i = 0; i < turns; ++i) co_await yield_now();
  throw std::runtime_error(what);
}
// Sleeps until it is cancelled; then tidies up for so many turns before it ends.
Coro<void> tidy_up_when_cancelled(int turns, bool& tidied) {
  std::exception_ptr cancellation;
  try {
    co_await sleep(1h);
  } catch (const CancelledError&) {
    cancellation = std::current_exception();
  }
  for (int i = 0; i < turns; ++i) co_await yield_now();
  tidied = true;
  if (cancellation != nullptr) std::rethrow_exception(cancellation);
}
Coro<void> throw_when_cancelled(std::string what) {
  try {
    co_await sleep(1h);
  } catch (const CancelledError&) {
    throw std::runtime_error(what);
  }
}
template <class T>
Coro<T> take_from(Queue<T>& queue) {
  co_return co_await queue.get();
}

// What awaiting it throws: "cancelled", the message of another exception, or nothing.
template <class T>
Coro<std::string> thrown_by(T awaited) {
  try {
    co_await std::move(awaited);
  } catch (const CancelledError&) {
    co_return "cancelled";
  } catch (const std::exception& error) {
    co_return error.what();
  }
  co_return "";
}

TEST_P(FirstOfTest, GivesTheValueOfTheFirstAtItsPlace) {
  this->run([]() -> Coro<void> {
    auto second = co_await first_of(give_after(1h, 1), text_after_turns(2, "two"));
    EXPECT_EQ(second.index(), 1u);
    EXPECT_EQ(std::get<1>(second), "two");
    auto first = co_await first_of(give(1), text_after_turns(100, "two"));
    EXPECT_EQ(std::get<0>(first), 1);
    auto pause = co_await first_of(give_after(1h, 1), sleep(1ms));
    EXPECT_TRUE(std::holds_alternative<std::monostate>(pause));
    auto same = co_await first_of(give_after(1h, 1), give(2));
    EXPECT_EQ(same.index(), 1u) << "the place tells them apart where the types are the same";
    EXPECT_EQ(std::get<1>(same), 2);
    EXPECT_EQ(std::get<0>(co_await first_of(give(3))), 3) << "of one alone";
  });
}

TEST_P(FirstOfTest, MovesWhatCannotBeCopied) {
  this->run([]() -> Coro<void> {
    const auto unique = []() -> Coro<std::unique_ptr<int>> { co_return std::make_unique<int>(6); };
    auto first = co_await first_of(unique(), sleep(1h));
    EXPECT_EQ(*std::get<0>(first), 6);
  });
}

TEST_P(FirstOfTest, CancelsTheOthersAndWaitsForTheirEnd) {
  this->run([&]() -> Coro<void> {
    bool tidied = false;
    auto first = co_await first_of(tidy_up_when_cancelled(5, tidied), text_after_turns(3, "first"));
    EXPECT_EQ(std::get<1>(first), "first");
    EXPECT_TRUE(tidied);
    EXPECT_EQ(this->loop.task_count(), 1u);
  });
  EXPECT_EQ(this->loop.next_deadline(), kNever) << "and no timer is left";
}

TEST_P(FirstOfTest, OfTwoThatAreServedInOneTurnTheFirstTakesAndTheOtherTakesNothing) {
  this->run([&]() -> Coro<void> {
    Queue<int> numbers;
    Queue<std::string> words;
    this->loop.call_later(1ms, [&] {
      numbers.put_nowait(1);
      words.put_nowait("one");
    });
    const auto first = co_await first_of(take_from(words), take_from(numbers));
    EXPECT_EQ(numbers.qsize() + words.qsize(), 1u) << "one item is taken, and the other is still there";
    EXPECT_EQ(first.index() == 0, words.qsize() == 0);
    const auto rest = co_await first_of(words.get(), numbers.get());
    EXPECT_NE(rest.index(), first.index()) << "nothing was lost";
  });
}

TEST_P(FirstOfTest, OneThatNeedsNoWaitKeepsTheOthersFromTaking) {
  this->run([&]() -> Coro<void> {
    Queue<int> queue;
    queue.put_nowait(1);
    queue.put_nowait(2);
    std::vector<int> got;
    std::visit([&](int item) { got.push_back(item); }, co_await first_of(take_from(queue), queue.get()));
    EXPECT_EQ(queue.qsize(), 1u);
    Semaphore semaphore(2);
    co_await first_of(semaphore.acquire(), semaphore.acquire());
    EXPECT_EQ(semaphore.value(), 1u);
  });
}

TEST_P(FirstOfTest, ThrowsWhatTheFirstThrows) {
  const Reports reports(this->loop);
  this->run([]() -> Coro<void> {
    EXPECT_EQ(co_await thrown_by(first_of(throw_after_turns(1, "first"), give_after(1h, 1))), "first");
    EXPECT_EQ(co_await thrown_by(first_of(sleep(1h), throw_after_turns(0, "at once"))), "at once");
  });
  EXPECT_TRUE(reports.lines().empty());
}

TEST_P(FirstOfTest, WhatALoserThrowsGoesToTheExceptionHandler) {
  const Reports reports(this->loop);
  this->run([]() -> Coro<void> {
    const auto first = co_await first_of(give_after(1ms, 1), throw_when_cancelled("a loser's"));
    EXPECT_EQ(std::get<0>(first), 1);
  });
  EXPECT_EQ(reports.lines(), (std::vector<std::string>{"task: a loser's"}));
}

TEST_P(FirstOfTest, OneThatIsCancelledByOthersIsTheFirst) {
  this->run([&]() -> Coro<void> {
    auto task = this->loop.create_task(give_after(1h, 1));
    this->loop.call_later(1ms, [&] { task.cancel(); });
    EXPECT_EQ(co_await thrown_by(first_of(sleep(1h), task)), "cancelled");
    EXPECT_EQ(current_task().cancelling(), 0) << "the caller was not";
    co_await yield_now();
  });
}

TEST_P(FirstOfTest, ATaskThatLosesIsCancelledUnlessItIsShielded) {
  this->run([&]() -> Coro<void> {
    auto task = this->loop.create_task(give_after(1h, 1));
    co_await first_of(task, yield_now());
    EXPECT_TRUE(task.cancelled());
    auto gate = this->loop.template create_future<int>();
    co_await first_of(shield(gate), sleep(1ms));
    EXPECT_FALSE(gate.done());
    gate.set_result(7);
    EXPECT_EQ(std::get<0>(co_await first_of(gate, sleep(1h))), 7);
    EXPECT_EQ(gate.result(), 7) << "a future keeps its value";
  });
}

TEST_P(FirstOfTest, OfTwoFuturesThatEndInOneTurnTheFirstGivenWins) {
  this->run([&]() -> Coro<void> {
    auto one = this->loop.template create_future<int>();
    auto two = this->loop.template create_future<std::string>();
    one.set_result(1);
    two.set_exception(std::runtime_error("dropped by nobody"));
    if (!shuffled()) EXPECT_EQ(std::get<0>(co_await first_of(one, two)), 1);
    EXPECT_NE(two.exception(), nullptr) << "the other's outcome is still its own";
  });
}

TEST_P(FirstOfTest, AFutureOfAnotherLoopAndAnEmptyCoroutineAreRefused) {
  VirtualBackend backend;
  EventLoop other(backend);
  const auto stranger = other.create_future<int>();
  this->run([&]() -> Coro<void> {
    EXPECT_NE((co_await thrown_by(first_of(stranger, sleep(1h)))).find("another event loop"), std::string::npos);
    EXPECT_EQ(co_await thrown_by(first_of(sleep(1h), Coro<int>{})), "first_of an empty coroutine");
    EXPECT_EQ(this->loop.task_count(), 1u) << "and none has started";
  });
}

TEST_P(FirstOfTest, CancelledItCancelsAllAndWaitsForThem) {
  this->run([&]() -> Coro<void> {
    bool one_tidied = false, other_tidied = false;
    auto outer = this->loop.create_task(
        first_of(tidy_up_when_cancelled(1, one_tidied), tidy_up_when_cancelled(9, other_tidied)));
    co_await let_others_run();
    outer.cancel();
    co_await wait(std::vector{outer});
    EXPECT_TRUE(outer.cancelled());
    EXPECT_TRUE(one_tidied && other_tidied);
  });
}

TEST_P(FirstOfTest, CancelledWhileALoserTidiesUpItGivesTheValueAndTheNextAwaitThrows) {
  this->run([&]() -> Coro<void> {
    bool tidied = false;
    int got = 0;
    bool next_await_threw = false;
    auto outer = this->spawn([&]() -> Coro<void> {
      got = std::get<1>(co_await first_of(tidy_up_when_cancelled(20, tidied), give(5)));
      next_await_threw = co_await thrown_by(sleep(1h)) == "cancelled";
    });
    for (int i = 0; i < 10; ++i) co_await yield_now();
    EXPECT_FALSE(tidied);
    outer.cancel();
    co_await outer;
    EXPECT_EQ(got, 5);
    EXPECT_TRUE(next_await_threw);

    auto last_step = this->loop.create_task(first_of(tidy_up_when_cancelled(20, tidied), give(6)));
    for (int i = 0; i < 10; ++i) co_await yield_now();
    last_step.cancel();
    co_await wait(std::vector{last_step});
    EXPECT_EQ(std::get<1>(last_step.result()), 6) << "a task without a next await keeps its result";
  });
}

TEST_P(FirstOfTest, ATimeLimitLetsWhatHasEndedPass) {
  this->run([&]() -> Coro<void> {
    EXPECT_EQ(co_await thrown_by(wait_for(first_of(sleep(1h), give_after(2h, 1)), 1ms)), TimeoutError().what());
    const auto in_time = co_await wait_for(first_of(sleep(1h), give(1)), 1h);
    EXPECT_EQ(std::get<1>(in_time), 1);
    co_await yield_now();
  });
}

// A put() that was let in cannot be taken back, and says so to whoever is cancelled.
TEST_P(FirstOfTest, CancelledTogetherWithWhatCannotBeTakenBackItGivesThat) {
  this->run([&]() -> Coro<void> {
    Queue<int> queue(1);
    queue.put_nowait(1);
    Event stop;
    auto outer = this->loop.create_task(first_of(queue.put(2), stop.wait()));
    co_await let_others_run();
    EXPECT_EQ(queue.get_nowait(), 1);
    outer.cancel();
    co_await wait(std::vector{outer});
    EXPECT_EQ(outer.cancelled(), queue.empty()) << "cancelled: nothing was put";
  });
}

TEST_P(FirstOfTest, ALoserThatNeverStartedIsNoForgottenCoroutine) {
  std::vector<std::string> warnings;
  this->loop.set_debug(true);
  this->loop.set_warning_handler([&](std::string_view message) { warnings.emplace_back(message); });
  this->loop.set_slow_callback_duration(1h);
  this->run([]() -> Coro<void> { co_await first_of(give(1), give(2), text_after_turns(1, "three")); });
  EXPECT_TRUE(warnings.empty()) << warnings.front();
}

TEST(FirstOfAtTheLoopsEnd, IsUnwoundWithItsBranches) {
  VirtualBackend backend;
  Queue<int> queue;
  bool tidied = false;
  const auto held = std::make_shared<int>(1);
  const auto hold = [](Queue<int>& items, std::shared_ptr<int>) -> Coro<int> { co_return co_await items.get(); };
  {
    EventLoop loop(backend);
    auto outer = loop.create_task(first_of(hold(queue, held), tidy_up_when_cancelled(3, tidied)));
    for (int i = 0; i < 8; ++i) loop.run_once(TimePoint::min());
    EXPECT_FALSE(outer.done());
  }
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_FALSE(tidied);
}

// --- cancelled at every step

// No item is lost and none is had twice, wherever the cancellation strikes.
struct FirstOfScenario {
  Queue<int> numbers;
  Queue<std::string> words;
  std::size_t put = 0, got = 0;

  Coro<void> run() {
    EventLoop& loop = EventLoop::current();
    for (int i = 0; i < 3; ++i) {
      loop.call_later(i * 1ms, [this, i] {
        numbers.put_nowait(i);
        words.put_nowait("word");
        put += 2;
      });
    }
    while (got < 6) {
      const auto item = co_await first_of(take_from(numbers), words.get(), sleep(1h));
      EXPECT_LT(item.index(), 2u);
      ++got;
    }
  }
  void check() const { EXPECT_EQ(got + numbers.qsize() + words.qsize(), put); }
};
TEST(CancellationSweep, FirstOf) { sweep_cancellation_shuffled<FirstOfScenario>(); }

// The same where all but the winner take their time to end.
struct FirstOfSlowLosersScenario {
  Queue<int> queue;
  bool tidied = false;
  bool started = false;
  int got = 0;
  Coro<void> run() {
    queue.put_nowait(1);
    started = true;
    const auto first = co_await first_of(tidy_up_when_cancelled(3, tidied), take_from(queue));
    got = std::get<1>(first);
    co_await yield_now();
  }
  void check() const {
    if (started) EXPECT_EQ(static_cast<std::size_t>(got) + queue.qsize(), 1u);
  }
};
TEST(CancellationSweep, FirstOfSlowLosers) { sweep_cancellation_shuffled<FirstOfSlowLosersScenario>(); }

}  // namespace
}  // namespace argiope
