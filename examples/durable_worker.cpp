// Works on a file's jobs until SIGTERM. `argiope job put mail "to: ann" --store sqlite:jobs.db` puts one.
#include <argiope/async.hpp>
#include <argiope/engine/engine.hpp>
#include <csignal>
#include <cstdio>
using namespace argiope;
Coro<void> send(JobContext& job) {  // what it throws is tried again; what runs when the process dies runs once more
  std::fprintf(stderr, "%s\n", job.payload().c_str());
  co_return;
}
Coro<void> amain() {
  Engine engine = value_or_throw(co_await Engine::open("sqlite:jobs.db"));
  Worker worker(engine, {.queues = {"mail"}});
  worker.add("mail", send);
  EventLoop::current().add_signal_handler(SIGTERM, [&] { worker.stop(); });  // ten seconds for what is running
  value_or_throw(co_await worker.run());
  value_or_throw(co_await engine.close());
}
int main() { run(amain()); }
