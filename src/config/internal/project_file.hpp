// Files of projects: `argiope project check FILE.toml` (docs/projects.md).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "base/internal/file_reading.hpp"
#include "project/rules/internal/project_definition.hpp"

namespace argiope {

inline constexpr std::size_t kMostProjectFileBytes = 16 * 1024 * 1024;

// Strict, as read_project(); and each rule is one that Extractor::compile() and ProjectMap::make() take.
// Errors: invalid_input, too_large; `shop.toml:12: rule[1].age "soon": …`, one line. read_project_file() also
// those of read_file_text(), naming the file;
// what it and read_project_source() read from a file has no sink into a queue of the daemon's own.
Result<ProjectDefinition> parse_project_file(std::string_view text, std::string_view name);
Result<ProjectDefinition> read_project_file(const std::string& path);

// The same with what stores keep of it.
struct ProjectSource {
  ProjectDefinition definition;
  std::string json;  // what read_project() reads
  std::string text;  // as it was written
};
Result<ProjectSource> read_project_source(const std::string& path, FileReading reading = FileReading::first);
Result<ProjectSource> parse_project_source(std::string_view text, std::string_view name);

}  // namespace argiope
