// Cancels a scenario at its first step, in another run at its second, and so on to its last: whatever the scenario
// promises must hold wherever a cancellation strikes.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/io_backend.hpp"
#include "argiope/base/random.hpp"

namespace argiope {

// Scenario: default-constructible, with
//
//   Coro<void> run();   what is cancelled, under the virtual loop;
//   void check();       expectations that hold whenever run() has ended: no item lost, no permit held.
//
// Every run uses a scenario and a loop of its own. A step is one of any task or callback, so the cancellation strikes
// between any two. After run() has ended, what it left behind (shielded tasks) gets to end too; a run that then waits
// for ever has lost a wake-up and fails. Gives the number of steps of the run that was not cancelled. With a seed, the
// ready tasks of every run are shuffled by it.
template <class Scenario>
std::size_t sweep_cancellation(std::optional<std::uint64_t> seed = std::nullopt) {
  constexpr std::size_t kTooMany = 100'000;
  for (std::size_t cancel_at = 0; cancel_at < kTooMany; ++cancel_at) {
    SCOPED_TRACE("cancelled before step " + std::to_string(cancel_at));
    Scenario scenario;
    VirtualBackend backend;
    EventLoop loop(backend);
    if (seed) loop.shuffle_ready_tasks(Random{*seed});
    Task<void> main = loop.create_task(scenario.run(), "main");
    std::size_t steps = 0;
    bool cancelled = false;
    loop.set_step_hook([&] {
      if (steps++ == cancel_at && !main.done()) cancelled = main.cancel("sweep");
    });
    try {
      while (loop.task_count() > 0) loop.run_once(kNever);
    } catch (const std::exception& error) {
      ADD_FAILURE() << loop.task_count() << " tasks left that nobody will wake: " << error.what();
      return steps;
    }
    EXPECT_TRUE(main.done());
    try {
      main.result();
    } catch (const CancelledError&) {
      EXPECT_TRUE(cancelled) << "cancelled by nobody";
    } catch (const std::exception& error) {
      ADD_FAILURE() << "thrown: " << error.what();
    }
    scenario.check();
    if (::testing::Test::HasFailure() || !cancelled) return steps;
  }
  ADD_FAILURE() << "the scenario has no end";
  return kTooMany;
}

// In order, and with the ready tasks shuffled by each of `seeds` seeds.
template <class Scenario>
void sweep_cancellation_shuffled(std::uint64_t seeds = 100) {
  sweep_cancellation<Scenario>();
  for (std::uint64_t seed = 0; seed < seeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    sweep_cancellation<Scenario>(seed);
  }
}

}  // namespace argiope
