// Opens the connections of HttpClient: names, addresses that the guard allows, proxies, TLS. The connections that are
// kept open are the client's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/asio_backend.hpp"
#include "argiope/web/detail/dns.hpp"
#include "argiope/web/http_client.hpp"
#include "web/http/client_connection.hpp"
#include "web/http/proxy_handshake.hpp"
#include "web/net/client_tls.hpp"
#include "web/net/proxy_turns.hpp"

namespace argiope {

// How a server is reached.
struct Route {
  // The same for requests that may share connections.
  std::string key;
  const Proxy* proxy = nullptr;        // null: directly
  ProxyTurns* turns = nullptr;         // what it was chosen of; null: the request names it itself
  std::shared_ptr<const HttpWay> way;  // the request's own
  Duration connect_timeout{};
  std::string trouble;  // why the URL cannot be asked; empty: nothing is wrong

  // The proxy is asked for the whole URL, and opens no connection to its server.
  bool asks_proxy = false;
  // The protocols from which an https server may choose.
  TlsOffer offer = TlsOffer::http1;

  bool verifies() const noexcept { return way == nullptr || way->verifies; }
  // How many proxies there are to try.
  std::size_t proxies() const noexcept { return turns == nullptr ? 1 : turns->size(); }
  void failed(const Proxy& its, TimePoint now) const {
    if (turns != nullptr) turns->failed(its, now);
  }
};

// Threads:  the loop's own.
// Lifetime: the arguments must outlive it.
class Connector {
 public:
  Connector(const HttpClientOptions& options, AsioBackend& backend, Resolver& resolver, const AddressGuard& guard);

  Route route_to(const HttpRequest& request);
  // Whether the proxy of `route` may be asked for what it looks up itself.
  // Errors: refused (the guard's).
  Result<void> check(const Url& url, const Route& route) const;

  // A new connection to the server of `url`, TLS included; or to the proxy, where that is asked and check() let it.
  // `route` becomes another one when its proxy fails.
  // Errors: refused (the guard's), dns, network, tls, timeout; all addresses and the proxy are named.
  // Cancel: throws CancelledError.
  Coro<Result<ConnectionPtr>> open(const HttpRequest& request, Route& route);

  std::uint64_t opened() const noexcept { return opened_; }
  // Whether its server is shown the client's certificate, if it asks for one.
  bool shows_certificate_to(const Url& url) const;

 private:
  struct FailedAddress {
    IpAddress address;
    Error error;
  };
  // A host that is connected to.
  struct Door {
    std::string_view host;
    std::uint16_t port;
    bool is_guarded;  // the user has not named it as a proxy
    bool speaks_tls;
    Duration connect_timeout;
    bool is_known = false;  // may see the client's certificate
    TlsOffer offer = TlsOffer::http1;
    bool verifies = true;
  };

  Coro<Result<ConnectionPtr>> open_door(Door door);
  Coro<Result<ConnectionPtr>> connect(Door door, const IpAddress& address);
  Coro<Result<void>> establish(ClientConnection& connection, Door door, const IpAddress& address);
  static Error connect_error(Door door, const std::vector<FailedAddress>& failed);

  void choose_proxy(const Url& url, Route& route);
  static Door door_of_proxy(const Route& route);
  Coro<Opened<ConnectionPtr>> open_by_proxy(const Url& url, const Route& route);
  Coro<Opened<ConnectionPtr>> open_tunnel(const Url& url, const Route& route, const ProxyTarget& target);
  // The target that the proxy is told: the name, or the addresses that are allowed.
  Coro<Opened<std::vector<ProxyTarget>>> find_targets(const Url& url, const Route& route);
  Coro<Opened<void>> ask_for_tunnel(ClientConnection& connection, const Url& url, const Route& route,
                                    const ProxyTarget& target);
  static Coro<Opened<void>> shake_hands(ClientConnection& connection, Socks5Handshake handshake, const Proxy& proxy);
  static Coro<Opened<void>> ask_to_connect(ClientConnection& connection, std::string request, const Proxy& proxy);

  const HttpClientOptions& options_;
  AsioBackend& backend_;
  Resolver& resolver_;
  const AddressGuard& guard_;
  ClientTls tls_;
  std::optional<ProxyTurns> http_turns_;
  std::optional<ProxyTurns> https_turns_;  // empty: those of http, if they are the same
  std::uint64_t opened_ = 0;
};

}  // namespace argiope
