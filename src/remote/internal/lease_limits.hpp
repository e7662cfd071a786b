// How much a renewal of a lease may say: what the API takes, and what our own workers cut theirs to.
#pragma once

#include <cstddef>

namespace argiope {

inline constexpr std::size_t kMostMessageBytes = 1'024;
inline constexpr std::size_t kMostOutputBytes = 1024 * 1024;  // as a command may print, unless told

}  // namespace argiope
