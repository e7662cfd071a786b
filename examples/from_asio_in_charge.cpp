// An io_context that stays in charge: a program written with Asio runs it as before, and Argiope's tasks run beside
// Asio's coroutines, on the same thread. docs/from-asio.md prints this program.
#include <algorithm>
#include <argiope/async.hpp>
#include <argiope/async/asio_backend.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdio>

namespace asio = boost::asio;
using namespace argiope;
using namespace std::chrono_literals;

namespace {

// Has `context` drive `loop`: by a descriptor, which tells of I/O and of calls from outside, and by a timer.
//
// Lifetime: until `context` has returned from run() for the last time.
class DrivenByAsio {
 public:
  DrivenByAsio(asio::io_context& context, EventLoop& loop, AsioBackend& backend)
      : loop_(loop), wake_up_(context, backend.wake_up_descriptor()), timer_(context) {
    listen();
    turn();
  }
  ~DrivenByAsio() { wake_up_.release(); }  // the backend's, not ours to close
  DrivenByAsio(const DrivenByAsio&) = delete;
  DrivenByAsio& operator=(const DrivenByAsio&) = delete;

 private:
  void listen() {
    wake_up_.async_wait(asio::posix::descriptor_base::wait_read, [this](const boost::system::error_code& error) {
      if (error) return;
      turn();
      listen();
    });
  }
  void turn() {
    loop_.run_once(TimePoint::min());  // what is ready; it never waits
    const TimePoint next = loop_.next_deadline();
    timer_.cancel();
    if (next == kNever) return;
    timer_.expires_after(std::max(next - loop_.time(), Duration{0}));
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) turn();
    });
  }

  EventLoop& loop_;
  asio::posix::stream_descriptor wake_up_;
  asio::steady_timer timer_;
};

constexpr int kOrders = 3;

// Asio's: it knows nothing of our loop but the door for all that is outside it, call_soon_threadsafe.
asio::awaitable<void> place_orders(EventLoop& loop, Queue<int>& orders) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (int order = 1; order <= kOrders; ++order) {
    timer.expires_after(1ms);
    co_await timer.async_wait(asio::use_awaitable);
    loop.call_soon_threadsafe([&orders, order] { orders.put_nowait(order); });
  }
}

// Ours. Asio's objects on `context` may be used from here as they are: it is the same thread.
Coro<int> ship_orders(Queue<int>& orders) {
  int shipped = 0;
  while (shipped < kOrders) {
    const int order = co_await orders.get();
    co_await sleep(2ms);
    std::printf("order %d shipped\n", order);
    ++shipped;
  }
  co_return shipped;
}

}  // namespace

int main() {
  asio::io_context context(1);
  AsioBackend backend;
  Queue<int> orders;
  EventLoop loop(backend);

  Task<int> shipping = loop.create_task(ship_orders(orders));
  shipping.add_done_callback([&] { context.stop(); });
  asio::co_spawn(context, place_orders(loop, orders), asio::detached);
  const DrivenByAsio driven(context, loop, backend);
  context.run();
  std::printf("%d orders\n", shipping.result());
}
