#include "argiope/web/http_server.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "argiope/async/group.hpp"
#include "argiope/async/timeout.hpp"
#include "web/http_connection.hpp"

namespace argiope {

using detail::HttpConnection;
using detail::HttpServerCore;

namespace {

using namespace std::chrono_literals;
using SharedCore = std::shared_ptr<HttpServerCore>;

// What stop() grants beyond its time: to handlers that were cancelled, and then to connections that were broken off.
constexpr Duration kLastGrace = 500ms;

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(fmt::format("an HTTP server needs {}", what));
}

ConnectionHandler serving(SharedCore core) {
  return [core = std::move(core)](Stream& stream) -> Coro<void> {
    HttpConnection connection(*core, stream);
    co_await connection.serve();
  };
}

ServerOptions listening(const HttpServerOptions& options) {
  return {.max_connections = options.max_connections, .backlog = options.backlog};
}

void require_not_stopped(const HttpServerCore& core) {
  if (core.stopping) throw std::logic_error("listening with an HTTP server that was stopped");
}

// Whether all clients of servers that are closed have gone within `limit`.
Coro<bool> all_gone(SharedCore core, Duration limit) {
  std::vector<Coro<void>> ends;
  for (Server& server : core->servers) ends.push_back(server.wait_closed());
  try {
    co_await wait_for(gather(std::move(ends)), limit);
  } catch (const TimeoutError&) {
    co_return core->connection_count == 0;
  }
  co_return true;
}

void begin_to_stop(HttpServerCore& core) {
  core.stopping = true;
  core.stop_asked.set();
  for (Server& server : core.servers) server.close();
  core.connections.for_each([](HttpConnection& connection) { connection.stop_when_idle(); });
}

Coro<bool> stop_within(SharedCore core, Duration drain) {
  begin_to_stop(*core);
  const bool in_time = co_await all_gone(core, drain);
  if (in_time) co_return true;
  core->connections.for_each([](HttpConnection& connection) { connection.stop_now(); });
  const bool after_all = co_await all_gone(core, kLastGrace);
  if (after_all) co_return false;
  for (Server& server : core->servers) server.abort_clients();
  co_await all_gone(core, kLastGrace);
  co_return false;
}

Coro<void> until_stopped(SharedCore core) { co_await core->stop_asked.wait(); }

}  // namespace

HttpServer::HttpServer(HttpHandler handler, HttpServerOptions options) {
  require(handler != nullptr, "a handler");
  require(options.max_connections > 0, "max_connections of at least 1");
  require(options.max_header_bytes > 0 && options.max_header_fields > 0, "room for a request's head");
  require(options.min_body_rate > 0, "min_body_rate of at least 1");
  core_ = std::make_shared<HttpServerCore>(std::move(handler), std::move(options));
}

HttpServer::~HttpServer() {
  begin_to_stop(*core_);
  core_->connections.for_each([](HttpConnection& connection) { connection.stop_now(); });
  // They keep the core, which keeps them.
  core_->servers.clear();
}

std::uint16_t HttpServer::listen(const std::string& host, std::uint16_t port) {
  require_not_stopped(*core_);
  core_->servers.push_back(start_server(serving(core_), host, port, listening(core_->options)));
  return core_->servers.back().port();
}

void HttpServer::listen_unix(const std::string& path) {
  require_not_stopped(*core_);
  core_->servers.push_back(start_unix_server(serving(core_), path, listening(core_->options)));
}

void HttpServer::listen_at(int fd) {
  Server server = start_server(serving(core_), fd, listening(core_->options));
  require_not_stopped(*core_);
  core_->servers.push_back(std::move(server));
}

Coro<void> HttpServer::serve_forever() { return until_stopped(core_); }
Coro<bool> HttpServer::stop(Duration drain) { return stop_within(core_, drain); }
bool HttpServer::is_stopping() const noexcept { return core_->stopping; }
std::size_t HttpServer::connections() const noexcept { return core_->connection_count; }
std::uint64_t HttpServer::requests() const noexcept { return core_->requests; }

Coro<void> BodyWriter::write(std::string_view piece) { return connection_.write_piece(piece); }
bool BodyWriter::server_stops() const noexcept { return connection_.server_stops(); }

}  // namespace argiope
