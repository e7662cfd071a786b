// The newest capture of each URL in some WARC files, and where the payloads are that revisits refer to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/web/url.hpp"
#include "warc/internal/cdxj.hpp"
#include "warc/internal/warc_reader.hpp"
#include "warc/payload_table.hpp"
#include "warc/warc_unpacked.hpp"

namespace argiope {

// An HTTP message as it was captured.
struct WarcMessage {
  std::string head;
  std::string payload;
  std::string address;    // of the server; empty: not told
  std::string truncated;  // WARC-Truncated
};

// Memory:  some 60 bytes a URL, 40 for each of its older captures, to which revisits may refer, and 16 for each id of a
//          capture of which no index tells.
// Threads: reading from any, each with readers of its own.
class WarcCaptures {
 public:
  // Errors: as WarcReplay::open().
  static Result<WarcCaptures> open(const std::vector<std::string>& files);

  std::size_t size() const noexcept { return places_.size(); }
  const std::vector<Url>& seeds() const noexcept { return seeds_; }

  // One thread's.
  class Reader;

 private:
  struct Place {
    std::uint64_t time = 0;  // its timestamp as a number
    std::uint32_t file = 0;
    bool is_revisit = false;
    std::uint64_t offset = 0;
  };
  // Where the records of a file are of which an index tells; and what was odd about the file so far.
  struct FileReading;
  struct FirstPage {
    std::uint32_t file = 0;
    std::uint64_t offset = 0;
    std::string url;
  };

  Result<void> add_file(const std::string& path);
  // One that is of another file by samples of it is passed over.
  Result<void> read_index(const std::string& index, FileReading& file);
  static Result<bool> are_in_file(const std::vector<CdxjLine>& lines, const std::string& path);
  // Reads the records of which no index tells.
  Result<void> read_file(FileReading& file);
  // From where the reader is. `behind` is what their offsets are counted from. False: what follows is packed together.
  Result<bool> read_records(WarcReader& reader, FileReading& file, std::uint64_t behind);
  // Unpacks what is packed together, and reads that. Where to go on in the file.
  Result<std::uint64_t> read_unpacked(const WarcBytes& packed, FileReading& file, std::uint64_t offset);
  Result<void> read_seeds(const std::string& path);
  // Of a warcinfo record; of any other none.
  void take_seeds(const WarcRecord& record);
  static void tell_odd(FileReading& file, std::string_view what);
  // Goes on behind a record that cannot be read. False: no record follows.
  static Result<bool> read_past(WarcReader& reader, const Error& trouble, FileReading& file);
  void add(const CdxjLine& capture);
  // A capture of which no index tells, unless the request behind it shows that it is the answer to something else than
  // GET.
  void add_waiting(FileReading& file);
  void add_id(std::string_view record_id, std::uint64_t offset);
  // Keeps a capture that is not the newest of its URL.
  void add_older(const std::string& url, const Place& place);
  // The newest capture of the URL that is no revisit; null: none.
  const Place* original_of(const std::string& url) const;
  // The places that a revisit of `url` at `time` (as Place::time) may mean; 0: the newest that is no revisit.
  std::vector<Place> captures_of(const std::string& url, std::uint64_t time) const;
  std::uint32_t last_file() const noexcept { return static_cast<std::uint32_t>(files_.size() - 1); }

  // Offsets from here on are in `unpacked_`.
  static constexpr std::uint64_t kUnpacked = PayloadPlace::kMostOffset / 2;

  std::vector<std::string> files_;
  std::optional<WarcUnpacked> unpacked_;                // of all files together
  std::unordered_map<std::uint64_t, Place> places_;     // by the fingerprint of the URL
  std::unordered_map<std::uint64_t, Place> originals_;  // the same of URLs whose newest capture is a revisit
  std::unordered_map<std::uint64_t, Place> older_;  // by the fingerprint of URL and time: those that are not the newest
  PayloadTable payloads_;
  PayloadTable by_id_;  // by the fingerprint of WARC-Record-ID
  std::vector<Url> seeds_;
  std::optional<FirstPage> first_page_;
};

class WarcCaptures::Reader {
 public:
  // `captures` outlives it.
  explicit Reader(const WarcCaptures& captures) : captures_(captures), readers_(captures.files_.size() + 1) {}

  // The capture of `url`; false: there is none. Errors: io, corrupt, not_found (of a revisit: what it refers to is in
  // none of the files).
  Result<bool> read(const Url& url, WarcMessage& message);

 private:
  Result<void> read_record(std::uint32_t file, std::uint64_t offset);
  Result<WarcReader*> reader_of(std::uint32_t file, bool is_unpacked);
  void take_message(WarcMessage& message) const;
  Result<void> read_revisited(WarcMessage& message);
  // Reads what a revisit repeats, which may be a revisit too.
  Result<void> read_original(const WarcHead& revisit);
  Result<bool> read_referred(const WarcHead& revisit);
  // Reads the record of a place, if it may be what the revisit repeats.
  Result<bool> read_repeated(const WarcHead& revisit, std::uint32_t file, std::uint64_t offset);

  const WarcCaptures& captures_;
  std::vector<std::unique_ptr<WarcReader>> readers_;  // of the files, and of what was unpacked
  WarcRecord record_;
};

}  // namespace argiope
