// Works on a file's jobs until SIGTERM. `argiope job put mail "to: ann" --store sqlite:jobs.db` puts one.
#include <argiope/async.hpp>
#include <argiope/engine/worker.hpp>
#include <csignal>
#include <cstdio>
using namespace argiope;
Coro<void> send(JobContext& job) {  // what it throws is tried again; what runs when the process dies runs once more
  std::fprintf(stderr, "%s\n", job.payload().c_str());
  co_return;
}
Coro<void> amain() {
  const auto store = value_or_throw(open_store("sqlite:jobs.db"));
  const auto broker = value_or_throw(co_await Broker::open(*store));
  Worker worker(*broker, {.queues = {"mail"}});
  worker.add("mail", send);
  EventLoop::current().add_signal_handler(SIGTERM, [&] { worker.stop(); });  // ten seconds for what is running
  value_or_throw(co_await worker.run());
  value_or_throw(co_await broker->close());
}
int main() { run(amain()); }
