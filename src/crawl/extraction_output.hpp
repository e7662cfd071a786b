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
  // Opens or creates the file, cuts off a torn record at its end, and reads which pages the last ones are of.
  // Errors: as Extraction::open.
  static Result<std::unique_ptr<ExtractionOutput>> open(const std::string& path, const RecordWriter& writer);
  ~ExtractionOutput();
  ExtractionOutput(const ExtractionOutput&) = delete;

  // Those that were written last: as many as a crawl may have under way when it dies, and more.
  WrittenPages take_last_pages() { return std::move(last_pages_); }
  std::int64_t last_fetch() const noexcept { return last_fetch_; }
  const std::string& path() const noexcept { return path_; }

  // Appends whole records in one piece. After a failure nothing more is written. Any thread.
  Result<void> write(std::string_view records);
  // Waits until they are on the disk. Any thread.
  Result<void> sync();

  static constexpr std::size_t kMostLastPages = 150'000;
  static constexpr std::int64_t kLongestBefore = 3'600'000;  // milliseconds before the last record

 private:
  explicit ExtractionOutput(std::string path);
  Result<void> open_file();
  Result<void> begin(const RecordWriter& writer);
  Result<void> check_csv(const RecordWriter& writer);
  Result<void> check_jsonl();
  Result<void> read_last_records();
  Result<void> cut_off(std::uint64_t end);
  std::string read_at(std::uint64_t from, std::size_t size, bool& failed) const;
  bool note(std::string_view url, std::string_view fetched_at);
  std::unexpected<Error> trouble(std::string_view what) const;
  std::unexpected<Error> not_ours(std::string_view why) const;

  const std::string path_;
  int file_ = -1;
  bool is_file_ = true;
  std::uint64_t size_ = 0;
  WrittenPages last_pages_;
  std::int64_t last_fetch_ = 0;
  std::mutex mutex_;
  std::uint64_t synced_ = 0;
  std::optional<Error> failed_;
};

}  // namespace argiope
