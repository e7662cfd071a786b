// An order service: POST /orders?customer=NAME is answered at once, and four workers do the orders, important customers
// first. GET /orders/ID says how far one is. When 100 wait, the next is refused with 503; after "order_service PORT
// wait" it waits. SIGTERM closes the shop: it takes no more orders, and has ten seconds for those it took.
#include <argiope/async.hpp>
#include <argiope/web/http_server.hpp>
#include <csignal>
#include <cstdio>
using namespace argiope;
using namespace std::chrono_literals;

struct Order {
  bool important;
  std::size_t id;
  std::string what;
  bool operator<(const Order& other) const { return important > other.important; }  // equals: first come, first served
};
struct Shop {
  bool waits_when_full;
  PriorityQueue<Order> queue{100};
  std::vector<std::string> states;  // of every order, by its id
};
Coro<ServerResponse> take_order(Shop& shop, ServerRequest& request) {
  const std::size_t id = shop.states.size();
  shop.states.push_back("waiting\n");
  const Order order{request.query_value("customer") == "important", id, request.body};
  try {
    if (shop.waits_when_full) co_await shop.queue.put(order);
    if (!shop.waits_when_full) shop.queue.put_nowait(order);
  } catch (const std::runtime_error& refused) {  // QueueFull, or QueueShutDown
    co_return ServerResponse::problem(503, refused.what(), {{"Retry-After", "1"}});
  }
  co_return ServerResponse{.status = 202, .headers = {{"Location", "/orders/" + std::to_string(id)}}};
}
Coro<void> work(Shop& shop) {
  for (;;) {
    const Order order = co_await shop.queue.get();
    co_await sleep(10ms);  // the work
    shop.states[order.id] = "done: " + order.what + "\n";
  }
}
Coro<void> serve(std::uint16_t port, bool waits_when_full) {
  Shop shop{.waits_when_full = waits_when_full};
  HttpRouter router;
  router.post("/orders", [&](ServerRequest& request) { return take_order(shop, request); });
  router.get("/orders/{id}", [&](ServerRequest& request) -> Coro<ServerResponse> {
    const std::size_t id = request.path_number("id").value_or(shop.states.size());
    if (id >= shop.states.size()) co_return ServerResponse::problem(404, "there is no such order");
    co_return ServerResponse::text(200, shop.states[id]);
  });
  HttpServer server(router);
  std::printf("http://127.0.0.1:%u/orders\n", server.listen("127.0.0.1", port)), std::fflush(stdout);
  std::vector<Coro<void>> workers;
  for (int i = 0; i < 4; ++i) workers.push_back(work(shop));
  auto working = ensure_future(gather(return_exceptions, std::move(workers)));
  co_await until_signal(SIGTERM);
  shop.queue.shutdown();  // put() throws from now on; get() does when the queue is empty, and ends the workers
  co_await gather(server.stop(10s), wait(std::vector{working}, When::all_completed, 10s));
  std::printf("%zu orders were left waiting\n", shop.queue.qsize());
}
int main(int argc, char** argv) { run(serve(argc > 1 ? std::atoi(argv[1]) : 8080, argc > 2)); }
