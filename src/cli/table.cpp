#include "cli/table.hpp"

#include <algorithm>

#include "base/internal/printable.hpp"
#include "base/internal/utf8.hpp"

namespace argiope {
namespace {

// Characters, not bytes.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || c == '-'; });
}

}  // namespace

std::string Table::text() const {
  std::vector<std::size_t> widths(rows_.front().size());
  std::vector<bool> numbers(widths.size(), rows_.size() > 1);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], width(row[i]));
      if (&row != &rows_.front() && !is_number(row[i])) numbers[i] = false;
    }
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string gap(widths[i] - width(row[i]), ' ');
      if (i > 0) line += "  ";
      line += numbers[i] ? gap + row[i] : row[i] + gap;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

std::string one_line(std::string_view text, std::size_t most) {
  std::string line(text.substr(0, most * 4 + 4));
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return printable(line, most);
}

}  // namespace argiope
