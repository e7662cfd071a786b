#include "serve/sessions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "web/internal/ascii.hpp"
#include "web/internal/hmac.hpp"

namespace argiope {

namespace {

constexpr std::string_view kCookieName = "argiope_session";
constexpr std::size_t kCookieBytes = 64;

std::string_view bytes_of(const SessionSecret& secret) noexcept {
  return {reinterpret_cast<const char*>(secret.data()), secret.size()};
}

}  // namespace

std::string_view session_cookie_of(const ServerRequest& request) noexcept {
  std::string_view rest = request.header("Cookie");
  while (!rest.empty()) {
    const std::string_view pair = trim_space(rest.substr(0, rest.find(';')));
    rest.remove_prefix(std::min(rest.find(';'), rest.size() - 1) + 1);
    const std::size_t equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == kCookieName) return pair.substr(equals + 1);
  }
  return {};
}

// Behind a proxy that speaks TLS the page's origin says so.
std::string set_session_cookie(const ServerRequest& request, std::string_view cookie) {
  const bool secure = request.secure || starts_with_lower(request.header("Origin"), "https://");
  const auto seconds = cookie.empty() ? 0 : std::chrono::duration_cast<std::chrono::seconds>(kSessionLength).count();
  return fmt::format("{}={}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{}", kCookieName, cookie, seconds,
                     secure ? "; Secure" : "");
}

std::string Sessions::open(const TokenDigest& token, TimePoint now) {
  if (open_.size() >= kMostSessions) make_room(now);
  std::string cookie = to_hex(hmac_sha256(bytes_of(secret_), fmt::format("session {}", ++opened_)));
  open_.insert_or_assign(digest_of_token(cookie), Session{token, saturating_add(now, kSessionLength)});
  return cookie;
}

std::optional<TokenDigest> Sessions::find(std::string_view cookie, TimePoint now) const {
  if (cookie.size() != kCookieBytes) return std::nullopt;
  const auto found = open_.find(digest_of_token(cookie));
  if (found == open_.end() || found->second.ends_at <= now) return std::nullopt;
  return found->second.token;
}

void Sessions::close(std::string_view cookie) {
  if (cookie.size() == kCookieBytes) open_.erase(digest_of_token(cookie));
}

void Sessions::make_room(TimePoint now) {
  std::erase_if(open_, [now](const auto& one) { return one.second.ends_at <= now; });
  if (open_.size() < kMostSessions) return;
  open_.erase(std::ranges::min_element(open_, {}, [](const auto& one) { return one.second.ends_at; }));
}

}  // namespace argiope
