// A load of NATS JetStream: messages published to subject "bench" of a stream, and a durable pull consumer, "workers"
// of stream "BENCH", which others have made beforehand. NATS does not answer acknowledgements of messages.
#include <fmt/format.h>

#include <iterator>

#include "bench/load/protocol.hpp"

namespace argiope::bench {
namespace {

class NatsLoad final : public Protocol {
 public:
  explicit NatsLoad(Listener& listener) : Protocol(listener), inbox_(fmt::format("_INBOX.{}", ++connections_)) {}

  void greet() override {
    fmt::format_to(std::back_inserter(out), "CONNECT {{\"verbose\":false,\"pedantic\":false}}\r\nSUB {} 1\r\n", inbox_);
    listener_.ready(*this);
  }
  void put(std::string_view payload) override {
    fmt::format_to(std::back_inserter(out), "PUB bench {} {}\r\n{}\r\n", inbox_, payload.size(), payload);
  }
  void work(std::size_t most) override {
    most_ = most;
    fetch();
  }
  std::size_t hear(std::string_view in) override {
    std::size_t used = 0;
    for (std::size_t end; (end = in.find('\n', used)) != std::string_view::npos;) {
      const std::string_view line = in.substr(used, end - 1 - used);
      std::size_t size = 0;
      if (line.starts_with("MSG ")) {
        const std::size_t bytes = number_after(line.substr(line.rfind(' ')), " ");
        if (in.size() < end + 1 + bytes + 2) break;
        hear_message(line, in.substr(end + 1, bytes));
        size = bytes + 2;
      } else {
        hear_line(line);
      }
      used = end + 1 + size;
    }
    return used;
  }

 private:
  void fetch() {
    const std::string body = fmt::format("{{\"batch\":{}}}", most_);
    left_ = most_;
    fmt::format_to(std::back_inserter(out), "PUB $JS.API.CONSUMER.MSG.NEXT.BENCH.workers {} {}\r\n{}\r\n", inbox_,
                   body.size(), body);
  }
  void hear_line(std::string_view line) {
    if (line.starts_with("PING")) out += "PONG\r\n";
    if (line.starts_with("-ERR")) stop_load(line);
  }
  // MSG subject sid [reply] bytes
  void hear_message(std::string_view line, std::string_view body) {
    if (most_ == 0) {
      if (body.find("\"error\"") != std::string_view::npos) stop_load(body);
      return listener_.put(*this, 1);
    }
    const std::size_t reply = line.find("$JS.ACK");
    if (reply == std::string_view::npos) stop_load(line);
    fmt::format_to(std::back_inserter(out), "PUB {} 4\r\n+ACK\r\n", line.substr(reply, line.rfind(' ') - reply));
    listener_.came(body);
    if (--left_ == 0) fetch();
    listener_.settled(1);
  }

  static inline std::size_t connections_ = 0;
  const std::string inbox_;
  std::size_t most_ = 0;  // of a worker
  std::size_t left_ = 0;  // of what it has asked for
};

}  // namespace

std::unique_ptr<Protocol> make_nats(Listener& listener, const ProtocolOptions&) {
  return std::make_unique<NatsLoad>(listener);
}

}  // namespace argiope::bench
