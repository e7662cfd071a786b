// A load of RabbitMQ in AMQP 0-9-1: persistent messages with publisher confirms into quorum queue "bench", and a
// consumer that acknowledges each. RabbitMQ does not answer acknowledgements.
#include <set>

#include "bench/load/protocol.hpp"

namespace argiope::bench {
namespace {

constexpr std::string_view kQuorumQueue{"\0\0\0\x18\x0cx-queue-typeS\0\0\0\x06quorum", 28};

std::uint64_t number_at(std::string_view text, std::size_t at, std::size_t bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes; ++i) number = number << 8 | static_cast<unsigned char>(text[at + i]);
  return number;
}
void append_number(std::string& out, std::uint64_t number, int bytes) {
  while (bytes-- > 0) out += static_cast<char>(number >> (8 * bytes));
}
std::string short_text(std::string_view text) { return static_cast<char>(text.size()) + std::string(text); }

class RabbitmqLoad final : public Protocol {
 public:
  RabbitmqLoad(Listener& listener, const ProtocolOptions& options)
      : Protocol(listener), works_(options.works), most_(options.in_flight) {}

  void greet() override { out.append("AMQP\0\0\x09\x01", 8); }
  void put(std::string_view payload) override {
    send_method(1, 60, 40, std::string(2, '\0') + short_text("") + short_text("bench") + '\0');
    std::string header("\0\x3c\0\0", 4);
    append_number(header, payload.size(), 8);
    header.append("\x10\0\x02", 3);  // persistent
    send_frame(2, 1, header);
    send_frame(3, 1, payload);
    unconfirmed_.insert(++last_tag_);
  }
  void work(std::size_t) override {}
  std::size_t hear(std::string_view in) override {
    std::size_t used = 0;
    for (; in.size() - used >= 8;) {
      const std::string_view rest = in.substr(used);
      const std::size_t size = number_at(rest, 3, 4);
      if (rest.size() < size + 8) break;
      hear_frame(rest.front(), rest.substr(7, size));
      used += size + 8;
    }
    return used;
  }

 private:
  void send_frame(int type, int channel, std::string_view body) {
    append_number(out, static_cast<std::uint64_t>(type), 1);
    append_number(out, static_cast<std::uint64_t>(channel), 2);
    append_number(out, body.size(), 4);
    out.append(body).append("\xce");
  }
  void send_method(int channel, int of_class, int method, std::string_view arguments) {
    std::string body;
    append_number(body, static_cast<std::uint64_t>(of_class), 2);
    append_number(body, static_cast<std::uint64_t>(method), 2);
    send_frame(1, channel, body.append(arguments));
  }

  void hear_frame(char type, std::string_view body) {
    if (type == 1) hear_method(number_at(body, 0, 2) * 1000 + number_at(body, 2, 2), body.substr(4));
    if (type == 3) listener_.came(body);
  }
  void hear_method(std::uint64_t method, std::string_view arguments) {
    const std::string none;
    switch (method) {
      case 10'010:  // Connection.Start
        return send_method(0, 10, 11,
                           std::string(4, '\0') + short_text("PLAIN") + std::string("\0\0\0\x0c\0guest\0guest", 16) +
                               short_text("en_US"));
      case 10'030:  // Connection.Tune
        send_method(0, 10, 31, std::string("\0\x01\0\x02\0\0\0\0", 8));
        return send_method(0, 10, 40, short_text("/") + std::string(2, '\0'));
      case 10'041: return send_method(1, 20, 10, short_text(""));
      case 20'011:
        return send_method(1, 50, 10, std::string(2, '\0') + short_text("bench") + '\x02' + std::string(kQuorumQueue));
      case 50'011: return opened();
      case 60'011: return send_method(1, 60, 20, std::string(2, '\0') + short_text("bench") + std::string(6, '\0'));
      case 60'021:
      case 85'011: return listener_.ready(*this);
      case 60'060: return acknowledge(number_at(arguments, 1 + static_cast<std::size_t>(arguments[0]), 8));
      case 60'080: return confirmed(number_at(arguments, 0, 8), arguments[8] != 0);
      default: stop_load("RabbitMQ refuses: method " + std::to_string(method));
    }
  }
  void opened() {
    if (!works_) return send_method(1, 85, 10, std::string(1, '\0'));
    std::string limits(4, '\0');
    append_number(limits, most_, 2);
    send_method(1, 60, 10, limits + '\0');
  }
  void acknowledge(std::uint64_t tag) {
    std::string arguments;
    append_number(arguments, tag, 8);
    send_method(1, 60, 80, arguments + '\0');
    listener_.settled(1);
  }
  // Tags may come out of order; how many there are is what counts.
  void confirmed(std::uint64_t tag, bool all_before) {
    const std::size_t before = unconfirmed_.size();
    if (all_before) unconfirmed_.erase(unconfirmed_.begin(), unconfirmed_.upper_bound(tag));
    if (!all_before) unconfirmed_.erase(tag);
    listener_.put(*this, before - unconfirmed_.size());
  }

  const bool works_;
  const std::size_t most_;
  std::uint64_t last_tag_ = 0;
  std::set<std::uint64_t> unconfirmed_;
};

}  // namespace

std::unique_ptr<Protocol> make_rabbitmq(Listener& listener, const ProtocolOptions& options) {
  return std::make_unique<RabbitmqLoad>(listener, options);
}

}  // namespace argiope::bench
