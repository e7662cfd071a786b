// An archive that grows: WARC files, the index beside them, and what is known of the payloads in them.
//
//   site.warc.gz                       one file; or, with a largest size,
//   site-00001.warc.gz, site-00002 …   one after the other
//   site.cdxj                          the index of all of them
//
// Each record has the digest of its block, but for responses in packed files, which have their payload's alone.
//
// A record that was written whole stays whole: a process that is killed while it writes leaves at most the beginning of
// one behind the last, and opening the archive again cuts it off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/base/random.hpp"
#include "warc/internal/warc_exchange.hpp"

namespace argiope {

// The field of a warcinfo record that tells where a crawl began; once for each URL.
inline constexpr std::string_view kWarcSeedField = "argiope-seed";

struct WarcArchiveOptions {
  // "site", "site.warc.gz", or "site.warc" for files that are not packed.
  std::string path;
  // A file that has so many bytes is followed by another; 0: there is one file.
  std::uint64_t most_bytes = 0;
  // The fields of the warcinfo record that each run begins with.
  std::vector<std::pair<std::string, std::string>> info;
};

struct WarcTotals {
  std::uint64_t responses = 0;
  std::uint64_t revisits = 0;
  std::uint64_t bytes = 0;  // of all records of this run, packed
};

// The repairs of an archive when it was opened. Each with the file's name.
struct WarcRepair {
  std::string file;
  std::uint64_t cut_bytes = 0;  // of a record that was not whole
  std::size_t forgotten = 0;    // lines of the index, whose file is gone and is begun anew
  std::size_t odd_lines = 0;    // of the index, before others that are whole: what they were of is read from the files
};

// Threads: one at a time; sync() of what written_file() gives from any.
class WarcArchive {
 public:
  // Opens or makes it. An index that lacks records of the last file gets them; one that is not there is made. One that
  // has lines that are none before others, as a power cut leaves them, gets those of all files, and close() takes the
  // odd ones out. A file that was changed after its index is read whole before anything is added to it.
  // Errors: io, disk_full, busy (another process writes it), wrong_format (a file of that name is no WARC file, or no
  // index; nothing is changed), corrupt (a damaged record with others behind it).
  static Result<std::unique_ptr<WarcArchive>> open(WarcArchiveOptions options, const Clock& clock, Random random);
  ~WarcArchive();

  const std::vector<WarcRepair>& repairs() const noexcept;
  // Whether it had no files.
  bool is_new() const noexcept;
  WarcTotals totals() const noexcept;
  // Of the file that is being written.
  const std::string& file() const noexcept;

  // Adds a response, or a revisit when its payload is in the archive already, and its request. They may stay in memory
  // until write_out().
  // Errors: io, disk_full. A record that could not be written whole is cut off again, and nothing more can be added.
  Result<void> add(const WarcExchange& exchange);
  // Gives all that was added to the system: it survives this process.
  Result<void> write_out();

  // The file as given to the system so far, to be brought to the disk.
  class File;
  std::shared_ptr<File> written_file() const noexcept;
  // Errors: io, disk_full.
  static Result<void> sync(File& file);

  // write_out(), sync, and the index in order. Nothing may be added afterwards.
  Result<void> close();

 private:
  class Impl;
  explicit WarcArchive(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace argiope
