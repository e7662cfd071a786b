// A program that has a loop already, libuv's, and runs Argiope's tasks beside it on the same thread: libuv's timer
// feeds a queue, a task takes from it and answers over a real socket, and each side stays unaware of the other.
#include <fmt/core.h>
#include <uv.h>

#include <string>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "argiope/async/queue.hpp"
#include "argiope/async/stream.hpp"
#include "libuv_loop.hpp"

using namespace argiope;
using namespace std::chrono_literals;

namespace {

constexpr int kOrders = 3;

Coro<void> shout(Stream& client) {
  for (;;) {
    std::string line = co_await client.read_line();
    if (line.empty()) co_return;
    for (char& letter : line) {
      if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
    }
    client.write(line);
    co_await client.drain();
  }
}

// Takes what libuv's callbacks put, and has a server on this very loop shout it back. Cancelled, serve_forever() waits
// until the last client has been served, so nothing runs on when this has ended, however it ended.
Coro<void> serve_orders(Queue<std::string>& orders) {
  Server server = start_server(&shout, "127.0.0.1", 0);
  co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
    Task<void> serving = group.create_task(server.serve_forever());
    Stream connection = co_await open_connection("127.0.0.1", server.port());
    for (int i = 0; i < kOrders; ++i) {
      connection.write(co_await orders.get() + "\n");
      co_await connection.drain();
      fmt::print("answer: {}", co_await connection.read_line());
    }
    connection.close();
    serving.cancel();
  });
  co_await sleep(2ms);
}

// Places an order each millisecond, from a timer of libuv's.
class Customer {
 public:
  Customer(uv_loop_t& foreign, Queue<std::string>& orders) : orders_(orders) {
    uv_timer_init(&foreign, &timer_);
    timer_.data = this;
    uv_timer_start(
        &timer_, [](uv_timer_t* timer) { static_cast<Customer*>(timer->data)->place(); }, 1, 1);
  }
  Customer(const Customer&) = delete;
  Customer& operator=(const Customer&) = delete;

  int placed() const { return placed_; }

 private:
  void place() {
    orders_.put_nowait("order " + std::to_string(++placed_));
    if (placed_ == kOrders) uv_close(reinterpret_cast<uv_handle_t*>(&timer_), nullptr);
  }

  Queue<std::string>& orders_;
  uv_timer_t timer_;
  int placed_ = 0;
};

}  // namespace

int main() {
  AsioBackend backend;
  Queue<std::string> orders;
  EventLoop loop(backend);

  uv_loop_t foreign;
  uv_loop_init(&foreign);
  Customer customer(foreign, orders);
  {
    const LibuvLoop driven(foreign, loop, backend);
    Task<void> task = loop.create_task(serve_orders(orders));
    task.add_done_callback([&] { uv_stop(&foreign); });
    uv_run(&foreign, UV_RUN_DEFAULT);
    task.result();
  }
  uv_run(&foreign, UV_RUN_DEFAULT);  // lets libuv free the handles
  const bool clean = uv_loop_close(&foreign) == 0;
  fmt::print("{} orders served\n", customer.placed());
  return clean ? 0 : 1;
}
