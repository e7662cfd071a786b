#include "cli/line_input.hpp"

#include <fmt/format.h>

#include "cli/file_kind.hpp"

namespace argiope {

Result<InputFile> open_lines(std::string_view option, const std::string& path) {
  if (path.empty() || path == "-") return InputFile::standard_input();
  if (const auto other = other_kind(path, FileKind::json))
    return fail(other->code, fmt::format("{} {}", option, other->message));
  auto file = InputFile::open(path, FileReading::stream);
  if (!file) return fail(file.error().code, fmt::format("{} {}: {}", option, path, file.error().message));
  return file;
}

}  // namespace argiope
