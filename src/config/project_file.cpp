#include "config/internal/project_file.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/internal/printable.hpp"
#include "config/extraction_check.hpp"
#include "config/toml_file.hpp"
#include "serve/base/internal/own_queues.hpp"

namespace argiope {
namespace {

Result<ProjectSource> project_in(const Result<TomlFile>& file) {
  if (!file) return std::unexpected(file.error());
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
    if (auto checked = check_extraction_rule(rule, i, *file); !checked)
      return std::unexpected(std::move(checked.error()));
  }
  return source;
}

// Of a file of the operator's. The API asks the same of its callers.
Result<void> check_sinks_of_file(const ProjectDefinition& project, const TomlFile& file) {
  for (std::size_t i = 0; i < project.sinks.size(); ++i) {
    const ProjectSink& sink = project.sinks[i];
    if (sink.kind != ProjectSink::Kind::queue || !is_own_queue(sink.target)) continue;
    const std::string queue = in_quotes(sink.target);
    return file.wrong({"sink", i, "queue"},
                      fmt::format("sink[{}].queue {}: the daemon alone puts jobs into its own queues", i, queue));
  }
  return {};
}

Result<ProjectSource> operators_project_in(Result<TomlFile> file) {
  auto source = project_in(file);
  if (!source) return source;
  if (auto good = check_sinks_of_file(source->definition, *file); !good)
    return std::unexpected(std::move(good.error()));
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
  return definition_of(operators_project_in(TomlFile::read(path, kMostProjectFileBytes)));
}

Result<ProjectSource> read_project_source(const std::string& path, FileReading reading) {
  auto text = TomlFile::read_text(path, kMostProjectFileBytes, reading);
  if (!text) return std::unexpected(std::move(text.error()));
  auto source = operators_project_in(TomlFile::parse(*text, path, kMostProjectFileBytes));
  if (source) source->text = *std::move(text);
  return source;
}

Result<ProjectSource> parse_project_source(std::string_view text, std::string_view name) {
  auto source = project_in(TomlFile::parse(text, name, kMostProjectFileBytes));
  if (source) source->text = text;
  return source;
}

}  // namespace argiope
