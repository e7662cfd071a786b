#include "web/http/internal/digest_auth.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "argiope/web/detail/charset.hpp"
#include "argiope/web/url.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

const EVP_MD* evp_of(DigestHash hash) noexcept {
  switch (hash) {
    case DigestHash::md5: return EVP_md5();
    case DigestHash::sha256: return EVP_sha256();
    case DigestHash::sha512_256: return EVP_sha512_256();
  }
  return nullptr;
}

struct DigestAlgorithm {
  std::string_view name;
  DigestHash hash;
  bool session;
};
constexpr std::array kDigestAlgorithms = {
    DigestAlgorithm{"md5", DigestHash::md5, false},
    DigestAlgorithm{"md5-sess", DigestHash::md5, true},
    DigestAlgorithm{"sha-256", DigestHash::sha256, false},
    DigestAlgorithm{"sha-256-sess", DigestHash::sha256, true},
    DigestAlgorithm{"sha-512-256", DigestHash::sha512_256, false},
    DigestAlgorithm{"sha-512-256-sess", DigestHash::sha512_256, true},
};

const DigestAlgorithm* algorithm_named(std::string_view name) noexcept {
  for (const DigestAlgorithm& algorithm : kDigestAlgorithms) {
    if (equals_lower(name, algorithm.name)) return &algorithm;
  }
  return nullptr;
}

std::string_view text_of(const std::string* parameter) noexcept {
  return parameter == nullptr ? std::string_view{} : *parameter;
}
bool is_true(const std::string* parameter) noexcept { return equals_lower(text_of(parameter), "true"); }

// The quality of protection to use; nullopt where none of those offered is known.
std::optional<DigestChallenge::Qop> choose_qop(const std::string* offered) {
  using Qop = DigestChallenge::Qop;
  if (offered == nullptr || trim_space(*offered).empty()) return Qop::none;
  std::optional<Qop> chosen;
  for_each_token(
      *offered, [](char c) { return c == ',' || is_space(c); },
      [&](std::string_view word) {
        if (equals_lower(word, "auth")) chosen = Qop::auth;
        if (equals_lower(word, "auth-int") && !chosen) chosen = Qop::auth_int;
      });
  return chosen;
}

std::string quoted_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted += '"';
}

// RFC 7616, 3.4: hashed, or where ASCII does not do as RFC 8187 has it, for who knows that.
std::string username_parameter(const DigestChallenge& challenge, std::string_view name) {
  if (challenge.userhash) {
    return fmt::format("username=\"{}\"", digest_hex(challenge.hash, fmt::format("{}:{}", name, challenge.realm)));
  }
  if (challenge.utf8 && !is_ascii(name)) return "username*=UTF-8''" + percent_encode(name);
  return "username=" + quoted_string(name);
}

// The number of bytes; 0 when the hash is not to be had.
std::size_t compute(DigestHash hash, std::string_view text, std::array<unsigned char, EVP_MAX_MD_SIZE>& bytes) {
  unsigned int size = 0;
  return EVP_Digest(text.data(), text.size(), bytes.data(), &size, evp_of(hash), nullptr) == 1 ? size : 0;
}

std::string response_to(const DigestChallenge& challenge, const DigestInput& input, std::string_view qop) {
  const auto hash = [&](std::string_view text) { return digest_hex(challenge.hash, text); };
  std::string secret = hash(fmt::format("{}:{}:{}", input.name, challenge.realm, input.password));
  if (challenge.session) secret = hash(fmt::format("{}:{}:{}", secret, challenge.nonce, input.cnonce));
  std::string what = fmt::format("{}:{}", input.method, input.target);
  if (challenge.qop == DigestChallenge::Qop::auth_int) what += ':' + hash(input.body);
  if (qop.empty()) return hash(fmt::format("{}:{}:{}", secret, challenge.nonce, hash(what)));
  return hash(
      fmt::format("{}:{}:{:08x}:{}:{}:{}", secret, challenge.nonce, input.count, input.cnonce, qop, hash(what)));
}

}  // namespace

std::string digest_hex(DigestHash hash, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes;
  const std::size_t size = compute(hash, text, bytes);
  std::string hex;
  for (std::size_t i = 0; i < size; ++i) hex += fmt::format("{:02x}", bytes[i]);
  return hex;
}

std::optional<DigestChallenge> parse_digest(const HttpChallenge& challenge) {
  const std::string* const realm = challenge.parameter("realm");
  const std::string* const nonce = challenge.parameter("nonce");
  const std::string* const algorithm = challenge.parameter("algorithm");
  const DigestAlgorithm* const known = algorithm_named(algorithm == nullptr ? "md5" : std::string_view(*algorithm));
  const auto qop = choose_qop(challenge.parameter("qop"));
  if (realm == nullptr || nonce == nullptr || known == nullptr || !qop) return std::nullopt;
  if (std::array<unsigned char, EVP_MAX_MD_SIZE> bytes; compute(known->hash, "", bytes) == 0) return std::nullopt;
  DigestChallenge digest;
  digest.realm = *realm;
  digest.nonce = *nonce;
  digest.domain = text_of(challenge.parameter("domain"));
  if (const std::string* const opaque = challenge.parameter("opaque")) digest.opaque = *opaque;
  digest.algorithm = text_of(algorithm);
  digest.hash = known->hash;
  digest.session = known->session;
  digest.qop = *qop;
  digest.stale = is_true(challenge.parameter("stale"));
  digest.userhash = is_true(challenge.parameter("userhash"));
  digest.utf8 = equals_lower(text_of(challenge.parameter("charset")), "utf-8");
  return digest;
}

std::string answer_digest(const DigestChallenge& challenge, const DigestInput& input) {
  using Qop = DigestChallenge::Qop;
  const std::string_view qop = challenge.qop == Qop::auth ? "auth" : challenge.qop == Qop::auth_int ? "auth-int" : "";
  std::string answer =
      fmt::format("Digest {}, realm={}, nonce={}, uri={}, response=\"{}\"", username_parameter(challenge, input.name),
                  quoted_string(challenge.realm), quoted_string(challenge.nonce), quoted_string(input.target),
                  response_to(challenge, input, qop));
  if (!challenge.algorithm.empty()) answer += fmt::format(", algorithm={}", challenge.algorithm);
  if (!qop.empty()) answer += fmt::format(", qop={}, nc={:08x}", qop, input.count);
  if (!qop.empty() || challenge.session) answer += fmt::format(", cnonce={}", quoted_string(input.cnonce));
  if (challenge.opaque) answer += fmt::format(", opaque={}", quoted_string(*challenge.opaque));
  if (challenge.userhash) answer += ", userhash=true";
  return answer;
}

}  // namespace argiope
