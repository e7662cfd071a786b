// A file in TOML that is read as requests are, by the reader of JSON: what is wrong with it is told of its name and
// line.
//
//   const auto file = TomlFile::read(path, kMostBytes);
//   if (!file) return std::unexpected(file.error());
//   auto read = file->as_json([&](const JsonValue& form) { rules = read_rules(form); });
//   if (!read) return std::unexpected(read.error());
#pragma once

#include <toml++/toml.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "base/internal/file_reading.hpp"
#include "base/internal/json_reader.hpp"

namespace argiope {

class TomlFile {
 public:
  // Errors: invalid_input, too_large; `name:LINE: …`, one line. read() also not_found and io.
  static Result<TomlFile> parse(std::string_view text, std::string_view name, std::size_t most_bytes);
  static Result<TomlFile> read(const std::string& path, std::size_t most_bytes);
  // The text alone. Errors: those of read_file_text(), naming the file.
  static Result<std::string> read_text(const std::string& path, std::size_t most_bytes, FileReading reading);

  const std::string& name() const noexcept { return name_; }
  // read(const JsonValue&) is given all of it, with members in their order; what it has found wrong is returned.
  template <class Read>
  Result<void> as_json(Read read) const {
    JsonErrors errors;
    read(form_.root(errors));
    if (errors) return wrong(errors.where(), errors.error().message);
    return {};
  }
  // A missing member is where the table or list is that should have it.
  std::uint32_t line_of(const JsonPath& path) const;
  std::unexpected<Error> wrong(const JsonPath& path, std::string_view what) const;

 private:
  TomlFile(std::string_view name, toml::table root, JsonText form)
      : name_(name), root_(std::move(root)), form_(std::move(form)) {}

  std::string name_;
  toml::table root_;
  JsonText form_;
};

}  // namespace argiope
