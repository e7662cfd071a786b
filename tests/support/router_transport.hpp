// Requests handed straight to an HttpRouter, and connections that are lost when a test wants it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/web/http.hpp"
#include "argiope/web/http_server.hpp"

namespace argiope {

class RouterTransport final : public HttpTransport {
 public:
  enum class Loss { none, refused, before_effect, after_effect };

  explicit RouterTransport(const HttpRouter& router) : router_(router) {}

  // What becomes of each request, which are counted from 1.
  std::function<Loss(std::size_t number, const HttpRequest& request)> loss;
  std::size_t sent = 0;
  std::vector<std::string> paths;
  // How long each answer is on its way.
  Duration answer_takes{};

  Coro<Result<void>> send(const HttpRequest& request, HttpResponse& response) override {
    response = {};
    response.sent_at = EventLoop::current().time();
    paths.emplace_back(request.url.path_and_query());
    const Loss what = loss ? loss(++sent, request) : (++sent, Loss::none);
    if (what == Loss::refused) co_return fail(Errc::network, "connect 127.0.0.1: Connection refused");
    response.connected = true;
    if (what == Loss::before_effect) co_return fail(Errc::network, "the connection was reset");
    ServerResponse answered = co_await answer(request);
    if (answer_takes > Duration::zero()) co_await sleep(answer_takes);
    if (what == Loss::after_effect) co_return fail(Errc::network, "the connection was reset");
    response.status = answered.status;
    response.body = std::move(answered.body);
    for (const auto& [name, value] : answered.headers) {
      if (name == "Content-Type") response.headers.content_type = value;
    }
    co_return Result<void>{};
  }

 private:
  Coro<ServerResponse> answer(const HttpRequest& request) {
    const std::string target(request.url.path_and_query());
    ServerRequest asked;
    asked.method = request.method;
    asked.set_target(target);
    asked.host = "localhost";
    asked.peer = "127.0.0.1:5";
    asked.headers = {request.headers.begin(), request.headers.end()};
    asked.body = request.body;
    co_return co_await router_(asked);
  }

  const HttpRouter& router_;
};

}  // namespace argiope
