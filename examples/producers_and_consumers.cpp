// Producers and consumers around a bounded queue, and their orderly end.
//
// The queue holds three items, so producers that are faster than the consumers are slowed down to their pace. When the
// producers have ended the queue is shut down: the consumers take what is left and then end, too. Time is simulated.
#include <fmt/format.h>

#include <string>

#include "argiope/async/group.hpp"
#include "argiope/async/queue.hpp"
#include "argiope/async/sleep.hpp"
#include "argiope/async/virtual_backend.hpp"

using namespace argiope;
using namespace std::chrono_literals;

long now_ms() { return EventLoop::current().time().time_since_epoch() / 1ms; }

Coro<void> produce(Queue<std::string>& queue, std::string name, int count) {
  for (int i = 1; i <= count; ++i) {
    co_await queue.put(fmt::format("{}{}", name, i));
    fmt::print("{:3} ms  {} has put {}{}, {} queued\n", now_ms(), name, name, i, queue.qsize());
    co_await sleep(10ms);
  }
}

Coro<void> consume(Queue<std::string>& queue, std::string name) {
  try {
    for (;;) {
      const std::string item = co_await queue.get();
      co_await sleep(30ms);
      fmt::print("{:3} ms  {} has dealt with {}\n", now_ms(), name, item);
    }
  } catch (const QueueShutDown&) {
    fmt::print("{:3} ms  {} goes home\n", now_ms(), name);
  }
}

Coro<void> run(Queue<std::string>& queue) {
  co_await TaskGroup::run([&](TaskGroup& consumers) -> Coro<void> {
    for (const char* name : {"Ann", "Bob"}) consumers.create_task(consume(queue, name));
    co_await TaskGroup::run([&](TaskGroup& producers) -> Coro<void> {
      for (const char* name : {"x", "y", "z"}) producers.create_task(produce(queue, name, 3));
      co_return;
    });
    queue.shutdown();
  });
}

int main() {
  VirtualBackend backend;
  Queue<std::string> queue(3);
  EventLoop loop(backend);
  loop.run_until_complete(run(queue));
}
