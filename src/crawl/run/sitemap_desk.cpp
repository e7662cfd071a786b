#include "crawl/run/sitemap_desk.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "argiope/web/http_client.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/printable.hpp"
#include "crawl/page/internal/link_resolver.hpp"
#include "crawl/run/discovery.hpp"
#include "crawl/run/host_hops.hpp"
#include "web/html/internal/page_survey.hpp"
#include "web/html/internal/sitemap.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {
namespace {

constexpr std::array<std::string_view, 2> kUsualPlaces = {"/sitemap.xml", "/sitemap_index.xml"};
// The protocol has one level of indexes; some sites have two.
constexpr std::uint8_t kMostNesting = 3;
// Read at a time by a shard, since each may have 64 MiB.
constexpr std::size_t kMostSitemapsAtOnce = 4;
constexpr std::size_t kMostFeedsOfPage = 20;

bool is_http(const Url& url) { return url.scheme() == "http" || url.scheme() == "https"; }

bool is_feed_type(std::string_view type) {
  const std::string parsed{parse_content_type(type).type};
  return equals_lower(parsed, "application/rss+xml") || equals_lower(parsed, "application/atom+xml") ||
         equals_lower(parsed, "application/rdf+xml");
}

// Some servers refuse to answer HEAD at all.
bool may_be_a_sitemap(const HttpResponse& response) {
  if (response.status == 405 || response.status == 501) return true;
  return response.status >= 200 && response.status < 300 && !is_html(response.headers.content_type);
}

}  // namespace

Crawler::Shard::SitemapDesk::SitemapDesk(Core& core, Discovery& discovery, HostHops& hops)
    : Part(core), discovery_(discovery), hops_(hops) {}

// --- finding them ----------------------------------------------------------------------------------------------------

void Crawler::Shard::SitemapDesk::add_sitemap_by_itself(const Url& url) {
  UrlBatch batch;
  add_sitemap(url, {}, batch);
  if (batch.size() > 0) shared_.store.submit(std::move(batch));
  discovery_.hand_out(loop().time());
}

void Crawler::Shard::SitemapDesk::add_given_sitemaps() {
  for (const Url& url : options_.sitemap_urls) add_sitemap_by_itself(url);
}

void Crawler::Shard::SitemapDesk::find_sitemaps(Host& host, const RobotsRules* rules) {
  const auto root = Url::parse(host.site + "/");
  if (!root || !shared_.is_in_scope(*root)) return;
  bool named = false;
  if (rules != nullptr) {
    for (const std::string& text : rules->sitemaps()) {
      const auto url = Url::parse(text, &*root);
      if (!url || !is_http(*url)) continue;
      named = true;
      add_sitemap_by_itself(*url);
    }
  }
  if (!named && shared_.sitemaps.take(host.site_fingerprint)) host.sitemap_guess = 1;
}

Coro<void> Crawler::Shard::SitemapDesk::guess_sitemap(Host& host) {
  const std::size_t guess = host.sitemap_guess - 1u;
  host.sitemap_guess = guess + 1 < kUsualPlaces.size() ? static_cast<std::uint8_t>(guess + 2) : 0;
  const Url place = *Url::parse(host.site + std::string(kUsualPlaces[guess]));
  if (host.robots && !host.robots->allowed(place.path_and_query())) co_return;
  if (shared_.sitemaps.is_taken(shared_.fingerprint_of(place.href()))) {
    host.sitemap_guess = 0;
    co_return;
  }
  HttpRequest request;
  request.method = HttpMethod::head;
  request.url = place;
  HttpResponse response;
  const auto sent = co_await hops_.ask_for_file(host, ExchangeKind::probe, request, response);
  if (!sent) host.sitemap_guess = static_cast<std::uint8_t>(guess + 1);
  if (!sent || !*sent || !may_be_a_sitemap(response)) co_return;
  host.sitemap_guess = 0;
  add_sitemap_by_itself(place);
}

void Crawler::Shard::SitemapDesk::add_feeds_of(Visit& visit, UrlBatch& batch) {
  PageView& page = visit.page->view;
  const PageSurvey& survey = page.survey();
  LinkResolver resolver;
  resolver.begin(visit.request.url, survey.base_href, page.charset().name);
  const UrlTask& task = task_of(visit);
  std::size_t found = 0;
  for (const SurveyedLink& link : survey.links) {
    if (link.kind != LinkKind::alternate || link.type.empty() || !is_feed_type(link.type)) continue;
    Url url;
    if (resolver.resolve(link.url, url) != UrlStatus::ok || !shared_.is_in_scope(url)) continue;
    add_sitemap(url, {.id = task.id, .depth = task.depth + 1}, batch);
    if (++found == kMostFeedsOfPage) break;
  }
}

// Queues a sitemap, once in a run. Its URL may be known as that of a page.
void Crawler::Shard::SitemapDesk::add_sitemap(const Url& found, const Origin& origin, UrlBatch& batch) {
  if (!is_http(found)) return;
  Url url = found;
  url.strip_fragment();
  url.strip_credentials();
  if (url.href().size() > options_.max_url_length) return;
  UrlTask task;
  task.fingerprint = shared_.fingerprint_of(url.href());
  if (!shared_.sitemaps.take(task.fingerprint)) return;
  task.url = std::move(url);
  task.depth = origin.depth;
  task.redirects = origin.redirects;
  task.nesting = origin.nesting;
  task.purpose = Purpose::sitemap;
  const auto [is_new, id] = shared_.seen.claim(task.fingerprint);
  task.id = id;
  const std::int32_t priority = crawl_priority(options_, task.depth, task.url.href());
  if (is_new) {
    batch.discovered.push_back({id, task.url.href(), task.depth, priority, origin.id, wall(), UrlReason::sitemap});
  } else {
    batch.depths.push_back({id, task.depth, priority, true});
    const auto record = shared_.store.get(id);
    const bool was_sitemap = record && *record && (*record)->reason == UrlReason::sitemap;
    if (!was_sitemap) {
      // A URL that was found in this run may not be written yet.
      const bool was_answered = shared_.sitemaps.want(task.fingerprint);
      const bool waits = !was_answered && (!record || !*record || shared_.is_under_way(**record));
      if (waits || options_.forever) return;
    }
    task.counted = true;
    task.revisit = was_sitemap && (*record)->state == UrlState::done;
  }
  shared_.ending.begin(1);
  discovery_.queue(std::move(task));
}

void Crawler::Shard::SitemapDesk::pass_on_sitemap(const Visit& visit, const UrlTask& task, UrlBatch& batch) {
  if (!shared_.reads_sitemaps || !shared_.sitemaps.is_wanted(task.fingerprint, false)) return;
  const auto target = Url::parse(visit.page->response.headers.location, &visit.request.url);
  if (target)
    add_sitemap(*target, {task.id, task.depth, task.nesting, static_cast<std::uint8_t>(task.redirects + 1)}, batch);
}

// --- reading them ----------------------------------------------------------------------------------------------------

bool Crawler::Shard::SitemapDesk::enter(Visit& visit) {
  if (under_way_ < kMostSitemapsAtOnce) {
    ++under_way_;
    return true;
  }
  Host& host = *visit.ticket.host;
  ++host.pins;
  waiting_.push_back(&host);
  return false;
}

void Crawler::Shard::SitemapDesk::leave(TimePoint now) {
  --under_way_;
  if (waiting_.empty()) return;
  Host& host = *waiting_.front();
  waiting_.pop_front();
  --host.pins;
  if (!host.is_held()) frontier_.let_go(host, now);
}

bool Crawler::Shard::SitemapDesk::is_sitemap(Visit& visit) {
  UrlTask& task = task_of(visit);
  if (task.purpose == Purpose::sitemap || is_only_checked(task.purpose)) return task.purpose == Purpose::sitemap;
  const HttpResponse& response = visit.page->response;
  const bool may_be_one = response.status == 200 && !is_html(response.headers.content_type);
  if (!shared_.sitemaps.is_wanted(task.fingerprint, may_be_one) || response.status != 200) return false;
  constexpr SitemapLimits kLook{.most_entries = 1, .most_links = 1};
  const SitemapReport look =
      read_sitemap(response.body, response.headers.content_type, kLook, [](const SitemapEntry&) {});
  if (look.kind == SitemapKind::none) {
    note_no_sitemap(task);
    return false;
  }
  if (task.purpose == Purpose::requisite) {
    shared_.requisites.settle(task.fingerprint);
    shared_.ending.end_part();
  }
  task.purpose = Purpose::sitemap;
  return true;
}

void Crawler::Shard::SitemapDesk::note_no_sitemap(const UrlTask& task) {
  ++shared_.sitemaps.counts.unreadable;
  spdlog::warn("{}: neither sitemap nor feed", printable(task.url.href()));
}

bool Crawler::Shard::SitemapDesk::on_sitemap(Visit& visit, UrlBatch& batch) {
  const UrlTask& task = task_of(visit);
  const HttpResponse& response = visit.page->response;
  UrlOutcome& outcome = batch.outcomes.front();
  outcome.reason = UrlReason::sitemap;
  if (outcome.state == UrlState::done) outcome.limit = 0;
  shared_.ending.give_pages_back(1);  // it is none
  if (outcome.not_modified) {
    ++shared_.sitemaps.counts.unchanged;
  } else if (response.status == 200) {
    return read_sitemap_of(visit, batch);
  } else if (is_redirect(response.status)) {
    const auto target = Url::parse(response.headers.location, &visit.request.url);
    if (response.headers.location.empty() || !target) {
      outcome.error =
          fmt::format("redirect to {}, which is no URL", in_quotes(without_credentials(response.headers.location)));
      return true;
    }
    outcome.redirect_to = target->href();
    if (task.redirects >= options_.max_redirects) {
      outcome.error = fmt::format("more than {} redirects", options_.max_redirects);
      return true;
    }
    add_sitemap(*target, {task.id, task.depth, task.nesting, static_cast<std::uint8_t>(task.redirects + 1)}, batch);
    discovery_.set_targets({shared_.seen.id_of(shared_.fingerprint_of(target->href()))});
    discovery_.store_links(task, true, batch);
  } else {
    ++shared_.sitemaps.counts.unreadable;
  }
  return true;
}

// False: it is none.
bool Crawler::Shard::SitemapDesk::read_sitemap_of(Visit& visit, UrlBatch& batch) {
  const UrlTask task = task_of(visit);
  const HttpResponse& response = visit.page->response;
  SitemapBook::Counts& counts = shared_.sitemaps.counts;
  if (task.revisit) {
    const auto before = shared_.store.get(task.id);
    const bool is_same = before && *before && (*before)->reason == UrlReason::sitemap && !(*before)->digest.empty() &&
                         (*before)->digest == batch.outcomes.front().digest;
    if (is_same) {
      batch.outcomes.front().error = (*before)->error;
      ++counts.unchanged;
      return true;
    }
  }
  discovery_.set_targets({});
  std::uint64_t no_urls = 0;
  std::uint64_t too_deep = 0;
  const auto take = [&](const SitemapEntry& entry) {
    Url base;
    const Url* of = &visit.request.url;
    if (!entry.base.empty() && parse_into(base, entry.base, of) == UrlStatus::ok) of = &base;
    Url url;
    if (parse_into(url, entry.url, of) != UrlStatus::ok) {
      ++no_urls;
      return;
    }
    url.strip_fragment();
    url.strip_credentials();
    switch (entry.kind) {
      case SitemapLink::sitemap:
        if (task.nesting >= kMostNesting) {
          if (!shared_.sitemaps.is_taken(shared_.fingerprint_of(url.href()))) ++too_deep;
          return;
        }
        return add_sitemap(url, {task.id, task.depth, static_cast<std::uint8_t>(task.nesting + 1), 0}, batch);
      case SitemapLink::image:
        if (options_.check_assets && is_http(url)) discovery_.discover_asset(task, url, batch);
        return;
      default: break;
    }
    if (!is_http(url)) return count(Exclusion::scheme);
    if (entry.modified) ask_if_newer(url, latest_of(*entry.modified), batch);
    discovery_.discover(task, url, task.depth, false, batch);
  };
  const SitemapReport report = read_sitemap(response.body, response.headers.content_type, SitemapLimits{}, take);
  UrlOutcome& outcome = batch.outcomes.front();
  if (report.kind == SitemapKind::none) {
    note_no_sitemap(task);
    outcome.error = "neither sitemap nor feed";
    return false;
  }
  discovery_.store_links(task, true, batch);
  counts.links += report.links;
  counts.dropped += report.dropped + no_urls;
  std::string trouble = report.trouble;
  if (response.truncated) trouble = fmt::format("only the first {} bytes were read", visit.request.body_limit);
  if (too_deep > 0 && trouble.empty()) trouble = fmt::format("{} below it left out", counted(too_deep, "sitemap"));
  ++counts.files;
  if (trouble.empty()) return true;
  ++counts.cut;
  outcome.error = "read in part: " + trouble;
  spdlog::warn("{}: {}", printable(task.url.href()), printable(trouble));
  return true;
}

// The page at `url` is asked whether it has changed, if it is known and was fetched before `modified`. That it waits
// is stored, since the next run may find the sitemap unchanged.
void Crawler::Shard::SitemapDesk::ask_if_newer(const Url& url, WallTime modified, UrlBatch& batch) {
  UrlTask task;
  task.fingerprint = shared_.fingerprint_of(url.href());
  task.id = shared_.seen.id_of(task.fingerprint);
  if (task.id == 0 || task.id >= shared_.seen.first_new_id() || options_.forever) return;
  const auto record = shared_.store.get(task.id);
  if (!record || !*record || (*record)->state != UrlState::done || (*record)->mtime >= modified) return;
  const UrlReason reason = (*record)->reason;
  if (reason == UrlReason::checked || reason == UrlReason::asset || reason == UrlReason::sitemap) return;
  if (shared_.is_under_way(**record) || shared_.place_of(url.href(), (*record)->depth) != Exclusion::none) return;
  if (!shared_.sitemaps.take(task.fingerprint)) return;
  task.url = url;
  task.depth = (*record)->depth;
  task.revisit = task.counted = true;
  UrlOutcome waits;
  waits.url_id = task.id;
  waits.state = UrlState::queued;
  waits.mtime = (*record)->mtime;
  if (shared_.plan.is_adaptive()) {
    waits.due = frontier_.stored_time(loop().time());
    waits.mtime = shared_.plan.visit_before(waits.due, &**record);
  }
  waits.status_code = (*record)->status_code;
  waits.not_modified = true;  // what is known of it stays
  waits.redirect_to = (*record)->redirect_to;
  waits.error = (*record)->error;
  batch.outcomes.push_back(std::move(waits));
  ++shared_.sitemaps.counts.news;
  shared_.ending.begin(1);
  discovery_.queue(std::move(task));
}

}  // namespace argiope
