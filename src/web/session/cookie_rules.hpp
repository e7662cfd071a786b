// The form of cookies and where they may go: pure rules of RFC 6265 and RFC 6265bis. Used by the jar (cookies.cpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "argiope/web/http_session.hpp"
#include "argiope/web/url.hpp"
#include "web/session/set_cookie.hpp"

namespace argiope {

// RFC 6265, 5.1.3; both are hosts as Url spells them.
bool domain_matches(std::string_view host, std::string_view domain);
// RFC 6265, 5.1.4.
bool path_matches(std::string_view request_path, std::string_view cookie_path) noexcept;
std::string_view default_cookie_path(const Url& url) noexcept;

// Whether what is sent there is not heard on the way: TLS, or this machine itself.
bool is_trustworthy(const Url& url);
bool may_have_cookies(const Url& url) noexcept;

inline bool has_expired(const Cookie& cookie, WallTime now) noexcept {
  return cookie.expires && *cookie.expires <= now;
}
inline bool is_same_cookie(const Cookie& a, const Cookie& b) noexcept {
  return a.name == b.name && a.domain == b.domain && a.path == b.path && a.host_only == b.host_only;
}

// The cookie that an answer from `from` asks for (RFC 6265bis, 5.7, steps 5 to 22, without what needs the jar); nullopt
// where it may not.
std::optional<Cookie> cookie_of(const Url& from, const SetCookie& asked);
// Whether a cookie from anywhere is one that cookie_of() might have made.
bool is_sound(const Cookie& cookie);

// Whose limits a cookie of this domain counts for.
std::string_view site_of_domain(std::string_view domain);

}  // namespace argiope
