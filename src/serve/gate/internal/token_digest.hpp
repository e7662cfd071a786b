// How the words of a token are kept: as their SHA-256. The words are 32 random bytes, so no slow hash is needed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace argiope {

using TokenDigest = std::array<std::uint8_t, 32>;

TokenDigest digest_of_token(std::string_view words);
// In small hex digits, 64 of them.
std::string to_hex(const TokenDigest& digest);
// nullopt for what is not 64 hex digits.
std::optional<TokenDigest> parse_token_digest(std::string_view hex) noexcept;
// Takes as long whatever they are.
bool same_digest(const TokenDigest& a, const TokenDigest& b) noexcept;

}  // namespace argiope
