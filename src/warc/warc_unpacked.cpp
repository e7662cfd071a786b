#include "warc/warc_unpacked.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace argiope {
namespace {

constexpr std::size_t kMembersReadAtOnce = 128 * 1024;
constexpr std::size_t kWrittenAtOnce = 256 * 1024;
constexpr std::string_view kMemberMagic = "\x1f\x8b";
constexpr int kGzipWindow = 15 + 16;
constexpr std::string_view kFrameMagic = "\x28\xb5\x2f\xfd";
constexpr std::string_view kDictionaryMagic = "\x5d\x2a\x4d\x18";
constexpr std::size_t kFrameMagicBytes = 4;
constexpr std::size_t kDictionaryHeadBytes = 8;  // the magic number and the length
constexpr std::size_t kMostDictionaryBytes = 64 * 1024 * 1024;
constexpr int kMostWindowLog = 27;  // 128 MB, which is zstd's own bound

std::unexpected<Error> not_unpacked(std::string_view what) {
  const Errc code = errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? Errc::disk_full : Errc::io;
  return fail(code, fmt::format("a temporary file for an archive that is packed as a whole {}: {}", what,
                                std::strerror(errno)));
}

struct Inflater {
  Inflater() {
    if (inflateInit2(&stream, kGzipWindow) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  z_stream stream{};
};

}  // namespace

Result<WarcUnpacked> WarcUnpacked::open() {
  std::error_code error;
  std::string name = std::filesystem::temp_directory_path(error) / "argiope-unpacked-XXXXXX";
  const int descriptor = error ? -1 : ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0) return not_unpacked("cannot be made");
  ::unlink(name.c_str());
  return WarcUnpacked(descriptor, warc_bytes_of(descriptor, name));
}

// Takes a frame's bytes as they come, and says how far it got.
class WarcUnpacked::ZstdFrames {
 public:
  ZstdFrames() : context_(ZSTD_createDCtx()) {
    if (context_ == nullptr) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMostWindowLog);
  }
  // A frame of its own before the others: a dictionary, which may be packed itself. False: it cannot be used.
  bool take_dictionary(std::string_view dictionary) {
    std::string unpacked;
    if (dictionary.starts_with(kFrameMagic)) {
      const auto size = ZSTD_getFrameContentSize(dictionary.data(), dictionary.size());
      if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > kMostDictionaryBytes)
        return false;
      unpacked.resize(static_cast<std::size_t>(size));
      const std::size_t got = ZSTD_decompress(unpacked.data(), unpacked.size(), dictionary.data(), dictionary.size());
      if (ZSTD_isError(got)) return false;
      dictionary = unpacked;
    }
    return !ZSTD_isError(ZSTD_DCtx_loadDictionary(context_.get(), dictionary.data(), dictionary.size()));
  }
  // 0: the frame ends there. An error as ZSTD_isError() knows it.
  std::size_t unpack(ZSTD_inBuffer& in, ZSTD_outBuffer& out) {
    return ZSTD_decompressStream(context_.get(), &out, &in);
  }

 private:
  struct Deleter {
    void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, Deleter> context_;
};

Result<WarcUnpacked::Stretch> WarcUnpacked::append_zstd(const WarcBytes& packed, std::uint64_t offset) {
  Stretch stretch{.begin = size_, .read_to = offset};
  ZstdFrames frames;
  std::vector<char> in(kMembersReadAtOnce), out(kWrittenAtOnce);
  std::array<char, kDictionaryHeadBytes> head;
  if (const auto count = packed(offset, head.data(), head.size()); !count) {
    return std::unexpected(count.error());
  } else if (*count == head.size() && std::string_view(head.data(), kFrameMagicBytes) == kDictionaryMagic) {
    std::size_t size = 0;
    for (std::size_t i = head.size(); i > kFrameMagicBytes; --i)
      size = size << 8 | static_cast<unsigned char>(head[i - 1]);
    if (size > kMostDictionaryBytes) return stretch;
    std::string dictionary(size, '\0');
    const auto read = packed(offset + head.size(), dictionary.data(), size);
    if (!read) return std::unexpected(read.error());
    if (*read < size || !frames.take_dictionary(dictionary)) return stretch;
    offset += head.size() + size;
  }
  for (bool is_between = true;;) {
    const auto count = packed(offset, in.data(), in.size());
    if (!count) return std::unexpected(count.error());
    const std::string_view ready(in.data(), *count);
    if (ready.empty() || (is_between && !ready.starts_with(kFrameMagic))) return stretch;
    ZSTD_inBuffer input{ready.data(), ready.size(), 0};
    for (is_between = false; !is_between && (input.pos < input.size);) {
      ZSTD_outBuffer output{out.data(), out.size(), 0};
      const std::size_t left = frames.unpack(input, output);
      if (auto written = write(out.data(), output.pos); !written) return std::unexpected(std::move(written.error()));
      if (ZSTD_isError(left)) return stretch;
      is_between = left == 0;
    }
    offset += input.pos;
    stretch.read_to = offset;
  }
}

Result<WarcUnpacked::Stretch> WarcUnpacked::append(const WarcBytes& packed, std::uint64_t offset) {
  std::array<char, kFrameMagicBytes> magic;
  const auto begin = packed(offset, magic.data(), magic.size());
  if (!begin) return std::unexpected(begin.error());
  const std::string_view begins(magic.data(), *begin);
  if (begins == kFrameMagic || begins == kDictionaryMagic) return append_zstd(packed, offset);
  Stretch stretch{.begin = size_, .read_to = offset};
  Inflater inflater;
  std::vector<char> in(kMembersReadAtOnce), out(kWrittenAtOnce);
  z_stream& stream = inflater.stream;
  for (bool is_between = true;;) {
    const auto count = packed(offset, in.data(), in.size());
    if (!count) return std::unexpected(count.error());
    std::string_view ready(in.data(), *count);
    if (ready.empty() || (is_between && !ready.starts_with(kMemberMagic.substr(0, ready.size())))) return stretch;
    if (std::exchange(is_between, false)) inflateReset(&stream);
    stream.next_in = reinterpret_cast<Bytef*>(in.data());
    stream.avail_in = static_cast<uInt>(ready.size());
    int status = Z_OK;
    while (status == Z_OK && (stream.avail_in > 0 || stream.avail_out == 0)) {
      stream.next_out = reinterpret_cast<Bytef*>(out.data());
      stream.avail_out = static_cast<uInt>(out.size());
      status = inflate(&stream, Z_NO_FLUSH);
      if (auto written = write(out.data(), out.size() - stream.avail_out); !written)
        return std::unexpected(std::move(written.error()));
    }
    offset += ready.size() - stream.avail_in;
    stretch.read_to = offset;
    if (status != Z_OK && status != Z_BUF_ERROR && status != Z_STREAM_END) return stretch;
    is_between = status == Z_STREAM_END;
  }
}

Result<void> WarcUnpacked::write(const char* from, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::pwrite(descriptor_, from, size, static_cast<off_t>(size_));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return not_unpacked("cannot be written");
    from += count;
    size -= static_cast<std::size_t>(count);
    size_ += static_cast<std::uint64_t>(count);
  }
  return {};
}

}  // namespace argiope
