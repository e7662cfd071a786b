// How many of something there are, as people say it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace argiope {

// "1 job", "3 jobs", "0 jobs". `several`: where it is not `one` and an s.
inline std::string counted(std::uint64_t count, std::string_view one, std::string_view several = {}) {
  if (count == 1 || several.empty()) return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
  return fmt::format("{} {}", count, several);
}

}  // namespace argiope
