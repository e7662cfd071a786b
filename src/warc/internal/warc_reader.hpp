// Reads WARC files record by record, packed (each record a gzip member) or plain, from any place in them.
//
// Its input comes from outside: heads and blocks are bounded, and what is wrong is said with the byte of the file where
// the record begins. A file that ends within its last record is told apart from one that is damaged: the one was being
// written when its writer died, and what is before is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "warc/internal/warc_record.hpp"

namespace argiope {

struct WarcRecord {
  std::uint64_t offset = 0;  // of its first byte in the file
  std::uint64_t size = 0;    // how many bytes of the file it takes, packed as it is
  WarcHead head;
  std::string block;  // as much of it as WarcReaderLimits::block_bytes
  bool is_measured =
      false;  // its head did not say how long it is: it goes to the next record, or to the end of its gzip member
};

struct WarcReaderLimits {
  std::size_t head_bytes = 64 * 1024;
  std::size_t block_bytes = 64 * 1024;                  // that are kept; the rest is read and dropped
  std::uint64_t record_bytes = std::uint64_t{1} << 40;  // of a block, by its Content-Length
  // Reads what others write, too: any number of line ends behind a block, none among them, records in the middle of a
  // line, and those that do not say how long they are.
  // Nothing can be added to such a file: the writer takes only records that end as ours do.
  bool is_lenient = false;
};

// Where bytes of a file come from: fills `to` from `offset` on, and says how many there were; 0 at the end.
using WarcBytes = std::function<Result<std::size_t>(std::uint64_t offset, char* to, std::size_t most)>;
// Those of a file that stays open as long as what is returned. Errors: io, not_found.
Result<WarcBytes> open_warc_bytes(const std::string& path);
// Those of a descriptor, which is closed with the last copy of what is returned. `path` is for errors.
WarcBytes warc_bytes_of(int descriptor, const std::string& path);
// Those of a text, which must outlive it.
WarcBytes warc_bytes_of(std::string_view text);

// Threads: one at a time.
class WarcReader {
 public:
  // `name` of the file, for errors.
  WarcReader(WarcBytes bytes, std::string name, WarcReaderLimits limits = {});
  ~WarcReader();

  // The record at position(), whose memory is reused; false at the end of the file. Afterwards position() is behind it.
  // Errors: io; too_large; corrupt: position() is where the record begins that cannot be read, and ends_early() whether
  // the file ends within it.
  Result<bool> next(WarcRecord& record);
  // The head of the record at `offset`, without reading on to its end. Errors: as next(), the end of the file among
  // them.
  Result<WarcHead> head_at(std::uint64_t offset);
  std::uint64_t position() const noexcept;
  void seek(std::uint64_t offset) noexcept;
  bool ends_early() const noexcept;
  // Of one that is lenient: whether the record, whose head and block are there as far as its gzip member has them, is
  // not alone in that member, or goes on in the next, or the file is packed by zstd. WarcUnpacked has what is packed
  // so.
  bool is_packed_together() const noexcept;
  // Whether what could be read of that record begins as one does.
  bool has_begun() const noexcept;
  // Where the next record begins behind position(), at the first byte of something that looks like one; nullopt:
  // nowhere.
  // Errors: io.
  Result<std::optional<std::uint64_t>> next_behind();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace argiope
