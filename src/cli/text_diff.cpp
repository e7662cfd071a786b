#include "cli/text_diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace argiope {
namespace {

constexpr std::size_t kAround = 3;
constexpr std::ptrdiff_t kMostChanges = 4'000;  // its square in places is remembered

using Lines = std::vector<std::string_view>;

Lines lines_in(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

// Of each line whether it stays.
struct Kept {
  std::vector<bool> before, after;
};

// Eugene W. Myers, "An O(ND) Difference Algorithm and Its Variations" (1986): the shortest way through the grid of
// lines, for lines from `first` to `before_end` and `after_end`, which have no lines in common at their ends.
void keep_common(const Lines& before, const Lines& after, std::size_t first, std::size_t before_end,
                 std::size_t after_end, Kept& kept) {
  const auto width = static_cast<std::ptrdiff_t>(before_end - first),
             height = static_cast<std::ptrdiff_t>(after_end - first);
  const std::ptrdiff_t most = std::min(width + height, kMostChanges);
  const auto same = [&](std::ptrdiff_t x, std::ptrdiff_t y) {
    return before[first + static_cast<std::size_t>(x)] == after[first + static_cast<std::size_t>(y)];
  };
  // By changes made: of each diagonal x − y the farthest x that so many changes reach.
  std::vector<std::vector<std::ptrdiff_t>> reached;
  const auto farthest = [&](std::ptrdiff_t changes, std::ptrdiff_t diagonal) -> std::ptrdiff_t {
    if (changes < 0 || diagonal < -changes || diagonal > changes) return -1;
    return reached[static_cast<std::size_t>(changes)][static_cast<std::size_t>(diagonal + changes)];
  };
  const auto comes_from_above = [&](std::ptrdiff_t changes, std::ptrdiff_t diagonal) {
    return diagonal == -changes ||
           (diagonal != changes && farthest(changes - 1, diagonal - 1) < farthest(changes - 1, diagonal + 1));
  };
  for (std::ptrdiff_t changes = 0; changes <= most; ++changes) {
    reached.emplace_back(static_cast<std::size_t>(2 * changes + 1), -1);
    for (std::ptrdiff_t diagonal = -changes; diagonal <= changes; diagonal += 2) {
      std::ptrdiff_t x = 0;
      if (changes > 0)
        x = comes_from_above(changes, diagonal) ? farthest(changes - 1, diagonal + 1)
                                                : farthest(changes - 1, diagonal - 1) + 1;
      std::ptrdiff_t y = x - diagonal;
      while (x < width && y < height && same(x, y)) ++x, ++y;
      reached.back()[static_cast<std::size_t>(diagonal + changes)] = x;
      if (x < width || y < height) continue;
      // The end: the same way back.
      x = width;
      y = height;
      for (std::ptrdiff_t left = changes; left >= 0; --left) {
        const std::ptrdiff_t here = x - y;
        const bool from_above = left > 0 && comes_from_above(left, here);
        const std::ptrdiff_t from_x = left == 0    ? 0
                                      : from_above ? farthest(left - 1, here + 1)
                                                   : farthest(left - 1, here - 1);
        const std::ptrdiff_t snake_x = left == 0 ? 0 : from_above ? from_x : from_x + 1;
        while (x > snake_x) {
          --x, --y;
          kept.before[first + static_cast<std::size_t>(x)] = true;
          kept.after[first + static_cast<std::size_t>(y)] = true;
        }
        if (left == 0) return;
        x = from_x;
        y = from_above ? from_x - (here + 1) : from_x - (here - 1);
      }
      return;
    }
  }
}

Kept common_lines(const Lines& before, const Lines& after) {
  Kept kept{std::vector<bool>(before.size()), std::vector<bool>(after.size())};
  std::size_t first = 0, before_end = before.size(), after_end = after.size();
  for (; first < std::min(before_end, after_end) && before[first] == after[first]; ++first)
    kept.before[first] = kept.after[first] = true;
  while (before_end > first && after_end > first && before[before_end - 1] == after[after_end - 1]) {
    kept.before[--before_end] = kept.after[--after_end] = true;
  }
  if (first < before_end && first < after_end) keep_common(before, after, first, before_end, after_end, kept);
  return kept;
}

void add_line(std::string& out, char mark, std::string_view line) {
  out += mark;
  out += line;
  if (!line.ends_with('\n')) out += "\n\\ No newline at end of file\n";
}

std::string range_of(std::size_t from, std::size_t count) {
  // Of nothing the line before it.
  return count == 1 ? fmt::to_string(from + 1) : fmt::format("{},{}", count == 0 ? from : from + 1, count);
}

}  // namespace

std::string unified_diff(std::string_view before_text, std::string_view after_text, std::string_view name_before,
                         std::string_view name_after) {
  const Lines before = lines_in(before_text), after = lines_in(after_text);
  const Kept kept = common_lines(before, after);
  // Steps through both: a line that stays, one that goes, one that comes.
  struct Step {
    char mark = ' ';
    std::size_t before = 0, after = 0;
  };
  std::vector<Step> steps;
  for (std::size_t i = 0, j = 0; i < before.size() || j < after.size();) {
    if (i < before.size() && !kept.before[i]) {
      steps.push_back({'-', i++, j});
    } else if (j < after.size() && !kept.after[j]) {
      steps.push_back({'+', i, j++});
    } else {
      steps.push_back({' ', i++, j++});
    }
  }
  std::string out;
  for (std::size_t at = 0; at < steps.size();) {
    if (steps[at].mark == ' ') {
      ++at;
      continue;
    }
    const std::size_t begin = at - std::min(at, kAround);
    std::size_t end = at, unchanged = 0;
    for (; at < steps.size() && unchanged <= 2 * kAround; ++at) {
      unchanged = steps[at].mark == ' ' ? unchanged + 1 : 0;
      if (unchanged == 0) end = at + 1;
    }
    at = end;
    end = std::min(end + kAround, steps.size());
    std::size_t gone = 0, come = 0;
    std::string body;
    for (std::size_t i = begin; i < end; ++i) {
      const Step& step = steps[i];
      if (step.mark != '+') ++gone;
      if (step.mark != '-') ++come;
      add_line(body, step.mark, step.mark == '+' ? after[step.after] : before[step.before]);
    }
    if (out.empty()) out = fmt::format("--- {}\n+++ {}\n", name_before, name_after);
    out +=
        fmt::format("@@ -{} +{} @@\n", range_of(steps[begin].before, gone), range_of(steps[begin].after, come)) + body;
  }
  return out;
}

}  // namespace argiope
