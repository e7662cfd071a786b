// A load in the beanstalkd protocol: a worker keeps so many reserves on their way and deletes what it gets.
#include <fmt/format.h>

#include <iterator>

#include "bench/load/protocol.hpp"

namespace argiope::bench {
namespace {

constexpr std::string_view kReserve = "reserve\r\n";

class BeanstalkdLoad final : public Protocol {
 public:
  using Protocol::Protocol;

  void put(std::string_view payload) override {
    fmt::format_to(std::back_inserter(out), "put 0 0 120 {}\r\n", payload.size());
    out.append(payload).append("\r\n");
  }
  void work(std::size_t most) override {
    for (std::size_t i = listener_.take(most); i > 0; --i) out += kReserve;
  }
  std::size_t hear(std::string_view in) override {
    std::size_t used = 0;
    for (std::size_t end; (end = in.find('\n', used)) != std::string_view::npos;) {
      const std::string_view line = in.substr(used, end + 1 - used);
      if (line.starts_with("RESERVED ")) {
        const std::size_t body = number_after(line.substr(line.find(' ', 9)), " ");
        if (in.size() < end + 1 + body + 2) break;
        out.append("delete ").append(line.substr(9, line.find(' ', 9) - 9)).append("\r\n");
        listener_.came(in.substr(end + 1, body));
        used = end + 1 + body + 2;
        continue;
      }
      hear_line(line);
      used = end + 1;
    }
    return used;
  }

 private:
  void hear_line(std::string_view line) {
    if (line.starts_with("INSERTED ")) return listener_.put(*this, 1);
    if (!line.starts_with("DELETED")) stop_load(line);
    listener_.settled(1);
    if (listener_.take(1) > 0) out += kReserve;
  }
};

}  // namespace

std::unique_ptr<Protocol> make_beanstalkd(Listener& listener, const ProtocolOptions&) {
  return std::make_unique<BeanstalkdLoad>(listener);
}

}  // namespace argiope::bench
