// Chance as a parameter: a small, fast, seeded generator that is passed in.
#pragma once

#include <cstdint>

namespace argiope {

// Mixes 64 bits so that every input bit changes every output bit (the finaliser of SplitMix64,
// Steele, Lea and Flood 2014). A bijection: distinct inputs stay distinct.
constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// xoshiro256** (Blackman and Vigna, 2018). Not for secrets.
//
// Equal seeds give equal sequences on every machine. Satisfies UniformRandomBitGenerator.
// Threads: one at a time; give each thread its own by fork().
class Random {
 public:
  using result_type = std::uint64_t;

  explicit Random(std::uint64_t seed) noexcept;

  std::uint64_t next() noexcept;
  // Uniform in [0, bound); 0 when bound is 0. Without modulo bias.
  std::uint64_t below(std::uint64_t bound) noexcept;
  // Uniform in [low, high], both included; low must not exceed high.
  std::int64_t between(std::int64_t low, std::int64_t high) noexcept;
  // Uniform in [0, 1).
  double unit() noexcept { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  // True with the given probability.
  bool chance(double probability) noexcept { return unit() < probability; }
  // A generator whose sequence is independent of what this one gives afterwards.
  Random fork() noexcept { return Random{next()}; }

  static constexpr result_type min() noexcept { return 0; }
  static constexpr result_type max() noexcept { return ~result_type{0}; }
  result_type operator()() noexcept { return next(); }

 private:
  std::uint64_t state_[4];
};

}  // namespace argiope
