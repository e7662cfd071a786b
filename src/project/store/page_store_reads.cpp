#include "project/store/page_store_reads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "project/store/page_store_rows.hpp"
#include "store/sqlite/internal/stretch_scan.hpp"

namespace argiope {

using namespace page_rows;

namespace {

constexpr int kPageReaderWaitMs = 5000;
constexpr std::int64_t kPageReaderCacheKib = 2048;
// A stretch of a scan: rows, and bytes of their texts.
constexpr std::size_t kWideStretch = 512;
constexpr std::size_t kWideStretchBytes = std::size_t{4} << 20;

constexpr PageId page_id_behind(ProjectId project) noexcept { return last_page_id(project) + 1; }

std::int64_t as_limit(std::size_t most) noexcept {
  return static_cast<std::int64_t>(std::min<std::size_t>(most, std::numeric_limits<std::int64_t>::max()));
}

std::size_t text_bytes(const PageRecord& page) noexcept {
  return page.name.size() + page.url.size() + page.settings.size() + page.context.size() + page.save.size() +
         page.error.size() + page.track.size();
}

}  // namespace

// --- the connection --------------------------------------------------------------------------------------------------

Result<std::unique_ptr<PageReader>> PageReader::open(const std::string& path, int flags) {
  std::unique_ptr<PageReader> reader(new PageReader);
  auto database = SqliteDatabase::open(path, flags);
  if (!database) return std::unexpected(std::move(database.error()));
  reader->own_database_ = std::move(*database);
  reader->path_ = path;
  reader->flags_ = flags;
  sqlite3_busy_timeout(reader->own_database_.handle(), kPageReaderWaitMs);
  auto ready = reader->own_database_.execute(fmt::format("PRAGMA cache_size = -{}", kPageReaderCacheKib).c_str());
  if (ready && flags == SQLITE_OPEN_READONLY) ready = require_format_to_read(reader->own_database_, path, kPageFormat);
  if (ready) ready = reader->prepare();
  if (!ready) return std::unexpected(std::move(ready.error()));
  return reader;
}

Result<std::unique_ptr<PageReader>> PageReader::beside_writer(SqliteDatabase& database, std::mutex& in_use) {
  std::unique_ptr<PageReader> reader(new PageReader);
  reader->database_ = &database;
  reader->in_use_ = &in_use;
  if (auto ready = reader->prepare(); !ready) return std::unexpected(std::move(ready.error()));
  return reader;
}

Result<std::unique_ptr<KnownStretchReader>> PageReader::open_known(ProjectId project) {
  return in_memory() ? KnownStretchReader::beside(*database_, *in_use_, project)
                     : KnownStretchReader::open(path_, flags_, project);
}

Result<void> PageReader::prepare() {
  const std::string whole = fmt::format("SELECT {}, {}, track FROM pages WHERE ", kNarrowColumns, kWideColumns);
  const std::string news =
      "SELECT f.number, f.page_id, p.name, p.url, p.rule_id, f.part, f.news, f.value, f.at FROM feed f LEFT JOIN pages "
      "p USING (page_id) "
      "WHERE f.project_id = ? AND ";
  const std::pair<SqliteStatement&, std::string> statements[] = {
      {projects, fmt::format("SELECT {} FROM projects WHERE forgetting = 0 ORDER BY project_id", kProjectColumns)},
      {versions,
       fmt::format("SELECT {} FROM versions WHERE project_id = ? ORDER BY number DESC LIMIT ?", kVersionColumns)},
      {version, fmt::format("SELECT {} FROM versions WHERE project_id = ? AND number = ?", kVersionColumns)},
      {hosts, "SELECT host_id, site FROM hosts ORDER BY host_id"},
      {last_page, "SELECT page_id FROM pages WHERE page_id BETWEEN ? AND ? ORDER BY page_id DESC LIMIT 1"},
      {page, whole + "page_id = ?"},
      {scan_pages, whole + "page_id > ? AND page_id < ? ORDER BY page_id"},
      {find_page, whole + "page_id >= ? AND page_id < ? AND fingerprint = ? AND name = ? ORDER BY page_id LIMIT 1"},
      {scan_results,
       "SELECT r.page_id, p.name, p.url, p.rule_id, r.part, r.value, r.added_at, r.changed_at FROM results r LEFT JOIN "
       "pages p USING (page_id) "
       "WHERE (r.page_id, r.part) > (?, ?) AND r.page_id < ? ORDER BY r.page_id, r.part"},
      {count_results, "SELECT results FROM tallies WHERE project_id = ?"},
      {feed, news + "f.number > ? ORDER BY f.number LIMIT ?"},
      {feed_back, news + "f.number < ? ORDER BY f.number DESC LIMIT ?"},
      {rounds, fmt::format("SELECT {} FROM rounds WHERE project_id = ? ORDER BY number DESC LIMIT ?", kRoundColumns)},
      {sinks, fmt::format("SELECT {} FROM sinks WHERE project_id = ? ORDER BY name LIMIT ?", kSinkColumns)},
      {last_project, fmt::format("SELECT number FROM marks WHERE name = '{}'", kLastProject)},
      {forgotten_, "SELECT forgetting FROM projects WHERE project_id = ?"},
      {more_rules_, "SELECT rule_id, name FROM rules WHERE rule_id > ? ORDER BY rule_id"},
  };
  return database().prepare_each(statements);
}

Result<void> PageReader::end_of(SqliteStatement& statement, int code) {
  Error error;
  const bool failed = code != SQLITE_ROW && code != SQLITE_DONE;
  if (failed) error = database().error(code);
  statement.reset();
  if (failed) return std::unexpected(std::move(error));
  return {};
}

Result<bool> PageReader::is_forgotten(ProjectId project) {
  bool forgotten = false;
  forgotten_.bind(1, std::int64_t{project});
  auto read = for_rows(forgotten_, [&forgotten](const SqliteStatement& row) {
    forgotten = row.number(0) != 0;
    return true;
  });
  if (!read) return std::unexpected(std::move(read.error()));
  return forgotten;
}

std::string_view PageReader::rule_name(std::int64_t rule_id) {
  if (rule_id <= 0) return {};
  if (rule_id > last_rule_) {
    more_rules_.bind(1, last_rule_);
    // A rule that cannot be read has no name; the query that asks fails by itself.
    (void)for_rows(more_rules_, [this](const SqliteStatement& row) {
      last_rule_ = row.number(0);
      rules_.emplace(last_rule_, row.bytes(1));
      return true;
    });
  }
  const auto found = rules_.find(rule_id);
  return found == rules_.end() ? std::string_view{} : std::string_view(found->second);
}

// --- rows as they are ------------------------------------------------------------------------------------------------

template <class Row>
Result<std::vector<Row>> PageStoreReads::rows_of(SqliteStatement& statement,
                                                 void (*read)(const SqliteStatement&, Row&)) {
  std::vector<Row> rows;
  auto done = reader_->for_rows(statement, [&](const SqliteStatement& row) {
    read(row, rows.emplace_back());
    return true;
  });
  if (!done) return std::unexpected(std::move(done.error()));
  return rows;
}

template <class Row>
Result<std::vector<Row>> PageStoreReads::rows_of_project(SqliteStatement& statement, ProjectId project,
                                                         std::size_t most, void (*read)(const SqliteStatement&, Row&)) {
  const auto lock = reader_->lock();
  const auto forgotten = reader_->is_forgotten(project);
  if (!forgotten) return std::unexpected(forgotten.error());
  if (*forgotten) return std::vector<Row>{};
  statement.bind(1, std::int64_t{project});
  statement.bind(2, as_limit(most));
  return rows_of(statement, read);
}

Result<std::vector<ProjectRecord>> PageStoreReads::projects() {
  const auto lock = reader_->lock();
  return rows_of(reader_->projects, read_project_row);
}

Result<std::vector<ProjectVersion>> PageStoreReads::versions(ProjectId project, std::size_t most) {
  return rows_of_project(reader_->versions, project, most, read_version);
}

Result<std::optional<ProjectVersion>> PageStoreReads::version(ProjectId project, std::int64_t number) {
  const auto lock = reader_->lock();
  const auto forgotten = reader_->is_forgotten(project);
  if (!forgotten) return std::unexpected(forgotten.error());
  if (*forgotten) return std::nullopt;
  reader_->version.bind(1, std::int64_t{project});
  reader_->version.bind(2, number);
  auto found = rows_of(reader_->version, read_version);
  if (!found) return std::unexpected(std::move(found.error()));
  if (found->empty()) return std::nullopt;
  return std::move(found->front());
}

Result<std::vector<HostRow>> PageStoreReads::hosts() {
  const auto lock = reader_->lock();
  return rows_of<HostRow>(reader_->hosts, [](const SqliteStatement& row, HostRow& host) {
    host.id = static_cast<std::uint32_t>(row.number(0));
    host.site = row.bytes(1);
  });
}

Result<std::vector<RoundRecord>> PageStoreReads::rounds(ProjectId project, std::size_t most) {
  return rows_of_project(reader_->rounds, project, most, read_round);
}

Result<std::vector<SinkRow>> PageStoreReads::sinks(ProjectId project) {
  return rows_of_project(reader_->sinks, project, std::numeric_limits<std::size_t>::max(), read_sink);
}

Result<ProjectId> PageStoreReads::last_project() {
  const auto lock = reader_->lock();
  std::int64_t last = 0;
  auto read = reader_->for_rows(reader_->last_project, [&last](const SqliteStatement& row) {
    last = row.number(0);
    return false;
  });
  if (!read) return std::unexpected(std::move(read.error()));
  return static_cast<ProjectId>(last);
}

// --- pages -----------------------------------------------------------------------------------------------------------

void PageStoreReads::read_page_whole(const SqliteStatement& row, PageRecord& page) {
  std::int64_t rule_id = 0;
  read_page(row, page, rule_id);
  page.rule = reader_->rule_name(rule_id);
}

Result<void> PageStoreReads::scan_known(ProjectId project, const std::function<bool(const KnownRow&)>& visit) {
  PageId last = 0;
  {
    const auto lock = reader_->lock();
    const auto forgotten = reader_->is_forgotten(project);
    if (!forgotten) return std::unexpected(forgotten.error());
    if (*forgotten) return {};
    reader_->last_page.bind(1, first_page_id(project));
    reader_->last_page.bind(2, last_page_id(project));
    auto read = reader_->for_rows(reader_->last_page, [&last](const SqliteStatement& row) {
      last = row.number(0);
      return false;
    });
    if (!read) return read;
  }
  if (last == 0) return {};
  auto known = reader_->open_known(project);
  if (!known) return std::unexpected(std::move(known.error()));
  std::int64_t rule_id = 0;
  KnownRow shown;
  const auto show = [&](const KnownStretch& stretch) {
    for (const NarrowRow& row : stretch.rows) {
      shown.id = row.id;
      shown.fingerprint = row.fingerprint;
      shown.host_id = row.host_id;
      shown.known = row.known;
      shown.round = row.round;
      if (row.rule_id != rule_id) {
        rule_id = row.rule_id;
        const auto lock = reader_->lock();
        shown.rule = reader_->rule_name(rule_id);
      }
      if (!visit(shown)) return false;
    }
    return true;
  };
  const auto first = static_cast<std::uint64_t>(first_page_id(project)), end = static_cast<std::uint64_t>(last);
  if (reader_->in_memory()) return StretchScan<KnownStretch>(first, end).run_alone(**known, show);
  return scan_stretches<KnownStretch>(
      first, end, std::move(*known), [&] { return reader_->open_known(project); }, show);
}

Result<std::vector<PageRecord>> PageStoreReads::pages(std::span<const PageId> ids) {
  const auto lock = reader_->lock();
  std::vector<PageRecord> found;
  ProjectId asked = 0;
  bool is_gone = false;
  for (const PageId id : ids) {
    if (project_of(id) != asked) {
      asked = project_of(id);
      const auto forgotten = reader_->is_forgotten(asked);
      if (!forgotten) return std::unexpected(forgotten.error());
      is_gone = *forgotten;
    }
    if (is_gone) continue;
    reader_->page.bind(1, id);
    auto read = reader_->for_rows(reader_->page, [&](const SqliteStatement& row) {
      read_page_whole(row, found.emplace_back());
      return true;
    });
    if (!read) return std::unexpected(std::move(read.error()));
  }
  return found;
}

template <class Row, class Bind, class Read>
Result<void> PageStoreReads::visit_by_stretches(ProjectId project, SqliteStatement& query, const Bind& bind_behind,
                                                const Read& read, const std::function<bool(const Row&)>& visit) {
  std::vector<Row> stretch;
  for (const Row* last = nullptr;;) {
    std::size_t used = 0, bytes = 0;
    bool more = false;
    {
      const auto lock = reader_->lock();
      const auto forgotten = reader_->is_forgotten(project);
      if (!forgotten) return std::unexpected(forgotten.error());
      if (*forgotten) return {};
      bind_behind(last);
      auto done = reader_->for_rows(query, [&](const SqliteStatement& row) {
        if (used == stretch.size()) stretch.emplace_back();
        bytes += read(row, stretch[used++]);
        more = used >= kWideStretch || bytes >= kWideStretchBytes;
        return !more;
      });
      if (!done) return done;
    }
    for (std::size_t i = 0; i < used; ++i) {
      if (!visit(stretch[i])) return {};
    }
    if (!more) return {};
    last = &stretch[used - 1];
  }
}

Result<void> PageStoreReads::scan_pages(ProjectId project, PageId after,
                                        const std::function<bool(const PageRecord&)>& visit) {
  after = std::max(after, first_page_id(project) - 1);
  SqliteStatement& query = reader_->scan_pages;
  return visit_by_stretches<PageRecord>(
      project, query,
      [&](const PageRecord* last) {
        query.bind(1, last != nullptr ? last->id : after);
        query.bind(2, page_id_behind(project));
      },
      [this](const SqliteStatement& row, PageRecord& page) {
        read_page_whole(row, page);
        return text_bytes(page);
      },
      visit);
}

Result<std::optional<PageRecord>> PageStoreReads::find_page(ProjectId project, std::string_view name) {
  const auto lock = reader_->lock();
  const auto forgotten = reader_->is_forgotten(project);
  if (!forgotten) return std::unexpected(forgotten.error());
  if (*forgotten) return std::nullopt;
  SqliteStatement& query = reader_->find_page;
  query.bind(1, first_page_id(project));
  query.bind(2, page_id_behind(project));
  query.bind(3, static_cast<std::int64_t>(page_fingerprint(name)));
  query.bind(4, name);
  std::optional<PageRecord> found;
  auto read = reader_->for_rows(query, [&](const SqliteStatement& row) {
    read_page_whole(row, found.emplace());
    return false;
  });
  if (!read) return std::unexpected(std::move(read.error()));
  return found;
}

// --- results ---------------------------------------------------------------------------------------------------------

Result<void> PageStoreReads::scan_results(ProjectId project, const std::optional<ResultPlace>& after,
                                          const std::function<bool(const ResultRow&)>& visit) {
  ResultPlace place{.page = first_page_id(project) - 1, .part = {}};
  if (after && after->page >= first_page_id(project)) place = *after;
  SqliteStatement& query = reader_->scan_results;
  return visit_by_stretches<ResultRow>(
      project, query,
      [&](const ResultRow* last) {
        if (last != nullptr)
          place = {.page = last->page, .part = last->part};  // its row is read over while the query runs
        query.bind(1, place.page);
        query.bind(2, place.part);
        query.bind(3, page_id_behind(project));
      },
      [&](const SqliteStatement& row, ResultRow& result) {
        result.project = project;
        result.page = row.number(0);
        result.page_name = row.bytes(1);
        result.url = row.bytes(2);
        result.rule = reader_->rule_name(row.number(3));
        result.part = row.bytes(4);
        result.value = row.bytes(5);
        result.added_at = from_ms(row.number(6));
        result.changed_at = from_ms(row.number(7));
        return result.page_name.size() + result.value.size();
      },
      visit);
}

Result<std::uint64_t> PageStoreReads::count_results(ProjectId project) {
  const auto counts = rows_of_project<std::uint64_t>(
      reader_->count_results, project, 1,
      [](const SqliteStatement& row, std::uint64_t& count) { count = static_cast<std::uint64_t>(row.number(0)); });
  if (!counts) return std::unexpected(counts.error());
  return counts->empty() ? 0 : counts->front();
}

Result<std::vector<FeedRow>> PageStoreReads::read_feed(ProjectId project, std::int64_t after, std::size_t most) {
  return news_of(reader_->feed, project, after, most, kMostFeedBytes);
}

Result<std::vector<FeedRow>> PageStoreReads::read_feed_back(ProjectId project, std::int64_t before, std::size_t most,
                                                            std::size_t most_bytes) {
  return news_of(reader_->feed_back, project, before, most, most_bytes);
}

Result<std::vector<FeedRow>> PageStoreReads::news_of(SqliteStatement& query, ProjectId project, std::int64_t bound,
                                                     std::size_t most, std::size_t most_bytes) {
  const auto lock = reader_->lock();
  const auto forgotten = reader_->is_forgotten(project);
  if (!forgotten) return std::unexpected(forgotten.error());
  std::vector<FeedRow> rows;
  if (*forgotten) return rows;
  query.bind(1, std::int64_t{project});
  query.bind(2, bound);
  query.bind(3, as_limit(most));
  std::size_t bytes = 0;
  auto read = reader_->for_rows(query, [&](const SqliteStatement& row) {
    FeedRow& news = rows.emplace_back();
    news.number = row.number(0);
    news.project = project;
    news.page = row.number(1);
    news.page_name = row.bytes(2);
    news.url = row.bytes(3);
    news.rule = reader_->rule_name(row.number(4));
    news.part = row.bytes(5);
    news.news = read_news(row.number(6));
    news.value = row.bytes(7);
    news.at = from_ms(row.number(8));
    bytes += news.value.size();
    return bytes < most_bytes;
  });
  if (!read) return std::unexpected(std::move(read.error()));
  return rows;
}

}  // namespace argiope
