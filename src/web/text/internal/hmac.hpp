// HMAC-SHA-256 (RFC 2104).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace argiope {

std::array<std::uint8_t, 32> hmac_sha256(std::string_view key, std::string_view text);

}  // namespace argiope
