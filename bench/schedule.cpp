// Schedules: a million that fire at intervals in memory, and 100,000 in SQLite with full sync. What it takes to add
// them, to start with them, to fire them when all are due at once, how late they are at 10,000 a second, and their
// memory.
// Usage: bench_schedule [--memory N] [--sqlite N] [--seconds S] [--file FILE]
// Prints "NAME VALUE UNIT" lines; bench/schedule_peers.py shows them beside APScheduler's.
#include <fmt/format.h>
#include <malloc.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/engine/engine.hpp"
#include "bench/must.hpp"

namespace {

using namespace argiope;
using bench::must;
using namespace std::chrono_literals;

constexpr std::size_t kBatch = 10'000;
constexpr std::size_t kFiresPerSecond = 10'000;

struct Arguments {
  std::size_t memory = 1'000'000;
  std::size_t sqlite = 100'000;
  double seconds = 10;  // of the measurement of lateness
  std::string file = "/var/tmp/argiope-bench-schedule.db";
};

double resident_bytes() {
  ::malloc_trim(0);
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  statm >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Of all threads.
double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void report(std::string_view name, double value, const char* unit) {
  fmt::print("{} {:.2f} {}\n", name, value, unit);
  std::fflush(stdout);
}

// The i-th of `count` schedules, which are due one after the other, evenly, within each `interval` from `begin` on.
class Schedules {
 public:
  Schedules(std::size_t count, Duration interval, WallTime begin, std::string queue)
      : count_(count), interval_(interval), begin_(begin), queue_(std::move(queue)) {}

  std::vector<Schedule> some(std::size_t from, std::size_t until) {
    std::vector<Schedule> made;
    made.reserve(until - from);
    for (std::size_t i = from; i < until; ++i) {
      const auto phase = std::chrono::floor<std::chrono::milliseconds>(interval_ / static_cast<std::int64_t>(count_) *
                                                                       static_cast<std::int64_t>(i));
      if (made.empty() || phase != phase_) {
        phase_ = phase;
        trigger_ = must(Trigger::every(interval_, begin_ + phase));
      }
      made.push_back({.name = fmt::format("schedule {}", i), .trigger = trigger_});
      made.back().job.queue = queue_;
      made.back().max_instances = Schedule::kMostInstances;
    }
    return made;
  }

 private:
  std::size_t count_;
  Duration interval_;
  WallTime begin_;
  std::string queue_;
  Duration phase_{-1};
  Trigger trigger_ = Trigger::at(WallTime{});
};

struct Rate {
  double per_second = 0;
  double cpu_us_each = 0;
};
void report_rate(const std::string& name, const Rate& rate, const char* unit) {
  report(name, rate.per_second, unit);
  report(name + ", processor time each", rate.cpu_us_each, "us");
}

// They are made before the clock runs.
Coro<Rate> add(ScheduleBook& book, Schedules& schedules, std::size_t count) {
  EventLoop& loop = EventLoop::current();
  Duration taken{};
  double cpu = 0;
  for (std::size_t i = 0; i < count; i += kBatch) {
    std::vector<Schedule> some = schedules.some(i, std::min(count, i + kBatch));
    const TimePoint start = loop.time();
    const double cpu_start = cpu_seconds();
    must(co_await book.add_all(std::move(some)));
    taken += loop.time() - start;
    cpu += cpu_seconds() - cpu_start;
  }
  co_return Rate{static_cast<double>(count) / to_seconds(taken), cpu / static_cast<double>(count) * 1e6};
}

// All of them are due.
Coro<Rate> fire(Scheduler& scheduler, std::size_t count) {
  EventLoop& loop = EventLoop::current();
  std::size_t fired = 0;
  Event all;
  scheduler.add_listener(static_cast<std::uint32_t>(ScheduleEventKind::job_submitted), [&](const ScheduleEvent&) {
    if (++fired == count) all.set();
  });
  const TimePoint start = loop.time();
  const double cpu = cpu_seconds();
  scheduler.start();
  co_await all.wait();
  co_return Rate{static_cast<double>(count) / to_seconds(loop.time() - start),
                 (cpu_seconds() - cpu) / static_cast<double>(count) * 1e6};
}

struct Lateness {
  std::vector<double> fired, begun;  // ms
};
double quantile(std::vector<double>& values, double q) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

Coro<void> in_memory(const Arguments& arguments) {
  EventLoop& loop = EventLoop::current();
  const double before = resident_bytes();
  auto store = must(open_store("memory:"));
  auto engine = std::make_unique<Engine>(must(co_await Engine::open(*store)));
  const std::size_t count = arguments.memory;
  const Duration interval = Duration{1s} * static_cast<std::int64_t>(count / kFiresPerSecond);
  // The first is due when all have been added.
  const WallTime begin = std::chrono::ceil<std::chrono::seconds>(loop.clock().wall_now()) + 5s;
  Schedules schedules(count, interval, begin, "default");
  report_rate("memory: add", co_await add(engine->book().schedules(), schedules, count), "schedules/s");
  report("memory: resident", (resident_bytes() - before) / static_cast<double>(count), "bytes/schedule");
  must(co_await engine->close());
  engine.reset();
  TimePoint start = loop.time();
  engine = std::make_unique<Engine>(must(co_await Engine::open(*store)));
  Scheduler* const scheduler = &engine->scheduler();
  report("memory: start", to_seconds(loop.time() - start), "s");

  // Lateness, to the commit and to the first line of the function.
  Lateness late;
  must(co_await scheduler->add_executor("default", {.concurrency = 10'000}));
  must(scheduler->add_function("default", "", [](JobContext&) -> Coro<void> { co_return; }));
  const auto wall = [&] { return loop.clock().wall_now(); };
  scheduler->add_listener(
      static_cast<std::uint32_t>(ScheduleEventKind::job_submitted),
      [&](const ScheduleEvent& event) { late.fired.push_back(to_seconds(wall() - event.planned) * 1e3); });
  scheduler->add_listener(static_cast<std::uint32_t>(ScheduleEventKind::job_executed), [&](const ScheduleEvent& event) {
    late.begun.push_back(to_seconds(event.at - event.planned) * 1e3);
  });
  const Duration wait = begin - wall();
  if (wait > Duration::zero()) co_await sleep(wait);
  scheduler->start();
  co_await sleep(1s);  // what has come due meanwhile
  late = {};
  start = loop.time();
  co_await sleep(from_seconds(arguments.seconds));
  const double rate = static_cast<double>(late.fired.size()) / to_seconds(loop.time() - start);
  report("memory: fired meanwhile", rate, "fires/s");
  report("memory: lateness, committed, p50", quantile(late.fired, 0.5), "ms");
  report("memory: lateness, committed, p99", quantile(late.fired, 0.99), "ms");
  report("memory: lateness, run and settled, p50", quantile(late.begun, 0.5), "ms");
  report("memory: lateness, run and settled, p99", quantile(late.begun, 0.99), "ms");
  must(co_await engine->close());
}

Coro<void> in_sqlite(const Arguments& arguments) {
  EventLoop& loop = EventLoop::current();
  const std::size_t count = arguments.sqlite;
  {
    auto store = must(open_store("sqlite:" + arguments.file));
    auto engine = std::make_unique<Engine>(must(co_await Engine::open(*store)));
    Schedules schedules(count, 24h, loop.clock().wall_now() + 24h, "nobody's");
    report_rate("SQLite: add", co_await add(engine->book().schedules(), schedules, count), "schedules/s");
    must(co_await engine->close());
    must(store->close());
  }
  ::sync();
  const TimePoint start = loop.time();
  auto store = must(open_store("sqlite:" + arguments.file));
  auto engine = std::make_unique<Engine>(must(co_await Engine::open(*store)));
  report("SQLite: start", to_seconds(loop.time() - start), "s");
  must(co_await engine->close());
  must(store->close());
}

// `where`: all of `count` schedules are due at once.
Coro<void> all_due(std::string name, std::string where, std::size_t count) {
  EventLoop& loop = EventLoop::current();
  auto store = must(open_store(where));
  auto engine = std::make_unique<Engine>(must(co_await Engine::open(*store)));
  const Trigger trigger = Trigger::at(loop.clock().wall_now());
  for (std::size_t i = 0; i < count; i += kBatch) {
    std::vector<Schedule> some;
    for (std::size_t n = i; n < std::min(count, i + kBatch); ++n) {
      some.push_back({.name = fmt::format("schedule {}", n), .trigger = trigger});
      some.back().job.queue = "nobody's";
    }
    must(co_await engine->book().schedules().add_all(std::move(some)));
  }
  ::sync();
  report_rate(name, co_await fire(engine->scheduler(), count), "fires/s");
  must(co_await engine->close());
  must(store->close());
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--memory") arguments.memory = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--sqlite") arguments.sqlite = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--seconds") arguments.seconds = std::strtod(argv[i + 1], nullptr);
    if (name == "--file") arguments.file = argv[i + 1];
  }
  spdlog::set_level(spdlog::level::err);
  const auto remove = [&] {
    for (const char* suffix : {"", "-wal", "-shm", ".lock"}) std::filesystem::remove(arguments.file + suffix);
  };
  SystemClock clock;
  const auto run = [&](Coro<void> what) {
    AsioBackend backend(clock);
    EventLoop loop(backend);
    loop.run_until_complete(std::move(what));
  };
  run(in_memory(arguments));
  run(all_due("memory: fire, all due", "memory:", arguments.sqlite));
  remove();
  run(in_sqlite(arguments));
  remove();
  run(all_due("SQLite: fire, all due", "sqlite:" + arguments.file, arguments.sqlite));
  remove();
}
