// What fuzz targets hold their parsers to, in every build.
#pragma once

#include <cstdlib>

inline void require(bool holds) {
  if (!holds) std::abort();
}
