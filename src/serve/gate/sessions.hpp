// Sessions: cookies that stand for tokens, so that a page in a browser keeps no token where its scripts could read it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "argiope/web/http_server.hpp"
#include "serve/gate/access_right.hpp"
#include "serve/gate/internal/token_digest.hpp"

namespace argiope {

// A request that changes something by a cookie alone needs this header, which no page of another origin can send
// unasked.
inline constexpr std::string_view kChangeHeader = "X-Argiope";
inline constexpr Duration kSessionLength = std::chrono::days{7};

// From the system's source for secrets; who knows it can make cookies.
using SessionSecret = std::array<std::uint8_t, 32>;

// The cookie of a request; empty where it has none.
std::string_view session_cookie_of(const ServerRequest& request) noexcept;
// The field Set-Cookie that gives the client that cookie, or, where it is empty, takes away the one it has.
std::string set_session_cookie(const ServerRequest& request, std::string_view cookie);

// Sessions are kept in memory, by the digests of their cookies: they end with the process. A bounded number is open at
// a time, and a smaller one of each token: a new one ends the one that would end first, of its own token or of the one
// that has the most. With a session ends the right that its callers were let in by.
//
// Threads: the loop's own.
class Sessions {
 public:
  Sessions(const SessionSecret& secret, const Clock& clock) noexcept : secret_(secret), clock_(clock) {}

  struct Session {
    TokenDigest token{};  // that the cookie stands for
    TimePoint ends_at{};
    AccessGrant grant;
  };

  // The cookie of a new session, whose token expires then.
  std::string open(const TokenDigest& token, std::optional<WallTime> expires_at);
  // Until the next call that is not const; null where the cookie's session has ended, or there was none.
  const Session* find(std::string_view cookie) const;
  void close(std::string_view cookie);
  // Those of tokens that it is true of.
  void close_those_of(const std::function<bool(const TokenDigest& token)>& is_meant);
  std::size_t size() const noexcept { return open_.size(); }

  static constexpr std::size_t kMostSessions = 10'000;
  static constexpr std::size_t kMostOfAToken = 1'000;

 private:
  void make_room(const TokenDigest& token);
  void close_first_of(const TokenDigest& token);
  void count_down(const TokenDigest& token);

  const SessionSecret secret_;
  const Clock& clock_;
  std::uint64_t opened_ = 0;
  std::map<TokenDigest, Session> open_;  // by the digest of the cookie: looking for one tells nothing of the others
  std::map<TokenDigest, std::size_t> open_of_;  // how many of each token
};

}  // namespace argiope
