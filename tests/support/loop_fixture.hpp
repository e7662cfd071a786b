// One suite of loop tests, four worlds to run it in: real time on Asio, virtual time, virtual time with the loop driven
// from outside by run_once and next_deadline, and real time with libuv as the loop that drives ours. A test that passes
// in one and fails in another has found a promise that depends on the backend.
//
// Tests use delays of a few milliseconds at most, and never expect that something happens before a short delay ends.
#pragma once

#include <gtest/gtest.h>
#include <uv.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/io_backend.hpp"
#include "argiope/base/random.hpp"
#include "libuv_loop.hpp"

namespace argiope {

using namespace std::chrono_literals;

struct RealTime {
  SystemClock clock;
  AsioBackend backend{clock};
  template <class T>
  T run(EventLoop& loop, Coro<T> coro) {
    return loop.run_until_complete(std::move(coro));
  }
};

struct VirtualTime {
  VirtualBackend backend;
  template <class T>
  T run(EventLoop& loop, Coro<T> coro) {
    return loop.run_until_complete(std::move(coro));
  }
};

// Runs a coroutine to its end by run_once and next_deadline.
template <class T>
T drive_from_outside(EventLoop& loop, Coro<T> coro) {
  Task<T> task = loop.create_task(std::move(coro));
  while (!task.done()) loop.run_once(loop.next_deadline());
  if constexpr (std::is_void_v<T>) {
    task.result();
  } else {
    return std::move(const_cast<T&>(task.result()));
  }
}
// Runs a coroutine to its end with libuv's loop as the one that drives ours.
template <class T>
T drive_by_libuv(EventLoop& loop, AsioBackend& backend, Coro<T> coro) {
  uv_loop_t foreign;
  uv_loop_init(&foreign);
  Task<T> task = loop.create_task(std::move(coro));
  {
    const LibuvLoop driven(foreign, loop, backend);
    task.add_done_callback([&] { uv_stop(&foreign); });
    while (!task.done()) uv_run(&foreign, UV_RUN_DEFAULT);
  }
  uv_run(&foreign, UV_RUN_DEFAULT);
  EXPECT_EQ(uv_loop_close(&foreign), 0);
  if constexpr (std::is_void_v<T>) {
    task.result();
  } else {
    return std::move(const_cast<T&>(task.result()));
  }
}

struct DrivenFromOutside {
  VirtualBackend backend;
  template <class T>
  T run(EventLoop& loop, Coro<T> coro) {
    return drive_from_outside(loop, std::move(coro));
  }
};

struct DrivenByLibuv {
  SystemClock clock;
  AsioBackend backend{clock};
  template <class T>
  T run(EventLoop& loop, Coro<T> coro) {
    return drive_by_libuv(loop, backend, std::move(coro));
  }
};

struct WorldNames {
  template <class World>
  static std::string GetName(int) {
    if constexpr (std::is_same_v<World, RealTime>) return "RealTime";
    if constexpr (std::is_same_v<World, VirtualTime>) return "VirtualTime";
    if constexpr (std::is_same_v<World, DrivenByLibuv>) return "DrivenByLibuv";
    return "DrivenFromOutside";
  }
};
using AllWorlds = ::testing::Types<RealTime, VirtualTime, DrivenFromOutside, DrivenByLibuv>;
// Whether time stands still while tasks run.
template <class World>
inline constexpr bool kSimulatedTime = std::is_same_v<decltype(World::backend), VirtualBackend>;

// The same worlds as values: a test over them is compiled once.
enum class World { real_time, virtual_time, driven_from_outside, driven_by_libuv };
inline const auto kAllWorlds =
    testing::Values(World::real_time, World::virtual_time, World::driven_from_outside, World::driven_by_libuv);
// Those with descriptors, sockets and processes.
inline const auto kRealWorlds = testing::Values(World::real_time, World::driven_by_libuv);
inline std::string world_name(const testing::TestParamInfo<World>& world) {
  switch (world.param) {
    case World::real_time: return "RealTime";
    case World::virtual_time: return "VirtualTime";
    case World::driven_from_outside: return "DrivenFromOutside";
    default: return "DrivenByLibuv";
  }
}

// The world that is the parameter of the test that runs.
class SomeWorld {
 public:
  bool has_simulated_time() const { return simulated_.has_value(); }
  template <class T>
  T run(EventLoop& loop, Coro<T> coro) {
    switch (world_) {
      case World::driven_from_outside: return drive_from_outside(loop, std::move(coro));
      case World::driven_by_libuv: return drive_by_libuv(loop, *real_, std::move(coro));
      default: return loop.run_until_complete(std::move(coro));
    }
  }

 private:
  IoBackend& chosen() {
    if (world_ == World::virtual_time || world_ == World::driven_from_outside) return simulated_.emplace();
    return real_.emplace(clock_);
  }

  World world_ = testing::WithParamInterface<World>::GetParam();
  SystemClock clock_;
  std::optional<VirtualBackend> simulated_;
  std::optional<AsioBackend> real_;

 public:
  IoBackend& backend = chosen();
};

// A coroutine of a lambda, which lives as long.
using detail::keeping;

// sleep() as a coroutine: made outside a running loop, measured from its start.
inline Coro<void> sleep_for(Duration delay) { co_await sleep(delay); }

// With ARGIOPE_SHUFFLE_SEED set in the environment, ready tasks run in an order drawn from it. Tests hold then too:
// where one task needs others to have run, it says let_others_run() and not yield_now(), and tests of the order itself
// are skipped.
inline bool shuffled() { return std::getenv("ARGIOPE_SHUFFLE_SEED") != nullptr; }
inline void shuffle_if_asked(EventLoop& loop) {
  if (shuffled()) loop.shuffle_ready_tasks(Random{std::strtoull(std::getenv("ARGIOPE_SHUFFLE_SEED"), nullptr, 10)});
}
inline Coro<void> let_others_run() {
  for (int i = 0; i < 4; ++i) co_await yield_now();
}
// What tasks noted that were woken together: in the order noted, or sorted where that order is chance.
template <class T>
std::vector<T> sorted_if_shuffled(std::vector<T> noted) {
  if (shuffled()) std::ranges::sort(noted);
  return noted;
}

template <class World>
class LoopTest : public ::testing::Test {
 public:
  LoopTest() { shuffle_if_asked(loop); }

  World world;
  EventLoop loop{world.backend};

  template <class T>
  T run(Coro<T> coro) {
    return world.run(loop, std::move(coro));
  }
  template <class Body>
  auto run(Body body) {
    return world.run(loop, body());
  }
  // Lets everything that is ready run, without waiting for timers or others.
  void settle() {
    for (int i = 0; i < 64; ++i) loop.run_once(TimePoint::min());
  }
  template <class Body>
  auto spawn(Body body, std::string_view name = {}, Start start = Start::next_turn) {
    return loop.create_task(std::move(body), name, start);
  }
};

// A suite that INSTANTIATE_TEST_SUITE_P runs in each of kAllWorlds or kRealWorlds.
class InSomeWorld : public LoopTest<SomeWorld>, public testing::WithParamInterface<World> {};

// Tests over simulated time alone, with the loop as a member.
class OnVirtualLoop : public ::testing::Test {
 protected:
  OnVirtualLoop() { shuffle_if_asked(loop_); }

  VirtualBackend backend_;
  EventLoop loop_{backend_};
};

// Exceptions that reached the loop's handler, as "where: what".
class Reports {
 public:
  explicit Reports(EventLoop& loop) {
    loop.set_exception_handler([lines = lines_](std::string_view where, const std::exception_ptr& exception) {
      std::string what;
      try {
        std::rethrow_exception(exception);
      } catch (const std::exception& error) {
        what = error.what();
      }
      lines->push_back(std::string(where) + ": " + what);
    });
  }
  const std::vector<std::string>& lines() const { return *lines_; }

 private:
  std::shared_ptr<std::vector<std::string>> lines_ = std::make_shared<std::vector<std::string>>();
};

}  // namespace argiope
