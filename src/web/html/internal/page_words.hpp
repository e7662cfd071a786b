// The words of a page, in three numbers: to tell whether two pages say the same, or nearly so, whatever stands in their
// markup and their links.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace argiope {

// Of a page's text outside of scripts, styles and templates. Words are what stands between spaces, punctuation and
// tags, ASCII in lower case; of scripts without spaces (Chinese, Japanese, Thai …) each character is one. Character
// references count as they are written.
struct PageWords {
  std::uint32_t count = 0;
  // Of the words in their order, and of what the page shows beside them: the `src` of pictures and frames, as it is
  // written.
  std::uint64_t digest = 0;
  // Charikar's simhash over each two words in a row, each pair once: pages that differ in few of their words differ in
  // few of its bits. Of a page with few words it says little.
  std::uint64_t simhash = 0;
};

// Of a page with more different pairs of words the first of them count.
inline constexpr std::size_t kMostWordPairs = 32'768;
// Below so many words simhashes are not compared.
inline constexpr std::uint32_t kFewWords = 20;

// Reads one page after the other.
//
// Cost:    linear in the page. Memory: up to 512 KiB, whatever the page holds.
// Threads: a reader each.
class PageWordReader {
 public:
  // Of `html`, which is UTF-8; what is not passes through, and a page cut short is fine.
  PageWords read(std::string_view html);

 private:
  std::vector<std::uint64_t> pairs_;  // a hash table of those met on the page; 0: none
};

// How many of their 64 bits differ.
constexpr int simhash_distance(std::uint64_t a, std::uint64_t b) noexcept { return __builtin_popcountll(a ^ b); }

}  // namespace argiope
