#include "config/internal/extraction_file.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/internal/printable.hpp"
#include "config/extraction_check.hpp"
#include "config/toml_file.hpp"
#include "crawl/extract/internal/extraction_json.hpp"

namespace argiope {
namespace {

Result<ExtractionRules> rules_in(Result<TomlFile> file) {
  if (!file) return std::unexpected(std::move(file.error()));
  ExtractionRules rules;
  if (auto read = file->as_json([&](const JsonValue& form) { rules = read_extraction_rules(form); }); !read) {
    return std::unexpected(std::move(read.error()));
  }
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    if (auto checked = check_extraction_rule(rules.rules[i], i, *file); !checked)
      return std::unexpected(std::move(checked.error()));
  }
  return rules;
}

}  // namespace

Result<void> check_extraction_rule(const ExtractionRule& rule, std::size_t place, const TomlFile& file) {
  const auto compiled = Extractor::compile({{rule}});
  if (compiled) return {};
  JsonPath path = {std::string("rule"), place};
  for (const FieldRule& field : rule.fields) {
    if (!compiled.error().message.contains(fmt::format("field {}: ", in_quotes(field.name)))) continue;
    path.insert(path.end(), {std::string("fields"), field.name});
    break;
  }
  return file.wrong(path, compiled.error().message);
}

Result<ExtractionRules> parse_extraction(std::string_view text, std::string_view name) {
  return rules_in(TomlFile::parse(text, name, kMostExtractionBytes));
}

Result<ExtractionRules> read_extraction_file(const std::string& path) {
  return rules_in(TomlFile::read(path, kMostExtractionBytes));
}

}  // namespace argiope
