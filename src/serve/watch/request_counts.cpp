#include "serve/watch/request_counts.hpp"

#include <utility>

#include "argiope/async/event_loop.hpp"

namespace argiope {

namespace {

// Notes how a request ended, whichever way it does.
class Measured {
 public:
  explicit Measured(RouteCounts& counts) : counts_(counts), loop_(EventLoop::current()), began_(loop_.time()) {}
  ~Measured() {
    ++counts_.by_class[class_];
    counts_.took.observe(loop_.time() - began_);
  }
  Measured(const Measured&) = delete;
  Measured& operator=(const Measured&) = delete;
  void answered(int status) noexcept {
    class_ = status >= 100 && status < 600 ? static_cast<std::size_t>(status / 100) : 0;
  }

 private:
  RouteCounts& counts_;
  EventLoop& loop_;
  const TimePoint began_;
  std::size_t class_ = 0;
};

Coro<ServerResponse> answer_counted(std::shared_ptr<RouteCounts> counts, std::shared_ptr<const HttpHandler> handler,
                                    ServerRequest& request) {
  Measured measured(*counts);
  ServerResponse response = co_await (*handler)(request);
  measured.answered(response.status);
  co_return response;
}

}  // namespace

HttpHandler RequestCounts::counted(std::string route, HttpHandler handler) {
  std::shared_ptr<RouteCounts>& counts = routes_[std::move(route)];
  if (counts == nullptr) counts = std::make_shared<RouteCounts>();
  return [counts, handler = std::make_shared<const HttpHandler>(std::move(handler))](ServerRequest& request) {
    return answer_counted(counts, handler, request);
  };
}

}  // namespace argiope
