#include "serve/gate/sessions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "web/text/internal/ascii.hpp"
#include "web/text/internal/hmac.hpp"

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

std::string Sessions::open(const TokenDigest& token, std::optional<WallTime> expires_at) {
  make_room(token);
  const TimePoint ends_at = saturating_add(clock_.now(), kSessionLength);
  std::string cookie = to_hex(hmac_sha256(bytes_of(secret_), fmt::format("session {}", ++opened_)));
  AccessGrant grant(std::make_shared<AccessRight>(clock_, expires_at, ends_at));
  open_.emplace(digest_of_token(cookie), Session{token, ends_at, std::move(grant)});
  ++open_of_[token];
  return cookie;
}

const Sessions::Session* Sessions::find(std::string_view cookie) const {
  if (cookie.size() != kCookieBytes) return nullptr;
  const auto found = open_.find(digest_of_token(cookie));
  return found == open_.end() || found->second.ends_at <= clock_.now() ? nullptr : &found->second;
}

void Sessions::close(std::string_view cookie) {
  const auto found = cookie.size() == kCookieBytes ? open_.find(digest_of_token(cookie)) : open_.end();
  if (found == open_.end()) return;
  count_down(found->second.token);
  open_.erase(found);
}

void Sessions::close_those_of(const std::function<bool(const TokenDigest& token)>& is_meant) {
  std::erase_if(open_, [&](const auto& one) { return is_meant(one.second.token); });
  std::erase_if(open_of_, [&](const auto& one) { return is_meant(one.first); });
}

void Sessions::make_room(const TokenDigest& token) {
  const auto own = open_of_.find(token);
  if (own != open_of_.end() && own->second >= kMostOfAToken) return close_first_of(token);
  if (open_.size() < kMostSessions) return;
  close_first_of(std::ranges::max_element(open_of_, {}, [](const auto& one) { return one.second; })->first);
}

void Sessions::close_first_of(const TokenDigest& token) {
  auto first = open_.end();
  for (auto one = open_.begin(); one != open_.end(); ++one) {
    if (one->second.token != token) continue;
    if (first == open_.end() || one->second.ends_at < first->second.ends_at) first = one;
  }
  count_down(token);
  open_.erase(first);
}

void Sessions::count_down(const TokenDigest& token) {
  const auto own = open_of_.find(token);
  if (--own->second == 0) open_of_.erase(own);
}

}  // namespace argiope
