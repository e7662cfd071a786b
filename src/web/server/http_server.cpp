#include "argiope/web/http_server.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "web/server/http_connection.hpp"

namespace argiope {

using detail::HttpConnection;
using detail::HttpServerCore;

namespace {

using namespace std::chrono_literals;
using SharedCore = std::shared_ptr<HttpServerCore>;

// The time stop() grants beyond its own: to handlers that were cancelled, and then to connections that were broken off.
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

void begin_to_stop(HttpServerCore& core) {
  core.stopping = true;
  core.stop_asked.set();
  core.servers.close();
  core.connections.for_each([](HttpConnection& connection) { connection.stop_when_idle(); });
}

Coro<bool> stop_within(SharedCore core, Duration drain) {
  begin_to_stop(*core);
  const bool in_time = co_await core->servers.all_gone(drain);
  if (in_time) co_return true;
  core->connections.for_each([](HttpConnection& connection) { connection.stop_now(); });
  const bool after_all = co_await core->servers.all_gone(kLastGrace);
  if (after_all) co_return false;
  core->servers.abort_clients();
  co_await core->servers.all_gone(kLastGrace);
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
  core_->servers.forget();
}

std::uint16_t HttpServer::listen(const std::string& host, std::uint16_t port) {
  return core_->servers.listen(serving(core_), host, port);
}
void HttpServer::listen_unix(const std::string& path) { core_->servers.listen_unix(serving(core_), path); }
void HttpServer::listen_at(int fd) { core_->servers.listen_at(serving(core_), fd); }

Coro<void> HttpServer::serve_forever() { return until_stopped(core_); }
Coro<bool> HttpServer::stop(Duration drain) { return stop_within(core_, drain); }
bool HttpServer::is_stopping() const noexcept { return core_->stopping; }
std::size_t HttpServer::connections() const noexcept { return core_->connection_count; }
std::uint64_t HttpServer::requests() const noexcept { return core_->requests; }

Coro<void> BodyWriter::write(std::string_view piece) { return connection_.write_piece(piece); }
bool BodyWriter::server_stops() const noexcept { return connection_.server_stops(); }

}  // namespace argiope
