#include "argiope/web/detail/proxy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "argiope/web/url.hpp"
#include "base/internal/base64.hpp"
#include "base/internal/printable.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostOfSocksLogin = 255;  // bytes of a name or a password (RFC 1929, 2)

struct NamedProxyKind {
  std::string_view scheme;
  ProxyKind kind;
  std::uint16_t port;  // where none is said
};
constexpr NamedProxyKind kProxyKinds[] = {{"http", ProxyKind::http, 1080},
                                          {"https", ProxyKind::https, 443},
                                          {"socks5", ProxyKind::socks5, 1080},
                                          {"socks5h", ProxyKind::socks5h, 1080}};

std::unexpected<Error> bad_proxy(std::string_view text, std::string_view why) {
  // Only a URL has credentials that can be told from the rest.
  const std::string spelled =
      text.contains("://") ? without_credentials(text) : without_credentials("http://" + std::string(text)).substr(7);
  return fail(Errc::invalid_input, fmt::format("proxy {}: {}", in_quotes(spelled), why));
}

std::string_view without_brackets(std::string_view host) noexcept {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

// The port in an authority; 0 when there is none. A URL has none where it is its scheme's default, and no port is that
// of both schemes.
std::uint16_t port_in(const Url& as_http, std::string_view rest) {
  if (!as_http.port().empty()) return as_http.effective_port();
  const auto as_https = Url::parse("https://" + std::string(rest));
  return as_https && !as_https->port().empty() ? as_https->effective_port() : 0;
}

bool is_in_range(const IpAddress& address, const IpAddress& first, int bits) {
  if (address.is_v4() != first.is_v4()) return false;
  const auto a = address.bytes();
  const auto b = first.bytes();
  const auto whole = static_cast<std::size_t>(bits / 8);
  if (!std::ranges::equal(a.first(whole), b.first(whole))) return false;
  const int rest = bits % 8;
  return rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

std::string_view without_last_dot(std::string_view name) noexcept {
  if (name.ends_with('.')) name.remove_suffix(1);
  return name;
}

// As the variables of both cases say it; empty: neither is set.
std::string read_variable(const ProxySettings::Variable& variable, const char* lower, const char* upper,
                          std::string& found_as) {
  for (const char* name : {lower, upper}) {
    if (name == nullptr) continue;
    const std::string given = variable(name).value_or("");
    std::string value(trim_space(given));
    if (value.empty()) continue;
    found_as = name;
    return value;
  }
  return {};
}

}  // namespace

// --- one proxy

Result<Proxy> Proxy::parse(std::string_view text) {
  const std::size_t colon = text.find("://");
  const bool has_scheme = colon != std::string_view::npos;
  const std::string_view scheme = has_scheme ? text.substr(0, colon) : "http";
  const std::string_view rest = has_scheme ? text.substr(colon + 3) : text;
  const auto named =
      std::ranges::find_if(kProxyKinds, [&](const NamedProxyKind& one) { return equals_lower(scheme, one.scheme); });
  if (named == std::end(kProxyKinds)) {
    return bad_proxy(text,
                     fmt::format("scheme {} is not known; use http, https, socks5 or socks5h", in_quotes(scheme)));
  }
  const auto url = Url::parse("http://" + std::string(rest));
  if (!url) return bad_proxy(text, url.error().message);
  if (url->path_and_query() != "/" || !url->hash().empty()) {
    return bad_proxy(text, "a proxy is a host and a port, and has no path");
  }
  Proxy proxy;
  proxy.kind = named->kind;
  proxy.host = without_brackets(url->host());
  proxy.port = port_in(*url, rest);
  if (proxy.port == 0) proxy.port = named->port;
  proxy.username = percent_decode(url->username());
  proxy.password = percent_decode(url->password());
  if (proxy.speaks_http() && proxy.username.contains(':')) return bad_proxy(text, "its name has a colon");
  if (!proxy.speaks_http() && std::max(proxy.username.size(), proxy.password.size()) > kMostOfSocksLogin) {
    return bad_proxy(text, "SOCKS takes at most 255 bytes of name and password each");
  }
  return proxy;
}

std::string Proxy::name() const {
  const auto named = std::ranges::find(kProxyKinds, kind, &NamedProxyKind::kind);
  const bool is_v6 = host.contains(':');
  return fmt::format("{}://{}{}{}:{}", named->scheme, is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
}

std::string Proxy::authorization() const {
  if (username.empty() && password.empty()) return {};
  return "Basic " + to_base64(username + ':' + password);
}

// --- hosts without one

bool DirectHosts::add_range(std::string_view entry) {
  const std::size_t slash = entry.find('/');
  const auto first = IpAddress::parse(without_brackets(entry.substr(0, slash)));
  if (!first) return false;
  const int most = first->is_v4() ? 32 : 128;
  int bits = most;
  if (slash != std::string_view::npos) {
    const char* const end = entry.data() + entry.size();
    const auto [stop, error] = std::from_chars(entry.data() + slash + 1, end, bits);
    if (error != std::errc{} || stop != end || bits < 0 || bits > most) return false;
  }
  ranges_.push_back({*first, bits});
  return true;
}

bool DirectHosts::add(std::string_view entry) {
  if (entry == "*") return all_ = true;
  if (add_range(entry)) return true;
  if (entry.starts_with("*.")) entry.remove_prefix(1);
  if (entry.starts_with('.')) entry.remove_prefix(1);
  // As a URL has it: lower case, and IDNA.
  const auto url = Url::parse("http://" + std::string(entry) + "/");
  if (!url || url->path_and_query() != "/" || !url->username().empty() || url->is_ip_host() ||
      entry.find_first_of("*:") != std::string_view::npos) {
    return false;
  }
  names_.emplace_back(without_last_dot(url->host()));
  return true;
}

void DirectHosts::add_loopback() {
  for (const char* entry : {"localhost", "127.0.0.0/8", "::1"}) add(entry);
}

Result<DirectHosts> DirectHosts::parse(std::string_view list) {
  DirectHosts hosts;
  std::string_view bad;
  for_each_token(
      list, [](char c) { return c == ',' || is_space(c); },
      [&](std::string_view entry) {
        if (!hosts.add(entry) && bad.empty()) bad = entry;
      });
  if (bad.empty()) return hosts;
  return fail(
      Errc::invalid_input,
      fmt::format("{}: neither a host name, nor an IP address, nor a range such as 10.0.0.0/8, nor *", in_quotes(bad)));
}

bool DirectHosts::contains(std::string_view host) const {
  if (all_) return true;
  if (names_.empty() && ranges_.empty()) return false;
  if (const auto address = IpAddress::parse(without_brackets(host))) {
    return std::ranges::any_of(ranges_,
                               [&](const Range& range) { return is_in_range(*address, range.first, range.bits); });
  }
  host = without_last_dot(host);
  return std::ranges::any_of(names_, [&](const std::string& name) {
    return host.ends_with(name) && (host.size() == name.size() || host[host.size() - name.size() - 1] == '.');
  });
}

// --- all of it

bool ProxySettings::looks_up_here(std::string_view host) const {
  const auto by_name = [](const Proxy& proxy) { return proxy.looks_up_names(); };
  const bool is_unknown = !trouble_for_http.empty() || !trouble_for_https.empty();
  const bool elsewhere =
      is_unknown || std::ranges::any_of(for_http, by_name) || std::ranges::any_of(for_https, by_name);
  return !elsewhere || direct.contains(host);
}

DirectHosts ProxySettings::direct_from_environment(const Variable& variable) {
  std::string found_as;
  DirectHosts hosts;
  for_each_token(
      read_variable(variable, "no_proxy", "NO_PROXY", found_as), [](char c) { return c == ',' || is_space(c); },
      [&](std::string_view entry) { hosts.add(entry); });
  return hosts;
}

ProxySettings ProxySettings::from_environment(const Variable& variable) {
  ProxySettings settings;
  settings.direct = direct_from_environment(variable);
  settings.direct.add_loopback();
  if (settings.direct.has_all()) return settings;
  struct Names {
    const char *lower, *upper;
    std::vector<Proxy>* proxies;
    std::string* trouble;
  };
  for (const Names& names : {Names{"http_proxy", nullptr, &settings.for_http, &settings.trouble_for_http},
                             Names{"https_proxy", "HTTPS_PROXY", &settings.for_https, &settings.trouble_for_https}}) {
    std::string found_as;
    std::string text = read_variable(variable, names.lower, names.upper, found_as);
    if (text.empty()) text = read_variable(variable, "all_proxy", "ALL_PROXY", found_as);
    if (text.empty()) continue;
    auto proxy = Proxy::parse(text);
    if (proxy) {
      names.proxies->push_back(std::move(*proxy));
    } else {
      *names.trouble = fmt::format("{}: {}", found_as, proxy.error().message);
    }
  }
  return settings;
}

}  // namespace argiope
