// Opening an archive that is there: what is in its files and its index, and putting right what a death has left.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"
#include "warc/internal/warc_archive.hpp"
#include "warc/internal/warc_names.hpp"
#include "warc/payload_table.hpp"

namespace argiope {

struct OpenedArchive {
  // Those that are there, and those that the index knows: a file's place is its number in `payloads`.
  std::vector<std::string> files;
  PayloadTable payloads;
  std::vector<WarcRepair> repairs;
  std::uint64_t index_size = 0;
  std::size_t odd_lines = 0;  // that are still in the index
  bool is_new = false;        // no file of it was there
};

// `index`: the descriptor of the index, which is locked. Cuts off what is not whole at the end of the files that may be
// written on, and of the index, and puts into the index what it lacks.
// Errors: as WarcArchive::open().
Result<OpenedArchive> open_archive(const WarcNames& names, int index);

// Takes the lines of the file `name` out of the index at `path`, which is replaced; how many there were.
// Errors: io, disk_full; the index is as it was.
Result<std::size_t> forget_lines(const std::string& path, std::string_view name);

// The same for lines that are none.
Result<std::size_t> forget_odd_lines(const std::string& path);

// Says that the index was written after all records: a later opening trusts what it has. Errors: io.
Result<void> touch_index(int index, const std::string& path);

// write_all() at the end of a file. On an error what has been written of it is cut off again.
Result<void> write_at(int descriptor, std::string_view bytes, std::uint64_t offset, const std::string& file);

}  // namespace argiope
