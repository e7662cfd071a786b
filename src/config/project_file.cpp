#include "config/internal/project_file.hpp"

#include <utility>

#include "config/extraction_check.hpp"
#include "config/toml_file.hpp"

namespace argiope {
namespace {

Result<ProjectSource> project_in(Result<TomlFile> file) {
  if (!file) return std::unexpected(std::move(file.error()));
  ProjectSource source;
  const auto read = file->as_json([&](const JsonValue& form) {
    source.definition = read_project(form);
    source.json = form.json();
  });
  if (!read) return std::unexpected(read.error());
  const std::vector<ProjectRule>& rules = source.definition.rules;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const ExtractionRule& rule = rules[i].extraction;
    if (rule.fields.empty()) continue;
    if (auto checked = check_extraction_rule(rule, i, *file); !checked) return std::unexpected(std::move(checked.error()));
  }
  return source;
}

Result<ProjectDefinition> definition_of(Result<ProjectSource> source) {
  if (!source) return std::unexpected(std::move(source.error()));
  return std::move(source->definition);
}

}  // namespace

Result<ProjectDefinition> parse_project_file(std::string_view text, std::string_view name) {
  return definition_of(project_in(TomlFile::parse(text, name, kMostProjectFileBytes)));
}

Result<ProjectDefinition> read_project_file(const std::string& path) {
  return definition_of(project_in(TomlFile::read(path, kMostProjectFileBytes)));
}

Result<ProjectSource> read_project_source(const std::string& path, FileReading reading) {
  auto text = TomlFile::read_text(path, kMostProjectFileBytes, reading);
  if (!text) return std::unexpected(std::move(text.error()));
  return parse_project_source(*text, path);
}

Result<ProjectSource> parse_project_source(std::string_view text, std::string_view name) {
  auto source = project_in(TomlFile::parse(text, name, kMostProjectFileBytes));
  if (source) source->text = text;
  return source;
}

}  // namespace argiope
