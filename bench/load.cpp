// A load on a server of jobs, by one thread over connections on loopback, in the protocol of the server's kind. What it
// says in a turn goes out in one write a connection. bench/daemon_peers.py starts the servers and runs it.
// Usage: bench_load put PROTOCOL PORT [--connections N] [--in-flight N] [--batch N] [--jobs N] [--seconds S]
//        bench_load work PROTOCOL PORT [--connections N] [--in-flight N] [--jobs N] [--seconds S]
//        bench_load open PROTOCOL PORT [--connections N] [--waiters N] [--rate N] [--seconds S]
// `put` and `work` end after so many jobs or seconds, whichever comes first, and print {"jobs":…,"seconds":…}. `open`
// puts so many jobs a second, whether those before were answered or not, while workers wait: it prints how long after a
// put was due it was acknowledged, and a worker had it: {"jobs":…,"put_ms":[p50,p99],"came_ms":[p50,p99]}.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/load/protocol.hpp"

namespace {

using namespace argiope::bench;
using SteadyClock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::size_t kPayloadBytes = 100;
constexpr auto kPatience = std::chrono::seconds{30};  // with a server that says nothing

struct Arguments {
  std::string workload, protocol;
  std::uint16_t port = 0;
  std::size_t connections = 64, in_flight = 1, batch = 1, jobs = 1'000'000, waiters = 16;
  double seconds = 4, rate = 5'000;
};

std::int64_t nanoseconds_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(SteadyClock::now().time_since_epoch()).count();
}

SteadyClock::duration span(double seconds) {
  return std::chrono::duration_cast<SteadyClock::duration>(Seconds(seconds));
}

// --- connections ----------------------------------------------------------------------------------------------------

struct Connection {
  int fd = -1;
  std::unique_ptr<Protocol> protocol;
  std::string input;  // not yet understood
};

int connect_to(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) stop_load("cannot connect");
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

// All connections of a load, and what waits for their answers.
class Connections {
 public:
  Connections() : poll_(::epoll_create1(EPOLL_CLOEXEC)), chunk_(256 * 1024) {}
  ~Connections() {
    for (const auto& connection : all_) ::close(connection->fd);
    ::close(poll_);
  }
  Connections(const Connections&) = delete;

  Protocol& add(std::uint16_t port, std::unique_ptr<Protocol> protocol) {
    Connection& added = *all_.emplace_back(std::make_unique<Connection>());
    added.fd = connect_to(port);
    added.protocol = std::move(protocol);
    epoll_event event{.events = EPOLLIN, .data = {.ptr = &added}};
    ::epoll_ctl(poll_, EPOLL_CTL_ADD, added.fd, &event);
    return *added.protocol;
  }
  void send() {
    for (const auto& connection : all_) send(*connection);
  }
  void send(const Protocol& protocol) {
    send(**std::ranges::find(all_, &protocol, [](const auto& connection) { return connection->protocol.get(); }));
  }
  // Hears what comes within `limit`, and sends what is said to that. False: nothing came.
  bool turn(SteadyClock::duration limit) {
    const auto ns = std::max<std::int64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(limit).count(), 0);
    const timespec wait{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
    epoll_event events[256];
    const int ready = ::epoll_pwait2(poll_, events, 256, &wait, nullptr);
    for (int i = 0; i < ready; ++i) hear(*static_cast<Connection*>(events[i].data.ptr));
    return ready > 0;
  }

 private:
  void send(Connection& connection) {
    std::string_view bytes = connection.protocol->out;
    while (!bytes.empty()) {
      const ssize_t count = ::send(connection.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) stop_load("the server has closed a connection");
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    connection.protocol->out.clear();
  }
  void hear(Connection& connection) {
    const ssize_t count = ::recv(connection.fd, chunk_.data(), chunk_.size(), 0);
    if (count <= 0) stop_load("the server has closed a connection");
    std::string_view came(chunk_.data(), static_cast<std::size_t>(count));
    if (!connection.input.empty()) came = connection.input.append(came);
    const std::size_t used = connection.protocol->hear(came);
    if (connection.input.empty()) {
      connection.input.assign(came.substr(used));
    } else {
      connection.input.erase(0, used);
    }
    send(connection);
  }

  const int poll_;
  std::vector<char> chunk_;
  std::vector<std::unique_ptr<Connection>> all_;
};

// --- as fast as the server answers ----------------------------------------------------------------------------------

class Closed final : public Listener {
 public:
  explicit Closed(const Arguments& given) : given_(given), left_(given.jobs) {}

  void run() {
    const bool works = given_.workload == "work";
    for (std::size_t i = 0; i < given_.connections; ++i) {
      ProtocolOptions options{.batch = given_.batch, .works = works, .in_flight = given_.in_flight};
      auto protocol = make_protocol(given_.protocol, *this, options);
      if (!protocol) stop_load("there is no such protocol");
      connections_.add(given_.port, std::move(protocol)).greet();
    }
    connections_.send();
    while (ready_.size() < given_.connections) turn(kPatience);
    begun_ = SteadyClock::now();
    until_ = begun_ + span(given_.seconds);
    for (Protocol* protocol : ready_) works ? protocol->work(given_.in_flight) : put_first(*protocol);
    connections_.send();
    while (!works && open_ > 0) turn(kPatience);
    while (works && done_ < given_.jobs && SteadyClock::now() < until_) connections_.turn(until_ - SteadyClock::now());
    const Seconds seconds = SteadyClock::now() - begun_;
    fmt::print("{{\"jobs\":{},\"seconds\":{}}}\n", done_, seconds.count());
  }

  void ready(Protocol& by) override { ready_.push_back(&by); }
  void put(Protocol& by, std::size_t jobs) override {
    done_ += jobs;
    open_ -= jobs;
    for (std::size_t i = 0; i < jobs; i += given_.batch) put_next(by);
  }
  std::size_t take(std::size_t most) override {
    const std::size_t taken = std::min(most, left_);
    left_ -= taken;
    return taken;
  }
  void give_back(std::size_t jobs) override { left_ += jobs; }
  void came(std::string_view) override {}
  void settled(std::size_t jobs) override { done_ += jobs; }

 private:
  void turn(SteadyClock::duration limit) {
    if (!connections_.turn(limit)) stop_load("the server does not answer any more");
  }
  void put_first(Protocol& protocol) {
    for (std::size_t i = 0; i < given_.in_flight; ++i) put_next(protocol);
  }
  void put_next(Protocol& by) {
    if (left_ < given_.batch || (++asked_ % 64 == 0 && SteadyClock::now() > until_)) left_ = 0;
    if (left_ == 0) return;
    left_ -= given_.batch;
    open_ += given_.batch;
    by.put(payload_);
  }

  const Arguments given_;
  const std::string payload_ = std::string(kPayloadBytes, 'j');
  Connections connections_;
  std::vector<Protocol*> ready_;
  SteadyClock::time_point begun_, until_;
  std::size_t left_, open_ = 0, done_ = 0, asked_ = 0;
};

// --- so many a second -----------------------------------------------------------------------------------------------

// The first part is warming up.
class Latencies {
 public:
  void add(std::int64_t nanoseconds) { all_.push_back(static_cast<double>(nanoseconds) / 1e6); }
  std::size_t size() const { return all_.size(); }
  std::string text() {
    all_.erase(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(all_.size() / 10));
    std::ranges::sort(all_);
    const auto at = [&](double part) {
      return all_.empty() ? 0 : all_[static_cast<std::size_t>(part * static_cast<double>(all_.size() - 1))];
    };
    return fmt::format("[{:.4f},{:.4f}]", at(0.5), at(0.99));
  }

 private:
  std::vector<double> all_;  // ms
};

class Open final : public Listener {
 public:
  explicit Open(const Arguments& given) : given_(given) {}

  void run() {
    ::prctl(PR_SET_TIMERSLACK, 1);
    connect(given_.waiters, true);
    for (Protocol* protocol : ready_) protocol->work(1);
    ready_.clear();
    connections_.send();
    connect(given_.connections, false);
    stamps_.resize(ready_.size());
    const auto total = static_cast<std::size_t>(given_.rate * given_.seconds);
    const auto begun = SteadyClock::now() + span(0.2);
    std::size_t sent = 0;
    for (const auto end = begun + span(given_.seconds) + kPatience; come_.size() < total || put_.size() < total;) {
      const auto due = sent < total ? begun + span(static_cast<double>(sent) / given_.rate) : end;
      const auto now = SteadyClock::now();
      if (now > end) stop_load("the server does not answer any more");
      if (now < due) connections_.turn(due - now);
      while (sent < total && begun + span(static_cast<double>(sent) / given_.rate) <= SteadyClock::now()) {
        put_one(sent, begun + span(static_cast<double>(sent) / given_.rate));
        ++sent;
      }
    }
    fmt::print("{{\"jobs\":{},\"put_ms\":{},\"came_ms\":{}}}\n", total, put_.text(), come_.text());
  }

  void ready(Protocol& by) override { ready_.push_back(&by); }
  void put(Protocol& by, std::size_t) override {
    auto& stamps = stamps_[static_cast<std::size_t>(std::ranges::find(ready_, &by) - ready_.begin())];
    put_.add(nanoseconds_now() - stamps.front());
    stamps.pop_front();
  }
  std::size_t take(std::size_t most) override { return most; }
  void give_back(std::size_t) override {}
  void came(std::string_view payload) override {
    std::int64_t due = 0;
    std::from_chars(payload.data(), payload.data() + payload.size(), due);
    come_.add(nanoseconds_now() - due);
  }
  void settled(std::size_t) override {}

 private:
  void connect(std::size_t count, bool works) {
    for (std::size_t i = 0; i < count; ++i) {
      auto protocol = make_protocol(given_.protocol, *this, {.works = works});
      if (!protocol) stop_load("there is no such protocol");
      connections_.add(given_.port, std::move(protocol)).greet();
    }
    connections_.send();
    while (ready_.size() < count) {
      if (!connections_.turn(kPatience)) stop_load("the server does not answer");
    }
  }
  void put_one(std::size_t number, SteadyClock::time_point due) {
    const std::size_t place = number % ready_.size();
    const std::int64_t stamp = std::chrono::duration_cast<std::chrono::nanoseconds>(due.time_since_epoch()).count();
    stamps_[place].push_back(stamp);
    ready_[place]->put(fmt::format("{:<{}}", stamp, kPayloadBytes));
    connections_.send(*ready_[place]);
  }

  const Arguments given_;
  Connections connections_;
  std::vector<Protocol*> ready_;
  std::vector<std::deque<std::int64_t>> stamps_;  // of the puts that are not acknowledged, by connection
  Latencies put_, come_;
};

Arguments arguments(int argc, char** argv) {
  Arguments given;
  if (argc < 4) stop_load("usage: bench_load put|work|open PROTOCOL PORT [--OPTION VALUE]...");
  given.workload = argv[1];
  given.protocol = argv[2];
  given.port = static_cast<std::uint16_t>(std::stoul(argv[3]));
  for (int i = 4; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--connections") given.connections = std::stoul(argv[i + 1]);
    if (name == "--in-flight") given.in_flight = std::stoul(argv[i + 1]);
    if (name == "--batch") given.batch = std::stoul(argv[i + 1]);
    if (name == "--jobs") given.jobs = std::stoul(argv[i + 1]);
    if (name == "--waiters") given.waiters = std::stoul(argv[i + 1]);
    if (name == "--seconds") given.seconds = std::stod(argv[i + 1]);
    if (name == "--rate") given.rate = std::stod(argv[i + 1]);
  }
  return given;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given = arguments(argc, argv);
  if (given.workload == "open") {
    Open(given).run();
  } else {
    Closed(given).run();
  }
}
