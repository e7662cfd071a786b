// A schedule and two of its runs. docs/schedules.md prints this program.
#include <argiope/async.hpp>
#include <argiope/engine/scheduler.hpp>
#include <cstdio>
using namespace argiope;
using namespace std::chrono_literals;

Coro<void> nights() {
  const auto store = value_or_throw(open_store("memory:"));  // "sqlite:FILE" keeps schedules and jobs
  const auto broker = value_or_throw(co_await Broker::open(*store));
  const auto scheduler = value_or_throw(co_await Scheduler::open(*store, *broker));
  value_or_throw(co_await scheduler->add_executor("default"));
  value_or_throw(scheduler->add_function("default", "back up", [](JobContext& job) -> Coro<void> {
    std::printf("backup planned for %s\n", job.payload().c_str());
    co_return;
  }));

  Schedule backup{.name = "backup", .trigger = value_or_throw(Trigger::parse("30 3 * * *"))};
  backup.job.function = "back up";
  backup.job.payload = "{planned_at}";
  backup.job.fill_in = true;
  value_or_throw(co_await scheduler->add(backup));
  scheduler->start();
  co_await sleep(48h);
  value_or_throw(co_await scheduler->shutdown());
  value_or_throw(co_await broker->close());
}

int main() {
  VirtualBackend backend(WallTime{1'767'225'600s});  // from 2026-01-01 on, two days in a moment;
  run(backend, nights());                            // run(nights()) takes two days
}
