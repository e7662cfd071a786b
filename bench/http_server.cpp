// The HTTP server beside others: one thread each, 64 connections, a POST of 100 bytes of JSON that is given back; one
// at a time and 16 pipelined. Each server is a process of its own; the client is this one, on the other core.
// Usage: bench_http_server [--requests N] [--rounds N] [--only NAME] | --serve NAME
// Prints requests/s, and the server's processor time a request, which other work on the machine changes less. --serve
// is for other programs: one server, whose port goes to the standard output in two bytes, until it is killed.
#include "argiope/web/http_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async.hpp"
#include "bench/report.hpp"

namespace {

using namespace argiope;

constexpr std::size_t kConnections = 64;

struct Arguments {
  std::size_t requests = 200'000;
  std::size_t rounds = 3;
  std::string only, serve;
};

[[noreturn]] void stop(std::string_view why) {
  fmt::print(stderr, "bench_http_server: {}\n", why);
  std::exit(1);
}

// The port goes to `announce` when the server listens.
using Serve = std::function<void(int announce)>;

void announce_port(int announce, std::uint16_t port) {
  if (::write(announce, &port, sizeof port) != sizeof port) ::_exit(1);
}

// --- the servers

void serve_argiope(int announce) {
  run([](int to) -> Coro<void> {
    HttpRouter router;
    router.post("/orders", [](ServerRequest& request) -> Coro<ServerResponse> {
      co_return ServerResponse::json(200, std::move(request.body));
    });
    HttpServer server(router);
    announce_port(to, server.listen("127.0.0.1", 0));
    co_await server.serve_forever();
  }(announce));
}

namespace beast = boost::beast;
namespace http = beast::http;
using tcp = boost::asio::ip::tcp;

class BeastSession : public std::enable_shared_from_this<BeastSession> {
 public:
  explicit BeastSession(tcp::socket socket) : socket_(std::move(socket)) { buffer_.reserve(16 * 1024); }
  void read() {
    request_ = {};
    http::async_read(socket_, buffer_, request_, [self = shared_from_this()](beast::error_code error, std::size_t) {
      if (!error) self->answer();
    });
  }

 private:
  void answer() {
    response_ = {http::status::ok, request_.version()};
    response_.set(http::field::content_type, "application/json");
    response_.keep_alive(request_.keep_alive());
    response_.body() = std::move(request_.body());
    response_.prepare_payload();
    http::async_write(socket_, response_, [self = shared_from_this()](beast::error_code error, std::size_t) {
      if (!error) self->read();
    });
  }

  tcp::socket socket_;
  beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  http::response<http::string_body> response_;
};

void serve_beast(int announce) {
  boost::asio::io_context context(1);
  tcp::acceptor acceptor(context, {boost::asio::ip::address_v4::loopback(), 0});
  announce_port(announce, acceptor.local_endpoint().port());
  std::function<void()> accept = [&] {
    acceptor.async_accept([&](beast::error_code error, tcp::socket socket) {
      if (error) return;
      socket.set_option(tcp::no_delay(true));
      std::make_shared<BeastSession>(std::move(socket))->read();
      accept();
    });
  };
  accept();
  context.run();
}

// Writes its port to descriptor 3.
constexpr const char* kNodeServer = R"(
const server = require('http').createServer((request, response) => {
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => {
    const body = Buffer.concat(pieces);
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length });
    response.end(body);
  });
});
server.listen(0, '127.0.0.1', () => {
  const port = Buffer.alloc(2);
  port.writeUInt16LE(server.address().port);
  require('fs').writeSync(3, port);
});
)";

void serve_node(int announce) {
  ::dup2(announce, 3);
  ::execlp("node", "node", "-e", kNodeServer, static_cast<char*>(nullptr));
  ::_exit(127);
}

// --- the client

void use_core(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

struct Client {
  int fd = -1;
  std::size_t to_come = 0;  // bytes of answers
};

int connect_to(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) stop("cannot connect");
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

const std::string& request() {
  static const std::string text = [] {
    const std::string body = "{\"customer\":\"ann\",\"important\":true,\"items\":[" + std::string(54, '7') + "]}";
    return fmt::format(
        "POST /orders HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Type: application/json\r\nContent-Length: "
        "{}\r\n\r\n{}",
        body.size(), body);
  }();
  return text;
}

void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) stop("the server has closed a connection");
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

// Every answer has that many bytes.
std::size_t answer_size(std::uint16_t port) {
  const int fd = connect_to(port);
  send_all(fd, request());
  std::string got;
  char chunk[4096];
  std::size_t head = std::string::npos;
  const std::size_t body = request().size() - request().find("\r\n\r\n") - 4;
  while (head == std::string::npos || got.size() < head + 4 + body) {
    const ssize_t count = ::recv(fd, chunk, sizeof chunk, 0);
    if (count <= 0) stop("the server gives no answer");
    got.append(chunk, static_cast<std::size_t>(count));
    head = got.find("\r\n\r\n");
  }
  if (!got.starts_with("HTTP/1.1 200 ")) stop("the server answers " + got.substr(0, 30));
  ::close(fd);
  return got.size();
}

// Requests a second.
double ask(std::uint16_t port, std::size_t requests, std::size_t pipelined) {
  const std::size_t answer = answer_size(port);
  std::string batch;
  for (std::size_t i = 0; i < pipelined; ++i) batch += request();
  std::vector<Client> clients(kConnections);
  const int poll = ::epoll_create1(EPOLL_CLOEXEC);
  for (Client& client : clients) {
    client.fd = connect_to(port);
    epoll_event event{.events = EPOLLIN, .data = {.ptr = &client}};
    ::epoll_ctl(poll, EPOLL_CTL_ADD, client.fd, &event);
  }
  std::size_t left = requests / pipelined;
  std::size_t open = 0;
  const auto send_next = [&](Client& client) {
    if (left == 0) return;
    --left;
    ++open;
    client.to_come = answer * pipelined;
    send_all(client.fd, batch);
  };
  const auto start = std::chrono::steady_clock::now();
  for (Client& client : clients) send_next(client);
  epoll_event events[kConnections];
  char chunk[64 * 1024];
  while (open > 0) {
    const int ready = ::epoll_wait(poll, events, kConnections, 10'000);
    if (ready <= 0) stop("the server does not answer any more");
    for (int i = 0; i < ready; ++i) {
      Client& client = *static_cast<Client*>(events[i].data.ptr);
      const ssize_t count = ::recv(client.fd, chunk, sizeof chunk, 0);
      if (count <= 0 || static_cast<std::size_t>(count) > client.to_come) stop("the server sends something else");
      client.to_come -= static_cast<std::size_t>(count);
      if (client.to_come > 0) continue;
      --open;
      send_next(client);
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  for (const Client& client : clients) ::close(client.fd);
  ::close(poll);
  return static_cast<double>(requests / pipelined * pipelined) / seconds.count();
}

struct Figures {
  double rate = 0;
  double microseconds = 0;  // of the server's processor
};

// Nothing when the server cannot be started.
std::optional<Figures> measure(const Serve& serve, std::size_t requests, std::size_t pipelined) {
  int ends[2];
  if (::pipe(ends) != 0) stop("no pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    use_core(0);
    serve(ends[1]);
    ::_exit(0);
  }
  ::close(ends[1]);
  std::uint16_t port = 0;
  const bool listens = ::read(ends[0], &port, sizeof port) == sizeof port;
  ::close(ends[0]);
  Figures figures;
  if (listens) figures.rate = ask(port, requests, pipelined);
  ::kill(child, SIGKILL);
  rusage used{};
  ::wait4(child, nullptr, 0, &used);
  if (!listens) return std::nullopt;
  const auto micros = [](timeval time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  figures.microseconds = (micros(used.ru_utime) + micros(used.ru_stime)) / static_cast<double>(requests);
  return figures;
}

Arguments arguments(int argc, char** argv) {
  Arguments given;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--requests") given.requests = std::stoul(argv[i + 1]);
    if (name == "--rounds") given.rounds = std::stoul(argv[i + 1]);
    if (name == "--only") given.only = argv[i + 1];
    if (name == "--serve") given.serve = argv[i + 1];
  }
  return given;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given = arguments(argc, argv);
  struct Server {
    std::string name;
    Serve serve;
  };
  const std::vector<Server> servers = {
      {"argiope", serve_argiope},
      {"Beast", serve_beast},
      {"node", serve_node},
  };
  for (const Server& server : servers) {
    if (given.serve == server.name) return server.serve(STDOUT_FILENO), 0;
  }
  use_core(1);
  for (const std::size_t pipelined : {std::size_t{1}, std::size_t{16}}) {
    std::vector<bench::Peer> rates, costs;
    for (const Server& server : servers) {
      if (!given.only.empty() && given.only != server.name) continue;
      std::vector<double> rate, cost;
      for (std::size_t round = 0; round < given.rounds; ++round) {
        const auto figures = measure(server.serve, given.requests, pipelined);
        if (!figures) break;
        rate.push_back(figures->rate);
        cost.push_back(figures->microseconds);
      }
      if (rate.empty()) {
        fmt::print("# {} is left out: it does not start\n", server.name);
        continue;
      }
      rates.push_back({server.name, bench::median(rate)});
      costs.push_back({server.name, bench::median(cost)});
    }
    const auto show = [&](const char* what, const char* unit, const std::vector<bench::Peer>& all) {
      if (all.empty()) return;
      bench::report(fmt::format("HTTP echo, {} connections x {}, {}", kConnections, pipelined, what), all[0].value,
                    unit, {all.begin() + 1, all.end()});
    };
    show("rate", "requests/s", rates);
    show("server CPU", "us/request", costs);
  }
}
