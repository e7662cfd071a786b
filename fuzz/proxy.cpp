// What a proxy answers, by SOCKS5 or to CONNECT, and how proxies and hosts without one are spelled. The first byte says
// which, and how large the pieces are.
#include "argiope/web/detail/proxy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "web/http/proxy_handshake.hpp"

namespace {

using namespace argiope;

void answer_socks(const Proxy& proxy, std::string_view bytes) {
  Socks5Handshake handshake(proxy, std::string("server.example"), 443);
  while (handshake.wants() > 0) {
    (void)handshake.take_output();
    if (handshake.wants() > 300) std::abort();
    if (bytes.size() < handshake.wants()) return;
    const std::string_view portion = bytes.substr(0, handshake.wants());
    bytes.remove_prefix(portion.size());
    if (!handshake.take(portion)) return;
  }
}

void answer_connect(const Proxy& proxy, std::string_view bytes, std::size_t piece) {
  ConnectAnswer answer(proxy);
  while (!bytes.empty()) {
    const auto done = answer.feed(bytes.substr(0, piece));
    if (!done || *done) return;
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  if (answer.ended().error.message.empty()) std::abort();
}

// What is read once is read again from how it is written.
void spell(std::string_view text) {
  if (const auto proxy = Proxy::parse(text)) {
    const auto again = Proxy::parse(proxy->name());
    if (!again || again->name() != proxy->name() || again->host != proxy->host) std::abort();
  }
  if (const auto hosts = DirectHosts::parse(text)) (void)hosts->contains("www.example.org");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const Proxy plain = *Proxy::parse("socks5h://proxy.example");
  static const Proxy with_login = *Proxy::parse("socks5h://ann:secret@proxy.example");
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0: answer_socks(plain, bytes); break;
    case 1: answer_socks(with_login, bytes); break;
    case 2: answer_connect(with_login, bytes, data[0] / 4 + 1); break;
    default: spell(bytes); break;
  }
  return 0;
}
