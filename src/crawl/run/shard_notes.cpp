// What a crawl keeps of answers for link checks and reports, and the assets it finds meanwhile. Nothing here runs in a crawl
// that was asked for neither.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "argiope/web/charset.hpp"
#include "argiope/web/robots_meta.hpp"
#include "crawl/page/canonical_field.hpp"
#include "crawl/page/internal/refresh_field.hpp"
#include "crawl/page/page_in_utf8.hpp"
#include "crawl/page/page_notes.hpp"
#include "crawl/run/shard.hpp"
#include "web/html/internal/page_references.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {
namespace {

// Of the markup, or of the header, which knows no base. `url` is for parsing.
std::string canonical_of(const Url& page, std::string_view in_markup, std::string_view in_header, LinkResolver& resolver, Url& url) {
  const UrlStatus status = !in_markup.empty()   ? resolver.resolve(in_markup, url)
                           : !in_header.empty() ? parse_into(url, in_header, &page)
                                                : UrlStatus::no_host;
  if (status != UrlStatus::ok) return {};
  url.strip_credentials();
  url.strip_fragment();
  return url.href();
}

// That of a header field, which the page's first line stands for.
SurveyedLink refresh_link(const Url& url) { return {.url = url.href(), .kind = LinkKind::refresh, .line = 1}; }

bool is_on_the_web(const Url& url) { return url.scheme() == "http" || url.scheme() == "https"; }

bool is_checked_mention(const SurveyedLink& link) noexcept { return link.kind == LinkKind::mention && !link.nofollow; }

}  // namespace

void Crawler::Shard::note_answer(Visit& visit, UrlBatch& batch, TimePoint now) {
  const UrlTask& task = task_of(visit);
  const HttpResponse& response = visit.response;
  if (response.status == 304) return;  // what is known of it stays
  // What could not be fetched this time may be as it was: its links, its title, what fragments name.
  const bool has_failed = batch.outcomes.front().state == UrlState::failed;
  if (has_failed && visit.before) return;
  PageFacts facts;
  bool has_links = false;
  if (response.status == 200 && (!is_only_checked(task.purpose) || task.ask == UrlAsk::body)) {
    if (is_html_page(response.headers.content_type, response.body)) {
      has_links = note_page(visit, facts, batch);
    } else if (is_sheet_to_read(task, response)) {
      has_links = note_sheet(visit, batch);
    } else {
      has_links = note_refresh(visit, batch);
    }
  }
  // What an earlier answer had is gone.
  if (!has_links && !has_failed && options_.keep_links && !is_only_checked(task.purpose))
    batch.kept_links.push_back({task.id, {}});
  if (!facts.anchors && (!options_.keep_facts || is_only_checked(task.purpose))) return;
  facts.url_id = task.id;
  facts.took = now - response.sent_at;
  facts.wire_bytes = static_cast<std::int64_t>(response.wire_bytes);
  batch.facts.push_back(std::move(facts));
}

// As what it is asked for does not matter: what the sheets of the site refer to is checked.
bool Crawler::Shard::is_sheet_to_read(const UrlTask& task, const HttpResponse& response) const {
  if (!options_.check_assets || !is_style_sheet(response)) return false;
  const std::uint32_t above = is_of_pages(task.purpose) && task.depth > 0 ? 1u : 0u;
  return shared_.place_of(task.url, task.depth - above) == Exclusion::none;
}

// Whether its links were noted. Of a page elsewhere nothing but what fragments may name is.
bool Crawler::Shard::note_page(Visit& visit, PageFacts& facts, UrlBatch& batch) {
  const UrlTask& task = task_of(visit);
  const HttpResponse& response = visit.response;
  const CharsetDecision charset = detect_charset(response.body, response.headers.content_type);
  const std::string_view html = page_in_utf8(response.body, charset, transcoded_);
  SurveyOptions options;
  options.max_links = std::min(options_.max_links_per_page, kMostKeptLinks);
  const std::string& agent = visit.ticket.host->policy->product_token;
  options.agent = agent;
  PageSurvey survey = survey_page(html, options);
  Url refresh;
  if (find_refresh(visit.request.url, response.headers.refresh, refresh)) survey.links.push_back(refresh_link(refresh));
  if (survey.robots.nofollow || parse_robots_tag(response.headers.robots_tag, agent).nofollow) {
    for (SurveyedLink& link : survey.links) link.nofollow = true;
  }
  LinkResolver resolver;
  resolver.begin(visit.request.url, survey.base_href, charset.name);
  if (options_.keep_facts && !is_only_checked(task.purpose)) {
    facts = facts_of(survey);
    facts.noindex = facts.noindex || parse_robots_tag(response.headers.robots_tag, agent).noindex;
    const std::string in_header = canonical_field(visit.request.url, response);
    facts.canonical = canonical_of(visit.request.url, survey.canonical, in_header, resolver, noted_);
  }
  if (options_.duplicates.keep_simhashes && !is_only_checked(task.purpose)) {
    if (!said_) said_ = words_.read(html);
    facts.words = said_->count;
    facts.simhash = said_->simhash;
  }
  const bool is_whole = !response.truncated && response.damage.empty() && survey.has_all_ids;
  if ((is_only_checked(task.purpose) ? options_.check_foreign_fragments : options_.check_fragments) && is_whole) {
    facts.anchors = anchors_of(survey);
  }
  if (is_only_checked(task.purpose) || task.purpose == Purpose::requisite) return false;
  note_links(task, survey.links, html, resolver, batch);
  return true;
}

// Of what is no page; of one, its field is a link among others.
bool Crawler::Shard::note_refresh(const Visit& visit, UrlBatch& batch) {
  const UrlTask& task = *visit.ticket.task;
  const HttpHeaders& headers = visit.response.headers;
  Url refresh;
  if (task.purpose != Purpose::page || !find_refresh(visit.request.url, headers.refresh, refresh)) return false;
  SurveyedLink link = refresh_link(refresh);
  link.nofollow = parse_robots_tag(headers.robots_tag, visit.ticket.host->policy->product_token).nofollow;
  LinkResolver resolver;
  resolver.begin(visit.request.url, {}, "UTF-8");
  note_links(task, {link}, {}, resolver, batch);
  return true;
}

bool Crawler::Shard::note_sheet(Visit& visit, UrlBatch& batch) {
  const HttpResponse& response = visit.response;
  const CharsetDecision charset = detect_charset(response.body, response.headers.content_type);
  const std::string_view css = page_in_utf8(response.body, charset, transcoded_);
  LinkResolver resolver;
  resolver.begin(visit.request.url, {}, "UTF-8");
  std::vector<ReferencePart> parts;
  split_reference(css, ReferenceSyntax::css, ReferenceRole::object, parts);
  parts.resize(std::min(parts.size(), kMostKeptLinks));
  std::deque<std::string> urls;
  std::vector<SurveyedLink> links;
  std::uint32_t line = 1;
  std::size_t at = 0;
  for (const ReferencePart& part : parts) {
    line += static_cast<std::uint32_t>(std::ranges::count(css.substr(at, part.begin - at), '\n'));
    at = part.begin;
    const bool is_sheet = part.role == ReferenceRole::stylesheet;
    links.push_back({.url = urls.emplace_back(part_url(css, part)),
                     .kind = is_sheet ? LinkKind::stylesheet : LinkKind::css,
                     .line = line});
  }
  note_links(task_of(visit), links, css, resolver, batch);
  return true;
}

void Crawler::Shard::note_links(const UrlTask& from, const std::vector<SurveyedLink>& links, std::string_view html,
                                const LinkResolver& resolver, UrlBatch& batch) {
  KeptLinks kept{from.id, {}};
  for (const SurveyedLink& link : links) {
    if (starts_with_lower(trim_space(link.url), "data:")) continue;  // it is on the page, and leads nowhere
    KeptLink noted = note_link(from, link, html, resolver, batch);
    if (options_.keep_links) kept.links.push_back(std::move(noted));
  }
  if (options_.keep_links) batch.kept_links.push_back(std::move(kept));
}

KeptLink Crawler::Shard::note_link(const UrlTask& from, const SurveyedLink& link, std::string_view html,
                                   const LinkResolver& resolver, UrlBatch& batch) {
  const UrlStatus status = resolver.resolve_with_fragment(link.url, noted_);
  KeptLink kept = kept_link(link, html, status, noted_);
  if (status != UrlStatus::ok || !is_on_the_web(noted_)) return kept;
  noted_.strip_fragment();
  const bool found = options_.check_assets && (is_asset(link.kind) || is_checked_mention(link));
  kept.target = found ? discover_asset(from, noted_, batch) : shared_.seen.id_of(shared_.fingerprint_of(noted_.href()));
  if (!found && shared_.duplicates && shared_.duplicates->strip(noted_, other_url_)) {
    if (const auto stripped = shared_.seen.id_of(shared_.fingerprint_of(other_url_.href()))) kept.target = stripped;
  }
  if (options_.check_foreign_fragments && !kept.fragment.empty()) link_to_fragment(from, noted_);
  if (kept.target != 0) kept.href.clear();
  return kept;
}

// The id of an asset's URL, which is checked if nothing was known of it.
std::int64_t Crawler::Shard::discover_asset(const UrlTask& from, const Url& url, UrlBatch& batch) {
  UrlTask task;
  task.fingerprint = shared_.fingerprint_of(url.href());
  if (is_nested_too_deep(from, task.fingerprint, batch)) return shared_.seen.id_of(task.fingerprint);
  const auto [is_new, id] = shared_.seen.claim(task.fingerprint);
  if (!is_new) return id;
  task.id = id;
  task.url = url.href();
  task.purpose = Purpose::asset;
  task.nesting = is_of_pages(from.purpose) ? static_cast<std::uint8_t>(from.nesting + 1) : 0;
  // As deep as its page, and stored as if a link led there, in case that one does.
  task.depth = from.depth + (is_of_pages(from.purpose) ? 0 : 1);
  batch.discovered.push_back({id, task.url, task.depth, crawl_priority(options_, task.depth, task.url), from.id,
                              wall(), UrlReason::asset});
  const Exclusion trap = shared_.scope.bars_check(task.url, task.depth > 0 ? task.depth - 1 : 0);
  shared_.checks.add(task.fingerprint, {.id = id, .is_asset = true, .settled = trap != Exclusion::none});
  if (options_.requisites != Requisites::none) {
    shared_.requisites.add(task.fingerprint, id, RequisiteBook::Part::link, trap != Exclusion::none);
  }
  if (trap != Exclusion::none) {
    count(trap);
    return id;
  }
  shared_.ending.begin(1);
  found_[shared_.shard_of(url)].push_back(std::move(task));
  return id;
}

// `task`, which has fingerprint and depth, is a link to a URL that is known. If it was taken for an asset, it is none now: in
// scope it is fetched as a page, elsewhere its verdict stands.
void Crawler::Shard::link_to_asset(const UrlTask& task, const Url& url, Exclusion place, UrlBatch& batch) {
  const auto [upgrade, id] = shared_.checks.link(task.fingerprint);
  if (upgrade == CheckBook::Upgrade::none) return;
  batch.linked.push_back(id);
  if (place != Exclusion::none) return;
  batch.parts.push_back({id, UrlReason::none});
  shared_.requisites.follow(task.fingerprint);
  if (upgrade == CheckBook::Upgrade::waiting) return;
  UrlTask page = task;
  page.id = id;
  page.url = url.href();
  shared_.ending.begin(1);
  found_[shared_.shard_of(url)].push_back(std::move(page));
}

// What fragments may name there is asked for, if the URL is one of those that are only checked.
void Crawler::Shard::link_to_fragment(const UrlTask& from, const Url& url) {
  UrlTask task;
  task.fingerprint = shared_.fingerprint_of(url.href());
  const auto [upgrade, id] = shared_.checks.link_to_fragment(task.fingerprint);
  if (upgrade != CheckBook::Upgrade::settled) return;
  task.id = id;
  task.url = url.href();
  task.depth = from.depth + 1;
  task.purpose = Purpose::link;
  shared_.ending.begin(1);
  found_[shared_.shard_of(url)].push_back(std::move(task));
}

bool Crawler::Shard::is_worth_reading(const Visit& visit) {
  const UrlTask& task = *visit.ticket.task;
  const HttpResponse& response = visit.response;
  if (!is_only_checked(task.purpose) || response.status != 200 || !shared_.checks.is_used()) return false;
  if (is_html(response.headers.content_type)) return shared_.checks.wants_ids(task.fingerprint);
  return is_asset(task.purpose) && is_sheet_to_read(task, response);
}

// What was only checked is dealt with. True: it was taken for an asset, a link to it was found meanwhile, and it is to be
// fetched as a page.
bool Crawler::Shard::settle_check(Visit& visit, UrlBatch& batch) {
  UrlTask& task = task_of(visit);
  const bool is_linked = !shared_.checks.settle(task.fingerprint).is_asset;
  if (!is_linked || !is_asset(task.purpose)) return false;
  for (UrlOutcome& outcome : batch.outcomes) {
    if (outcome.reason != UrlReason::asset && task.purpose != Purpose::part) continue;
    outcome.reason = outcome.state == UrlState::excluded ? UrlReason::off_scope : UrlReason::checked;
  }
  const bool is_in_scope = shared_.place_of(task.url, task.depth) == Exclusion::none;
  task.purpose = purpose_among_checks(task.purpose, is_linked, is_in_scope);
  if (!is_in_scope) return false;
  begin_as(task.purpose, task);
  return true;
}

}  // namespace argiope
