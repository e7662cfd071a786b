#include <argiope/argiope.hpp>
#include <cstdio>
using namespace argiope;
Coro<void> tick(JobContext&) { co_return void(std::puts("tick")); }
Coro<void> ticks(Trigger each_second) {
  Engine engine = value_or_throw(co_await Engine::open("memory:"));  // "sqlite:FILE" keeps schedules and jobs
  value_or_throw(engine.scheduler().add_function("default", "", tick));
  value_or_throw(co_await engine.book().schedules().add({.name = "s", .trigger = each_second, .max_runs = 3}));
  engine.scheduler().start();
  co_await sleep(std::chrono::seconds{5});
}
int main() { run(ticks(Trigger::parse("@every 1s").value())); }
