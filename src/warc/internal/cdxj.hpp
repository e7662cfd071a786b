// CDXJ: the index of WARC files that pywb and its kin read. A line for each capture, in the order of bytes:
//
//   com,example)/ 20240101000000 {"url": "http://example.com/", "mime": "text/html", "status": "200", "digest":
//   "G7HR…",
//                                 "length": "1242", "offset": "784", "filename": "example.warc.gz"}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"

namespace argiope {

struct CdxjLine {
  std::string timestamp;  // "20240101000000", in UTC
  std::string url;
  std::string mime;    // "warc/revisit" of a revisit
  int status = 0;      // 0: none
  std::string digest;  // in base32, without "sha1:"; of another kind with its name; empty: none
  std::uint64_t length = 0;
  std::uint64_t offset = 0;
  std::string filename;
  std::string method = {};  // of the request, where it is not GET; others write it of POST
};

inline constexpr std::string_view kRevisitMime = "warc/revisit";

// "20240101000000".
std::string cdx_timestamp(WallTime time);
// Of a WARC-Date, in all the precisions of W3C's profile of ISO 8601, or as an index has it; empty when it is none.
std::string cdx_timestamp(std::string_view warc_date);

// Appends the line, with its key and its end.
void append_cdxj(std::string& out, const CdxjLine& line);
// nullopt: it is none. Numbers may be written as numbers too.
std::optional<CdxjLine> parse_cdxj(std::string_view line);

// Puts the lines of a file in the order of their bytes, as LC_ALL=C sort does. The file is replaced at once, by one
// that is on the disk, or stays as it is. A file that does not fit into `memory` bytes is sorted in parts beside the
// file.
// Errors: io, disk_full.
Result<void> sort_lines(const std::string& path, std::size_t memory = 64 * 1024 * 1024);

}  // namespace argiope
