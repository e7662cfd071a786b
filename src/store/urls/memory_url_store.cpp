#include "store/urls/memory_url_store.hpp"

#include <algorithm>
#include <chrono>

#include "base/internal/fingerprint.hpp"

namespace argiope {
namespace {

// Stores keep milliseconds.
using stored_time::stored;

std::int64_t in_ms(WallTime time) noexcept {
  return std::chrono::floor<std::chrono::milliseconds>(time).time_since_epoch().count();
}

}  // namespace

MemoryUrlStore::Place MemoryUrlStore::place_of(const UrlRecord& record) noexcept {
  return {record.shelf, record.shelf == Shelf::set_aside ? record.site : 0,
          record.shelf == Shelf::delayed ? in_ms(record.due) : -std::int64_t{record.priority}, record.url_id};
}

void MemoryUrlStore::put_on_shelf(const UrlRecord& record) {
  if (record.shelf) shelves_.insert(place_of(record));
}

void MemoryUrlStore::take_from_shelf(const UrlRecord& record) {
  if (record.shelf) shelves_.erase(place_of(record));
}

void MemoryUrlStore::submit(UrlBatch batch) {
  std::lock_guard lock(mutex_);
  for (NewUrl& found : batch.discovered) {
    UrlRecord record;
    record.url_id = found.url_id;
    record.url = std::move(found.url);
    record.depth = found.depth;
    record.priority = found.priority;
    record.referrer = found.referrer;
    record.ctime = stored(found.ctime);
    record.reason = found.reason;
    if (found.reason != UrlReason::none) record.state = UrlState::excluded;
    records_.try_emplace(found.url_id, std::move(record));
  }
  for (UrlOutcome& outcome : batch.outcomes) {
    const auto found = records_.find(outcome.url_id);
    if (found == records_.end()) continue;
    UrlRecord& record = found->second;
    take_from_shelf(record);
    record.shelf.reset();
    record.site = 0;
    const bool has_failed =
        std::exchange(record.state, outcome.state) == UrlState::failed && outcome.state == UrlState::done;
    if (has_failed && outcome.not_modified) record.limit = 0;
    record.mtime = stored(outcome.mtime);
    record.due = stored(outcome.due);
    const bool has_status = record.status_code != 0 && record.status_code != 304;
    if (!outcome.not_modified) {
      record.status_code = outcome.status_code;
    } else if (!has_status || has_failed) {
      record.status_code = 200;
    }
    record.attempts = outcome.attempts;
    record.redirect_to = std::move(outcome.redirect_to);
    record.error = std::move(outcome.error);
    if (outcome.not_modified) continue;
    record.reason = outcome.reason;
    record.limit = outcome.limit;
    record.content_type = std::move(outcome.content_type);
    record.size = outcome.size;
    record.etag = std::move(outcome.etag);
    record.last_modified = std::move(outcome.last_modified);
    record.digest = std::move(outcome.digest);
  }
  for (const UrlMove& move : batch.moves) {
    const auto found = records_.find(move.url_id);
    if (found == records_.end()) continue;
    UrlRecord& record = found->second;
    take_from_shelf(record);
    record.shelf = move.shelf;
    record.site = move.site;
    record.priority = move.priority;
    record.depth = move.depth;
    put_on_shelf(record);
  }
  for (const UrlDepth& nearer : batch.depths) {
    const auto found = records_.find(nearer.url_id);
    if (found == records_.end() || found->second.depth <= nearer.depth) continue;
    found->second.depth = nearer.depth;
    if (nearer.keeps_place && found->second.shelf) continue;
    take_from_shelf(found->second);
    found->second.priority = nearer.priority;
    put_on_shelf(found->second);
  }
  for (UrlLinks& links : batch.links) {
    std::ranges::sort(links.targets);
    const auto repeated = std::ranges::unique(links.targets);
    links.targets.erase(repeated.begin(), repeated.end());
    links_.insert_or_assign(links.url_id, std::move(links));
  }
  keep(batch);
  keep_history(batch);
}

void MemoryUrlStore::keep(UrlBatch& batch) {
  for (KeptLinks& page : batch.kept_links) {
    if (page.links.empty()) {
      kept_links_.erase(page.url_id);
    } else {
      kept_links_.insert_or_assign(page.url_id, std::move(page.links));
    }
  }
  for (PageFacts& facts : batch.facts) {
    facts.took = std::chrono::floor<std::chrono::microseconds>(facts.took);
    facts_.insert_or_assign(facts.url_id, std::move(facts));
  }
  for (const std::int64_t url_id : batch.linked) note_linked(url_id);
  for (const UrlPart& part : batch.parts) note_part(part);
  for (UrlNote& note : batch.notes) {
    if (note.text.empty()) {
      notes_.erase(note.name);
    } else {
      notes_.insert_or_assign(std::move(note.name), std::move(note.text));
    }
  }
}

void MemoryUrlStore::keep_history(UrlBatch& batch) {
  for (UrlRun& run : batch.runs) {
    run.began = stored(run.began);
    run.ended = stored(run.ended);
    runs_.insert_or_assign(run.run_id, std::move(run));
  }
  for (UrlChange& change : batch.changes) {
    change.at = stored(change.at);
    changes_.push_back(std::move(change));
  }
}

Result<void> MemoryUrlStore::scan_runs(const std::function<bool(const UrlRun&)>& visit) {
  std::map<std::int64_t, UrlRun> runs;
  {
    std::lock_guard lock(mutex_);
    runs = runs_;
  }
  for (const auto& [run_id, run] : runs) {
    if (!visit(run)) break;
  }
  return {};
}

Result<void> MemoryUrlStore::scan_changes(WallTime from, const std::function<bool(const UrlChange&)>& visit) {
  for (std::size_t next = 0;; ++next) {
    UrlChange change;
    {
      std::lock_guard lock(mutex_);
      if (next >= changes_.size()) return {};
      change = changes_[next];
    }
    if (change.at >= from && !visit(change)) return {};
  }
}

void MemoryUrlStore::note_part(const UrlPart& part) {
  const auto found = records_.find(part.url_id);
  if (found == records_.end()) return;
  UrlRecord& record = found->second;
  if (record.reason == UrlReason::none || record.reason == part.reason) return;
  record.state = UrlState::queued;
  record.reason = part.reason;
  record.etag.clear();
  record.last_modified.clear();
}

void MemoryUrlStore::note_linked(std::int64_t url_id) {
  const auto found = records_.find(url_id);
  if (found == records_.end() || found->second.reason != UrlReason::asset) return;
  found->second.reason = found->second.state == UrlState::excluded ? UrlReason::off_scope : UrlReason::checked;
}

Result<void> MemoryUrlStore::scan_kept_links(const LinkVisitor& visit) {
  for (std::int64_t next = 0;;) {
    std::int64_t url_id = 0;
    {
      std::lock_guard lock(mutex_);
      const auto found = kept_links_.lower_bound(next);
      if (found == kept_links_.end()) return {};
      url_id = found->first;
    }
    bool goes_on = true;
    auto scanned = scan_kept_links(url_id, [&](std::int64_t page, std::uint32_t place, const KeptLink& link) {
      return goes_on = visit(page, place, link);
    });
    if (!scanned || !goes_on) return scanned;
    next = url_id + 1;
  }
}

Result<void> MemoryUrlStore::scan_kept_links(std::int64_t url_id, const LinkVisitor& visit) {
  std::vector<KeptLink> links;
  {
    std::lock_guard lock(mutex_);
    const auto found = kept_links_.find(url_id);
    if (found != kept_links_.end()) links = found->second;
  }
  std::uint32_t place = 0;
  for (const KeptLink& link : links) {
    if (!visit(url_id, place++, link)) break;
  }
  return {};
}

Result<void> MemoryUrlStore::scan_notes(std::string_view prefix, const std::function<bool(const UrlNote&)>& visit) {
  std::vector<UrlNote> found;
  {
    std::lock_guard lock(mutex_);
    for (auto note = notes_.lower_bound(prefix); note != notes_.end() && note->first.starts_with(prefix); ++note) {
      found.push_back({note->first, note->second});
    }
  }
  for (const UrlNote& note : found) {
    if (!visit(note)) break;
  }
  return {};
}

Result<void> MemoryUrlStore::scan_facts(const std::function<bool(const PageFacts&)>& visit) {
  for (std::int64_t next = 0;;) {
    PageFacts facts;
    {
      std::lock_guard lock(mutex_);
      const auto found = facts_.lower_bound(next);
      if (found == facts_.end()) return {};
      facts = found->second;
    }
    facts.anchors.reset();
    if (!visit(facts)) return {};
    next = facts.url_id + 1;
  }
}

Result<std::optional<PageFacts>> MemoryUrlStore::facts(std::int64_t url_id) {
  std::lock_guard lock(mutex_);
  const auto found = facts_.find(url_id);
  return found == facts_.end() ? std::nullopt : std::optional(found->second);
}

Result<void> MemoryUrlStore::scan_links(const std::function<bool(const UrlLinks&)>& visit) {
  for (std::int64_t next = 0;;) {
    UrlLinks links;
    {
      std::lock_guard lock(mutex_);
      const auto found = links_.lower_bound(next);
      if (found == links_.end()) return {};
      links = found->second;
    }
    if (!visit(links)) return {};
    next = links.url_id + 1;
  }
}

Result<void> MemoryUrlStore::scan(std::int64_t from, const Visitor& visit, Fields) {
  // The visitor may submit: step by id instead of holding the lock or an iterator.
  for (std::int64_t next = from;;) {
    UrlRecord record;
    {
      std::lock_guard lock(mutex_);
      const auto found = records_.lower_bound(next);
      if (found == records_.end()) return {};
      record = found->second;
    }
    if (!visit(record)) return {};
    next = record.url_id + 1;
  }
}

// One by one, so that what a visitor submits is seen at once.
Result<void> MemoryUrlStore::scan_known(const KnownQuestion& question, const KnownVisitor& visit) {
  const std::uint64_t most = [&] {
    std::lock_guard lock(mutex_);
    return records_.size();
  }();
  return scan(question.from, [&](const UrlRecord& record) {
    const std::uint64_t print = fingerprint(record.url, question.seed);
    const bool is_wanted = question.settled || !is_settled(record);
    return visit({{&record.url_id, 1}, {&print, 1}, {&record, is_wanted ? std::size_t{1} : 0}, most});
  });
}

Result<void> MemoryUrlStore::scan_broken(const Visitor& visit) {
  return scan(1, [&](const UrlRecord& record) { return !is_broken(record) || visit(record); });
}

Result<void> MemoryUrlStore::scan_redirects(const Visitor& visit) {
  return scan(1, [&](const UrlRecord& record) { return record.redirect_to.empty() || visit(record); });
}

Result<void> MemoryUrlStore::read_shelf(const ShelfRead& read, const ShelfSites& sites, const Visitor& visit) {
  const bool aside = read.shelf == Shelf::set_aside;
  const bool delayed = read.shelf == Shelf::delayed;
  Place at{read.shelf, aside ? sites.site : 0,
           delayed ? in_ms(read.due_after.due_at) : -std::int64_t{read.after.priority},
           url_id_of(delayed ? read.due_after.id : read.after.id)};
  // As in scan(): from place to place.
  for (std::size_t visited = 0; visited < read.limit;) {
    UrlRecord record;
    {
      std::lock_guard lock(mutex_);
      const auto next = shelves_.upper_bound(at);
      if (next == shelves_.end() || next->shelf != at.shelf || next->site != at.site) return {};
      at = *next;
      record = records_.at(at.url_id);
    }
    if (!aside && part_of_site(record.site, sites.parts) != sites.part) continue;
    ++visited;
    if (!visit(record)) return {};
  }
  return {};
}

Result<std::optional<UrlRecord>> MemoryUrlStore::get(std::int64_t url_id) {
  std::lock_guard lock(mutex_);
  const auto found = records_.find(url_id);
  return found == records_.end() ? std::nullopt : std::optional(found->second);
}

std::int64_t MemoryUrlStore::next_id() {
  std::lock_guard lock(mutex_);
  return records_.empty() ? 1 : records_.rbegin()->first + 1;
}

}  // namespace argiope
