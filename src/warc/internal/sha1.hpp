// SHA-1 as archives name bytes by it: "sha1:" and base32, which every reader of WARC files knows. To know the same page
// again, and not for secrets.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace argiope {

using Sha1Digest = std::array<std::uint8_t, 20>;

// Keeps its state between digests, which takes OpenSSL longer to make than a small page to digest.
//
// Threads: one at a time.
class Sha1 {
 public:
  Sha1();
  ~Sha1();
  // Of the parts, one after the other.
  Sha1Digest of(std::initializer_list<std::string_view> parts);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// 32 letters and digits (RFC 4648, 6).
std::string to_base32(const Sha1Digest& digest);
// "sha1:" and those.
std::string digest_name(const Sha1Digest& digest);

}  // namespace argiope
