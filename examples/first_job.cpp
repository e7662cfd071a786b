// A durable worker, and a job for it. docs/jobs.md prints this program.
#include <argiope/async.hpp>
#include <argiope/engine/engine.hpp>
#include <cstdio>
using namespace argiope;

Coro<void> mail() {
  Engine engine = value_or_throw(co_await Engine::open("sqlite:first_job.db"));
  value_or_throw(co_await engine.book().put({.queue = "mail", .key = "ann", .payload = "welcome"}));  // on the disk now
  Worker worker(engine, {.until_empty = true});
  worker.add("mail", [](JobContext& job) -> Coro<void> {
    std::printf("to %s: %s\n", job.job().key.c_str(), job.payload().c_str());  // an exception would be tried again
    co_return;
  });
  value_or_throw(co_await worker.run());
  value_or_throw(co_await engine.close());
}

int main() { run(mail()); }
