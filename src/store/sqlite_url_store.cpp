// The SQLite UrlStore: one table, indexes of nothing but what lies on a shelf, one writer thread that commits in groups, one
// connection for reading.
//
// Whatever was submitted while the last commit ran goes into the next one, so that the price of a sync is shared. While
// nobody waits for it, a commit lingers a little for more.
#include "store/sqlite_url_store.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "store/memory_url_store.hpp"
#include "store/sqlite.hpp"
#include "store/sqlite_file.hpp"

namespace argiope {
namespace {

constexpr std::int64_t kApplicationId = 0x41726769;  // "Argi"
// A backlog of so many records is committed without lingering.
constexpr std::size_t kEagerBacklog = 20'000;
constexpr int kBusyWaitMs = 50;  // between two looks whether anybody waits, while another process holds the write lock

constexpr const char* kSchema = R"sql(
CREATE TABLE urls (
  url_id        INTEGER PRIMARY KEY,
  url           TEXT NOT NULL,
  ctime         INTEGER NOT NULL,  -- first met; milliseconds since 1970
  mtime         INTEGER,           -- last fetched or given up
  state         TEXT NOT NULL DEFAULT 'queued',  -- queued, done, failed, excluded
  due           INTEGER,           -- not to be fetched before
  depth         INTEGER NOT NULL DEFAULT 0,      -- links from a seed
  priority      INTEGER NOT NULL DEFAULT 0,      -- higher first
  status_code   INTEGER,
  content_type  TEXT,
  size          INTEGER,           -- of the decoded body, bytes
  attempts      INTEGER NOT NULL DEFAULT 0,
  referrer      INTEGER,           -- url_id of the page that first linked here; NULL for a seed
  redirect_to   TEXT,
  etag          TEXT,
  last_modified TEXT,
  digest        TEXT,              -- XXH3-128 of the decoded body
  error         TEXT
);
CREATE VIEW pages AS
  SELECT u.url_id, u.url, u.state, u.status_code, u.content_type, u.size, u.depth,
         datetime(u.ctime / 1000, 'unixepoch') AS found, datetime(u.mtime / 1000, 'unixepoch') AS fetched,
         r.url AS linked_from, u.redirect_to, u.error
  FROM urls u LEFT JOIN urls r ON r.url_id = u.referrer;
)sql";

// Version 2: what waits outside of a crawl's memory is found again in order. Rows of version 1 lie on no shelf; the crawl
// that opens them next finds them by its scan, and puts those it has no room for where they belong.
constexpr const char* kShelves = R"sql(
ALTER TABLE urls ADD COLUMN shelf INTEGER;  -- 1 ready, 2 set aside, 3 delayed; NULL: in a crawl's memory, or not to be fetched
ALTER TABLE urls ADD COLUMN site INTEGER;   -- on a shelf: XXH3-64 of scheme, host and port
CREATE INDEX urls_ready ON urls (priority DESC, url_id, site) WHERE shelf = 1;
CREATE INDEX urls_set_aside ON urls (site, priority DESC, url_id) WHERE shelf = 2;
CREATE INDEX urls_delayed ON urls (due, url_id, site) WHERE shelf = 3;
)sql";

// Version 3: why a URL is excluded, or done in part. What the first versions have left out of a page's links they have
// written down nowhere; the rest can be told. A 200 without a digest was asked by HEAD, or is an empty page, which costs one
// request.
constexpr const char* kReasons = R"sql(
ALTER TABLE urls ADD COLUMN reason TEXT;        -- why it is excluded, or done in part: see docs/crawl.md
ALTER TABLE urls ADD COLUMN met_limit INTEGER;  -- the limit that was met, for reasons that have one
CREATE TABLE links (   -- of crawls with --max-depth or --check-links
  url_id   INTEGER PRIMARY KEY,
  redirect INTEGER NOT NULL,
  targets  BLOB NOT NULL  -- url_ids, ascending: the differences as LEB128
);
UPDATE urls SET reason = 'robots' WHERE state = 'excluded' AND error = 'robots.txt';
UPDATE urls SET reason = 'pages_per_host', met_limit = 1 WHERE state = 'excluded' AND error = 'pages_per_host';
UPDATE urls SET state = 'failed', error = coalesce(error, 'HTTP ' || status_code)
  WHERE state = 'done' AND (status_code >= 500 OR status_code IN (408, 425, 429));
UPDATE urls SET reason = 'cut_off', met_limit = size WHERE state = 'done' AND error LIKE 'cut off at % bytes';
UPDATE urls SET reason = 'redirects', met_limit = 10 WHERE state = 'done' AND error LIKE 'more than % redirects';
UPDATE urls SET reason = 'checked'
  WHERE state = 'done' AND reason IS NULL AND digest IS NULL AND redirect_to IS NULL AND error IS NULL;
DROP VIEW pages;
CREATE VIEW pages AS
  SELECT u.url_id, u.url, u.state, u.reason, u.status_code, u.content_type, u.size, u.depth,
         datetime(u.ctime / 1000, 'unixepoch') AS found, datetime(u.mtime / 1000, 'unixepoch') AS fetched,
         r.url AS linked_from, u.redirect_to, u.error
  FROM urls u LEFT JOIN urls r ON r.url_id = u.referrer;
)sql";

constexpr const char* kColumns =
    "url_id, url, ctime, mtime, state, due, depth, priority, status_code, content_type, size, attempts, referrer, "
    "redirect_to, etag, last_modified, digest, error, shelf, site, reason, met_limit";

constexpr const char* kColumnsToGoOn =
    "url_id, url, state, mtime, due, depth, priority, attempts, referrer, redirect_to, shelf, site, reason, met_limit";

std::int64_t to_ms(WallTime time) noexcept {
  return std::chrono::floor<std::chrono::milliseconds>(time).time_since_epoch().count();
}
WallTime from_ms(std::int64_t ms) noexcept { return WallTime{std::chrono::milliseconds{ms}}; }

UrlState parse_state(std::string_view text) noexcept {
  for (const UrlState state : {UrlState::queued, UrlState::done, UrlState::failed, UrlState::excluded}) {
    if (text == to_string(state)) return state;
  }
  return UrlState::queued;
}

UrlReason parse_reason(std::string_view text) noexcept {
  if (text.empty()) return UrlReason::none;
  for (std::size_t i = 1; i < kUrlReasons; ++i) {
    if (text == to_string(static_cast<UrlReason>(i))) return static_cast<UrlReason>(i);
  }
  return UrlReason::none;
}

// Ids in ascending order, as the differences in LEB128.
void append_ids(std::string& out, const std::vector<std::int64_t>& ids) {
  std::int64_t last = 0;
  for (const std::int64_t id : ids) {
    auto rest = static_cast<std::uint64_t>(id - std::exchange(last, id));
    for (; rest >= 0x80; rest >>= 7) out += static_cast<char>(rest | 0x80);
    out += static_cast<char>(rest);
  }
}

void read_ids(std::string_view bytes, std::vector<std::int64_t>& ids) {
  std::uint64_t id = 0;
  std::uint64_t difference = 0;
  unsigned shift = 0;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (shift < 64) difference |= std::uint64_t{byte & 0x7fu} << shift;
    shift += 7;
    if (byte & 0x80) continue;
    id += std::exchange(difference, 0);
    shift = 0;
    ids.push_back(static_cast<std::int64_t>(id));
  }
}

void read_record(const SqliteStatement& row, UrlRecord& record) {
  record.url_id = row.number(0);
  record.url = row.text(1);
  record.ctime = from_ms(row.number(2));
  record.mtime = from_ms(row.number(3));
  record.state = parse_state(row.text(4));
  record.due = from_ms(row.number(5));
  record.depth = static_cast<std::uint32_t>(row.number(6));
  record.priority = static_cast<std::int32_t>(row.number(7));
  record.status_code = static_cast<int>(row.number(8));
  record.content_type = row.text(9);
  record.size = row.number(10);
  record.attempts = static_cast<std::uint32_t>(row.number(11));
  record.referrer = row.number(12);
  record.redirect_to = row.text(13);
  record.etag = row.text(14);
  record.last_modified = row.text(15);
  record.digest = row.text(16);
  record.error = row.text(17);
  record.shelf = static_cast<UrlShelf>(row.number(18));
  record.site = static_cast<std::uint64_t>(row.number(19));
  record.reason = parse_reason(row.text(20));
  record.limit = row.number(21);
}

void read_to_go_on(const SqliteStatement& row, UrlRecord& record) {
  record.url_id = row.number(0);
  record.url = row.text(1);
  record.state = parse_state(row.text(2));
  record.mtime = from_ms(row.number(3));
  record.due = from_ms(row.number(4));
  record.depth = static_cast<std::uint32_t>(row.number(5));
  record.priority = static_cast<std::int32_t>(row.number(6));
  record.attempts = static_cast<std::uint32_t>(row.number(7));
  record.referrer = row.number(8);
  record.redirect_to = row.text(9);
  record.shelf = static_cast<UrlShelf>(row.number(10));
  record.site = static_cast<std::uint64_t>(row.number(11));
  record.reason = parse_reason(row.text(12));
  record.limit = row.number(13);
}

void tell_of_foreign_lock(const std::string& path) {
  spdlog::warn("database {}: another process holds its write lock; waiting for it, nothing is lost", path);
}

// What is waited for while the file is opened.
struct OpeningWait {
  const std::string& path;
  Duration limit;
  bool told = false;
};

int wait_to_open(void* context, int attempts) {
  auto& wait = *static_cast<OpeningWait*>(context);
  if (attempts * std::chrono::milliseconds{kBusyWaitMs} > wait.limit) return 0;
  if (!std::exchange(wait.told, true)) tell_of_foreign_lock(wait.path);
  sqlite3_sleep(kBusyWaitMs);
  return 1;
}

class SqliteUrlStore final : public UrlStore {
 public:
  SqliteUrlStore(std::string path, FileLock lock, SqliteDatabase writer, SqliteDatabase reader,
                 const UrlStoreOptions& options)
      : path_(std::move(path)),
        lock_(std::move(lock)),
        writer_(std::move(writer)),
        reader_(std::move(reader)),
        options_(options) {}
  ~SqliteUrlStore() override { (void)close(); }

  Result<void> start() {
    auto insert = writer_.prepare(
        "INSERT OR IGNORE INTO urls (url_id, url, ctime, depth, priority, referrer) VALUES (?, ?, ?, ?, ?, ?)");
    auto insert_excluded = writer_.prepare(
        "INSERT OR IGNORE INTO urls (url_id, url, ctime, depth, priority, referrer, reason, state) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, 'excluded')");
    // What every outcome changes; a page that was not modified keeps the rest.
    const std::string outcome =
        "UPDATE urls SET state = ?2, mtime = ?3, due = ?4, status_code = ?5, attempts = ?6, redirect_to = ?7, error = "
        "?8, shelf = NULL, site = NULL";
    auto update = writer_.prepare(
        outcome +
        ", content_type = ?9, size = ?10, etag = ?11, last_modified = ?12, digest = ?13, reason = ?14, met_limit = ?15 "
        "WHERE url_id = ?1");
    // What has not changed has the status that it had; of an older version's 304 it was 200.
    std::string touched = outcome;
    touched.replace(touched.find("?5"), 2, "coalesce(nullif(status_code, 304), 200)");
    auto touch = writer_.prepare(touched + " WHERE url_id = ?1");
    auto select = reader_.prepare(fmt::format("SELECT {} FROM urls WHERE url_id = ?", kColumns));
    auto scan = reader_.prepare(fmt::format("SELECT {} FROM urls WHERE url_id >= ? ORDER BY url_id", kColumns));
    auto scan_to_go_on =
        reader_.prepare(fmt::format("SELECT {} FROM urls WHERE url_id >= ? ORDER BY url_id", kColumnsToGoOn));
    // is_broken(), in SQL.
    auto scan_broken =
        reader_.prepare(fmt::format("SELECT {} FROM urls WHERE (state = 'failed' AND reason IS NOT 'host_down') OR (state = 'done' AND (status_code >= "
                                    "400 OR (status_code IN (301, 302, "
                                    "303, 307, 308) AND error IS NOT NULL))) ORDER BY url_id",
                                    kColumns));
    auto scan_redirects =
        reader_.prepare(fmt::format("SELECT {} FROM urls WHERE redirect_to IS NOT NULL ORDER BY url_id", kColumns));
    auto move = writer_.prepare("UPDATE urls SET shelf = ?2, site = ?3, priority = ?4, depth = ?5 WHERE url_id = ?1");
    auto nearer = writer_.prepare("UPDATE urls SET depth = ?2, priority = ?3 WHERE url_id = ?1");
    auto put_links = writer_.prepare("INSERT OR REPLACE INTO links (url_id, redirect, targets) VALUES (?, ?, ?)");
    auto scan_links = reader_.prepare("SELECT url_id, redirect, targets FROM links ORDER BY url_id");
    // In two steps, of the same order and beyond it, because as one SQLite would not read them from the index in order.
    const auto shelf = [&](std::string_view where, std::string_view order) {
      return reader_.prepare(fmt::format("SELECT {} FROM urls WHERE {} ORDER BY {} LIMIT ?6", kColumns, where, order));
    };
    auto ready_equal =
        shelf("shelf = 1 AND priority = ?1 AND url_id > ?2 AND (site & 2147483647) % ?4 = ?3", "url_id");
    auto ready_below =
        shelf("shelf = 1 AND priority < ?1 AND (site & 2147483647) % ?4 = ?3", "priority DESC, url_id");
    auto aside_equal = shelf("shelf = 2 AND site = ?5 AND priority = ?1 AND url_id > ?2", "url_id");
    auto aside_below = shelf("shelf = 2 AND site = ?5 AND priority < ?1", "priority DESC, url_id");
    auto delayed_equal = shelf("shelf = 3 AND due = ?1 AND url_id > ?2 AND (site & 2147483647) % ?4 = ?3", "url_id");
    auto delayed_after = shelf("shelf = 3 AND due > ?1 AND (site & 2147483647) % ?4 = ?3", "due, url_id");
    for (auto* statement :
         {&insert, &insert_excluded, &nearer, &put_links, &scan_links, &update, &touch, &select, &scan, &scan_to_go_on, &scan_broken, &scan_redirects, &move, &ready_equal,
          &ready_below, &aside_equal, &aside_below, &delayed_equal, &delayed_after}) {
      if (!*statement) return std::unexpected(std::move(statement->error()));
    }
    insert_ = std::move(*insert);
    insert_excluded_ = std::move(*insert_excluded);
    nearer_ = std::move(*nearer);
    put_links_ = std::move(*put_links);
    scan_links_ = std::move(*scan_links);
    update_ = std::move(*update);
    touch_ = std::move(*touch);
    select_ = std::move(*select);
    scan_ = std::move(*scan);
    scan_to_go_on_ = std::move(*scan_to_go_on);
    scan_broken_ = std::move(*scan_broken);
    scan_redirects_ = std::move(*scan_redirects);
    move_ = std::move(*move);
    ready_ = {std::move(*ready_equal), std::move(*ready_below)};
    aside_ = {std::move(*aside_equal), std::move(*aside_below)};
    delayed_ = {std::move(*delayed_equal), std::move(*delayed_after)};
    auto last = reader_.query_number("SELECT coalesce(max(url_id), 0) FROM urls");
    if (!last) return std::unexpected(std::move(last.error()));
    last_id_ = *last;
    thread_ = std::thread([this] { write_loop(); });
    return {};
  }

  void submit(UrlBatch batch) override {
    const std::size_t records = batch.size();
    if (records == 0) return;
    std::lock_guard lock(mutex_);
    if (failure_) return;
    for (const NewUrl& found : batch.discovered) last_id_ = std::max(last_id_, found.url_id);
    queue_.push_back(std::move(batch));
    backlog_ += records;
    ++submitted_;
    if (queue_.size() == 1 || backlog_ >= kEagerBacklog) wake_writer_.notify_one();
  }

  Result<void> flush() override {
    std::unique_lock lock(mutex_);
    const std::uint64_t target = submitted_;
    ++flushing_;
    wake_writer_.notify_one();
    committed_changed_.wait(lock, [&] { return committed_ >= target || failure_; });
    --flushing_;
    if (failure_) return std::unexpected(*failure_);
    return {};
  }

  std::uint64_t begin_flush() override {
    std::lock_guard lock(mutex_);
    hasten_ = submitted_;
    wake_writer_.notify_one();
    return submitted_;
  }

  bool flushed(std::uint64_t flush) const override {
    std::lock_guard lock(mutex_);
    return committed_ >= flush && !failure_;
  }

  std::size_t backlog() const override {
    std::lock_guard lock(mutex_);
    return backlog_;
  }

  std::optional<Error> failure() const override {
    std::lock_guard lock(mutex_);
    return failure_;
  }

  Result<void> scan(std::int64_t from, const Visitor& visit, Fields fields = Fields::all) override {
    std::lock_guard lock(read_mutex_);
    SqliteStatement& query = fields == Fields::all ? scan_ : scan_to_go_on_;
    query.bind(1, from);
    return visit_rows(query, visit, fields == Fields::all ? read_record : read_to_go_on);
  }

  Result<void> scan_broken(const Visitor& visit) override {
    std::lock_guard lock(read_mutex_);
    return visit_rows(scan_broken_, visit);
  }

  Result<void> scan_redirects(const Visitor& visit) override {
    std::lock_guard lock(read_mutex_);
    return visit_rows(scan_redirects_, visit);
  }

  Result<void> read_shelf(const ShelfRead& read, const Visitor& visit) override {
    std::lock_guard lock(read_mutex_);
    const bool delayed = read.shelf == UrlShelf::delayed;
    std::size_t left = read.limit;
    bool more = true;
    ShelfQueries& queries = delayed ? delayed_ : read.shelf == UrlShelf::set_aside ? aside_ : ready_;
    for (SqliteStatement& query : queries) {
      if (left == 0 || !more) break;
      query.bind(1, delayed ? to_ms(read.due) : std::int64_t{read.priority});
      query.bind(2, read.url_id);  // bound to nothing beyond the order
      if (read.shelf == UrlShelf::set_aside) {
        query.bind(5, static_cast<std::int64_t>(read.site));
      } else {
        query.bind(3, std::int64_t{read.part});
        query.bind(4, std::int64_t{read.parts});
      }
      query.bind(6, static_cast<std::int64_t>(left));
      auto visited = visit_rows(query, [&](const UrlRecord& record) {
        --left;
        return more = visit(record);
      });
      if (!visited) return visited;
    }
    return {};
  }

  Result<void> scan_links(const std::function<bool(const UrlLinks&)>& visit) override {
    std::lock_guard lock(read_mutex_);
    UrlLinks links;
    int code = SQLITE_ROW;
    while ((code = scan_links_.step()) == SQLITE_ROW) {
      links.url_id = scan_links_.number(0);
      links.redirect = scan_links_.number(1) != 0;
      links.targets.clear();
      read_ids(scan_links_.text(2), links.targets);
      if (!visit(links)) break;
    }
    scan_links_.reset();
    if (code != SQLITE_ROW && code != SQLITE_DONE) return std::unexpected(reader_.error(code));
    return {};
  }

  Result<std::optional<UrlRecord>> get(std::int64_t url_id) override {
    std::lock_guard lock(read_mutex_);
    select_.bind(1, url_id);
    const int code = select_.step();
    std::optional<UrlRecord> found;
    if (code == SQLITE_ROW) read_record(select_, found.emplace());
    select_.reset();
    if (code != SQLITE_ROW && code != SQLITE_DONE) return std::unexpected(reader_.error(code));
    return found;
  }

  std::int64_t next_id() override {
    std::lock_guard lock(mutex_);
    return last_id_ + 1;
  }

  Result<void> close() override {
    if (!thread_.joinable()) return {};
    Result<void> result = flush();
    if (result) result = lock_.still_names(path_);
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    wake_writer_.notify_one();
    thread_.join();
    // The last connection to close moves the log into the database and removes it.
    select_ = {};
    scan_ = {};
    scan_to_go_on_ = {};
    scan_broken_ = {};
    scan_redirects_ = {};
    for (ShelfQueries* queries : {&ready_, &aside_, &delayed_}) *queries = ShelfQueries{};
    scan_links_ = {};
    move_ = {};
    reader_ = {};
    insert_ = {};
    insert_excluded_ = {};
    nearer_ = {};
    put_links_ = {};
    update_ = {};
    touch_ = {};
    writer_ = {};
    lock_ = {};
    return result;
  }

 private:
  Result<void> visit_rows(SqliteStatement& query, const Visitor& visit,
                          void (*read)(const SqliteStatement&, UrlRecord&) = read_record) {
    UrlRecord record;
    int code = SQLITE_ROW;
    while ((code = query.step()) == SQLITE_ROW) {
      read(query, record);
      if (!visit(record)) break;
    }
    query.reset();
    if (code != SQLITE_ROW && code != SQLITE_DONE) return std::unexpected(reader_.error(code));
    return {};
  }

  void write_loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_writer_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const auto in_haste = [this] {
        return flushing_ > 0 || hasten_ > committed_ || closing_ || backlog_ >= kEagerBacklog;
      };
      if (!in_haste()) wake_writer_.wait_for(lock, options_.linger, in_haste);
      std::vector<UrlBatch> batches;
      batches.swap(queue_);
      const std::size_t records = backlog_;
      lock.unlock();
      Result<void> written = write(batches);
      lock.lock();
      backlog_ -= std::min(backlog_, records);
      committed_ += batches.size();
      if (!written) {
        failure_ = std::move(written.error());
        queue_.clear();
        backlog_ = 0;
      }
      committed_changed_.notify_all();
    }
  }

  Result<void> write(const std::vector<UrlBatch>& batches) {
    if (auto there = lock_.still_names(path_); !there) return there;
    if (auto begun = begin(); !begun) return begun;
    for (const UrlBatch& batch : batches) {
      for (const NewUrl& found : batch.discovered) {
        if (auto written = insert(found); !written) return roll_back(std::move(written));
      }
      for (const UrlOutcome& outcome : batch.outcomes) {
        if (auto written = update(outcome); !written) return roll_back(std::move(written));
      }
      for (const UrlMove& move : batch.moves) {
        if (auto written = store_move(move); !written) return roll_back(std::move(written));
      }
      for (const UrlDepth& nearer : batch.depths) {
        if (auto written = store_depth(nearer); !written) return roll_back(std::move(written));
      }
      for (const UrlLinks& links : batch.links) {
        if (auto written = store_links(links); !written) return roll_back(std::move(written));
      }
    }
    if (auto committed = writer_.execute("COMMIT"); !committed) return roll_back(std::move(committed));
    return {};
  }

  // Another process may hold the write lock for as long as it likes, unless a caller waits for the write.
  Result<void> begin() {
    for (int attempts = 1;; ++attempts) {
      auto begun = writer_.execute("BEGIN IMMEDIATE");  // waits for kBusyWaitMs before it says busy
      if (begun || begun.error().code != Errc::busy) return begun;
      if (attempts == 1) tell_of_foreign_lock(path_);
      std::lock_guard lock(mutex_);
      const bool awaited = flushing_ > 0 || closing_;
      if (awaited && attempts * std::chrono::milliseconds{kBusyWaitMs} > options_.busy_limit) return begun;
    }
  }

  Result<void> roll_back(Result<void> failed) {
    (void)writer_.execute("ROLLBACK");  // SQLite may have done it already
    return failed;
  }

  Result<void> run(SqliteStatement& statement) {
    const int code = statement.step();
    statement.reset();
    if (code != SQLITE_DONE) return std::unexpected(writer_.error(code));
    return {};
  }

  Result<void> insert(const NewUrl& found) {
    const bool queued = found.reason == UrlReason::none;
    SqliteStatement& statement = queued ? insert_ : insert_excluded_;
    statement.bind(1, found.url_id);
    statement.bind(2, found.url);
    statement.bind(3, to_ms(found.ctime));
    statement.bind(4, std::int64_t{found.depth});
    statement.bind(5, std::int64_t{found.priority});
    statement.bind_or_null(6, found.referrer);
    if (!queued) statement.bind(7, to_string(found.reason));
    return run(statement);
  }

  Result<void> update(const UrlOutcome& outcome) {
    SqliteStatement& statement = outcome.not_modified ? touch_ : update_;
    statement.bind(1, outcome.url_id);
    statement.bind(2, to_string(outcome.state));
    statement.bind(3, to_ms(outcome.mtime));
    statement.bind_or_null(4, to_ms(outcome.due));
    statement.bind_or_null(5, std::int64_t{outcome.status_code});
    statement.bind(6, std::int64_t{outcome.attempts});
    statement.bind_or_null(7, outcome.redirect_to);
    statement.bind_or_null(8, outcome.error);
    if (!outcome.not_modified) {
      statement.bind_or_null(9, outcome.content_type);
      statement.bind(10, outcome.size);
      statement.bind_or_null(11, outcome.etag);
      statement.bind_or_null(12, outcome.last_modified);
      statement.bind_or_null(13, outcome.digest);
      statement.bind_or_null(14, to_string(outcome.reason));
      statement.bind_or_null(15, outcome.limit);
    }
    return run(statement);
  }

  Result<void> store_depth(const UrlDepth& nearer) {
    nearer_.bind(1, nearer.url_id);
    nearer_.bind(2, std::int64_t{nearer.depth});
    nearer_.bind(3, std::int64_t{nearer.priority});
    return run(nearer_);
  }

  Result<void> store_links(const UrlLinks& links) {
    std::vector<std::int64_t> targets = links.targets;
    std::ranges::sort(targets);
    const auto repeated = std::ranges::unique(targets);
    targets.erase(repeated.begin(), repeated.end());
    bytes_.clear();
    append_ids(bytes_, targets);
    put_links_.bind(1, links.url_id);
    put_links_.bind(2, std::int64_t{links.redirect});
    put_links_.bind_bytes(3, bytes_);
    return run(put_links_);
  }

  Result<void> store_move(const UrlMove& move) {
    move_.bind(1, move.url_id);
    move_.bind_or_null(2, static_cast<std::int64_t>(move.shelf));
    if (move.shelf == UrlShelf::none) {
      move_.bind_null(3);
    } else {
      move_.bind(3, static_cast<std::int64_t>(move.site));
    }
    move_.bind(4, std::int64_t{move.priority});
    move_.bind(5, std::int64_t{move.depth});
    return run(move_);
  }

  const std::string path_;
  // Destroyed from the last to the first: statements before their connections, those before the lock.
  FileLock lock_;
  SqliteDatabase writer_;
  SqliteDatabase reader_;
  SqliteStatement insert_, insert_excluded_, update_, touch_, select_, scan_, scan_to_go_on_, scan_broken_, scan_redirects_, move_, nearer_,
      put_links_, scan_links_;
  std::string bytes_;  // of the links being stored
  // What follows a place on a shelf: first of the same order, then beyond it.
  using ShelfQueries = std::array<SqliteStatement, 2>;
  ShelfQueries ready_, aside_, delayed_;
  const UrlStoreOptions options_;
  std::mutex read_mutex_;

  mutable std::mutex mutex_;
  std::condition_variable wake_writer_;
  std::condition_variable committed_changed_;
  std::vector<UrlBatch> queue_;
  std::size_t backlog_ = 0;      // records submitted and not committed
  std::uint64_t submitted_ = 0;  // batches
  std::uint64_t committed_ = 0;
  int flushing_ = 0;
  std::uint64_t hasten_ = 0;  // batches that are waited for, though nobody is stopped by it
  std::int64_t last_id_ = 0;
  bool closing_ = false;
  std::optional<Error> failure_;
  std::thread thread_;
};

constexpr const char* kMigrations[] = {kSchema, kShelves, kReasons};
constexpr SqliteFormat kFormat{kApplicationId, kMigrations};

}  // namespace

Result<std::unique_ptr<UrlStore>> open_sqlite_url_store(const std::string& path, const UrlStoreOptions& options) {
  auto lock = FileLock::take(path);
  if (!lock) return std::unexpected(std::move(lock.error()));
  auto writer = SqliteDatabase::open(path, SQLITE_OPEN_READWRITE);
  if (!writer) return std::unexpected(std::move(writer.error()));
  OpeningWait wait{path, options.busy_limit};
  sqlite3_busy_handler(writer->handle(), wait_to_open, &wait);
  if (auto ours = require_format(*writer, path, kFormat); !ours) return std::unexpected(std::move(ours.error()));
  if (auto configured = configure_writer(*writer, options.sync, options.max_bytes, 4096); !configured) return std::unexpected(std::move(configured.error()));
  if (options.sync != SyncMode::off) {
    auto anew = writer->execute("BEGIN IMMEDIATE");
    if (anew) anew = write_log_anew(*writer, path);
    if (anew) anew = writer->execute("COMMIT");
    if (!anew) return std::unexpected(std::move(anew.error()));
  }
  sqlite3_busy_timeout(writer->handle(), kBusyWaitMs);
  auto reader = SqliteDatabase::open(path, SQLITE_OPEN_READWRITE);
  if (!reader) return std::unexpected(std::move(reader.error()));
  if (auto waits = reader->execute("PRAGMA busy_timeout = 5000; PRAGMA cache_size = -1024"); !waits) {
    return std::unexpected(std::move(waits.error()));
  }
  auto store = std::make_unique<SqliteUrlStore>(path, std::move(*lock), std::move(*writer), std::move(*reader), options);
  if (auto started = store->start(); !started) return std::unexpected(std::move(started.error()));
  return store;
}

Result<std::optional<FoundUrl>> find_url(const std::string& path, std::string_view url) {
  auto database = SqliteDatabase::open(path, SQLITE_OPEN_READONLY);
  if (!database) return std::unexpected(std::move(database.error()));
  sqlite3_busy_timeout(database->handle(), 5000);
  if (auto ours = require_format_to_read(*database, path, kFormat); !ours) return std::unexpected(std::move(ours.error()));
  auto query = database->prepare(fmt::format(
      "SELECT {}, (SELECT r.url FROM urls r WHERE r.url_id = urls.referrer) FROM urls WHERE url = ?", kColumns));
  if (!query) return std::unexpected(std::move(query.error()));
  query->bind(1, url);
  const int code = query->step();
  if (code == SQLITE_DONE) return std::nullopt;
  if (code != SQLITE_ROW) return std::unexpected(database->error(code));
  FoundUrl found;
  read_record(*query, found.record);
  found.referrer = query->text(query->columns() - 1);
  return found;
}

Result<std::unique_ptr<UrlStore>> open_url_store(const std::string& path, const UrlStoreOptions& options) {
  if (path == ":memory:") return std::make_unique<MemoryUrlStore>();
  return open_sqlite_url_store(path, options);
}

}  // namespace argiope
