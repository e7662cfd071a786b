// Reading files that a user names: as a whole and up to a bound, or in pieces; text_lines.hpp has their lines. All who
// read a configuration, a project, a key, a secret, a list of jobs or of URLs open it here. A pipe or a device that
// merely has a name is refused, since it may never end: of what is no plain file, only pipes that were opened for this
// process are read, and the null device, which is an empty file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "argiope/base/error.hpp"

namespace argiope {

enum class FileReading : std::uint8_t {
  stream,  // line by line, for as long as it takes: a named pipe too, whose writer is waited for
  first,   // a pipe that was opened for this process is read to its end, too: `argiope serve <(generate)`
  again,   // plain files alone: a pipe may be empty by now, and who waited for its writer would wait for good
};

// A file that is open to be read from its beginning to its end; closed with it.
// Threads: one at a time.
class InputFile {
 public:
  // Errors: not_found, io, and refused for what is read in no way. Messages do not name the file.
  static Result<InputFile> open(const std::string& path, FileReading reading);
  // Whatever it is; it is not closed.
  static InputFile standard_input() noexcept;
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;

  // For those who look at it, or wait for it. Its reads block.
  int descriptor() const noexcept { return descriptor_; }
  // The next bytes; 0 at the end. Errors: io.
  Result<std::size_t> read(std::span<char> to) const;
  // All that is left. Errors: io, too_large beyond `most_bytes`.
  Result<std::string> read_text(std::size_t most_bytes) const;

 private:
  InputFile(int descriptor, bool is_own) noexcept : descriptor_(descriptor), is_own_(is_own) {}

  int descriptor_;
  bool is_own_;
};

// The whole text. Blocks; with `again` for the disk alone.
// Errors: not_found, io, too_large beyond `most_bytes`, and refused for what is read in no way. Messages do not name
// the file.
Result<std::string> read_file_text(const std::string& path, std::size_t most_bytes, FileReading reading);
// The same of standard input, whatever it is.
Result<std::string> read_standard_input(std::size_t most_bytes);
// Whether InputFile::open() would open that file. Opens nothing. Errors: as there.
Result<void> expect_readable_file(const std::string& path, FileReading reading);

}  // namespace argiope
