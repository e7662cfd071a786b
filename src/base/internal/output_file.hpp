// A file that is there whole or not at all: what is written goes beside its place first, and is moved there at the end.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"

namespace argiope {

// Begun when it is made; taken away again unless finish() is called. "-" is standard output, which gets everything as it comes.
//
// Errors:  the first one is kept, and finish() gives it: io and disk_full, beginning with `what` and the file's name
//          ("export to FILE: …").
// Threads: one at a time.
class OutputFile {
 public:
  enum class Readers { all, owner };  // whom the process lets read it, or its owner alone (mode 0600)
  // Whether one could be begun here: for who works long before there is anything to write. What is there already stays as it is.
  // Errors: those of finish().
  static Result<void> check(std::string_view what, const std::string& path);
  OutputFile(std::string what, std::string path, Readers readers = Readers::all);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  void write(std::string_view bytes);
  // Whether writing on makes sense.
  bool ok() const noexcept { return errno_ == 0; }
  Result<void> finish();

 private:
  bool is_standard_output() const noexcept { return path_ == "-"; }
  void flush();
  Result<void> result() const;

  std::string what_, path_, temporary_;
  std::FILE* file_;
  std::string buffer_;
  int errno_ = 0;
};

}  // namespace argiope
