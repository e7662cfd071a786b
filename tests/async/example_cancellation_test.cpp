// Every example cancelled before each of its steps: when it has ended, no task of its own is left, nobody waits for a
// wake-up that will not come, and every item is done, waiting, or was in the hands of one that was cancelled. Frames
// that leaked are the address sanitizer's to find.
//
// The examples are included as they are, each into a namespace, where their main() is a function nobody calls and what
// they print is kept, so that a test may read it. All that they include therefore stands here before.
#include <fmt/core.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <uv.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "argiope/async.hpp"
#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "argiope/async/io_backend.hpp"
#include "argiope/async/queue.hpp"
#include "argiope/async/stream.hpp"
#include "argiope/base/random.hpp"
#include "libuv_loop.hpp"
#include "support/loop_fixture.hpp"

namespace examples {

inline std::vector<std::string> printed;

namespace fmt {
using ::fmt::format;
template <class... Args>
void print(::fmt::format_string<Args...> format, Args&&... args) {
  printed.push_back(::fmt::format(format, std::forward<Args>(args)...));
}
}  // namespace fmt

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wreturn-type"  // main() alone may end without a return
#define main example_main
namespace producers_and_consumers {
#include "producers_and_consumers.cpp"
}
namespace supermarket {
#include "supermarket.cpp"
}
namespace priority_and_lifo {
#include "priority_and_lifo.cpp"
}
namespace crawler {
#include "crawler.cpp"
}
namespace order_policies {
#include "order_policies.cpp"
}
namespace foreign_loop {
#include "foreign_loop.cpp"
}
#undef main
#pragma GCC diagnostic pop

}  // namespace examples

namespace argiope {
namespace {

// Runs `example` as a task of `world`, cancels it before step `cancel_at`, and checks that it ended well. False when it
// had ended before that step.
//
// Example: Coro<void> run();            what is cancelled
//          void check(bool finished);   what holds when it has ended, by itself or not
template <class World, class Example>
bool run_cancelled_before(std::size_t cancel_at, World& world, Example& example, std::optional<std::uint64_t> seed) {
  examples::printed.clear();
  EventLoop loop(world.backend);
  if (seed) {
    loop.shuffle_ready_tasks(Random{*seed});
  } else {
    shuffle_if_asked(loop);
  }
  const Reports reports(loop);
  std::size_t steps = 0, left_behind = 0;
  bool struck = false, ended = false, finished = false;
  // In the very step in which the example ends, no task but the one that runs it is left.
  const auto note_end = [&] {
    ended = true;
    left_behind = loop.task_count() - 1;
  };
  const auto top = [&]() -> Coro<void> {
    try {
      co_await example.run();
    } catch (...) {
      note_end();
      throw;
    }
    note_end();
    finished = true;
  };
  // The top task is the oldest.
  loop.set_step_hook([&] {
    if (steps++ == cancel_at && !ended) struck = loop.all_tasks().front().cancel("sweep");
  });
  try {
    world.run(loop, top());
  } catch (const CancelledError&) {
    EXPECT_TRUE(struck) << "cancelled by nobody";
  } catch (const std::exception& error) {
    ADD_FAILURE() << "thrown: " << error.what();
  }
  EXPECT_EQ(left_behind, 0u) << "tasks outlive the example that started them";
  EXPECT_TRUE(loop.all_tasks().empty());
  // A server is told when a client that was cancelled hangs up on it.
  EXPECT_THAT(reports.lines(), testing::Each(testing::HasSubstr("Connection reset by peer")));
  example.check(finished);
  return struck;
}

// Before each step, or before every `stride`-th, in a world and with an example of its own each time; says how many
// there were.
template <class World, class Make>
void sweep(const char* name, Make make, std::size_t stride = 1, std::optional<std::uint64_t> seed = std::nullopt) {
  std::size_t points = 0;
  for (bool struck = true; struck; ++points) {
    SCOPED_TRACE(testing::Message() << name << " cancelled before step " << points * stride << ", seed "
                                    << (seed ? std::to_string(*seed) : "none"));
    World world;
    auto example = make(world);
    struck = run_cancelled_before(points * stride, world, example, seed);
    if (testing::Test::HasFailure()) return;
  }
  if (!seed) fmt::print("{}: cancelled at {} points\n", name, points - 1);
}

// In order, and with the ready tasks shuffled by each of `seeds` seeds.
template <class World, class Make>
void sweep_shuffled(const char* name, Make make, std::uint64_t seeds) {
  sweep<World>(name, make);
  for (std::uint64_t seed = 0; seed < seeds && !testing::Test::HasFailure(); ++seed) sweep<World>(name, make, 1, seed);
}

// --- what a queue still holds ----------------------------------------------------------------------------------

template <class AnyQueue>
auto items_left(AnyQueue& queue) {
  std::vector<std::decay_t<decltype(queue.get_nowait())>> items;
  while (!queue.empty()) items.push_back(queue.get_nowait());
  return items;
}

// How many were ever put and have not had their task_done().
template <class AnyQueue>
std::size_t unfinished(AnyQueue& queue) {
  for (std::size_t count = 0;; ++count) {
    try {
      queue.task_done();
    } catch (const std::logic_error&) {
      return count;
    }
  }
}

// The word that follows `phrase` in each line that has it, as "x1" in "  0 ms  x has put x1, 0 queued".
std::vector<std::string> words_after(std::string_view phrase) {
  std::vector<std::string> words;
  for (const std::string& line : examples::printed) {
    const std::size_t at = line.find(phrase);
    if (at == std::string::npos) continue;
    const std::size_t from = at + phrase.size();
    words.push_back(line.substr(from, line.find_first_of(", \n", from) - from));
  }
  return words;
}

// --- the examples ----------------------------------------------------------------------------------------------

// The example's amain(), with a queue that can be looked into.
struct ProducersAndConsumers {
  Queue<std::string> queue{3};
  Coro<void> run() {
    using namespace examples::producers_and_consumers;
    co_await TaskGroup::run([this](TaskGroup& group) -> Coro<void> {
      auto consumers = group.create_task(gather(consume(queue, "Ann"), consume(queue, "Bob")));
      co_await gather(produce(queue, "x"), produce(queue, "y"), produce(queue, "z"));
      co_await queue.join();
      consumers.cancel();
    });
  }
  void check(bool finished) {
    const std::vector<std::string> dealt_with = words_after("has dealt with ");
    const std::vector<std::string> left = items_left(queue);
    EXPECT_EQ(unfinished(queue), left.size()) << "what was taken was dealt with";
    std::multiset<std::string> missing{"x1", "x2", "x3", "y1", "y2", "y3", "z1", "z2", "z3"};
    for (const auto* some : {&dealt_with, &left}) {
      for (const std::string& item : *some) {
        EXPECT_TRUE(missing.contains(item)) << item << " was not put, or came twice";
        missing.erase(item);
      }
    }
    if (finished) EXPECT_EQ(dealt_with.size(), 9u);
  }
};

struct ProducersAndConsumersOfTheirOwn {
  Coro<void> run() { return examples::producers_and_consumers::amain(); }
  void check(bool finished) const {
    const std::vector<std::string> dealt_with = words_after("has dealt with ");
    EXPECT_EQ(std::set<std::string>(dealt_with.begin(), dealt_with.end()).size(), dealt_with.size());
    if (finished) EXPECT_EQ(dealt_with.size(), 9u);
  }
};

struct Supermarket {
  Queue<examples::supermarket::Customer> queue{0};
  std::vector<examples::supermarket::Statistics> statistics = std::vector<examples::supermarket::Statistics>(3);
  Coro<void> run() { return examples::supermarket::afternoon(queue, statistics); }
  void check(bool finished) {
    std::size_t served = 0;
    for (const auto& till : statistics) served += static_cast<std::size_t>(till.served);
    const auto left = items_left(queue);
    const std::size_t not_served = unfinished(queue);
    EXPECT_GE(not_served, left.size());
    EXPECT_LE(not_served, left.size() + (finished ? 0 : statistics.size())) << "more under way than there are tills";
    // They are numbered as they come, so the last in the queue knows how many came.
    if (!left.empty()) EXPECT_EQ(static_cast<std::size_t>(left.back().number), served + not_served);
    if (finished) EXPECT_EQ(served, 200u);
  }
};

struct PriorityAndLifo {
  Coro<void> run() { return examples::priority_and_lifo::run(); }
  void check(bool finished) const {
    if (finished) EXPECT_EQ(examples::printed.size(), 3u * (1 + 5 + 1));
  }
};

struct Crawler {
  examples::crawler::Crawl crawl;
  explicit Crawler(int max_depth) : crawl(max_depth) {}
  Coro<void> run() { return crawl.run(1); }
  void check(bool finished) const {
    EXPECT_EQ(crawl.found(), crawl.visited() + crawl.waiting() + crawl.under_way());
    if (finished) EXPECT_EQ(crawl.found(), crawl.visited());
  }
};

struct OrderService {
  examples::order_policies::OrderService service;
  examples::order_policies::Answers answers{};
  OrderService(examples::order_policies::WhenFull when_full, Duration work_per_order)
      : service("swept", when_full, work_per_order) {}
  Coro<void> run() { return examples::order_policies::day("swept", service, answers); }
  void check(bool finished) const {
    EXPECT_EQ(answers.accepted, service.done() + service.not_done());
    if (finished) EXPECT_EQ(answers.accepted + answers.refused, 60u);
  }
};

template <class World>
class ExampleCancellation : public testing::Test {};
// What lasts seconds or hours where time is simulated would do so at every point where it is not.
using SimulatedWorlds = testing::Types<VirtualTime, DrivenFromOutside>;
TYPED_TEST_SUITE(ExampleCancellation, SimulatedWorlds, WorldNames);

TYPED_TEST(ExampleCancellation, OfTheSupermarket) {
  sweep_shuffled<TypeParam>(
      "supermarket", [](auto&) { return Supermarket{}; }, 5);
}

TYPED_TEST(ExampleCancellation, OfTheCrawler) {
  sweep_shuffled<TypeParam>(
      "crawler, depth 2", [](auto&) { return Crawler{2}; }, 3);
  sweep<TypeParam>("crawler, depth 3", [](auto&) { return Crawler{3}; });
  // The whole crawl has more than 15,000 steps.
  sweep<TypeParam>(
      "crawler, depth 6, every 997th step", [](auto&) { return Crawler{6}; }, 997);
}

TYPED_TEST(ExampleCancellation, OfTheOrderService) {
  using examples::order_policies::WhenFull;
  const auto waiting = [](auto&) { return OrderService{WhenFull::wait, 500ms}; };
  const auto refusing = [](auto&) { return OrderService{WhenFull::refuse, 500ms}; };
  const auto too_slow = [](auto&) { return OrderService{WhenFull::refuse, 8s}; };
  sweep_shuffled<TypeParam>("order_policies, waiting", waiting, 5);
  sweep_shuffled<TypeParam>("order_policies, refusing", refusing, 5);
  sweep_shuffled<TypeParam>("order_policies, too slow", too_slow, 5);
}

template <class World>
class ExampleCancellationAnywhere : public testing::Test {};
TYPED_TEST_SUITE(ExampleCancellationAnywhere, AllWorlds, WorldNames);

TYPED_TEST(ExampleCancellationAnywhere, OfProducersAndConsumers) {
  const auto make = [](auto&) { return ProducersAndConsumers{}; };
  const auto make_its_own = [](auto&) { return ProducersAndConsumersOfTheirOwn{}; };
  sweep_shuffled<TypeParam>("producers_and_consumers", make, kSimulatedTime<TypeParam> ? 50 : 5);
  sweep<TypeParam>("producers_and_consumers, with their own queue", make_its_own);
}

// Its queues never make anybody wait, so it is one step.
TYPED_TEST(ExampleCancellationAnywhere, OfPriorityAndLifo) {
  sweep<TypeParam>("priority_and_lifo", [](auto&) { return PriorityAndLifo{}; });
}

// --- beside libuv ----------------------------------------------------------------------------------------------

// The example's customer places his orders from libuv, whose loop drives ours; so it has a world of its own.
struct BesideLibuv {
  SystemClock clock;
  AsioBackend backend{clock};
  Queue<std::string> orders;
  int placed = 0;

  void run(EventLoop& loop, Coro<void> coro) {
    uv_loop_t foreign;
    uv_loop_init(&foreign);
    examples::foreign_loop::Customer customer(foreign, orders);
    Task<void> task = loop.create_task(std::move(coro));
    {
      const LibuvLoop driven(foreign, loop, backend);
      task.add_done_callback([&] { uv_stop(&foreign); });
      while (!task.done()) uv_run(&foreign, UV_RUN_DEFAULT);
    }
    uv_run(&foreign, UV_RUN_DEFAULT);  // until the customer has placed his last order, too
    EXPECT_EQ(uv_loop_close(&foreign), 0);
    placed = customer.placed();
    task.result();
  }
};

struct ForeignLoop {
  BesideLibuv& world;
  Coro<void> run() { return examples::foreign_loop::serve_orders(world.orders); }
  void check(bool finished) const {
    // What he placed was answered, in order; or is in the queue still, in order; or is the one in the server's hands.
    std::vector<std::string> orders = words_after("answer: ORDER ");
    const std::size_t answered = orders.size();
    for (const std::string& order : items_left(world.orders)) orders.push_back(order.substr(order.rfind(' ') + 1));
    EXPECT_EQ(unfinished(world.orders), static_cast<std::size_t>(world.placed));
    EXPECT_EQ(world.placed, 3);
    EXPECT_GE(orders.size(), finished ? 3u : 2u);
    for (std::size_t i = 0; i < orders.size(); ++i) {
      const std::size_t in_hands = i < answered ? 0 : 3 - orders.size();
      EXPECT_EQ(orders[i], std::to_string(i + 1 + in_hands));
    }
  }
};

TEST(ExampleCancellationBesideLibuv, OfTheForeignLoop) {
  sweep_shuffled<BesideLibuv>(
      "foreign_loop", [](BesideLibuv& world) { return ForeignLoop{world}; }, 3);
}

}  // namespace
}  // namespace argiope
