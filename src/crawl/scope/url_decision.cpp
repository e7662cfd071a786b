#include "crawl/scope/url_decision.hpp"

#include <algorithm>

#include "crawl/options/internal/host_policies.hpp"
#include "crawl/scope/failure_rest.hpp"
#include "crawl/scope/revisit_plan.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {
namespace {

// By a clock that was wrong: nobody knows how old it is.
bool is_of_the_future(const UrlRecord& record, const RunView& run) noexcept {
  return run.now != WallTime{} && record.mtime > run.now;
}

bool is_old(const UrlRecord& record, const RunView& run) noexcept {
  if (run.options.adaptive) return RevisitPlan(run.options).due_of(record, run.now) <= run.now;
  return run.refetch_before && (record.mtime < *run.refetch_before || is_of_the_future(record, run));
}

bool accepts_type(const CrawlOptions& options, std::string_view content_type) noexcept {
  return options.accept_types.empty() || has_media_type(content_type, options.accept_types);
}

std::uint64_t most_pages(const UrlRecord& record, const RunView& run) {
  return run.hosts != nullptr ? run.hosts->of(record.url).max_pages : run.options.max_pages_per_host;
}

// An excluded URL that is in scope and no trap.
bool takes_up_excluded(const UrlRecord& record, const RunView& run) noexcept {
  switch (record.reason) {
    // Robots files change; its host's is read before anything else.
    case UrlReason::robots: return run.stage == Stage::opening;
    case UrlReason::pages_per_host:
      return run.stage == Stage::opening &&
             most_pages(record, run) > static_cast<std::uint64_t>(std::max<std::int64_t>(record.limit, 0));
    case UrlReason::content_type: return run.stage == Stage::opening && accepts_type(run.options, record.content_type);
    default: return true;  // what has excluded it does so no longer
  }
}

// A URL in scope that was answered, but not as a page of this crawl would be.
bool is_done_in_part(const UrlRecord& record, const CrawlOptions& options) noexcept {
  const auto larger = [&](std::uint64_t limit) {
    return limit > static_cast<std::uint64_t>(std::max<std::int64_t>(record.limit, 0));
  };
  switch (record.reason) {
    case UrlReason::cut_off: return larger(options.size_limit);
    case UrlReason::links_per_page: return larger(options.max_links_per_page);
    case UrlReason::redirects: return larger(options.max_redirects);
    case UrlReason::duplicate: return !options.duplicates.skip_exact;
    case UrlReason::near_duplicate: return !options.duplicates.skip_near;
    case UrlReason::alias: return !options.duplicates.canonical;
    default: return false;
  }
}

UrlWork decide_inside(const UrlRecord& record, const RunView& run) noexcept {
  const bool opening = run.stage == Stage::opening;
  if (opening && is_requeued(record, run.options.requeue)) return UrlWork::fetch;
  switch (record.state) {
    // A URL that is still queued when nothing is left to fetch was passed over, with its host.
    case UrlState::queued: return opening ? UrlWork::fetch : UrlWork::leave;
    case UrlState::failed:
      // Failed when it was only checked, and in scope now: it has not been fetched.
      return opening || record.reason == UrlReason::checked ? UrlWork::fetch : UrlWork::leave;
    case UrlState::excluded: return takes_up_excluded(record, run) ? UrlWork::fetch : UrlWork::leave;
    case UrlState::done:
      if (record.reason == UrlReason::checked) return UrlWork::fetch;
      if (!opening) return UrlWork::leave;
      if (is_done_in_part(record, run.options)) return UrlWork::fetch;
      // It is taken up before it is due, and waits.
      if (run.options.forever) return UrlWork::ask_if_changed;
      return is_old(record, run) ? UrlWork::ask_if_changed : UrlWork::leave;
  }
  return UrlWork::leave;
}

// Of what was checked: whether the verdict is too old to be believed.
bool is_old_verdict(const UrlRecord& record, const RunView& run) noexcept {
  if (!run.recheck_before) return is_old(record, run);
  return record.mtime < *run.recheck_before || is_of_the_future(record, run) || is_broken(record);
}

bool is_check_due(const UrlRecord& record, const RunView& run) noexcept {
  if (record.state != UrlState::done) return true;
  return is_old_verdict(record, run) || is_requeued(record, run.options.requeue);
}

// Only what was met as a link to another host is checked. One that waits for a crawl with another scope waits on.
UrlWork decide_outside(const UrlRecord& record, const RunView& run) noexcept {
  if (!run.options.check_links) return UrlWork::leave;
  const bool met_as_link = record.reason == UrlReason::checked ||
                           (record.state == UrlState::excluded && record.reason == UrlReason::off_scope);
  if (!met_as_link) return UrlWork::leave;
  const bool due = run.stage == Stage::opening ? is_check_due(record, run) : record.state == UrlState::excluded;
  return due ? UrlWork::check : UrlWork::leave;
}

// An asset is checked wherever it is, and no scope that grows matters to it.
UrlWork decide_asset(const UrlRecord& record, const RunView& run) noexcept {
  const bool due = run.options.check_assets && run.stage == Stage::opening && is_check_due(record, run);
  return due ? UrlWork::check : UrlWork::leave;
}

// As a page of the crawl, but that its place is of another kind.
UrlWork decide_requisite(const UrlRecord& record, const RunView& run) noexcept {
  if (run.options.requisites == Requisites::none || run.stage != Stage::opening) return UrlWork::leave;
  if (record.state != UrlState::done || is_requeued(record, run.options.requeue)) return UrlWork::fetch;
  const bool was_cut_off = record.limit > 0;
  if (was_cut_off && run.options.size_limit > static_cast<std::uint64_t>(record.limit)) return UrlWork::fetch;
  if (run.options.forever) return UrlWork::ask_if_changed;
  return is_old(record, run) ? UrlWork::ask_if_changed : UrlWork::leave;
}

// Each run asks a sitemap whether it has changed, wherever in scope it is. Those of other hosts are read when one names
// them.
UrlWork decide_sitemap(Exclusion place, const RunView& run) noexcept {
  const bool reads = (run.options.sitemaps || run.options.feeds) && run.stage == Stage::opening;
  return reads && place != Exclusion::off_scope ? UrlWork::sitemap : UrlWork::leave;
}

}  // namespace

bool rests(const UrlRecord& record, const RunView& run) noexcept {
  if (run.stage != Stage::opening || run.options.forever || !has_limit(run.options)) return false;
  if (is_requeued(record, run.options.requeue)) return false;
  // By a clock that was wrong it may rest for years.
  return rests_until(record) > run.now && !is_of_the_future(record, run);
}

UrlWork decide(const UrlRecord& record, Exclusion place, const RunView& run) noexcept {
  if (rests(record, run)) return UrlWork::leave;
  if (record.reason == UrlReason::sitemap) return decide_sitemap(place, run);
  const bool saves = run.options.requisites != Requisites::none && is_place_of_requisites(place, run.options);
  if (record.reason == UrlReason::requisite && saves) return decide_requisite(record, run);
  // Where it is not saved, it is an asset as others are.
  if (record.reason == UrlReason::asset || record.reason == UrlReason::requisite) {
    const bool is_there = place == Exclusion::none || place == Exclusion::off_scope;
    return is_there ? decide_asset(record, run) : UrlWork::leave;
  }
  if (place == Exclusion::none) return decide_inside(record, run);
  return place == Exclusion::off_scope ? decide_outside(record, run) : UrlWork::leave;
}

bool may_be_taken_up(const UrlRecord& record, const RunView& run) noexcept {
  if (rests(record, run)) return false;
  if (record.reason == UrlReason::sitemap) return decide_sitemap(Exclusion::none, run) != UrlWork::leave;
  if (record.reason == UrlReason::asset) return decide_asset(record, run) != UrlWork::leave;
  if (record.reason == UrlReason::requisite) {
    return decide_requisite(record, run) != UrlWork::leave || decide_asset(record, run) != UrlWork::leave;
  }
  return decide_inside(record, run) != UrlWork::leave || decide_outside(record, run) != UrlWork::leave;
}

bool is_requeued(const UrlRecord& record, Requeue requeue) noexcept {
  switch (requeue) {
    case Requeue::none: return false;
    case Requeue::failed: return record.state == UrlState::failed;
    case Requeue::excluded: return record.state == UrlState::excluded;
    case Requeue::broken: return is_broken(record) || record.state == UrlState::failed;
    case Requeue::all: return record.state != UrlState::queued;
  }
  return false;
}

bool is_place_of_requisites(Exclusion place, const CrawlOptions& options) noexcept {
  switch (place) {
    case Exclusion::none:
    case Exclusion::include:
    case Exclusion::path_prefix:
    case Exclusion::parent:
    case Exclusion::extension: return true;
    case Exclusion::off_scope: return options.requisites == Requisites::all;
    default: return false;
  }
}

UrlReason reason_of(Exclusion exclusion) noexcept {
  switch (exclusion) {
    case Exclusion::off_scope: return UrlReason::off_scope;
    case Exclusion::robots: return UrlReason::robots;
    case Exclusion::depth: return UrlReason::depth;
    case Exclusion::url_length: return UrlReason::url_length;
    case Exclusion::repeated_segment: return UrlReason::repeated_segment;
    case Exclusion::pages_per_host: return UrlReason::pages_per_host;
    case Exclusion::exclude: return UrlReason::exclude;
    case Exclusion::include: return UrlReason::include;
    case Exclusion::path_prefix: return UrlReason::path_prefix;
    case Exclusion::parent: return UrlReason::parent;
    case Exclusion::extension: return UrlReason::extension;
    case Exclusion::content_type: return UrlReason::content_type;
    case Exclusion::links_per_page: return UrlReason::links_per_page;
    case Exclusion::logout: return UrlReason::logout;
    case Exclusion::duplicate: return UrlReason::duplicate;
    case Exclusion::alias: return UrlReason::alias;
    case Exclusion::parameter: return UrlReason::parameter;
    case Exclusion::near_duplicate: return UrlReason::near_duplicate;
    case Exclusion::trap: return UrlReason::trap;
    case Exclusion::none:
    case Exclusion::scheme:
    case Exclusion::nofollow:
    case Exclusion::nesting: break;
  }
  return UrlReason::none;
}

}  // namespace argiope
