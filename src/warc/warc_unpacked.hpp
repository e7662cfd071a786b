// Archives that other programs have packed as one gzip member, or in blocks of their own, not record by record; and
// those that are packed by zstd. They are unpacked once, into a file nobody else sees.
#pragma once

#include <cstdint>
#include <utility>

#include "argiope/base/error.hpp"
#include "warc/internal/warc_reader.hpp"

namespace argiope {

// Memory:  a few buffers, however much is unpacked; the file is in the folder for temporary files, and goes with this.
// Threads: one at a time; what reads bytes(), any.
class WarcUnpacked {
 public:
  static Result<WarcUnpacked> open();

  struct Stretch {
    std::uint64_t begin = 0;    // in bytes()
    std::uint64_t read_to = 0;  // in the packed file: behind the last member that is whole, or where one is damaged
  };
  // Unpacks the members of gzip, or the frames of zstd, of `packed` from `offset` on, as far as they follow one another
  // undamaged. A dictionary is taken from the first frame, where archives have it (Webrecorder's and ArchiveTeam's
  // .warc.zst).
  // Errors: io, disk_full.
  Result<Stretch> append(const WarcBytes& packed, std::uint64_t offset);
  // Of all stretches.
  const WarcBytes& bytes() const noexcept { return bytes_; }

 private:
  WarcUnpacked(int descriptor, WarcBytes bytes) : descriptor_(descriptor), bytes_(std::move(bytes)) {}
  class ZstdFrames;
  Result<Stretch> append_zstd(const WarcBytes& packed, std::uint64_t offset);
  Result<void> write(const char* from, std::size_t size);

  int descriptor_;  // is open as long as `bytes_`
  WarcBytes bytes_;
  std::uint64_t size_ = 0;
};

}  // namespace argiope
