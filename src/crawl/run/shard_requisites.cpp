// What pages are shown with: found on pages and style sheets, fetched as pages are, and not followed. Nothing here runs in a crawl
// that saves no assets.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "argiope/web/charset.hpp"
#include "crawl/page/page_in_utf8.hpp"
#include "crawl/run/shard.hpp"
#include "web/html/internal/page_rewriter.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {
namespace {

constexpr std::size_t kKnownRequisites = std::size_t{1} << 13;

}  // namespace

bool Crawler::Shard::has_requisites(const Visit& visit) const noexcept {
  const HttpResponse& response = visit.response;
  const UrlTask& task = *visit.ticket.task;
  if (options_.requisites == Requisites::none || is_only_checked(task.purpose)) return false;
  if (response.status != 200 || response.unwanted) return false;
  if (is_style_sheet(response)) return true;
  return task.purpose != Purpose::requisite && is_html_page(response.headers.content_type, response.body);
}

LinkHarvester::Summary Crawler::Shard::scan_page(Visit& visit) {
  if (is_scanned(visit)) return scanned_;
  if (!options_.hosts.empty()) harvester_.speak_for(visit.ticket.host->policy->product_token);
  const HttpResponse& response = visit.response;
  const bool has_references = has_requisites(visit) && !is_style_sheet(response);
  scanned_ = harvester_.scan(visit.request.url, response.body, response.headers.content_type, has_references ? &references_ : nullptr);
  visit.scan = ++scans_;
  return scanned_;
}

const PageReferences* Crawler::Shard::scan_early(Visit& visit) {
  // What is rendered is looked at as JavaScript has made it.
  if (visit.rendered != nullptr || !has_requisites(visit) || is_style_sheet(visit.response)) return nullptr;
  scan_page(visit);
  const std::string_view body = visit.response.body, text = harvester_.html();
  return text.data() == body.data() && text.size() == body.size() ? &references_ : nullptr;
}

void Crawler::Shard::find_requisites(Visit& visit, UrlBatch& batch) {
  if (!has_requisites(visit)) return;
  const HttpResponse& response = visit.response;
  const UrlTask& task = *visit.ticket.task;
  const bool is_style = is_style_sheet(response);
  const bool is_last_sheet = is_of_pages(task.purpose) && task.nesting >= kMostNestedRequisites;
  if (!is_style) scan_page(visit);
  const CharsetDecision charset = detect_charset(response.body, response.headers.content_type);
  const std::string_view text = is_style ? page_in_utf8(response.body, charset, transcoded_) : harvester_.html();
  LinkResolver resolver;
  resolver.begin(visit.request.url, is_style ? std::string_view{} : references_.base_href, is_style ? "UTF-8" : charset.name);
  known_requisites_.resize(kKnownRequisites);
  std::string_view base = resolver.base().without_fragment();
  base = base.substr(0, base.find('?'));
  const std::uint64_t folder = fingerprint(base.substr(0, base.rfind('/') + 1), fingerprint(resolver.encoding()));
  std::size_t room = options_.max_links_per_page;
  const auto visit_one = [&](std::string_view url, ReferenceRole) {
    if (url.starts_with("data:") || url.starts_with('#') || room == 0) return;
    --room;
    // Pages of a folder have the same ones again and again. What lies too deep here may lie nearer to another page.
    if (url.front() != '?' && !is_last_sheet) {
      const std::uint64_t pair = fingerprint(url, folder);
      std::uint64_t& slot = known_requisites_[pair & (kKnownRequisites - 1)];
      if (std::exchange(slot, pair) == pair) return;
    }
    if (resolver.resolve(url, noted_) == UrlStatus::ok) discover_requisite(task, noted_, 0, batch);
  };
  is_style ? visit_style_assets(text, visit_one) : visit_assets(text, references_, "UTF-8", visit_one);
}

void Crawler::Shard::discover_requisite(const UrlTask& from, const Url& url, std::uint8_t redirects, UrlBatch& batch) {
  if (url.scheme() != "http" && url.scheme() != "https") return;
  const std::string& href = url.href();
  UrlTask task;
  task.fingerprint = shared_.fingerprint_of(href);
  if (is_nested_too_deep(from, task.fingerprint, batch)) return;
  task.url = href;
  // As deep as its page, and stored as if a link led there, in case that one does.
  task.depth = from.depth + (from.purpose == Purpose::requisite ? 0 : 1);
  task.redirects = redirects;
  task.nesting = is_of_pages(from.purpose) ? static_cast<std::uint8_t>(from.nesting + 1) : 0;
  task.purpose = Purpose::requisite;
  task.counted = true;
  Exclusion place = shared_.place_of(href, 0);
  if (is_place_of_requisites(place, options_)) place = shared_.scope.bars_check(href, task.depth - 1);
  // What is not saved is checked as it is without that.
  if (place != Exclusion::none && options_.check_assets) return (void)discover_asset(from, url, batch);
  const auto [is_new, known_id] = shared_.seen.claim(task.fingerprint);
  if (is_new) {
    task.id = known_id;
    batch.discovered.push_back({task.id, task.url, task.depth, kRequisitePriority, from.id, wall(), UrlReason::requisite});
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
  found_[shared_.shard_of(url)].push_back(std::move(task));
}

// Whether `from`, whose outcome is the batch's first, is the last of its chain of files. A server may have another one behind each for
// ever; a circle of them ends where one is known.
bool Crawler::Shard::is_nested_too_deep(const UrlTask& from, std::uint64_t fingerprint, UrlBatch& batch) {
  if (!is_of_pages(from.purpose) || from.nesting < kMostNestedRequisites) return false;
  if (shared_.seen.id_of(fingerprint) != 0) return true;
  count(Exclusion::nesting);
  UrlOutcome& outcome = batch.outcomes.front();
  if (outcome.error.empty() && outcome.status_code == 200) {
    outcome.error = fmt::format("what it refers to is left out: {} files lead here one after the other", kMostNestedRequisites);
  }
  return true;
}

// A link of the crawl leads to the URL. Whether it was known as a requisite: that is a page after all.
bool Crawler::Shard::link_to_requisite(const UrlTask& link, const Url& url, UrlBatch& batch) {
  const auto change = shared_.requisites.link(link.fingerprint);
  if (!change) return false;
  if (!change->is_settled) {
    batch.parts.push_back({change->id, UrlReason::none});
    return true;
  }
  UrlTask page = link;
  page.id = change->id;
  page.url = url.href();
  queue_anew(page.id, UrlReason::none, batch);
  shared_.ending.begin(1);
  found_[shared_.shard_of(url)].push_back(std::move(page));
  return true;
}

void Crawler::Shard::queue_anew(std::int64_t id, UrlReason reason, UrlBatch& batch) {
  UrlOutcome outcome;
  outcome.url_id = id;
  outcome.state = UrlState::queued;
  outcome.reason = reason;
  outcome.mtime = wall();
  batch.outcomes.push_back(std::move(outcome));
}

// What was asked for is dealt with. True: it has turned out to be more meanwhile, and is asked for as that.
bool Crawler::Shard::settle_requisite(Visit& visit, UrlBatch& batch) {
  UrlTask& task = task_of(visit);
  const auto known = shared_.requisites.settle(task.fingerprint);
  const Purpose purpose = known ? purpose_among_requisites(task.purpose, *known) : task.purpose;
  if (purpose == task.purpose) return false;
  queue_anew(task.id, reason_of(purpose), batch);
  begin_as(purpose, task);
  task.revisit = false;
  return true;
}

}  // namespace argiope
