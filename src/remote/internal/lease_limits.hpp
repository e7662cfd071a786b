// How much a renewal of a lease may say, and the end of a run: what the API takes, and what our own workers cut theirs
// to.
#pragma once

#include <cstddef>

namespace argiope {

inline constexpr std::size_t kMostMessageBytes = 1'024;
inline constexpr std::size_t kMostOutputBytes = 1024 * 1024;  // as a command may print, unless told
// A larger one is in no answer: one request for leases has as much, all of them together (docs/http-api.md).
inline constexpr std::size_t kMostResultBytes = 16 * 1024 * 1024;

}  // namespace argiope
