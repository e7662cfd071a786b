#include "base/internal/text_lines.hpp"

#include <fmt/format.h>

#include "base/internal/printable.hpp"

namespace argiope {

Result<void> read_lines(const std::string& path, std::size_t most_bytes, FileReading reading,
                        const std::function<bool(const TextLine&)>& each) {
  const auto file = InputFile::open(path, reading);
  if (!file) return std::unexpected(file.error());
  LineSplitter lines(most_bytes);
  std::string piece(64 * 1024, '\0');
  for (;;) {
    const auto count = file->read(piece);
    if (!count) return std::unexpected(count.error());
    if (*count == 0) break;
    if (!lines.take(std::string_view(piece).substr(0, *count), each)) return {};
  }
  (void)lines.end(each);
  return {};
}

std::string place_of_line(std::string_view file, std::uint64_t number) {
  return fmt::format("{}:{}", printable(file), number);
}

}  // namespace argiope
