#include "warc/internal/sha1.hpp"

#include <openssl/evp.h>

#include <new>

namespace argiope {

struct Sha1::State {
  State() : context(EVP_MD_CTX_new()) {
    if (context == nullptr || EVP_DigestInit_ex(context, EVP_sha1(), nullptr) != 1) throw std::bad_alloc();
  }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  EVP_MD_CTX* context;
};

Sha1::Sha1() : state_(std::make_unique<State>()) {}
Sha1::~Sha1() = default;

Sha1Digest Sha1::of(std::initializer_list<std::string_view> parts) {
  Sha1Digest digest{};
  EVP_DigestInit_ex(state_->context, nullptr, nullptr);
  for (const std::string_view part : parts) EVP_DigestUpdate(state_->context, part.data(), part.size());
  EVP_DigestFinal_ex(state_->context, digest.data(), nullptr);
  return digest;
}

std::string to_base32(const Sha1Digest& digest) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  std::string text;
  std::uint32_t bits = 0;
  int count = 0;
  for (const std::uint8_t byte : digest) {
    bits = bits << 8 | byte;
    for (count += 8; count >= 5;) {
      count -= 5;
      text += kLetters[bits >> count & 31];
    }
  }
  return text;
}

std::string digest_name(const Sha1Digest& digest) { return "sha1:" + to_base32(digest); }

}  // namespace argiope
