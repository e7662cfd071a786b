// A program that has a loop already, libuv's, and runs Argiope's tasks beside it on the same thread: libuv's timer
// feeds a queue, a task takes from it and answers over a real socket, and each side stays unaware of the other.
#include <fmt/core.h>
#include <uv.h>

#include <string>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/queue.hpp"
#include "argiope/async/sleep.hpp"
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

// Takes what libuv's callbacks put, and has a server on this very loop shout it back.
Coro<void> serve_orders(Queue<std::string>& orders) {
  Server server = start_server(&shout, "127.0.0.1", 0);
  Stream connection = co_await open_connection("127.0.0.1", server.port());
  for (int i = 0; i < kOrders; ++i) {
    connection.write(co_await orders.get() + "\n");
    co_await connection.drain();
    fmt::print("answer: {}", co_await connection.read_line());
  }
  connection.close();
  server.close();
  co_await server.wait_closed();
  co_await sleep(2ms);
}

struct Customer {
  Queue<std::string>& orders;
  int placed = 0;
};

}  // namespace

int main() {
  SystemClock clock;
  AsioBackend backend(clock);
  EventLoop loop(backend);
  Queue<std::string> orders;
  Customer customer{orders};

  uv_loop_t foreign;
  uv_loop_init(&foreign);
  uv_timer_t till;
  uv_timer_init(&foreign, &till);
  till.data = &customer;
  uv_timer_start(
      &till,
      [](uv_timer_t* timer) {
        auto& its = *static_cast<Customer*>(timer->data);
        its.orders.put_nowait("order " + std::to_string(++its.placed));
        if (its.placed == kOrders) uv_close(reinterpret_cast<uv_handle_t*>(timer), nullptr);
      },
      1, 1);

  {
    const LibuvLoop driven(foreign, loop, backend);
    Task<void> task = loop.create_task(serve_orders(orders));
    task.add_done_callback([&] { uv_stop(&foreign); });
    uv_run(&foreign, UV_RUN_DEFAULT);
    task.result();
  }
  uv_run(&foreign, UV_RUN_DEFAULT);  // lets libuv free the handles
  const bool clean = uv_loop_close(&foreign) == 0;
  fmt::print("{} orders served\n", customer.placed);
  return clean ? 0 : 1;
}
