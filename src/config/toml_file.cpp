#include "config/toml_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
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
  if (text.size() > most_bytes) return fail(Errc::too_large, fmt::format("{}: more than {} bytes", printable(name), most_bytes));
  if (const auto line = too_deep_in_toml(text)) {
    return fail(Errc::invalid_input, printable(fmt::format("{}:{}: nested deeper than {} levels", name, *line, kMostTomlNesting)));
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

Result<std::string> TomlFile::read_text(const std::string& path, std::size_t most_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const int why = errno;
    return fail(why == ENOENT ? Errc::not_found : Errc::io, fmt::format("{}: {}", printable(path), std::strerror(why)));
  }
  // A piece at a time: hundreds of small files are kept.
  std::string text;
  char piece[16 * 1024];
  while (text.size() <= most_bytes && (file.read(piece, sizeof piece) || file.gcount() > 0)) {
    text.append(piece, static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) return fail(Errc::io, fmt::format("{}: it cannot be read", printable(path)));
  return text;
}

Result<TomlFile> TomlFile::read(const std::string& path, std::size_t most_bytes) {
  const auto text = read_text(path, most_bytes);
  return text ? parse(*text, path, most_bytes) : std::unexpected(text.error());
}

std::uint32_t TomlFile::line_of(const JsonPath& path) const { return source_of(root_, path).begin.line; }

std::unexpected<Error> TomlFile::wrong(const JsonPath& path, std::string_view what) const {
  return wrong_in_toml(name_, source_of(root_, path), what);
}

}  // namespace argiope
