// start_server: accepting clients, and a task for each of them.
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "argiope/async/stream.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/base/detail/intrusive_list.hpp"
#include "async/socket_address.hpp"
#include "async/unique_fd.hpp"
#include "async/unix_path.hpp"
#include "base/internal/printable.hpp"

namespace argiope {
namespace detail {

using std::chrono_literals::operator""s;

// How long accepting rests when the system gives no more descriptors.
constexpr Duration kRest = 1s;

// Shared by the Server and the tasks that serve its clients.
class ServerState : public std::enable_shared_from_this<ServerState> {
 public:
  ServerState(ConnectionHandler handler, const ServerOptions& options)
      : loop_(EventLoop::current()), handler_(std::move(handler)), options_(options) {
    if (!handler_) throw std::invalid_argument("a server needs a handler");
    if (options.max_connections == 0) throw std::invalid_argument("max_connections is at least 1");
  }

  // `path`: of a Unix socket.
  void listen(UniqueFd fd, const SocketAddress& address, UnixPath path = {}) {
    if (::bind(fd.get(), address.get(), address.size) != 0) fail("bind to " + address.name());
    fd_ = std::move(fd);
    path_ = std::move(path);
    path_.note_bound();
    if (::listen(fd_.get(), options_.backlog) != 0) fail("listen at " + address.name());
    accept_from_now_on();
  }
  // A socket that listens already.
  void adopt(UniqueFd fd) {
    fd_ = std::move(fd);
    int listens = 0;
    socklen_t size = sizeof listens;
    if (::getsockopt(fd_.get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0) fail("start_server");
    if (listens == 0) throw std::invalid_argument("start_server of a socket that does not listen");
    const int flags = ::fcntl(fd_.get(), F_GETFL);
    if (flags < 0 || ::fcntl(fd_.get(), F_SETFL, flags | O_NONBLOCK) != 0) fail("start_server");
    if (::fcntl(fd_.get(), F_SETFD, FD_CLOEXEC) != 0) fail("start_server");
    accept_from_now_on();
  }

  bool serving() const noexcept { return serving_; }
  const std::string& name() const noexcept { return name_; }
  std::uint16_t port() const noexcept { return local_.port(); }
  std::size_t connections() const noexcept { return connection_count_; }

  void close() {
    if (!serving_) return;
    serving_ = false;
    std::exchange(rest_, Handle{}).cancel();
    watch_.reset();
    fd_.reset();
    path_.remove();
    closed_.set();
    if (connection_count_ == 0) finished_.set();
  }
  void close_clients() {
    connections_.for_each([](Connection& connection) {
      if (connection.stream) connection.stream.close();
    });
  }
  void abort_clients() {
    connections_.for_each([](Connection& connection) {
      if (connection.stream) connection.stream.abort();
    });
  }
  static Coro<void> wait_closed(std::shared_ptr<ServerState> self) { co_await self->finished_.wait(); }
  static Coro<void> serve_forever(std::shared_ptr<ServerState> self) {
    std::exception_ptr cancellation;
    try {
      co_await self->closed_.wait();
    } catch (const CancelledError&) {
      cancellation = std::current_exception();
    }
    if (cancellation == nullptr) co_return;
    self->close();
    co_await self->finished_.wait();
    std::rethrow_exception(cancellation);
  }

 private:
  // One client, from being accepted until its task has ended.
  struct Connection : ListHook {
    Connection(std::shared_ptr<ServerState> its_server, Stream its_stream)
        : server(std::move(its_server)), stream(std::move(its_stream)) {
      server->connections_.push_back(*this);
      ++server->connection_count_;
    }
    ~Connection() {
      unlink();
      server->on_left();
    }
    std::shared_ptr<ServerState> server;
    Stream stream;
  };

  static void fail(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

  static Coro<void> converse(std::unique_ptr<Connection> connection) {
    Stream& stream = connection->stream;
    std::exception_ptr failure;
    try {
      co_await connection->server->handler_(stream);
    } catch (const CancelledError&) {
      throw;
    } catch (...) {
      failure = std::current_exception();
    }
    if (stream) {
      stream.close();
      try {
        co_await stream.wait_closed();
      } catch (const std::system_error&) {
        // A client that has gone before all was sent is nobody's failure.
      }
    }
    if (failure != nullptr) std::rethrow_exception(failure);
  }

  void accept_from_now_on() {
    local_.size = sizeof local_.storage;
    if (::getsockname(fd_.get(), local_.get(), &local_.size) != 0) fail("getsockname");
    name_ = local_.name();
    watch_ = loop_.backend().watch(fd_.get());
    serving_ = true;
    accept_when_ready();
  }

  bool full() const noexcept { return connection_count_ >= options_.max_connections; }

  void on_left() noexcept {
    const bool was_full = full();
    --connection_count_;
    if (serving_ && was_full) accept_when_ready();
    if (!serving_ && connection_count_ == 0) finished_.set();
  }

  void accept_when_ready() {
    watch_->start(Interest::read, [this] { accept_waiting(); });
  }

  // As many as the kernel lets wait, so that a rush of clients does not hold up everything else.
  void accept_waiting() {
    for (int i = 0; i < options_.backlog && serving_ && !full(); ++i) {
      SocketAddress peer;
      peer.size = sizeof peer.storage;
      UniqueFd client(::accept4(fd_.get(), peer.get(), &peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!client) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) break;
        if (errno == EINTR || errno == ECONNABORTED) continue;
        rest();
        return;
      }
      try {
        serve(std::move(client), peer);
      } catch (...) {
        loop_.handle_exception(name_, std::current_exception());
      }
    }
    if (serving_ && !full()) accept_when_ready();
  }

  void rest() {
    loop_.handle_exception(name_, std::make_exception_ptr(std::system_error(errno, std::generic_category(), "accept")));
    if (!serving_) return;  // the exception handler has closed it
    rest_ = loop_.call_later(kRest, [this] { accept_when_ready(); });
  }

  void serve(UniqueFd client, const SocketAddress& peer) {
    if (peer.family() != AF_UNIX) {
      const int on = 1;
      ::setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    auto connection = std::make_unique<Connection>(shared_from_this(), Stream(client.release(), options_.stream));
    loop_.create_task(converse(std::move(connection)), fmt::format("{}, client {}", name_, peer.name()));
  }

  EventLoop& loop_;
  ConnectionHandler handler_;
  const ServerOptions options_;
  UniqueFd fd_;
  std::unique_ptr<Watch> watch_;
  SocketAddress local_;
  std::string name_;
  UnixPath path_;
  Handle rest_;
  bool serving_ = false;
  IntrusiveList<Connection> connections_;
  std::size_t connection_count_ = 0;
  Event closed_;
  Event finished_;
};

}  // namespace detail

using detail::ServerState;
using detail::SocketAddress;
using detail::UniqueFd;
using detail::UnixPath;

namespace {

UniqueFd new_socket(int family) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) throw std::system_error(errno, std::generic_category(), "socket");
  return fd;
}

}  // namespace

Server::Server(std::shared_ptr<ServerState> state) noexcept : state_(std::move(state)) {}
Server::Server(Server&& other) noexcept = default;
Server& Server::operator=(Server&& other) noexcept {
  if (this != &other) {
    if (state_) state_->close();
    state_ = std::move(other.state_);
  }
  return *this;
}
Server::~Server() {
  if (state_) state_->close();
}

ServerState& Server::state() const {
  if (!state_) throw std::logic_error("this Server is empty: it was moved from, or never started");
  return *state_;
}
bool Server::is_serving() const noexcept { return state_ && state_->serving(); }
const std::string& Server::name() const { return state().name(); }
std::uint16_t Server::port() const { return state().port(); }
std::size_t Server::connections() const { return state().connections(); }
void Server::close() { state().close(); }
void Server::close_clients() { state().close_clients(); }
void Server::abort_clients() { state().abort_clients(); }
Coro<void> Server::wait_closed() { return ServerState::wait_closed(state().shared_from_this()); }
Coro<void> Server::serve_forever() { return ServerState::serve_forever(state().shared_from_this()); }

Server start_server(ConnectionHandler handler, const std::string& host, std::uint16_t port,
                    const ServerOptions& options) {
  const auto addresses = detail::numeric_addresses(host, port);
  if (addresses.empty()) {
    throw std::invalid_argument(
        fmt::format("{} is no address to listen at; all there are: \"0.0.0.0\", \"::\"", in_quotes(host)));
  }
  const SocketAddress& address = addresses.front();
  UniqueFd fd = new_socket(address.family());
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family() == AF_INET6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  auto state = std::make_shared<ServerState>(std::move(handler), options);
  state->listen(std::move(fd), address);
  return Server(std::move(state));
}

Server start_server(ConnectionHandler handler, int fd, const ServerOptions& options) {
  UniqueFd owner(fd);
  auto state = std::make_shared<ServerState>(std::move(handler), options);
  state->adopt(std::move(owner));
  return Server(std::move(state));
}

Server start_unix_server(ConnectionHandler handler, const std::string& path, const ServerOptions& options) {
  const SocketAddress address = detail::unix_address(path);
  auto state = std::make_shared<ServerState>(std::move(handler), options);
  UniqueFd fd = new_socket(AF_UNIX);
  state->listen(std::move(fd), address, path[0] == '\0' ? UnixPath() : UnixPath(path));
  return Server(std::move(state));
}

}  // namespace argiope
