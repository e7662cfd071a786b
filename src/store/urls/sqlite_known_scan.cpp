#include "store/urls/sqlite_known_scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/internal/fingerprint.hpp"
#include "store/sqlite/internal/sqlite.hpp"
#include "store/sqlite/internal/stretch_scan.hpp"
#include "store/urls/sqlite_url_rows.hpp"

namespace argiope {

using namespace url_rows;

namespace {

constexpr std::int64_t kLeastRowBytes = 64;
constexpr int kBusyWaitMs = 5000;
constexpr std::int64_t kLastId = std::numeric_limits<std::int64_t>::max();
constexpr const char* kSettled = "(state = 'done' AND reason IS NULL AND redirect_to IS NULL AND shelf IS NULL)";

// A stretch of ids on its way from who reads it to who works it off. Used again: strings keep their room.
struct Stretch {
  std::vector<std::int64_t> ids;
  std::vector<std::uint64_t> fingerprints;
  std::vector<UrlRecord> records;  // the first `used` of them
  std::size_t used = 0;
  std::int64_t next = 0;  // as scan_stretches() wants it

  bool is_empty() const noexcept { return ids.empty(); }
  UrlRecord& add_record() {
    if (used == records.size()) records.emplace_back();
    return records[used++];
  }
  void clear() noexcept {
    ids.clear();
    fingerprints.clear();
    used = 0;
    next = 0;
  }
};

// One connection that reads.
class StretchReader {
 public:
  static Result<std::unique_ptr<StretchReader>> open(const std::string& path, const UrlStore::KnownQuestion& question) {
    auto reader = std::unique_ptr<StretchReader>(new StretchReader(question));
    auto database = SqliteDatabase::open(path, SQLITE_OPEN_READWRITE);
    if (!database) return std::unexpected(std::move(database.error()));
    reader->database_ = std::move(*database);
    sqlite3_busy_timeout(reader->database_.handle(), kBusyWaitMs);
    if (auto ready = reader->prepare(); !ready) return std::unexpected(std::move(ready.error()));
    return reader;
  }

  // At most so many rows can be in the file.
  Result<std::uint64_t> most_rows() {
    const auto pages = database_.query_number("PRAGMA page_count");
    if (!pages) return std::unexpected(pages.error());
    const auto size = database_.query_number("PRAGMA page_size");
    if (!size) return std::unexpected(size.error());
    return static_cast<std::uint64_t>(*pages * *size / kLeastRowBytes);
  }

  // Ids from `first` to `last`.
  Result<void> read(std::uint64_t first, std::uint64_t last, Stretch& stretch) {
    stretch.clear();
    const auto bind = [&](SqliteStatement& query) {
      query.bind(1, static_cast<std::int64_t>(first));
      query.bind(2, static_cast<std::int64_t>(std::min<std::uint64_t>(last, kLastId)));
    };
    // Where most are wanted whole, one pass is cheaper.
    if (question_.settled || mostly_open_) {
      bind(whole_);
      if (auto done = read_whole(stretch); !done) return done;
    } else {
      bind(narrow_);
      std::size_t open = 0;
      if (auto done = read_narrow(stretch, open); !done) return done;
      if (open > 0) {
        bind(open_);
        if (auto done = read_open(stretch); !done) return done;
      }
    }
    mostly_open_ = stretch.used * 4 > stretch.ids.size();
    return stretch.ids.empty() ? look_behind(last, stretch) : Result<void>{};
  }

 private:
  explicit StretchReader(const UrlStore::KnownQuestion& question)
      : question_(question), read_(question.fields == UrlStore::Fields::all ? read_record : read_to_go_on) {}

  Result<void> prepare() {
    const char* columns = question_.fields == UrlStore::Fields::all ? kColumns : kColumnsToGoOn;
    const std::pair<SqliteStatement&, std::string> statements[] = {
        {narrow_,
         fmt::format("SELECT url_id, url, {} FROM urls WHERE url_id BETWEEN ? AND ? ORDER BY url_id", kSettled)},
        {open_,
         fmt::format("SELECT {} FROM urls WHERE url_id BETWEEN ? AND ? AND NOT {} ORDER BY url_id", columns, kSettled)},
        {whole_, fmt::format("SELECT {} FROM urls WHERE url_id BETWEEN ? AND ? ORDER BY url_id", columns)},
        {behind_, "SELECT url_id FROM urls WHERE url_id > ? ORDER BY url_id LIMIT 1"}};
    return database_.prepare_each(statements);
  }

  void note(std::int64_t id, std::string_view url, Stretch& stretch) const {
    stretch.ids.push_back(id);
    stretch.fingerprints.push_back(fingerprint(url, question_.seed));
  }

  Result<void> read_narrow(Stretch& stretch, std::size_t& open) {
    int code = SQLITE_ROW;
    while ((code = narrow_.step()) == SQLITE_ROW) {
      note(narrow_.number(0), narrow_.bytes(1), stretch);
      open += narrow_.number(2) == 0;
    }
    return end_of(narrow_, code);
  }

  Result<void> read_open(Stretch& stretch) {
    int code = SQLITE_ROW;
    while ((code = open_.step()) == SQLITE_ROW) read_(open_, stretch.add_record());
    return end_of(open_, code);
  }

  Result<void> read_whole(Stretch& stretch) {
    int code = SQLITE_ROW;
    while ((code = whole_.step()) == SQLITE_ROW) {
      UrlRecord& record = stretch.add_record();
      read_(whole_, record);
      note(record.url_id, record.url, stretch);
      if (!question_.settled && is_settled(record)) --stretch.used;
    }
    return end_of(whole_, code);
  }

  Result<void> look_behind(std::uint64_t last, Stretch& stretch) {
    if (last >= static_cast<std::uint64_t>(kLastId)) return {};
    behind_.bind(1, static_cast<std::int64_t>(last));
    const int code = behind_.step();
    if (code == SQLITE_ROW) stretch.next = behind_.number(0);
    return end_of(behind_, code);
  }

  Result<void> end_of(SqliteStatement& query, int code) {
    query.reset();
    if (code != SQLITE_ROW && code != SQLITE_DONE) return std::unexpected(database_.error(code));
    return {};
  }

  const UrlStore::KnownQuestion& question_;
  void (*const read_)(const SqliteStatement&, UrlRecord&);
  SqliteDatabase database_;
  SqliteStatement narrow_, open_, whole_, behind_;
  bool mostly_open_ = false;
};

}  // namespace

Result<void> scan_known_rows(const std::string& path, std::int64_t last, const UrlStore::KnownQuestion& question,
                             const UrlStore::KnownVisitor& visit) {
  if (last < question.from) return {};
  auto reader = StretchReader::open(path, question);
  if (!reader) return std::unexpected(std::move(reader.error()));
  const auto most = (*reader)->most_rows();
  if (!most) return std::unexpected(most.error());
  const std::uint64_t known = std::min(static_cast<std::uint64_t>(last), *most);
  const auto show = [&](const Stretch& stretch) {
    return visit({stretch.ids, stretch.fingerprints, std::span(stretch.records).first(stretch.used), known});
  };
  return scan_stretches<Stretch>(
      static_cast<std::uint64_t>(question.from), static_cast<std::uint64_t>(last), std::move(*reader),
      [&] { return StretchReader::open(path, question); }, show);
}

}  // namespace argiope
