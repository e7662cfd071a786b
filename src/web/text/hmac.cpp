#include "web/text/internal/hmac.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace argiope {

std::array<std::uint8_t, 32> hmac_sha256(std::string_view key, std::string_view text) {
  std::array<std::uint8_t, 32> digest{};
  unsigned int size = digest.size();
  ::HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
         text.size(), digest.data(), &size);
  return digest;
}

}  // namespace argiope
