#include "config/toml_file.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "config/toml_json.hpp"
#include "config/toml_nesting.hpp"

namespace argiope {
namespace {

std::unexpected<Error> wrong_in_toml(std::string_view name, const toml::source_region& where, std::string_view what) {
  const std::string line = where.begin.line == 0 ? "" : fmt::format(":{}", where.begin.line);
  return fail(Errc::invalid_input, printable(fmt::format("{}{}: {}", name, line, what)));
}

}  // namespace

Result<TomlFile> TomlFile::parse(std::string_view text, std::string_view name, std::size_t most_bytes) {
  if (text.size() > most_bytes)
    return fail(Errc::too_large, fmt::format("{}: more than {} bytes", printable(name), most_bytes));
  if (const auto line = too_deep_in_toml(text)) {
    return fail(Errc::invalid_input,
                printable(fmt::format("{}:{}: nested deeper than {} levels", name, *line, kMostTomlNesting)));
  }
  toml::table root;
  try {
    root = toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    return wrong_in_toml(name, error.source(), error.description());
  }
  const toml::node* trouble = nullptr;
  std::string json;
  JsonWriter out(json);
  write_json(out, root, trouble, TomlOrder::as_written);
  if (trouble != nullptr) return wrong_in_toml(name, trouble->source(), "a number must be finite");
  auto form = JsonText::parse(json);
  if (!form) return fail(Errc::invalid_input, printable(fmt::format("{}: {}", name, form.error().message)));
  return TomlFile(name, std::move(root), *std::move(form));
}

Result<std::string> TomlFile::read_text(const std::string& path, std::size_t most_bytes, FileReading reading) {
  auto text = read_file_text(path, most_bytes, reading);
  if (!text) return fail(text.error().code, fmt::format("{}: {}", printable(path), text.error().message));
  return text;
}

Result<TomlFile> TomlFile::read(const std::string& path, std::size_t most_bytes) {
  const auto text = read_text(path, most_bytes, FileReading::first);
  return text ? parse(*text, path, most_bytes) : std::unexpected(text.error());
}

std::uint32_t TomlFile::line_of(const JsonPath& path) const { return source_of(root_, path).begin.line; }

std::unexpected<Error> TomlFile::wrong(const JsonPath& path, std::string_view what) const {
  return wrong_in_toml(name_, source_of(root_, path), what);
}

}  // namespace argiope
