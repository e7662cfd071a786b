// The runtime's steps: yield, spawn, nested await, queues and timers, and the memory of a parked task, with Boost.Asio
// beside in the same run. runtime_peers.py runs asyncio, uvloop, tokio and Go beside this program.
//
//   bench_runtime [scale]              scale: 1 unless given; nanoseconds an operation, medians of five rounds
//   bench_runtime only STEP TIMES      one step on Argiope and nothing else, for runtime_instructions.py
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/queue.hpp"
#include "argiope/async/stream.hpp"
#include "argiope/async/sync.hpp"
#include "bench/report.hpp"

namespace {

using namespace argiope;
namespace asio = boost::asio;
using asio::use_awaitable;
using Stopwatch = std::chrono::steady_clock;

constexpr int kRounds = 5;
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

void measure_yield(long tasks) {
  const long times = scaled(4'000'000) / tasks;
  bench::report(fmt::format("yield, {} task{}", tasks, tasks == 1 ? "" : "s"),
                on_argiope(times * tasks, [&](EventLoop& loop) { return yield_in_tasks(loop, tasks, times); }), "ns",
                {{"Boost.Asio",
                  on_asio(times * tasks, [&](auto& context) { return asio_yield_in_tasks(context, tasks, times); })}});
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
                {{"Boost.Asio", on_asio(times, [&](auto& context) { return asio_spawn_often(context, times); })}});
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

void measure_queue(const char* workload, std::size_t maxsize, long pairs) {
  const long items = scaled(1'000'000) / pairs;
  bench::report(workload,
                on_argiope(items * pairs, [&](EventLoop& loop) { return pass_items(loop, maxsize, pairs, items); }),
                "ns/item", {{"Boost.Asio", asio_pass_items(maxsize, pairs, items)}});
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
      if (i % 1000 == 0) context.poll();  // takes what was cancelled; a turn for each would measure epoll
    }
    context.poll();
  });
  bench::report("timers arm and cancel, 100,000 armed", own, "ns", {{"Boost.Asio", peer}});
}

// --- how long what comes from outside waits beside two tasks that compute

constexpr auto kStep = std::chrono::milliseconds{1};
constexpr int kEvents = 100;

double ms_since(Stopwatch::time_point start) {
  return std::chrono::duration<double, std::milli>(Stopwatch::now() - start).count();
}

// Fires kEvents times, at moments that fall anywhere within a step. `wait` suspends until what `fire` made happen is
// heard; fire(when) is called on a thread beside, or (for a timer) when the wait begins.
struct Beside {
  bool ended = false;
  std::vector<double> waits;

  Coro<void> compute() {
    while (!ended) {
      const auto until = Stopwatch::now() + kStep;
      while (Stopwatch::now() < until) {
      }
      co_await yield_now();
    }
  }
  static std::chrono::microseconds spread_over_steps(int i) {
    return std::chrono::microseconds{3'000 + i * 379 % 2'000};
  }

  Coro<void> hear_timers() {
    for (int i = 0; i < kEvents; ++i) {
      const auto due = Stopwatch::now() + spread_over_steps(i);
      co_await sleep(spread_over_steps(i));
      waits.push_back(ms_since(due));
    }
    ended = true;
  }
  Coro<void> hear_io() {
    int ends[2];
    if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    std::jthread writer([&] {
      for (int i = 0; i < kEvents; ++i) {
        std::this_thread::sleep_for(spread_over_steps(i));
        const auto now = Stopwatch::now();
        if (write(ends[1], &now, sizeof now) != sizeof now) std::abort();
      }
    });
    for (int i = 0; i < kEvents; ++i) {
      Stopwatch::time_point written;
      do {
        co_await readable(ends[0]);
      } while (read(ends[0], &written, sizeof written) != sizeof written);
      waits.push_back(ms_since(written));
    }
    writer.join();
    close(ends[0]);
    close(ends[1]);
    ended = true;
  }
  Coro<void> hear_threads(EventLoop& loop) {
    Event all;
    std::jthread caller([&] {
      for (int i = 0; i < kEvents; ++i) {
        std::this_thread::sleep_for(spread_over_steps(i));
        loop.call_soon_threadsafe([&, called = Stopwatch::now()] {
          waits.push_back(ms_since(called));
          if (waits.size() == kEvents) all.set();
        });
      }
    });
    co_await all.wait();
    ended = true;
  }
};

// The worst, leaving out the worst twentieth, which is the machine's.
template <class Hear>
double wait_beside(Hear hear) {
  const SystemClock clock;
  AsioBackend backend(clock);
  EventLoop loop(backend);
  Beside beside;
  const auto first = loop.create_task(beside.compute()), second = loop.create_task(beside.compute());
  loop.run_until_complete(hear(beside, loop));
  while (!first.done() || !second.done()) loop.run_once(TimePoint::min());
  std::ranges::sort(beside.waits);
  return beside.waits[beside.waits.size() * 95 / 100];
}

void measure_fairness() {
  const auto row = [](const char* what, double ms) {
    bench::report(fmt::format("{} beside two tasks with steps of 1 ms", what), ms, "ms", {});
  };
  row("I/O", wait_beside([](Beside& beside, EventLoop&) { return beside.hear_io(); }));
  row("a timer", wait_beside([](Beside& beside, EventLoop&) { return beside.hear_timers(); }));
  row("a thread", wait_beside([](Beside& beside, EventLoop& loop) { return beside.hear_threads(loop); }));
}

// --- memory of a task that waits

constexpr long kParked = 100'000;

double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  long all = 0, resident = 0;
  statm >> all >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// What `measure` returns, run in a process of its own: memory that earlier work has freed would hide what it takes.
template <class Measure>
double in_child(Measure measure) {
  int ends[2];
  if (pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  const pid_t child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  double value = 0;
  if (child == 0) {
    value = measure();
    _exit(write(ends[1], &value, sizeof value) == sizeof value ? 0 : 1);
  }
  close(ends[1]);
  const bool told = read(ends[0], &value, sizeof value) == sizeof value;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!told) throw std::runtime_error("the process that measures memory ended early");
  return value;
}

Coro<void> park(Event& event) { co_await event.wait(); }
Coro<double> park_many(EventLoop& loop) {
  Event event;
  std::vector<Task<void>> tasks;
  const double before = resident_bytes();
  for (long i = 0; i < kParked; ++i) tasks.push_back(loop.create_task(park(event)));
  co_await yield_now();
  const double after = resident_bytes();
  event.set();
  for (Task<void>& task : tasks) co_await task;
  co_return (after - before) / kParked;
}
double memory_on_argiope() {
  const SystemClock clock;
  AsioBackend backend(clock);
  EventLoop loop(backend);
  return loop.run_until_complete(park_many(loop));
}

// Asio has no event; a timer that never expires is what its users wait on instead.
asio::awaitable<void> asio_park(asio::steady_timer& never) { co_await never.async_wait(use_awaitable); }
double memory_on_asio() {
  asio::io_context context(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE);
  asio::steady_timer never(context, asio::steady_timer::time_point::max());
  const double before = resident_bytes();
  for (long i = 0; i < kParked; ++i) asio::co_spawn(context, asio_park(never), asio::detached);
  context.poll();
  return (resident_bytes() - before) / kParked;
}

void measure_memory() {
  bench::report("memory of a parked task, 100,000 parked", in_child(memory_on_argiope), "bytes",
                {{"Boost.Asio", in_child(memory_on_asio)}});
}

// --- one step alone

// The queue has grown to this size before put or get is counted, so that growing is not.
constexpr long kQueued = 1 << 17;

void fill(Queue<long>& queue) {
  for (long i = 0; i < kQueued; ++i) queue.put_nowait(i);
}
Coro<void> put_often(long times) {
  Queue<long> queue;
  fill(queue);
  while (!queue.empty()) queue.get_nowait();
  for (long i = 0; i < times; ++i) co_await queue.put(i);
}
Coro<void> get_often(long times) {
  Queue<long> queue;
  fill(queue);
  for (long i = 0; i < times; ++i) co_await queue.get();
}

Coro<void> step_often(EventLoop& loop, std::string_view step, long times) {
  if (step == "yield") return yield_in_tasks(loop, 1, times);
  if (step == "spawn") return spawn_often(loop, times);
  if (step == "await") return nest_often(times);
  if (step == "put" && times <= kQueued) return put_often(times);
  if (step == "get" && times <= kQueued) return get_often(times);
  if (step == "pass") return pass_items(loop, 1, 1, times);
  if (step == "timer") return arm_often(loop, times);
  throw std::invalid_argument("steps: yield, spawn, await, pass, timer, and up to 131072 times put, get");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "only") {
    const SystemClock clock;
    AsioBackend backend(clock);
    EventLoop loop(backend);
    loop.run_until_complete(step_often(loop, argv[2], std::strtol(argv[3], nullptr, 10)));
    return 0;
  }
  if (argc > 1) scale_percent = static_cast<long>(std::strtod(argv[1], nullptr) * 100);
  measure_memory();
  measure_yield(1);
  measure_yield(1'000);
  measure_calls();
  measure_queue("Queue(1024) 1 to 1, with task_done", 1024, 1);
  measure_queue("Queue(1) 1 to 1", 1, 1);
  measure_queue("Queue(1024) 100 to 100", 1024, 100);
  measure_timers();
  measure_fairness();
}
