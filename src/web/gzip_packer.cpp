// By ISA-L. On real pages its level 1 packs 700 MB/s where zlib's packs 195, and smaller (docs/decisions.md).
#include "web/internal/gzip_packer.hpp"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>

namespace argiope {
namespace {

constexpr std::uint32_t kPackLevel = 1;
// What is packed in one step. The output grows by a step's worth at a time.
constexpr std::size_t kPackedAtOnce = 256 * 1024;
constexpr std::size_t kRoomAtLeast = 4096;

}  // namespace

struct GzipPacker::State {
  isal_zstream stream{};
  std::array<std::uint8_t, ISAL_DEF_LVL1_DEFAULT> level_buffer;

  void begin() {
    isal_deflate_init(&stream);
    stream.level = kPackLevel;
    stream.level_buf = level_buffer.data();
    stream.level_buf_size = static_cast<std::uint32_t>(level_buffer.size());
    stream.gzip_flag = IGZIP_GZIP;
    stream.flush = NO_FLUSH;
    stream.end_of_stream = 0;
  }

  // Packs what `stream` has been given, until it wants no more room.
  void run(std::string& out) {
    do {
      const std::size_t before = out.size();
      out.resize(before + std::max<std::size_t>(kRoomAtLeast, stream.avail_in / 2));
      stream.next_out = reinterpret_cast<std::uint8_t*>(out.data()) + before;
      stream.avail_out = static_cast<std::uint32_t>(out.size() - before);
      if (isal_deflate(&stream) != COMP_OK) throw std::runtime_error("gzip: the packer has failed");
      out.resize(out.size() - stream.avail_out);
    } while (stream.avail_out == 0 || stream.avail_in > 0);
  }
};

GzipPacker::GzipPacker() : state_(std::make_unique<State>()) {}
GzipPacker::~GzipPacker() = default;

void GzipPacker::append_member(std::string& out, std::initializer_list<std::string_view> parts) {
  isal_zstream& stream = state_->stream;
  state_->begin();
  for (std::string_view part : parts) {
    while (!part.empty()) {
      const std::string_view piece = part.substr(0, kPackedAtOnce);
      part.remove_prefix(piece.size());
      stream.next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(piece.data()));
      stream.avail_in = static_cast<std::uint32_t>(piece.size());
      state_->run(out);
    }
  }
  stream.end_of_stream = 1;
  stream.avail_in = 0;
  state_->run(out);
}

}  // namespace argiope
