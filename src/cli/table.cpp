#include "cli/table.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/internal/printable.hpp"
#include "base/internal/utf8.hpp"

namespace argiope {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || c == '-'; });
}

std::string cut(const std::string& text, std::size_t most) {
  return characters_in(text) <= most ? text : printable(text, most - 1);
}

// Without a bound where standard output is no terminal.
std::size_t output_width() {
  if (::isatty(STDOUT_FILENO) != 1) return std::string::npos;
  winsize size{};
  const bool is_known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : 80;
}

}  // namespace

void Table::print() const { std::fputs(text(output_width()).c_str(), stdout); }

std::string Table::text(std::size_t most) const {
  std::vector<std::size_t> widths(rows_.front().size());
  std::vector<bool> numbers(widths.size(), rows_.size() > 1);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], characters_in(row[i]));
      if (&row != &rows_.front() && !is_number(row[i])) numbers[i] = false;
    }
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    std::size_t used = 0;  // characters
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool is_last = i + 1 == row.size();
      const std::string gap(widths[i] - characters_in(row[i]), ' ');
      if (i > 0) line += "  ";
      const std::string cell = is_last ? cut(row[i], std::max(kLeastOfLast, most - std::min(most, used))) : row[i];
      line += numbers[i] ? gap + cell : cell + gap;
      used += widths[i] + 2;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

std::string one_line(std::string_view text, std::size_t most) {
  std::string line(most < text.size() ? text.substr(0, most * 4 + 4) : text);
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return printable(line, most);
}

}  // namespace argiope
