// Which file of a mirror each URL has. A pure function of the URLs and their types, in whatever order they were
// fetched: of those that would get one path, whatever the case of its letters, the shortest URL has it, and the others
// have a mark in theirs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "crawl/save/mirror_log.hpp"

namespace argiope {

// Memory: 32 bytes and the path for each file. Threads: reads from any.
class MirrorPlan {
 public:
  // `index` outlives it.
  explicit MirrorPlan(const MirrorIndex& index);
  MirrorPlan(const MirrorPlan&) = delete;

  struct File {
    std::uint64_t url = 0;    // its fingerprint
    std::uint64_t place = 0;  // of its record
    std::uint64_t path = 0;   // where it begins
    std::uint32_t path_size = 0;
  };
  // Ascending by URL.
  std::span<const File> files() const noexcept { return files_; }
  std::string_view path_of(const File& file) const noexcept {
    return std::string_view(paths_).substr(file.path, file.path_size);
  }
  // Null: it has none.
  const File* find(std::uint64_t url) const noexcept;
  // Equal for plans that lead links to the same places.
  std::uint64_t digest() const noexcept { return digest_; }

 private:
  struct Name {
    std::uint64_t folded = 0;  // fingerprint of the path, whatever the case
    std::uint32_t file = 0;
  };
  void name_all();
  void settle(std::span<Name> rivals, bool is_folder);
  std::string free_path(const File& file) const;
  std::string_view url_of(const File& file) const noexcept { return index_.at(file.place).url; }
  std::uint64_t digest_of_all() const;

  const MirrorIndex& index_;
  std::vector<File> files_;
  std::string paths_;
  std::vector<Name> names_;  // by `folded`; while it is made
  FingerprintSet taken_;     // by files that have a mark, and by folders; while it is made
  std::uint64_t digest_ = 0;
};

}  // namespace argiope
