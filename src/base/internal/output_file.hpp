// A file that is there whole or not at all: what is written goes beside its place first, and is moved there at the end.
// A place that is no plain file stays what it is and is written into (output_place.hpp): a device, a pipe, /dev/stdout.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "base/internal/output_place.hpp"

namespace argiope {

// Begun when it is made; taken away again unless finish() is called. "-" is standard output, which gets everything as
// it comes, as do devices and pipes. A link is followed. A file that is there keeps its owner and its mode; where it
// cannot (its folder or its owner does not let this process), and where a file is mounted at its place, it is written
// into, from its beginning on, when the first bytes are due.
//
// Suspends: a pipe that nobody reads yet, when it is made.
// Errors:   the first one is kept, and finish() gives it: io and disk_full, beginning with `what`, if there is one, and
//           the file's name ("export to FILE: …").
// Threads:  one at a time.
class OutputFile {
 public:
  // Whom the process lets read it, or its owner alone (mode 0600, or less if the file that is there has less).
  enum class Readers { all, owner };
  // The end that a finished file survives: the end of this process, or the machine's.
  enum class Survives { process, machine };
  // Whether one could be begun here: for who works long before there is anything to write. A file that is there already
  // stays as it is.
  // Errors: those of finish().
  static Result<void> check(std::string_view what, const std::string& path, Readers readers = Readers::all);
  // Whether it may have others of similar names beside it: what is written into has no such place.
  static bool is_plain(const std::string& path);
  OutputFile(std::string what, std::string path, Readers readers = Readers::all);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  void write(std::string_view bytes);
  // Whether writing on makes sense.
  bool ok() const noexcept { return errno_ == 0; }
  Result<void> finish(Survives survives = Survives::process);

 private:
  bool is_standard_output() const noexcept { return file_ == stdout; }
  std::FILE* open(Readers readers);
  std::FILE* open_descriptor() const;
  std::FILE* open_to_replace(Readers readers);
  std::FILE* open_to_write_into(Readers readers);
  void flush();
  void take_place(Survives survives);
  Result<void> result() const;

  std::string what_, path_, temporary_;
  OutputPlace place_;
  std::FILE* file_ = nullptr;
  std::string buffer_;
  bool is_cut_ = true;  // what was there before is gone, where it has to be
  int errno_ = 0;
};

}  // namespace argiope
