// UrlStore: where the URLs of a crawl are true. In memory (the reference) and in SQLite, one contract for both.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/store/detail/sync_mode.hpp"
#include "argiope/store/detail/url_record.hpp"

namespace argiope {

// Writes are submitted and committed later, in the order submitted, each batch whole or not at all. A read sees what
// was committed; after a flush() in between it sees what was submitted.
//
// Other programs may put URLs into the table `inbox` of a file, or into `urls` without ctime, which leads there by a
// trigger. They become URLs when the caller takes them (UrlBatch::taken).
//
// Ids are the caller's: each new URL gets next_id() and counts on from there. Nothing is looked up by URL; that no URL
// is stored twice is the caller's care (a FingerprintSet).
//
// Errors:  after a failed write the state of the store is unknown: it refuses all further writes with that error until
//          it is opened again. Committed data stays. Another process that holds the file's write lock is no failure:
//          the store waits, and logs it once; a flush() that has waited for `busy_limit` fails with `busy`. A file that
//          was deleted or replaced since it was opened fails the next write, and close(), with `io`.
// Threads: any, but close(). A visitor may submit, but not read.
class UrlStore {
 public:
  virtual ~UrlStore() = default;

  // Never waits. Dropped after a failure.
  virtual void submit(UrlBatch batch) = 0;
  // Waits until everything submitted is durable.
  virtual Result<void> flush() = 0;
  // The same without waiting: makes haste with what has been submitted, and flushed() says when it is durable. After a
  // failure it never is.
  virtual std::uint64_t begin_flush() = 0;
  virtual bool flushed(std::uint64_t flush) const = 0;
  // Records submitted and not yet committed: what a caller bounds by pausing.
  virtual std::size_t backlog() const = 0;
  virtual std::optional<Error> failure() const = 0;

  // Visits the records with url_id >= `from` in order, until `visit` returns false. To go on, a crawl needs all but
  // ctime, status_code, content_type, size, etag, last_modified, digest and error, which may then be left empty: to
  // read them all takes twice as long.
  using Visitor = std::function<bool(const UrlRecord&)>;
  enum class Fields : std::uint8_t { all, to_go_on };
  virtual Result<void> scan(std::int64_t from, const Visitor& visit, Fields fields = Fields::all) = 0;
  // Visits the facts a crawl needs to go on, in stretches by url_id, until `visit` returns false: each URL's
  // fingerprint, and the records that may matter. Several times as fast as scan(): other threads may read ahead. A
  // visitor may submit and flush; whether it sees of a later stretch what was submitted meanwhile is not said.
  struct KnownQuestion {
    std::int64_t from = 1;
    std::uint64_t seed = 0;  // of the fingerprints
    Fields fields = Fields::to_go_on;
    bool settled = false;  // whether records are wanted for which is_settled() holds
  };
  struct KnownUrls {
    std::span<const std::int64_t> ids;  // ascending
    std::span<const std::uint64_t> fingerprints;
    std::span<const UrlRecord> records;  // ascending too
    std::uint64_t most = 0;              // about so many URLs may be in the store, and hardly more
  };
  using KnownVisitor = std::function<bool(const KnownUrls&)>;
  virtual Result<void> scan_known(const KnownQuestion& question, const KnownVisitor& visit) = 0;
  // The same for those that are broken (is_broken()), without reading the others into memory.
  virtual Result<void> scan_broken(const Visitor& visit) = 0;
  // The same for those that redirect, to where `redirect_to` says.
  virtual Result<void> scan_redirects(const Visitor& visit) = 0;
  // Visits records that lie on a shelf, not on waiting, in its order. On delayed only what has a `due` counts.
  virtual Result<void> read_shelf(const ShelfRead& read, const ShelfSites& sites, const Visitor& visit) = 0;
  // Visits all that is known of where URLs lead, by url_id.
  virtual Result<void> scan_links(const std::function<bool(const UrlLinks&)>& visit) = 0;
  // Visits the links that are kept, by url_id of their page and then in its order; `place` counts from 0.
  using LinkVisitor = std::function<bool(std::int64_t url_id, std::uint32_t place, const KeptLink& link)>;
  virtual Result<void> scan_kept_links(const LinkVisitor& visit) = 0;
  // The same of one page.
  virtual Result<void> scan_kept_links(std::int64_t url_id, const LinkVisitor& visit) = 0;
  // Visits what is known of answers, by url_id; all but `anchors`.
  virtual Result<void> scan_facts(const std::function<bool(const PageFacts&)>& visit) = 0;
  // With `anchors`.
  virtual Result<std::optional<PageFacts>> facts(std::int64_t url_id) = 0;
  // Visits the notes whose names begin with `prefix`, by name.
  virtual Result<void> scan_notes(std::string_view prefix, const std::function<bool(const UrlNote&)>& visit) = 0;
  // The URLs that other programs have put in and nobody has taken yet, in its order, at most `limit`. None in memory.
  virtual Result<std::vector<GivenUrl>> read_given(std::size_t limit) = 0;
  // Visits the runs by their ids, and the changes of `from` and later in the order in which they were stored.
  virtual Result<void> scan_runs(const std::function<bool(const UrlRun&)>& visit) = 0;
  virtual Result<void> scan_changes(WallTime from, const std::function<bool(const UrlChange&)>& visit) = 0;
  virtual Result<std::optional<UrlRecord>> get(std::int64_t url_id) = 0;
  // One more than the largest id, those submitted included.
  virtual std::int64_t next_id() = 0;

  // flush(), then gives files and locks back. Nothing may be called afterwards.
  virtual Result<void> close() = 0;
};

struct UrlStoreOptions {
  SyncMode sync = SyncMode::full;
  // How long a commit may wait for more to come, while no caller waits for it.
  Duration linger = std::chrono::milliseconds{50};
  // How long opening, flush() and close() wait for another process that holds the write lock.
  Duration busy_limit = std::chrono::minutes{1};
  // Called before each commit that changes something, on a thread of the store: what must be kept before it counts, and
  // notes that are committed with it. Where it fails, nothing is committed, and the store has failed with that error. A
  // store in memory never calls it.
  std::function<Result<std::vector<UrlNote>>()> before_commit;
  // The file is for its owner alone, as it will hold secrets: one that others may read is one no longer (mode 0600).
  bool is_private = false;
  // The largest size of the database; 0: what the disk holds. For tests of full disks.
  std::int64_t max_bytes = 0;
};

// Opens or creates `path`; ":memory:" is a store in memory.
// Errors, each naming the file and changing nothing: wrong_format (a file that is not ours), newer_version, busy
// (another process writes it), io (cannot be read or written), corrupt, disk_full.
Result<std::unique_ptr<UrlStore>> open_url_store(const std::string& path, const UrlStoreOptions& options = {});

// Opens the database at `path` to look at it while a crawl may be writing it: nothing is ever changed, and a batch that
// is submitted is refused (failure()). Errors: as find_url().
Result<std::unique_ptr<UrlStore>> open_url_store_to_look(const std::string& path);

// The record that the database at `path` has of `url`, as Url spells it, and the URL that first linked to it. Only
// looks, so that a crawl that runs is not disturbed; reads the whole table. Errors: as open_url_store without
// busy, and older_version of a database that open_url_store() would bring up to date.
struct FoundUrl {
  UrlRecord record;
  std::string referrer;  // empty: a seed
};
Result<std::optional<FoundUrl>> find_url(const std::string& path, std::string_view url);

}  // namespace argiope
