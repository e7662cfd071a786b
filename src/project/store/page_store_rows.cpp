#include "project/store/page_store_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>

#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "project/store/internal/page_file.hpp"

namespace argiope::page_rows {
namespace {

constexpr std::int64_t kPagesApplicationId = 0x41726770;  // "Argp"

// Rowids of pages are given out by the engine and ascend within a project, so that new pages are put at the end of
// their project's stretch. The narrow columns come first: a scan of them reads no overflow pages.
constexpr const char* kFirstPageSchema = R"sql(
CREATE TABLE projects (
  project_id  INTEGER PRIMARY KEY,
  name        TEXT NOT NULL,
  version     INTEGER NOT NULL,  -- number of the newest one
  status      TEXT NOT NULL,
  group_name  TEXT,
  rate        REAL,              -- set beside its file; NULL: as the file says
  burst       INTEGER,
  pause       TEXT,              -- of failures
  counters    TEXT,
  description TEXT,              -- JSON: what its script has said of itself
  trouble     TEXT,              -- why it stands still
  made_at     INTEGER NOT NULL,  -- all times: milliseconds since 1970
  changed_at  INTEGER NOT NULL,
  deleted_at  INTEGER,           -- forgotten a day later
  ticks       TEXT,              -- JSON: when its ticks and starts were last due
  forgetting  INTEGER NOT NULL DEFAULT 0  -- 1: what it had is being removed, this row last
);
CREATE TABLE versions (  -- what a project's file and script were
  project_id INTEGER NOT NULL,
  number     INTEGER NOT NULL,  -- from 1
  made_at    INTEGER NOT NULL,
  text       TEXT NOT NULL,     -- the file, as JSON
  source     TEXT,              -- as it was written
  script     TEXT,
  note       TEXT,
  PRIMARY KEY (project_id, number)
);
CREATE TABLE rules (
  rule_id    INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER NOT NULL,
  name       TEXT NOT NULL,
  UNIQUE (project_id, name)
);
CREATE TABLE hosts (
  host_id INTEGER PRIMARY KEY,
  site    TEXT NOT NULL          -- scheme, host and port; "data:"
);
CREATE TABLE pages (
  page_id      INTEGER PRIMARY KEY,  -- project_id * 1099511627776 (2^40) + its number in the project, from 1
  fingerprint  INTEGER NOT NULL,     -- XXH3-64 of the name
  host_id      INTEGER NOT NULL,
  rule_id      INTEGER NOT NULL,     -- 0: none
  state        INTEGER NOT NULL,     -- 0 waiting, 1 visiting, 2 done, 3 failed, 4 cancelled
  wait         INTEGER NOT NULL,     -- for: 0 a visit, 1 a retry, 2 its recrawl
  again        INTEGER NOT NULL,     -- 1: once more after the visit under way
  priority     INTEGER NOT NULL,     -- higher first
  due          INTEGER NOT NULL,     -- not before; 0: at once
  succeeded_at INTEGER NOT NULL,     -- end of the last visit that did; 0: none
  ended_at     INTEGER NOT NULL,     -- of the last visit; 0: none
  interval     INTEGER,              -- of its own, ms, where its rule is adaptive
  retried      INTEGER NOT NULL,
  tag          INTEGER NOT NULL,     -- XXH3-64 of the tag's text; 0: none
  round        INTEGER NOT NULL,     -- 0: none
  own          TEXT,                 -- what was said of the page itself: priority=5 age=60000 retries=1 recrawl=1
  status_code  INTEGER NOT NULL,     -- of the last visit; 0: none
  crashes      INTEGER NOT NULL,     -- of its processor over this page, in a row
  digest       INTEGER NOT NULL,     -- of the last body; 0: none
  from_id      INTEGER,              -- page_id of the page that asked for it first
  name         TEXT NOT NULL,
  url          TEXT,                 -- NULL: its name is its URL
  settings     TEXT,                 -- JSON
  context      TEXT,                 -- JSON
  save         TEXT,                 -- JSON
  etag         TEXT,
  last_modified TEXT,
  error        TEXT                  -- of the last visit; NULL: it went well
);
CREATE INDEX pages_visiting ON pages (state) WHERE state = 1;  -- few: found when their owner has died
CREATE TABLE results (
  page_id    INTEGER NOT NULL,
  part       TEXT NOT NULL,
  value      TEXT NOT NULL,      -- JSON
  added_at   INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (page_id, part)
) WITHOUT ROWID;
CREATE TABLE feed (  -- what became of results, for sinks
  project_id INTEGER NOT NULL,
  number     INTEGER NOT NULL,   -- ascends over all projects
  page_id    INTEGER NOT NULL,
  part       TEXT NOT NULL,
  news       INTEGER NOT NULL,   -- 0 added, 1 changed, 2 gone
  value      TEXT NOT NULL,      -- JSON; of what is gone what it was
  at         INTEGER NOT NULL,
  PRIMARY KEY (project_id, number)
) WITHOUT ROWID;
CREATE TABLE rounds (
  project_id    INTEGER NOT NULL,
  number        INTEGER NOT NULL,  -- from 1
  began         INTEGER NOT NULL,
  ended         INTEGER,
  finished_told INTEGER NOT NULL,
  pages         INTEGER NOT NULL,
  failed        INTEGER NOT NULL,
  results       INTEGER NOT NULL,
  cause         TEXT NOT NULL,
  PRIMARY KEY (project_id, number)
) WITHOUT ROWID;
CREATE TABLE sinks (
  project_id INTEGER NOT NULL,
  name       TEXT NOT NULL,
  cursor     INTEGER NOT NULL,   -- number of the feed up to which it has all
  place      TEXT,               -- JSON: what it needs to go on
  trouble    TEXT,               -- why it is behind
  PRIMARY KEY (project_id, name)
) WITHOUT ROWID;
CREATE TABLE tallies (
  project_id INTEGER PRIMARY KEY,
  results    INTEGER NOT NULL    -- rows it has in `results`
);
CREATE TABLE marks (  -- last_feed_number, last_project_id: no number is given out twice
  name   TEXT PRIMARY KEY,
  number INTEGER NOT NULL
) WITHOUT ROWID;
CREATE VIEW page_list AS
  SELECT j.name AS project, p.page_id, coalesce(p.url, p.name) AS url, r.name AS rule,
         CASE p.state WHEN 0 THEN 'waiting' WHEN 1 THEN 'visiting' WHEN 2 THEN 'done' WHEN 3 THEN 'failed' ELSE 'cancelled' END AS state,
         p.priority, CASE WHEN p.due > 0 THEN datetime(p.due / 1000, 'unixepoch') END AS due,
         CASE WHEN p.succeeded_at > 0 THEN datetime(p.succeeded_at / 1000, 'unixepoch') END AS succeeded_at,
         CASE WHEN p.ended_at > 0 THEN datetime(p.ended_at / 1000, 'unixepoch') END AS ended_at,
         p.retried, p.status_code, p.error
  FROM pages p LEFT JOIN projects j ON j.project_id = p.page_id >> 40 LEFT JOIN rules r USING (rule_id);
CREATE VIEW result_list AS
  SELECT j.name AS project, coalesce(p.url, p.name) AS url, r.part, r.value,
         datetime(r.added_at / 1000, 'unixepoch') AS added_at, datetime(r.changed_at / 1000, 'unixepoch') AS changed_at
  FROM results r LEFT JOIN pages p USING (page_id) LEFT JOIN projects j ON j.project_id = r.page_id >> 40;
)sql";

// The last visit, as JSON (VisitTrack); NULL: nothing is known of it. The last column: looks alone read so far.
constexpr const char* kWithTracks = "ALTER TABLE pages ADD COLUMN track TEXT";

// A wanted start of a project, and the alarms of a round, outlive the process that has found them.
constexpr const char* kWithWants = R"sql(
ALTER TABLE projects ADD COLUMN start_wanted TEXT;  -- why it is to start as soon as its script has said what it is
ALTER TABLE rounds ADD COLUMN coverage TEXT;        -- JSON: how many of its records have each field
ALTER TABLE rounds ADD COLUMN alarms TEXT;          -- JSON: what was wrong with it, a sentence each
)sql";

constexpr const char* kPageMigrations[] = {kFirstPageSchema, kWithTracks, kWithWants};

// The column of an age or an interval, which may be shorter than it can say. Never zero for spans that are not.
std::int64_t stored_span(Duration span) noexcept {
  if (span < Duration::zero()) return -1;
  return std::chrono::ceil<std::chrono::milliseconds>(std::min(span, Duration::max() - std::chrono::milliseconds{1}))
      .count();
}
Duration read_span(std::int64_t ms) noexcept {
  constexpr std::int64_t kMostMs = std::chrono::floor<std::chrono::milliseconds>(Duration::max()).count();
  return ms < 0 ? kNeverOld : Duration{std::chrono::milliseconds{std::min(ms, kMostMs)}};
}

// Numbers of a file that another program has written may be any.
template <class Number>
Number narrow_to(std::int64_t number) noexcept {
  return static_cast<Number>(
      std::clamp<std::int64_t>(number, std::numeric_limits<Number>::min(), std::numeric_limits<Number>::max()));
}
WallTime time_at(std::int64_t ms) noexcept { return from_ms(std::max<std::int64_t>(ms, 0)); }
template <class Value>
Value enum_at(std::int64_t number, Value last) noexcept {
  return static_cast<Value>(std::clamp<std::int64_t>(number, 0, static_cast<std::int64_t>(last)));
}

}  // namespace

constinit const SqliteFormat kPageFormat{kPagesApplicationId, kPageMigrations};

}  // namespace argiope::page_rows

namespace argiope {

Result<void> check_page_file(const std::string& path) { return check_sqlite_head(path, page_rows::kPageFormat); }

}  // namespace argiope

namespace argiope::page_rows {

// --- pages -----------------------------------------------------------------------------------------------------------

void read_narrow(const SqliteStatement& row, NarrowRow& page) {
  page.id = row.number(0);
  page.fingerprint = static_cast<std::uint64_t>(row.number(1));
  page.host_id = static_cast<std::uint32_t>(row.number(2));
  page.rule_id = row.number(3);
  KnownPage& known = page.known;
  known.state = enum_at(row.number(4), PageState::cancelled);
  known.wait = enum_at(row.number(5), PageWait::recrawl);
  known.again = row.number(6) != 0;
  known.priority = narrow_to<std::int32_t>(row.number(7));
  known.due = time_at(row.number(8));
  known.succeeded_at = time_at(row.number(9));
  known.ended_at = time_at(row.number(10));
  known.interval = std::nullopt;
  if (!row.is_null(11)) known.interval = read_span(row.number(11));
  known.retried = narrow_to<std::uint32_t>(row.number(12));
  known.tag = static_cast<PageTag>(row.number(13));
  page.round = row.number(14);
  known.own = {};
  if (!row.is_null(15)) known.own = read_own_terms(row.bytes(15));
}

void read_page(const SqliteStatement& row, PageRecord& page, std::int64_t& rule_id) {
  NarrowRow narrow;
  read_narrow(row, narrow);
  page.id = narrow.id;
  page.fingerprint = narrow.fingerprint;
  page.host_id = narrow.host_id;
  page.known = narrow.known;
  page.round = narrow.round;
  rule_id = narrow.rule_id;
  page.status_code = narrow_to<std::int32_t>(row.number(16));
  page.crashes = narrow_to<std::uint32_t>(row.number(17));
  page.digest = static_cast<std::uint64_t>(row.number(18));
  page.from = row.number(19);
  std::string* const texts[] = {&page.name, &page.url,  &page.settings,      &page.context,
                                &page.save, &page.etag, &page.last_modified, &page.error};
  int column = 20;
  for (std::string* const text : texts) *text = row.bytes(column++);
  page.track = row.bytes(column);
}

void bind_known(SqliteStatement& statement, int first, const KnownPage& known, std::int64_t round,
                const std::string& own) {
  statement.bind(first, static_cast<std::int64_t>(known.state));
  statement.bind(first + 1, static_cast<std::int64_t>(known.wait));
  statement.bind(first + 2, std::int64_t{known.again});
  statement.bind(first + 3, std::int64_t{known.priority});
  statement.bind(first + 4, to_ms(known.due));
  statement.bind(first + 5, to_ms(known.succeeded_at));
  statement.bind(first + 6, to_ms(known.ended_at));
  if (known.interval) {
    statement.bind(first + 7, stored_span(*known.interval));
  } else {
    statement.bind_null(first + 7);
  }
  statement.bind(first + 8, std::int64_t{known.retried});
  statement.bind(first + 9, static_cast<std::int64_t>(known.tag));
  statement.bind(first + 10, round);
  statement.bind_or_null(first + 11, own);
}

std::string stored_own_terms(const OwnTerms& own) {
  std::string text;
  const auto add = [&text](std::string_view name, std::int64_t value) {
    if (!text.empty()) text += ' ';
    text += name;
    text += '=';
    fmt::format_to(std::back_inserter(text), "{}", value);
  };
  if (own.priority) add("priority", *own.priority);
  if (own.age) add("age", stored_span(*own.age));
  if (own.retries) add("retries", *own.retries);
  if (own.auto_recrawl) add("recrawl", *own.auto_recrawl ? 1 : 0);
  return text;
}

OwnTerms read_own_terms(std::string_view stored) {
  OwnTerms own;
  while (!stored.empty()) {
    const std::string_view word = stored.substr(0, stored.find(' '));
    stored.remove_prefix(std::min(word.size() + 1, stored.size()));
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = word.substr(0, equals), digits = word.substr(equals + 1);
    std::int64_t value = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc{}) continue;
    if (name == "priority") own.priority = narrow_to<std::int32_t>(value);
    if (name == "age") own.age = read_span(value);
    if (name == "retries") own.retries = narrow_to<std::uint32_t>(value);
    if (name == "recrawl") own.auto_recrawl = value != 0;
  }
  return own;
}

// --- what is beside them ---------------------------------------------------------------------------------------------

void bind_project(SqliteStatement& statement, const ProjectRecord& project) {
  statement.bind(1, std::int64_t{project.id});
  statement.bind(2, project.name);
  statement.bind(3, project.version);
  statement.bind(4, project.status);
  statement.bind_or_null(5, project.group);
  statement.bind_null(6);
  if (project.rate) statement.bind_real(6, *project.rate);
  statement.bind_null(7);
  if (project.burst) statement.bind(7, std::int64_t{*project.burst});
  statement.bind_or_null(8, project.pause);
  statement.bind_or_null(9, project.counters);
  statement.bind_or_null(10, project.description);
  statement.bind_or_null(11, project.trouble);
  statement.bind(12, to_ms(project.made_at));
  statement.bind(13, to_ms(project.changed_at));
  statement.bind_null(14);
  if (project.deleted_at) statement.bind(14, to_ms(*project.deleted_at));
  statement.bind_or_null(15, project.ticks);
  statement.bind_null(16);
  if (project.start_wanted) statement.bind(16, *project.start_wanted);
}

void read_project_row(const SqliteStatement& row, ProjectRecord& project) {
  project.id = narrow_to<ProjectId>(row.number(0));
  project.name = row.bytes(1);
  project.version = row.number(2);
  project.status = row.bytes(3);
  project.group = row.bytes(4);
  if (!row.is_null(5)) project.rate = row.real(5);
  if (!row.is_null(6)) project.burst = narrow_to<std::uint32_t>(row.number(6));
  project.pause = row.bytes(7);
  project.counters = row.bytes(8);
  project.description = row.bytes(9);
  project.trouble = row.bytes(10);
  project.made_at = time_at(row.number(11));
  project.changed_at = time_at(row.number(12));
  if (!row.is_null(13)) project.deleted_at = time_at(row.number(13));
  project.ticks = row.bytes(14);
  if (!row.is_null(15)) project.start_wanted = row.bytes(15);
}

void bind_version(SqliteStatement& statement, const ProjectVersion& version) {
  statement.bind(1, std::int64_t{version.project});
  statement.bind(2, version.number);
  statement.bind(3, to_ms(version.made_at));
  statement.bind(4, version.text);
  statement.bind_or_null(5, version.source);
  statement.bind_or_null(6, version.script);
  statement.bind_or_null(7, version.note);
}

void read_version(const SqliteStatement& row, ProjectVersion& version) {
  version.project = narrow_to<ProjectId>(row.number(0));
  version.number = row.number(1);
  version.made_at = time_at(row.number(2));
  version.text = row.bytes(3);
  version.source = row.bytes(4);
  version.script = row.bytes(5);
  version.note = row.bytes(6);
}

namespace {

// Both are empty for a round of which there is nothing to say.
std::string stored_coverage(const std::vector<FieldCount>& fields) {
  std::string text;
  if (fields.empty()) return text;
  JsonWriter out(text);
  out.array([&] {
    for (const FieldCount& count : fields) {
      out.object([&] {
        out.member("field", count.field);
        out.member("records", count.records);
        out.member("dropped", count.dropped);
        out.member("found", count.found);
      });
    }
  });
  return text;
}

std::string stored_alarms(const std::vector<std::string>& alarms) {
  std::string text;
  if (alarms.empty()) return text;
  JsonWriter out(text);
  out.array([&] {
    for (const std::string& alarm : alarms) out.value(alarm);
  });
  return text;
}

// Values of another kind, which another program may have written there, are passed over.
void read_stored_coverage(std::string_view stored, std::vector<FieldCount>& fields) {
  const auto text = JsonText::parse(stored);
  if (!text) return;
  JsonErrors errors;
  text->root(errors).for_each([&](const JsonValue& entry) {
    FieldCount count;
    entry.for_each_member([&](std::string_view name, const JsonValue& value) {
      if (name == "field") count.field = value.if_text().value_or("");
      if (name == "records") count.records = value.if_natural().value_or(0);
      if (name == "dropped") count.dropped = value.if_natural().value_or(0);
      if (name == "found") count.found = value.if_natural().value_or(0);
    });
    fields.push_back(std::move(count));
  });
}

void read_stored_alarms(std::string_view stored, std::vector<std::string>& alarms) {
  const auto text = JsonText::parse(stored);
  if (!text) return;
  JsonErrors errors;
  text->root(errors).for_each([&](const JsonValue& entry) {
    if (const auto alarm = entry.if_text()) alarms.emplace_back(*alarm);
  });
}

}  // namespace

RoundTexts stored_texts(const RoundRecord& round) {
  return {stored_coverage(round.fields), stored_alarms(round.alarms)};
}

void bind_round(SqliteStatement& statement, const RoundRecord& round, const RoundTexts& texts) {
  statement.bind(1, std::int64_t{round.project});
  statement.bind(2, round.number);
  statement.bind(3, to_ms(round.began));
  statement.bind_null(4);
  if (round.ended) statement.bind(4, to_ms(*round.ended));
  statement.bind(5, std::int64_t{round.finished_told});
  statement.bind(6, static_cast<std::int64_t>(round.pages));
  statement.bind(7, static_cast<std::int64_t>(round.failed));
  statement.bind(8, static_cast<std::int64_t>(round.results));
  statement.bind(9, round.cause);
  statement.bind_or_null(10, texts.coverage);
  statement.bind_or_null(11, texts.alarms);
}

void read_round(const SqliteStatement& row, RoundRecord& round) {
  round.project = narrow_to<ProjectId>(row.number(0));
  round.number = row.number(1);
  round.began = time_at(row.number(2));
  if (!row.is_null(3)) round.ended = time_at(row.number(3));
  round.finished_told = row.number(4) != 0;
  round.pages = static_cast<std::uint64_t>(row.number(5));
  round.failed = static_cast<std::uint64_t>(row.number(6));
  round.results = static_cast<std::uint64_t>(row.number(7));
  round.cause = row.bytes(8);
  if (!row.is_null(9)) read_stored_coverage(row.bytes(9), round.fields);
  if (!row.is_null(10)) read_stored_alarms(row.bytes(10), round.alarms);
}

void bind_sink(SqliteStatement& statement, const SinkRow& sink) {
  statement.bind(1, std::int64_t{sink.project});
  statement.bind(2, sink.name);
  statement.bind(3, sink.cursor);
  statement.bind_or_null(4, sink.place);
  statement.bind_or_null(5, sink.trouble);
}

void read_sink(const SqliteStatement& row, SinkRow& sink) {
  sink.project = narrow_to<ProjectId>(row.number(0));
  sink.name = row.bytes(1);
  sink.cursor = row.number(2);
  sink.place = row.bytes(3);
  sink.trouble = row.bytes(4);
}

ResultNews read_news(std::int64_t stored) noexcept { return enum_at(stored, ResultNews::gone); }

}  // namespace argiope::page_rows
