// What an order service does when its queue is full, and when it closes: an order is answered at once, workers deal
// with it in the background. examples/order_service.cpp is the service itself, over HTTP.
//
// The queue between them is bounded, and what happens when it is full is a policy: let the customer wait, or refuse the
// order so that he can go elsewhere. Shutting down takes no more orders and gives those in the house ten seconds; what
// is not done by then is told, not lost silently. The workers and the customers are tasks of groups, so nobody is left
// behind when the day ends, or is cancelled. A request is a coroutine here; no network, and time is simulated.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "argiope/async.hpp"

using namespace argiope;
using namespace std::chrono_literals;

long now_ms() { return EventLoop::current().time().time_since_epoch() / 1ms; }

enum class WhenFull { wait, refuse };
// As an HTTP server would answer.
enum class Answer { accepted = 202, too_many = 429, closing = 503 };

class OrderService {
 public:
  OrderService(std::string name, WhenFull when_full, Duration work_per_order)
      : name_(std::move(name)), when_full_(when_full), work_per_order_(work_per_order) {}

  // Its workers are tasks of `house`.
  void open(TaskGroup& house) {
    for (int i = 0; i < 4; ++i) workers_.push_back(house.create_task(work()));
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
      co_await wait_for(queue_.join(), limit);
    } catch (const TimeoutError&) {
      in_time = false;
    }
    if (!in_time) {
      fmt::print("{:5} ms  {}: {} orders were waiting and {} under way when time was up\n", now_ms(), name_,
                 queue_.qsize(), under_way_);
      dropped_ = queue_.qsize();
      queue_.shutdown(true);
      for (Task<void>& worker : workers_) worker.cancel();
    }
    co_await wait(workers_);
    fmt::print("{:5} ms  {}: closed, {} orders done\n", now_ms(), name_, done_);
  }

  // Every order that was accepted is one or the other.
  std::size_t done() const { return done_; }
  std::size_t not_done() const { return queue_.qsize() + under_way_ + dropped_; }

 private:
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
  std::size_t under_way_ = 0;
  std::size_t done_ = 0;
  std::size_t dropped_ = 0;
};

// What customers were answered.
struct Answers {
  std::size_t accepted = 0;
  std::size_t refused = 0;
  Duration slowest{};
};

Coro<void> order(OrderService& service, int number, Answers& answers) {
  const TimePoint asked = EventLoop::current().time();
  const Answer answer = co_await service.submit(number);
  answers.slowest = std::max(answers.slowest, EventLoop::current().time() - asked);
  ++(answer == Answer::accepted ? answers.accepted : answers.refused);
}

// 60 customers, each 50 ms after the other, then the end.
Coro<void> day(const char* name, OrderService& service, Answers& answers) {
  co_await TaskGroup::run([&](TaskGroup& house) -> Coro<void> {
    service.open(house);
    co_await TaskGroup::run([&](TaskGroup& customers) -> Coro<void> {
      for (int number = 1; number <= 60; ++number) {
        customers.create_task(order(service, number, answers));
        co_await sleep(50ms);
      }
    });
    fmt::print("{:5} ms  {}: {} accepted, {} refused, the slowest answer took {} ms\n", now_ms(), name,
               answers.accepted, answers.refused, answers.slowest / 1ms);
    co_await service.close(10s);
  });
  const Answer late = co_await service.submit(0);
  fmt::print("{:5} ms  {}: a late customer is answered {}\n", now_ms(), name, static_cast<int>(late));
}

int main() {
  const auto simulate = [](const char* name, WhenFull when_full, Duration work_per_order) {
    VirtualBackend backend;
    OrderService service(name, when_full, work_per_order);
    Answers answers;
    run(backend, day(name, service, answers));
  };
  simulate("waiting", WhenFull::wait, 500ms);
  simulate("refusing", WhenFull::refuse, 500ms);
  simulate("too slow", WhenFull::refuse, 8s);
}
