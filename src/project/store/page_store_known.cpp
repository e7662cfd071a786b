#include "project/store/page_store_known.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace argiope {

using namespace page_rows;

namespace {

constexpr int kKnownReaderWaitMs = 5000;

}  // namespace

Result<std::unique_ptr<KnownStretchReader>> KnownStretchReader::open(const std::string& path, int flags,
                                                                     ProjectId project) {
  std::unique_ptr<KnownStretchReader> reader(new KnownStretchReader(project));
  auto database = SqliteDatabase::open(path, flags);
  if (!database) return std::unexpected(std::move(database.error()));
  reader->own_database_ = std::move(*database);
  sqlite3_busy_timeout(reader->own_database_.handle(), kKnownReaderWaitMs);
  if (auto ready = reader->prepare(); !ready) return std::unexpected(std::move(ready.error()));
  return reader;
}

Result<std::unique_ptr<KnownStretchReader>> KnownStretchReader::beside(SqliteDatabase& database, std::mutex& in_use,
                                                                       ProjectId project) {
  std::unique_ptr<KnownStretchReader> reader(new KnownStretchReader(project));
  reader->database_ = &database;
  reader->in_use_ = &in_use;
  const std::lock_guard lock(in_use);
  if (auto ready = reader->prepare(); !ready) return std::unexpected(std::move(ready.error()));
  return reader;
}

Result<void> KnownStretchReader::prepare() {
  const std::pair<SqliteStatement&, std::string> statements[] = {
      {stretch_, fmt::format("SELECT {} FROM pages WHERE page_id BETWEEN ? AND ? ORDER BY page_id", kNarrowColumns)},
      {behind_, "SELECT page_id FROM pages WHERE page_id > ? AND page_id <= ? ORDER BY page_id LIMIT 1"}};
  return database_->prepare_each(statements);
}

Result<void> KnownStretchReader::read(std::uint64_t first, std::uint64_t last, KnownStretch& stretch) {
  const auto lock = in_use_ != nullptr ? std::unique_lock(*in_use_) : std::unique_lock<std::mutex>();
  const auto end = std::min(static_cast<PageId>(last), last_page_id(project_));
  stretch.rows.clear();
  stretch.next = 0;
  const auto rows_of = [&](SqliteStatement& query, std::int64_t from, std::int64_t to,
                           const auto& each) -> Result<void> {
    query.bind(1, from);
    query.bind(2, to);
    int code = SQLITE_ROW;
    while ((code = query.step()) == SQLITE_ROW) each(std::as_const(query));
    Error error;
    if (code != SQLITE_DONE) error = database_->error(code);
    query.reset();
    if (code != SQLITE_DONE) return std::unexpected(std::move(error));
    return {};
  };
  auto done = rows_of(stretch_, static_cast<PageId>(first), end,
                      [&stretch](const SqliteStatement& row) { read_narrow(row, stretch.rows.emplace_back()); });
  if (!done || !stretch.rows.empty()) return done;
  return rows_of(behind_, end, last_page_id(project_),
                 [&stretch](const SqliteStatement& row) { stretch.next = row.number(0); });
}

}  // namespace argiope
