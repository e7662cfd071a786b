// A WARC file of any program: gzip members or plain records, heads, HTTP in blocks. The first byte says whether the
// rest is the file, or what is packed into one.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/require.hpp"
#include "warc/internal/gzip_packer.hpp"
#include "warc/internal/warc_capture.hpp"
#include "warc/internal/warc_exchange.hpp"
#include "warc/internal/warc_reader.hpp"

using namespace argiope;

namespace {

constexpr WarcReaderLimits kLimits{.head_bytes = 4096, .block_bytes = 1000, .record_bytes = 1024 * 1024};

// As others write it, no file ends reading, and each record is behind the one before.
void read_leniently(std::string_view file) {
  WarcReaderLimits limits = kLimits;
  limits.is_lenient = true;
  WarcReader reader(warc_bytes_of(file), "f", limits);
  WarcRecord record;
  for (std::uint64_t behind = 0;;) {
    const auto found = reader.next(record);
    if (found && !*found) return require(reader.position() <= file.size());
    if (found) {
      require(record.offset >= behind && record.size > 0 && record.offset + record.size <= file.size());
      behind = record.offset + record.size;
      (void)capture_of(record, "f");
      const HttpParts parts = http_parts(record.block);
      require(parts.head.size() + parts.payload.size() <= record.block.size());
      continue;
    }
    const auto next = reader.next_behind();
    require(next.has_value());
    if (!*next) return;
    require(**next > reader.position());
    reader.seek(**next);
  }
}

// What an archive would make of a head that came.
void archive(std::string_view head) {
  std::string archived, again;
  append_archived_head(archived, head, "gzip");
  append_archived_head(again, archived, "gzip");
  require(again == archived);  // there is no transfer coding any more
  std::string request;
  append_archived_request(request, head);
}

void read(std::string_view file) {
  read_leniently(file);
  WarcReader reader(warc_bytes_of(file), "f", kLimits), other(warc_bytes_of(file), "f", kLimits);
  WarcRecord record, again;
  std::uint64_t end = 0;
  for (;;) {
    const auto found = reader.next(record);
    if (!found) {
      require(reader.position() == end && !found.error().message.empty());
      (void)reader.next_behind();
      return;
    }
    if (!*found) return require(end == file.size());
    require(record.offset == end && record.size > 0);
    end = reader.position();
    require(end == record.offset + record.size && end <= file.size());
    require(record.block.size() <= kLimits.block_bytes && record.block.size() <= record.head.content_length());
    // From its place alone it is the same.
    other.seek(record.offset);
    const auto second = other.next(again);
    require(second && *second && again.block == record.block && again.size == record.size);
    require(other.head_at(record.offset).has_value());
    if (const auto line = capture_of(record, "f")) {
      std::string text;
      append_cdxj(text, *line);
      require(text.ends_with('\n') && text.find('\n') == text.size() - 1);
    }
    archive(record.block.substr(0, http_head_size(record.block).value_or(0)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    read(bytes);
  } else {
    static GzipPacker packer;
    std::string packed;
    packer.append_member(packed, {bytes});
    read(packed);
  }
  return 0;
}
