#include "warc/warc_unpacked.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
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

std::unexpected<Error> not_unpacked(std::string_view what) {
  const Errc code = errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? Errc::disk_full : Errc::io;
  return fail(code, fmt::format("a temporary file for an archive that is packed as a whole {}: {}", what, std::strerror(errno)));
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

Result<WarcUnpacked::Stretch> WarcUnpacked::append(const WarcBytes& packed, std::uint64_t offset) {
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
      if (auto written = write(out.data(), out.size() - stream.avail_out); !written) return std::unexpected(std::move(written.error()));
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
