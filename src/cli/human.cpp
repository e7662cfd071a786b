#include "cli/human.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "argiope/base/clock.hpp"

namespace argiope {

std::string human_bytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < std::size(kUnits)) {
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string human_duration(double seconds) {
  return seconds < 60 ? fmt::format("{:.1f}s", seconds) : format_roughly(from_seconds(seconds));
}

std::string first_sentence(std::string_view text) {
  const std::size_t whole = text.size() - (text.ends_with('.') ? 1 : 0);
  std::string sentence(text.substr(0, std::min({text.find(". "), text.find(".\n"), whole})));
  std::ranges::replace(sentence, '\n', ' ');
  return sentence;
}

}  // namespace argiope
