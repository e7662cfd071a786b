// The null device: empty whenever it is read, and all that is written into it is gone. People name it where nothing is
// to be kept.
#pragma once

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <string>

namespace argiope {

inline bool is_null_device(const struct ::stat& status) noexcept {
  return S_ISCHR(status.st_mode) && status.st_rdev == ::makedev(1, 3);
}

// A link is followed. False also where nothing of that name is there.
inline bool is_null_device(const std::string& path) noexcept {
  struct ::stat status {};
  return ::stat(path.c_str(), &status) == 0 && is_null_device(status);
}

}  // namespace argiope
