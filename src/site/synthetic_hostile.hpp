// The answers of hostile hosts of a synthetic web below /FEATURE/: all but the throttling pages, which need memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "site/internal/synthetic_web.hpp"

namespace argiope {

// Makes of `reply`, which is a page, the answer to "/FEATURE/`rest`", of which `number` is the number and `chance` the
// URL's own. False when there is no such place.
bool answer_hostile(WebFeature feature, std::string_view rest, std::uint32_t number, std::uint64_t chance,
                    SyntheticReply& reply);

// Bombs by number: gzip, br, zstd, and gzip in gzip. Making one takes a good 100 ms and twice 64 MiB.
inline constexpr std::uint32_t kBombs = 4;
struct Bomb {
  std::string_view coding;
  std::string body;
};
Bomb make_bomb(std::uint32_t number);

}  // namespace argiope
