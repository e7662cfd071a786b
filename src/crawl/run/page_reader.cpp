#include "crawl/run/page_reader.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "argiope/web/detail/robots_meta.hpp"
#include "crawl/page/canonical_field.hpp"
#include "crawl/page/internal/refresh_field.hpp"
#include "crawl/run/discovery.hpp"
#include "crawl/run/sitemap_desk.hpp"
#include "web/html/internal/page_rewriter.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {
namespace {

constexpr std::size_t kKnownRequisites = std::size_t{1} << 13;

}  // namespace

Crawler::Shard::PageReader::PageReader(Core& core, Discovery& discovery, SitemapDesk& sitemaps)
    : Part(core), discovery_(discovery), sitemaps_(sitemaps), harvester_({}, options_.max_links_per_page) {}

void Crawler::Shard::PageReader::begin(Visit& visit) {
  // A page handler may ask for more links than are followed.
  const std::size_t of_handler = options_.on_page ? ScanOptions{}.max_links : 0;
  PageView& page = visit.page->view;
  page.read_as({.agent = visit.ticket.host->policy->product_token,
                .max_links = std::max(options_.max_links_per_page, of_handler),
                .note_places = static_cast<bool>(options_.on_page),
                .find_references = has_requisites(visit) && !is_style_sheet(page.content_type()),
                .pool = &buffers_});
}

void Crawler::Shard::PageReader::take(Visit& visit, VisitOutcome& outcome) {
  if (outcome.is_list) return;
  const HttpResponse& response = visit.page->response;
  const bool is_answer_of_page = task_of(visit).purpose == Purpose::page && !response.unwanted;
  if (is_answer_of_page && response.status == 200 && !visit.is_led_away()) follow_links(visit, outcome.batch);
  find_requisites(visit, outcome.batch);
}

void Crawler::Shard::PageReader::follow_links(Visit& visit, UrlBatch& batch) {
  const UrlTask& task = task_of(visit);
  const HttpResponse& response = visit.page->response;
  PageView& page = visit.page->view;
  const bool is_page = page.is_html();
  if (is_page) ShardCounters::add(counters_.pages);
  const bool is_read = is_page || is_xml(response.headers.content_type);
  if (!is_read && response.headers.refresh.empty()) return;
  const HostPolicy& policy = *visit.ticket.host->policy;
  if (parse_robots_tag(response.headers.robots_tag, policy.product_token).nofollow) return count(Exclusion::nofollow);
  if (!is_read) {
    follow_refresh(visit, batch);
    return discovery_.store_links(task, false, batch);
  }
  if (options_.feeds) sitemaps_.add_feeds_of(visit, batch);
  // Where each page leads is stored whole, or not at all.
  const std::uint64_t context = shared_.keeps_links ? mix64(static_cast<std::uint64_t>(task.id)) : 0;
  auto summary = harvester_.summary_of(page);
  if (shared_.duplicates && !summary.nofollow && is_copy(visit, batch))
    return discovery_.store_links(task, false, batch);
  const auto discover_link = [&](const LinkHarvester::Link& link) -> std::uint64_t {
    if (link.nofollow) {
      count(Exclusion::nofollow);
      return 0;
    }
    if (!follow_link(task, link.url, batch)) return 0;
    // No link makes what is linked from a seed nearer.
    return task.depth == 0 ? 0 : discovery_.last_linked();
  };
  harvester_.follow(page, summary, context, discover_link,
                    [&](std::uint64_t target) { discovery_.link_again(target); });
  if (!summary.nofollow) follow_refresh(visit, batch);
  if (visit.rendered != nullptr) discover_own_urls(visit, batch);
  discovery_.store_links(task, false, batch);
  if (summary.nofollow) count(Exclusion::nofollow);
  if (summary.dropped > 0) {
    ShardCounters::add(counters_.excluded[static_cast<std::size_t>(Exclusion::links_per_page)], summary.dropped);
    note_part(batch.outcomes.front(), UrlReason::links_per_page, options_.max_links_per_page);
  }
  if (summary.other_scheme > 0) {
    ShardCounters::add(counters_.excluded[static_cast<std::size_t>(Exclusion::scheme)], summary.other_scheme);
  }
}

// False: another URL is followed in its place.
bool Crawler::Shard::PageReader::follow_link(const UrlTask& from, const Url& url, UrlBatch& batch) {
  if (shared_.duplicates && discovery_.discover_stripped(from, url, batch)) return false;
  discovery_.discover(from, url, from.depth + 1, false, batch);
  return true;
}

// A link of the page's, whatever the answer is.
void Crawler::Shard::PageReader::follow_refresh(const Visit& visit, UrlBatch& batch) {
  if (find_refresh(visit.request.url, visit.page->response.headers.refresh, found_))
    follow_link(task_of(visit), found_, batch);
}

// The URLs that its script has given to the page are links of it.
void Crawler::Shard::PageReader::discover_own_urls(const Visit& visit, UrlBatch& batch) {
  const UrlTask& task = *visit.ticket.task;
  for (const std::string& text : visit.rendered->own_urls) {
    auto url = Url::parse(text);
    if (!url) continue;
    url->strip_fragment();
    url->strip_credentials();
    if (url->href() != visit.request.url.without_fragment())
      discovery_.discover(task, *url, task.depth + 1, false, batch);
  }
}

// --- what pages are shown with ---------------------------------------------------------------------------------------

bool Crawler::Shard::PageReader::has_requisites(const Visit& visit) const {
  const HttpResponse& response = visit.page->response;
  const UrlTask& task = *visit.ticket.task;
  if (options_.requisites == Requisites::none || is_only_checked(task.purpose)) return false;
  if (response.status != 200 || response.unwanted) return false;
  if (is_style_sheet(response.headers.content_type)) return true;
  return task.purpose != Purpose::requisite && visit.page->view.is_html();
}

const PageReferences* Crawler::Shard::PageReader::scan_early(Visit& visit) {
  PageView& page = visit.page->view;
  // Pages that are rendered are read as JavaScript has made them.
  if (visit.rendered != nullptr || !has_requisites(visit) || is_style_sheet(page.content_type())) return nullptr;
  return page.is_text_as_it_came() ? &page.references() : nullptr;
}

void Crawler::Shard::PageReader::find_requisites(Visit& visit, UrlBatch& batch) {
  if (!has_requisites(visit)) return;
  const UrlTask& task = *visit.ticket.task;
  PageView& page = visit.page->view;
  const bool is_style = is_style_sheet(page.content_type());
  const bool is_last_sheet = is_of_pages(task.purpose) && task.nesting >= kMostNestedRequisites;
  LinkResolver of_sheet;
  if (is_style) of_sheet.begin(page.url(), {}, "UTF-8");
  const LinkResolver& resolver = is_style ? of_sheet : page.resolver();
  known_requisites_.resize(kKnownRequisites);
  std::string_view base = resolver.base().without_fragment();
  base = base.substr(0, base.find('?'));
  const std::uint64_t folder = fingerprint(base.substr(0, base.rfind('/') + 1), fingerprint(resolver.encoding()));
  std::size_t room = options_.max_links_per_page;
  const auto visit_one = [&](std::string_view url, ReferenceRole) {
    if (url.starts_with("data:") || url.starts_with('#') || room == 0) return;
    --room;
    // Pages of a folder have the same ones again and again. One that is too deep here may lie nearer to another page.
    if (url.front() != '?' && !is_last_sheet) {
      const std::uint64_t pair = fingerprint(url, folder);
      std::uint64_t& slot = known_requisites_[pair & (kKnownRequisites - 1)];
      if (std::exchange(slot, pair) == pair) return;
    }
    if (resolver.resolve(url, found_) == UrlStatus::ok) discovery_.discover_requisite(task, found_, 0, batch);
  };
  is_style ? visit_style_assets(page.text(), visit_one)
           : visit_assets(page.text(), page.references(), "UTF-8", visit_one);
}

// --- what is there in several places ---------------------------------------------------------------------------------

// Whether another page is read in place of the one that the harvester has scanned: its links are not followed then.
// The lessons that it teaches of its parameters, and of the shape of its URL, are noted.
bool Crawler::Shard::PageReader::is_copy(Visit& visit, UrlBatch& batch) {
  if (batch.outcomes.front().reason != UrlReason::none || visit.page->response.truncated) return false;
  const DuplicateOptions& wanted = options_.duplicates;
  if (wanted.canonical && is_alias(visit, batch)) return true;
  if (wanted.learn_parameters && visit.page->view.words().count >= kFewWords) learn_parameters(visit, batch);
  const auto [reason, other] = find_copy(visit, batch);
  // A copy that is fetched again makes no row of copies.
  const bool counts = other == 0 || !task_of(visit).settled;
  if (auto trap = counts ? shared_.duplicates->watch(task_of(visit).url.href(), other != 0) : std::nullopt)
    batch.notes.push_back(std::move(*trap));
  if (reason == UrlReason::duplicate && wanted.skip_exact) return note_copy(batch, Exclusion::duplicate, other), true;
  if (reason == UrlReason::near_duplicate && wanted.skip_near)
    return note_copy(batch, Exclusion::near_duplicate, other), true;
  return false;
}

void Crawler::Shard::PageReader::note_copy(UrlBatch& batch, Exclusion why, std::int64_t other) {
  UrlOutcome& outcome = batch.outcomes.front();
  outcome.reason = reason_of(why);
  outcome.limit = other;
  count(why);
  shared_.count_left_out(outcome.reason);
}

bool Crawler::Shard::PageReader::is_alias(Visit& visit, UrlBatch& batch) {
  const UrlTask& task = task_of(visit);
  if (!harvester_.find_canonical(visit.page->view, canonical_field(visit.request.url, visit.page->response),
                                 canonical_))
    return false;
  if (canonical_ == task.url || (canonical_.scheme() != "http" && canonical_.scheme() != "https")) return false;
  if (shared_.place_of(canonical_.href(), task.depth + 1) != Exclusion::none ||
      discovery_.is_in_trap(canonical_.href()))
    return false;
  const Host& host = *visit.ticket.host;
  const bool is_forbidden =
      host.robots && canonical_.site_key() == host.site && !host.robots->allowed(canonical_.path_and_query());
  if (is_forbidden) return false;
  discovery_.discover(task, canonical_, task.depth + 1, false, batch);
  const std::int64_t canonical = shared_.seen.id_of(shared_.fingerprint_of(canonical_.href()));
  if (canonical == 0 || !shared_.duplicates->add_alias(task.id, canonical)) return false;
  note_copy(batch, Exclusion::alias, canonical);
  return true;
}

DuplicateBook::Copy Crawler::Shard::PageReader::find_copy(Visit& visit, const UrlBatch& batch) {
  const DuplicateOptions& wanted = options_.duplicates;
  const std::string& digest = batch.outcomes.front().digest;
  if (digest.empty() || !(wanted.skip_exact || wanted.compares_words())) return {};
  const std::string& site = visit.ticket.host->site;
  DuplicateBook::Content content{.page = {task_of(visit).id, task_of(visit).depth}, .bytes = content_key(digest, site)};
  if (wanted.compares_words() || wanted.learn_parameters) {
    const PageWords& said = visit.page->view.words();
    if (said.count >= kFewWords) content.simhash = said.simhash;
  }
  if (visit.before && !visit.before->digest.empty()) content.bytes_before = content_key(visit.before->digest, site);
  return shared_.duplicates->find_copy(content, site);
}

void Crawler::Shard::PageReader::learn_parameters(Visit& visit, UrlBatch& batch) {
  auto notes =
      shared_.duplicates->learn(task_of(visit).url.href(), visit.ticket.host->site, visit.page->view.words().digest);
  std::ranges::move(notes, std::back_inserter(batch.notes));
}

}  // namespace argiope
