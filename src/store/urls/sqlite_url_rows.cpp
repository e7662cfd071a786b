#include "store/urls/sqlite_url_rows.hpp"

#include <utility>

namespace argiope::url_rows {
namespace {

constexpr std::int64_t kUrlsApplicationId = 0x41726769;  // "Argi"
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

// Version 2: what waits outside of a crawl's memory is found again in order. Rows of version 1 lie on no shelf; the
// crawl that opens them next finds them by its scan, and puts those it has no room for where they belong.
constexpr const char* kShelves = R"sql(
ALTER TABLE urls ADD COLUMN shelf INTEGER;  -- 1 ready, 2 set aside, 3 delayed; NULL: in a crawl's memory, or not to be fetched
ALTER TABLE urls ADD COLUMN site INTEGER;   -- on a shelf: XXH3-64 of scheme, host and port
CREATE INDEX urls_ready ON urls (priority DESC, url_id, site) WHERE shelf = 1;
CREATE INDEX urls_set_aside ON urls (site, priority DESC, url_id) WHERE shelf = 2;
CREATE INDEX urls_delayed ON urls (due, url_id, site) WHERE shelf = 3;
)sql";

// Version 3: why a URL is excluded, or done in part. The first versions have written down nowhere which of a page's
// links they left out; the rest can be told. A 200 without a digest was asked by HEAD, or is an empty page, which costs
// one request.
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

// The rows of crawls that are asked for links, checks or a report; see docs/crawl.md.
constexpr const char* kReports = R"sql(
CREATE TABLE page_links (  -- every link and asset of every page, in the page's order
  from_id  INTEGER NOT NULL,  -- url_id of the page
  place    INTEGER NOT NULL,  -- on the page, from 0
  to_id    INTEGER,           -- url_id; NULL where the URL is none of `urls`
  href     TEXT,              -- then: as the page writes it
  kind     TEXT NOT NULL,     -- anchor, image, stylesheet …
  text     TEXT,
  rel      TEXT,
  line     INTEGER NOT NULL,  -- of the page, from 1
  fragment TEXT,              -- without "#"
  error    TEXT,              -- what is wrong with the link as it is written
  PRIMARY KEY (from_id, place)
) WITHOUT ROWID;
CREATE TABLE page_facts (  -- what was seen of each answer
  url_id       INTEGER PRIMARY KEY,
  took_us      INTEGER NOT NULL,  -- from the request to the end of the answer; microseconds
  wire_bytes   INTEGER NOT NULL,
  title        TEXT,
  description  TEXT,
  heading      TEXT,              -- the first h1
  titles       INTEGER NOT NULL,  -- how many there are
  descriptions INTEGER NOT NULL,
  headings     INTEGER NOT NULL,
  canonical    TEXT,
  noindex      INTEGER NOT NULL,
  anchors      BLOB               -- XXH3-64 of each id, ascending; NULL: not all are known
);
CREATE VIEW page_link_list AS
  SELECT f.url AS from_url, coalesce(t.url, l.href) AS to_url, l.kind, l.text, l.rel, l.line, l.fragment,
         t.status_code, coalesce(l.error, t.error) AS error
  FROM page_links l JOIN urls f ON f.url_id = l.from_id LEFT JOIN urls t ON t.url_id = l.to_id;
)sql";

constexpr const char* kNotes = R"sql(
CREATE TABLE notes (  -- what a crawl keeps beside its URLs: cookies/SITE has a site's cookies, as cookies.txt
  name TEXT PRIMARY KEY,
  text TEXT NOT NULL
) WITHOUT ROWID;
)sql";

// The crawl's own connection fires no triggers: it pays nothing for this one.
constexpr const char* kInbox = R"sql(
CREATE TABLE inbox (  -- URLs from other programs; a crawl takes them from here
  number INTEGER PRIMARY KEY,
  url    TEXT NOT NULL,
  depth  INTEGER NOT NULL DEFAULT 0
);
CREATE TRIGGER urls_of_others BEFORE INSERT ON urls WHEN NEW.ctime IS NULL
BEGIN
  INSERT INTO inbox (url, depth) VALUES (NEW.url, coalesce(NEW.depth, 0));
  SELECT RAISE(IGNORE);
END;
)sql";

// Content that is there in several places; see docs/crawl-duplicates.md.
constexpr const char* kDuplicates = R"sql(
ALTER TABLE page_facts ADD COLUMN words INTEGER NOT NULL DEFAULT 0;    -- how many the page has, where that was asked for
ALTER TABLE page_facts ADD COLUMN simhash INTEGER NOT NULL DEFAULT 0;  -- of the words, 64 bits
CREATE VIEW duplicates AS
  SELECT u.url_id, u.url, u.reason, o.url AS same_as
  FROM urls u LEFT JOIN urls o ON o.url_id = u.met_limit WHERE u.reason IN ('duplicate', 'near_duplicate', 'alias');
)sql";

constexpr const char* kHistory = R"sql(
CREATE TABLE runs (
  run_id     INTEGER PRIMARY KEY,
  began      INTEGER NOT NULL,  -- milliseconds since 1970
  ended      INTEGER,           -- NULL: it goes on, or was killed
  finished   INTEGER NOT NULL,
  stopped_by TEXT,
  fetched    INTEGER NOT NULL   -- responses
);
CREATE TABLE changes (  -- what later fetches have found changed: see docs/crawl-revisits.md
  change_id     INTEGER PRIMARY KEY,
  url_id        INTEGER NOT NULL,
  at            INTEGER NOT NULL,  -- milliseconds since 1970
  kind          TEXT NOT NULL,     -- changed, moved, gone, broken, mended
  status_before INTEGER,           -- NULL: no answer
  status_after  INTEGER,
  detail        TEXT               -- moved: where to; broken: the error
);
)sql";

// Also what is known is asked for, to be fetched again.
constexpr const char* kAgain = R"sql(
ALTER TABLE inbox ADD COLUMN again INTEGER;  -- url_id of a URL that is known; NULL: it may be new
)sql";

constexpr const char* kUrlMigrations[] = {kSchema, kShelves,    kReasons, kReports, kNotes,
                                          kInbox,  kDuplicates, kHistory, kAgain};

using stored_time::from_ms;

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

std::optional<Shelf> shelf_of(std::int64_t stored) noexcept {
  if (stored == 0) return std::nullopt;
  return static_cast<Shelf>(stored - 1);
}

}  // namespace

constinit const SqliteFormat kFormat{kUrlsApplicationId, kUrlMigrations};

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
  record.shelf = shelf_of(row.number(18));
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
  record.shelf = shelf_of(row.number(10));
  record.site = static_cast<std::uint64_t>(row.number(11));
  record.reason = parse_reason(row.text(12));
  record.limit = row.number(13);
}

void read_kept_link(const SqliteStatement& row, KeptLink& link) {
  link.target = row.number(2);
  link.href = row.text(3);
  link.kind = row.text(4);
  link.text = row.text(5);
  link.rel = row.text(6);
  link.line = static_cast<std::uint32_t>(row.number(7));
  link.fragment = row.text(8);
  link.error = row.text(9);
}

void read_facts(const SqliteStatement& row, PageFacts& facts) {
  facts.url_id = row.number(0);
  facts.took = std::chrono::microseconds{row.number(1)};
  facts.wire_bytes = row.number(2);
  facts.title = row.text(3);
  facts.description = row.text(4);
  facts.heading = row.text(5);
  facts.titles = static_cast<std::uint32_t>(row.number(6));
  facts.descriptions = static_cast<std::uint32_t>(row.number(7));
  facts.headings = static_cast<std::uint32_t>(row.number(8));
  facts.canonical = row.text(9);
  facts.noindex = row.number(10) != 0;
  facts.words = static_cast<std::uint32_t>(row.number(11));
  facts.simhash = static_cast<std::uint64_t>(row.number(12));
}

void read_url_run(const SqliteStatement& row, UrlRun& run) {
  run.run_id = row.number(0);
  run.began = from_ms(row.number(1));
  run.ended = from_ms(row.number(2));
  run.finished = row.number(3) != 0;
  run.stopped_by = row.text(4);
  run.fetched = static_cast<std::uint64_t>(row.number(5));
}

void read_url_change(const SqliteStatement& row, UrlChange& change) {
  const std::string_view kind = row.text(2);
  change.url_id = row.number(0);
  change.at = from_ms(row.number(1));
  for (std::size_t i = 0; i < kUrlChangeKinds; ++i) {
    if (kind == to_string(static_cast<UrlChangeKind>(i))) change.kind = static_cast<UrlChangeKind>(i);
  }
  change.status_before = static_cast<int>(row.number(3));
  change.status_after = static_cast<int>(row.number(4));
  change.detail = row.text(5);
}

void append_anchors(std::string& out, const std::vector<std::uint64_t>& anchors) {
  for (const std::uint64_t anchor : anchors) {
    for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(anchor >> shift);
  }
}

std::vector<std::uint64_t> read_anchors(std::string_view bytes) {
  std::vector<std::uint64_t> anchors;
  anchors.reserve(bytes.size() / 8);
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    std::uint64_t anchor = 0;
    for (std::size_t i = 0; i < 8; ++i) anchor |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    anchors.push_back(anchor);
  }
  return anchors;
}

}  // namespace argiope::url_rows
