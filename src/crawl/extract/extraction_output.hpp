// The file that records go to: the records of whole pages, and what is known of its end. Private to Extraction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/crawl/sinks.hpp"
#include "crawl/extract/output_mark.hpp"

namespace argiope {

// How records are written.
class RecordWriter {
 public:
  RecordWriter(const Extractor& extractor, bool as_csv);

  // Of CSV, with its end of line; of JSONL empty.
  const std::string& header() const noexcept { return header_; }
  bool is_csv() const noexcept { return as_csv_; }
  void append(std::string& out, const ExtractedPage& page, const ExtractedRecords& records) const;

 private:
  void append_json(std::string& out, const ExtractedPage& page, std::size_t rule, const ExtractedRecord& record) const;
  void append_csv(std::string& out, const ExtractedPage& page, std::size_t rule, const ExtractedRecord& record) const;

  const Extractor extractor_;
  const bool as_csv_;
  const bool names_rule_;
  std::string header_;
};

// Records of one visit to a page that follow one another in the file.
struct WrittenPage {
  std::string url;
  std::int64_t fetched_at = 0;  // milliseconds
  std::uint64_t begin = 0;      // of the first of them
};

// When those pages of a file that a database knows were done, in milliseconds.
using DonePages = std::unordered_map<std::string, std::int64_t>;
inline constexpr std::int64_t kNotDone =
    std::numeric_limits<std::int64_t>::min();  // it waits, waits again, or was given up

// A page is what a run writes whole or not at all. While the file is written, notes in the database say how far it has
// whole pages (mark()). After a crash what is behind is cut off, and its pages, which the database cannot have as done,
// are fetched again:
//
//   │ pages that are done, and some that are not │ whole pages, half a page, holes of a power cut │
//   0                                           mark                                             end
//
// Those before the mark that are not done are whole: they are not written again. Where the database has no mark of the
// file, or others have written behind it, only the file's last page can be torn.
class ExtractionOutput {
 public:
  // Opens or creates the file, and reads which pages the last records are of. Its text stays as it is until
  // go_on() or write().
  // Errors: as Extraction::open.
  static Result<std::unique_ptr<ExtractionOutput>> open(const std::string& path, const RecordWriter& writer);
  ~ExtractionOutput();
  ExtractionOutput(const ExtractionOutput&) = delete;

  // Those that were written last, from the end: as many as a crawl may have under way when it dies, and more.
  const std::vector<WrittenPage>& last_pages() const noexcept { return last_pages_; }
  std::int64_t last_fetch() const noexcept { return last_fetch_; }
  const std::string& path() const noexcept { return path_; }
  std::uint64_t size() const noexcept { return size_; }  // as it was opened
  // Of its note in the database. Empty: it is no file.
  const std::string& note_name() const noexcept { return note_name_; }
  // Nothing was there, or what was cannot be looked at.
  bool is_new() const noexcept { return !is_file_ || was_empty_; }

  // The one among `marks` that is of this file and ends last in it.
  std::optional<OutputMark> find_mark(std::span<const OutputMark> marks) const;
  // Nothing else speaks against the file: cuts off what may be torn, and writes the header where there is none. Returns
  // the pages whose records are there, whole, and which the database does not know as done.
  // Errors: wrong_format, and nothing is changed; io, disk_full.
  Result<std::unordered_set<std::string>> go_on(const std::optional<OutputMark>& mark, const DonePages& done);
  // Appends the records of whole pages in one piece. After a failure nothing more is written. Without go_on() a line
  // that is torn is cut off first, and nothing else. Any thread.
  Result<void> write(std::string_view records);
  // Output to a pipe or a device waits for its reader no longer than so from now on; then writing fails. Any thread.
  void give_up(Duration after) noexcept;
  // Whether what was written is in the file that has the name, and, with `sync`, on the disk. Any thread.
  Result<void> keep(bool sync);
  // Of what was kept; nullopt: nothing yet, or it is no file. Any thread.
  std::optional<UrlNote> note() const;
  // All was kept, and no more comes from this run.
  void end();

  static constexpr std::size_t kMostLastPages = 150'000;
  static constexpr std::int64_t kLongestBefore = 3'600'000;  // milliseconds before the last record

 private:
  explicit ExtractionOutput(std::string path);
  Result<void> open_file();
  Result<void> check(const RecordWriter& writer);
  Result<void> check_csv(const RecordWriter& writer);
  Result<void> check_jsonl();
  bool note_hole_in_front(std::string_view front, std::string_view of_ours);
  Result<void> check_torn_json(std::string_view line, std::uint64_t begin);
  Result<void> note_json(std::string_view line, std::uint64_t begin, bool& more);
  std::uint64_t find_end(const std::optional<OutputMark>& mark, const DonePages& done) const;
  Result<void> begin_at(std::uint64_t end);
  OutputMark mark_locked() const;
  Result<void> write_locked(std::string_view bytes);
  bool wait_for_reader() const;
  std::string read_at(std::uint64_t from, std::size_t size, bool& failed) const;
  bool note_page(std::string_view url, WallTime fetched_at, std::uint64_t begin);
  std::unexpected<Error> trouble(std::string_view what) const;
  std::unexpected<Error> not_ours(std::string_view why) const;

  const std::string path_;
  int file_ = -1;
  int deadline_ = -1;  // a timer, of what is no plain file
  bool is_file_ = true;
  bool is_new_ = false;  // and its name may not be on the disk yet
  std::string place_;    // with links followed
  std::string note_name_;
  std::string identity_;
  bool was_empty_ = true;
  std::uint64_t size_ = 0;
  std::uint64_t header_end_ = 0;  // records begin there
  std::uint64_t end_ = 0;         // of the last whole record, before begin_at()
  bool is_torn_ = false;          // there is more behind it, or its end of line is missing
  std::uint64_t damage_ =
      std::numeric_limits<std::uint64_t>::max();  // where the first line begins that a power cut has made
  std::string front_;                             // what begin_at() writes behind that: a header, or the end of a line
  bool has_begun_ = false;
  std::vector<WrittenPage> last_pages_;
  std::int64_t last_fetch_ = 0;
  mutable std::mutex mutex_;
  std::string tail_;  // the last bytes that were written, kTailBytes or more of them
  std::uint64_t done_before_ = 0;
  std::uint64_t synced_ = 0;
  std::optional<OutputMark> kept_;
  std::optional<Error> failed_;
};

}  // namespace argiope
