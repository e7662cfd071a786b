#include "serve/gate/cross_origin.hpp"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "web/text/internal/ascii.hpp"

namespace argiope {

namespace {

struct CrossOrigin {
  HttpHandler handler;
  std::vector<std::string> origins;

  bool knows(std::string_view origin) const noexcept {
    return std::ranges::any_of(origins, [&](const std::string& one) { return equals_ignoring_case(origin, one); });
  }
};

bool is_preflight(const ServerRequest& request) noexcept {
  return request.method == HttpMethod::options && !request.header("Access-Control-Request-Method").empty();
}

ServerResponse preflight_answer() {
  return {.status = 204,
          .headers = {{"Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE"},
                      {"Access-Control-Allow-Headers",
                       "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Request-Id"},
                      {"Access-Control-Max-Age", "600"}},
          .body = {},
          .stream = {}};
}

Coro<ServerResponse> answer_across(std::shared_ptr<const CrossOrigin> state, ServerRequest& request) {
  const std::string origin(request.header("Origin"));
  if (!state->knows(origin)) co_return co_await state->handler(request);
  ServerResponse response = is_preflight(request) ? preflight_answer() : co_await state->handler(request);
  response.headers.emplace_back("Access-Control-Allow-Origin", origin);
  response.headers.emplace_back("Access-Control-Expose-Headers", "Retry-After, X-Request-Id");
  response.headers.emplace_back("Vary", "Origin");
  co_return response;
}

}  // namespace

HttpHandler with_origins(HttpHandler handler, std::vector<std::string> origins) {
  if (origins.empty()) return handler;
  auto state = std::make_shared<const CrossOrigin>(std::move(handler), std::move(origins));
  return [state](ServerRequest& request) { return answer_across(state, request); };
}

}  // namespace argiope
