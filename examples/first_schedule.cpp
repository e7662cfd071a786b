// A schedule and two of its runs. docs/schedules.md prints this program.
#include <argiope/async.hpp>
#include <argiope/engine/engine.hpp>
#include <cstdio>
using namespace argiope;
using namespace std::chrono_literals;

Coro<void> nights() {
  Engine engine = value_or_throw(co_await Engine::open("memory:"));  // "sqlite:FILE" keeps schedules and jobs
  value_or_throw(co_await engine.scheduler().add_executor("default"));
  value_or_throw(engine.scheduler().add_function("default", "back up", [](JobContext& job) -> Coro<void> {
    std::printf("backup planned for %s\n", job.payload().c_str());
    co_return;
  }));

  Schedule backup{.name = "backup", .trigger = value_or_throw(Trigger::parse("30 3 * * *"))};
  backup.job.function = "back up";
  backup.job.payload = "{planned_at}";
  backup.job.fill_in = true;
  value_or_throw(co_await engine.book().schedules().add(backup));
  engine.scheduler().start();
  co_await sleep(48h);
  value_or_throw(co_await engine.close());
}

int main() {
  VirtualBackend backend(WallTime{1'767'225'600s});  // from 2026-01-01 on, two days in a moment;
  run(backend, nights());                            // run(nights()) takes two days
}
