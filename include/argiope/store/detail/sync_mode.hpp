// SyncMode: when a store says that something is written.
#pragma once

#include <cstdint>

namespace argiope {

enum class SyncMode : std::uint8_t {
  full,    // survives a power cut
  normal,  // survives a crash of the process; a power cut may take the last commits
  off,     // survives a crash of the process
};

}  // namespace argiope
