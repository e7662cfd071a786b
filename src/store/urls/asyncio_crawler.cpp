#include "store/urls/internal/asyncio_crawler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include "jobs/internal/stored_time.hpp"
#include "store/sqlite/internal/sqlite.hpp"

namespace argiope {
namespace {

constexpr int kWaitMs = 5000;
// Times are texts of SQLite's, in UTC; strftime() reads them, and gives NULL for what is none.
constexpr const char* kRows =
    "SELECT url_id, substr(CAST(url AS TEXT), 1, 65537), CAST(strftime('%s', ctime) AS INTEGER), "
    "CAST(strftime('%s', mtime) AS INTEGER), status_code, typeof(status_code), "
    "substr(CAST(content_type AS TEXT), 1, 1000), CAST(size AS INTEGER) FROM urls WHERE status_code IS";

Result<SqliteDatabase> open_to_read(const std::string& path) {
  auto database = SqliteDatabase::open(path, SQLITE_OPEN_READONLY);
  if (database) sqlite3_busy_timeout(database->handle(), kWaitMs);
  return database;
}

// No format has a mark of its own that it lacks, so it goes by the columns.
Result<bool> looks_right(SqliteDatabase& database) {
  const auto id = database.query_number("PRAGMA application_id");
  if (!id) return std::unexpected(id.error());
  const auto columns = database.query_number(
      "SELECT count(*) FROM pragma_table_info('urls') WHERE name IN "
      "('url_id', 'url', 'ctime', 'mtime', 'content_type', 'status_code', 'size')");
  if (!columns) return std::unexpected(columns.error());
  return *id == 0 && *columns == 7;
}

void read_row(const SqliteStatement& row, AsyncioCrawlerUrl& url) {
  const auto seconds = [&](int column) {
    constexpr std::int64_t kMost = 32'503'680'000;  // the year 3000
    return WallTime{std::chrono::seconds{std::clamp<std::int64_t>(row.number(column), 0, kMost)}};
  };
  url.url_id = row.number(0);
  url.url = row.text(1);
  url.ctime = seconds(2);
  url.mtime = seconds(3);
  url.status.reset();
  if (row.text(5) == "integer") url.status = row.number(4);
  url.content_type = row.text(6);
  url.size = std::max<std::int64_t>(row.number(7), 0);
}

}  // namespace

bool is_asyncio_crawler_database(const std::string& path) {
  auto database = open_to_read(path);
  if (!database) return false;
  const auto right = looks_right(*database);
  return right && *right;
}

Result<void> read_asyncio_crawler(const std::string& path, const std::function<bool(const AsyncioCrawlerUrl&)>& visit) {
  auto database = open_to_read(path);
  if (!database) return std::unexpected(std::move(database.error()));
  if (auto begun = database->execute("BEGIN"); !begun) return begun;
  const auto right = looks_right(*database);
  if (!right) return std::unexpected(right.error());
  if (!*right) {
    return fail(Errc::wrong_format, fmt::format("database {}: not made by asyncio-crawler: it has no table urls with "
                                                "url_id, url, ctime, mtime, content_type, status_code and size",
                                                path));
  }
  AsyncioCrawlerUrl url;
  for (const char* const which : {" NOT NULL ORDER BY url_id", " NULL ORDER BY url_id"}) {
    auto rows = database->prepare(std::string(kRows) + which);
    if (!rows) return std::unexpected(std::move(rows.error()));
    int code = SQLITE_ROW;
    while ((code = rows->step()) == SQLITE_ROW) {
      read_row(*rows, url);
      if (!visit(url)) return {};
    }
    if (code != SQLITE_DONE) return std::unexpected(database->error(code));
  }
  return {};
}

}  // namespace argiope
