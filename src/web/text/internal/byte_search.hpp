// Finding bytes fast in text that has one of them every few bytes, where a call of memchr costs more than the search.
// Private to the web module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace argiope {

// How many bytes one step looks at.
inline constexpr std::ptrdiff_t kSearchStep = 16;

#if defined(__SSE2__)

// Sixteen bytes, and for each question a mask with bit i set where byte i answers yes.
class ByteBlock {
 public:
  // Reads kSearchStep bytes.
  explicit ByteBlock(const char* p) noexcept : bytes_(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))) {}
  std::uint32_t equal(char c) const noexcept { return mask(equals(c)); }
  std::uint32_t equal(char a, char b) const noexcept { return mask(_mm_or_si128(equals(a), equals(b))); }
  std::uint32_t equal(char a, char b, char c) const noexcept {
    return mask(_mm_or_si128(_mm_or_si128(equals(a), equals(b)), equals(c)));
  }

 private:
  __m128i equals(char c) const noexcept { return _mm_cmpeq_epi8(bytes_, _mm_set1_epi8(c)); }
  static std::uint32_t mask(__m128i answers) noexcept { return static_cast<std::uint32_t>(_mm_movemask_epi8(answers)); }

  __m128i bytes_;
};

#else

class ByteBlock {
 public:
  explicit ByteBlock(const char* p) noexcept { std::memcpy(bytes_, p, sizeof bytes_); }
  std::uint32_t equal(char c) const noexcept { return equal(c, c, c); }
  std::uint32_t equal(char a, char b) const noexcept { return equal(a, b, b); }
  std::uint32_t equal(char a, char b, char c) const noexcept {
    std::uint32_t answers = 0;
    for (std::uint32_t i = 0; i < sizeof bytes_; ++i) {
      const bool yes = bytes_[i] == a || bytes_[i] == b || bytes_[i] == c;
      answers |= static_cast<std::uint32_t>(yes) << i;
    }
    return answers;
  }

 private:
  char bytes_[kSearchStep];
};

#endif

// The first of `wanted` (one to three characters) in [p, end), or end.
template <class... Chars>
inline const char* find_byte(const char* p, const char* end, Chars... wanted) noexcept {
  for (; end - p >= kSearchStep; p += kSearchStep) {
    if (const std::uint32_t hits = ByteBlock(p).equal(wanted...); hits != 0) return p + __builtin_ctz(hits);
  }
  while (p != end && ((*p != wanted) && ...)) ++p;
  return p;
}

}  // namespace argiope
