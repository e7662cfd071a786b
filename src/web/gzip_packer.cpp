// By ISA-L. On real pages its level 1 packs 700 MB/s where zlib's packs 195, and smaller (docs/decisions.md).
#include "web/internal/gzip_packer.hpp"

#include <isa-l/igzip_lib.h>

#include <array>
#include <cstdint>
#include <stdexcept>

namespace argiope {
namespace {

constexpr std::uint32_t kPackLevel = 1;
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

  void begin() {
    isal_deflate_init(&stream);
    stream.level = kPackLevel;
    stream.level_buf = level_buffer.data();
    stream.level_buf_size = static_cast<std::uint32_t>(level_buffer.size());
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
  state_->begin();
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
