// A supermarket's check-out: customers queue, tills serve them, and the shop closes when everybody has paid.
//
// queue.join() waits until every customer who was put in the queue has had his task_done(); the tills, which would wait
// for ever, are then cancelled. They are a group's, so that none of them outlives the afternoon, even one that is
// cancelled itself. An afternoon of simulated time.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "argiope/async.hpp"
#include "argiope/base/random.hpp"

using namespace argiope;
using namespace std::chrono_literals;

struct Customer {
  int number;
  int articles;
  TimePoint came_at;
};

struct Statistics {
  int served = 0;
  int articles = 0;
  Duration longest_wait{};
};

TimePoint now() { return EventLoop::current().time(); }
long minutes(Duration d) { return d / 1min; }

Coro<void> customers_come(Queue<Customer>& queue, Random& random, int count) {
  for (int number = 1; number <= count; ++number) {
    co_await sleep(std::chrono::seconds(random.below(48)));
    co_await queue.put({number, static_cast<int>(1 + random.below(40)), now()});
  }
}

Coro<void> till(Queue<Customer>& queue, Statistics& statistics) {
  for (;;) {
    const Customer customer = co_await queue.get();
    statistics.longest_wait = std::max(statistics.longest_wait, now() - customer.came_at);
    co_await sleep(20s + customer.articles * 3s);
    ++statistics.served;
    statistics.articles += customer.articles;
    queue.task_done();
  }
}

// One entry of `statistics` a till.
Coro<void> afternoon(Queue<Customer>& queue, std::vector<Statistics>& statistics) {
  Random random(7);
  co_await TaskGroup::run([&](TaskGroup& shop) -> Coro<void> {
    std::vector<Task<void>> tills;
    for (Statistics& one : statistics) tills.push_back(shop.create_task(till(queue, one)));

    co_await customers_come(queue, random, 200);
    fmt::print("{} min: the doors close, {} customers stand in the queue\n", minutes(now().time_since_epoch()),
               queue.qsize());
    co_await queue.join();
    fmt::print("{} min: everybody has paid\n", minutes(now().time_since_epoch()));
    for (Task<void>& task : tills) task.cancel();
  });

  int served = 0;
  for (std::size_t i = 0; i < statistics.size(); ++i) {
    fmt::print("till {}: {} customers, {} articles, longest wait {} min\n", i + 1, statistics[i].served,
               statistics[i].articles, minutes(statistics[i].longest_wait));
    served += statistics[i].served;
  }
  fmt::print("{} customers in all\n", served);
}

int main() {
  VirtualBackend backend;
  Queue<Customer> queue;
  std::vector<Statistics> statistics(3);
  run(backend, afternoon(queue, statistics));
}
