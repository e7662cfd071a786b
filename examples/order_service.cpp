// An order service: submitting an order answers at once, workers deal with it in the background.
//
// The queue between them is bounded, and what happens when it is full is a policy: let the customer wait, or refuse the
// order so that he can go elsewhere. Shutting down takes no more orders and gives those in the house ten seconds; what
// is not done by then is told, not lost silently. A request is a coroutine here; no network, and time is simulated.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "argiope/async/group.hpp"
#include "argiope/async/queue.hpp"
#include "argiope/async/sleep.hpp"
#include "argiope/async/timeout.hpp"
#include "argiope/async/virtual_backend.hpp"

using namespace argiope;
using namespace std::chrono_literals;

long now_ms() { return EventLoop::current().time().time_since_epoch() / 1ms; }

enum class WhenFull { wait, refuse };
// As an HTTP server would answer.
enum class Answer { accepted = 202, too_many = 429, closing = 503 };

class OrderService {
 public:
  OrderService(std::string name, WhenFull when_full, Duration work_per_order)
      : name_(std::move(name)), when_full_(when_full), work_per_order_(work_per_order) {
    for (int i = 0; i < 4; ++i) workers_.push_back(EventLoop::current().create_task(work()));
  }

  Coro<Answer> submit(int order) {
    try {
      if (when_full_ == WhenFull::wait) {
        co_await queue_.put(order);
      } else {
        queue_.put_nowait(order);
      }
    } catch (const QueueFull&) {
      co_return Answer::too_many;
    } catch (const QueueShutDown&) {
      co_return Answer::closing;
    }
    co_return Answer::accepted;
  }

  // Takes no more orders. Returns when those in the house are done, or after `limit`.
  Coro<void> close(Duration limit) {
    queue_.shutdown();
    bool in_time = true;
    try {
      co_await wait_for(drained(), limit);
    } catch (const TimeoutError&) {
      in_time = false;
    }
    if (!in_time) {
      fmt::print("{:5} ms  {}: {} orders were waiting and {} under way when time was up\n", now_ms(), name_,
                 queue_.qsize(), under_way_);
      queue_.shutdown(true);
      for (Task<void>& worker : workers_) worker.cancel();
      co_await yield_now();  // lets them end
    }
    fmt::print("{:5} ms  {}: closed, {} orders done\n", now_ms(), name_, done_);
  }

 private:
  Coro<void> drained() { co_await queue_.join(); }

  Coro<void> work() {
    try {
      for (;;) {
        const int order = co_await queue_.get();
        ++under_way_;
        co_await sleep(work_per_order_ + order % 3 * 10ms);
        --under_way_;
        ++done_;
        queue_.task_done();
      }
    } catch (const QueueShutDown&) {
    }
  }

  std::string name_;
  WhenFull when_full_;
  Duration work_per_order_;
  Queue<int> queue_{10};
  std::vector<Task<void>> workers_;
  int under_way_ = 0;
  int done_ = 0;
};

// `count` customers, each 50 ms after the other, and what they were answered.
Coro<void> customers(OrderService& service, const char* name, int count) {
  int accepted = 0, refused = 0;
  Duration longest{};
  co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
    const auto order = [&](int number) -> Coro<void> {
      const TimePoint asked = EventLoop::current().time();
      const Answer answer = co_await service.submit(number);
      longest = std::max(longest, EventLoop::current().time() - asked);
      ++(answer == Answer::accepted ? accepted : refused);
    };
    std::vector<Task<void>> orders;
    for (int number = 1; number <= count; ++number) {
      orders.push_back(group.create_task(order(number)));
      co_await sleep(50ms);
    }
    for (Task<void>& one : orders) co_await one;
  });
  fmt::print("{:5} ms  {}: {} accepted, {} refused, the slowest answer took {} ms\n", now_ms(), name, accepted, refused,
             longest / 1ms);
}

Coro<void> day(const char* name, WhenFull when_full, Duration work_per_order) {
  OrderService service(name, when_full, work_per_order);
  co_await customers(service, name, 60);
  co_await service.close(10s);
  const Answer late = co_await service.submit(0);
  fmt::print("{:5} ms  {}: a late customer is answered {}\n", now_ms(), name, static_cast<int>(late));
}

int main() {
  const auto simulate = [](const char* name, WhenFull when_full, Duration work_per_order) {
    VirtualBackend backend;
    EventLoop loop(backend);
    loop.run_until_complete(day(name, when_full, work_per_order));
  };
  simulate("waiting", WhenFull::wait, 500ms);
  simulate("refusing", WhenFull::refuse, 500ms);
  simulate("too slow", WhenFull::refuse, 8s);
}
