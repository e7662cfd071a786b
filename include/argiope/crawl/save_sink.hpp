// SaveSink: a crawl's pages and what they are shown with, in a folder that can be browsed from disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/base/random.hpp"
#include "argiope/crawl/crawl_sink.hpp"
#include "argiope/web/url.hpp"

namespace argiope {

struct SaveOptions {
  // The mirror's folder: there is none yet, or it is empty, or a mirror of the same crawl.
  std::string path;
  // Kept files survive a power cut.
  bool sync = true;
  // Where the crawl begins. A mirror of a crawl that began on other hosts is not taken for this one's. Empty: that is
  // not looked at.
  std::vector<Url> seeds;
};

// Keeps pages and assets while the crawl runs, and at its end, or when it is told to, puts each into its file:
// DIR/host/path/name.html. Links to what is saved lead to its file, through redirects too, and others to where they
// lead on the web. A run that goes on, or asks what has changed, writes only the files that are not as they should be.
// Answers other than 200 are not saved, nor are bodies that were cut short; what is gone (404, 410) is removed.
//
//   auto mirror = SaveSink::open({.path = "site"}, random);
//   options.sinks.push_back(*mirror);
//   options.requisites = Requisites::all;
//
// Threads: as CrawlSink.
class SaveSink final : public CrawlSink {
 public:
  // Errors: io, disk_full, busy (another process writes the mirror), wrong_format (a folder with files that is no
  // mirror, or one of another crawl), newer_version, corrupt.
  static Result<std::shared_ptr<SaveSink>> open(const SaveOptions& options, Random random);
  ~SaveSink() override;

  Result<void> take(const Exchange& exchange) override;
  std::size_t backlog() const noexcept override;
  Result<void> keep() override;
  // Makes the files of what was taken so far, while the crawl goes on: a crawl without end is to be browsed, too.
  // Blocks for as long as that takes, from any thread. Errors: as finish(), whose turn it is then to tell them again.
  Result<void> build();
  // Makes the files. Errors: as open(), and wrong_format where a file that is not of this mirror is in the way.
  Result<void> finish() override;
  bool lacks(std::string_view url) const override;
  bool can_lack() const noexcept override { return true; }
  std::string demand() const override;

  struct Totals {
    std::uint64_t files = 0;    // in the mirror
    std::uint64_t pages = 0;    // HTML pages among them
    std::uint64_t written = 0;  // by this run, each time that they were new or had changed
    std::uint64_t removed = 0;
    std::uint64_t cut_short = 0;  // answers of this run that were not saved because they are not whole
  };
  // Once it has finished.
  Totals totals() const;
  // The file of a URL, in the folder: where to begin to read. nullopt: it has none. Once it has finished.
  std::optional<std::string> file_of(const Url& url) const;

 private:
  class Impl;
  explicit SaveSink(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace argiope
