#include "serve/gate/gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "calls/internal/call_functions.hpp"
#include "serve/base/internal/own_queues.hpp"
#include "serve/gate/bad_tokens.hpp"
#include "serve/gate/internal/token_digest.hpp"
#include "serve/gate/request_source.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {

namespace {

constexpr std::array<std::string_view, 4> kScopes{"none", "read", "work", "admin"};
constexpr std::array<std::string_view, 4> kKnownBy{"nothing", "user", "token", "session"};

// The name of all where there are no tokens.
constexpr const char* kEveryone = "local";
std::string name_of_user(std::uint32_t user) { return fmt::format("uid {}", user); }

Problem unauthorized(std::string detail) { return problem(ProblemType::unauthorized, std::move(detail)); }

// The words of `Authorization: Bearer WORDS`; empty for anything else.
std::string_view bearer_of(std::string_view authorization) noexcept {
  constexpr std::string_view kScheme = "bearer ";
  if (!starts_with_lower(authorization, kScheme)) return {};
  return trim_space(authorization.substr(kScheme.size()));
}

}  // namespace

std::string_view to_string(TokenScope scope) noexcept { return kScopes[static_cast<std::size_t>(scope)]; }

std::string_view to_string(KnownBy by) noexcept { return kKnownBy[static_cast<std::size_t>(by)]; }

std::optional<TokenScope> parse_scope(std::string_view name) noexcept {
  const auto found = std::ranges::find(kScopes, name);
  if (found == kScopes.end()) return std::nullopt;
  return static_cast<TokenScope>(found - kScopes.begin());
}

bool Caller::may_use(std::string_view name_of_one) const noexcept {
  if (!is_bound()) return true;
  return !is_own_queue(name_of_one) &&
         std::ranges::any_of(prefixes, [&](const auto& prefix) { return name_of_one.starts_with(prefix); });
}

bool Caller::may_change(std::string_view name_of_one) const noexcept {
  return may_use(name_of_one) && (scope == TokenScope::admin || !is_own_queue(name_of_one));
}

bool Caller::may_fill(std::string_view queue) const noexcept { return may_use(queue) && !is_own_queue(queue); }

std::optional<std::string> Caller::why_not_put(std::string_view queue, std::string_view function) const {
  if (!is_bound() && is_own_queue(queue)) {
    return fmt::format("queue {}: the daemon alone puts jobs into its own queues", in_quotes(queue));
  }
  if (!may_fill(queue)) return fmt::format("the token may not use queue {}", in_quotes(queue));
  const bool has_every_right = scope == TokenScope::admin && !is_bound();
  if (!has_every_right && (function == kCommandFunction || function == kHttpFunction)) {
    return fmt::format("function {}: the daemon runs it itself, which takes a token of scope admin for all queues",
                       in_quotes(function));
  }
  return std::nullopt;
}

std::function<bool(std::string_view)> Caller::sight() const {
  if (!is_bound()) return {};
  return [caller = *this](std::string_view name) { return caller.may_use(name); };
}

JobReachRef Caller::reach() const {
  if (scope == TokenScope::admin && !is_bound()) return nullptr;
  return std::make_shared<const JobReach>(
      name, [caller = *this](std::string_view queue) { return caller.may_change(queue); }, is_bound());
}

struct Gate::State {
  struct Entry {
    Token token;
    TokenDigest digest;
    AccessGrant grant;
  };

  State(const Clock& its_clock, const SessionSecret& secret) : clock(its_clock), sessions(secret, its_clock) {}

  void set(GateOptions given);
  Entry* find(const TokenDigest& digest) noexcept;
  std::expected<Caller, Problem> identify(const ServerRequest& request);
  std::expected<Caller, Problem> identify_by(std::string_view words, std::string_view peer);
  std::expected<Caller, Problem> identify_by_session(const ServerRequest& request, std::string_view cookie);
  std::expected<Caller, Problem> caller_of(const Token& token, KnownBy by, const AccessGrant& grant);
  Entry* entry_of(std::string_view words) noexcept {
    return words.size() <= kMostTokenBytes ? find(digest_of_token(words)) : nullptr;
  }
  Entry* entry_of_session(const Sessions::Session* session) noexcept {
    return session != nullptr ? find(session->token) : nullptr;
  }
  // What the request shows for its right, good or not.
  KnownBy shown_by(const ServerRequest& request) const;
  std::string name_of(const ServerRequest& request);
  AccessGrant new_grant(std::optional<WallTime> expires_at = {}) const {
    return AccessGrant(std::make_shared<AccessRight>(clock, expires_at));
  }
  // Whether a page may be at work that is none of ours, under our name or in its own.
  std::expected<void, Problem> check_source(const ServerRequest& request);
  bool is_trusted_user(const ServerRequest& request) const noexcept;
  bool is_open() const noexcept { return options.tokens.empty() && !options.needs_token; }

  const Clock& clock;
  GateOptions options;
  // By the first bytes of the digest. A sender of words knows their digest, so that how long this takes tells nothing.
  std::unordered_multimap<std::uint64_t, Entry> entries;
  BadTokens bad_tokens;
  Sessions sessions;
  AccessGrant of_everyone = new_grant();  // while there are no tokens
  AccessGrant of_users = new_grant();
  GateRefusals refusals;
};

namespace {

std::uint64_t beginning_of(const TokenDigest& digest) noexcept {
  std::uint64_t beginning = 0;
  std::memcpy(&beginning, digest.data(), sizeof beginning);
  return beginning;
}

}  // namespace

void Gate::State::set(GateOptions given) {
  const bool was_open = is_open();
  if (given.users != options.users) of_users = new_grant();
  options = std::move(given);
  if (was_open && !is_open()) of_everyone = new_grant();
  auto old = std::exchange(entries, {});
  for (const Token& token : options.tokens) {
    const auto digest = parse_token_digest(token.digest);
    if (!digest || find(*digest) != nullptr) continue;
    const auto [first, last] = old.equal_range(beginning_of(*digest));
    const auto known = std::find_if(first, last, [&](const auto& entry) { return entry.second.token == token; });
    if (known != last) {
      entries.insert(old.extract(known));
    } else {
      entries.emplace(beginning_of(*digest), Entry{token, *digest, new_grant(token.expires_at)});
    }
  }
  for (const auto& [beginning, gone] : old) {
    sessions.close_those_of([&](const TokenDigest& token) { return same_digest(token, gone.digest); });
  }
}

Gate::State::Entry* Gate::State::find(const TokenDigest& digest) noexcept {
  const auto [first, last] = entries.equal_range(beginning_of(digest));
  const auto found =
      std::find_if(first, last, [&](const auto& entry) { return same_digest(entry.second.digest, digest); });
  return found == last ? nullptr : &found->second;
}

bool Gate::State::is_trusted_user(const ServerRequest& request) const noexcept {
  return request.peer_user && std::ranges::find(options.users, *request.peer_user) != options.users.end();
}

KnownBy Gate::State::shown_by(const ServerRequest& request) const {
  if (is_open()) return KnownBy::nothing;
  if (!request.header("Authorization").empty()) return KnownBy::token;
  if (is_trusted_user(request)) return KnownBy::user;
  return session_cookie_of(request).empty() ? KnownBy::token : KnownBy::session;
}

std::expected<Caller, Problem> Gate::State::identify(const ServerRequest& request) {
  // Proxies and we would each go by another.
  if (std::ranges::count_if(request.headers,
                            [](const auto& field) { return equals_lower(field.first, "authorization"); }) > 1) {
    ++refusals.token;
    return std::unexpected(problem(ProblemType::invalid_input, "Authorization is there more than once"));
  }
  switch (shown_by(request)) {
    case KnownBy::nothing:
      return Caller{.name = kEveryone, .scope = TokenScope::admin, .prefixes = {}, .right = of_everyone.right()};
    case KnownBy::user:
      return Caller{.name = name_of_user(*request.peer_user),
                    .scope = TokenScope::admin,
                    .prefixes = {},
                    .by = KnownBy::user,
                    .right = of_users.right()};
    case KnownBy::session: return identify_by_session(request, session_cookie_of(request));
    case KnownBy::token: break;
  }
  const std::string_view words = bearer_of(request.header("Authorization"));
  if (words.empty()) {
    ++refusals.token;
    return std::unexpected(unauthorized("a token is needed: Authorization: Bearer TOKEN"));
  }
  return identify_by(words, request.peer);
}

std::expected<Caller, Problem> Gate::State::identify_by(std::string_view words, std::string_view peer) {
  const Entry* const entry = entry_of(words);
  if (entry != nullptr) return caller_of(entry->token, KnownBy::token, entry->grant);
  const TimePoint now = clock.now();
  const IpAddress source = source_of(peer);
  if (bad_tokens.is_barred(source, now)) {
    ++refusals.flood;
    return std::unexpected(
        problem(ProblemType::too_many, "too many bad tokens came from your address, and this is one, too"));
  }
  bad_tokens.note(source, now);
  ++refusals.token;
  return std::unexpected(unauthorized("the token is not known"));
}

std::expected<Caller, Problem> Gate::State::caller_of(const Token& token, KnownBy by, const AccessGrant& grant) {
  if (token.expires_at && *token.expires_at <= clock.wall_now()) {
    ++refusals.token;
    return std::unexpected(
        unauthorized(fmt::format("the token {} expired at {}", in_quotes(token.name), to_rfc3339(*token.expires_at))));
  }
  return Caller{.name = token.name, .scope = token.scope, .prefixes = token.prefixes, .by = by, .right = grant.right()};
}

std::expected<Caller, Problem> Gate::State::identify_by_session(const ServerRequest& request, std::string_view cookie) {
  const Sessions::Session* const session = sessions.find(cookie);
  const Entry* const entry = entry_of_session(session);
  if (entry == nullptr) {
    ++refusals.token;
    return std::unexpected(unauthorized("the session has ended"));
  }
  if (!changes_nothing(request.method) && request.header(kChangeHeader).empty()) {
    ++refusals.origin;
    return std::unexpected(problem(ProblemType::forbidden,
                                   fmt::format("a change by a session's cookie needs the header {}", kChangeHeader)));
  }
  return caller_of(entry->token, KnownBy::session, session->grant);
}

std::string Gate::State::name_of(const ServerRequest& request) {
  const Entry* entry = nullptr;
  switch (shown_by(request)) {
    case KnownBy::nothing: return kEveryone;
    case KnownBy::user: return name_of_user(*request.peer_user);
    case KnownBy::session: entry = entry_of_session(sessions.find(session_cookie_of(request))); break;
    case KnownBy::token: entry = entry_of(bearer_of(request.header("Authorization"))); break;
  }
  return entry == nullptr ? std::string() : entry->token.name;
}

std::expected<void, Problem> Gate::State::check_source(const ServerRequest& request) {
  if (!asks_for_us(request, options.hosts)) {
    ++refusals.host;
    return std::unexpected(
        problem(ProblemType::forbidden,
                fmt::format("host {}: not a name of this daemon; add it to `hosts`", in_quotes(request.host))));
  }
  if (is_of_foreign_page(request, options.origins)) {
    ++refusals.origin;
    return std::unexpected(problem(
        ProblemType::forbidden, "a page of another origin may ask for nothing here; `origins` names those that may"));
  }
  return {};
}

Gate::Gate(GateOptions options, const Clock& clock, const SessionSecret& secret)
    : state_(std::make_unique<State>(clock, secret)) {
  set(std::move(options));
}

Gate::~Gate() = default;

void Gate::set(GateOptions options) { state_->set(std::move(options)); }

std::expected<Caller, Problem> Gate::admit(const ServerRequest& request, TokenScope needed) {
  if (needed == TokenScope::none) return Caller{};
  State& state = *state_;
  if (auto good = state.check_source(request); !good) return std::unexpected(std::move(good.error()));
  auto caller = state.identify(request);
  if (caller && caller->scope < needed) {
    ++state.refusals.scope;
    return std::unexpected(problem(ProblemType::forbidden,
                                   fmt::format("token {} has the scope {}, and this needs {}", in_quotes(caller->name),
                                               to_string(caller->scope), to_string(needed))));
  }
  return caller;
}

std::string Gate::name_of(const ServerRequest& request) const { return state_->name_of(request); }

std::expected<Gate::OpenedSession, Problem> Gate::open_session(const ServerRequest& request, std::string_view words) {
  State& state = *state_;
  if (auto good = state.check_source(request); !good) return std::unexpected(std::move(good.error()));
  if (state.is_open()) {
    auto caller = state.identify(request);
    if (!caller) return std::unexpected(std::move(caller.error()));
    return OpenedSession{*std::move(caller), {}};
  }
  auto caller = state.identify_by(words, request.peer);
  if (!caller) return std::unexpected(std::move(caller.error()));
  caller->by = KnownBy::session;
  state.sessions.close(session_cookie_of(request));
  const TokenDigest digest = digest_of_token(words);
  return OpenedSession{*std::move(caller), state.sessions.open(digest, state.find(digest)->token.expires_at)};
}

std::expected<void, Problem> Gate::close_session(const ServerRequest& request) {
  auto good = state_->check_source(request);
  if (good) state_->sessions.close(session_cookie_of(request));
  return good;
}

std::function<bool(std::string_view, std::string_view)> Gate::messages() const {
  std::vector<Caller> writers;
  for (const Token& token : state_->options.tokens) {
    if (token.scope != TokenScope::admin || token.prefixes.empty()) continue;
    writers.push_back({.name = token.name, .scope = token.scope, .prefixes = token.prefixes});
  }
  if (writers.empty()) return {};
  return [writers = std::move(writers)](std::string_view from, std::string_view to) {
    return std::ranges::none_of(
        writers, [&](const Caller& writer) { return writer.may_change(from) && !writer.may_change(to); });
  };
}

const GateRefusals& Gate::refusals() const noexcept { return state_->refusals; }

}  // namespace argiope
