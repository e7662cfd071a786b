// WWW-Authenticate: fields of any bytes, taken apart; and answers to what can be answered, which stay on one line. The
// same through a session's eyes: a server that answers each request with the next line of the input.
#include "web/http/internal/http_challenge.hpp"

#include <cstdint>
#include <string_view>

#include "fuzz/require.hpp"
#include "web/http/internal/digest_auth.hpp"
#include "web/session/http_authenticator.hpp"

namespace {

void answer_each(std::string_view fields) {
  using namespace argiope;
  const auto challenges = parse_challenges(fields);
  require(challenges.size() <= kMostChallenges);
  for (const HttpChallenge& challenge : challenges) {
    require(!challenge.scheme.empty() && challenge.parameters.size() <= kMostChallengeParameters);
    const auto digest = parse_digest(challenge);
    if (!digest) continue;
    const DigestInput input{.name = "ann", .password = "secret", .method = "GET", .target = "/", .cnonce = "c"};
    const std::string answer = answer_digest(*digest, input);
    require(answer.starts_with("Digest username=") && (!answer.contains("secret") || fields.contains("secret")));
    // What is quoted is read as it was.
    const auto again = parse_challenges(answer);
    if (answer.find_first_of("\r\n") != std::string::npos) continue;
    require(again.size() == 1 && again[0].parameter("realm") != nullptr);
    require(*again[0].parameter("realm") == digest->realm && *again[0].parameter("nonce") == digest->nonce);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace argiope;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  answer_each(input);
  HttpAuthenticator authenticator({{.where = "https://e.org", .name = "ann", .password = "secret"}}, Random(1));
  HttpRequest request;
  for (int i = 0; i < 50 && !input.empty(); ++i) {
    const std::size_t end = std::min(input.find('\n'), input.size());
    request.url = *Url::parse(i % 3 == 0   ? "https://e.org/a/b"
                              : i % 3 == 1 ? "https://e.org/a/c/d?e"
                                           : "https://f.org/");
    const HttpAuthenticator::Answer answer = authenticator.answer_for(request);
    require(answer.field.empty() || request.url.host() == "e.org");
    if (input.starts_with('+')) {
      authenticator.accepted(request, answer);
    } else {
      const HttpChallenged what = authenticator.challenged(request, answer, input.substr(0, end));
      require(what == HttpChallenged::none || request.url.host() == "e.org");
    }
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  return 0;
}
