#include "base/internal/wording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace argiope {

std::string grouped(std::uint64_t number) {
  std::string text = fmt::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string count_of(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", grouped(count), what, count == 1 ? "" : "s");
}

std::string short_duration(Duration span) {
  using namespace std::chrono;
  const double seconds = to_seconds(span);
  if (span == Duration::zero()) return "0";
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", std::max(seconds * 1e3, 0.001));
  if (seconds < 59.95) return fmt::format("{:.3g} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  const auto pair = [&](std::int64_t unit, const char* name, std::int64_t part, const char* part_name) {
    const std::int64_t rest = whole % unit / part;
    return rest == 0 ? fmt::format("{} {}", whole / unit, name)
                     : fmt::format("{} {} {} {}", whole / unit, name, rest, part_name);
  };
  if (whole < 3'600) return pair(60, "min", 1, "s");
  if (whole < 86'400) return pair(3'600, "h", 60, "min");
  return pair(86'400, "d", 3'600, "h");
}

std::string shortened(std::string_view text, std::size_t most) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) == 0x80) continue;
    if (++characters > most) return std::string(text.substr(0, i)) + "…";
  }
  return std::string(text);
}

}  // namespace argiope
