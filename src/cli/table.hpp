// Text for people, in columns and in lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace argiope {

// Columns as wide as what is in them, two spaces apart; the first row is the heading. Numbers go to the right. The last
// column may be as long as it likes.
class Table {
 public:
  explicit Table(std::vector<std::string> heading) { add(std::move(heading)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // Lines of more than `width` characters have their last column cut, and "…" at its end; but kLeastOfLast of it are
  // shown in any case.
  std::string text(std::size_t width = std::string::npos) const;
  // To standard output: whole, or as wide as the terminal that it is.
  void print() const;

  static constexpr std::size_t kLeastOfLast = 20;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// One line of at most `most` characters, all of it where that is npos, whatever the text was: control characters and
// broken UTF-8 are replaced.
std::string one_line(std::string_view text, std::size_t most);
// How much of a name is shown in a sentence, and of a text in a list of facts.
inline constexpr std::size_t kMostOfName = 80;
inline constexpr std::size_t kMostOfText = 2000;

}  // namespace argiope
