#include "store/urls/internal/url_inbox.hpp"

#include "store/sqlite/internal/sqlite.hpp"
#include "store/sqlite/internal/sqlite_file.hpp"
#include "store/urls/sqlite_url_rows.hpp"

namespace argiope {
namespace {

constexpr int kInboxWaitMs = 60'000;

}  // namespace

Result<void> put_into_inbox(const std::string& path, std::span<const GivenUrl> urls) {
  auto database = SqliteDatabase::open(path, SQLITE_OPEN_READWRITE);
  if (!database) return std::unexpected(std::move(database.error()));
  sqlite3_busy_timeout(database->handle(), kInboxWaitMs);
  if (auto ours = require_format_to_read(*database, path, url_rows::kFormat); !ours) return ours;
  auto insert = database->prepare("INSERT INTO inbox (url, depth, again) VALUES (?, ?, ?)");
  if (!insert) return std::unexpected(std::move(insert.error()));
  if (auto begun = database->execute("BEGIN IMMEDIATE"); !begun) return begun;
  for (const GivenUrl& url : urls) {
    insert->bind(1, url.url);
    insert->bind(2, url.depth);
    insert->bind_or_null(3, url.again);
    const int code = insert->step();
    if (code != SQLITE_DONE) return std::unexpected(database->error(code));  // closing rolls it back
    insert->reset();
  }
  return database->execute("COMMIT");
}

}  // namespace argiope
