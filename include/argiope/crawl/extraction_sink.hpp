// ExtractionSink: what rules take from a crawl's pages, in a file, while the crawl goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_sink.hpp"
#include "argiope/crawl/extraction_rules.hpp"
#include "argiope/store/detail/url_store.hpp"

namespace argiope {

struct ExtractionOptions {
  enum class Format : std::uint8_t {
    by_name,  // of the output: ".csv" is CSV, all else JSONL
    jsonl,    // an object a line
    csv,      // RFC 4180, with a header; lists and JSON as JSON
  };
  ExtractionRules rules;
  // A file, which is gone on with where it is there; "-": standard output.
  std::string output = "-";
  Format format = Format::by_name;
  // On which pages are read; 0: as many as the machine has processors, and at most 8.
  std::size_t threads = 0;
  // Kept records survive a power cut.
  bool sync = true;
};

// Of one field, over all records.
struct FieldReport {
  std::string name;
  std::uint64_t values = 0;    // records that have one
  std::uint64_t troubles = 0;  // values that could not be converted, and required ones that were missing
  std::string example;         // of a trouble, and its page
};

struct ExtractionReport {
  std::uint64_t pages = 0;    // that a rule matches
  std::uint64_t records = 0;  // written in this run
  std::uint64_t empty = 0;    // pages without a record
  std::uint64_t dropped = 0;  // records that lacked a required field
  std::uint64_t refused = 0;  // pages that could not be read, or would have taken too long
  std::uint64_t known = 0;    // pages whose records an interrupted run has written already
  std::string refused_example;
  std::vector<FieldReport> fields;
};

// A record begins with `url`, `fetched_at` (when it was asked for; RFC 3339, in milliseconds) and, where there are
// several rules, `rule`. Records of a page are written together, in one piece. HTML and XML with status 200 are read,
// on threads of the sink; what goes wrong with a page is counted and told, and fails nothing.
//
//   auto extraction = ExtractionSink::open({.rules = rules, .output = "items.jsonl"});
//   options.sinks.push_back(*extraction);
//   auto crawl = LocalCrawl::open(std::move(options), setup);
//   auto fits = (*extraction)->go_on_from((*crawl)->store());
//
// The database keeps with each commit how far the file has whole pages (note()). A run that goes on with both after a
// crash cuts off what is behind, whose pages it fetches again, and leaves out those before it that are not done. So no
// page is lost, torn, or written twice, after a power cut neither (`sync`). Standard output may get a page twice.
//
// Threads: as CrawlSink; open(), go_on_from() and the destructor while no crawl runs.
class ExtractionSink final : public CrawlSink {
 public:
  // Errors: those of Extractor::compile; io, disk_full, busy (another crawl writes the file), and wrong_format for a
  //         file with other columns, or that no crawl has written.
  static Result<std::shared_ptr<ExtractionSink>> open(const ExtractionOptions& options);
  ~ExtractionSink() override;

  // Compares the end of the file with what the database knows; when the crawl is open, and before it runs.
  // Errors: wrong_format when the file is of an earlier crawl than the database; those of the store.
  Result<void> go_on_from(UrlStore& store);

  Result<void> take(const Exchange& exchange) override;
  std::size_t backlog() const noexcept override;
  Result<void> keep() override;
  std::optional<UrlNote> note() const override;
  Result<void> finish() override;
  std::string demand() const override;
  bool begins_anew() const noexcept override;
  // Of a run that is told to end: records that go to a pipe wait for their reader no longer than so from now on. Then
  // their pages are not done, as when the run were killed. Any thread.
  void give_up(Duration after) noexcept;

  // Of this run.
  ExtractionReport report() const;

 private:
  class Impl;
  explicit ExtractionSink(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace argiope
