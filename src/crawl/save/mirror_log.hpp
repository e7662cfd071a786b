// A mirror's knowledge of each URL that was fetched, and pages as they came: two files that only grow. The mirror is
// made of them, and can be made again at any time.
//
//   index     "argiope-mirror 2 SEED PAGES\n", then records; the last one of a URL counts
//   pages-N   the bytes of pages, style sheets and small files, each packed by LZ4 where that makes it smaller;
//             behind those of a page, and packed with them, where it names URLs
//
// Version 1 had neither: its texts were packed by zstd. Such a log is read and written on, and is one of version 2 from
// then on.
//
// A record follows what it names: a process that is killed leaves at most a beginning of one, which is cut off again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"
#include "base/internal/fingerprint.hpp"
#include "crawl/save/file_names.hpp"
#include "crawl/save/mirror_folder.hpp"

struct ZSTD_DCtx_s;

namespace argiope {

struct MirrorRecord {
  enum class What : std::uint8_t {
    logged,    // its bytes are in the log
    blob,      // they are in a file by its digest: what is large, and is not rewritten
    redirect,  // to `location`
    none,      // nothing that can be saved
  };
  enum class Packing : std::uint8_t { zstd, lz4 };
  What what = What::none;
  Packing packing = Packing::lz4;
  FileType type{};
  std::string_view url;
  std::string_view content_type;  // as the server has said
  std::string_view location;      // absolute, with its fragment
  std::string_view digest;        // content_digest()
  std::uint64_t offset = 0;       // in the log
  std::uint64_t packed = 0;       // bytes there; as many as unpacked(): they are not packed
  std::uint64_t size = 0;
  std::uint32_t references = 0;  // bytes behind them, by append_references(); 0: nobody has looked

  std::uint64_t unpacked() const noexcept { return size + references; }
  bool is_file() const noexcept { return what == What::logged || what == What::blob; }
  // Whether it is made anew for its place.
  bool is_rewritten() const noexcept {
    return type.kind == FileKind::html || type.kind == FileKind::xhtml || type.kind == FileKind::css ||
           type.kind == FileKind::svg;
  }
};
// As a record of the index.
void append_record(const MirrorRecord& record, std::string& out);

// The index as it was when it was read: the last record of each URL.
//
// Memory: 16 bytes a URL, and the file is mapped. Threads: reads from any.
class MirrorIndex {
 public:
  struct Entry {
    std::uint64_t url = 0;    // its fingerprint
    std::uint64_t place = 0;  // of its record
  };
  MirrorIndex() = default;
  MirrorIndex(const MirrorIndex&) = delete;
  ~MirrorIndex();

  // Errors: io; wrong_format or newer_version of what is no index, or not of this version.
  Result<void> read(int descriptor, const std::string& name);

  std::uint64_t fingerprint_of(std::string_view url) const noexcept { return fingerprint(url, seed_); }
  // Ascending by URL.
  std::span<const Entry> entries() const noexcept { return entries_; }
  const Entry* find(std::uint64_t url) const noexcept;
  // Valid as long as the index.
  MirrorRecord at(std::uint64_t place) const noexcept;
  // The record of that very URL.
  std::optional<MirrorRecord> of(std::string_view url) const noexcept;

  // Where the first record stands that is not good; all are visited, in their order.
  std::uint64_t end_of_good(const std::function<bool(const MirrorRecord&)>& is_good) const;

  // Behind the last whole record; of the texts that records name, dead ones included; of those that count.
  std::uint64_t end() const noexcept { return end_; }
  std::uint64_t texts_end() const noexcept { return texts_end_; }
  std::uint64_t live_bytes() const noexcept { return live_bytes_; }
  bool is_empty() const noexcept { return size_ == 0; }
  bool is_old() const noexcept { return is_old_; }  // of version 1
  const std::string& pages_name() const noexcept { return pages_name_; }
  std::uint64_t seed() const noexcept { return seed_; }

 private:
  Result<void> read_header(const std::string& name);
  void read_records();

  const char* bytes_ = nullptr;
  std::uint64_t size_ = 0;
  std::uint64_t begin_ = 0, end_ = 0, texts_end_ = 0, live_bytes_ = 0;
  std::uint64_t seed_ = 0;
  bool is_old_ = false;
  std::string pages_name_;
  std::vector<Entry> entries_;
};

// The two files, written on. Threads: one at a time; read_text(), sync() and expect_in_place() from any.
class MirrorLog {
 public:
  // Cuts off what is not whole. `chance`: of fingerprints, where the mirror is new.
  // Errors: those of MirrorIndex::read, and disk_full.
  static Result<std::unique_ptr<MirrorLog>> open(const MirrorFolder& folder, std::uint64_t chance);

  // As it was at the opening, or when it was read again.
  const MirrorIndex& index() const noexcept { return *index_; }
  // As it is now. It goes when another is read.
  Result<const MirrorIndex*> read_again();
  // The same for the caller alone. Any thread, also while records are added.
  Result<std::unique_ptr<MirrorIndex>> read_now() const;

  // Gives them to the system: they survive this process. `records` are as append_record() has written them, those that
  // are `logged` with the place of their bytes in `texts`, their references behind them. After a failure nothing is
  // added any more.
  Result<void> add(std::string_view texts, std::string_view records);
  Result<void> sync() const;
  // Whether both are still those that others find in the folder, and as long as they were written. Errors: io.
  Result<void> expect_in_place() const;
  // Reads one text after the other. Threads: one at a time.
  class Reader {
   public:
    Reader();
    // Of the text that was read last, as append_references() has written them. Empty: nobody has looked.
    std::string_view references() const noexcept { return references_; }

   private:
    friend MirrorLog;
    std::string packed_, references_;
    std::unique_ptr<ZSTD_DCtx_s, void (*)(ZSTD_DCtx_s*)> unpacker_;
  };
  // The bytes of what is `logged`. Errors: io, corrupt.
  Result<void> read_text(const MirrorRecord& record, Reader& reader, std::string& out) const;

  // Leaves nothing in the log but what counts. The index must have been read again since the last add().
  Result<void> compact(bool sync);

 private:
  explicit MirrorLog(const MirrorFolder& folder);
  Result<void> open_files(std::uint64_t chance);
  Result<void> open_pages();
  Result<void> take_over_old();
  Result<void> cut_off_leavings();
  std::string shown(std::string_view name) const;
  Result<void> read_packed(const MirrorRecord& record, std::string& out) const;
  void pack(std::string_view text, MirrorRecord& record);

  const MirrorFolder& folder_;
  std::unique_ptr<MirrorIndex> index_;
  Descriptor other_index_;  // the one that has taken the place of the folder's
  Descriptor pages_;
  // The sizes of the files: expect_in_place() reads them in any thread.
  std::atomic<std::uint64_t> index_end_ = 0;
  std::atomic<std::uint64_t> texts_end_ = 0;
  std::string packed_, records_;  // to be written
  const std::unique_ptr<std::byte[]> packer_;
  std::optional<Error> failed_;

  int index_file() const noexcept { return other_index_ ? other_index_.get() : folder_.index(); }
};

}  // namespace argiope
