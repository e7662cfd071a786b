// The names of an archive's files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"

namespace argiope {

class WarcNames {
 public:
  // "site", "site.warc.gz" or "site.warc", with or without a folder.
  explicit WarcNames(std::string_view path);

  bool is_packed() const noexcept { return is_packed_; }
  const std::string& folder() const noexcept { return folder_; }  // with its slash; empty: the current one
  std::string index() const { return folder_ + stem_ + ".cdxj"; }
  std::string single() const { return stem_ + suffix_; }
  // From 1 on.
  std::string numbered(std::uint32_t number) const;
  // 0: it is none of those.
  std::uint32_t number_of(std::string_view file) const noexcept;

  // The files that are there, the single one first, then by number. Errors: io.
  Result<std::vector<std::string>> there() const;

 private:
  std::string folder_;
  std::string stem_;
  std::string suffix_;
  bool is_packed_ = true;
};

}  // namespace argiope
