// The Digest scheme (RFC 7616, and RFC 2617 before it): what a challenge says, and the answer to it. Pure; whoever
// calls counts nonces and draws cnonces (http_authenticator.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "web/http/internal/http_challenge.hpp"

namespace argiope {

enum class DigestHash : std::uint8_t { md5, sha256, sha512_256 };  // the strongest last

struct DigestChallenge {
  std::string realm;
  std::string nonce;
  std::string domain;                 // URIs with spaces between; empty: all of the server
  std::optional<std::string> opaque;  // to be given back as it is
  std::string algorithm;              // as the server wrote it; empty: it did not, and means MD5
  DigestHash hash = DigestHash::md5;
  bool session = false;  // "-sess": nonce and cnonce are part of the secret
  enum class Qop : std::uint8_t { none, auth, auth_int } qop = Qop::none;
  bool stale = false;  // only the nonce was too old
  bool userhash = false;
  bool utf8 = false;  // it says that it knows UTF-8, and so RFC 7616
};

// nullopt for what cannot be answered: no realm or nonce, an algorithm or a quality of protection that nobody knows, or
// a hash that this machine's OpenSSL does not allow.
std::optional<DigestChallenge> parse_digest(const HttpChallenge& challenge);

struct DigestInput {
  std::string_view name;
  std::string_view password;
  std::string_view method;
  std::string_view target;  // as in the request line
  std::string_view body{};  // for Qop::auth_int
  std::string_view cnonce;
  std::uint32_t count = 1;  // requests with this nonce, this one included
};

// The value of Authorization, or of Proxy-Authorization.
std::string answer_digest(const DigestChallenge& challenge, const DigestInput& input);

// In hexadecimal; for the other end, too.
std::string digest_hex(DigestHash hash, std::string_view text);

}  // namespace argiope
