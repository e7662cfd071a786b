// Sessions: cookies that stand for tokens, so that a page in a browser keeps no token where its scripts could read it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "argiope/web/http_server.hpp"
#include "serve/internal/token_digest.hpp"

namespace argiope {

// A request that changes something by a cookie alone needs this header, which no page of another origin can send unasked.
inline constexpr std::string_view kChangeHeader = "X-Argiope";
inline constexpr Duration kSessionLength = std::chrono::days{7};

// From the system's source for secrets; who knows it can make cookies.
using SessionSecret = std::array<std::uint8_t, 32>;

// The cookie of a request; empty where it has none.
std::string_view session_cookie_of(const ServerRequest& request) noexcept;
// The field Set-Cookie that gives the client that cookie, or, where it is empty, takes away the one it has.
std::string set_session_cookie(const ServerRequest& request, std::string_view cookie);

// Sessions are kept in memory, by the digests of their cookies: they end with the process. A bounded number is open at a time:
// a new one ends the one that would end first.
//
// Threads: the loop's own.
class Sessions {
 public:
  explicit Sessions(const SessionSecret& secret) noexcept : secret_(secret) {}

  // The cookie of a new session.
  std::string open(const TokenDigest& token, TimePoint now);
  // The token that the cookie stands for; nullopt where its session has ended, or there was none.
  std::optional<TokenDigest> find(std::string_view cookie, TimePoint now) const;
  void close(std::string_view cookie);
  std::size_t size() const noexcept { return open_.size(); }

  static constexpr std::size_t kMostSessions = 10'000;

 private:
  struct Session {
    TokenDigest token{};
    TimePoint ends_at{};
  };
  void make_room(TimePoint now);

  const SessionSecret secret_;
  std::uint64_t opened_ = 0;
  std::map<TokenDigest, Session> open_;  // by the digest of the cookie: looking for one tells nothing of the others
};

}  // namespace argiope
