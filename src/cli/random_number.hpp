// A number by the machine's chance, which nobody can guess: what the commands pass to everything that draws.
#pragma once

#include <cstdint>
#include <random>

namespace argiope {

inline std::uint64_t random_number() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace argiope
