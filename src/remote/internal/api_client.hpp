// ApiClient: asks a daemon's HTTP API, and waits for one that is away for a while. The meaning of the answers is its
// users' business: HttpBook, HttpJobSource.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "argiope/async/coro.hpp"
#include "argiope/base/random.hpp"
#include "argiope/web/http.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "remote/internal/told_problem.hpp"

namespace argiope {

// Whether "--store WHERE" names a daemon: http:// or https://, in whatever case.
bool is_daemon(std::string_view where) noexcept;

struct ApiClientOptions {
  std::string token;  // empty: none is sent
  // How long a daemon that has answered before is waited for when it does not answer; one that never has is not waited
  // for.
  Duration patience = std::chrono::seconds{10};
  // Of keys of requests and of the jitter of back-offs: another one for each process.
  std::uint64_t seed = 0;
};

// The effect when a request is sent again whose answer was lost.
enum class Again : std::uint8_t {
  harmless,  // it does no more than once, or the daemon gives the answer of the first time
  harmful,
};

struct ApiRequest {
  HttpMethod method = HttpMethod::get;
  std::string path;  // with its query, "/v1/jobs?limit=5"
  std::string body;  // JSON; empty: none
  Again again = Again::harmless;
  bool has_key = true;  // of a POST: an Idempotency-Key, for what is not harmless by itself
  std::string key;      // that; empty: a new one
  bool waits = true;    // for a daemon that is away or busy
  Duration timeout =
      std::chrono::seconds{150};  // of one attempt: more than the daemon takes for a put that waits for room
};

struct ApiAnswer {
  int status = 0;
  std::string body;
  std::optional<ToldProblem> problem;  // where the daemon refuses
  bool came_before = false;            // perhaps: an answer to the same request was lost
};

// Errors:   network, timeout, dns, tls, protocol, when no daemon answers, and it was waited for; they name its address.
//           A refusal is in ApiAnswer::problem; `busy` and its like are waited out as an absence is.
// Suspends: until there is an answer.
// Cancel:   the request may take effect.
// Lifetime: `transport` outlives it, and it its calls.
// Threads:  the loop's own.
class ApiClient {
 public:
  // `where`: "https://host:7733", perhaps with a path before /v1. Errors: invalid_input.
  static Result<Url> parse_base(std::string_view where);
  ApiClient(HttpTransport& transport, const Url& base, ApiClientOptions options);
  ApiClient(const ApiClient&) = delete;

  Coro<Result<ApiAnswer>> ask(ApiRequest request);
  // The same, and of what is refused its error. The body of the answer.
  Coro<Result<std::string>> tell(ApiRequest request);
  // "http://host:7733".
  const std::string& name() const noexcept { return name_; }
  // For a request that may come again as another call.
  std::string new_key();

  // From now on: for calls that wait already, too.
  void set_patience(Duration patience) noexcept { patience_ = patience; }

 private:
  // The outcome of one attempt.
  struct Attempted {
    std::optional<ApiAnswer> answer;
    Error error;              // without an answer, or what the answer's problem is
    bool may_help = false;    // to try again
    bool has_effect = false;  // perhaps
  };
  Coro<Attempted> attempt(const ApiRequest& request, const std::string& key);
  Attempted judge(HttpResponse response) const;
  HttpRequest http_request(const ApiRequest& request, const std::string& key) const;
  bool waits(TimePoint since) const;
  void note_absence(const Error& error);
  void note_answer();
  Duration back_off(int tries);

  HttpTransport& transport_;
  const std::string name_;
  const std::string token_;
  Duration patience_;
  Random random_;
  std::string key_prefix_;
  std::uint64_t keys_ = 0;
  bool has_answered_ = false;
  std::optional<TimePoint> away_since_;
};

// The value that `read(const JsonValue&)` makes of an answer. Errors: protocol.
template <class Read>
auto read_answer(const std::string& body, Read read) -> Result<decltype(read(std::declval<const JsonValue&>()))> {
  const auto text = JsonText::parse(body);
  if (!text) return fail(Errc::protocol, "the daemon's answer: " + text.error().message);
  JsonErrors errors;
  auto value = read(text->root(errors));
  if (errors) return fail(Errc::protocol, "the daemon's answer: " + errors.error().message);
  return value;
}

}  // namespace argiope
