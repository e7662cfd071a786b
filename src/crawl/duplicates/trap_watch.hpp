// Traps: parts of a site that lead to ever new URLs of one shape, whose pages all say what others have said.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/crawl/detail/crawl_report.hpp"

namespace argiope {

// The form that URLs of one kind have in common: "#" for each number, each segment of the path once, and the names of
// parameters, sorted and each once. "http://h/a/2026-05/a/7?y=1&x=2&y=3" is of the shape "http://h/a/#-#/#?x&y".
std::string shape_of(std::string_view href);

// Counts, for each shape, how many of its pages in a row were copies of pages met before. When it is `most`, the shape
// is a trap from then on.
//
// Memory:  some 30 bytes a shape, at most kMostShapes of them; others are never traps.
// Threads: one at a time.
class TrapWatch {
 public:
  static constexpr std::size_t kMostShapes = 200'000;

  explicit TrapWatch(std::uint32_t most) : most_(most) {}

  // A page was fetched. True: its shape is a trap from now on.
  bool note(std::string_view href, bool is_copy);
  bool is_empty() const noexcept { return traps_.empty(); }
  bool is_trap(std::string_view href) const;
  // Whether it is in a trap; it is counted as left out of it.
  bool leave_out(std::string_view href);

  // Of another run.
  void restore(std::string shape, std::uint64_t pages, std::string example);
  std::vector<FoundTrap> traps() const;  // by shape

 private:
  struct Shape {
    std::uint32_t in_a_row = 0;
    std::uint32_t pages = 0;
  };
  const std::uint32_t most_;
  boost::unordered_flat_map<std::uint64_t, Shape> shapes_;
  boost::unordered_flat_map<std::uint64_t, FoundTrap> traps_;
};

}  // namespace argiope
