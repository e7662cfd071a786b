// The files of one command, each by the option that names it. No command writes to a file that it also reads, keeps or
// writes by another name: an output that takes the place of an input, of the database or of an archive destroys it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "argiope/base/error.hpp"
#include "base/internal/file_writing.hpp"
#include "base/internal/output_file.hpp"

namespace argiope {

// Files are compared by what they are: by device and inode where they are there, whatever links lead to them; else by
// folder and name, in lower and upper case as the file system has it. Devices and pipes may have several uses, and so
// may standard output. An empty path, and ":memory:", is no file.
class CommandFiles {
 public:
  // It is read; "-" is standard input. `renewed_by`: an option that may take its place, as a jar of cookies is renewed.
  void reads(std::string option, const std::string& path, std::string renewed_by = {});
  // It is opened at once, and written to from then on.
  void keeps(std::string option, const std::string& path);
  // A database of SQLite, with what SQLite has beside it.
  void reads_database(std::string option, const std::string& path);
  void keeps_database(std::string option, const std::string& path);
  // An archive, with its index and the files that it goes on in.
  void keeps_archive(std::string option, const std::string& path);
  // A mirror: what is in its folders is its own. Other files may be in the folder itself.
  void keeps_mirror(std::string option, const std::string& folder);
  // It is written when the command's work is done.
  void writes(std::string option, const std::string& path);
  // The same, for the file's owner alone to read.
  void writes_secret(std::string option, const std::string& path);
  // The same, and maybe others beside it: those whose names `is_part`.
  void writes_parts(std::string option, const std::string& path, std::function<bool(const std::string& name)> is_part);

  // Before anything is opened: whether each has its own file, whether a database may be there, and whether those that
  // are written at the end can be. Errors: invalid_input naming both options; io and disk_full naming the option and
  // the file; those of check_kept_database().
  Result<void> check() const;

 private:
  enum class Use : std::uint8_t { read, written };
  struct Entry {
    std::string option, path;
    Use use = Use::read;
    bool is_named = true;  // by the option itself, and not one of those beside that
    std::string renewed_by;
    std::function<bool(const std::string& name)> has;  // empty: one name alone
    bool by_descriptor = false;
    std::optional<FileNumber> file, folder;  // nullopt: it is not there
    std::string place, name;                 // with links followed

    std::string shown() const;
  };

  void add_at_the_end(std::string option, const std::string& path, OutputFile::Readers readers);
  Entry& add(std::string option, const std::string& path, Use use);
  void add_beside(const std::string& option, const std::string& path, const std::string& file, Use use);
  void add_database(std::string option, const std::string& path, Use use);
  void find(Entry& entry) const;
  Result<void> check_mirrors() const;
  static bool are_same(const Entry& one, const Entry& other);
  static bool may_share(const Entry& one, const Entry& other);

  std::vector<Entry> entries_;
  std::vector<std::pair<std::string, std::string>> mirrors_;    // option, folder
  std::vector<std::pair<std::string, std::string>> databases_;  // option, file: those that are kept
  struct AtTheEnd {
    std::string option, file;
    OutputFile::Readers readers{};
  };
  std::vector<AtTheEnd> at_the_end_;
};

}  // namespace argiope
