// HttpServer: HTTP/1.1 for programs. A coroutine of the program's answers each request.
//
//   HttpServer server([](ServerRequest& request) -> Coro<ServerResponse> {
//     co_return ServerResponse::text(200, "hello, " + request.query_value("name").value_or("world") + "\n");
//   });
//   server.listen("127.0.0.1", 8080);
//   co_await server.serve_forever();
//
// HttpRouter is a handler that chooses among others by method and path. Not here: HTTP/2;
// compression; files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/web/detail/tls.hpp"
#include "argiope/web/http.hpp"

namespace argiope {

namespace detail {
class HttpConnection;
class HttpServerCore;
}  // namespace detail

// A request whose head and body have come whole.
//
// Lifetime: a handler is given a reference. It holds, and so does every view in it, until the answer has been sent;
//           what is needed for longer is copied. A handler may change it, and move the body out of it.
struct ServerRequest {
  HttpMethod method = HttpMethod::get;
  // As sent, but without scheme and authority where a client sent those: "/orders/7?full=1", or "*" for OPTIONS.
  std::string_view target;
  // The target up to "?", and what comes behind it. Both as sent, with their %XX.
  std::string_view path;
  std::string_view query;
  // Whom the client believes to talk to: "shop.example:8080". Nothing checks it. Empty only when HTTP/1.0 left it out,
  // or when it was sent empty.
  std::string_view host;
  // In the order they came; names as they were written. No trailers of a chunked body.
  std::vector<std::pair<std::string_view, std::string_view>> headers;
  // Without its chunks; any Content-Encoding stays.
  std::string body;
  // The client: "127.0.0.1:50312", "[::1]:50312"; empty for a Unix socket, and for a client that left before it was
  // asked for its name.
  std::string_view peer;
  // Of a Unix socket, and only there: the user id of who connected, as the kernel knows it.
  std::optional<std::uint32_t> peer_user;
  // Whether it came by TLS.
  bool secure = false;
  // The texts that the parts of the router's pattern matched, decoded: {"id", "7"}.
  std::vector<std::pair<std::string, std::string>> path_values;

  // The first field of that name, in any case; empty when there is none.
  std::string_view header(std::string_view name) const noexcept;
  // The first value of that name in the query, with %XX and + decoded; nullopt when there is none. "?full" has an empty
  // one.
  std::optional<std::string> query_value(std::string_view name) const;
  // The text that the part {name} of the pattern matched; empty when the pattern has no such part.
  std::string_view path_value(std::string_view name) const noexcept;
  // The same as a number in decimal digits; nullopt when it is none, or more than 64 bits hold.
  std::optional<std::uint64_t> path_number(std::string_view name) const noexcept;
  // Sets target, path and query. `sent` must outlive the request. For who makes requests for tests.
  void set_target(std::string_view sent) noexcept;
};

// Writes a body piece by piece.
//
// Threads: the loop's own.
class BodyWriter {
 public:
  // Sends `piece` at once; an empty one does nothing.
  // Suspends: while the client has more than 64 KiB to take, so that a slow client slows its answer and fills no
  // memory. Errors:   std::system_error when the connection is broken. CancelledError, thrown at this or any other
  // await, when
  //           the client left, took nothing for HttpServerOptions::send_timeout, or the server's drain time is up.
  Coro<void> write(std::string_view piece);
  // Whether HttpServer::stop() was called: a stream without an end should end now.
  bool server_stops() const noexcept;

 private:
  friend class detail::HttpConnection;
  explicit BodyWriter(detail::HttpConnection& connection) noexcept : connection_(connection) {}
  detail::HttpConnection& connection_;
};

// The answer of a handler. The server adds Date, Content-Length or Transfer-Encoding, and Connection; it sends no body
// for HEAD, 204 and 304.
struct ServerResponse {
  // 200 to 599.
  int status = 200;
  // Sent in this order. "Connection: close" closes the connection afterwards; "Date" replaces the server's.
  // A name or value that could split the answer, Content-Length and Transfer-Encoding are mistakes: the client gets
  // 500.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // Where it is set, it writes the body instead, once the head has been sent: chunked, or up to the end of the
  // connection for HTTP/1.0. It may refer to the request. An exception that it throws is logged, and the client sees a
  // body that was cut off. HEAD does not call it.
  std::function<Coro<void>(BodyWriter& out)> stream;
  // Kept until the client has taken the answer, or cannot any more: for who counts what waits in memory. The connection
  // sends a body as the client takes it, and holds it that long.
  std::shared_ptr<const void> until_sent;

  // Plain text in UTF-8, and JSON.
  static ServerResponse text(int status, std::string body);
  static ServerResponse json(int status, std::string body);
  // An error as RFC 9457 has it, which is what the server itself answers with: {"type":"about:blank","title":"Not
  // Found", "status":404,"detail":…}.
  static ServerResponse problem(int status, std::string_view detail,
                                std::vector<std::pair<std::string, std::string>> more_headers = {});
  static ServerResponse streamed(int status, std::string content_type, std::function<Coro<void>(BodyWriter&)> stream);
};

// Answers one request. It runs in the task of its connection; those of one connection run one after the other.
// Errors: what it throws is told to the loop's exception handler, and the client gets 500.
// Cancel: it is cancelled when its client leaves (see HttpServerOptions::cancel_when_client_leaves), when
//         request_timeout is over, and when the time to drain is up. The client then gets 503 where it is still there.
using HttpHandler = std::function<Coro<ServerResponse>(ServerRequest& request)>;

// Makes an answer that no handler gives: to a request that the server refuses or whose handler failed, or that the
// router has no handler for. Of a request whose head did not come whole, or could not be read, there are neither fields
// nor a path. Must not throw.
using HttpRefusal = std::function<ServerResponse(const ServerRequest& request, int status, std::string_view detail)>;

// The costs that one client may cause. A limit that is broken ends that client's connection and no other.
struct HttpServerOptions {
  // Of each address that is listened to. Further clients wait, unaccepted, until one of these has gone. When all but a
  // 64th part of so many are open, the one that has waited longest for a request, or for its rest, is closed for each
  // that comes.
  std::size_t max_connections = 10'000;
  // Clients that the kernel lets wait.
  int backlog = 511;
  // Bytes of request line and fields together (431, or 414 for the request line alone), and how many fields (431).
  std::size_t max_header_bytes = 16 * 1024;
  std::size_t max_header_fields = 100;
  // Bytes of a body (413).
  std::size_t max_body_bytes = 16 * 1024 * 1024;
  // Where it is set, clients speak TLS (TlsIdentity), but for those of Unix sockets. A request in plain HTTP gets 400.
  std::shared_ptr<const TlsIdentity> tls;
  // From being connected until TLS is agreed on; the connection is then broken off.
  Duration handshake_timeout = std::chrono::seconds{10};
  // Bytes of bodies that may be held at a time, of all connections together (503); those of up to 16 KiB are taken even
  // so.
  std::size_t max_bodies_bytes = 1024 * 1024 * 1024;
  // When set, may answer a request by its head alone, before its body is taken; the connection is then closed. It is
  // not asked where the body has come with the head. body and path_values are empty. Must not throw.
  std::function<std::optional<ServerResponse>(const ServerRequest& request)> answer_early;
  // When set, makes the answers that are the server's own, in place of ServerResponse::problem().
  HttpRefusal refusal;
  // When set, is shown each answer before its head is sent, the server's own included, and may add to its headers. The
  // request is as HttpRefusal has it. Must not throw.
  std::function<void(const ServerRequest& request, ServerResponse& response)> before_sending;
  // When set, gives the limit of this request instead. Called when the head has come, before any of the body is taken;
  // body and path_values are empty. Must not throw.
  std::function<std::size_t(const ServerRequest& request)> body_limit;
  // From the first byte of a request to the end of its head (408).
  Duration header_timeout = std::chrono::seconds{10};
  // From the end of the head to the end of the body: so long, and a second more for every min_body_rate bytes of it
  // that have come (408).
  Duration body_timeout = std::chrono::seconds{20};
  std::size_t min_body_rate = 1024;
  // From the request to the handler's answer, without the time a streamed body takes (503).
  Duration request_timeout = std::chrono::minutes{2};
  // How long a connection may stay open without a request; it is then closed.
  Duration keep_alive_timeout = std::chrono::seconds{60};
  // How long a client may take nothing of an answer; the connection is then broken off.
  Duration send_timeout = std::chrono::seconds{30};
  // Whether a handler is cancelled when its client closes the connection, or its half of it: the two look alike.
  // (Behind 64 KiB of further requests that is not seen.) Otherwise it runs to its end, and the answer is sent to who
  // may be gone.
  bool cancel_when_client_leaves = true;
};

// An HTTP/1.1 and 1.0 server, with keep-alive and pipelining.
//
// Requests: what is malformed, or could be read in two ways (two lengths, a length beside chunks, folded lines, a line
//           feed alone, no Host), is answered 400 with a problem that says why, and the connection is closed. A method
//           or coding the server does not know gives 501.
// Sending:  answers to requests that came together leave together.
// Lifetime: stop() before destroying it. Destroying cancels the handlers that are under way, which end in the loop's
//           next turns, and needs their objects until then. Destroy it before its loop.
// Threads:  the loop's own.
// Cost:     no thread, no timer and few allocations a request; about 3 KB for an idle connection.
class HttpServer {
 public:
  // Errors: std::invalid_argument for an empty handler, or limits of zero.
  explicit HttpServer(HttpHandler handler, HttpServerOptions options = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Takes clients at an address of this machine from now on; see start_server() for `host`. May be called several
  // times. The port; 0 asks for a free one.
  // Errors: those of start_server(); std::logic_error after stop().
  std::uint16_t listen(const std::string& host, std::uint16_t port);
  // The same at a path, and at a socket that listens already (start_server() of a descriptor), which it takes.
  void listen_unix(const std::string& path);
  void listen_at(int fd);

  // Suspends until stop() was called. Cancel: throws CancelledError; the server goes on.
  Coro<void> serve_forever();

  // Takes no more clients and closes connections without a request; those with one get their answer first, those whose
  // request comes now get 503. After `drain`, cancels handlers and breaks off what is being sent.
  // True: everything had ended within `drain`.
  // Suspends: until everything has ended; for `drain` and a second at most, even where a handler does not let itself be
  //           cancelled. Its task then goes on, and its connection is closed.
  // Cancel:   throws CancelledError; the server stays as far stopped as it is. May be called again.
  Coro<bool> stop(Duration drain);
  bool is_stopping() const noexcept;

  // Open now.
  std::size_t connections() const noexcept;
  // That were given to the handler so far.
  std::uint64_t requests() const noexcept;

 private:
  std::shared_ptr<detail::HttpServerCore> core_;
};

// HttpRouter: chooses a handler by method and path.
//
//   HttpRouter router;
//   router.post("/orders", place_order);
//   router.get("/orders/{id}", [&](ServerRequest& request) -> Coro<ServerResponse> { … request.path_value("id") … });
//   HttpServer server(std::move(router));

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
