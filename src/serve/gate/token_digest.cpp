#include "serve/gate/internal/token_digest.hpp"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "web/text/internal/ascii.hpp"

namespace argiope {

TokenDigest digest_of_token(std::string_view words) {
  TokenDigest digest;
  ::SHA256(reinterpret_cast<const unsigned char*>(words.data()), words.size(), digest.data());
  return digest;
}

std::string to_hex(const TokenDigest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const std::uint8_t byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::optional<TokenDigest> parse_token_digest(std::string_view hex) noexcept {
  TokenDigest digest;
  if (hex.size() != 2 * digest.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const int high = hex_value(hex[2 * i]);
    const int low = hex_value(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return digest;
}

bool same_digest(const TokenDigest& a, const TokenDigest& b) noexcept {
  return ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace argiope
