// The order service of order_service.cpp, durable: an order is a job in a SQLite file before it is acknowledged, so
// that kill -9 loses none. The next process goes on with what is in the file. SIGTERM gives the orders under way ten
// seconds.
// Usage: durable_orders PORT FILE [wait]
#include <argiope/async.hpp>
#include <argiope/engine/engine.hpp>
#include <argiope/web/http_server.hpp>
#include <csignal>
#include <cstdio>
using namespace argiope;
using namespace std::chrono_literals;

Coro<ServerResponse> take_order(Book& book, ServerRequest& request) {
  const int priority = request.query_value("customer") == "important" ? 1 : 0;
  const auto put = co_await book.put({.queue = "orders", .priority = priority, .payload = request.body});
  if (!put) co_return ServerResponse::problem(503, put.error().message, {{"Retry-After", "1"}});
  co_return ServerResponse{.status = 202, .headers = {{"Location", "/orders/" + std::to_string(put->id)}}};
}
Coro<ServerResponse> show_order(Book& book, ServerRequest& request) {
  const auto job = co_await book.get(request.path_number("id").value_or(0));
  if (!job) co_return ServerResponse::problem(404, job.error().message);
  co_return ServerResponse::text(200, std::string(to_string(job->state)) + ": " + job->payload + "\n");
}
Coro<void> work(JobContext&) { co_await sleep(10ms); }  // what it throws is tried again

Coro<void> serve(std::uint16_t port, std::string file, bool waits_when_full) {
  Engine engine = value_or_throw(co_await Engine::open("sqlite:" + file));
  Book& book = engine.book();
  QueueConfig config{.capacity = 10'000, .keep_done = 24h};
  if (waits_when_full) config.at_capacity = CapacityPolicy::wait;
  value_or_throw(co_await book.configure("orders", config));
  Worker worker(engine, {.queues = {"orders"}, .concurrency = 4, .drain_limit = 10s});
  worker.add("orders", work);
  auto working = ensure_future(worker.run());

  HttpRouter router;
  router.post("/orders", [&](ServerRequest& request) { return take_order(book, request); });
  router.get("/orders/{id}", [&](ServerRequest& request) { return show_order(book, request); });
  HttpServer server(router);
  std::printf("http://127.0.0.1:%u/orders\n", server.listen("127.0.0.1", port)), std::fflush(stdout);
  co_await wait(When::first_completed, until_signal(SIGTERM), working);
  worker.stop();  // what runs has ten seconds; what waits stays in the file
  co_await server.stop(10s);
  value_or_throw(co_await working);
  value_or_throw(co_await engine.close());
}
int main(int argc, char** argv) {
  run(serve(argc > 1 ? std::atoi(argv[1]) : 8080, argc > 2 ? argv[2] : "orders.db", argc > 3));
}
