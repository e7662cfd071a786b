// WarcSink: a crawl's pages as they came, in WARC files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/base/random.hpp"
#include "argiope/crawl/crawl_sink.hpp"
#include "argiope/web/url.hpp"

namespace argiope {

struct WarcOptions {
  // "site" or "site.warc.gz": the file site.warc.gz, each record packed for itself, and the index site.cdxj.
  // "site.warc": not packed. An archive that is there is added to.
  std::string path;
  // A file that has so many bytes is followed by another: site-00001.warc.gz, site-00002.warc.gz …; 0: there is one.
  std::uint64_t most_bytes = 0;
  // Kept records survive a power cut.
  bool sync = true;
  // Fields of the warcinfo record: software, robots, who made it.
  std::vector<std::pair<std::string, std::string>> info;
  // Where the crawl begins: told in the warcinfo record, so that a replay begins there too.
  std::vector<Url> seeds;
};

// Writes pages and robots.txt: a response record for each, or a revisit record when the archive has the same payload
// already, and a request record. A check of a link is no capture, nor is a body of a type that is not wanted. A thread
// of its own digests, packs and writes.
//
//   auto archive = WarcSink::open({.path = "site"}, clock, random);
//   options.sinks.push_back(*archive);
//
// Threads: as CrawlSink.
class WarcSink final : public CrawlSink {
 public:
  // The leavings of a killed run behind the last whole record are cut off, and a warning says so. `clock` outlives the
  // sink.
  // Errors: io, disk_full, busy (another process writes the archive), wrong_format (a file of that name is no WARC
  // file), corrupt (a damaged record with others behind it).
  static Result<std::shared_ptr<WarcSink>> open(const WarcOptions& options, const Clock& clock, Random random);
  ~WarcSink() override;

  bool wants_wire() const noexcept override { return true; }
  Result<void> take(const Exchange& exchange) override;
  std::size_t backlog() const noexcept override;
  Result<void> keep() override;
  Result<void> finish() override;
  std::string demand() const override;
  bool begins_anew() const noexcept override;

  // Of this run.
  struct Totals {
    std::uint64_t responses = 0;
    std::uint64_t revisits = 0;
    std::uint64_t bytes = 0;  // of all records, as they are in the file
  };
  Totals totals() const;
  // Where the last records are. Not while the crawl runs.
  const std::string& file() const noexcept;

 private:
  class Impl;
  explicit WarcSink(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace argiope
