#include "config/internal/extraction_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/internal/printable.hpp"
#include "config/toml_json.hpp"
#include "crawl/internal/extraction_json.hpp"

namespace argiope {
namespace {

std::unexpected<Error> wrong_at(std::string_view name, const toml::source_region& where, std::string_view what) {
  const std::string line = where.begin.line == 0 ? "" : fmt::format(":{}", where.begin.line);
  return fail(Errc::invalid_input, printable(fmt::format("{}{}: {}", name, line, what)));
}

// Each rule alone, so that an error has a line.
Result<void> check_rules(const ExtractionRules& rules, const toml::table& root, std::string_view name) {
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    const ExtractionRules alone{{rules.rules[i]}};
    if (const auto compiled = Extractor::compile(alone); !compiled) {
      JsonPath path = {std::string("rule"), i};
      for (const FieldRule& field : rules.rules[i].fields) {
        if (!compiled.error().message.contains(fmt::format("field {}: ", in_quotes(field.name)))) continue;
        path.insert(path.end(), {std::string("fields"), field.name});
        break;
      }
      return wrong_at(name, source_of(root, path), compiled.error().message);
    }
  }
  return {};
}

}  // namespace

Result<ExtractionRules> parse_extraction(std::string_view text, std::string_view name) {
  if (text.size() > kMostExtractionBytes) {
    return fail(Errc::too_large, fmt::format("{}: rules of more than {} bytes", name, kMostExtractionBytes));
  }
  toml::table root;
  try {
    root = toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    return wrong_at(name, error.source(), error.description());
  }
  const toml::node* trouble = nullptr;
  std::string json;
  JsonWriter out(json);
  write_json(out, root, trouble, TomlOrder::as_written);
  if (trouble != nullptr) return wrong_at(name, trouble->source(), "a number must be finite");
  const auto form = JsonText::parse(json);
  if (!form) return fail(Errc::invalid_input, fmt::format("{}: {}", name, form.error().message));
  JsonErrors errors;
  ExtractionRules rules = read_extraction_rules(form->root(errors));
  if (errors) return wrong_at(name, source_of(root, errors.where()), errors.error().message);
  if (auto checked = check_rules(rules, root, name); !checked) return std::unexpected(std::move(checked.error()));
  return rules;
}

Result<ExtractionRules> read_extraction_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const int why = errno;
    return fail(why == ENOENT ? Errc::not_found : Errc::io, fmt::format("{}: {}", printable(path), std::strerror(why)));
  }
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  if (file.bad()) return fail(Errc::io, fmt::format("{}: it cannot be read", printable(path)));
  return parse_extraction(text, path);
}

}  // namespace argiope
