#include <argiope/argiope.hpp>  // A schedule, and two nights of it in a moment. docs/schedules.md prints this program.
using namespace argiope;
Coro<void> save(JobContext&) { co_return void(std::puts("saving, at half past three")); }
Coro<void> nights() {
  Engine engine = value_or_throw(co_await Engine::open("memory:"));  // "sqlite:FILE" keeps schedules and jobs
  value_or_throw(engine.scheduler().add_function("default", "save", save));
  Schedule saving{.name = "save", .trigger = value_or_throw(Trigger::parse("30 3 * * *")), .job = {.function = "save"}};
  value_or_throw(co_await engine.book().schedules().add(saving));
  engine.scheduler().start();
  co_await sleep(std::chrono::days(2));
}
int main() { run(*std::make_unique<VirtualBackend>(), nights()); }  // in real time: run(nights())
