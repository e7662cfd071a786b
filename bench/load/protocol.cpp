#include "bench/load/protocol.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

namespace argiope::bench {

std::unique_ptr<Protocol> make_protocol(std::string_view name, Listener& listener, const ProtocolOptions& options) {
  if (name == "beanstalkd") return make_beanstalkd(listener, options);
  if (name == "http") return make_http(listener, options);
  if (name == "redis") return make_redis(listener, options);
  if (name == "redis-stream") return make_redis_stream(listener, options);
  if (name == "nats") return make_nats(listener, options);
  if (name == "rabbitmq") return make_rabbitmq(listener, options);
  return nullptr;
}

void stop_load(std::string_view why) {
  fmt::print(stderr, "bench_load: {}\n", why);
  std::exit(1);
}

std::uint64_t number_after(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  if (at == std::string_view::npos) return 0;
  std::uint64_t number = 0;
  std::from_chars(text.data() + at + name.size(), text.data() + text.size(), number);
  return number;
}

}  // namespace argiope::bench
