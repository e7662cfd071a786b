// By ISA-L. On real pages its level 1 packs 700 MB/s where zlib's packs 195, and smaller (docs/decisions.md).
#include "warc/internal/gzip_packer.hpp"

#include <isa-l/igzip_lib.h>

#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string_view>

namespace argiope {
namespace {

constexpr std::uint32_t kPackLevel = 1;
// Less is packed by codes that are made once: to make some for it alone takes five times as long as packing it.
constexpr std::size_t kPackedByKnownCodes = 1024;
// Bytes as often as in what small records have: heads of a WARC record and of HTTP, with names and digests of all
// kinds.
constexpr std::string_view kUsualText =
    "WARC/1.1\r\nWARC-Type: request\r\nWARC-Record-ID: <urn:uuid:6a0f2ae6-8b36-4a77-9d1a-11d5d2b7d9ac>\r\n"
    "WARC-Date: 2026-11-24T15:01:02.123456Z\r\nWARC-Target-URI: "
    "https://www.example.org/en/library/container/vector-7_0.html?a=b\r\n"
    "WARC-IP-Address: 93.184.216.34\r\nWARC-Concurrent-To: <urn:uuid:91f7c8b1-0b36-4a77-9d1a-f1d5e2b7c9ab>\r\n"
    "Content-Type: application/http; msgtype=request\r\nWARC-Block-Digest: sha1:ABCDEFGHIJKLMNOPQRSTUVWXYZ234567\r\n"
    "Content-Length: 190\r\n\r\nGET /en/library/container/vector-7_0.html?a=b HTTP/1.1\r\nHost: www.example.org\r\n"
    "User-Agent: argiope/0.1\r\nAccept-Encoding: gzip, deflate, br, zstd\r\nAccept: text/html,*/*;q=0.8\r\n\r\n\r\n\r\n"
    "abcdefghijklmnopqrstuvwxyz0123456789-._~/%?=&:;,+ ABCDEFGHIJKLMNOPQRSTUVWXYZ";
// The packer is fast while it has room for much more than it writes.
constexpr std::size_t kPackedRoom = 256 * 1024;
// Joining small parts before they are packed takes less time than packing them one by one.
constexpr std::size_t kJoinedBytes = 256 * 1024;
constexpr std::size_t kPackedAtOnce = 1024 * 1024 * 1024;  // it counts with 32 bits

}  // namespace

struct GzipPacker::State {
  isal_zstream stream;
  std::array<std::uint8_t, ISAL_DEF_LVL1_DEFAULT> level_buffer;
  std::array<char, kPackedRoom> packed;
  std::string joined;
  isal_hufftables usual_codes;

  State() {
    const auto counts = std::make_unique<isal_huff_histogram>();
    isal_update_histogram(reinterpret_cast<std::uint8_t*>(const_cast<char*>(kUsualText.data())),
                          static_cast<int>(kUsualText.size()), counts.get());
    if (isal_create_hufftables(&usual_codes, counts.get()) != 0)
      throw std::runtime_error("gzip: the packer cannot be set up");
  }

  void begin(std::size_t size) {
    isal_deflate_init(&stream);
    if (size <= kPackedByKnownCodes) {
      stream.hufftables = &usual_codes;
      stream.level = 0;
    } else {
      stream.level = kPackLevel;
      stream.level_buf = level_buffer.data();
      stream.level_buf_size = static_cast<std::uint32_t>(level_buffer.size());
    }
    stream.gzip_flag = IGZIP_GZIP;
    stream.flush = NO_FLUSH;
  }

  void add(std::string_view bytes, bool is_last, std::string& out) {
    do {
      const std::string_view piece = bytes.substr(0, kPackedAtOnce);
      bytes.remove_prefix(piece.size());
      stream.next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(piece.data()));
      stream.avail_in = static_cast<std::uint32_t>(piece.size());
      stream.end_of_stream = is_last && bytes.empty();
      pack(out);
    } while (!bytes.empty());
  }

  // Until all input is taken. At the end of the stream all output is there then, too.
  void pack(std::string& out) {
    do {
      stream.next_out = reinterpret_cast<std::uint8_t*>(packed.data());
      stream.avail_out = static_cast<std::uint32_t>(packed.size());
      if (isal_deflate(&stream) != COMP_OK) throw std::runtime_error("gzip: the packer has failed");
      out.append(packed.data(), packed.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  }
};

GzipPacker::GzipPacker() : state_(std::make_unique<State>()) {}
GzipPacker::~GzipPacker() = default;

void GzipPacker::append_member(std::string& out, std::initializer_list<std::string_view> parts) {
  std::size_t size = 0;
  for (const std::string_view part : parts) size += part.size();
  state_->begin(size);
  std::string& joined = state_->joined;
  joined.clear();
  for (const std::string_view part : parts) {
    if (joined.size() + part.size() > kJoinedBytes) {
      state_->add(joined, false, out);
      joined.clear();
    }
    if (part.size() > kJoinedBytes) {
      state_->add(part, false, out);
    } else {
      joined += part;
    }
  }
  state_->add(joined, true, out);
}

}  // namespace argiope
