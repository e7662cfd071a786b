#include "base/internal/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/internal/printable.hpp"

namespace argiope {
namespace {

constexpr std::size_t kLongestWord = 100;  // that anybody slips in

// Letters to change, add, leave out, or exchange with their neighbours, to make one of the other.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::exchange(last, row);
  }
  return last[b.size()];
}

// Of as many letters so many may be wrong.
std::size_t most_edits(std::size_t length) { return length <= 2 ? 1 : length <= 5 ? 2 : 3; }

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  if (word.size() > kLongestWord) return {};
  const std::size_t most = most_edits(word.size() - std::min(word.find_first_not_of('-'), word.size()));
  std::string best;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  bool several = false;
  for (const std::string& name : names) {
    if (name == word) continue;
    const bool begins =
        word.size() >= 3 && name.starts_with(word) && word.find_first_not_of('-') != std::string_view::npos;
    const std::size_t distance = begins ? 1 : edits(word, name);
    // Half of a word made anew is another word.
    if (distance > most || (!begins && 2 * distance > std::max(word.size(), name.size()))) continue;
    // Of those that are as near, one of the same length: letters in another order are the commonest slip.
    const std::size_t score = 2 * distance + (name.size() == word.size() ? 0 : 1);
    if (score > least) continue;
    several = score == least;
    least = score;
    best = name;
  }
  return several ? std::string() : best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const std::string meant = nearest(word, names);
  if (meant.empty()) return {};
  return fmt::format("; did you mean {}?", meant.starts_with('-') ? meant : in_quotes(meant));
}

}  // namespace argiope
