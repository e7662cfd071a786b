// Extraction: what rules take from the pages of a crawl, written to a file while the crawl goes on.
//
//   auto extraction = Extraction::open({.rules = rules, .output = "items.jsonl"});
//   options.on_page = (*extraction)->handler();
//   setup.before_commit = (*extraction)->before_commit();
//   auto crawl = LocalCrawl::open(std::move(options), setup);
//   (*extraction)->go_on_from((*crawl)->store());
//   (*extraction)->on_failure([&] { (*crawl)->crawler().stop("output", true); });
//   (*crawl)->run();
//   (*extraction)->close();
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/crawl/extraction_rules.hpp"
#include "argiope/crawl/page.hpp"
#include "argiope/store/url_store.hpp"

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

// A record begins with `url` and `fetched_at` (RFC 3339, in milliseconds) and, where there are several rules, `rule`. Records of a
// page are written together, in one piece.
//
// What is kept over a crash: a page's records are written before the crawl writes down that the page is done. A run that goes on with
// the file and the crawl's database cuts off what a crash has torn, and leaves out the pages whose records are in the file though
// the database does not know them as done. So no record is lost, torn or written twice, also by a power cut where
// CrawlSetup::before_commit is set and the database is synced. Standard output may get a page twice.
//
// Threads: open(), go_on_from(), close() and the destructor from one, while no crawl runs; the handler on the shards' threads.
class Extraction {
 public:
  // Errors: those of Extractor::compile; io, disk_full, busy (another process writes the file), and wrong_format for a file with
  //         other columns, or that no crawl has written.
  static Result<std::unique_ptr<Extraction>> open(ExtractionOptions options);
  // Waits for what is under way. Outlives the crawl.
  ~Extraction();

  // For CrawlOptions::on_page. HTML and XML with status 200 are read, on threads of this object; the page's visit waits meanwhile.
  // Suspends: until the records are written. Cancel: throws CancelledError when what is under way has ended.
  PageHandler handler();
  // For CrawlSetup::before_commit: what has been written is on the disk before the crawl says that its pages are done.
  std::function<Result<void>()> before_commit();
  // Compares what an interrupted run has written with what the database knows; after the crawl is opened and before it runs.
  // Errors: wrong_format when the file is of another crawl, older than the database; those of the store.
  Result<void> go_on_from(UrlStore& store);
  // Called once, on any thread, when the output cannot be written: it has to stop the crawl at once. Without it, each page's
  // handler throws then.
  void on_failure(std::function<void()> stop);

  // Of any thread.
  ExtractionReport report() const;
  // Errors: the first one of writing.
  Result<void> close();

 private:
  struct State;
  explicit Extraction(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace argiope
