#include "web/http/connector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "argiope/async/event_loop.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostAddressesNamed = 8;  // in one error
constexpr std::size_t kMostTargetsTried = 4;    // addresses of one server, by one proxy
constexpr std::size_t kHandshakeBytes = 16 * 1024;

std::string_view bare_host(const Url& url) noexcept {
  std::string_view host = url.host();
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  return host;
}

Error no_answer_within(Duration limit) {
  return {Errc::timeout, fmt::format("no answer within {:g} s", to_seconds(limit))};
}

std::unexpected<OpenFailure> proxy_failure(const Proxy& proxy, const Error& error, bool is_of_proxy) {
  return std::unexpected(
      OpenFailure{{error.code, fmt::format("proxy {}: {}", proxy.name(), error.message)}, is_of_proxy});
}

// A refusal by the guard is not the proxy's doing: it has not been asked.
std::unexpected<OpenFailure> no_way_to(const Proxy& proxy, const Error& error) {
  if (error.code != Errc::refused) return proxy_failure(proxy, error, true);
  return std::unexpected(OpenFailure{{Errc::refused, fmt::format("proxy: {}", error.message)}});
}

// The front of the key of a request with a way of its own. Names and passwords are part of it: who is let in by one
// is not let in by another. No site has a space.
std::string key_of_way(const HttpWay& way) {
  std::string key = fmt::format("{}{} within {} ", way.verifies ? "" : "unverified ", way.is_direct ? "direct" : "",
                                way.connect_timeout.count());
  if (way.proxy) {
    const Proxy& proxy = *way.proxy;
    key += fmt::format("by {} {}:{}:{} ", proxy.name(), proxy.username.size(), proxy.username, proxy.password);
  }
  return key;
}

}  // namespace

Connector::Connector(const HttpClientOptions& options, AsioBackend& backend, Resolver& resolver,
                     const AddressGuard& guard)
    : options_(options),
      backend_(backend),
      resolver_(resolver),
      guard_(guard),
      tls_(options.extra_ca_file, options.client_certificate) {
  const ProxySettings& proxies = options.proxies;
  if (!proxies.for_http.empty()) http_turns_.emplace(proxies.for_http);
  if (!proxies.for_https.empty() && proxies.for_https != proxies.for_http) https_turns_.emplace(proxies.for_https);
}

Route Connector::route_to(const HttpRequest& request) {
  const Url& url = request.url;
  Route route;
  route.connect_timeout = options_.connect_timeout;
  if (request.way == nullptr) {
    choose_proxy(url, route);
    return route;
  }
  route.way = request.way;
  const HttpWay& way = *route.way;
  if (way.connect_timeout > Duration::zero()) route.connect_timeout = way.connect_timeout;
  if (way.proxy) {
    route.proxy = &*way.proxy;
    route.asks_proxy = url.scheme() != "https" && route.proxy->speaks_http();
    route.key = route.asks_proxy ? "http" : url.site_key();
  } else if (way.is_direct) {
    route.key = url.site_key();
  } else {
    choose_proxy(url, route);
  }
  route.key.insert(0, key_of_way(way));
  return route;
}

// Of the client's own, if any is for this URL.
void Connector::choose_proxy(const Url& url, Route& route) {
  const ProxySettings& proxies = options_.proxies;
  const bool is_https = url.scheme() == "https";
  const bool is_by_proxy = !(is_https ? proxies.for_https : proxies.for_http).empty();
  const std::string& trouble = is_https ? proxies.trouble_for_https : proxies.trouble_for_http;
  if (!trouble.empty() && !proxies.direct.contains(url.host())) route.trouble = trouble;
  if (!is_by_proxy || proxies.direct.contains(url.host())) {
    route.key = url.site_key();
    return;
  }
  route.turns = is_https && https_turns_ ? &*https_turns_ : &*http_turns_;
  route.proxy = &route.turns->choose(url.host(), EventLoop::current().time());
  route.asks_proxy = !is_https && route.proxy->speaks_http();
  route.key = fmt::format("{} via {}", route.asks_proxy ? "http" : url.site_key(), route.proxy->name());
}

bool Connector::shows_certificate_to(const Url& url) const {
  const std::vector<std::string>& sites = options_.client_certificate_for;
  return !sites.empty() && std::ranges::find(sites, url.site_key()) != sites.end();
}

Result<void> Connector::check(const Url& url, const Route& route) const {
  if (!route.trouble.empty()) return fail(Errc::invalid_input, route.trouble + "; --no-proxy '*' does without");
  if (route.proxy == nullptr || !route.proxy->looks_up_names()) return {};
  return guard_.check_name(url.host());
}

Coro<Result<ConnectionPtr>> Connector::open(const HttpRequest& request, Route& route) {
  const Url& url = request.url;
  if (route.proxy == nullptr) {
    auto opened = co_await open_door({bare_host(url), url.effective_port(), true, url.scheme() == "https",
                                      route.connect_timeout, shows_certificate_to(url), route.offer, route.verifies()});
    if (opened) {
      (*opened)->key = route.key;
      ++opened_;
    }
    co_return opened;
  }
  for (std::size_t tries = 1;; ++tries) {
    Opened<ConnectionPtr> opened = co_await open_by_proxy(url, route);
    if (opened) {
      if (route.turns != nullptr) route.turns->worked(*route.proxy);
      (*opened)->key = route.key;
      (*opened)->way = route.way;
      if (route.asks_proxy) (*opened)->asked_proxy = route.proxy;
      ++opened_;
      co_return std::move(*opened);
    }
    if (opened.error().is_of_proxy) route.failed(*route.proxy, EventLoop::current().time());
    if (!opened.error().is_of_proxy || tries >= route.proxies()) {
      co_return std::unexpected(std::move(opened.error().error));
    }
    const TlsOffer offer = route.offer;
    route = route_to(request);
    route.offer = offer;
  }
}

// --- one host

Coro<Result<ConnectionPtr>> Connector::open_door(Door door) {
  auto addresses = co_await resolver_.resolve(door.host);
  if (!addresses) co_return std::unexpected(std::move(addresses.error()));
  std::vector<FailedAddress> failed;
  for (const IpAddress& address : *addresses) {
    if (door.is_guarded) {
      if (auto allowed = guard_.check(address); !allowed) {
        failed.push_back({address, std::move(allowed.error())});
        continue;
      }
    }
    auto connected = co_await connect(door, address);
    if (connected) co_return connected;
    failed.push_back({address, std::move(connected.error())});
  }
  co_return std::unexpected(connect_error(door, failed));
}

// One error for all addresses that were tried: each of them named, and the code of the one that came closest.
Error Connector::connect_error(Door door, const std::vector<FailedAddress>& failed) {
  constexpr Errc kClosestFirst[] = {Errc::tls, Errc::network, Errc::timeout, Errc::refused};
  Error error{Errc::network, {}};
  for (const Errc code : kClosestFirst) {
    if (std::ranges::any_of(failed, [&](const FailedAddress& one) { return one.error.code == code; })) {
      error.code = code;
      break;
    }
  }
  // A refusal by the guard names the address by itself.
  const auto text_of = [](const FailedAddress& one) {
    return one.error.code == Errc::refused ? one.error.message
                                           : fmt::format("{}: {}", one.address.to_string(), one.error.message);
  };
  if (failed.size() == 1) {
    const FailedAddress& only = failed.front();
    error.message = error.code == Errc::refused ? fmt::format("{}: {}", door.host, only.error.message)
                                                : fmt::format("connect {} ({} port {}): {}", door.host,
                                                              only.address.to_string(), door.port, only.error.message);
    return error;
  }
  error.message = fmt::format("connect {} (port {}, {} addresses): ", door.host, door.port, failed.size());
  for (std::size_t i = 0; i < std::min(failed.size(), kMostAddressesNamed); ++i) {
    if (i > 0) error.message += "; ";
    error.message += text_of(failed[i]);
  }
  if (failed.size() > kMostAddressesNamed) error.message += "; …";
  return error;
}

Coro<Result<ConnectionPtr>> Connector::connect(Door door, const IpAddress& address) {
  auto connection = std::make_unique<ClientConnection>(backend_.context());
  Timeout timeout(saturating_add(EventLoop::current().time(), door.connect_timeout));
  Result<void> result;
  bool timed_out = false;
  try {
    result = co_await timeout.run(establish(*connection, door, address));
  } catch (const TimeoutError&) {
    timed_out = true;
  }
  if (timed_out) co_return std::unexpected(no_answer_within(door.connect_timeout));
  if (!result) co_return std::unexpected(std::move(result.error()));
  co_return connection;
}

Coro<Result<void>> Connector::establish(ClientConnection& connection, Door door, const IpAddress& address) {
  if (auto connected = co_await connection.connect(address, door.port); !connected) co_return connected;
  if (door.speaks_tls)
    co_return co_await connection.start_tls(tls_, door.host, door.is_known, door.offer, door.verifies);
  co_return Result<void>{};
}

// --- by a proxy

// Its certificate is always checked. The address of one that the user has not named is, too.
Connector::Door Connector::door_of_proxy(const Route& route) {
  const Proxy& proxy = *route.proxy;
  return {proxy.host, proxy.port, route.turns == nullptr, proxy.kind == ProxyKind::https, route.connect_timeout};
}

Coro<Opened<ConnectionPtr>> Connector::open_by_proxy(const Url& url, const Route& route) {
  const Proxy& proxy = *route.proxy;
  if (route.asks_proxy) {
    auto connection = co_await open_door(door_of_proxy(route));
    if (!connection) co_return no_way_to(proxy, connection.error());
    co_return std::move(*connection);
  }
  auto targets = co_await find_targets(url, route);
  if (!targets) co_return std::unexpected(std::move(targets.error()));
  for (std::size_t i = 0;; ++i) {
    auto opened = co_await open_tunnel(url, route, (*targets)[i]);
    if (opened || opened.error().is_of_proxy || i + 1 == targets->size()) co_return opened;
  }
}

Coro<Opened<std::vector<ProxyTarget>>> Connector::find_targets(const Url& url, const Route& route) {
  const Proxy& proxy = *route.proxy;
  const std::string_view host = bare_host(url);
  std::vector<ProxyTarget> targets;
  if (proxy.looks_up_names()) {
    if (host.size() > Socks5Handshake::kMostOfName) {
      co_return std::unexpected(OpenFailure{{Errc::dns, fmt::format("{}: longer than names are", host)}});
    }
    if (const auto literal = IpAddress::parse(host)) {
      targets.emplace_back(*literal);
    } else {
      targets.emplace_back(std::string(host));
    }
    co_return targets;
  }
  auto addresses = co_await resolver_.resolve(host);
  if (!addresses) co_return std::unexpected(OpenFailure{std::move(addresses.error())});
  std::vector<FailedAddress> refused;
  for (const IpAddress& address : *addresses) {
    if (auto allowed = guard_.check(address); !allowed) {
      refused.push_back({address, std::move(allowed.error())});
    } else if (targets.size() < kMostTargetsTried) {
      targets.emplace_back(address);
    }
  }
  if (!targets.empty()) co_return targets;
  co_return std::unexpected(
      OpenFailure{connect_error({host, url.effective_port(), true, false, route.connect_timeout}, refused)});
}

Coro<Opened<ConnectionPtr>> Connector::open_tunnel(const Url& url, const Route& route, const ProxyTarget& target) {
  const Proxy& proxy = *route.proxy;
  auto connection = co_await open_door(door_of_proxy(route));
  if (!connection) co_return no_way_to(proxy, connection.error());
  if (const auto* const address = std::get_if<IpAddress>(&target)) (*connection)->remote = *address;
  Timeout timeout(saturating_add(EventLoop::current().time(), route.connect_timeout));
  Opened<void> result;
  bool timed_out = false;
  try {
    result = co_await timeout.run(ask_for_tunnel(**connection, url, route, target));
  } catch (const TimeoutError&) {
    timed_out = true;
  }
  // The server may be what is slow.
  if (timed_out) co_return proxy_failure(proxy, no_answer_within(route.connect_timeout), false);
  if (!result) co_return std::unexpected(std::move(result.error()));
  co_return std::move(*connection);
}

Coro<Opened<void>> Connector::ask_for_tunnel(ClientConnection& connection, const Url& url, const Route& route,
                                             const ProxyTarget& target) {
  const Proxy& proxy = *route.proxy;
  Opened<void> done;
  if (proxy.speaks_http()) {
    done = co_await ask_to_connect(connection, connect_request(url, proxy, options_.user_agent), proxy);
  } else {
    done = co_await shake_hands(connection, Socks5Handshake(proxy, target, url.effective_port()), proxy);
  }
  if (!done || url.scheme() != "https") co_return done;
  if (auto secured =
          co_await connection.start_tls(tls_, bare_host(url), shows_certificate_to(url), route.offer, route.verifies());
      !secured) {
    co_return std::unexpected(OpenFailure{{secured.error().code, fmt::format("connect {} by proxy {}: {}", url.host(),
                                                                             proxy.name(), secured.error().message)}});
  }
  co_return Opened<void>{};
}

Coro<Opened<void>> Connector::shake_hands(ClientConnection& connection, Socks5Handshake handshake, const Proxy& proxy) {
  bool has_answered = false;
  while (handshake.wants() > 0) {
    const std::string output = handshake.take_output();
    if (auto written = co_await connection.write_all(output); !written) {
      co_return proxy_failure(proxy, written.error(), !has_answered);
    }
    std::array<char, 512> answer;
    std::size_t have = 0;
    while (have < handshake.wants()) {
      const auto read = co_await connection.read_some(std::span(answer).subspan(have, handshake.wants() - have));
      if (!read) co_return proxy_failure(proxy, read.error(), !has_answered);
      // Many close instead of saying that the server cannot be reached.
      if (*read == 0) co_return proxy_failure(proxy, {Errc::network, "it closed the connection"}, !has_answered);
      have += *read;
    }
    has_answered = true;
    if (auto taken = handshake.take({answer.data(), have}); !taken) co_return taken;
  }
  co_return Opened<void>{};
}

Coro<Opened<void>> Connector::ask_to_connect(ClientConnection& connection, std::string request, const Proxy& proxy) {
  if (auto written = co_await connection.write_all(request); !written) {
    co_return proxy_failure(proxy, written.error(), true);
  }
  ConnectAnswer answer(proxy);
  std::string buffer(kHandshakeBytes, '\0');
  for (;;) {
    const auto read = co_await connection.read_some(buffer);
    if (!read) co_return proxy_failure(proxy, read.error(), true);
    if (*read == 0) co_return std::unexpected(answer.ended());
    auto taken = answer.feed(std::string_view(buffer).substr(0, *read));
    if (!taken) co_return std::unexpected(std::move(taken.error()));
    if (*taken) co_return Opened<void>{};
  }
}

}  // namespace argiope
