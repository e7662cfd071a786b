// Durable jobs from end to end, through an engine on SQLite with full sync: puts acknowledged after their commit, and
// jobs that do nothing handed to a worker's function and settled.
// Usage: bench_jobs [--jobs N] [--clients N] [--queued N] [--file FILE]
// Prints "NAME VALUE UNIT" lines; bench/job_peers.py shows them beside the peers'.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

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
#include "argiope/engine/worker.hpp"
#include "bench/must.hpp"

namespace {

using namespace argiope;
using bench::must;

struct Arguments {
  std::size_t jobs = 500'000;
  std::size_t clients = 64;
  std::size_t queued = 0;  // more jobs, less important, that stay
  std::string file = "/var/tmp/argiope-bench-jobs.db";
};

double resident_mb() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  statm >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

NewJob job(std::int32_t priority) {
  NewJob made;
  made.queue = "bench";
  made.priority = priority;
  made.payload = "{\"to\":\"somebody@example.org\",\"template\":\"welcome\",\"n\":12345}";
  return made;
}

Coro<void> fill(Engine& engine, std::size_t jobs) {
  for (std::size_t i = 0; i < jobs; i += 10'000) {
    must(co_await engine.book().put_all(std::vector<NewJob>(std::min<std::size_t>(10'000, jobs - i), job(-1))));
  }
}

// `clients` of them, each with `outstanding` puts on their way; jobs a second.
Coro<double> put(Engine& engine, std::size_t jobs, std::size_t clients, std::size_t outstanding) {
  EventLoop& loop = EventLoop::current();
  std::size_t left = jobs;
  const TimePoint start = loop.time();
  std::vector<Task<void>> tasks;
  for (std::size_t i = 0; i < clients * outstanding; ++i) {
    tasks.push_back(loop.create_task([](Book& to, std::size_t& remaining) -> Coro<void> {
      while (remaining > 0) {
        --remaining;
        must(co_await to.put(job(0)));
      }
    }(engine.book(), left)));
  }
  for (auto& task : tasks) co_await task;
  co_return static_cast<double>(jobs) / to_seconds(loop.time() - start);
}

// A worker whose function does nothing, until `jobs` are done.
Coro<double> work(Engine& engine, std::size_t jobs, std::size_t concurrency) {
  EventLoop& loop = EventLoop::current();
  Worker worker(engine, {.queues = {"bench"}, .concurrency = concurrency});
  std::size_t done = 0;
  worker.add("bench", [&](JobContext&) -> Coro<void> {
    if (++done == jobs) worker.stop();
    co_return;
  });
  const TimePoint start = loop.time();
  must(co_await worker.run());
  co_return static_cast<double>(done) / to_seconds(loop.time() - start);
}

Coro<void> run(const Arguments& arguments) {
  Engine engine = must(co_await Engine::open("sqlite:" + arguments.file));
  co_await fill(engine, arguments.queued);
  ::sync();  // what the fill has left to write is not the measurement's
  const std::string with = arguments.queued > 0 ? fmt::format(", {} queued besides", arguments.queued) : "";
  const auto report = [&](const std::string& name, double value, const char* unit) {
    fmt::print("{}{} {:.2f} {}\n", name, with, value, unit);
    std::fflush(stdout);
  };
  report(fmt::format("put, {} clients, 1 outstanding each", arguments.clients),
         co_await put(engine, arguments.jobs, arguments.clients, 1), "jobs/s");
  report("processed, a worker of 512 at once", co_await work(engine, arguments.jobs, 512), "jobs/s");
  report(fmt::format("put, {} clients, 16 outstanding each", arguments.clients),
         co_await put(engine, arguments.jobs, arguments.clients, 16), "jobs/s");
  report("processed, a worker of 4096 at once", co_await work(engine, arguments.jobs, 4096), "jobs/s");
  report("memory", resident_mb(), "MB");
  must(co_await engine.close());
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--jobs") arguments.jobs = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--clients") arguments.clients = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--queued") arguments.queued = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--file") arguments.file = argv[i + 1];
  }
  const auto remove = [&] {
    for (const char* suffix : {"", "-wal", "-shm", ".lock"}) std::filesystem::remove(arguments.file + suffix);
  };
  remove();
  SystemClock clock;
  AsioBackend backend(clock);
  EventLoop loop(backend);
  loop.run_until_complete(run(arguments));
  remove();
}
