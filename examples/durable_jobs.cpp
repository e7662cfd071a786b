// Durable jobs: what was acknowledged survives the process that took it.
//
// In the evening three mails and a report that waits for them are put, in one transaction; the first mail is handed
// out, and the process dies. The next one opens the same file, counts the lost run as an attempt, keeps the pause
// between two mails to one customer, tries a failed mail again after a minute, and runs the report when every mail has
// ended. The file is a real one; time is simulated, so that all this takes a moment.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/io_backend.hpp"
#include "argiope/engine/engine.hpp"

using namespace argiope;
using namespace std::chrono_literals;

template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(EventLoop::current().clock().wall_now());
  const std::chrono::hh_mm_ss clock{seconds - std::chrono::floor<std::chrono::days>(seconds)};
  fmt::print("{:02}:{:02}:{:02}  {}\n", clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
             fmt::format(format, std::forward<Args>(args)...));
}

// What one process has. The loop ends before the engine does, with whatever it was at: as when a process is killed.
struct Process {
  explicit Process(WallTime start) : backend(start) {}
  VirtualBackend backend;
  std::optional<Engine> engine;
  EventLoop loop{backend};
};

NewJob mail(std::string customer, std::string text) {
  NewJob job;
  job.queue = "mail";
  job.key = std::move(customer);
  job.payload = std::move(text);
  return job;
}

Coro<void> evening(Process& process, const std::string& file) {
  process.engine = value_or_throw(co_await Engine::open("sqlite:" + file));
  Engine& engine = *process.engine;

  QueueConfig config;
  config.key_limits.concurrency = 1;  // one mail to a customer at a time,
  config.key_limits.delay = 10s;      // and a pause before the next
  config.retry = {.max_attempts = 3, .first = 60s, .factor = 2, .jitter = 0};
  value_or_throw(co_await engine.book().configure("mail", config));

  NewJob report;
  report.queue = "report";
  report.if_failed = DependencyPolicy::run;  // when all have ended, however they did
  const auto put = value_or_throw(co_await engine.book().put_batch(
      {mail("ann", "welcome"), mail("ann", "invoice"), mail("bob", "welcome")}, report));
  say("{} jobs are on the disk", put.size());

  const auto leased = value_or_throw(co_await engine.lease({.queues = {"mail"}, .worker = "evening"}));
  say("mail {} to {} is handed out, and the process dies", leased[0].job.id, leased[0].job.key);
  co_await sleep(100ms);
}

Coro<void> send(JobContext& context) {
  const JobRecord& job = context.job();
  say("mail {} to {}: {}, attempt {}", job.id, job.key, context.payload(), context.attempt());
  co_await sleep(2s);
  if (job.key == "bob" && context.attempt() == 1) throw std::runtime_error("the mailbox is busy");
}

Coro<void> morning(Process& process, const std::string& file) {
  process.engine = value_or_throw(co_await Engine::open("sqlite:" + file));
  Engine& engine = *process.engine;
  for (const auto& [queue, counts] : value_or_throw(co_await engine.book().counts())) {
    say("{}: {} ready, {} waiting", queue, counts.ready, counts.delayed);
  }

  Worker worker(engine, {.name = "morning", .queues = {"mail", "report"}});
  worker.add("mail", send);
  worker.add("report", [&worker](JobContext&) -> Coro<void> {
    say("every mail has ended");
    worker.stop();
    co_return;
  });
  auto working = process.loop.create_task(worker.run());

  co_await sleep(1s);
  for (JobId id = 1; id <= 4; ++id)
    say("job {}: {}", id, to_sentence(value_or_throw(co_await engine.book().explain(id))));

  value_or_throw(co_await working);
  say("{} runs done, {} failed", worker.counts().done, worker.counts().failed);
  value_or_throw(co_await engine.close());
}

// Runs from `start` on until `life` ends.
void live(WallTime start, Coro<void> (*life)(Process&, const std::string&), const std::string& file) {
  Process process(start);
  process.loop.run_until_complete(life(process, file));
}

int main() {
  const WallTime midnight{1'767'225'600s};  // 2026-01-01
  const std::string file =
      std::filesystem::temp_directory_path() / fmt::format("argiope-durable-jobs-{}.db", ::getpid());
  live(midnight, evening, file);
  live(midnight + 1h, morning, file);
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file + suffix);
}
