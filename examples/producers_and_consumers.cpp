#include <fmt/format.h>

#include <argiope/async.hpp>
using namespace argiope;
Coro<void> produce(Queue<std::string>& queue, std::string name) {
  for (int i = 1; i <= 3; ++i) co_await queue.put(name + std::to_string(i));  // waits while the queue is full
}
Coro<void> consume(Queue<std::string>& queue, std::string name) {
  for (;; queue.task_done()) fmt::print("{} has dealt with {}\n", name, co_await queue.get());
}
Coro<void> amain() {  // three producers and two consumers around a bounded queue, and their orderly end
  Queue<std::string> queue(3);
  co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
    auto consumers = group.create_task(gather(consume(queue, "Ann"), consume(queue, "Bob")));
    co_await gather(produce(queue, "x"), produce(queue, "y"), produce(queue, "z"));
    co_await queue.join();  // until each item has had its task_done()
    consumers.cancel();
  });
}
int main() { run(amain()); }
