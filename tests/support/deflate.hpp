// Packing by zlib, for tests of what unpacks.
#pragma once

#include <zlib.h>

#include <string>
#include <string_view>

namespace argiope {

// window_bits as zlib's: 15 for its own format, -15 for bare deflate, 31 for gzip.
inline std::string deflated(std::string_view text, int window_bits) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

inline std::string gzip(std::string_view text) { return deflated(text, 31); }

}  // namespace argiope
