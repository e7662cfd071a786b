// What fuzz targets hold their parsers to, in every build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

inline void require(bool holds) {
  if (!holds) std::abort();
}

// What `story_of(bytes, piece)` makes of the bytes does not depend on the pieces they come in. The first byte says how
// large some of them are.
template <class StoryOf>
void require_same_in_pieces(const std::uint8_t* data, std::size_t size, StoryOf story_of) {
  if (size == 0) return;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto whole = story_of(bytes, bytes.size() + 1);
  require(story_of(bytes, data[0] % 64 + 1) == whole);
  require(story_of(bytes, 1) == whole);
}
