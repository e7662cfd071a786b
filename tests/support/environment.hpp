// How long a test is to go on, and from which seed: said in the environment by who wants more than the usual.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace argiope {

// The number that the variable `name` holds, or `otherwise` when it is not set.
inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

}  // namespace argiope
