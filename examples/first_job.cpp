// A durable job, put and run. docs/jobs.md prints this program.
#include <argiope/async.hpp>
#include <argiope/engine/worker.hpp>
#include <argiope/store/store.hpp>
#include <cstdio>
using namespace argiope;

Coro<void> mail() {
  const auto store = value_or_throw(open_store("sqlite:first_job.db"));
  const auto broker = value_or_throw(co_await Broker::open(*store));
  const auto put = value_or_throw(co_await broker->put({.queue = "mail", .key = "ann", .payload = "welcome"}));
  std::printf("job %s\n", put.id > 0 ? "is on the disk" : "was not put");

  Worker worker(*broker, {.name = "w1", .queues = {"mail"}, .until_empty = true});
  worker.add("mail", [](JobContext& job) -> Coro<void> {
    std::printf("to %s: %s\n", job.job().key.c_str(), job.payload().c_str());  // an exception would be tried again
    co_return;
  });
  value_or_throw(co_await worker.run());
  value_or_throw(co_await broker->close());
}

int main() { run(mail()); }
