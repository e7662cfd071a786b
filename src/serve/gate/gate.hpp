// Gate: who may ask for what. Every request passes it before anything of it is read (docs/http-api.md, "Tokens").
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/jobs/job.hpp"
#include "argiope/web/http_server.hpp"
#include "serve/base/problem.hpp"
#include "serve/gate/access_right.hpp"
#include "serve/gate/sessions.hpp"

namespace argiope {

// Each may what those before it may.
enum class TokenScope : std::uint8_t {
  none,   // who may reach the daemon at all: /healthz
  read,   // look
  work,   // put, lease, settle
  admin,  // everything
};
std::string_view to_string(TokenScope scope) noexcept;
std::optional<TokenScope> parse_scope(std::string_view name) noexcept;

// By what the gate knows who asks.
enum class KnownBy : std::uint8_t {
  nothing,  // there are no tokens
  user,     // of this machine
  token,
  session,
};
std::string_view to_string(KnownBy by) noexcept;

// A caller, and what it may do: whose something is, is asked here and nowhere else (docs/serve.md has the table).
//
// Names are those of queues, schedules and projects. Those of the daemon's own queues (own_queues.hpp) are out of every
// prefix; others may look at them, an admin may change what is there, and nobody fills or empties them.
struct Caller {
  std::string name;  // of the token; "local" where there are none; "uid 1000" of a Unix socket
  TokenScope scope = TokenScope::none;
  // Beginnings of the names of queues and schedules that it may see and use; empty: all.
  std::vector<std::string> prefixes;
  KnownBy by = KnownBy::nothing;
  // By which it was let in; null where nothing was asked (TokenScope::none).
  std::shared_ptr<AccessRight> right{};
  // Whether it would still be let in.
  bool is_still_let_in() const noexcept { return holds(right); }
  bool is_bound() const noexcept { return !prefixes.empty(); }
  // See it.
  bool may_use(std::string_view name) const noexcept;
  // Change it, or jobs of that queue.
  bool may_change(std::string_view name) const noexcept;
  // Put jobs into that queue, lease and settle those of it.
  bool may_fill(std::string_view queue) const noexcept;
  // A schedule is its queue's, too.
  bool may_use(std::string_view schedule, std::string_view queue) const noexcept {
    return may_use(schedule) && may_use(queue);
  }
  // Nothing where it may put that job; else why not, as a sentence. A job whose function the daemon itself runs, a
  // command of this machine or a request from it, takes every right.
  std::optional<std::string> why_not_put(std::string_view queue, std::string_view function) const;
  // may_use() of its own; empty where it may see all.
  std::function<bool(std::string_view name)> sight() const;
  // For NewJob::within: whose jobs its own may name. Null: everyone's.
  JobReachRef reach() const;
};

inline constexpr std::size_t kMostTokenBytes = 512;  // of the words; longer ones are not known

// A token as it is kept: never the words themselves.
struct Token {
  std::string name;    // 1 to 64 bytes
  std::string digest;  // SHA-256 of the words, in hex; of anything else no words are known
  TokenScope scope = TokenScope::read;
  std::vector<std::string> prefixes;
  std::optional<WallTime> expires_at;
  friend bool operator==(const Token&, const Token&) = default;
};

struct GateOptions {
  std::vector<Token> tokens;
  // Without tokens everyone is "local", with every right; or, with this, nobody is let in who is not one of `users`.
  bool needs_token = false;
  // Names by which the daemon may be asked for besides localhost and IP addresses, with or without a port: against DNS
  // rebinding.
  std::vector<std::string> hosts;
  // Origins whose pages may send requests that change something, besides the daemon's own.
  std::vector<std::string> origins;
  // Users of this machine who need no token at a Unix socket: by user id, as the kernel tells it. They may do
  // everything.
  std::vector<std::uint32_t> users;
};

// How many requests were turned away, and why.
struct GateRefusals {
  std::uint64_t host = 0;
  std::uint64_t origin = 0;
  std::uint64_t token = 0;  // none, not known, or expired
  std::uint64_t flood = 0;  // not looked at: too many bad tokens from there
  std::uint64_t scope = 0;
};

// Tokens: known by their digest alone. An address that sends many bad ones has them answered 429 for a while. A good
//         token is let through meanwhile: a neighbour behind the same proxy notices nothing. Guessing gets nowhere, as
//         tokens have 256 bits.
// Cost:    a SHA-256 of at most kMostTokenBytes for each request with a token; memory is bounded by the number of
//          tokens.
// Threads: the loop's own.
class Gate {
 public:
  // `secret`: of its sessions.
  Gate(GateOptions options, const Clock& clock, const SessionSecret& secret = {});
  ~Gate();
  // From now on. The rights of tokens that are gone or have changed end (Caller::right), and so do their sessions.
  // Addresses that are barred stay so.
  void set(GateOptions options);

  // The caller, if it may do what `needed` stands for; else what it is answered: 401, 403 or 429. Nothing of the body
  // is looked at. A request that comes from a page of another origin is refused whatever token it has: it could read no
  // answer, and would keep streams and polls from others. One that changes something by a session's cookie needs
  // kChangeHeader besides.
  // For TokenScope::none nothing is asked, not even the host: balancers that look at /healthz send what they like.
  std::expected<Caller, Problem> admit(const ServerRequest& request, TokenScope needed);

  // Whose the request seems to be, by the name that admit() would give: nothing is judged or counted. Empty: nobody's.
  std::string name_of(const ServerRequest& request) const;

  struct OpenedSession {
    Caller caller;
    std::string cookie;  // empty where there are no tokens, and so no sessions
  };
  // A session for who has that token, by its words; refused as admit() refuses, floods of bad ones too. A session that
  // the request has a cookie of ends.
  std::expected<OpenedSession, Problem> open_session(const ServerRequest& request, std::string_view words);
  // Ends the session that the request has a cookie of, if there is one. Errors: forbidden, for pages of other origins.
  std::expected<void, Problem> close_session(const ServerRequest& request);

  // Whether a script of the project `from` may send a message to the project `to`, by the tokens that there are now:
  // where one bound to prefixes may write that script, only to a project that it may change. Null: it may.
  std::function<bool(std::string_view from, std::string_view to)> messages() const;

  const GateRefusals& refusals() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace argiope
