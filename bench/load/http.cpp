// A load in HTTP: POST /v1/jobs, of one job or of a batch of them, and a worker that leases and settles in one request.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "bench/load/protocol.hpp"

namespace argiope::bench {
namespace {

constexpr std::string_view kQueue = "bench";

class HttpLoad final : public Protocol {
 public:
  HttpLoad(Listener& listener, std::size_t batch) : Protocol(listener), batch_(batch) {}

  void put(std::string_view payload) override {
    if (batch_ == 1) return post("/v1/jobs", fmt::format(R"({{"queue":"{}","payload":"{}"}})", kQueue, payload));
    body_ = R"({"jobs":[)";
    for (std::size_t i = 0; i < batch_; ++i) {
      fmt::format_to(std::back_inserter(body_), R"({}{{"queue":"{}","payload":"{}"}})", i == 0 ? "" : ",", kQueue,
                     payload);
    }
    body_ += "]}";
    post("/v1/jobs", body_);
  }

  void work(std::size_t most) override {
    most_ = most;
    lease({});
  }

  std::size_t hear(std::string_view in) override {
    std::size_t used = 0;
    for (;;) {
      const std::string_view rest = in.substr(used);
      const std::size_t head = rest.find("\r\n\r\n");
      if (head == std::string_view::npos) return used;
      const std::size_t size = head + 4 + number_after(rest.substr(0, head), "Content-Length: ");
      if (rest.size() < size) return used;
      if (!rest.starts_with("HTTP/1.1 20")) stop_load(rest.substr(0, size));
      hear_body(rest.substr(head + 4, size - head - 4));
      used += size;
    }
  }

 private:
  void post(std::string_view path, std::string_view body) {
    fmt::format_to(
        std::back_inserter(out),
        "POST {} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", path,
        body.size());
    out += body;
  }
  void lease(std::string_view settlements) {
    taken_ = listener_.take(most_);
    if (taken_ == 0 && settlements.empty()) return;
    post("/v1/leases", fmt::format(R"({{"queues":["{}"],"most":{},"wait_ms":{},"worker":"bench","settle":[{}]}})",
                                   kQueue, std::max<std::size_t>(taken_, 1), taken_ > 0 ? 60'000 : 0, settlements));
  }

  void hear_body(std::string_view body) {
    if (most_ == 0) return hear_put(body);
    // Each "token" of a lease comes after its job; those of "settled" after all of them.
    const std::size_t settled = body.find(R"("settled":)");
    const std::string_view leases = body.substr(0, settled);
    if (body.find("lease_lost") != std::string_view::npos) stop_load("a lease was lost");
    listener_.settled(asked_);
    asked_ = 0;
    body_.clear();
    for (std::size_t at = 0; (at = leases.find(R"("payload":")", at)) != std::string_view::npos;) {
      at += 11;
      listener_.came(leases.substr(at, leases.find('"', at) - at));
      at = leases.find(R"("token":)", at);
      fmt::format_to(std::back_inserter(body_), R"({}{{"token":{},"outcome":"done"}})", asked_ == 0 ? "" : ",",
                     number_after(leases.substr(at, 40), R"("token":)"));
      ++asked_;
    }
    if (asked_ < taken_) listener_.give_back(taken_ - asked_);
    lease(body_);
  }
  void hear_put(std::string_view body) {
    if (batch_ > 1 && body.find("error") != std::string_view::npos) stop_load(body.substr(0, 500));
    listener_.put(*this, batch_);
  }

  const std::size_t batch_;
  std::size_t most_ = 0;   // of a worker
  std::size_t taken_ = 0;  // jobs it has asked for
  std::size_t asked_ = 0;  // settlements on their way
  std::string body_;
};

}  // namespace

std::unique_ptr<Protocol> make_http(Listener& listener, const ProtocolOptions& options) {
  return std::make_unique<HttpLoad>(listener, options.batch);
}

}  // namespace argiope::bench
