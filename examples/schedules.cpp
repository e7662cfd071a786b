// Schedules: the right moment, once, and a word about every moment that was let go.
//
// A backup at half past two in Berlin, over the night in which the clock goes from 02:00 to 03:00; a report that is
// worth nothing an hour late; and a collection every quarter of an hour of which only the latest matters. In the
// morning the process is killed, and it comes back the next day: each schedule does what its policies say about the
// times nobody was there for. The file is a real one; time is simulated, so that the night takes a moment.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/io_backend.hpp"
#include "argiope/engine/engine.hpp"
#include "argiope/time/time_zone.hpp"

using namespace argiope;
using namespace std::chrono_literals;

const TimeZone kBerlin = value_or_throw(TimeZone::find("Europe/Berlin"));

std::string clock_text(WallTime time) {
  return format_timestamp(std::chrono::round<std::chrono::seconds>(time), kBerlin);
}

template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  fmt::print("{}  {}\n", clock_text(EventLoop::current().clock().wall_now()),
             fmt::format(format, std::forward<Args>(args)...));
}

// What one process has. The loop ends before the engine does, with whatever it was at: as when a process is killed.
struct Process {
  explicit Process(WallTime start) : backend(start) {}
  VirtualBackend backend;
  std::optional<Engine> engine;
  EventLoop loop{backend};
};

void note(const ScheduleEvent& event) {
  using enum ScheduleEventKind;
  if (event.kind == job_missed) {
    say("{}: {} time{} not run, from {}: {}", event.name, event.count, event.count == 1 ? "" : "s",
        clock_text(event.planned), event.text);
  } else if (event.kind == job_max_instances) {
    say("{}: skipped, {}", event.name, event.text);
  }
}

Coro<void> open(Process& process, const std::string& file) {
  process.engine = value_or_throw(co_await Engine::open("sqlite:" + file));
  Scheduler& scheduler = process.engine->scheduler();
  scheduler.add_listener(kAllScheduleEvents, note);
  value_or_throw(co_await scheduler.add_executor("default"));
  value_or_throw(scheduler.add_function("default", "tell", [&scheduler](JobContext& context) -> Coro<void> {
    const auto run = value_or_throw(co_await scheduler.run_of(context.job().id));
    say("{}: run {}, planned for {}", run->name, run->run, clock_text(run->planned));
  }));
}

Coro<void> first_night(Process& process, const std::string& file) {
  co_await open(process, file);
  Scheduler& scheduler = process.engine->scheduler();
  ScheduleBook& schedules = process.engine->book().schedules();

  Schedule backup{.name = "backup", .trigger = value_or_throw(Trigger::parse("30 2 * * *", {}, kBerlin))};
  backup.job.function = "tell";
  value_or_throw(co_await schedules.add(backup));

  Schedule report{.name = "report", .trigger = value_or_throw(Trigger::parse("0 6 * * *", {}, kBerlin))};
  report.job.function = "tell";
  report.misfire_grace = 1h;
  value_or_throw(co_await schedules.add(report));

  scheduler.start();
  say("{} schedules; backup is {}", scheduler.size(),
      to_sentence(value_or_throw(co_await schedules.explain("backup"))));
  co_await sleep(6h + 30min);

  Schedule collect{.name = "collect", .trigger = value_or_throw(Trigger::parse("*/15 * * * *", {}, kBerlin))};
  collect.job.function = "tell";
  collect.coalesce = Coalesce::latest;
  value_or_throw(co_await schedules.add(collect));
  co_await sleep(20min);
  say("the process dies");
}

Coro<void> next_day(Process& process, const std::string& file) {
  co_await open(process, file);
  Scheduler& scheduler = process.engine->scheduler();
  ScheduleBook& schedules = process.engine->book().schedules();
  say("back again");
  scheduler.start();
  co_await sleep(12min);
  value_or_throw(co_await schedules.pause("collect", "ann"));
  for (const char* name : {"backup", "report", "collect"}) {
    say("{}: {}", name, to_sentence(value_or_throw(co_await schedules.explain(name))));
  }
  for (const ScheduleRun& run : value_or_throw(co_await schedules.history("backup"))) {
    say("backup, run {}: {}, fired {:%T} h late", run.number, to_string(run.outcome),
        std::chrono::floor<std::chrono::seconds>(run.fired_at - run.planned));
  }
  value_or_throw(co_await scheduler.shutdown());
  value_or_throw(co_await process.engine->close());
}

// Runs from `start` on until `life` ends.
void live(WallTime start, Coro<void> (*life)(Process&, const std::string&), const std::string& file) {
  Process process(start);
  process.loop.run_until_complete(life(process, file));
}

int main() {
  const WallTime sunday = value_or_throw(parse_timestamp("2026-03-29T00:00", kBerlin));
  const std::string file = std::filesystem::temp_directory_path() / fmt::format("argiope-schedules-{}.db", ::getpid());
  live(sunday, first_night, file);
  live(value_or_throw(parse_timestamp("2026-03-30T09:05", kBerlin)), next_day, file);
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file + suffix);
}
