// Proxies: servers that fetch for us. Which there are is said by the user, or by the environment as curl reads it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/web/detail/ip_address.hpp"

namespace argiope {

enum class ProxyKind : std::uint8_t {
  http,     // asked for http URLs whole, and for connections (CONNECT) to https servers
  https,    // the same over TLS
  socks5,   // RFC 1928; names of servers are looked up by us
  socks5h,  // RFC 1928; names of servers are looked up by the proxy
};

struct Proxy {
  ProxyKind kind = ProxyKind::http;
  std::string host;  // as a URL has it, but an IPv6 address without brackets
  std::uint16_t port = 0;
  // Both empty: it asks for none.
  std::string username;
  std::string password;

  // "[SCHEME://][NAME:PASSWORD@]HOST[:PORT]". Without a scheme http, and without a port what curl takes: 443 for https,
  // else 1080.
  // Errors: invalid_input, which never says name and password.
  static Result<Proxy> parse(std::string_view text);

  // "socks5h://proxy.example:1080", without name and password.
  std::string name() const;
  // Whether it looks up the names of servers, so that we do not know their addresses.
  bool looks_up_names() const noexcept { return kind != ProxyKind::socks5; }
  bool speaks_http() const noexcept { return kind == ProxyKind::http || kind == ProxyKind::https; }
  // The value of Proxy-Authorization (Basic); empty when there is no name and no password.
  std::string authorization() const;

  friend bool operator==(const Proxy&, const Proxy&) = default;
};

// Hosts that are asked without a proxy, as curl's no_proxy says them.
class DirectHosts {
 public:
  // Names, with their subdomains ("example.org"; ".example.org" and "*.example.org" are the same); IP addresses; ranges
  // of them ("10.0.0.0/8"); "*" for all. Separated by commas or spaces.
  // Errors: invalid_input, naming the entry that is none of these.
  static Result<DirectHosts> parse(std::string_view list);

  // False when `entry` is none of these; it then has no effect.
  bool add(std::string_view entry);
  void add_loopback();

  // `host` as a URL has it.
  bool contains(std::string_view host) const;
  bool has_all() const noexcept { return all_; }

  friend bool operator==(const DirectHosts&, const DirectHosts&) = default;

 private:
  struct Range {
    IpAddress first;
    int bits = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  bool add_range(std::string_view entry);

  bool all_ = false;
  std::vector<std::string> names_;
  std::vector<Range> ranges_;
};

// Which servers are asked by which proxies. Several are taken in turn: each host keeps the one it got, until that
// fails.
struct ProxySettings {
  std::vector<Proxy> for_http;  // URLs; empty: asked directly
  std::vector<Proxy> for_https;
  DirectHosts direct;
  // Of a variable of the environment that names no proxy of ours: what is wrong with it. URLs of that scheme that would
  // be asked by it are not asked, and fail with that; others need no proxy. Empty: nothing is wrong.
  std::string trouble_for_http, trouble_for_https;

  bool empty() const noexcept { return for_http.empty() && for_https.empty(); }
  // Whether we look up the name of this host ourselves, whatever the scheme.
  bool looks_up_here(std::string_view host) const;

  // The value of a variable of the environment; nullopt: it is not set.
  using Variable = std::function<std::optional<std::string>(const char* name)>;
  // As curl: http_proxy (not in capitals, which a web server sets for its CGI programs), https_proxy, HTTPS_PROXY,
  // all_proxy, ALL_PROXY, no_proxy, NO_PROXY; lower case comes first, and what is empty is not set. Loopback is asked
  // directly. An entry of no_proxy that is none of DirectHosts' is passed over, and what names no proxy is a trouble of
  // its URLs.
  static ProxySettings from_environment(const Variable& variable);
  // no_proxy alone.
  static DirectHosts direct_from_environment(const Variable& variable);

  friend bool operator==(const ProxySettings&, const ProxySettings&) = default;
};

}  // namespace argiope
