#include "argiope/async/group.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "argiope/async/event_loop.hpp"
#include "support/cancellation_sweep.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

class GroupTest : public InSomeWorld {};
INSTANTIATE_TEST_SUITE_P(AllWorlds, GroupTest, kAllWorlds, world_name);

Coro<int> give_after_turns(int turns, int value) {
  for (int i = 0; i < turns; ++i) co_await yield_now();
  co_return value;
}
Coro<int> fail_after_turns(int turns, std::string what) {
  for (int i = 0; i < turns; ++i) co_await yield_now();
  throw std::runtime_error(what);
}
Coro<void> log_after_turns(std::vector<std::string>& log, int turns, std::string line) {
  for (int i = 0; i < turns; ++i) co_await yield_now();
  log.push_back(line);
}
// Sleeps until it is cancelled, then says so.
Coro<void> log_when_cancelled(std::vector<std::string>& log, std::string line) {
  try {
    co_await sleep(1h);
  } catch (const CancelledError&) {
    log.push_back(line);
    throw;
  }
}

// What awaiting it throws: "cancelled: why", "failed: what", or nothing.
template <class T>
Coro<std::string> outcome_of(T awaited) {
  try {
    co_await std::move(awaited);
  } catch (const CancelledError& error) {
    co_return std::string("cancelled: ") + error.what();
  } catch (const std::exception& error) {
    co_return std::string("failed: ") + error.what();
  }
  co_return "";
}

// --- gather

TEST_P(GroupTest, GatherGivesTheValuesInTheOrderGiven) {
  this->run([]() -> Coro<void> {
    std::vector<Coro<int>> coros;
    for (int i = 0; i < 5; ++i) coros.push_back(give_after_turns(5 - i, i));
    EXPECT_EQ(co_await gather(std::move(coros)), (std::vector{0, 1, 2, 3, 4}));
  });
}

TEST_P(GroupTest, GatherOfNothingEndsAtOnce) {
  this->run([]() -> Coro<void> {
    EXPECT_TRUE((co_await gather(std::vector<Coro<int>>{})).empty());
    co_await gather(std::vector<Coro<void>>{});
  });
}

TEST_P(GroupTest, GatherTakesDifferentTypes) {
  this->run([]() -> Coro<void> {
    std::vector<std::string> log;
    const auto text = []() -> Coro<std::unique_ptr<std::string>> {
      co_await yield_now();
      co_return std::make_unique<std::string>("text");
    };
    const auto [number, nothing, string] =
        co_await gather(give_after_turns(3, 1), log_after_turns(log, 1, "ran"), text());
    static_assert(std::is_same_v<decltype(nothing), const std::monostate>);
    EXPECT_EQ(number, 1);
    EXPECT_EQ(*string, "text");
    EXPECT_EQ(log.size(), 1u);
  });
}

TEST_P(GroupTest, GatherRunsThemAtTheSameTime) {
  this->run([&]() -> Coro<void> {
    Event one, two;
    const auto first = [&]() -> Coro<void> {
      one.set();
      co_await two.wait();
    };
    const auto second = [&]() -> Coro<void> {
      co_await one.wait();
      two.set();
    };
    co_await gather(first(), second());
  });
}

TEST_P(GroupTest, GatherThrowsTheFirstExceptionInTimeAtOnceAndTheOthersRunOn) {
  const Reports reports(this->loop);
  std::vector<std::string> log;
  this->run([&]() -> Coro<void> {
    const std::string outcome =
        co_await outcome_of(gather(log_after_turns(log, 20, "ran on"), fail_after_turns(3, "later"),
                                   fail_after_turns(2, "first"), give_after_turns(1, 1)));
    EXPECT_EQ(outcome, "failed: first");
    EXPECT_TRUE(log.empty());
    for (int i = 0; i < 40; ++i) co_await yield_now();
  });
  EXPECT_EQ(log, (std::vector<std::string>{"ran on"}));
  EXPECT_TRUE(reports.lines().empty());
}

TEST_P(GroupTest, GatherThrowsCancelledErrorWhenOneOfItsOwnIsCancelled) {
  this->run([&]() -> Coro<void> {
    const auto cancelled = []() -> Coro<int> {
      co_await yield_now();
      throw CancelledError("own");
    };
    EXPECT_EQ(co_await outcome_of(gather(cancelled(), give_after_turns(1, 1))), "cancelled: own");
  });
}

TEST_P(GroupTest, CancellingAGatherCancelsAllAndWaitsForThem) {
  std::vector<std::string> log;
  this->run([&]() -> Coro<void> {
    const auto slow_to_end = [&]() -> Coro<void> {
      bool cancelled = false;
      try {
        co_await sleep(1h);
      } catch (const CancelledError&) {
        cancelled = true;
      }
      if (cancelled) co_await log_after_turns(log, 3, "slow");
    };
    auto task = this->spawn([&]() -> Coro<void> { co_await gather(log_when_cancelled(log, "quick"), slow_to_end()); });
    for (int i = 0; i < 3; ++i) co_await yield_now();
    task.cancel("enough");
    EXPECT_EQ(co_await outcome_of(task), "cancelled: enough");
  });
  EXPECT_EQ(log, (std::vector<std::string>{"quick", "slow"}));
}

TEST_P(GroupTest, CancellingAGatherTwiceStillWaitsForAll) {
  std::vector<std::string> log;
  this->run([&]() -> Coro<void> {
    const auto stubborn = [&]() -> Coro<void> {
      for (int i = 0; i < 2; ++i) {
        try {
          co_await sleep(1h);
        } catch (const CancelledError&) {
          log.push_back("cancelled");
        }
      }
    };
    std::vector<Coro<void>> coros;
    coros.push_back(stubborn());
    auto task = this->loop.create_task(gather(std::move(coros)));
    for (int i = 0; i < 3; ++i) co_await yield_now();
    task.cancel();
    for (int i = 0; i < 3; ++i) co_await yield_now();
    EXPECT_FALSE(task.done());
    task.cancel();
    EXPECT_EQ(co_await outcome_of(task), "cancelled: cancelled");
  });
  EXPECT_EQ(log.size(), 2u);
}

TEST_P(GroupTest, GatherTakesFuturesAndLeavesThemTheirValues) {
  this->run([&]() -> Coro<void> {
    auto future = this->loop.template create_future<std::string>();
    auto task = this->loop.create_task(give_after_turns(2, 2));
    this->loop.call_soon([&] { future.set_result("long enough not to be kept in place"); });
    const auto [text, number, own] = co_await gather(future, task, give_after_turns(1, 3));
    EXPECT_EQ(text, future.result());
    EXPECT_EQ(number, 2);
    EXPECT_EQ(own, 3);
    EXPECT_EQ(co_await gather(std::vector{task, task}), (std::vector{2, 2})) << "one may be given twice";
  });
}

TEST_P(GroupTest, GatherRefusesAFutureOfAnotherLoop) {
  VirtualBackend backend;
  EventLoop other(backend);
  auto stranger = other.create_future<int>();
  this->run([&]() -> Coro<void> {
    auto own = this->loop.template create_future<int>();
    own.set_result(1);
    bool refused = false;
    try {
      co_await gather(own, stranger);
    } catch (const std::logic_error&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
  });
}

TEST_P(GroupTest, GatherThrowsCancelledErrorWhenAFutureIsCancelled) {
  this->run([&]() -> Coro<void> {
    auto one = this->loop.template create_future<int>();
    auto two = this->loop.template create_future<int>();
    one.cancel("given up");
    EXPECT_EQ(co_await outcome_of(gather(one, two)), "cancelled: given up");
    EXPECT_FALSE(two.done());
  });
}

TEST_P(GroupTest, GatherWithReturnExceptionsWaitsForAllAndGivesEachOutcome) {
  const Reports reports(this->loop);
  this->run([&]() -> Coro<void> {
    std::vector<Future<int>> futures;
    for (int i = 0; i < 4; ++i) futures.push_back(this->loop.template create_future<int>());
    auto task = this->loop.create_task(gather(return_exceptions, futures));
    co_await yield_now();
    futures[1].set_result(1);
    futures[2].set_exception(std::runtime_error("two"));
    futures[3].cancel("three");
    for (int i = 0; i < 3; ++i) co_await yield_now();
    EXPECT_FALSE(task.done());
    futures[0].set_exception(std::logic_error("zero"));
    const auto outcomes = co_await std::move(task);
    EXPECT_EQ(outcomes.size(), 4u);
    EXPECT_THROW(std::rethrow_exception(outcomes.at(0).error()), std::logic_error);
    EXPECT_EQ(outcomes.at(1).value(), 1);
    EXPECT_THROW(std::rethrow_exception(outcomes.at(2).error()), std::runtime_error);
    EXPECT_THROW(std::rethrow_exception(outcomes.at(3).error()), CancelledError);
  });
  EXPECT_TRUE(reports.lines().empty()) << "what was given is not reported";
}

TEST_P(GroupTest, GatherWithReturnExceptionsTakesDifferentTypes) {
  this->run([&]() -> Coro<void> {
    std::vector<std::string> log;
    const auto move_only = []() -> Coro<std::unique_ptr<int>> { co_return std::make_unique<int>(4); };
    auto [failed, nothing, number] =
        co_await gather(return_exceptions, fail_after_turns(1, "x"), log_after_turns(log, 2, "ran"), move_only());
    EXPECT_FALSE(failed.has_value());
    EXPECT_TRUE(nothing.has_value());
    EXPECT_EQ(*number.value(), 4);
  });
}

TEST_P(GroupTest, CancellingAGatherWithReturnExceptionsIsACancellation) {
  this->run([&]() -> Coro<void> {
    std::vector<Coro<void>> coros;
    coros.push_back(sleep_for(1h));
    auto task = this->loop.create_task(gather(return_exceptions, std::move(coros)));
    for (int i = 0; i < 3; ++i) co_await yield_now();
    task.cancel("whole");
    EXPECT_EQ(co_await outcome_of(task), "cancelled: whole");
  });
}

struct GatherScenario {
  std::vector<std::string> log;
  Coro<void> run() {
    std::vector<Coro<int>> coros;
    coros.push_back(give_after_turns(2, 1));
    coros.push_back(fail_after_turns(3, "three"));
    co_await gather(return_exceptions, std::move(coros));
    co_await gather(give_after_turns(1, 1), log_after_turns(log, 2, "ran"), sleep_for(1ms));
  }
  void check() const { EXPECT_LE(log.size(), 1u); }
};
TEST(CancellationSweep, Gather) { sweep_cancellation_shuffled<GatherScenario>(); }

// --- TaskGroup

TEST_P(GroupTest, AGroupEndsWhenItsBodyAndAllItsTasksHave) {
  std::vector<std::string> log;
  this->run([&]() -> Coro<void> {
    co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
      group.create_task(log_after_turns(log, 5, "slow"));
      group.create_task(log_after_turns(log, 1, "quick"));
      log.push_back("body");
      co_return;
    });
    log.push_back("after");
  });
  EXPECT_EQ(log, (std::vector<std::string>{"body", "quick", "slow", "after"}));
}

TEST_P(GroupTest, AGroupMayBeEmpty) {
  this->run([]() -> Coro<void> { co_await TaskGroup::run([](TaskGroup&) -> Coro<void> { co_return; }); });
}

TEST_P(GroupTest, TasksOfAGroupMayStartOthersInIt) {
  std::vector<std::string> log;
  this->run([&]() -> Coro<void> {
    co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
      const auto parent = [](TaskGroup& g, std::vector<std::string>& lines) -> Coro<void> {
        co_await yield_now();
        g.create_task(log_after_turns(lines, 2, "grandchild"));
      };
      group.create_task(parent(group, log));
      co_return;
    });
  });
  EXPECT_EQ(log, (std::vector<std::string>{"grandchild"}));
}

TEST_P(GroupTest, AFailingTaskCancelsTheOthersAndTheBody) {
  std::vector<std::string> log;
  this->run([&]() -> Coro<void> {
    EXPECT_EQ(co_await outcome_of(TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
                group.create_task(log_when_cancelled(log, "sibling"));
                group.create_task(fail_after_turns(2, "broken"));
                co_await log_when_cancelled(log, "body");
              })),
              "failed: 1 task failed; broken");
    co_await sleep(1ms);
  });
  std::ranges::sort(log);
  EXPECT_EQ(log, (std::vector<std::string>{"body", "sibling"}));
}

TEST_P(GroupTest, TheCallerOfAGroupThatFailedIsNotLeftCancelled) {
  Task<void> task;
  this->run([&]() -> Coro<void> {
    task = this->spawn([&]() -> Coro<void> {
      EXPECT_NE(co_await outcome_of(TaskGroup::run([](TaskGroup& group) -> Coro<void> {
                  group.create_task(fail_after_turns(1, "broken"));
                  co_await sleep(1h);
                })),
                "");
      EXPECT_EQ(task.cancelling(), 0);
      co_await sleep(1ms);
    });
    co_await task;
  });
}

TEST_P(GroupTest, AFailingBodyCancelsTheTasks) {
  std::vector<std::string> log;
  this->run([&]() -> Coro<void> {
    EXPECT_EQ(co_await outcome_of(TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
                group.create_task(log_when_cancelled(log, "task"));
                co_await let_others_run();
                throw std::runtime_error("body");
              })),
              "failed: 1 task failed; body");
  });
  EXPECT_EQ(log.size(), 1u);
}

TEST_P(GroupTest, ABodyThatFailsAtOnceCancelsTasksThatNeverStarted) {
  std::vector<std::string> log;
  this->run([&]() -> Coro<void> {
    Task<void> task;
    EXPECT_EQ(co_await outcome_of(TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
                task = group.create_task(log_when_cancelled(log, "started"));
                throw std::runtime_error("at once");
                co_return;
              })),
              "failed: 1 task failed; at once");
    EXPECT_TRUE(task.cancelled());
  });
  EXPECT_TRUE(log.empty());
}

TEST_P(GroupTest, EveryExceptionIsInTheGroup) {
  this->run([&]() -> Coro<void> {
    std::size_t count = 0;
    const auto fail_in_clean_up = []() -> Coro<void> {
      try {
        co_await sleep(1h);
      } catch (const CancelledError&) {
        throw std::logic_error("clean-up");
      }
    };
    try {
      co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
        group.create_task(fail_after_turns(1, "one"));
        group.create_task(fail_after_turns(1, "two"));
        group.create_task(fail_in_clean_up());
        co_await sleep(1h);
      });
    } catch (const ExceptionGroup& failures) {
      count = failures.exceptions().size();
      EXPECT_THROW(std::rethrow_exception(failures.exceptions()[2]), std::logic_error);
    }
    EXPECT_EQ(count, 3u);
  });
}

TEST_P(GroupTest, ATaskThatEndsCancelledIsNoFailure) {
  std::vector<std::string> log;
  this->run([&]() -> Coro<void> {
    co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
      auto task = group.create_task(log_when_cancelled(log, "cancelled"));
      group.create_task(log_after_turns(log, 10, "sibling ran on"));
      co_await let_others_run();
      task.cancel();
    });
  });
  EXPECT_EQ(log, (std::vector<std::string>{"cancelled", "sibling ran on"}));
}

TEST_P(GroupTest, CancelledFromOutsideItCancelsItsTasksAndWaits) {
  std::vector<std::string> log;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> {
      co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
        group.create_task(log_when_cancelled(log, "one"));
        group.create_task(log_when_cancelled(log, "two"));
        co_return;
      });
    });
    co_await let_others_run();
    task.cancel("outside");
    EXPECT_EQ(co_await outcome_of(task), "cancelled: outside");
  });
  std::ranges::sort(log);
  EXPECT_EQ(log, (std::vector<std::string>{"one", "two"}));
}

TEST_P(GroupTest, CancelledFromOutsideInItsBodyItCancelsItsTasks) {
  std::vector<std::string> log;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> {
      co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
        group.create_task(log_when_cancelled(log, "task"));
        co_await sleep(1h);
      });
    });
    for (int i = 0; i < 3; ++i) co_await yield_now();
    task.cancel("outside");
    EXPECT_EQ(co_await outcome_of(task), "cancelled: outside");
  });
  EXPECT_EQ(log, (std::vector<std::string>{"task"}));
}

TEST_P(GroupTest, AFailureDuringACancellationFromOutsideIsThrownAndTheCancellationComesNext) {
  this->run([&]() -> Coro<void> {
    std::vector<std::string> log;
    const auto fail_in_clean_up = []() -> Coro<void> {
      try {
        co_await sleep(1h);
      } catch (const CancelledError&) {
        throw std::runtime_error("clean-up");
      }
    };
    auto task = this->spawn([&]() -> Coro<void> {
      log.push_back(co_await outcome_of(TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
        group.create_task(fail_in_clean_up());
        co_await sleep(1h);
      })));
      co_await sleep(1h);
      log.push_back("not reached");
    });
    for (int i = 0; i < 3; ++i) co_await yield_now();
    task.cancel();
    EXPECT_EQ(co_await outcome_of(task), "cancelled: cancelled");
    EXPECT_EQ(task.cancelling(), 1);
    EXPECT_EQ(log, (std::vector<std::string>{"failed: 1 task failed; clean-up"}));
  });
}

TEST_P(GroupTest, CancelledInTheTurnInWhichATaskFailsItIsCancelledAfterwards) {
  this->run([&]() -> Coro<void> {
    std::vector<std::string> log;
    Task<void> task;
    const auto fail_and_cancel = [&]() -> Coro<void> {
      co_await yield_now();
      task.cancel();
      throw std::runtime_error("both");
    };
    task = this->spawn([&]() -> Coro<void> {
      log.push_back(co_await outcome_of(TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
        group.create_task(fail_and_cancel());
        co_await sleep(1h);
      })));
      co_await sleep(1h);
    });
    EXPECT_EQ(co_await outcome_of(task), "cancelled: cancelled");
    EXPECT_EQ(log, (std::vector<std::string>{"failed: 1 task failed; both"}));
  });
}

TEST_P(GroupTest, AGroupThatIsBeingCancelledTakesNoTasks) {
  bool refused = false;
  this->run([&]() -> Coro<void> {
    const auto late = [&](TaskGroup& group) -> Coro<void> {
      try {
        co_await sleep(1h);
      } catch (const CancelledError&) {
      }
      try {
        group.create_task(give_after_turns(1, 1));
      } catch (const std::logic_error&) {
        refused = true;
      }
    };
    EXPECT_NE(co_await outcome_of(TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
                group.create_task(late(group));
                group.create_task(fail_after_turns(1, "broken"));
                co_return;
              })),
              "");
  });
  EXPECT_TRUE(refused);
  EXPECT_EQ(this->loop.task_count(), 0u);
}

TEST_P(GroupTest, GroupsNestAndTheInnersFailureIsTheOuters) {
  std::vector<std::string> log;
  this->run([&]() -> Coro<void> {
    const std::string outcome = co_await outcome_of(TaskGroup::run([&](TaskGroup& outer) -> Coro<void> {
      outer.create_task(log_when_cancelled(log, "outer task"));
      co_await TaskGroup::run([&](TaskGroup& inner) -> Coro<void> {
        inner.create_task(log_when_cancelled(log, "inner task"));
        inner.create_task(fail_after_turns(1, "deep"));
        co_return;
      });
    }));
    EXPECT_EQ(outcome, "failed: 1 task failed; 1 task failed; deep");
  });
  EXPECT_EQ(log, (std::vector<std::string>{"inner task", "outer task"}));
}

TEST_P(GroupTest, AFailureInTheOuterGroupEndsTheInner) {
  std::vector<std::string> log;
  this->run([&]() -> Coro<void> {
    const std::string outcome = co_await outcome_of(TaskGroup::run([&](TaskGroup& outer) -> Coro<void> {
      outer.create_task(fail_after_turns(3, "outer"));
      co_await TaskGroup::run([&](TaskGroup& inner) -> Coro<void> {
        inner.create_task(log_when_cancelled(log, "inner task"));
        co_await log_when_cancelled(log, "inner body");
      });
    }));
    EXPECT_EQ(outcome, "failed: 1 task failed; outer");
  });
  EXPECT_EQ(log.size(), 2u);
}

TEST_P(GroupTest, ATimeoutAroundAGroupIsATimeout) {
  std::vector<std::string> log;
  this->run([&]() -> Coro<void> {
    const std::string outcome = co_await outcome_of(wait_for(TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
                                                               group.create_task(log_when_cancelled(log, "task"));
                                                               co_return;
                                                             }),
                                                             1ms));
    EXPECT_EQ(outcome, "failed: timed out");
    co_await sleep(1ms);
  });
  EXPECT_EQ(log.size(), 1u);
}

TEST_P(GroupTest, AGroupWhoseBodyEndsAsATaskFailsIsNotLeftCancelled) {
  Task<void> task;
  this->run([&]() -> Coro<void> {
    task = this->spawn([&]() -> Coro<void> {
      Event go;
      EXPECT_NE(co_await outcome_of(TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
                  group.create_task(fail_after_turns(1, "broken"));
                  for (int i = 0; i < 2; ++i) co_await yield_now();
                })),
                "");
      EXPECT_EQ(task.cancelling(), 0);
      co_await yield_now();
    });
    co_await task;
  });
}

TEST_P(GroupTest, GivesItsTasksTheirNamesAndStarts) {
  this->run([&]() -> Coro<void> {
    co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
      auto named = group.create_task(give_after_turns(1, 1), "named");
      EXPECT_EQ(named.name(), "named");
      EXPECT_FALSE(named.done());
      auto eager = group.create_task(give_after_turns(0, 2), "eager", Start::eagerly);
      EXPECT_TRUE(eager.done());
      co_return;
    });
    EXPECT_EQ(co_await outcome_of(TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
                group.create_task(fail_after_turns(0, "at once"), {}, Start::eagerly);
                co_await sleep(1h);
              })),
              "failed: 1 task failed; at once");
  });
}

TEST_P(GroupTest, AGroupWithoutTasksPassesOnTheCancellationOfItsBody) {
  std::vector<std::string> log;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> {
      co_await TaskGroup::run([&](TaskGroup&) -> Coro<void> { co_await log_when_cancelled(log, "body"); });
    });
    co_await let_others_run();
    task.cancel("outside");
    EXPECT_EQ(co_await outcome_of(task), "cancelled: outside");
  });
  EXPECT_EQ(log.size(), 1u);
}

TEST_P(GroupTest, ABodyThatFailsBecauseItIsCancelledHasFailed) {
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> {
      co_await TaskGroup::run([&](TaskGroup&) -> Coro<void> {
        try {
          co_await sleep(1h);
        } catch (const CancelledError&) {
          throw std::runtime_error("instead");
        }
      });
    });
    co_await let_others_run();
    task.cancel();
    EXPECT_EQ(co_await outcome_of(task), "failed: 1 task failed; instead");
  });
}

TEST_P(GroupTest, ATaskAndABodyThatBothFailAreBothThrownAndNothingStaysCancelled) {
  this->run([&]() -> Coro<void> {
    EXPECT_EQ(co_await outcome_of(TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
                group.create_task(fail_after_turns(1, "task"));
                try {
                  co_await sleep(1h);
                } catch (const CancelledError&) {
                  throw std::runtime_error("body");
                }
              })),
              "failed: 2 tasks failed; task; body");
    EXPECT_EQ(current_task().cancelling(), 0);
    co_await sleep(1ms);
  });
}

TEST_P(GroupTest, ATaskThatFailsWhileTheCancelledBodyCleansUpIsThrown) {
  this->run([&]() -> Coro<void> {
    Event go;
    const auto stubborn = [&]() -> Coro<void> {
      try {
        co_await sleep(1h);
      } catch (const CancelledError&) {
      }
      co_await go.wait();
      throw std::runtime_error("late");
    };
    auto task = this->spawn([&]() -> Coro<void> {
      co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
        group.create_task(stubborn());
        bool cancelled = false;
        try {
          co_await sleep(1h);
        } catch (const CancelledError&) {
          cancelled = true;
        }
        for (int i = 0; i < 3; ++i) co_await yield_now();
        if (cancelled) throw CancelledError();
      });
    });
    auto outer = this->spawn([&]() -> Coro<void> { co_await task; });
    for (int i = 0; i < 3; ++i) co_await yield_now();
    outer.cancel();
    for (int i = 0; i < 9; ++i) co_await yield_now();
    EXPECT_FALSE(outer.done());
    go.set();
    EXPECT_EQ(co_await outcome_of(outer), "failed: 1 task failed; late");
  });
}

TEST_P(GroupTest, CancelledFromOutsideNestedGroupsThrowNestedGroups) {
  this->run([&]() -> Coro<void> {
    const auto fail_in_clean_up = []() -> Coro<void> {
      try {
        co_await sleep(1h);
      } catch (const CancelledError&) {
        throw std::runtime_error("clean-up");
      }
    };
    auto task = this->spawn([&]() -> Coro<void> {
      co_await TaskGroup::run([&](TaskGroup& outer) -> Coro<void> {
        outer.create_task(sleep_for(1h));
        co_await TaskGroup::run([&](TaskGroup& inner) -> Coro<void> {
          for (int i = 0; i < 3; ++i) inner.create_task(fail_in_clean_up());
          co_await sleep(1h);
        });
      });
    });
    for (int i = 0; i < 3; ++i) co_await yield_now();
    task.cancel();
    std::size_t inner_failures = 0;
    try {
      co_await task;
    } catch (const ExceptionGroup& group) {
      EXPECT_EQ(group.exceptions().size(), 1u);
      try {
        std::rethrow_exception(group.exceptions().at(0));
      } catch (const ExceptionGroup& inner) {
        inner_failures = inner.exceptions().size();
      }
    }
    EXPECT_EQ(inner_failures, 3u);
  });
}

TEST_P(GroupTest, TasksThatMultiplyAreAllEnded) {
  int heads = 0;
  this->run([&]() -> Coro<void> {
    // Lives as long as the tasks it starts.
    std::function<Coro<void>(TaskGroup&)> hydra = [&](TaskGroup& group) -> Coro<void> {
      ++heads;
      co_await yield_now();
      group.create_task(hydra(group));
      group.create_task(hydra(group));
    };
    const auto hercules = [&]() -> Coro<void> {
      while (heads < 10) co_await yield_now();
      throw std::runtime_error("enough");
    };
    const std::string outcome = co_await outcome_of(TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
      group.create_task(hydra(group));
      group.create_task(hercules());
      co_return;
    }));
    EXPECT_NE(outcome.find("enough"), std::string::npos) << outcome;
  });
  EXPECT_GE(heads, 10);
  EXPECT_EQ(this->loop.task_count(), 0u);
}

struct TaskGroupScenario {
  int running = 0;
  Coro<void> member(int turns) {
    struct Count {
      int& running;
      explicit Count(int& count) : running(count) { ++running; }
      ~Count() { --running; }
    } const count(running);
    for (int i = 0; i < turns; ++i) co_await yield_now();
    co_await sleep(1ms);
  }
  Coro<void> run() {
    const auto body = [this](TaskGroup& group) -> Coro<void> {
      group.create_task(member(1));
      co_await yield_now();
      group.create_task(member(3), {}, Start::eagerly);
      co_await TaskGroup::run([&](TaskGroup& inner) -> Coro<void> {
        inner.create_task(member(0));
        co_return;
      });
    };
    struct NoneLeft {
      int& running;
      ~NoneLeft() { EXPECT_EQ(running, 0) << "the group ended before its tasks"; }
    } const none_left{running};
    co_await TaskGroup::run(body);
  }
  void check() const { EXPECT_EQ(running, 0); }
};
TEST(CancellationSweep, TaskGroup) { sweep_cancellation_shuffled<TaskGroupScenario>(); }

TEST_P(GroupTest, ALoopDestroyedWithAGroupAndAGatherRunningLeaksNothing) {
  const auto witness = std::make_shared<int>();
  {
    EventLoop doomed(this->world.backend);
    const auto hold = [](std::shared_ptr<int>) -> Coro<void> { co_await sleep(1h); };
    static_cast<void>(doomed.create_task(keeping([&, witness]() -> Coro<void> {
      co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
        group.create_task(hold(witness));
        group.create_task(hold(witness));
        co_return;
      });
    })));
    static_cast<void>(
        doomed.create_task(keeping([&, witness]() -> Coro<void> { co_await gather(hold(witness), hold(witness)); })));
    for (int i = 0; i < 5; ++i) doomed.run_once(TimePoint::min());
  }
  EXPECT_EQ(witness.use_count(), 1);
}

}  // namespace
}  // namespace argiope
