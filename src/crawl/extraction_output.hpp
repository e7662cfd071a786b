// The file that records go to: whole lines, and what is known of its end. Private to Extraction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/crawl/extraction_rules.hpp"

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

// Which pages the last records of a file are of, and when those were fetched, in milliseconds.
using WrittenPages = std::unordered_map<std::string, std::int64_t>;

class ExtractionOutput {
 public:
  // Opens or creates the file, and reads which pages the last records are of. What is there stays as it is until
  // begin().
  // Errors: as Extraction::open.
  static Result<std::unique_ptr<ExtractionOutput>> open(const std::string& path, const RecordWriter& writer);
  ~ExtractionOutput();
  ExtractionOutput(const ExtractionOutput&) = delete;

  // Those that were written last: as many as a crawl may have under way when it dies, and more.
  WrittenPages take_last_pages() { return std::move(last_pages_); }
  std::int64_t last_fetch() const noexcept { return last_fetch_; }
  const std::string& path() const noexcept { return path_; }

  // Nothing speaks against the file: cuts off a torn record at its end, and writes the header where there is none. Done
  // by the first write() at the latest.
  Result<void> begin();
  // Appends whole records in one piece. After a failure nothing more is written. Any thread.
  Result<void> write(std::string_view records);
  // Whether what was written is in the file that has the name, and, with `sync`, on the disk. Any thread.
  Result<void> keep(bool sync);

  static constexpr std::size_t kMostLastPages = 150'000;
  static constexpr std::int64_t kLongestBefore = 3'600'000;  // milliseconds before the last record

 private:
  explicit ExtractionOutput(std::string path);
  Result<void> open_file();
  Result<void> check(const RecordWriter& writer);
  Result<void> check_csv(const RecordWriter& writer);
  Result<void> check_jsonl();
  Result<void> check_torn_json(std::string_view line, std::uint64_t begin);
  Result<void> note_json(std::string_view line, bool& more);
  Result<void> begin_locked();
  Result<void> write_locked(std::string_view bytes);
  std::string read_at(std::uint64_t from, std::size_t size, bool& failed) const;
  bool note(std::string_view url, WallTime fetched_at);
  std::unexpected<Error> trouble(std::string_view what) const;
  std::unexpected<Error> not_ours(std::string_view why) const;

  const std::string path_;
  int file_ = -1;
  bool is_file_ = true;
  std::uint64_t size_ = 0;
  std::uint64_t end_ = 0;  // of the last whole record, before begin()
  std::string front_;      // what begin() writes behind that: a header, or the end of a line
  bool has_begun_ = false;
  WrittenPages last_pages_;
  std::int64_t last_fetch_ = 0;
  std::mutex mutex_;
  std::uint64_t synced_ = 0;
  std::optional<Error> failed_;
};

}  // namespace argiope
