// HttpRouter: chooses a handler by method and path.
//
//   HttpRouter router;
//   router.post("/orders", place_order);
//   router.get("/orders/{id}", [&](ServerRequest& request) -> Coro<ServerResponse> { … request.path_value("id") … });
//   HttpServer server(std::move(router));
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "argiope/web/http_server.hpp"

namespace argiope {

// A handler made of handlers.
//
// Patterns: "/orders/{id}/items". A part in braces takes one whole part of the path, which is not empty, and decodes
//           its %XX; "{rest...}" at the end takes all that is left, slashes included, and may be empty. Written parts
//           are compared with the decoded path, and go before parts in braces. "/orders" and "/orders/" are two paths.
// Methods:  GET also serves HEAD where HEAD has no handler. OPTIONS is answered with Allow where it has none, and
//           "OPTIONS *" without.
// Answers:  404 for a path without a handler; 405 with Allow for one that has other methods.
// Copies:   share their routes.
// Threads:  one at a time. Add routes before the first request.
// Cost:     does not grow with the number of routes, but for paths that match several patterns.
class HttpRouter {
 public:
  HttpRouter();

  // Errors: std::invalid_argument for a pattern that does not start with "/", has an empty or repeated name in braces,
  //         or something behind {rest...}; for a route that is there already; for an empty handler.
  void add(HttpMethod method, std::string_view pattern, HttpHandler handler);
  void get(std::string_view pattern, HttpHandler handler) { add(HttpMethod::get, pattern, std::move(handler)); }
  void post(std::string_view pattern, HttpHandler handler) { add(HttpMethod::post, pattern, std::move(handler)); }
  void put(std::string_view pattern, HttpHandler handler) { add(HttpMethod::put, pattern, std::move(handler)); }
  void patch(std::string_view pattern, HttpHandler handler) { add(HttpMethod::patch, pattern, std::move(handler)); }
  void delete_(std::string_view pattern, HttpHandler handler) { add(HttpMethod::delete_, pattern, std::move(handler)); }

  // Makes the answers 404 and 405 in place of ServerResponse::problem(); Allow is added.
  void refuse_by(HttpRefusal refusal) { refusal_ = std::move(refusal); }

  // Fills request.path_values, and gives what the route's handler answers.
  Coro<ServerResponse> operator()(ServerRequest& request) const;

 private:
  class Routes;
  ServerResponse refuse(const ServerRequest& request, int status, std::string_view detail) const;

  std::shared_ptr<Routes> routes_;
  HttpRefusal refusal_;
};

}  // namespace argiope
