#include "crawl/books/demand_book.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace argiope {

DemandBook::DemandBook(const CrawlOptions& options) {
  const std::pair<bool, std::string_view> kept[] = {
      {options.keep_links, kLinksDemand},          {options.check_assets, kAssetsDemand},
      {options.check_fragments, kFragmentsDemand}, {options.check_foreign_fragments, kForeignDemand},
      {options.keep_facts, kFactsDemand},          {options.duplicates.keep_simhashes, kWordsDemand}};
  for (const auto& [is_made, name] : kept) {
    if (is_made) demands_.push_back({.name = std::string(name)});
  }
  for (const auto& sink : options.sinks) {
    std::string name = sink->demand();
    if (name.empty()) continue;
    demands_.push_back({.name = std::move(name),
                        .is_kept = false,
                        .begins_anew = sink->begins_anew(),
                        .knows_itself = sink->can_lack()});
  }
  if (options.renderer) demands_.push_back({.name = "rendered pages", .is_kept = false});
}

Result<void> DemandBook::open(UrlStore& store, std::optional<WallTime> first_run, WallTime now, UrlBatch& batch) {
  std::map<std::string, SeenTimes> known;
  auto scanned = store.scan_notes(kSeenNotes, [&](const UrlNote& note) {
    known.emplace(note.name.substr(kSeenNotes.size()), SeenTimes(note.text));
    return true;
  });
  if (!scanned) return scanned;
  const auto write = [&](const std::string& name, const std::string& text) {
    batch.notes.push_back({fmt::format("{}{}", kSeenNotes, name), text});
  };
  for (Demand& demand : demands_) {
    const auto found = known.extract(demand.name);
    if (found && !demand.begins_anew) demand.seen = std::move(found.mapped());
    // A mirror of an earlier version says itself what it has.
    if (!found && demand.knows_itself) demand.seen.begin(WallTime{});
    const bool goes_on = found && demand.seen.is_open();
    demand.seen.begin(now);
    if (!goes_on) write(demand.name, demand.seen.text());
    demand.may_miss = store.next_id() > 1 && !demand.seen.is_open_since(first_run.value_or(WallTime{}));
    may_miss_ = may_miss_ || demand.may_miss;
  }
  // A demand that this run does not make will not have seen this run's answers.
  std::vector<std::pair<std::int64_t, std::string>> ended;
  for (auto& [name, seen] : known) {
    if (seen.is_open()) {
      seen.end(now);
      write(name, seen.text());
    }
    ended.emplace_back(seen.last(), name);
  }
  if (ended.size() > kMostForgotten) {
    std::ranges::sort(ended);
    ended.resize(ended.size() - kMostForgotten);
    for (const auto& [last, name] : ended) write(name, {});
  }
  return {};
}

bool DemandBook::Demand::misses(const UrlRecord& record) const noexcept {
  if (!may_miss || record.mtime == WallTime{} || seen.contains(record.mtime)) return false;
  // A URL that has failed may have its last answer yet.
  return !is_kept || record.state == UrlState::failed || is_answer_for(name, record);
}

bool DemandBook::misses(const UrlRecord& record) const noexcept {
  return may_miss_ && std::ranges::any_of(demands_, [&](const Demand& demand) { return demand.misses(record); });
}

bool DemandBook::asks(const UrlRecord& record) const noexcept {
  if (!may_miss_ || record.state != UrlState::done) return false;
  return std::ranges::any_of(demands_, [&](const Demand& demand) { return demand.is_kept && demand.misses(record); });
}

void DemandBook::note_left(const UrlRecord& record) {
  if (!may_miss_ || record.state != UrlState::done) return;
  for (const Demand& demand : demands_) {
    if (demand.is_kept || !demand.misses(record)) continue;
    const std::string kind = demand.name.substr(0, demand.name.find('/'));
    // An archive lacks redirects and errors as well: without them a replay does not find what is behind.
    const bool is_archived =
        record.status_code != 0 && record.reason != UrlReason::checked && record.reason != UrlReason::asset;
    if (is_page_answer(record) || (kind == kArchiveDemand && is_archived)) ++left_[kind];
  }
}

}  // namespace argiope
