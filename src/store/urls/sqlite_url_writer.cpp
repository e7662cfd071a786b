#include "store/urls/sqlite_url_writer.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "store/urls/sqlite_url_rows.hpp"

namespace argiope {

using namespace url_rows;

SqliteUrlWriter::SqliteUrlWriter(const std::string& path, const UrlStoreOptions& options)
    : SqliteOwner(path, {.sync = options.sync,
                         .busy_limit = options.busy_limit,
                         .is_private = options.is_private,
                         .max_bytes = options.max_bytes}),
      before_commit_(options.before_commit) {}

Result<std::unique_ptr<SqliteUrlWriter>> SqliteUrlWriter::open(const std::string& path,
                                                               const UrlStoreOptions& options) {
  std::unique_ptr<SqliteUrlWriter> writer(new SqliteUrlWriter(path, options));
  if (auto opened = writer->open_file(kFormat); !opened) return std::unexpected(std::move(opened.error()));
  if (auto prepared = writer->prepare_all(); !prepared) return std::unexpected(std::move(prepared.error()));
  writer->be_patient();
  return writer;
}

Result<void> SqliteUrlWriter::prepare_all() {
  // The columns that every outcome changes; a page that was not modified keeps the rest.
  const std::string outcome =
      "UPDATE urls SET state = ?2, mtime = ?3, due = ?4, status_code = ?5, attempts = ?6, redirect_to = ?7, error = "
      "?8, shelf = NULL, site = NULL";
  // Unchanged pages keep the status that they had; of an older version's 304, and of a failure since, it was 200.
  std::string touched = outcome;
  touched.replace(touched.find("?5"), 2,
                  "iif(state = 'failed' AND ?2 = 'done', 200, coalesce(nullif(status_code, 304), 200))");
  touched += ", met_limit = iif(state = 'failed' AND ?2 = 'done', NULL, met_limit)";
  const std::pair<SqliteStatement&, std::string> statements[] = {
      {insert_, "INSERT OR IGNORE INTO urls (url_id, url, ctime, depth, priority, referrer) VALUES (?, ?, ?, ?, ?, ?)"},
      {insert_excluded_,
       "INSERT OR IGNORE INTO urls (url_id, url, ctime, depth, priority, referrer, reason, state) "
       "VALUES (?, ?, ?, ?, ?, ?, ?, 'excluded')"},
      {update_,
       outcome +
           ", content_type = ?9, size = ?10, etag = ?11, last_modified = ?12, digest = ?13, reason = ?14, met_limit = "
           "?15 WHERE url_id = ?1"},
      {touch_, touched + " WHERE url_id = ?1"},
      {move_, "UPDATE urls SET shelf = ?2, site = ?3, priority = ?4, depth = ?5 WHERE url_id = ?1"},
      {nearer_,
       "UPDATE urls SET depth = ?2, priority = CASE WHEN ?4 AND shelf IS NOT NULL THEN priority ELSE ?3 END "
       "WHERE url_id = ?1 AND depth > ?2"},
      {put_links_, "INSERT OR REPLACE INTO links (url_id, redirect, targets) VALUES (?, ?, ?)"},
      {forget_kept_, "DELETE FROM page_links WHERE from_id = ?"},
      {put_kept_, std::string("INSERT INTO page_links (") + kLinkColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"},
      {put_facts_, std::string("INSERT OR REPLACE INTO page_facts (") + kFactColumns +
                       ", anchors) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"},
      {put_note_, "INSERT OR REPLACE INTO notes (name, text) VALUES (?, ?)"},
      {take_given_, "DELETE FROM inbox WHERE number = ?"},
      {forget_note_, "DELETE FROM notes WHERE name = ?"},
      {put_run_, std::string("INSERT OR REPLACE INTO runs (") + kRunColumns + ") VALUES (?, ?, ?, ?, ?, ?)"},
      {put_change_, std::string("INSERT INTO changes (") + kChangeColumns + ") VALUES (?, ?, ?, ?, ?, ?)"},
      {note_linked_,
       "UPDATE urls SET reason = iif(state = 'excluded', 'off_scope', 'checked') WHERE url_id = ? AND reason = "
       "'asset'"},
      {note_part_,
       "UPDATE urls SET state = 'queued', reason = ?2, etag = NULL, last_modified = NULL "
       "WHERE url_id = ?1 AND reason IS NOT NULL AND reason IS NOT ?2"},
  };
  return database().prepare_each(statements);
}

void SqliteUrlWriter::commit() {
  if (writes() && before_commit_) {
    auto kept = before_commit_();
    if (!kept) throw DatabaseFailed{std::move(kept.error())};
    for (const UrlNote& note : *kept) store_note(note);
  }
  SqliteOwner::commit();
}

// --- rows ------------------------------------------------------------------------------------------------------------

void SqliteUrlWriter::write(const UrlBatch& batch) {
  for (const NewUrl& found : batch.discovered) insert(found);
  for (const UrlOutcome& outcome : batch.outcomes) update(outcome);
  for (const UrlMove& move : batch.moves) store_move(move);
  for (const UrlDepth& nearer : batch.depths) store_depth(nearer);
  for (const UrlLinks& links : batch.links) store_links(links);
  for (const KeptLinks& page : batch.kept_links) store_kept(page);
  for (const PageFacts& facts : batch.facts) store_facts(facts);
  for (const std::int64_t url_id : batch.linked) {
    note_linked_.bind(1, url_id);
    run(note_linked_);
  }
  for (const UrlPart& part : batch.parts) {
    note_part_.bind(1, part.url_id);
    note_part_.bind_or_null(2, to_string(part.reason));
    run(note_part_);
  }
  for (const UrlNote& note : batch.notes) store_note(note);
  for (const std::int64_t number : batch.taken) {
    take_given_.bind(1, number);
    run(take_given_);
  }
  for (const UrlRun& made : batch.runs) store_run(made);
  for (const UrlChange& change : batch.changes) store_change(change);
}

void SqliteUrlWriter::store_run(const UrlRun& made) {
  put_run_.bind(1, made.run_id);
  put_run_.bind(2, to_ms(made.began));
  put_run_.bind_or_null(3, to_ms(made.ended));
  put_run_.bind(4, std::int64_t{made.finished});
  put_run_.bind_or_null(5, made.stopped_by);
  put_run_.bind(6, static_cast<std::int64_t>(made.fetched));
  run(put_run_);
}

void SqliteUrlWriter::store_change(const UrlChange& change) {
  put_change_.bind(1, change.url_id);
  put_change_.bind(2, to_ms(change.at));
  put_change_.bind(3, to_string(change.kind));
  put_change_.bind_or_null(4, std::int64_t{change.status_before});
  put_change_.bind_or_null(5, std::int64_t{change.status_after});
  put_change_.bind_or_null(6, change.detail);
  run(put_change_);
}

void SqliteUrlWriter::store_note(const UrlNote& note) {
  if (note.is_secret && !note.text.empty()) keep_to_owner();
  SqliteStatement& statement = note.text.empty() ? forget_note_ : put_note_;
  statement.bind(1, note.name);
  if (!note.text.empty()) statement.bind(2, note.text);
  run(statement);
}

void SqliteUrlWriter::insert(const NewUrl& found) {
  const bool queued = found.reason == UrlReason::none;
  SqliteStatement& statement = queued ? insert_ : insert_excluded_;
  statement.bind(1, found.url_id);
  statement.bind(2, found.url);
  statement.bind(3, to_ms(found.ctime));
  statement.bind(4, std::int64_t{found.depth});
  statement.bind(5, std::int64_t{found.priority});
  statement.bind_or_null(6, found.referrer);
  if (!queued) statement.bind(7, to_string(found.reason));
  run(statement);
}

void SqliteUrlWriter::update(const UrlOutcome& outcome) {
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
  run(statement);
}

void SqliteUrlWriter::store_depth(const UrlDepth& nearer) {
  nearer_.bind(1, nearer.url_id);
  nearer_.bind(2, std::int64_t{nearer.depth});
  nearer_.bind(3, std::int64_t{nearer.priority});
  nearer_.bind(4, std::int64_t{nearer.keeps_place});
  run(nearer_);
}

void SqliteUrlWriter::store_links(const UrlLinks& links) {
  std::vector<std::int64_t> targets = links.targets;
  std::ranges::sort(targets);
  const auto repeated = std::ranges::unique(targets);
  targets.erase(repeated.begin(), repeated.end());
  bytes_.clear();
  append_ids(bytes_, targets);
  put_links_.bind(1, links.url_id);
  put_links_.bind(2, std::int64_t{links.redirect});
  put_links_.bind_bytes(3, bytes_);
  run(put_links_);
}

void SqliteUrlWriter::store_kept(const KeptLinks& page) {
  forget_kept_.bind(1, page.url_id);
  run(forget_kept_);
  std::int64_t place = 0;
  for (const KeptLink& link : page.links) {
    put_kept_.bind(1, page.url_id);
    put_kept_.bind(2, place++);
    put_kept_.bind_or_null(3, link.target);
    put_kept_.bind_or_null(4, link.href);
    put_kept_.bind(5, link.kind);
    put_kept_.bind_or_null(6, link.text);
    put_kept_.bind_or_null(7, link.rel);
    put_kept_.bind(8, std::int64_t{link.line});
    put_kept_.bind_or_null(9, link.fragment);
    put_kept_.bind_or_null(10, link.error);
    run(put_kept_);
  }
}

void SqliteUrlWriter::store_facts(const PageFacts& facts) {
  put_facts_.bind(1, facts.url_id);
  put_facts_.bind(2, std::chrono::floor<std::chrono::microseconds>(facts.took).count());
  put_facts_.bind(3, facts.wire_bytes);
  put_facts_.bind_or_null(4, facts.title);
  put_facts_.bind_or_null(5, facts.description);
  put_facts_.bind_or_null(6, facts.heading);
  put_facts_.bind(7, std::int64_t{facts.titles});
  put_facts_.bind(8, std::int64_t{facts.descriptions});
  put_facts_.bind(9, std::int64_t{facts.headings});
  put_facts_.bind_or_null(10, facts.canonical);
  put_facts_.bind(11, std::int64_t{facts.noindex});
  put_facts_.bind(12, std::int64_t{facts.words});
  put_facts_.bind(13, static_cast<std::int64_t>(facts.simhash));
  bytes_.clear();
  if (facts.anchors) {
    append_anchors(bytes_, *facts.anchors);
    put_facts_.bind_bytes(14, bytes_);
  } else {
    put_facts_.bind_null(14);
  }
  run(put_facts_);
}

void SqliteUrlWriter::store_move(const UrlMove& move) {
  move_.bind(1, move.url_id);
  if (move.shelf) {
    move_.bind(2, stored_shelf(*move.shelf));
    move_.bind(3, static_cast<std::int64_t>(move.site));
  } else {
    move_.bind_null(2);
    move_.bind_null(3);
  }
  move_.bind(4, std::int64_t{move.priority});
  move_.bind(5, std::int64_t{move.depth});
  run(move_);
}

}  // namespace argiope
