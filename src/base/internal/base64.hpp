// Bytes as text: base64 of RFC 4648, with its padding.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace argiope {

std::string to_base64(std::string_view bytes);
// nullopt for what is not base64: another character, a wrong length, padding elsewhere than at the end, or bits after
// the last byte that are not 0.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace argiope
