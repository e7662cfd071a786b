// The folder of a mirror by its descriptors: nothing is read or written outside of it, whatever names and links say.
// Its own files are in a folder of their own in there, which is also the mark by which a mirror is known.
//
//   DIR/host/path/name.html     a page or an asset, see file_names.hpp
//   DIR/.argiope-mirror/index   what was fetched, and the lock: see mirror_log.hpp
//                      /pages-1 pages and style sheets as they came
//                      /files/  what else came, each by its digest; its files in the mirror are links to it
//                      /placed  the paths of all files that the mirror has, or may have, in DIR
//                      /built   what of the index they were made of
//                      /seeds   where its crawls began
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/error.hpp"
#include "base/internal/file_writing.hpp"
#include "crawl/save/internal/mirror_place.hpp"

namespace argiope {

// An open file, closed with it. -1: none.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) noexcept : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor();
  int get() const noexcept { return value_; }
  explicit operator bool() const noexcept { return value_ >= 0; }

 private:
  int value_;
};

class MirrorFolder {
 public:
  // The name of the mirror's own folder.
  static constexpr std::string_view kOwn = kMirrorOwnFolder;
  // In it: what is no page and no style sheet.
  static constexpr std::string_view kBlobs = "files";

  // Opens the mirror at `path`, or makes one where there is nothing, or an empty folder; and locks it.
  // Errors: io, disk_full, busy (another process writes it), wrong_format (a folder with files that is no mirror, or no
  // folder).
  static Result<std::unique_ptr<MirrorFolder>> open(const std::string& path);

  const std::string& path() const noexcept { return path_; }
  // For messages: `name` with the folder in front.
  std::string name_of(std::string_view name) const;
  int root() const noexcept { return root_.get(); }
  int own() const noexcept { return own_.get(); }
  int blobs() const noexcept { return blobs_.get(); }
  // Open to be read and written, and locked.
  int index() const noexcept { return index_.get(); }

  // Whether there is nothing in it but the mirror's own folder.
  Result<bool> is_bare() const;
  // A small file of the mirror's own; nullopt: it is not there.
  Result<std::optional<std::string>> read_own(const std::string& name) const;
  // Whole or not at all.
  Result<void> write_own(const std::string& name, std::string_view bytes, bool sync) const;

 private:
  explicit MirrorFolder(std::string path) : path_(std::move(path)) {}
  Result<void> open_all();
  Result<std::string> first_other_name() const;
  Result<void> check_empty() const;
  void remove_leavings() const;

  const std::string path_;
  Descriptor root_, own_, blobs_, index_;
};

// Writes files of a mirror, each by another name first. Paths are relative, as file_path() makes them.
//
// Errors:  io, disk_full; wrong_format where a folder is a file, or a link that would lead elsewhere.
// Threads: one at a time; several of them beside each other, each with a number of its own.
class MirrorFiles {
 public:
  MirrorFiles(const MirrorFolder& folder, unsigned number);

  // Whether there is anything of that name.
  Result<bool> exists(std::string_view path);
  // Whether it is a file with just these bytes.
  Result<bool> holds(std::string_view path, std::string_view bytes);
  Result<void> write(std::string_view path, std::string_view bytes);
  // The file is a link to what is kept by that digest, or a copy where the file system knows no links. False: it was so
  // before.
  Result<bool> place_blob(std::string_view path, std::string_view digest);
  // The file, and the folders that are empty without it. A file that is not there is no error.
  Result<void> remove(std::string_view path);

 private:
  struct OpenFolder {
    std::string name;
    Descriptor descriptor;
  };
  // Of the file at `path`; -1: it is not there, and was not to be made.
  Result<int> folder_of(std::string_view path, bool make);
  std::size_t open_part(std::string_view path) const noexcept;
  int last_open() const noexcept { return open_.empty() ? folder_.root() : open_.back().descriptor.get(); }
  bool is_copy_of(int folder, const std::string& leaf, const std::string& digest) const;
  Result<void> copy_blob(const std::string& digest);

  const MirrorFolder& folder_;
  const std::string temporary_;
  // Down to the one that was asked for last; the upper ones of many are closed again.
  std::vector<OpenFolder> open_;
  std::string buffer_;
};

}  // namespace argiope
