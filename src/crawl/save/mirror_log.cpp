#include "crawl/save/mirror_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <lz4.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <concepts>
#include <utility>

#include "base/internal/counted.hpp"

namespace argiope {
namespace {

constexpr std::string_view kIndexMagic = "argiope-mirror ";
constexpr std::string_view kIndexVersion = "2", kOldIndexVersion = "1";
static_assert(kIndexVersion.size() == kOldIndexVersion.size());  // it is written in the other's place
constexpr std::size_t kRecordHead = 8;                           // length and check of what follows
constexpr std::size_t kRecordFixed = 3 + 4 * 4 + 3 * 8;
// The kind of a record, and how its bytes are packed, are the halves of its first byte.
constexpr unsigned kPackingShift = 4;
constexpr unsigned kWhatMask = 15;
constexpr int kPackingHurry = 1;                               // pages become a quarter, faster than they come
constexpr std::uint64_t kCheckedAtOpening = 16 * 1024 * 1024;  // of texts, those that came last
constexpr std::uint64_t kLeastWaste = 16 * 1024 * 1024;        // that compact() is worth

template <std::unsigned_integral Number>
void append_record_number(Number number, std::string& out) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) out += static_cast<char>(number >> (8 * i) & 0xff);
}
template <std::unsigned_integral Number>
Number record_number(const char* p) noexcept {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    number |= static_cast<Number>(static_cast<Number>(static_cast<unsigned char>(p[i])) << (8 * i));
  }
  return number;
}

std::uint32_t record_check(std::string_view bytes) noexcept { return static_cast<std::uint32_t>(fingerprint(bytes)); }

// The record in the bytes behind its head; nullopt where they are no record.
std::optional<MirrorRecord> parse_record(std::string_view bytes) noexcept {
  if (bytes.size() < kRecordFixed) return std::nullopt;
  const char* const p = bytes.data();
  MirrorRecord record;
  const unsigned what = static_cast<unsigned char>(p[0]) & kWhatMask;
  const unsigned packing = static_cast<unsigned char>(p[0]) >> kPackingShift;
  if (what > static_cast<unsigned>(MirrorRecord::What::none)) return std::nullopt;
  if (packing > static_cast<unsigned>(MirrorRecord::Packing::lz4)) return std::nullopt;
  if (static_cast<unsigned char>(p[1]) > static_cast<unsigned char>(FileKind::data)) return std::nullopt;
  record.what = static_cast<MirrorRecord::What>(what);
  record.packing = static_cast<MirrorRecord::Packing>(packing);
  record.type.kind = static_cast<FileKind>(p[1]);
  record.offset = record_number<std::uint64_t>(p + 19);
  record.packed = record_number<std::uint64_t>(p + 27);
  record.size = record_number<std::uint64_t>(p + 35);
  std::size_t at = kRecordFixed;
  bool is_whole = true;
  const auto take = [&](std::size_t size) {
    is_whole = is_whole && size <= bytes.size() - at;
    if (!is_whole) return std::string_view{};
    return bytes.substr(std::exchange(at, at + size), size);
  };
  record.type.extension = take(static_cast<unsigned char>(p[2]));
  record.url = take(record_number<std::uint32_t>(p + 3));
  record.content_type = take(record_number<std::uint32_t>(p + 7));
  record.location = take(record_number<std::uint32_t>(p + 11));
  record.digest = take(record_number<std::uint32_t>(p + 15));
  if (record.packing != MirrorRecord::Packing::zstd) {
    const std::string_view references = take(sizeof record.references);
    if (is_whole) record.references = record_number<std::uint32_t>(references.data());
  }
  return is_whole ? std::optional(record) : std::nullopt;
}

Result<std::uint64_t> size_of_log_file(int descriptor, const std::string& name) {
  struct stat found {};
  if (::fstat(descriptor, &found) != 0) return file_trouble(name, "looked at");
  return static_cast<std::uint64_t>(found.st_size);
}

unsigned number_of_pages(std::string_view name) noexcept {
  unsigned number = 1;
  std::from_chars(name.data() + name.find('-') + 1, name.data() + name.size(), number);
  return number;
}

// Leaves `out` shorter than the record says where the bytes are damaged.
void unpack(const MirrorRecord& record, std::string_view packed, ZSTD_DCtx* of_zstd, std::string& out) {
  out.clear();
  constexpr std::uint64_t kMost = LZ4_MAX_INPUT_SIZE;
  const bool is_lz4 = record.packing == MirrorRecord::Packing::lz4;
  if (is_lz4 && (packed.size() > kMost || record.unpacked() > kMost)) return;
  out.resize_and_overwrite(record.unpacked(), [&](char* text, std::size_t) -> std::size_t {
    if (is_lz4) {
      const int got = LZ4_decompress_safe(packed.data(), text, static_cast<int>(packed.size()),
                                          static_cast<int>(record.unpacked()));
      return static_cast<std::size_t>(std::max(got, 0));
    }
    const std::size_t got = ZSTD_decompressDCtx(of_zstd, text, record.unpacked(), packed.data(), packed.size());
    return ZSTD_isError(got) == 0 ? got : 0;
  });
}

std::string index_header(std::uint64_t seed, std::string_view pages_name) {
  return fmt::format("{}{} {:016x} {}\n", kIndexMagic, kIndexVersion, seed, pages_name);
}

}  // namespace

void append_record(const MirrorRecord& record, std::string& out) {
  const std::size_t begin = out.size();
  out.append(kRecordHead, '\0');
  out += static_cast<char>(static_cast<unsigned>(record.what) | static_cast<unsigned>(record.packing) << kPackingShift);
  out += static_cast<char>(record.type.kind);
  out += static_cast<char>(record.type.extension.size());
  for (const std::string_view text : {record.url, record.content_type, record.location, record.digest}) {
    append_record_number(static_cast<std::uint32_t>(text.size()), out);
  }
  append_record_number(record.offset, out);
  append_record_number(record.packed, out);
  append_record_number(record.size, out);
  for (const std::string_view text :
       {record.type.extension, record.url, record.content_type, record.location, record.digest}) {
    out += text;
  }
  if (record.packing != MirrorRecord::Packing::zstd) append_record_number(record.references, out);
  const std::string_view written = std::string_view(out).substr(begin + kRecordHead);
  std::string head;
  append_record_number(static_cast<std::uint32_t>(written.size()), head);
  append_record_number(record_check(written), head);
  out.replace(begin, kRecordHead, head);
}

// --- the index -------------------------------------------------------------------------------------------------------

MirrorIndex::~MirrorIndex() {
  if (bytes_ != nullptr) ::munmap(const_cast<char*>(bytes_), size_);
}

Result<void> MirrorIndex::read(int descriptor, const std::string& name) {
  const auto size = size_of_log_file(descriptor, name);
  if (!size) return std::unexpected(size.error());
  size_ = *size;
  if (size_ == 0) return {};
  void* const mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor, 0);
  if (mapped == MAP_FAILED) return file_trouble(name, "read");
  bytes_ = static_cast<const char*>(mapped);
  if (auto header = read_header(name); !header) return header;
  read_records();
  return {};
}

Result<void> MirrorIndex::read_header(const std::string& name) {
  const std::string_view all(bytes_, size_);
  const std::string_view line = all.substr(0, std::min<std::size_t>(all.find('\n'), 200));
  const auto wrong = [&](Errc code, std::string_view what) { return fail(code, fmt::format("{}: {}", name, what)); };
  if (!line.starts_with(kIndexMagic) || !all.substr(line.size()).starts_with('\n')) {
    return wrong(Errc::wrong_format, "not the index of a mirror");
  }
  std::string_view rest = line.substr(kIndexMagic.size());
  const std::string_view version = rest.substr(0, rest.find(' '));
  is_old_ = version == kOldIndexVersion;
  if (version != kIndexVersion && !is_old_) return wrong(Errc::newer_version, "made by another version of argiope");
  rest.remove_prefix(std::min(rest.size(), version.size() + 1));
  const auto seed = std::from_chars(rest.data(), rest.data() + rest.size(), seed_, 16);
  rest.remove_prefix(static_cast<std::size_t>(seed.ptr - rest.data()));
  if (seed.ec != std::errc{} || !rest.starts_with(" pages-") || rest.contains('/')) {
    return wrong(Errc::wrong_format, "not the index of a mirror");
  }
  pages_name_ = rest.substr(1);
  begin_ = end_ = line.size() + 1;
  return {};
}

void MirrorIndex::read_records() {
  while (size_ - end_ >= kRecordHead) {
    const std::uint64_t length = record_number<std::uint32_t>(bytes_ + end_);
    if (length > size_ - end_ - kRecordHead) break;
    const std::string_view written(bytes_ + end_ + kRecordHead, length);
    if (record_check(written) != record_number<std::uint32_t>(bytes_ + end_ + 4)) break;
    const auto record = parse_record(written);
    if (!record) break;
    entries_.push_back({fingerprint_of(record->url), end_});
    if (record->what == MirrorRecord::What::logged) texts_end_ = std::max(texts_end_, record->offset + record->packed);
    end_ += kRecordHead + length;
  }
  // The last one of each URL.
  std::ranges::sort(entries_,
                    [](const Entry& a, const Entry& b) { return a.url != b.url ? a.url < b.url : a.place > b.place; });
  const auto repeated = std::ranges::unique(entries_, {}, &Entry::url);
  entries_.erase(repeated.begin(), repeated.end());
  for (const Entry& entry : entries_) {
    const MirrorRecord record = at(entry.place);
    if (record.what == MirrorRecord::What::logged) live_bytes_ += record.packed;
  }
}

std::uint64_t MirrorIndex::end_of_good(const std::function<bool(const MirrorRecord&)>& is_good) const {
  std::uint64_t place = begin_;
  while (place < end_ && is_good(at(place))) place += kRecordHead + record_number<std::uint32_t>(bytes_ + place);
  return place;
}

const MirrorIndex::Entry* MirrorIndex::find(std::uint64_t url) const noexcept {
  const auto found = std::ranges::lower_bound(entries_, url, {}, &Entry::url);
  return found != entries_.end() && found->url == url ? &*found : nullptr;
}

MirrorRecord MirrorIndex::at(std::uint64_t place) const noexcept {
  const std::uint64_t length = record_number<std::uint32_t>(bytes_ + place);
  return parse_record({bytes_ + place + kRecordHead, length}).value_or(MirrorRecord{});
}

std::optional<MirrorRecord> MirrorIndex::of(std::string_view url) const noexcept {
  const Entry* const entry = find(fingerprint_of(url));
  if (entry == nullptr) return std::nullopt;
  const MirrorRecord record = at(entry->place);
  return record.url == url ? std::optional(record) : std::nullopt;
}

// --- the log ---------------------------------------------------------------------------------------------------------

std::string MirrorLog::shown(std::string_view name) const {
  return folder_.name_of(fmt::format("{}/{}", MirrorFolder::kOwn, name));
}

MirrorLog::MirrorLog(const MirrorFolder& folder)
    : folder_(folder), packer_(std::make_unique<std::byte[]>(static_cast<std::size_t>(LZ4_sizeofState()))) {}

Result<std::unique_ptr<MirrorLog>> MirrorLog::open(const MirrorFolder& folder, std::uint64_t chance) {
  std::unique_ptr<MirrorLog> log(new MirrorLog(folder));
  if (auto opened = log->open_files(chance); !opened) return std::unexpected(std::move(opened.error()));
  return log;
}

Result<void> MirrorLog::open_files(std::uint64_t chance) {
  index_ = std::make_unique<MirrorIndex>();
  if (auto read = index_->read(folder_.index(), shown("index")); !read) {
    // The process that made it was killed before its first line was whole.
    const bool is_begun = read.error().code == Errc::wrong_format && index_->end() == 0;
    const auto size = size_of_log_file(folder_.index(), shown("index"));
    if (!is_begun || !size || *size >= index_header(0, "pages-1").size()) return read;
    index_ = std::make_unique<MirrorIndex>();
  }
  if (index_->is_empty()) {
    if (::ftruncate(folder_.index(), 0) != 0) return file_trouble(shown("index"), "written");
    if (auto begun = write_all(folder_.index(), index_header(chance, "pages-1"), 0, shown("index")); !begun)
      return begun;
    index_ = std::make_unique<MirrorIndex>();
    if (auto read = index_->read(folder_.index(), shown("index")); !read) return read;
  }
  if (auto opened = open_pages(); !opened) return opened;
  if (auto cut = cut_off_leavings(); !cut) return cut;
  return index_->is_old() ? take_over_old() : Result<void>{};
}

// Before anything is added: a program that knows version 1 alone would take new records for damaged ones, and cut them
// off.
Result<void> MirrorLog::take_over_old() {
  return write_all(folder_.index(), kIndexVersion, kIndexMagic.size(), shown("index"));
}

Result<void> MirrorLog::open_pages() {
  const std::string name = index_->pages_name();
  pages_ = Descriptor(::openat(folder_.own(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!pages_) return file_trouble(shown(name), "opened");
  // Removes what compact() has left when it was killed.
  const unsigned number = number_of_pages(name);
  for (const unsigned other : {number - 1, number + 1}) {
    ::unlinkat(folder_.own(), fmt::format("pages-{}", other).c_str(), 0);
  }
  return {};
}

// Cuts off torn records, and those whose texts are not there: a killed process leaves the former, a power cut both.
Result<void> MirrorLog::cut_off_leavings() {
  const std::string pages_name = shown(index_->pages_name());
  const auto index_size = size_of_log_file(folder_.index(), shown("index"));
  const auto texts_size = size_of_log_file(pages_.get(), pages_name);
  if (!index_size || !texts_size) return std::unexpected((index_size ? texts_size : index_size).error());
  Reader reader;
  std::string text;
  index_end_ = index_->end_of_good([&](const MirrorRecord& record) {
    if (record.what != MirrorRecord::What::logged) return true;
    const std::uint64_t end = record.offset + record.packed;
    if (end > *texts_size) return false;
    if (end + kCheckedAtOpening < index_->texts_end()) return true;
    return read_text(record, reader, text).has_value() && content_digest(text) == record.digest;
  });
  if (*index_size > index_end_) {
    spdlog::warn("{}: its end was not written whole, as when a crawl is killed: {} cut off", shown("index"),
                 counted(*index_size - index_end_, "byte"));
    if (::ftruncate(folder_.index(), static_cast<off_t>(index_end_)) != 0)
      return file_trouble(shown("index"), "cut off");
    if (auto again = read_again(); !again) return std::unexpected(again.error());
  }
  texts_end_ = index_->texts_end();
  if (::ftruncate(pages_.get(), static_cast<off_t>(texts_end_)) != 0) return file_trouble(pages_name, "cut off");
  return {};
}

Result<std::unique_ptr<MirrorIndex>> MirrorLog::read_now() const {
  auto index = std::make_unique<MirrorIndex>();
  if (auto read = index->read(index_file(), shown("index")); !read) return std::unexpected(std::move(read.error()));
  return index;
}

Result<const MirrorIndex*> MirrorLog::read_again() {
  auto index = read_now();
  if (!index) return std::unexpected(std::move(index.error()));
  index_ = std::move(*index);
  return index_.get();
}

Result<void> MirrorLog::add(std::string_view texts, std::string_view records) {
  if (failed_) return std::unexpected(*failed_);
  packed_.clear();
  records_.clear();
  for (std::size_t at = 0; at < records.size();) {
    const std::size_t length = record_number<std::uint32_t>(records.data() + at);
    MirrorRecord record = parse_record(records.substr(at + kRecordHead, length)).value_or(MirrorRecord{});
    if (record.what == MirrorRecord::What::logged) pack(texts.substr(record.offset, record.unpacked()), record);
    append_record(record, records_);
    at += kRecordHead + length;
  }
  // A write behind the end of a file that another program has cut would hide the cut.
  auto written = expect_in_place();
  if (written) written = write_all(pages_.get(), packed_, texts_end_, shown(index_->pages_name()));
  if (written) written = write_all(index_file(), records_, index_end_, shown("index"));
  if (!written) {
    failed_ = written.error();
    return written;
  }
  texts_end_ += packed_.size();
  index_end_ += records_.size();
  return {};
}

void MirrorLog::pack(std::string_view text, MirrorRecord& record) {
  const std::size_t begin = packed_.size();
  record.offset = texts_end_ + begin;
  record.packing = MirrorRecord::Packing::lz4;
  if (text.size() <= LZ4_MAX_INPUT_SIZE) {
    const int given = static_cast<int>(text.size());
    const int bound = LZ4_compressBound(given);
    packed_.resize_and_overwrite(begin + static_cast<std::size_t>(bound), [&](char* bytes, std::size_t) {
      const int size =
          LZ4_compress_fast_extState(packer_.get(), text.data(), bytes + begin, given, bound, kPackingHurry);
      return size > 0 && size < given ? begin + static_cast<std::size_t>(size) : begin;
    });
  }
  if (packed_.size() == begin) packed_ += text;
  record.packed = packed_.size() - begin;
}

Result<void> MirrorLog::sync() const {
  if (::fdatasync(pages_.get()) != 0) return file_trouble(shown(index_->pages_name()), "brought to the disk");
  if (::fdatasync(index_file()) != 0) return file_trouble(shown("index"), "brought to the disk");
  return {};
}

Result<void> MirrorLog::expect_in_place() const {
  const std::string index = shown("index"), pages = shown(index_->pages_name());
  const std::uint64_t index_size = index_end_, pages_size = texts_end_;
  auto in_place = argiope::expect_in_place(index_file(), index, index, index_size);
  return in_place ? argiope::expect_in_place(pages_.get(), pages, pages, pages_size) : in_place;
}

MirrorLog::Reader::Reader() : unpacker_(ZSTD_createDCtx(), [](ZSTD_DCtx_s* unpacker) { ZSTD_freeDCtx(unpacker); }) {}

Result<void> MirrorLog::read_text(const MirrorRecord& record, Reader& reader, std::string& out) const {
  const bool is_packed = record.packed != record.unpacked();
  if (auto read = read_packed(record, is_packed ? reader.packed_ : out); !read) return read;
  if (is_packed) unpack(record, reader.packed_, reader.unpacker_.get(), out);
  if (out.size() == record.unpacked()) {
    reader.references_.assign(out, record.size);
    out.resize(record.size);
    return {};
  }
  return fail(Errc::corrupt, fmt::format("{}: what it has of {} is damaged; remove the mirror's folder to crawl anew",
                                         shown(index_->pages_name()), record.url));
}

Result<void> MirrorLog::read_packed(const MirrorRecord& record, std::string& out) const {
  ssize_t count = 1;
  // The room that libstdc++ 12 names may be more than was asked for.
  out.resize_and_overwrite(record.packed, [&](char* bytes, std::size_t) {
    std::size_t done = 0;
    while (done < record.packed && count != 0) {
      count = ::pread(pages_.get(), bytes + done, record.packed - done, static_cast<off_t>(record.offset + done));
      if (count < 0 && errno != EINTR) break;
      done += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    }
    return done;
  });
  if (out.size() == record.packed) return {};
  if (count < 0) return file_trouble(shown(index_->pages_name()), "read");
  return fail(Errc::corrupt, fmt::format("{}: shorter than its index says", shown(index_->pages_name())));
}

Result<void> MirrorLog::compact(bool sync) {
  const std::uint64_t waste = texts_end_ - std::min(texts_end_.load(), index_->live_bytes());
  if (waste < kLeastWaste || waste < index_->live_bytes()) return {};
  const std::string old_name = index_->pages_name();
  const std::string new_name = fmt::format("pages-{}", number_of_pages(old_name) + 1);
  constexpr const char* kNewIndex = "tmp-index";
  const int flags = O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
  Descriptor pages(::openat(folder_.own(), new_name.c_str(), flags, 0666));
  Descriptor index(::openat(folder_.own(), kNewIndex, flags, 0666));
  if (!pages || !index || ::flock(index.get(), LOCK_EX | LOCK_NB) != 0) return file_trouble(shown(new_name), "written");
  std::string records = index_header(index_->seed(), new_name);
  std::string text;
  std::uint64_t texts_end = 0, index_end = 0;
  const auto write_records = [&] {
    auto written = write_all(index.get(), records, index_end, shown(kNewIndex));
    index_end += records.size();
    records.clear();
    return written;
  };
  // In the order in which they came, so that they are read from front to back.
  std::vector<MirrorIndex::Entry> entries(index_->entries().begin(), index_->entries().end());
  std::ranges::sort(entries, {}, &MirrorIndex::Entry::place);
  for (const MirrorIndex::Entry& entry : entries) {
    MirrorRecord record = index_->at(entry.place);
    if (record.what == MirrorRecord::What::logged) {
      if (auto read = read_packed(record, text); !read) return read;
      record.offset = texts_end;
      if (auto written = write_all(pages.get(), text, texts_end, shown(new_name)); !written) return written;
      texts_end += text.size();
    }
    append_record(record, records);
    if (records.size() < kLeastWaste) continue;
    if (auto written = write_records(); !written) return written;
  }
  if (auto written = write_records(); !written) return written;
  if (sync && (::fsync(pages.get()) != 0 || ::fsync(index.get()) != 0))
    return file_trouble(shown(new_name), "brought to the disk");
  if (::renameat(folder_.own(), kNewIndex, folder_.own(), "index") != 0) return file_trouble(shown("index"), "written");
  if (sync && ::fsync(folder_.own()) != 0) return file_trouble(shown("index"), "brought to the disk");
  ::unlinkat(folder_.own(), old_name.c_str(), 0);
  pages_ = std::move(pages);
  other_index_ = std::move(index);
  texts_end_ = texts_end;
  index_end_ = index_end;
  const auto again = read_again();
  return again ? Result<void>{} : std::unexpected(again.error());
}

}  // namespace argiope
