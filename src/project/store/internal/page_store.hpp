// PageStore: where the pages of projects are true, with their results, rounds and versions: the file pages.db.
//
//   projects ──< pages ──< results        feed: what became of results, in order; each sink reads it behind a cursor
//       │  └───< rounds                   versions: what a project's file and script were
//
// Page ids are the caller's: project_id · 2⁴⁰ + a number that counts from 1 in each project, so that a project's pages
// lie together.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/store/detail/url_store.hpp"
#include "project/rules/internal/field_count.hpp"
#include "project/rules/internal/known_page.hpp"

namespace argiope {

using ProjectId = std::int32_t;  // from 1; not given out again
using PageId = std::int64_t;
inline constexpr int kPageNumberBits = 40;
constexpr PageId first_page_id(ProjectId project) noexcept { return (PageId{project} << kPageNumberBits) + 1; }
constexpr ProjectId project_of(PageId page) noexcept { return static_cast<ProjectId>(page >> kPageNumberBits); }
constexpr std::uint64_t number_of(PageId page) noexcept {
  return static_cast<std::uint64_t>(page) & ((1ULL << kPageNumberBits) - 1);
}

// A project as it is stored. Its definition is that of the newest version.
struct ProjectRecord {
  ProjectId id = 0;
  std::string name;
  std::int64_t version = 0;  // the number of the newest one
  std::string status;        // "RUNNING"
  std::string group;
  std::optional<double> rate;  // set beside the file, and before it; nullopt: as the file says
  std::optional<std::uint32_t> burst;
  std::string pause;        // FailurePause::stored()
  std::string counters;     // ProjectCounters::stored()
  std::string description;  // what its script has said of itself, JSON; empty: nothing yet
  std::string trouble;      // why it stands still; empty: it does not
  WallTime made_at{}, changed_at{};
  std::optional<WallTime> deleted_at;  // to be forgotten 24 h later
  // When its ticks and starts were last due, by name: JSON object of RFC 3339 times.
  std::string ticks;
  // It is to start as soon as its script has said what it is; the cause of the start.
  std::optional<std::string> start_wanted;
  friend bool operator==(const ProjectRecord&, const ProjectRecord&) = default;
};

// The project as it was since a time.
struct ProjectVersion {
  ProjectId project = 0;
  std::int64_t number = 0;  // from 1
  WallTime made_at{};
  std::string text;    // of the project's file, as JSON (read_project())
  std::string source;  // the same as it was written, TOML; empty where it came as JSON
  std::string script;  // of the processor, where it is a file; empty: none
  std::string note;    // who made it, or why
  friend bool operator==(const ProjectVersion&, const ProjectVersion&) = default;
};

struct PageRecord {
  PageId id = 0;
  std::uint64_t fingerprint = 0;  // of its name in its project: page_fingerprint()
  std::uint32_t host_id = 0;      // of HostRow
  std::string name;
  std::string url;  // empty: the name is its URL
  std::string rule;
  std::string settings;  // PageSettings as JSON; empty: nothing said
  std::string context;   // JSON; empty: null
  std::string save;      // JSON; empty: null
  KnownPage known;
  std::int32_t status_code = 0;  // of the last visit
  std::uint32_t crashes = 0;     // of its processor over this page, in a row
  std::string etag, last_modified;
  std::uint64_t digest = 0;  // of the last body; 0: none
  std::string error;         // of the last visit; empty: it went well
  std::string track;         // of the last visit: what it did, JSON (track_of()); empty: nothing is known
  std::int64_t round = 0;    // to which its current visit belongs; 0: to none
  PageId from = 0;           // the page that asked for it first; 0: none did

  const std::string& address() const noexcept { return url.empty() ? name : url; }
  friend bool operator==(const PageRecord&, const PageRecord&) = default;
};
std::uint64_t page_fingerprint(std::string_view name) noexcept;

// A change of a page that is there: what has ended of a visit, or what an ask has changed. Texts that are nullopt stay.
struct PageChange {
  PageId id = 0;
  KnownPage known;
  std::int64_t round = 0;
  std::optional<std::string> rule, settings, context, save;
  std::optional<std::string> url;
  struct Outcome {
    std::int32_t status_code = 0;
    std::uint32_t crashes = 0;
    std::string etag, last_modified;
    std::uint64_t digest = 0;
    std::string error, track;
  };
  std::optional<Outcome> outcome;
};

struct HostRow {
  std::uint32_t id = 0;  // from 1
  std::string site;      // Url::site_key(); "data:" for pages without a server
};

// The result of a page's visit under a part. `value` nullopt: it is gone.
struct ResultChange {
  PageId page = 0;
  std::string part;
  std::optional<std::string> value;
};
// Of a visit that gave results: those of the page's parts that are not named among `keep` are gone.
struct ResultsReplaced {
  PageId page = 0;
  std::vector<std::string> keep;
};

// A message is a page of its own, whatever its sender calls it: none that is fetched, and not the page whose URL it may
// name.
std::string page_of_message(std::string_view url);
// The URL that readers see of a page: of one that has none its name, of a message what its sender calls it.
std::string_view shown_url(std::string_view name, std::string_view url) noexcept;

struct ResultRow {
  ProjectId project = 0;
  PageId page = 0;
  std::string page_name, url, rule;
  std::string part;
  std::string value;  // JSON
  WallTime added_at{}, changed_at{};
};

enum class ResultNews : std::uint8_t { added, changed, gone };
std::string_view to_string(ResultNews news) noexcept;

// The news of a result, in the order of its commits; numbers grow, with gaps.
struct FeedRow {
  std::int64_t number = 0;
  ProjectId project = 0;
  PageId page = 0;
  std::string page_name, url, rule, part;
  ResultNews news{};
  std::string value;  // JSON; of what is gone what it was
  WallTime at{};
};

// From a start until nothing it led to is outstanding.
struct RoundRecord {
  ProjectId project = 0;
  std::int64_t number = 0;  // from 1, in its project
  WallTime began{};
  std::optional<WallTime> ended;
  // Its script has been told that it has ended, or there is none to tell. A script is told of one round at a time, in
  // their order.
  bool finished_told = false;
  std::uint64_t pages = 0, failed = 0, results = 0;  // visits that ended
  std::string cause;                                 // "start", "every", "schedule"
  std::vector<FieldCount> fields;                    // of what its visits have given
  std::vector<std::string> alarms;                   // what was wrong with it when it ended, a sentence each
  friend bool operator==(const RoundRecord&, const RoundRecord&) = default;
};

struct SinkRow {
  ProjectId project = 0;
  std::string name;         // of the sink in its project
  std::int64_t cursor = 0;  // the feed's number up to which it has all
  std::string place;        // what it needs to go on: of a file its name and length, JSON
  std::string trouble;      // why it is behind; empty: it is not
};

// The sinks that a project has: rows of others of its are removed.
struct SinksKept {
  ProjectId project = 0;
  std::vector<std::string> names;
};

// Rows of a project's feed that no sink needs: numbers up to `up_to`, as far as they are older than `before`. A batch
// removes some thousand of them at most, the oldest first; so it is to be said again now and then, and costs nothing
// where nothing is old.
struct FeedPrune {
  ProjectId project = 0;
  std::int64_t up_to = 0;  // the smallest cursor of the project's sinks
  WallTime before{};
};

// The rows that are written together, or not at all.
struct PageBatch {
  std::vector<ProjectRecord> projects;  // new ones, and changes as a whole
  std::vector<ProjectVersion> versions;
  std::vector<HostRow> hosts;
  std::vector<PageRecord> added;
  std::vector<PageChange> changes;
  std::vector<ResultsReplaced> replaced;  // before `results`
  std::vector<ResultChange> results;
  std::vector<RoundRecord> rounds;  // new ones, and changes as a whole
  std::vector<SinkRow> sinks;
  std::vector<SinksKept> kept_sinks;  // after `sinks`
  std::vector<FeedPrune> pruned;
  // Projects with all they have. From the commit on reads find nothing of them; the rows are removed behind it, in
  // steps between other batches, and after a death by the next owner.
  std::vector<ProjectId> forgotten;
  WallTime at{};  // of results and the feed

  std::size_t size() const noexcept;
};

// Times are kept in whole milliseconds, none before 1970. A page that is `visiting` when an owner opens the file has
// lost its visit with the owner before: it is `waiting` from then on, for a visit that is due at once.
//
// Writes are submitted and committed later, in their order, each batch whole or not at all, many in one transaction; a
// thread of the store does it. A read sees what was committed.
//
// Errors:  after a failed write it refuses all further ones with that error until it is opened again; what was
//          committed stays.
// Threads: the reads are the owner's thread's; submit(), begin_flush(), flushed(), backlog() and failure() any.
class PageStore {
 public:
  virtual ~PageStore() = default;

  virtual void submit(PageBatch batch) = 0;
  virtual Result<void> flush() = 0;
  virtual std::uint64_t begin_flush() = 0;
  virtual bool flushed(std::uint64_t flush) const = 0;
  virtual std::size_t backlog() const = 0;
  virtual std::optional<Error> failure() const = 0;
  // Called on the store's thread after each commit that has put something into the feed, and must not wait; null:
  // nobody is, and nobody is being called when this returns.
  virtual void on_feed(std::function<void()> told) = 0;

  virtual Result<std::vector<ProjectRecord>> projects() = 0;  // deleted ones, too, that are not forgotten yet
  // One more than the largest that there ever was, those submitted and those forgotten included.
  virtual ProjectId next_project_id() = 0;
  // Newest first.
  virtual Result<std::vector<ProjectVersion>> versions(ProjectId project, std::size_t most) = 0;
  virtual Result<std::optional<ProjectVersion>> version(ProjectId project, std::int64_t number) = 0;
  virtual Result<std::vector<HostRow>> hosts() = 0;

  // The columns that must be known of every page of a project before it goes on, by id, and quickly: no texts.
  struct KnownRow {
    PageId id = 0;
    std::uint64_t fingerprint = 0;
    std::uint32_t host_id = 0;
    std::string_view rule;  // valid during the visit
    KnownPage known;
    std::int64_t round = 0;
  };
  // Scans read a stretch of rows at a time and visit them without a lock: a visitor may call whatever it likes, and
  // each stretch is as it was committed when the scan came to it.
  virtual Result<void> scan_known(ProjectId project, const std::function<bool(const KnownRow&)>& visit) = 0;
  // Those of `ids` that are there, in their order.
  virtual Result<std::vector<PageRecord>> pages(std::span<const PageId> ids) = 0;
  // By id from `after` on, all of a project; for lists and exports.
  virtual Result<void> scan_pages(ProjectId project, PageId after,
                                  const std::function<bool(const PageRecord&)>& visit) = 0;
  // By name. There is no index for it: reads the narrow columns of all the project's pages, a second for some five
  // million.
  virtual Result<std::optional<PageRecord>> find_page(ProjectId project, std::string_view name) = 0;

  // By page and part, behind `after`.
  struct ResultPlace {
    PageId page = 0;
    std::string part;
  };
  virtual Result<void> scan_results(ProjectId project, const std::optional<ResultPlace>& after,
                                    const std::function<bool(const ResultRow&)>& visit) = 0;
  virtual Result<std::uint64_t> count_results(ProjectId project) = 0;
  // At most `most` rows of the project's feed with numbers above `after`, and no more behind the one with which values
  // come to kMostFeedBytes. An empty list is the feed's end.
  static constexpr std::size_t kMostFeedBytes = std::size_t{16} << 20;
  virtual Result<std::vector<FeedRow>> read_feed(ProjectId project, std::int64_t after, std::size_t most) = 0;
  // The newest first, with numbers below `before`: at most `most`, and no more behind the one with which values come to
  // `most_bytes`.
  virtual Result<std::vector<FeedRow>> read_feed_back(ProjectId project, std::int64_t before, std::size_t most,
                                                      std::size_t most_bytes) = 0;
  // Newest first.
  virtual Result<std::vector<RoundRecord>> rounds(ProjectId project, std::size_t most) = 0;
  virtual Result<std::vector<SinkRow>> sinks(ProjectId project) = 0;

  // flush(), then gives files and locks back. Nothing may be called afterwards.
  virtual Result<void> close() = 0;
};

struct PageStoreOptions {
  SyncMode sync = SyncMode::full;
  Duration linger = std::chrono::milliseconds{50};  // how long a commit may wait for more, while nobody waits for it
  Duration busy_limit = std::chrono::minutes{1};
  // The file is for its owner alone, as it will hold secrets (cookies, passwords of proxies): one that others may read
  // is one no longer.
  bool is_private = false;
  std::int64_t max_bytes = 0;  // the largest size of the database; 0: what the disk holds. For tests of full disks
};

// Opens or creates `path`, for its one owner; ":memory:" is in memory, and contains the same SQL.
// Errors, each naming the file and changing nothing: wrong_format, newer_version, busy (another process owns it), io,
// corrupt, disk_full.
Result<std::unique_ptr<PageStore>> open_page_store(const std::string& path, const PageStoreOptions& options = {});
// To look at it while its owner may write: nothing of it is ever changed but its version, where an older Argiope made
// it, and a batch is refused. Errors: those of open_page_store(); of an older version also busy while another process
// owns it, and io where it cannot be written, each with what to do.
Result<std::unique_ptr<PageStore>> open_page_store_to_look(const std::string& path);

}  // namespace argiope
