#include "warc/internal/warc_reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/internal/file_reading.hpp"
#include "base/internal/printable.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::size_t kWarcReadAtOnce = 128 * 1024;
constexpr std::size_t kUnpackedAtOnce = 64 * 1024;
constexpr std::size_t kUnpackedOfHead = 1024;  // where nothing is wanted but the head
constexpr std::size_t kFirstSearched = 4096;
constexpr std::string_view kLineEnds = "\r\n";
constexpr std::string_view kGzipMagic = "\x1f\x8b\x08";
constexpr std::string_view kWarcMagic = "WARC/";
constexpr std::string_view kOtherWarcMagic = "warc/";  // of early writers
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";
constexpr std::string_view kZstdDictionaryMagic = "\x5d\x2a\x4d\x18";
constexpr int kGzipOnly = 15 + 16;  // zlib's way to say: gzip, with its largest window

// How reading a record ended, but for I/O.
enum class RecordEnding : std::uint8_t { whole, early, damaged };

// A descriptor that is read at places.
class WarcDescriptor {
 public:
  explicit WarcDescriptor(int descriptor) noexcept : descriptor_(descriptor) {}
  ~WarcDescriptor() { ::close(descriptor_); }
  WarcDescriptor(const WarcDescriptor&) = delete;
  int descriptor() const noexcept { return descriptor_; }

 private:
  const int descriptor_;
};

}  // namespace

Result<WarcBytes> open_warc_bytes(const std::string& path) {
  if (const auto good = expect_readable_file(path, FileReading::again); !good) {
    return fail(good.error().code, fmt::format("{}: cannot be opened: {}", path, good.error().message));
  }
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    const Errc code = errno == ENOENT ? Errc::not_found : Errc::io;
    return fail(code, fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  }
  return warc_bytes_of(descriptor, path);
}

WarcBytes warc_bytes_of(int descriptor, const std::string& path) {
  auto file = std::make_shared<WarcDescriptor>(descriptor);
  return [file, path](std::uint64_t offset, char* to, std::size_t most) -> Result<std::size_t> {
    for (;;) {
      const ssize_t count = ::pread(file->descriptor(), to, most, static_cast<off_t>(offset));
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno != EINTR) return fail(Errc::io, fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
    }
  };
}

WarcBytes warc_bytes_of(std::string_view text) {
  return [text](std::uint64_t offset, char* to, std::size_t most) -> Result<std::size_t> {
    if (offset >= text.size()) return 0;
    return text.copy(to, most, static_cast<std::size_t>(offset));
  };
}

class WarcReader::Impl {
 public:
  Impl(WarcBytes bytes, std::string name, const WarcReaderLimits& limits)
      : bytes_(std::move(bytes)), name_(std::move(name)), limits_(limits) {
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~Impl() { inflateEnd(&stream_); }

  Result<WarcHead> head_at(std::uint64_t offset) {
    position_ = offset;
    only_head_ = true;
    WarcRecord record;
    const auto read = next(record);
    only_head_ = false;
    position_ = offset;
    if (!read) return std::unexpected(read.error());
    if (!*read) return fail(Errc::corrupt, fmt::format("{}: byte {}: the file ends before this record", name_, offset));
    return std::move(record.head);
  }

  Result<bool> next(WarcRecord& record) {
    ends_early_ = packed_together_ = false;
    measured_.reset();
    begin(record);
    if (auto filled = limits_.is_lenient ? skip_line_ends() : fill(); !filled) {
      return std::unexpected(std::move(filled.error()));
    }
    if (ready().empty()) return false;
    packed_together_ = limits_.is_lenient && begins_zstd(ready());
    if (packed_together_)
      return fail(Errc::corrupt, fmt::format("{}: byte {}: it is packed by zstd", name_, position_));
    const bool is_packed = ready().front() == kGzipMagic.front();
    auto ending = is_packed ? read_packed(record) : read_plain(record);
    if (ending && *ending == RecordEnding::damaged && lacks_length_) ending = read_measured(record, is_packed);
    if (!ending) return std::unexpected(std::move(ending.error()));
    if (*ending != RecordEnding::whole) {
      ends_early_ = *ending == RecordEnding::early;
      const std::string what = ends_early_ ? "the file ends within this record" : why_;
      return fail(too_large_ ? Errc::too_large : Errc::corrupt, fmt::format("{}: byte {}: {}", name_, position_, what));
    }
    record.offset = position_;
    record.size = read_to_ - position_;
    position_ = read_to_;
    return true;
  }

  Result<std::optional<std::uint64_t>> next_behind() {
    std::string seen;
    // Most odd places are short. Two stretches overlap, so that no beginning is cut in two.
    std::size_t stretch = kFirstSearched;
    for (std::uint64_t at = position_ + 1;; at += stretch, stretch = std::min(2 * stretch, kWarcReadAtOnce)) {
      seen.resize(stretch + 64);
      const auto count = bytes_(at, seen.data(), seen.size());
      if (!count) return std::unexpected(count.error());
      if (*count == 0) return std::nullopt;
      const std::string_view text = std::string_view(seen).substr(0, *count);
      for (std::size_t found = next_magic(text, 0); found < stretch; found = next_magic(text, found + 1)) {
        const bool is_in_line = text[found] != kGzipMagic.front() && found > 0 && text[found - 1] != '\n';
        if (is_in_line && !limits_.is_lenient) continue;
        const auto begins = begins_record(at + found);
        if (!begins) return std::unexpected(begins.error());
        if (*begins) return at + found;
      }
    }
  }

  std::uint64_t position() const noexcept { return position_; }
  void seek(std::uint64_t offset) noexcept { position_ = offset; }
  bool ends_early() const noexcept { return ends_early_; }
  bool is_packed_together() const noexcept { return packed_together_; }
  bool has_begun() const noexcept { return head_.size() >= kWarcMagic.size() && is_begun(); }

 private:
  // --- the file

  // The bytes that were read of it and are not used yet, from `read_to_` on.
  std::string_view ready() const noexcept { return {input_.data() + used_, filled_ - used_}; }
  void use(std::size_t count) noexcept {
    used_ += count;
    read_to_ += count;
  }
  // Reads on when nothing is ready.
  Result<void> fill() {
    if (used_ < filled_) return {};
    const auto count = bytes_(read_to_, input_.data(), input_.size());
    if (!count) return std::unexpected(count.error());
    used_ = 0;
    filled_ = *count;
    return {};
  }
  // Until something else is ready, or the file is over.
  Result<void> skip_line_ends() {
    for (;;) {
      if (auto filled = fill(); !filled) return filled;
      const std::size_t count = std::min(ready().find_first_not_of(kLineEnds), ready().size());
      use(count);
      position_ = read_to_;
      if (count == 0) return {};
    }
  }

  // --- a record

  void begin(WarcRecord& record) {
    record.block.clear();
    record.is_measured = false;
    lacks_length_ = false;
    head_.clear();
    block_left_ = kNoHead;
    end_left_ = limits_.is_lenient ? std::string_view{} : kRecordEnd;
    why_.clear();
    too_large_ = false;
    // The bytes read on beyond the last record are still there.
    if (position_ != read_to_ || filled_ == 0) {
      used_ = filled_ = 0;
      read_to_ = position_;
    }
  }

  RecordEnding damaged(std::string why) {
    why_ = std::move(why);
    return RecordEnding::damaged;
  }

  // Reads a record again that does not say how long it is.
  Result<RecordEnding> read_measured(WarcRecord& record, bool is_packed) {
    measured_ = kToTheEnd;
    if (!is_packed) {
      const auto next = next_behind();
      if (!next) return std::unexpected(next.error());
      if (*next) measured_ = **next - position_ - head_.size();
    }
    begin(record);
    if (auto filled = fill(); !filled) return std::unexpected(std::move(filled.error()));
    const auto ending = is_packed ? read_packed(record) : read_plain(record);
    if (!ending || *ending != RecordEnding::whole || only_head_) return ending;
    // The line ends behind it are no part of it.
    record.is_measured = true;
    const bool is_kept = record.block.size() == taken_;
    for (int ends = 2; is_kept && ends > 0 && record.block.ends_with('\n'); --ends) {
      record.block.pop_back();
      if (record.block.ends_with('\r')) record.block.pop_back();
    }
    record.head.set_content_length(is_kept ? record.block.size() : taken_);
    return ending;
  }
  bool goes_to_the_end() const noexcept { return measured_ == kToTheEnd && block_left_ != kNoHead; }

  Result<RecordEnding> read_packed(WarcRecord& record) {
    inflateReset(&stream_);
    for (int status = Z_OK; status != Z_STREAM_END;) {
      if (auto filled = fill(); !filled) return std::unexpected(std::move(filled.error()));
      const std::string_view input = ready();
      if (input.empty()) return RecordEnding::early;
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
      stream_.avail_in = static_cast<uInt>(input.size());
      do {
        stream_.next_out = reinterpret_cast<Bytef*>(unpacked_.data());
        const std::size_t room = only_head_ ? kUnpackedOfHead : unpacked_.size();
        stream_.avail_out = static_cast<uInt>(room);
        status = inflate(&stream_, Z_NO_FLUSH);
        if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) return damaged(why_not_unpacked());
        std::string_view unpacked(unpacked_.data(), room - stream_.avail_out);
        if (!take(unpacked, record)) return RecordEnding::damaged;
        if (has_what_is_wanted()) return RecordEnding::whole;
        if (limits_.is_lenient)
          unpacked.remove_prefix(std::min(unpacked.find_first_not_of(kLineEnds), unpacked.size()));
        packed_together_ = !unpacked.empty();
        if (packed_together_) return damaged("more than one record is packed into one gzip member");
      } while (stream_.avail_out == 0 && status == Z_OK);
      use(input.size() - stream_.avail_in);
    }
    if (is_whole() || goes_to_the_end()) return RecordEnding::whole;
    if (limits_.is_lenient) {
      const auto goes_on = next_member_goes_on();
      if (!goes_on) return std::unexpected(goes_on.error());
      packed_together_ = *goes_on;
    }
    return damaged(block_left_ == kNoHead ? "a gzip member without a whole record head"
                                          : "its gzip member is shorter than the record");
  }

  // Whether a gzip member follows that is no record of its own.
  Result<bool> next_member_goes_on() {
    if (auto filled = fill(); !filled) return std::unexpected(std::move(filled.error()));
    if (!has_begun() || !ready().starts_with(kGzipMagic.front())) return false;
    const auto begins = begins_record(read_to_);
    if (!begins) return std::unexpected(begins.error());
    return !*begins;
  }

  std::string why_not_unpacked() const {
    return fmt::format("its gzip member is damaged{}{}", stream_.msg != nullptr ? ": " : "",
                       stream_.msg != nullptr ? stream_.msg : "");
  }

  Result<RecordEnding> read_plain(WarcRecord& record) {
    while (!is_whole()) {
      if (auto filled = fill(); !filled) return std::unexpected(std::move(filled.error()));
      std::string_view input = ready();
      if (input.empty() && goes_to_the_end()) return RecordEnding::whole;
      if (input.empty()) return is_begun() ? RecordEnding::early : damaged("no record begins here");
      const std::size_t size = input.size();
      if (!take(input, record)) return RecordEnding::damaged;
      if (has_what_is_wanted()) return RecordEnding::whole;
      use(size - input.size());
    }
    return limits_.is_lenient ? ending_by_what_follows() : RecordEnding::whole;
  }

  bool is_whole() const noexcept { return block_left_ == 0 && end_left_.empty(); }

  // Behind a block come line ends, and a record or the end of the file. Where there is anything else, and a record
  // begins within the block, the block's length is wrong.
  Result<RecordEnding> ending_by_what_follows() {
    std::array<char, 64> seen;
    const auto count = bytes_(read_to_, seen.data(), seen.size());
    if (!count) return std::unexpected(count.error());
    std::string_view behind(seen.data(), *count);
    behind.remove_prefix(std::min(behind.find_first_not_of(kLineEnds), behind.size()));
    if (may_begin(behind) || kGzipMagic.starts_with(behind.substr(0, kGzipMagic.size()))) return RecordEnding::whole;
    const auto next = next_behind();
    if (!next) return std::unexpected(next.error());
    if (!*next || **next >= read_to_) return RecordEnding::whole;
    return damaged("its Content-Length reaches into the next record");
  }

  bool has_what_is_wanted() const noexcept { return only_head_ && block_left_ != kNoHead; }

  // Whether what there is of it may be the beginning of one.
  bool is_begun() const noexcept { return may_begin(head_); }
  static bool may_begin(std::string_view text) noexcept {
    const std::string_view front = text.substr(0, kWarcMagic.size());
    return equals_ignoring_case(front, kWarcMagic.substr(0, front.size()));
  }

  // Takes what belongs to the record off the front of `bytes`. False when it is none; `why_` says why.
  bool take(std::string_view& bytes, WarcRecord& record) {
    if (block_left_ == kNoHead && !take_head(bytes, record)) return false;
    if (block_left_ == kNoHead || only_head_) return true;
    const auto of_block = static_cast<std::size_t>(std::min<std::uint64_t>(block_left_, bytes.size()));
    const std::size_t room = limits_.block_bytes - record.block.size();
    record.block.append(bytes.substr(0, std::min(room, of_block)));
    block_left_ -= of_block;
    taken_ += of_block;
    bytes.remove_prefix(of_block);
    while (block_left_ == 0 && !end_left_.empty() && !bytes.empty()) {
      if (bytes.front() != end_left_.front()) {
        why_ = "no two line ends behind the block: it is longer or shorter than its Content-Length";
        return false;
      }
      bytes.remove_prefix(1);
      end_left_.remove_prefix(1);
    }
    return true;
  }

  bool take_head(std::string_view& bytes, WarcRecord& record) {
    const std::size_t before = head_.size();
    head_.append(bytes.substr(0, limits_.head_bytes + 1 - std::min(before, limits_.head_bytes)));
    if (!is_begun()) {
      why_ = "no record begins here";
      return false;
    }
    // The blank line may be cut in two.
    const std::size_t from = before < 3 ? 0 : before - 3;
    const auto size = http_head_size(std::string_view(head_).substr(from));
    if (!size && head_.size() > limits_.head_bytes) {
      why_ = fmt::format("a head of more than {} bytes", limits_.head_bytes);
      too_large_ = true;
      return false;
    }
    if (!size) {
      bytes = {};
      return true;
    }
    bytes.remove_prefix(from + *size - before);
    head_.resize(from + *size);
    auto head = WarcHead::parse(head_, limits_.is_lenient);
    if (!head) why_ = std::move(head.error().message);
    lacks_length_ = head && !head->has_length() && !measured_ && !only_head_;
    if (lacks_length_) {
      why_ = "a record that does not say how long it is";
      return false;
    }
    if (head && measured_) head->set_content_length(*measured_);
    if (head && measured_ != kToTheEnd && head->content_length() > limits_.record_bytes) {
      why_ = fmt::format("a block of {} bytes; at most {}", head->content_length(), limits_.record_bytes);
      too_large_ = true;
    }
    if (!why_.empty()) return false;
    record.head = std::move(*head);
    block_left_ = record.head.content_length();
    taken_ = 0;
    record.block.reserve(
        static_cast<std::size_t>(std::min<std::uint64_t>(block_left_, std::min(limits_.block_bytes, kUnpackedAtOnce))));
    return true;
  }

  static std::size_t next_magic(std::string_view text, std::size_t from) noexcept {
    return std::min({text.find(kGzipMagic, from), text.find(kWarcMagic, from), text.find(kOtherWarcMagic, from)});
  }

  static bool begins_zstd(std::string_view text) noexcept {
    return text.starts_with(kZstdMagic) || text.starts_with(kZstdDictionaryMagic);
  }

  // Whether there, where a magic number stands, the head of a record does.
  Result<bool> begins_record(std::uint64_t offset) {
    const WarcReaderLimits limits{.head_bytes = limits_.head_bytes,
                                  .block_bytes = 0,
                                  .record_bytes = limits_.record_bytes,
                                  .is_lenient = limits_.is_lenient};
    const auto head = WarcReader(bytes_, name_, limits).head_at(offset);
    if (!head && head.error().code == Errc::io) return std::unexpected(head.error());
    return head.has_value();
  }

  static constexpr std::uint64_t kNoHead = ~std::uint64_t{0};  // it has not come whole
  static constexpr std::uint64_t kToTheEnd = kNoHead - 1;      // of the gzip member, or of the file

  const WarcBytes bytes_;
  const std::string name_;
  const WarcReaderLimits limits_;
  std::uint64_t position_ = 0;
  bool ends_early_ = false;
  bool packed_together_ = false;
  bool only_head_ = false;

  std::array<char, kWarcReadAtOnce> input_;
  std::size_t used_ = 0, filled_ = 0;
  std::uint64_t read_to_ = 0;
  z_stream stream_{};
  std::array<char, kUnpackedAtOnce> unpacked_;

  std::string head_;
  std::uint64_t block_left_ = kNoHead;
  std::uint64_t taken_ = 0;  // of the block
  bool lacks_length_ = false;
  std::optional<std::uint64_t> measured_;  // the length of the block where its head does not say it
  std::string_view end_left_;              // of the line ends behind the block
  std::string why_;
  bool too_large_ = false;
};

WarcReader::WarcReader(WarcBytes bytes, std::string name, WarcReaderLimits limits)
    : impl_(std::make_unique<Impl>(std::move(bytes), std::move(name), limits)) {}
WarcReader::~WarcReader() = default;

Result<bool> WarcReader::next(WarcRecord& record) { return impl_->next(record); }
Result<WarcHead> WarcReader::head_at(std::uint64_t offset) { return impl_->head_at(offset); }
std::uint64_t WarcReader::position() const noexcept { return impl_->position(); }
void WarcReader::seek(std::uint64_t offset) noexcept { impl_->seek(offset); }
bool WarcReader::ends_early() const noexcept { return impl_->ends_early(); }
bool WarcReader::is_packed_together() const noexcept { return impl_->is_packed_together(); }
bool WarcReader::has_begun() const noexcept { return impl_->has_begun(); }
Result<std::optional<std::uint64_t>> WarcReader::next_behind() { return impl_->next_behind(); }

}  // namespace argiope
