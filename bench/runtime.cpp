// The runtime's steps: yield, spawn, nested await, queues and timers, with Boost.Asio beside in the same run.
// Usage: bench_runtime [scale], 1 unless given; nanoseconds an operation, medians of seven rounds.
//
// asyncio's figures were measured on the machine DESIGN names and are printed as recorded.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <vector>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/queue.hpp"
#include "bench/report.hpp"

namespace {

using namespace argiope;
namespace asio = boost::asio;
using asio::use_awaitable;
using Stopwatch = std::chrono::steady_clock;

constexpr int kRounds = 7;
long scale_percent = 100;

long scaled(long count) { return std::max(1L, count * scale_percent / 100); }

// Nanoseconds for each of `operations` that `run` performs.
template <class Run>
double time_each(long operations, Run run) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = Stopwatch::now();
    run();
    rounds.push_back(std::chrono::duration<double, std::nano>(Stopwatch::now() - start).count() /
                     static_cast<double>(operations));
  }
  return bench::median(rounds);
}

// `main` is called with the loop and gives the coroutine to run to its end; anew for each round.
template <class Main>
double on_argiope(long operations, Main main) {
  const SystemClock clock;
  AsioBackend backend(clock);
  EventLoop loop(backend);
  return time_each(operations, [&] { loop.run_until_complete(main(loop)); });
}

template <class Main>
double on_asio(long operations, Main main) {
  return time_each(operations, [&] {
    asio::io_context context(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE);
    asio::co_spawn(context, main(context), asio::detached);
    context.run();
  });
}

// --- yield

Coro<void> yield_often(long times) {
  for (long i = 0; i < times; ++i) co_await yield_now();
}
Coro<void> yield_in_tasks(EventLoop& loop, long tasks, long times) {
  std::vector<Task<void>> running;
  for (long i = 0; i < tasks; ++i) running.push_back(loop.create_task(yield_often(times)));
  for (Task<void>& task : running) co_await task;
}
asio::awaitable<void> asio_yield_often(long times) {
  for (long i = 0; i < times; ++i) co_await asio::post(use_awaitable);
}
asio::awaitable<void> asio_yield_in_tasks(asio::io_context& context, long tasks, long times) {
  for (long i = 0; i < tasks; ++i) asio::co_spawn(context, asio_yield_often(times), asio::detached);
  co_return;
}

void measure_yield(long tasks, double asyncio) {
  const long times = scaled(4'000'000) / tasks;
  bench::report(fmt::format("yield, {} task{}", tasks, tasks == 1 ? "" : "s"),
                on_argiope(times * tasks, [&](EventLoop& loop) { return yield_in_tasks(loop, tasks, times); }), "ns",
                {{"Boost.Asio",
                  on_asio(times * tasks, [&](auto& context) { return asio_yield_in_tasks(context, tasks, times); })},
                 {"asyncio (recorded)", asyncio}});
}

// --- spawn and join; nested await

Coro<int> give(int value) { co_return value; }
Coro<void> spawn_often(EventLoop& loop, long times) {
  for (long i = 0; i < times; ++i) co_await loop.create_task(give(1));
}
Coro<void> nest_often(long times) {
  for (long i = 0; i < times; ++i) co_await give(1);
}
asio::awaitable<int> asio_give(int value) { co_return value; }
asio::awaitable<void> asio_spawn_often(asio::io_context& context, long times) {
  for (long i = 0; i < times; ++i) co_await asio::co_spawn(context, asio_give(1), use_awaitable);
}
asio::awaitable<void> asio_nest_often(long times) {
  for (long i = 0; i < times; ++i) co_await asio_give(1);
}

void measure_calls() {
  const long times = scaled(1'000'000);
  bench::report("spawn and join", on_argiope(times, [&](EventLoop& loop) { return spawn_often(loop, times); }), "ns",
                {{"Boost.Asio", on_asio(times, [&](auto& context) { return asio_spawn_often(context, times); })},
                 {"asyncio (recorded)", 3844}});
  bench::report("await a nested coroutine", on_argiope(times, [&](EventLoop&) { return nest_often(times); }), "ns",
                {{"Boost.Asio", on_asio(times, [&](auto&) { return asio_nest_often(times); })}});
}

// --- queues

Coro<void> produce(Queue<long>& queue, long items) {
  for (long i = 0; i < items; ++i) co_await queue.put(i);
}
Coro<void> consume(Queue<long>& queue, long items) {
  for (long i = 0; i < items; ++i) {
    co_await queue.get();
    queue.task_done();
  }
}
Coro<void> pass_items(EventLoop& loop, std::size_t maxsize, long pairs, long items) {
  Queue<long> queue(maxsize);
  std::vector<Task<void>> tasks;
  for (long i = 0; i < pairs; ++i) {
    tasks.push_back(loop.create_task(produce(queue, items)));
    tasks.push_back(loop.create_task(consume(queue, items)));
  }
  for (Task<void>& task : tasks) co_await task;
  co_await queue.join();
}

using Channel = asio::experimental::channel<void(boost::system::error_code, long)>;
asio::awaitable<void> asio_produce(Channel& channel, long items) {
  for (long i = 0; i < items; ++i) co_await channel.async_send({}, i, use_awaitable);
}
asio::awaitable<void> asio_consume(Channel& channel, long items) {
  for (long i = 0; i < items; ++i) co_await channel.async_receive(use_awaitable);
}

double asio_pass_items(std::size_t maxsize, long pairs, long items) {
  return time_each(items * pairs, [&] {
    asio::io_context context(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE);
    Channel channel(context, maxsize);
    for (long i = 0; i < pairs; ++i) {
      asio::co_spawn(context, asio_produce(channel, items), asio::detached);
      asio::co_spawn(context, asio_consume(channel, items), asio::detached);
    }
    context.run();
  });
}

void measure_queue(const char* workload, std::size_t maxsize, long pairs, double asyncio) {
  const long items = scaled(1'000'000) / pairs;
  bench::report(workload,
                on_argiope(items * pairs, [&](EventLoop& loop) { return pass_items(loop, maxsize, pairs, items); }),
                "ns/item", {{"Boost.Asio", asio_pass_items(maxsize, pairs, items)}, {"asyncio (recorded)", asyncio}});
}

// --- timers, with a hundred thousand others armed

constexpr long kOtherTimers = 100'000;

// One minute to three: none fires while this runs, and a new one belongs anywhere among the others.
std::chrono::milliseconds spread(long i) { return std::chrono::milliseconds{60'000 + i * 7919 % 120'000}; }

Coro<void> arm_often(EventLoop& loop, long times) {
  for (long i = 0; i < times; ++i) {
    Handle handle = loop.call_later(spread(i), [] {});
    handle.cancel();
  }
  co_return;
}

void measure_timers() {
  const long times = scaled(1'000'000);
  const SystemClock clock;
  AsioBackend backend(clock);
  EventLoop loop(backend);
  for (long i = 0; i < kOtherTimers; ++i) loop.call_later(spread(i), [] {});
  const double own = time_each(times, [&] { loop.run_until_complete(arm_often(loop, times)); });

  asio::io_context context(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE);
  std::vector<asio::steady_timer> others;
  others.reserve(kOtherTimers);
  for (long i = 0; i < kOtherTimers; ++i) {
    others.emplace_back(context, spread(i));
    others.back().async_wait([](boost::system::error_code) {});
  }
  asio::steady_timer timer(context);
  const double peer = time_each(times, [&] {
    for (long i = 0; i < times; ++i) {
      timer.expires_after(spread(i));
      timer.async_wait([](boost::system::error_code) {});
      timer.cancel();
      context.poll();
    }
  });
  bench::report("timers arm and cancel, 100,000 armed", own, "ns", {{"Boost.Asio", peer}, {"asyncio (recorded)", 996}});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) scale_percent = static_cast<long>(std::strtod(argv[1], nullptr) * 100);
  measure_yield(1, 1506);
  measure_yield(1'000, 724);
  measure_calls();
  measure_queue("Queue(1024) 1 to 1, with task_done", 1024, 1, 535);
  measure_queue("Queue(1) 1 to 1", 1, 1, 4849);
  measure_queue("Queue(1024) 100 to 100", 1024, 100, 718);
  measure_timers();
}
