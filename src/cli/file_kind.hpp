// Files of the wrong kind: a command that reads one format and is given another says what the file seems to be, and
// which command takes it. Readers of the formats know no commands; all commands that name a file ask here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "argiope/base/error.hpp"

namespace argiope {

enum class FileKind : std::uint8_t {
  unknown,
  folder,
  database,  // of SQLite
  archive,   // WARC, packed or not
  html,
  json,    // one document, or one object a line
  script,  // Python, JavaScript, or what begins with "#!"
  crontab,
  urls,     // one a line
  project,  // TOML, from here on
  configuration,
  rules,           // of records: --extract
  crawl_settings,  // --config
};

// By its name and its first 64 KiB. A missing file is unknown, and so is a pipe, which cannot be read twice.
FileKind kind_of_file(const std::string& path);

// invalid_input where the file is plainly of another kind than `wanted`; nullopt where it is not, or who knows.
std::optional<Error> other_kind(const std::string& path, FileKind wanted);

// The error that a reader of `wanted` tells of the file: where that is of another kind, in these words. An error in
// TOML keeps its own, with its line, and the kind behind it.
Error with_file_kind(Error error, const std::string& path, FileKind wanted);

template <class T>
Result<T> or_other_kind(Result<T> read, const std::string& path, FileKind wanted) {
  if (!read) return std::unexpected(with_file_kind(std::move(read.error()), path, wanted));
  return read;
}

}  // namespace argiope
