#include "web/session/cookie_rules.hpp"

#include <algorithm>

#include "web/text/internal/ascii.hpp"
#include "web/text/internal/http_field.hpp"
#include "web/url/internal/host_address.hpp"
#include "web/url/internal/public_suffix.hpp"

namespace argiope {
namespace {

constexpr bool is_ascii_char(char c) noexcept { return static_cast<unsigned char>(c) < 0x80; }

// RFC 6265bis, 5.4 and 5.7, steps 20 to 22. Names that promise how a cookie was set.
bool keeps_promise_of_name(const Cookie& cookie, bool has_path) {
  const std::string_view promised = cookie.name.empty() ? cookie.value : cookie.name;
  const bool for_secure = starts_with_lower(promised, "__secure-");
  const bool for_host = starts_with_lower(promised, "__host-");
  if (!for_secure && !for_host) return true;
  if (cookie.name.empty() || !cookie.secure) return false;
  return for_secure || (cookie.host_only && has_path && cookie.path == "/");
}

// The domain that the attribute asks for, which must be the host or above it, and no suffix that others share. False:
// the cookie is to be ignored.
bool take_domain(Cookie& cookie, std::string_view host, std::string_view asked) {
  // A host with an empty label in front is a URL's, but nobody's name.
  if (!std::ranges::all_of(asked, is_ascii_char) || host.starts_with('.')) return false;
  cookie.domain.assign(asked);
  std::ranges::transform(cookie.domain, cookie.domain.begin(), to_lower);
  cookie.host_only = asked.empty();
  if (!cookie.host_only && is_public_suffix(cookie.domain)) {
    if (cookie.domain != host) return false;
    cookie.host_only = true;
  }
  if (asked.empty()) cookie.domain.assign(host);
  return domain_matches(host, cookie.domain);
}

}  // namespace

bool domain_matches(std::string_view host, std::string_view domain) {
  if (host == domain) return true;
  return !domain.empty() && host.size() > domain.size() && host.ends_with(domain) &&
         host[host.size() - domain.size() - 1] == '.' && !address_of_host(host);
}

bool path_matches(std::string_view request_path, std::string_view cookie_path) noexcept {
  if (!request_path.starts_with(cookie_path)) return false;
  return request_path.size() == cookie_path.size() || cookie_path.ends_with('/') ||
         request_path[cookie_path.size()] == '/';
}

std::string_view default_cookie_path(const Url& url) noexcept {
  const std::string_view path = url.pathname();
  const std::size_t last = path.rfind('/');
  if (last == std::string_view::npos || last == 0 || !path.starts_with('/')) return "/";
  return path.substr(0, last);
}

bool is_trustworthy(const Url& url) { return url.scheme() == "https" || url.scheme() == "wss" || is_loopback(url); }

bool may_have_cookies(const Url& url) noexcept {
  const std::string_view scheme = url.scheme();
  return scheme == "http" || scheme == "https" || scheme == "ws" || scheme == "wss";
}

std::optional<Cookie> cookie_of(const Url& from, const SetCookie& asked) {
  Cookie cookie;
  cookie.name.assign(asked.name);
  cookie.value.assign(asked.value);
  cookie.expires = asked.expires;
  cookie.secure = asked.secure;
  cookie.http_only = asked.http_only;
  cookie.path.assign(asked.path && !asked.path->empty() ? *asked.path : default_cookie_path(from));
  if (!take_domain(cookie, from.host(), asked.domain)) return std::nullopt;
  if (cookie.secure && !is_trustworthy(from)) return std::nullopt;
  if (!keeps_promise_of_name(cookie, asked.path.has_value())) return std::nullopt;
  return cookie;
}

bool is_sound(const Cookie& cookie) {
  const std::size_t size = cookie.name.size() + cookie.value.size();
  if (size == 0 || size > kMostCookieBytes || cookie.path.size() > kMostAttributeBytes) return false;
  if (has_controls(cookie.name) || has_controls(cookie.value) || has_controls(cookie.path)) return false;
  if (cookie.name.find_first_of("=;") != std::string::npos || cookie.value.contains(';')) return false;
  const auto url = Url::parse("http://" + cookie.domain + "/");
  if (!url || url->host() != cookie.domain || url->path_and_query() != "/") return false;
  if (cookie.domain.starts_with('.') || !cookie.path.starts_with('/')) return false;
  if (!cookie.host_only && is_public_suffix(cookie.domain)) return false;
  return keeps_promise_of_name(cookie, true);
}

std::string_view site_of_domain(std::string_view domain) { return registrable_domain(domain); }

}  // namespace argiope
