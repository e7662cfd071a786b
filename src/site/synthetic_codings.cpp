#include "site/synthetic_codings.hpp"

#include <brotli/encode.h>
#include <zlib.h>
#include <zstd.h>

#include <new>
#include <stdexcept>

#include "web/text/internal/http_field.hpp"

namespace argiope {
namespace {

constexpr int kGzipLevel = 1;
constexpr int kBrotliQuality = 1;
constexpr int kZstdLevel = 1;
constexpr int kGzipWindow = 15 + 16;  // zlib's way to say: with a gzip header

const std::uint8_t* bytes_of(std::string_view text) noexcept {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

// "q=0", "q=0.0" …
bool is_zero_weight(std::string_view parameter) noexcept {
  return (parameter.starts_with("q=0") || parameter.starts_with("Q=0")) &&
         parameter.find_first_not_of("0.", 3) == std::string_view::npos;
}

}  // namespace

std::string compress_gzip(std::string_view bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, kGzipLevel, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = const_cast<Bytef*>(bytes_of(bytes));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("gzip");
  return packed;
}

std::string compress_brotli(std::string_view bytes) {
  std::size_t size = BrotliEncoderMaxCompressedSize(bytes.size());
  std::string packed(size, '\0');
  if (!BrotliEncoderCompress(kBrotliQuality, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_TEXT, bytes.size(), bytes_of(bytes),
                             &size, reinterpret_cast<std::uint8_t*>(packed.data()))) {
    throw std::runtime_error("brotli");
  }
  packed.resize(size);
  return packed;
}

std::string compress_zstd(std::string_view bytes) {
  std::string packed(ZSTD_compressBound(bytes.size()), '\0');
  const std::size_t size = ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), kZstdLevel);
  if (ZSTD_isError(size) != 0) throw std::runtime_error(ZSTD_getErrorName(size));
  packed.resize(size);
  return packed;
}

bool accepts_coding(std::string_view accept_encoding, std::string_view coding) noexcept {
  while (!accept_encoding.empty()) {
    const std::size_t comma = accept_encoding.find(',');
    const std::string_view item = accept_encoding.substr(0, comma);
    accept_encoding.remove_prefix(comma == std::string_view::npos ? accept_encoding.size() : comma + 1);
    const std::size_t semicolon = item.find(';');
    if (trim_blanks(item.substr(0, semicolon)) != coding) continue;
    return semicolon == std::string_view::npos || !is_zero_weight(trim_blanks(item.substr(semicolon + 1)));
  }
  return false;
}

}  // namespace argiope
