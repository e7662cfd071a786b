// Where the bytes of an output go, by what its path names: a plain file is replaced, a link is followed, and anything
// else (a device, a pipe, a descriptor of this process) is written into.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <expected>
#include <string>

namespace argiope {

struct OutputPlace {
  enum class Kind : std::uint8_t {
    fresh,        // nothing is there
    plain,        // a file that may be replaced by another of its name
    written_into  // what stays what it is: not a file, a file that is mounted at its place, or one of another process
  };
  Kind kind = Kind::fresh;
  std::string path;  // with links followed
  // Of this process, that the path names ("-", /dev/stdout, /dev/fd/N). The path is not opened then.
  int descriptor = -1;
  bool is_file = false;  // a regular file is there, of these:
  mode_t mode = 0;
  uid_t owner = 0;
  gid_t group = 0;
};

// Nothing is opened, made or changed.
// Errors: the system's number: EISDIR for a folder, EBADF for a descriptor that this process was not started with, and
// those of stat().
std::expected<OutputPlace, int> find_output_place(const std::string& path);

// A file of its own in the folder of `path`, to be renamed to it. Nothing that is there is opened, whatever its name:
// the name is the path's with `ending`, or with a number behind that.
// Null: errno says why.
std::FILE* open_beside(const std::string& path, const std::string& ending, mode_t mode, std::string& name);

}  // namespace argiope
