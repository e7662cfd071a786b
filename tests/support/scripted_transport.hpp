// A transport that answers what a test says, and remembers what it was asked.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/web/http.hpp"

namespace argiope {

class ScriptedTransport final : public HttpTransport {
 public:
  // Fills in an answer, which is 200 without anything.
  std::function<void(const HttpRequest&, HttpResponse&)> answer;
  std::vector<HttpRequest> asked;
  std::vector<TimePoint> asked_at;

  Coro<Result<void>> send(const HttpRequest& request, HttpResponse& response) override {
    response.headers.clear();
    response.body.clear();
    response.damage.clear();
    response.status = 200;
    response.sent_at = EventLoop::current().time();
    response.connected = true;
    asked.push_back(request);
    asked_at.push_back(response.sent_at);
    if (answer) answer(request, response);
    co_return Result<void>{};
  }

  // Of the request that came last; empty: it had none.
  std::string field(std::string_view name) const { return field_of(asked.back(), name); }
  static std::string field_of(const HttpRequest& request, std::string_view name) {
    for (const auto& [its_name, value] : request.headers) {
      if (its_name == name) return value;
    }
    return {};
  }
};

}  // namespace argiope
