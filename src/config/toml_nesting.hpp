// How deeply what a text in TOML has is nested, before it is parsed: `a.a.a = 1` is a table in a table, and who reads
// or frees those goes down into each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace argiope {

inline constexpr std::size_t kMostTomlNesting = 256;

// The line that goes deeper, by dots in keys and by brackets; null: none does. Bad TOML may be told of, too.
// Cost: one look at each byte.
std::optional<std::uint32_t> too_deep_in_toml(std::string_view text);

}  // namespace argiope
