#include "remote/internal/api_client.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "argiope/async/event_loop.hpp"
#include "base/internal/printable.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr Duration kFirstWait = std::chrono::milliseconds{100};
constexpr Duration kLongestWait = std::chrono::seconds{5};
constexpr std::size_t kMostAnswerBytes = std::size_t{512} * 1024 * 1024;

// Failures on the way that may be over in a moment.
bool passes(Errc code) {
  return code == Errc::network || code == Errc::timeout || code == Errc::dns || code == Errc::busy;
}

// Refusals that come before anything is done.
bool did_nothing(std::string_view type) { return type == "busy" || type == "draining" || type == "too_many"; }

std::string base_of(const Url& url) {
  std::string base(url.without_fragment());
  while (base.ends_with('/')) base.pop_back();
  return base;
}

std::string_view advice_for(const Error& error) {
  if (error.message.contains("certificate refused"))
    return "; ARGIOPE_CA_FILE may name a file with its issuer's certificate";
  const bool is_away = error.code == Errc::network || error.code == Errc::timeout;
  return is_away ? "; is the daemon there? argiope serve starts one" : "";
}

}  // namespace

bool is_daemon(std::string_view where) noexcept {
  return starts_with_lower(where, "http://") || starts_with_lower(where, "https://");
}

Result<Url> ApiClient::parse_base(std::string_view where) {
  auto url = Url::parse(where);
  if (!url)
    return fail(Errc::invalid_input, fmt::format("store {}: {}", without_credentials(where), url.error().message));
  Url plain = *url;
  plain.strip_credentials();
  if (plain.href() != url->href()) {
    return fail(Errc::invalid_input, fmt::format("store {}: no name and password there; set ARGIOPE_TOKEN to the token",
                                                 without_credentials(where)));
  }
  if (!url->search().empty() || !url->hash().empty()) {
    return fail(Errc::invalid_input, fmt::format("store {}: the address of a daemon has no query", in_quotes(where)));
  }
  return url;
}

ApiClient::ApiClient(HttpTransport& transport, const Url& base, ApiClientOptions options)
    : transport_(transport),
      name_(base_of(base)),
      token_(std::move(options.token)),
      patience_(options.patience),
      random_(options.seed),
      key_prefix_(fmt::format("{:016x}{:016x}", random_.next(), random_.next())) {}

// --- one attempt -----------------------------------------------------------------------------------------------------

HttpRequest ApiClient::http_request(const ApiRequest& request, const std::string& key) const {
  HttpRequest http{.method = request.method, .url = value_or_throw(Url::parse(name_ + request.path))};
  http.body_limit = kMostAnswerBytes;
  http.timeout = request.timeout;
  http.is_repeatable = request.again == Again::harmless;
  http.body = request.body;
  http.headers.emplace_back("Accept", "application/json");
  if (!request.body.empty()) http.headers.emplace_back("Content-Type", "application/json");
  if (!token_.empty()) http.headers.emplace_back("Authorization", "Bearer " + token_);
  if (!key.empty()) http.headers.emplace_back("Idempotency-Key", key);
  return http;
}

Coro<ApiClient::Attempted> ApiClient::attempt(const ApiRequest& request, const std::string& key) {
  const HttpRequest http = http_request(request, key);
  HttpResponse response;
  const Result<void> sent = co_await transport_.send(http, response);
  if (sent && response.damage.empty() && !response.truncated) co_return judge(std::move(response));
  Attempted attempted{.has_effect = response.connected};
  if (sent && response.truncated) {
    attempted.error = {Errc::too_large,
                       fmt::format("store {}: the answer is larger than {} bytes", name_, kMostAnswerBytes)};
  } else {
    const Error error = sent ? Error{Errc::network, response.damage} : sent.error();
    attempted.error = {error.code, fmt::format("store {}: {}{}", name_, error.message, advice_for(error))};
    attempted.may_help = passes(error.code);
  }
  co_return attempted;
}

ApiClient::Attempted ApiClient::judge(HttpResponse response) const {
  Attempted attempted;
  ApiAnswer answer{.status = response.status, .body = std::move(response.body)};
  if (answer.status >= 200 && answer.status < 300) {
    attempted.answer = std::move(answer);
    return attempted;
  }
  if (response.headers.content_type.starts_with("application/problem+json")) {
    if (auto problem = read_answer(answer.body, read_problem)) {
      if (problem->type == "unauthorized") problem->error.message += "; set ARGIOPE_TOKEN to the daemon's token";
      attempted.error = problem->error;
      attempted.may_help = problem->error.code == Errc::busy || problem->type == "io" || problem->type == "disk_full";
      attempted.has_effect = attempted.may_help && !did_nothing(problem->type);
      answer.problem = std::move(*problem);
      attempted.answer = std::move(answer);
      return attempted;
    }
  }
  // A proxy in between whose daemon is away, or another server altogether.
  const bool is_gateway = answer.status >= 502 && answer.status <= 504;
  attempted.error = {
      is_gateway ? Errc::network : Errc::protocol,
      fmt::format("store {}: no daemon of argiope answers there, but something with status {}", name_, answer.status)};
  attempted.may_help = attempted.has_effect = is_gateway;
  return attempted;
}

// --- until there is an answer ----------------------------------------------------------------------------------------

std::string ApiClient::new_key() { return fmt::format("{}-{}", key_prefix_, ++keys_); }

Coro<Result<ApiAnswer>> ApiClient::ask(ApiRequest request) {
  const TimePoint since = EventLoop::current().time();
  const bool has_key = request.method == HttpMethod::post && request.has_key;
  const std::string key = !has_key ? std::string() : request.key.empty() ? new_key() : request.key;
  bool came_before = false;
  for (int tries = 0;; ++tries) {
    Attempted attempted = co_await attempt(request, key);
    if (attempted.answer) attempted.answer->came_before = came_before;
    if (!attempted.may_help) {
      if (attempted.answer) note_answer();
      if (attempted.answer) co_return std::move(*attempted.answer);
      co_return std::unexpected(std::move(attempted.error));
    }
    came_before = came_before || attempted.has_effect;
    const bool is_safe = request.again == Again::harmless || !attempted.has_effect;
    if (!is_safe || !request.waits || !waits(since)) {
      if (attempted.answer) co_return std::move(*attempted.answer);
      if (!is_safe) attempted.error.message += "; whether it was done is not known";
      co_return std::unexpected(std::move(attempted.error));
    }
    note_absence(attempted.error);
    co_await sleep(back_off(tries));
  }
}

Coro<Result<std::string>> ApiClient::tell(ApiRequest request) {
  auto answer = co_await ask(std::move(request));
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  if (answer->problem) co_return std::unexpected(std::move(answer->problem->error));
  co_return std::move(answer->body);
}

bool ApiClient::waits(TimePoint since) const {
  return has_answered_ && EventLoop::current().time() < saturating_add(since, patience_);
}

void ApiClient::note_absence(const Error& error) {
  if (away_since_) return;
  away_since_ = EventLoop::current().time();
  spdlog::warn("{}; trying again", error.message);
}

void ApiClient::note_answer() {
  has_answered_ = true;
  if (!away_since_) return;
  spdlog::info("store {}: the daemon answers again, after {:.1f} s", name_,
               to_seconds(EventLoop::current().time() - *away_since_));
  away_since_.reset();
}

// Twice as long each time, and a part of it by chance, so that not all clients come back at once.
Duration ApiClient::back_off(int tries) {
  const Duration most = std::min<Duration>(kFirstWait * (1 << std::min(tries, 10)), kLongestWait);
  return most / 2 + Duration{random_.between(0, (most / 2).count())};
}

}  // namespace argiope
