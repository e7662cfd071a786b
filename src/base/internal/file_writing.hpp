// Writing to files by their descriptors, and what is said when the system refuses: for archives and mirrors, whose
// bytes go to places that their writers know. And whether a file that is written for long is still the one that others
// find under its name.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"

namespace argiope {

// "FILE: cannot be DONE: …", by errno: disk_full where there is no room, else io.
std::unexpected<Error> file_trouble(std::string_view file, std::string_view done);

// All of `bytes` at `offset`. On an error some may be there.
// Errors: as file_trouble().
Result<void> write_all(int descriptor, std::string_view bytes, std::uint64_t offset, const std::string& file);

// That which holds the file; "." for a name alone.
std::string folder_holding(const std::string& path);
// A name lasts only when its folder is synced, too.
// Errors: as file_trouble(), of the folder; errno is set.
Result<void> sync_folder_of(const std::string& path);

// Which file it is, as long as it is there.
struct FileNumber {
  std::uint32_t device_major, device_minor;
  std::uint64_t number;
  bool operator==(const FileNumber&) const = default;
};
// nullopt: the system does not say; errno has why.
std::optional<FileNumber> file_number_of(const std::string& path) noexcept;
std::optional<FileNumber> file_number_of(int descriptor) noexcept;

// Which file it is, in a text that may be stored: the same after a restart of the machine, when devices have other
// numbers, and another for a file that was given the number of one that is gone. Empty: there is no such file.
std::string file_identity_of(const std::string& path);
std::string file_identity_of(int descriptor);

// Whether `path` still names the file that is open: what is written to one that was deleted or replaced is lost. To be
// asked before a commit says that it was written. And whether it still has the first `written` bytes: another program
// may cut it, as `: > FILE` does. After a write behind its new end that is no longer seen. More bytes are no mistake.
// Errors: io, "SHOWN: it was deleted while it was in use (…)", "… replaced by another file …" or "another program cut
// it …".
Result<void> expect_in_place(int descriptor, const std::string& path, std::string_view shown,
                             std::uint64_t written = 0);

}  // namespace argiope
