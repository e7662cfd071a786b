// LineFile: lines beside the store, in a file that grows at its end: of the audit, the history, the notifier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "argiope/base/error.hpp"
#include "serve/base/internal/line_file_check.hpp"
#include "serve/base/plain_file.hpp"

namespace argiope {

// All of it blocks. One process has the file at a time: the one that owns the store beside it. The null device may be
// in its place, which has no lines and takes any.
class LineFile {
 public:
  // We write no line that is longer.
  static constexpr std::size_t kMostLineBytes = std::size_t{64} << 20;

  explicit LineFile(std::string path, std::size_t most_line_bytes = kMostLineBytes)
      : path_(std::move(path)), most_line_bytes_(most_line_bytes) {}

  // Makes it if need be. each(line), without its end, for each that is whole; what a crash has cut off is removed. A
  // line of more than `most_line_bytes` is none of ours: it comes as an empty one, so that it counts among those that
  // none could read.
  // Errors: those of check_line_file(), and then the file stays as it is, a pipe or a device that cannot be read again
  // among them; io, disk_full.
  Result<void> open(const std::function<void(std::string_view line)>& each);
  // On the disk when it returns. `lines` end with a line feed. Where it fails the file is as it was. Where the file was
  // moved away or deleted meanwhile, another of its name goes on.
  Result<void> append(std::string_view lines);
  // It has these lines from now on, or after a crash those that it had.
  Result<void> replace(std::string_view lines);

 private:
  Result<void> open_to_append();
  Result<void> go_on_in_another();

  const std::string path_;
  const std::size_t most_line_bytes_;
  Descriptor file_;
  std::int64_t bytes_ = 0;
};

}  // namespace argiope
