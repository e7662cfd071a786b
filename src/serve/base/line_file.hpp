// LineFile: lines beside the store, in a file that grows at its end: of the audit, the history, the notifier.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "serve/base/internal/line_file_check.hpp"
#include "serve/base/plain_file.hpp"

namespace argiope {

// All of it blocks. One process has the file at a time: the one that owns the store beside it.
class LineFile {
 public:
  explicit LineFile(std::string path) : path_(std::move(path)) {}

  // Makes it if need be. each(line), without its end, for each that is whole; what a crash has cut off is removed.
  // Errors: those of check_line_file(), and then the file stays as it is; io, disk_full, too_large.
  Result<void> open(const std::function<void(std::string_view line)>& each);
  // On the disk when it returns. `lines` end with a line feed. Where it fails the file is as it was. Where the file was moved away or
  // deleted meanwhile, another of its name goes on.
  Result<void> append(std::string_view lines);
  // It has these lines from now on, or after a crash those that it had.
  Result<void> replace(std::string_view lines);

 private:
  Result<void> open_to_append();
  Result<void> go_on_in_another();

  const std::string path_;
  Descriptor file_;
  std::int64_t bytes_ = 0;
};

}  // namespace argiope
