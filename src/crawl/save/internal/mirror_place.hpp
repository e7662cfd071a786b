// The mirror's own place in its folder, for those who write beside it.
#pragma once

#include <string_view>

namespace argiope {

// The name of the mirror's own folder, which has its log.
inline constexpr std::string_view kMirrorOwnFolder = ".argiope-mirror";

}  // namespace argiope
