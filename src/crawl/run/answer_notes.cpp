#include "crawl/run/answer_notes.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include "argiope/web/detail/robots_meta.hpp"
#include "argiope/web/http_client.hpp"
#include "base/internal/fingerprint.hpp"
#include "crawl/page/canonical_field.hpp"
#include "crawl/page/internal/refresh_field.hpp"
#include "crawl/page/page_notes.hpp"
#include "crawl/run/discovery.hpp"
#include "web/html/internal/page_references.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {
namespace {

// Of the markup, or of the header, which knows no base. `url` is for parsing.
std::string canonical_of(const Url& page, std::string_view in_markup, std::string_view in_header,
                         LinkResolver& resolver, Url& url) {
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

Crawler::Shard::AnswerNotes::AnswerNotes(Core& core, Discovery& discovery) : Part(core), discovery_(discovery) {}

void Crawler::Shard::AnswerNotes::take(Visit& visit, VisitOutcome& outcome) {
  if (!shared_.keeps_notes || outcome.is_list || outcome.keeps_last) return;
  UrlBatch& batch = outcome.batch;
  const UrlTask& task = task_of(visit);
  const HttpResponse& response = visit.page->response;
  if (response.status == 304) return;  // what is known of it stays
  // A page that could not be fetched this time may be as it was: its links, its title, what fragments name.
  const bool has_failed = batch.outcomes.front().state == UrlState::failed;
  if (has_failed && visit.before) return;
  PageFacts facts;
  bool has_links = false;
  if (response.status == 200 && (!is_only_checked(task.purpose) || task.ask == UrlAsk::body)) {
    if (visit.page->view.is_html()) {
      has_links = note_page(visit, facts, batch);
    } else if (is_sheet_to_read(task, response)) {
      has_links = note_sheet(visit, batch);
    } else {
      has_links = note_refresh(visit, batch);
    }
  }
  if (is_redirect(response.status) && notes_anchors(task)) facts.anchors = own_fragment(visit);
  // The links of an earlier answer are gone.
  if (!has_links && !has_failed && options_.keep_links && !is_only_checked(task.purpose))
    batch.kept_links.push_back({task.id, {}});
  if (!facts.anchors && (!options_.keep_facts || is_only_checked(task.purpose))) return;
  facts.url_id = task.id;
  facts.took = outcome.now - response.sent_at;
  facts.wire_bytes = static_cast<std::int64_t>(response.wire_bytes);
  batch.facts.push_back(std::move(facts));
}

bool Crawler::Shard::AnswerNotes::notes_anchors(const UrlTask& task) const {
  return is_only_checked(task.purpose) ? options_.check_foreign_fragments : options_.check_fragments;
}

// Of a redirect: what is named at its end whatever the link to it names (RFC 9110, 10.2.2). Empty: what the link names.
std::vector<std::uint64_t> Crawler::Shard::AnswerNotes::own_fragment(const Visit& visit) {
  const auto target = Url::parse(visit.page->response.headers.location, &visit.request.url);
  if (!target || target->hash().size() < 2) return {};
  return {fingerprint(target->hash().substr(1))};
}

// As what it is asked for does not matter: what the sheets of the site refer to is checked.
bool Crawler::Shard::AnswerNotes::is_sheet_to_read(const UrlTask& task, const HttpResponse& response) const {
  if (!options_.check_assets || !is_style_sheet(response.headers.content_type)) return false;
  const std::uint32_t above = is_of_pages(task.purpose) && task.depth > 0 ? 1u : 0u;
  return shared_.place_of(task.url.href(), task.depth - above) == Exclusion::none;
}

bool Crawler::Shard::AnswerNotes::is_worth_reading(const Visit& visit) {
  const UrlTask& task = *visit.ticket.task;
  const HttpResponse& response = visit.page->response;
  if (!is_only_checked(task.purpose) || response.status != 200 || !shared_.checks.is_used()) return false;
  if (is_html(response.headers.content_type)) return shared_.checks.wants_ids(task.fingerprint);
  return is_asset(task.purpose) && is_sheet_to_read(task, response);
}

// Whether its links were noted. Of a page elsewhere nothing but what fragments may name is.
bool Crawler::Shard::AnswerNotes::note_page(Visit& visit, PageFacts& facts, UrlBatch& batch) {
  const UrlTask& task = task_of(visit);
  const HttpResponse& response = visit.page->response;
  PageView& page = visit.page->view;
  const std::string& agent = visit.ticket.host->policy->product_token;
  const PageSurvey& survey = page.survey();
  const std::size_t most = std::min({survey.links.size(), options_.max_links_per_page, kMostKeptLinks});
  std::vector<SurveyedLink> links(survey.links.begin(), survey.links.begin() + static_cast<std::ptrdiff_t>(most));
  Url refresh;
  if (find_refresh(visit.request.url, response.headers.refresh, refresh)) links.push_back(refresh_link(refresh));
  if (survey.robots.nofollow || parse_robots_tag(response.headers.robots_tag, agent).nofollow) {
    for (SurveyedLink& link : links) link.nofollow = true;
  }
  LinkResolver resolver;
  resolver.begin(visit.request.url, survey.base_href, page.charset().name);
  if (options_.keep_facts && !is_only_checked(task.purpose)) {
    facts = facts_of(survey);
    facts.noindex = facts.noindex || parse_robots_tag(response.headers.robots_tag, agent).noindex;
    const std::string in_header = canonical_field(visit.request.url, response);
    facts.canonical = canonical_of(visit.request.url, survey.canonical, in_header, resolver, noted_);
  }
  if (options_.duplicates.keep_simhashes && !is_only_checked(task.purpose)) {
    const PageWords& said = page.words();
    facts.words = said.count;
    facts.simhash = said.simhash;
  }
  const bool is_whole = !response.truncated && response.damage.empty() && survey.has_all_ids;
  if (notes_anchors(task) && is_whole) facts.anchors = anchors_of(survey);
  if (is_only_checked(task.purpose) || task.purpose == Purpose::requisite) return false;
  note_links(task, links, page.text(), resolver, batch);
  return true;
}

// Of what is no page; of one, its field is a link among others.
bool Crawler::Shard::AnswerNotes::note_refresh(const Visit& visit, UrlBatch& batch) {
  const UrlTask& task = *visit.ticket.task;
  const HttpHeaders& headers = visit.page->response.headers;
  Url refresh;
  if (task.purpose != Purpose::page || !find_refresh(visit.request.url, headers.refresh, refresh)) return false;
  SurveyedLink link = refresh_link(refresh);
  link.nofollow = parse_robots_tag(headers.robots_tag, visit.ticket.host->policy->product_token).nofollow;
  LinkResolver resolver;
  resolver.begin(visit.request.url, {}, "UTF-8");
  note_links(task, {link}, {}, resolver, batch);
  return true;
}

bool Crawler::Shard::AnswerNotes::note_sheet(Visit& visit, UrlBatch& batch) {
  const std::string_view css = visit.page->view.text();
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

void Crawler::Shard::AnswerNotes::note_links(const UrlTask& from, const std::vector<SurveyedLink>& links,
                                             std::string_view html, const LinkResolver& resolver, UrlBatch& batch) {
  KeptLinks kept{from.id, {}};
  for (const SurveyedLink& link : links) {
    if (starts_with_lower(trim_space(link.url), "data:")) continue;  // it is on the page, and leads nowhere
    KeptLink noted = note_link(from, link, html, resolver, batch);
    if (options_.keep_links) kept.links.push_back(std::move(noted));
  }
  if (options_.keep_links) batch.kept_links.push_back(std::move(kept));
}

KeptLink Crawler::Shard::AnswerNotes::note_link(const UrlTask& from, const SurveyedLink& link, std::string_view html,
                                                const LinkResolver& resolver, UrlBatch& batch) {
  const UrlStatus status = resolver.resolve_with_fragment(link.url, noted_);
  KeptLink kept = kept_link(link, html, status, noted_);
  if (status != UrlStatus::ok || !is_on_the_web(noted_)) return kept;
  noted_.strip_fragment();
  const bool found = options_.check_assets && (is_asset(link.kind) || is_checked_mention(link));
  kept.target = found ? discovery_.discover_asset(from, noted_, batch)
                      : shared_.seen.id_of(shared_.fingerprint_of(noted_.href()));
  if (!found && shared_.duplicates && shared_.duplicates->strip(noted_, stripped_)) {
    if (const auto stripped = shared_.seen.id_of(shared_.fingerprint_of(stripped_.href()))) kept.target = stripped;
  }
  if (options_.check_foreign_fragments && !kept.fragment.empty()) discovery_.link_to_fragment(from, noted_);
  if (kept.target != 0) kept.href.clear();
  return kept;
}

}  // namespace argiope
