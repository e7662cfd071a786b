// The routes of the API that read bodies: any bytes, at any of them. The first byte chooses the route. Every answer is
// whole, its body is JSON, and what is refused changes nothing that a client could not have asked for.
#include "serve/api/api.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/io_backend.hpp"
#include "argiope/web/http_server.hpp"
#include "fuzz/require.hpp"

using namespace argiope;

namespace {

struct Asked {
  HttpMethod method;
  std::string_view target;
  std::string_view type;
};
constexpr Asked kAsked[] = {
    {HttpMethod::post, "/v1/jobs", "application/json"},
    {HttpMethod::post, "/v1/jobs", "application/x-ndjson"},
    {HttpMethod::post, "/v1/leases", ""},
    {HttpMethod::post, "/v1/leases/settle", ""},
    {HttpMethod::patch, "/v1/leases", ""},
    {HttpMethod::post, "/v1/jobs/change", ""},
    {HttpMethod::patch, "/v1/jobs/1", ""},
    {HttpMethod::post, "/v1/jobs/1/cancel", ""},
    {HttpMethod::put, "/v1/queues/q", ""},
    {HttpMethod::patch, "/v1/queues/q", ""},
    {HttpMethod::post, "/v1/queues/q/kick", ""},
    {HttpMethod::post, "/v1/schedules", ""},
    {HttpMethod::put, "/v1/schedules/s", ""},
    {HttpMethod::patch, "/v1/schedules/s", ""},
    {HttpMethod::post, "/v1/next", ""},
};

// One daemon for some inputs, so that they meet what others have left.
class Daemon {
 public:
  Daemon() {
    loop_.run_until_complete(open());
    api_ = std::make_unique<Api>(*engine_, gate_, *feed_, ApiOptions{});
    api_->add_to(router_);
  }
  ~Daemon() {
    loop_.run_until_complete(close());
    feed_.reset();
    api_.reset();
    engine_.reset();
    loop_.cancel_all_tasks();
    while (loop_.task_count() > 0) loop_.run_once(TimePoint::min());
  }

  ServerResponse ask(const Asked& asked, std::string_view body) {
    ServerRequest request;
    request.method = asked.method;
    request.set_target(asked.target);
    request.host = "localhost";
    if (!asked.type.empty()) request.headers.emplace_back("Content-Type", asked.type);
    request.body = body;
    return loop_.run_until_complete(router_(request));
  }

 private:
  Coro<void> open() {
    engine_ = std::make_unique<Engine>(value_or_throw(co_await Engine::open("memory:")));
    feed_ = std::make_unique<EventFeed>(*engine_, EventFeedOptions{}, 1);
  }
  Coro<void> close() { (void)co_await engine_->close(); }

  VirtualBackend backend_;
  EventLoop loop_{backend_};
  Gate gate_{{}, backend_.clock()};
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<EventFeed> feed_;
  std::unique_ptr<Api> api_;
  HttpRouter router_;
};

constexpr int kInputsADaemon = 200;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static std::unique_ptr<Daemon> daemon;
  static int inputs = 0;
  if (size == 0) return 0;
  if (inputs++ % kInputsADaemon == 0) {
    daemon.reset();
    daemon = std::make_unique<Daemon>();
  }
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  const ServerResponse response = daemon->ask(kAsked[data[0] % std::size(kAsked)], body);
  require(response.status >= 200 && response.status < 500);
  require(response.status == 204 || JsonText::parse(response.body).has_value());
  return 0;
}
