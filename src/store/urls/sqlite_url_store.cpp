// The SQLite UrlStore: one table, indexes of nothing but what lies on a shelf, writes committed in groups, one
// connection for reading.
//
// Whatever was submitted while the last commit ran goes into the next one, so that the price of a sync is shared. While
// nobody waits for it, a commit lingers a little for more.
#include "store/urls/sqlite_url_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "store/sqlite/internal/batch_commit.hpp"
#include "store/sqlite/internal/group_commit.hpp"
#include "store/sqlite/internal/sqlite.hpp"
#include "store/sqlite/internal/sqlite_file.hpp"
#include "store/urls/memory_url_store.hpp"
#include "store/urls/sqlite_known_scan.hpp"
#include "store/urls/sqlite_url_rows.hpp"
#include "store/urls/sqlite_url_writer.hpp"

namespace argiope {

using namespace url_rows;

namespace {

constexpr int kReaderWaitMs = 5000;

// The connection that reads, and what it is asked.
struct Reader {
  // The rows behind a place on a shelf: first of the same order, then beyond it. In two steps, because as one SQLite
  // would not read them from the index in order.
  using ShelfQueries = std::array<SqliteStatement, 2>;

  std::string path;
  SqliteDatabase database;
  SqliteStatement select, scan, scan_to_go_on, scan_broken, scan_redirects, scan_links;
  SqliteStatement scan_kept, kept_of_page, scan_facts, facts, scan_notes, scan_runs, scan_changes, given;
  ShelfQueries ready, aside, delayed;

  // `flags` are SQLITE_OPEN_…. A process that may not write finds the file as it is, or an error.
  static Result<std::unique_ptr<Reader>> open(const std::string& path, int flags = SQLITE_OPEN_READWRITE) {
    auto reader = std::make_unique<Reader>();
    reader->path = path;
    auto database = SqliteDatabase::open(path, flags);
    if (!database) return std::unexpected(std::move(database.error()));
    reader->database = std::move(*database);
    sqlite3_busy_timeout(reader->database.handle(), kReaderWaitMs);
    auto ready = reader->database.execute("PRAGMA cache_size = -1024");
    if (ready && flags == SQLITE_OPEN_READONLY) ready = require_format_to_read(reader->database, path, kFormat);
    if (ready) ready = reader->prepare();
    if (!ready) return std::unexpected(std::move(ready.error()));
    return reader;
  }

  Result<void> prepare() {
    const auto rows = [](std::string_view where) {
      return fmt::format("SELECT {} FROM urls WHERE {}", kColumns, where);
    };
    const auto shelf = [&](std::string_view where, std::string_view order) {
      return rows(fmt::format("{} ORDER BY {} LIMIT ?6", where, order));
    };
    const std::pair<SqliteStatement&, std::string> statements[] = {
        {select, rows("url_id = ?")},
        {scan, rows("url_id >= ? ORDER BY url_id")},
        {scan_to_go_on, fmt::format("SELECT {} FROM urls WHERE url_id >= ? ORDER BY url_id", kColumnsToGoOn)},
        // is_broken(), in SQL.
        {scan_broken,
         rows("(state = 'failed' AND reason IS NOT 'host_down') OR (state = 'done' AND (status_code >= 400 "
              "OR (status_code IN (301, 302, 303, 307, 308) AND error IS NOT NULL))) ORDER BY url_id")},
        {scan_redirects, rows("redirect_to IS NOT NULL ORDER BY url_id")},
        {scan_links, "SELECT url_id, redirect, targets FROM links ORDER BY url_id"},
        {scan_kept, fmt::format("SELECT {} FROM page_links ORDER BY from_id, place", kLinkColumns)},
        {kept_of_page, fmt::format("SELECT {} FROM page_links WHERE from_id = ? ORDER BY place", kLinkColumns)},
        {scan_facts, fmt::format("SELECT {} FROM page_facts ORDER BY url_id", kFactColumns)},
        {facts, fmt::format("SELECT {}, anchors FROM page_facts WHERE url_id = ?", kFactColumns)},
        {given, "SELECT number, substr(CAST(url AS TEXT), 1, 65537), depth, again FROM inbox ORDER BY number LIMIT ?"},
        {scan_runs, fmt::format("SELECT {} FROM runs ORDER BY run_id", kRunColumns)},
        {scan_changes, fmt::format("SELECT {} FROM changes WHERE at >= ? ORDER BY change_id", kChangeColumns)},
        {scan_notes, "SELECT name, text FROM notes WHERE name >= ?1 AND name < ?2 ORDER BY name"},
        {ready[0], shelf("shelf = 1 AND priority = ?1 AND url_id > ?2 AND (site & 2147483647) % ?4 = ?3", "url_id")},
        {ready[1], shelf("shelf = 1 AND priority < ?1 AND (site & 2147483647) % ?4 = ?3", "priority DESC, url_id")},
        {aside[0], shelf("shelf = 2 AND site = ?5 AND priority = ?1 AND url_id > ?2", "url_id")},
        {aside[1], shelf("shelf = 2 AND site = ?5 AND priority < ?1", "priority DESC, url_id")},
        {delayed[0], shelf("shelf = 3 AND due = ?1 AND url_id > ?2 AND (site & 2147483647) % ?4 = ?3", "url_id")},
        {delayed[1], shelf("shelf = 3 AND due > ?1 AND (site & 2147483647) % ?4 = ?3", "due, url_id")},
    };
    return database.prepare_each(statements);
  }
};

// A batch on its way to the disk. Its waiters do the counting.
class BatchCall final : public GroupCommit::Call {
 public:
  BatchCall(SqliteUrlWriter& writer, UrlBatch batch)
      : Call(Kind::write, batch.size()), writer_(writer), batch_(std::move(batch)) {}
  void run() override { writer_.write(batch_); }
  void fail(const Error&) override {}  // GroupCommit::failure() says it

 private:
  SqliteUrlWriter& writer_;
  const UrlBatch batch_;
};

// The reads, whichever process writes.
class SqliteUrlReads : public UrlStore {
 public:
  Result<void> scan(std::int64_t from, const Visitor& visit, Fields fields = Fields::all) override {
    std::lock_guard lock(read_mutex_);
    SqliteStatement& query = fields == Fields::all ? reader_->scan : reader_->scan_to_go_on;
    query.bind(1, from);
    return visit_rows(query, visit, fields == Fields::all ? read_record : read_to_go_on);
  }

  Result<void> scan_known(const KnownQuestion& question, const KnownVisitor& visit) override {
    return scan_known_rows(reader_->path, next_id() - 1, question, visit);
  }

  Result<void> scan_broken(const Visitor& visit) override {
    std::lock_guard lock(read_mutex_);
    return visit_rows(reader_->scan_broken, visit);
  }

  Result<void> scan_redirects(const Visitor& visit) override {
    std::lock_guard lock(read_mutex_);
    return visit_rows(reader_->scan_redirects, visit);
  }

  Result<void> read_shelf(const ShelfRead& read, const ShelfSites& sites, const Visitor& visit) override {
    std::lock_guard lock(read_mutex_);
    const bool aside = read.shelf == Shelf::set_aside;
    const bool delayed = read.shelf == Shelf::delayed;
    std::size_t left = read.limit;
    bool more = true;
    for (SqliteStatement& query : delayed ? reader_->delayed : aside ? reader_->aside : reader_->ready) {
      if (left == 0 || !more) break;
      query.bind(1, delayed ? to_ms(read.due_after.due_at) : std::int64_t{read.after.priority});
      query.bind(2, url_id_of(delayed ? read.due_after.id : read.after.id));  // bound to nothing beyond the order
      if (aside) {
        query.bind(5, static_cast<std::int64_t>(sites.site));
      } else {
        query.bind(3, std::int64_t{sites.part});
        query.bind(4, std::int64_t{sites.parts});
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
    while ((code = reader_->scan_links.step()) == SQLITE_ROW) {
      links.url_id = reader_->scan_links.number(0);
      links.redirect = reader_->scan_links.number(1) != 0;
      links.targets.clear();
      read_ids(reader_->scan_links.text(2), links.targets);
      if (!visit(links)) break;
    }
    return end_of(reader_->scan_links, code);
  }

  Result<std::optional<UrlRecord>> get(std::int64_t url_id) override {
    std::lock_guard lock(read_mutex_);
    reader_->select.bind(1, url_id);
    const int code = reader_->select.step();
    std::optional<UrlRecord> found;
    if (code == SQLITE_ROW) read_record(reader_->select, found.emplace());
    if (auto ended = end_of(reader_->select, code); !ended) return std::unexpected(std::move(ended.error()));
    return found;
  }

  Result<std::vector<GivenUrl>> read_given(std::size_t limit) override {
    std::lock_guard lock(read_mutex_);
    SqliteStatement& query = reader_->given;
    query.bind(1, static_cast<std::int64_t>(limit));
    std::vector<GivenUrl> given;
    int code = SQLITE_ROW;
    while ((code = query.step()) == SQLITE_ROW) {
      given.push_back({query.number(0), std::string(query.text(1)), query.number(2), query.number(3)});
    }
    if (auto ended = end_of(query, code); !ended) return std::unexpected(std::move(ended.error()));
    return given;
  }

  Result<void> scan_kept_links(const LinkVisitor& visit) override {
    std::lock_guard lock(read_mutex_);
    return visit_links(reader_->scan_kept, visit);
  }

  Result<void> scan_kept_links(std::int64_t url_id, const LinkVisitor& visit) override {
    std::lock_guard lock(read_mutex_);
    reader_->kept_of_page.bind(1, url_id);
    return visit_links(reader_->kept_of_page, visit);
  }

  Result<void> scan_facts(const std::function<bool(const PageFacts&)>& visit) override {
    std::lock_guard lock(read_mutex_);
    PageFacts facts;
    int code = SQLITE_ROW;
    while ((code = reader_->scan_facts.step()) == SQLITE_ROW) {
      read_facts(reader_->scan_facts, facts);
      if (!visit(facts)) break;
    }
    return end_of(reader_->scan_facts, code);
  }

  Result<std::optional<PageFacts>> facts(std::int64_t url_id) override {
    std::lock_guard lock(read_mutex_);
    SqliteStatement& query = reader_->facts;
    query.bind(1, url_id);
    const int code = query.step();
    std::optional<PageFacts> found;
    if (code == SQLITE_ROW) {
      read_facts(query, found.emplace());
      const int anchors = query.columns() - 1;
      if (!query.is_null(anchors)) found->anchors = read_anchors(query.text(anchors));
    }
    if (auto ended = end_of(query, code); !ended) return std::unexpected(std::move(ended.error()));
    return found;
  }

  Result<void> scan_notes(std::string_view prefix, const std::function<bool(const UrlNote&)>& visit) override {
    std::lock_guard lock(read_mutex_);
    SqliteStatement& query = reader_->scan_notes;
    const std::string behind = std::string(prefix) + '\xff';  // no byte of UTF-8
    query.bind(1, prefix);
    query.bind(2, behind);
    int code = SQLITE_ROW;
    while ((code = query.step()) == SQLITE_ROW) {
      if (!visit({std::string(query.text(0)), std::string(query.text(1))})) break;
    }
    return end_of(query, code);
  }

  Result<void> scan_runs(const std::function<bool(const UrlRun&)>& visit) override {
    std::lock_guard lock(read_mutex_);
    UrlRun run;
    int code = SQLITE_ROW;
    while ((code = reader_->scan_runs.step()) == SQLITE_ROW) {
      read_url_run(reader_->scan_runs, run);
      if (!visit(run)) break;
    }
    return end_of(reader_->scan_runs, code);
  }

  Result<void> scan_changes(WallTime from, const std::function<bool(const UrlChange&)>& visit) override {
    std::lock_guard lock(read_mutex_);
    reader_->scan_changes.bind(1, to_ms(from));
    UrlChange change;
    int code = SQLITE_ROW;
    while ((code = reader_->scan_changes.step()) == SQLITE_ROW) {
      read_url_change(reader_->scan_changes, change);
      if (!visit(change)) break;
    }
    return end_of(reader_->scan_changes, code);
  }

 protected:
  explicit SqliteUrlReads(std::unique_ptr<Reader> reader) : reader_(std::move(reader)) {}

  bool is_open() const noexcept { return reader_ != nullptr; }
  void close_reader() noexcept { reader_.reset(); }

 private:
  Result<void> visit_rows(SqliteStatement& query, const Visitor& visit,
                          void (*read)(const SqliteStatement&, UrlRecord&) = read_record) {
    UrlRecord record;
    int code = SQLITE_ROW;
    while ((code = query.step()) == SQLITE_ROW) {
      read(query, record);
      if (!visit(record)) break;
    }
    return end_of(query, code);
  }

  Result<void> visit_links(SqliteStatement& query, const LinkVisitor& visit) {
    KeptLink link;
    int code = SQLITE_ROW;
    while ((code = query.step()) == SQLITE_ROW) {
      read_kept_link(query, link);
      if (!visit(query.number(0), static_cast<std::uint32_t>(query.number(1)), link)) break;
    }
    return end_of(query, code);
  }

  // Of a query whose last step gave `code`.
  Result<void> end_of(SqliteStatement& query, int code) {
    query.reset();
    if (code != SQLITE_ROW && code != SQLITE_DONE) return std::unexpected(reader_->database.error(code));
    return {};
  }

  std::mutex read_mutex_;
  std::unique_ptr<Reader> reader_;
};

class SqliteUrlStore final : public SqliteUrlReads {
 public:
  SqliteUrlStore(std::unique_ptr<SqliteUrlWriter> writer, std::unique_ptr<Reader> reader, std::int64_t last_id,
                 Duration linger)
      : SqliteUrlReads(std::move(reader)),
        writer_(*writer),
        last_id_(last_id),
        commit_(std::move(writer), {.linger = linger}) {}
  ~SqliteUrlStore() override { (void)close(); }

  void submit(UrlBatch batch) override {
    if (batch.size() == 0 || failure()) return;
    std::lock_guard lock(mutex_);
    for (const NewUrl& found : batch.discovered) last_id_ = std::max(last_id_, found.url_id);
    commit_.submit(std::make_unique<BatchCall>(writer_, std::move(batch)));
  }
  Result<void> flush() override { return commit_.flush(); }
  std::uint64_t begin_flush() override { return commit_.begin_flush(); }
  bool flushed(std::uint64_t flush) const override { return commit_.flushed(flush); }
  std::size_t backlog() const override { return commit_.backlog(); }
  std::optional<Error> failure() const override { return commit_.failure(); }

  std::int64_t next_id() override {
    std::lock_guard lock(mutex_);
    return last_id_ + 1;
  }

  Result<void> close() override {
    if (!is_open()) return {};
    return commit_.close([this] { close_reader(); });
  }

 private:
  SqliteUrlWriter& writer_;  // until commit_ is closed
  std::mutex mutex_;
  std::int64_t last_id_;
  BatchCommit commit_;
};

// A file that another process may be writing: nothing is changed here.
class SqliteUrlLook final : public SqliteUrlReads {
 public:
  SqliteUrlLook(std::unique_ptr<Reader> reader, std::int64_t last_id)
      : SqliteUrlReads(std::move(reader)), next_id_(last_id + 1) {}

  void submit(UrlBatch) override { refused_ = true; }
  Result<void> flush() override {
    if (auto refused = failure()) return std::unexpected(std::move(*refused));
    return {};
  }
  std::uint64_t begin_flush() override { return 0; }
  bool flushed(std::uint64_t) const override { return !refused_; }
  std::size_t backlog() const override { return 0; }
  std::optional<Error> failure() const override {
    if (!refused_) return std::nullopt;
    return Error{Errc::invalid_input, "database: it was opened to be looked at, and cannot be written"};
  }
  std::int64_t next_id() override { return next_id_; }
  Result<void> close() override {
    close_reader();
    return {};
  }

 private:
  const std::int64_t next_id_;
  std::atomic<bool> refused_{false};
};

}  // namespace

Result<std::unique_ptr<UrlStore>> open_sqlite_url_store(const std::string& path, const UrlStoreOptions& options) {
  auto writer = SqliteUrlWriter::open(path, options);
  if (!writer) return std::unexpected(std::move(writer.error()));
  auto reader = Reader::open(path);
  if (!reader) return std::unexpected(std::move(reader.error()));
  auto last = (*reader)->database.query_number("SELECT coalesce(max(url_id), 0) FROM urls");
  if (!last) return std::unexpected(std::move(last.error()));
  return std::make_unique<SqliteUrlStore>(std::move(*writer), std::move(*reader), *last, options.linger);
}

Result<std::unique_ptr<UrlStore>> open_url_store_to_look(const std::string& path) {
  auto reader = Reader::open(path, SQLITE_OPEN_READONLY);
  if (!reader) return std::unexpected(std::move(reader.error()));
  auto last = (*reader)->database.query_number("SELECT coalesce(max(url_id), 0) FROM urls");
  if (!last) return std::unexpected(std::move(last.error()));
  return std::make_unique<SqliteUrlLook>(std::move(*reader), *last);
}

Result<std::optional<FoundUrl>> find_url(const std::string& path, std::string_view url) {
  auto database = SqliteDatabase::open(path, SQLITE_OPEN_READONLY);
  if (!database) return std::unexpected(std::move(database.error()));
  sqlite3_busy_timeout(database->handle(), kReaderWaitMs);
  if (auto ours = require_format_to_read(*database, path, kFormat); !ours)
    return std::unexpected(std::move(ours.error()));
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
