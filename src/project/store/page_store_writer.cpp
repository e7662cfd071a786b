#include "project/store/page_store_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/internal/json_writer.hpp"
#include "project/store/page_store_rows.hpp"

namespace argiope {

using namespace page_rows;

namespace {

// The inner pages of a table of ten million rows, and some of its leaves.
constexpr std::int64_t kPageCacheKib = 16'384;
// 16 MB: of pages that change again and again fewer are written twice.
constexpr int kPageLogPages = 4000;
constexpr std::size_t kMostRuleIds = 10'000;
// Removed in a step.
constexpr std::int64_t kForgetRows = 4000;
constexpr std::int64_t kForgetVersions = 20;  // whose texts may be large
constexpr std::int64_t kPruneRows = 4000;     // in a batch

}  // namespace

PageStoreWriter::PageStoreWriter(const std::string& path, const PageStoreOptions& options)
    : SqliteOwner(path, {.sync = options.sync,
                         .busy_limit = options.busy_limit,
                         .is_private = options.is_private,
                         .max_bytes = options.max_bytes,
                         .cache_kib = kPageCacheKib,
                         .log_pages = kPageLogPages}),
      in_memory_(path == ":memory:") {}

Result<std::unique_ptr<PageStoreWriter>> PageStoreWriter::open(const std::string& path,
                                                               const PageStoreOptions& options) {
  std::unique_ptr<PageStoreWriter> writer(new PageStoreWriter(path, options));
  auto done = writer->in_memory_ ? writer->open_in_memory(kPageFormat) : writer->open_file(kPageFormat);
  if (done) done = writer->prepare_all();
  if (done) done = writer->begin_anew();
  if (!done) return std::unexpected(std::move(done.error()));
  writer->be_patient();
  return writer;
}

Result<void> PageStoreWriter::prepare_all() {
  constexpr const char* kKnownSet =
      "state = ?2, wait = ?3, again = ?4, priority = ?5, due = ?6, succeeded_at = ?7, ended_at = ?8, interval = ?9, "
      "retried = ?10, tag = ?11, "
      "round = ?12, own = ?13";
  const auto put = [](const char* table, std::string_view columns, std::string_view keys) {
    std::string values, set;
    for (std::string_view left = columns; !left.empty();) {
      const std::string_view name = left.substr(0, left.find(','));
      left.remove_prefix(std::min(name.size() + 2, left.size()));
      values += values.empty() ? "?" : ", ?";
      if (keys.find(name) == std::string_view::npos)
        set += fmt::format("{}{} = excluded.{}", set.empty() ? "" : ", ", name, name);
    }
    return fmt::format("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT ({}) DO UPDATE SET {}", table, columns, values,
                       keys, set);
  };
  const std::pair<SqliteStatement&, std::string> statements[] = {
      {put_project_, put("projects", kProjectColumns, "project_id")},
      {put_version_, put("versions", kVersionColumns, "project_id, number")},
      {put_host_, put("hosts", "host_id, site", "host_id")},
      {put_round_, put("rounds", kRoundColumns, "project_id, number")},
      {put_sink_, put("sinks", kSinkColumns, "project_id, name")},
      {drop_sinks_, "DELETE FROM sinks WHERE project_id = ? AND name NOT IN (SELECT value FROM json_each(?))"},
      {add_page_, fmt::format("INSERT INTO pages ({}, {}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                              "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                              kNarrowColumns, kWideColumns)},
      {change_page_, fmt::format("UPDATE pages SET {} WHERE page_id = ?1", kKnownSet)},
      {end_visit_, fmt::format("UPDATE pages SET {}, status_code = ?14, crashes = ?15, digest = ?16, etag = ?17, "
                               "last_modified = ?18, error = ?19, track = ?20 "
                               "WHERE page_id = ?1",
                               kKnownSet)},
      {change_texts_,
       "UPDATE pages SET rule_id = coalesce(?2, rule_id), settings = iif(?3, ?4, settings), context = iif(?5, ?6, "
       "context), "
       "save = iif(?7, ?8, save), url = iif(?9, ?10, url) WHERE page_id = ?1"},
      {find_rule_, "SELECT rule_id FROM rules WHERE project_id = ? AND name = ?"},
      {add_rule_, "INSERT INTO rules (project_id, name) VALUES (?, ?)"},
      {find_result_, "SELECT value FROM results WHERE page_id = ? AND part = ?"},
      {list_parts_, "SELECT part, value FROM results WHERE page_id = ?"},
      {add_result_, "INSERT INTO results (page_id, part, value, added_at, changed_at) VALUES (?1, ?2, ?3, ?4, ?4)"},
      {change_result_, "UPDATE results SET value = ?3, changed_at = ?4 WHERE page_id = ?1 AND part = ?2"},
      {remove_result_, "DELETE FROM results WHERE page_id = ? AND part = ?"},
      {tell_, "INSERT INTO feed (project_id, number, page_id, part, news, value, at) VALUES (?, ?, ?, ?, ?, ?, ?)"},
      {set_mark_, "INSERT OR REPLACE INTO marks (name, number) VALUES (?, ?)"},
      {count_results_,
       "INSERT INTO tallies (project_id, results) VALUES (?1, ?2) ON CONFLICT (project_id) DO UPDATE SET results = "
       "results + excluded.results"},
      {oldest_news_, "SELECT number, at FROM feed WHERE project_id = ?1 AND number <= ?2 ORDER BY number LIMIT ?3"},
      {prune_news_, "DELETE FROM feed WHERE project_id = ? AND number <= ?"},
      {begin_to_forget_, "UPDATE projects SET forgetting = 1 WHERE project_id = ?"},
      {find_forgotten_, "SELECT project_id FROM projects WHERE forgetting = 1 LIMIT 1"},
  };
  if (auto prepared = database().prepare_each(statements); !prepared) return prepared;
  // ?1 and ?2: the project's first and last page; ?3: the project; ?4: rows. The project itself goes last.
  constexpr std::pair<const char*, std::int64_t> kForget[] = {
      {"DELETE FROM results WHERE (page_id, part) IN (SELECT page_id, part FROM results WHERE page_id BETWEEN ?1 AND "
       "?2 LIMIT ?4)",
       kForgetRows},
      {"DELETE FROM feed WHERE project_id = ?3 AND number IN (SELECT number FROM feed WHERE project_id = ?3 LIMIT ?4)",
       kForgetRows},
      {"DELETE FROM pages WHERE page_id IN (SELECT page_id FROM pages WHERE page_id BETWEEN ?1 AND ?2 LIMIT ?4)",
       kForgetRows},
      {"DELETE FROM rounds WHERE project_id = ?3 AND number IN (SELECT number FROM rounds WHERE project_id = ?3 LIMIT "
       "?4)",
       kForgetRows},
      {"DELETE FROM rules WHERE rule_id IN (SELECT rule_id FROM rules WHERE project_id = ?3 LIMIT ?4)", kForgetRows},
      {"DELETE FROM versions WHERE project_id = ?3 AND number IN (SELECT number FROM versions WHERE project_id = ?3 "
       "LIMIT ?4)",
       kForgetVersions},
      {"DELETE FROM sinks WHERE project_id = ?3", 0},
      {"DELETE FROM tallies WHERE project_id = ?3", 0},
      {"DELETE FROM projects WHERE project_id = ?3", 0}};
  for (const auto& [sql, rows] : kForget) {
    auto prepared = prepare(sql);
    if (!prepared) return std::unexpected(std::move(prepared.error()));
    forget_.emplace_back(std::move(*prepared), rows);
  }
  return {};
}

// Takes over from the owner before: visits that were under way, and the numbers.
Result<void> PageStoreWriter::begin_anew() {
  if (auto done = database().execute("UPDATE pages SET state = 0, wait = 0, again = 0, due = 0 WHERE state = 1"); !done)
    return done;
  const auto feed =
      database().query_number("SELECT coalesce(max(number), 0) FROM marks WHERE name = 'last_feed_number'");
  if (!feed) return std::unexpected(feed.error());
  const auto project =
      database().query_number("SELECT coalesce(max(number), 0) FROM marks WHERE name = 'last_project_id'");
  if (!project) return std::unexpected(project.error());
  const auto forgotten = database().query_number("SELECT count(*) FROM projects WHERE forgetting = 1");
  if (!forgotten) return std::unexpected(forgotten.error());
  has_to_forget_ = *forgotten > 0;
  committed_ = numbers_ = {.feed = *feed, .project = *project};
  return {};
}

// --- transactions ----------------------------------------------------------------------------------------------------

void PageStoreWriter::begin(bool to_write) {
  if (in_memory_) in_use_ = std::unique_lock(shared_);
  SqliteOwner::begin(to_write);
}

void PageStoreWriter::commit() {
  if (writes()) {
    put_rounds();
    for (const auto& [project, more] : more_results_) {
      if (more == 0) continue;
      count_results_.bind(1, std::int64_t{project});
      count_results_.bind(2, more);
      run(count_results_);
    }
    if (numbers_.feed != committed_.feed) set_mark(kLastFeedNumber, numbers_.feed);
    if (numbers_.project != committed_.project) set_mark(kLastProject, numbers_.project);
  }
  SqliteOwner::commit();
  committed_ = numbers_;
  more_results_.clear();
  if (in_use_.owns_lock()) in_use_.unlock();
}

void PageStoreWriter::roll_back() noexcept {
  SqliteOwner::roll_back();
  numbers_ = committed_;
  more_results_.clear();
  rounds_.clear();
  rule_ids_.clear();
  if (in_use_.owns_lock()) in_use_.unlock();
}

template <class Each>
void PageStoreWriter::for_rows(SqliteStatement& statement, const Each& each) {
  int code = SQLITE_ROW;
  while ((code = statement.step()) == SQLITE_ROW) each(statement);
  Error error;
  if (code != SQLITE_DONE) error = database().error(code);
  statement.reset();
  if (code != SQLITE_DONE) throw DatabaseFailed{std::move(error)};
}

// --- rows ------------------------------------------------------------------------------------------------------------

bool PageStoreWriter::write(const PageBatch& batch) {
  const std::int64_t feed_before = numbers_.feed;
  for (const ProjectRecord& project : batch.projects) put_project(project);
  for (const ProjectVersion& version : batch.versions) {
    bind_version(put_version_, version);
    run(put_version_);
  }
  for (const HostRow& host : batch.hosts) {
    put_host_.bind(1, std::int64_t{host.id});
    put_host_.bind(2, host.site);
    run(put_host_);
  }
  for (const PageRecord& page : batch.added) add(page);
  for (const PageChange& changed : batch.changes) change(changed);
  for (const ResultsReplaced& visit : batch.replaced) replace_results(visit, batch.at);
  for (const ResultChange& result : batch.results) store_result(result, batch.at);
  for (const RoundRecord& round : batch.rounds) rounds_.insert_or_assign({round.project, round.number}, round);
  for (const SinkRow& sink : batch.sinks) {
    bind_sink(put_sink_, sink);
    run(put_sink_);
  }
  for (const SinksKept& kept : batch.kept_sinks) {
    std::string names;
    JsonWriter out(names);
    out.array([&] {
      for (const std::string& name : kept.names) out.value(name);
    });
    drop_sinks_.bind(1, std::int64_t{kept.project});
    drop_sinks_.bind(2, names);
    run(drop_sinks_);
  }
  for (const FeedPrune& old : batch.pruned) prune(old);
  if (!batch.forgotten.empty()) put_rounds();
  for (const ProjectId project : batch.forgotten) {
    begin_to_forget_.bind(1, std::int64_t{project});
    run(begin_to_forget_);
  }
  return numbers_.feed != feed_before;
}

void PageStoreWriter::put_project(const ProjectRecord& project) {
  bind_project(put_project_, project);
  run(put_project_);
  numbers_.project = std::max<std::int64_t>(numbers_.project, project.id);
}

void PageStoreWriter::put_rounds() {
  for (const auto& [key, round] : rounds_) {
    const RoundTexts texts = stored_texts(round);
    bind_round(put_round_, round, texts);
    run(put_round_);
  }
  rounds_.clear();
}

void PageStoreWriter::set_mark(std::string_view name, std::int64_t number) {
  set_mark_.bind(1, name);
  set_mark_.bind(2, number);
  run(set_mark_);
}

std::int64_t PageStoreWriter::rule_id(ProjectId project, std::string_view name) {
  if (name.empty()) return 0;
  key_.assign(reinterpret_cast<const char*>(&project), sizeof project);
  key_ += name;
  if (const auto known = rule_ids_.find(key_); known != rule_ids_.end()) return known->second;
  std::int64_t id = 0;
  find_rule_.bind(1, std::int64_t{project});
  find_rule_.bind(2, name);
  for_rows(find_rule_, [&id](const SqliteStatement& row) { id = row.number(0); });
  if (id == 0) {
    add_rule_.bind(1, std::int64_t{project});
    add_rule_.bind(2, name);
    run(add_rule_);
    id = sqlite3_last_insert_rowid(database().handle());
  }
  if (rule_ids_.size() >= kMostRuleIds) rule_ids_.clear();
  rule_ids_.emplace(key_, id);
  return id;
}

void PageStoreWriter::add(const PageRecord& page) {
  own_ = stored_own_terms(page.known.own);
  add_page_.bind(1, page.id);
  add_page_.bind(2, static_cast<std::int64_t>(page.fingerprint));
  add_page_.bind(3, std::int64_t{page.host_id});
  add_page_.bind(4, rule_id(project_of(page.id), page.rule));
  bind_known(add_page_, 5, page.known, page.round, own_);
  int place = 5 + kKnownParameters;
  add_page_.bind(place++, std::int64_t{page.status_code});
  add_page_.bind(place++, std::int64_t{page.crashes});
  add_page_.bind(place++, static_cast<std::int64_t>(page.digest));
  add_page_.bind_or_null(place++, page.from);
  add_page_.bind(place++, page.name);
  for (const std::string* const text :
       {&page.url, &page.settings, &page.context, &page.save, &page.etag, &page.last_modified, &page.error}) {
    add_page_.bind_or_null(place++, *text);
  }
  run(add_page_);
}

void PageStoreWriter::change(const PageChange& change) {
  own_ = stored_own_terms(change.known.own);
  SqliteStatement& statement = change.outcome ? end_visit_ : change_page_;
  statement.bind(1, change.id);
  bind_known(statement, 2, change.known, change.round, own_);
  if (change.outcome) {
    int place = 2 + kKnownParameters;
    statement.bind(place++, std::int64_t{change.outcome->status_code});
    statement.bind(place++, std::int64_t{change.outcome->crashes});
    statement.bind(place++, static_cast<std::int64_t>(change.outcome->digest));
    statement.bind_or_null(place++, change.outcome->etag);
    statement.bind_or_null(place++, change.outcome->last_modified);
    statement.bind_or_null(place++, change.outcome->error);
    statement.bind_or_null(place++, change.outcome->track);
  }
  run(statement);
  if (change.rule || change.settings || change.context || change.save || change.url) change_texts(change);
}

void PageStoreWriter::change_texts(const PageChange& change) {
  change_texts_.bind(1, change.id);
  change_texts_.bind_null(2);
  if (change.rule) change_texts_.bind(2, rule_id(project_of(change.id), *change.rule));
  int place = 3;
  for (const auto* const text : {&change.settings, &change.context, &change.save, &change.url}) {
    change_texts_.bind(place++, std::int64_t{text->has_value()});
    change_texts_.bind_or_null(place++, *text ? std::string_view(**text) : std::string_view{});
  }
  run(change_texts_);
}

// --- results ---------------------------------------------------------------------------------------------------------

void PageStoreWriter::replace_results(const ResultsReplaced& visit, WallTime at) {
  std::vector<std::pair<std::string, std::string>> gone;
  list_parts_.bind(1, visit.page);
  for_rows(list_parts_, [&](const SqliteStatement& row) {
    const std::string_view part = row.bytes(0);
    if (std::ranges::find(visit.keep, part) == visit.keep.end()) gone.emplace_back(part, row.bytes(1));
  });
  for (const auto& [part, value] : gone) {
    remove_result(visit.page, part);
    tell(visit.page, part, ResultNews::gone, value, at);
  }
}

void PageStoreWriter::store_result(const ResultChange& change, WallTime at) {
  std::optional<std::string> before;
  find_result_.bind(1, change.page);
  find_result_.bind(2, change.part);
  for_rows(find_result_, [&before](const SqliteStatement& row) { before = row.bytes(0); });
  if (before == change.value) return;
  if (!change.value) {
    remove_result(change.page, change.part);
    return tell(change.page, change.part, ResultNews::gone, *before, at);
  }
  SqliteStatement& statement = before ? change_result_ : add_result_;
  statement.bind(1, change.page);
  statement.bind(2, change.part);
  statement.bind(3, *change.value);
  statement.bind(4, to_ms(at));
  run(statement);
  if (!before) ++more_results_[project_of(change.page)];
  tell(change.page, change.part, before ? ResultNews::changed : ResultNews::added, *change.value, at);
}

void PageStoreWriter::remove_result(PageId page, std::string_view part) {
  remove_result_.bind(1, page);
  remove_result_.bind(2, part);
  run(remove_result_);
  --more_results_[project_of(page)];
}

void PageStoreWriter::tell(PageId page, std::string_view part, ResultNews news, std::string_view value, WallTime at) {
  tell_.bind(1, std::int64_t{project_of(page)});
  tell_.bind(2, ++numbers_.feed);
  tell_.bind(3, page);
  tell_.bind(4, part);
  tell_.bind(5, stored_news(news));
  tell_.bind(6, value);
  tell_.bind(7, to_ms(at));
  run(tell_);
}

// Up to the first row that is too young, so that no more is read than what is removed.
void PageStoreWriter::prune(const FeedPrune& prune) {
  oldest_news_.bind(1, std::int64_t{prune.project});
  oldest_news_.bind(2, prune.up_to);
  oldest_news_.bind(3, kPruneRows);
  std::int64_t last = 0;
  int code = SQLITE_ROW;
  while ((code = oldest_news_.step()) == SQLITE_ROW && oldest_news_.number(1) < to_ms(prune.before))
    last = oldest_news_.number(0);
  Error error;
  if (code != SQLITE_ROW && code != SQLITE_DONE) error = database().error(code);
  oldest_news_.reset();
  if (code != SQLITE_ROW && code != SQLITE_DONE) throw DatabaseFailed{std::move(error)};
  if (last == 0) return;
  prune_news_.bind(1, std::int64_t{prune.project});
  prune_news_.bind(2, last);
  run(prune_news_);
}

// --- forgetting ------------------------------------------------------------------------------------------------------

bool PageStoreWriter::forget_some() {
  put_rounds();
  std::optional<ProjectId> project;
  for_rows(find_forgotten_,
           [&project](const SqliteStatement& row) { project = static_cast<ProjectId>(row.number(0)); });
  if (!project) return false;
  for (auto& [statement, rows] : forget_) {
    statement.bind(1, first_page_id(*project));
    statement.bind(2, last_page_id(*project));
    statement.bind(3, std::int64_t{*project});
    if (rows > 0) statement.bind(4, rows);
    run(statement);
    if (rows > 0 && sqlite3_changes64(database().handle()) >= rows) return true;
  }
  rule_ids_.clear();
  return true;  // another one, perhaps
}

}  // namespace argiope
