#include "crawl/run/discovery.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace argiope {
namespace {

// How many files are between a page and what the answer of `from` refers to.
std::uint8_t nesting_below(const UrlTask& from) noexcept {
  return is_of_pages(from.purpose) ? static_cast<std::uint8_t>(from.nesting + 1) : 0;
}

}  // namespace

Crawler::Shard::Discovery::Discovery(Core& core) : Part(core) {}

void Crawler::Shard::Discovery::start() { found_.resize(shared_.shards.size()); }

// --- links -----------------------------------------------------------------------------------------------------------

void Crawler::Shard::Discovery::discover(const UrlTask& from, const Url& url, std::uint32_t depth, bool redirect,
                                         UrlBatch& batch) {
  if (url.scheme() != "http" && url.scheme() != "https") return count(Exclusion::scheme);
  Exclusion place = shared_.place_of(url.href(), depth);
  const Exclusion scope_place = place;
  if (place == Exclusion::none && shared_.duplicates && is_in_trap(url.href())) place = Exclusion::trap;
  const bool off_scope = place == Exclusion::off_scope;
  if (off_scope && options_.check_links) place = shared_.scope.bars_check(url.href(), depth);
  if (place != Exclusion::none) count(place);
  const std::uint64_t url_fingerprint = shared_.fingerprint_of(url.href());
  const auto [is_new, id] = shared_.seen.claim(url_fingerprint);
  if (shared_.keeps_links) {
    targets_.push_back(id);
  } else {
    linked_here_.push_back(url_fingerprint);
    if (is_new) found_here_.push_back({url_fingerprint, id, depth});
  }
  UrlTask task;
  task.fingerprint = url_fingerprint;
  task.depth = depth;
  if (is_new) {
    // A URL that is only checked is stored as a link out of scope, so that no other run takes it for one of its own.
    const UrlReason reason = off_scope ? UrlReason::off_scope : reason_of(place);
    batch.discovered.push_back(
        {id, std::string(url.href()), depth, crawl_priority(options_, depth, url.href()), from.id, wall(), reason});
    if (options_.requisites != Requisites::none && (reason != UrlReason::none || !options_.accept_types.empty())) {
      const auto part = reason == UrlReason::none ? RequisiteBook::Part::page : RequisiteBook::Part::link;
      shared_.requisites.add(url_fingerprint, id, part, place != Exclusion::none);
    }
    if (place != Exclusion::none) return shared_.count_left_out(reason);
    task.id = id;
    task.url = url;
    task.redirects = redirect ? static_cast<std::uint8_t>(from.redirects + 1) : 0;
    if (off_scope) task.purpose = Purpose::link;
    shared_.ending.begin(1);
    if (off_scope && options_.check_foreign_fragments) shared_.checks.add(url_fingerprint, {.id = id});
  } else {
    const bool may_turn = shared_.requisites.is_used() && scope_place == Exclusion::none;
    const bool turns = may_turn && link_to_requisite(task, url, batch);
    if (shared_.checks.is_used())
      turns ? void(shared_.checks.link(url_fingerprint)) : link_to_asset(task, url, scope_place, batch);
    if (!shared_.limits_depth || place != Exclusion::none) return;  // nothing about a known URL can change
  }
  found_[shared_.shard_of(url)].push_back(std::move(task));
}

// A URL given is followed whatever it is like.
bool Crawler::Shard::Discovery::is_in_trap(std::string_view href) const {
  return shared_.duplicates->is_trap(href) && !shared_.scope.is_seed(href) && shared_.duplicates->leave_out(href);
}

bool Crawler::Shard::Discovery::discover_stripped(const UrlTask& from, const Url& url, UrlBatch& batch) {
  if (!shared_.duplicates->strip(url, stripped_) || shared_.place_of(url.href(), 0) == Exclusion::off_scope ||
      shared_.scope.is_seed(url.href())) {
    return false;
  }
  count(Exclusion::parameter);
  if (shared_.duplicates->is_first_variant(shared_.fingerprint_of(stripped_.href()))) {
    const auto [is_new, id] = shared_.seen.claim(shared_.fingerprint_of(url.href()));
    if (is_new) {
      const std::uint32_t depth = from.depth + 1;
      batch.discovered.push_back({id, std::string(url.href()), depth, crawl_priority(options_, depth, url.href()),
                                  from.id, wall(), UrlReason::parameter});
      shared_.count_left_out(UrlReason::parameter);
    }
  }
  discover(from, stripped_, from.depth + 1, false, batch);
  return true;
}

void Crawler::Shard::Discovery::store_links(const UrlTask& from, bool redirect, UrlBatch& batch) {
  if (shared_.keeps_links) {
    batch.links.push_back({from.id, redirect, std::exchange(targets_, {})});
  } else {
    found_here_.push_back({from.fingerprint, from.id, from.depth});
    shared_.depth_book.found(found_here_);
    shared_.depth_book.linked(from.fingerprint, linked_here_, redirect);
  }
  found_here_.clear();
  linked_here_.clear();
}

// --- what pages are shown with ---------------------------------------------------------------------------------------

void Crawler::Shard::Discovery::discover_requisite(const UrlTask& from, const Url& url, std::uint8_t redirects,
                                                   UrlBatch& batch) {
  if (url.scheme() != "http" && url.scheme() != "https") return;
  const std::string& href = url.href();
  UrlTask task;
  task.fingerprint = shared_.fingerprint_of(href);
  if (is_nested_too_deep(from, task.fingerprint, batch)) return;
  task.url = url;
  // As deep as its page, and stored as if a link led there, in case that one does.
  task.depth = from.depth + (from.purpose == Purpose::requisite ? 0 : 1);
  task.redirects = redirects;
  task.nesting = nesting_below(from);
  task.purpose = Purpose::requisite;
  task.counted = true;
  Exclusion place = shared_.place_of(href, 0);
  if (is_place_of_requisites(place, options_)) place = shared_.scope.bars_check(href, task.depth - 1);
  // A file that is not saved is checked as in a crawl that saves none.
  if (place != Exclusion::none && options_.check_assets) return (void)discover_asset(from, url, batch);
  const auto [is_new, known_id] = shared_.seen.claim(task.fingerprint);
  if (is_new) {
    task.id = known_id;
    batch.discovered.push_back({task.id, href, task.depth, kRequisitePriority, from.id, wall(), UrlReason::requisite});
    shared_.requisites.add(task.fingerprint, task.id, RequisiteBook::Part::requisite, place != Exclusion::none);
    if (place != Exclusion::none) return count(place);
  } else {
    if (place != Exclusion::none) return;
    const auto change = shared_.requisites.need(task.fingerprint);
    if (!change) return;
    if (!change->is_settled) return batch.parts.push_back({change->id, UrlReason::requisite});
    task.id = change->id;
    queue_anew(task.id, UrlReason::requisite, batch);
  }
  shared_.ending.begin(1);
  shared_.ending.begin_part();
  queue(std::move(task));
}

// Whether `from`, whose outcome is the batch's first, is the last of its chain of files. A server may have another
// one behind each for ever; a circle of them ends where one is known.
bool Crawler::Shard::Discovery::is_nested_too_deep(const UrlTask& from, std::uint64_t fingerprint, UrlBatch& batch) {
  if (!is_of_pages(from.purpose) || from.nesting < kMostNestedRequisites) return false;
  if (shared_.seen.id_of(fingerprint) != 0) return true;
  count(Exclusion::nesting);
  UrlOutcome& outcome = batch.outcomes.front();
  if (outcome.error.empty() && outcome.status_code == 200) {
    outcome.error =
        fmt::format("what it refers to is left out: {} files lead here one after the other", kMostNestedRequisites);
  }
  return true;
}

// A link of the crawl leads to the URL. Whether it was known as a requisite: that is a page after all.
bool Crawler::Shard::Discovery::link_to_requisite(const UrlTask& link, const Url& url, UrlBatch& batch) {
  const auto change = shared_.requisites.link(link.fingerprint);
  if (!change) return false;
  if (!change->is_settled) {
    batch.parts.push_back({change->id, UrlReason::none});
    return true;
  }
  UrlTask page = link;
  page.id = change->id;
  page.url = url;
  queue_anew(page.id, UrlReason::none, batch);
  shared_.ending.begin(1);
  queue(std::move(page));
  return true;
}

void Crawler::Shard::Discovery::queue_anew(std::int64_t id, UrlReason reason, UrlBatch& batch) {
  UrlOutcome outcome;
  outcome.url_id = id;
  outcome.state = UrlState::queued;
  outcome.reason = reason;
  outcome.mtime = wall();
  batch.outcomes.push_back(std::move(outcome));
}

// --- what is only checked --------------------------------------------------------------------------------------------

std::int64_t Crawler::Shard::Discovery::discover_asset(const UrlTask& from, const Url& url, UrlBatch& batch) {
  UrlTask task;
  task.fingerprint = shared_.fingerprint_of(url.href());
  if (is_nested_too_deep(from, task.fingerprint, batch)) return shared_.seen.id_of(task.fingerprint);
  const auto [is_new, id] = shared_.seen.claim(task.fingerprint);
  // As deep as its page, and stored as if a link led there, in case that one does.
  task.depth = from.depth + (is_of_pages(from.purpose) ? 0 : 1);
  const std::int32_t priority = crawl_priority(options_, task.depth, url.href());
  if (!is_new) {
    // Of the pictures that a sitemap lists no links are kept by which depths could be counted again.
    if (from.purpose == Purpose::sitemap) come_nearer(id, url, task.depth, batch);
    return id;
  }
  task.id = id;
  task.url = url;
  task.purpose = Purpose::asset;
  task.nesting = nesting_below(from);
  batch.discovered.push_back({id, url.href(), task.depth, priority, from.id, wall(), UrlReason::asset});
  const Exclusion trap = shared_.scope.bars_check(url.href(), task.depth > 0 ? task.depth - 1 : 0);
  shared_.checks.add(task.fingerprint, {.id = id, .is_asset = true, .settled = trap != Exclusion::none});
  if (options_.requisites != Requisites::none) {
    shared_.requisites.add(task.fingerprint, id, RequisiteBook::Part::link, trap != Exclusion::none);
  }
  if (trap != Exclusion::none) {
    count(trap);
    return id;
  }
  shared_.ending.begin(1);
  queue(std::move(task));
  return id;
}

// `task`, which has fingerprint and depth, is a link to a URL that is known. If it was taken for an asset, it is none
// now: in scope it is fetched as a page, elsewhere its verdict stands.
void Crawler::Shard::Discovery::link_to_asset(const UrlTask& task, const Url& url, Exclusion place, UrlBatch& batch) {
  const auto [upgrade, id] = shared_.checks.link(task.fingerprint);
  if (upgrade == CheckBook::Upgrade::none) return;
  batch.linked.push_back(id);
  if (place != Exclusion::none) return;
  batch.parts.push_back({id, UrlReason::none});
  shared_.requisites.follow(task.fingerprint);
  if (upgrade == CheckBook::Upgrade::waiting) return;
  UrlTask page = task;
  page.id = id;
  page.url = url;
  shared_.ending.begin(1);
  found_[shared_.shard_of(url)].push_back(std::move(page));
}

void Crawler::Shard::Discovery::link_to_fragment(const UrlTask& from, const Url& url) {
  UrlTask task;
  task.fingerprint = shared_.fingerprint_of(url.href());
  const auto [upgrade, id] = shared_.checks.link_to_fragment(task.fingerprint);
  if (upgrade != CheckBook::Upgrade::settled) return;
  task.id = id;
  task.url = url;
  task.depth = from.depth + 1;
  task.purpose = Purpose::link;
  shared_.ending.begin(1);
  queue(std::move(task));
}

void Crawler::Shard::Discovery::come_nearer(std::int64_t id, const Url& url, std::uint32_t depth, UrlBatch& batch) {
  batch.depths.push_back({id, depth, crawl_priority(options_, depth, url.href()), true});
  if (!shared_.limits_depth) return;
  UrlTask task;
  task.fingerprint = shared_.fingerprint_of(url.href());
  task.url = url;
  task.depth = depth;
  queue(std::move(task));
}

// --- what is queued --------------------------------------------------------------------------------------------------

void Crawler::Shard::Discovery::queue(UrlTask task) { found_[shared_.shard_of(task.url)].push_back(std::move(task)); }

void Crawler::Shard::Discovery::hand_out(TimePoint now) {
  for (std::size_t owner = 0; owner < found_.size(); ++owner) {
    if (found_[owner].empty()) continue;
    if (owner != core_.index) {
      shared_.shards[owner]->post(std::exchange(found_[owner], {}));
      continue;
    }
    core_.shard.take_found(found_[owner], now);
  }
}

}  // namespace argiope
