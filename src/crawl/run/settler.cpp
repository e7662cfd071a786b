#include "crawl/run/settler.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "argiope/web/http_client.hpp"
#include "base/internal/printable.hpp"
#include "crawl/run/answer_notes.hpp"
#include "crawl/run/discovery.hpp"
#include "crawl/run/page_reader.hpp"
#include "crawl/run/render_desk.hpp"
#include "crawl/run/sitemap_desk.hpp"
#include "crawl/run/stored_redirects.hpp"
#include "crawl/scope/url_change.hpp"
#include "web/http/internal/validators.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {
namespace {

constexpr std::uint64_t kLargestSize = std::uint64_t{1} << 53;  // that a server may claim

// It begins anew, as what it has turned out to be.
void begin_as(Purpose purpose, UrlTask& task) noexcept {
  task.purpose = purpose;
  task.ask.reset();
  task.attempts = 0;
}

}  // namespace

Crawler::Shard::Settler::Settler(Core& core, Discovery& discovery, SitemapDesk& sitemaps, PageReader& reader,
                                 AnswerNotes& notes)
    : Part(core), discovery_(discovery), sitemaps_(sitemaps), reader_(reader), notes_(notes) {}

UrlOutcome Crawler::Shard::Settler::outcome_of(const Visit& visit) const {
  UrlOutcome outcome;
  outcome.url_id = task_of(visit).id;
  outcome.attempts = task_of(visit).attempts;
  outcome.mtime = wall();
  outcome.reason = reason_of(task_of(visit).purpose);
  return outcome;
}

void Crawler::Shard::Settler::exclude(Visit& visit, Exclusion why, std::string detail, TimePoint now) {
  count(why);
  UrlBatch batch;
  UrlOutcome outcome = outcome_of(visit);
  outcome.state = UrlState::excluded;
  const Purpose purpose = task_of(visit).purpose;
  outcome.reason = purpose == Purpose::page || purpose == Purpose::link ? reason_of(why) : reason_of(purpose);
  outcome.error = std::move(detail);
  shared_.count_left_out(outcome.reason);
  batch.outcomes.push_back(std::move(outcome));
  settle(visit, std::move(batch), now);
}

void Crawler::Shard::Settler::give_up(Visit& visit, const Error& error, TimePoint now) {
  spdlog::debug("{}: given up: {}", task_of(visit).url.href(), error.message);
  ShardCounters::add(counters_.errors);
  shared_.failures.count(to_string(error.code));
  UrlBatch batch;
  UrlOutcome outcome = outcome_of(visit);
  outcome.state = UrlState::failed;
  outcome.limit = task_of(visit).given_up + 1;
  outcome.error = fmt::format("{}: {}", to_string(error.code), error.message);
  keep_last_answer(visit, outcome);
  batch.outcomes.push_back(std::move(outcome));
  if (visit.before) note_change(visit, batch);
  settle(visit, std::move(batch), now);
}

// Of an attempt that has failed: what is known of the last whole answer stays, so that the next attempt can ask
// whether it has changed. False: there is none, or not all that is asked for has seen it.
bool Crawler::Shard::Settler::keep_last_answer(const Visit& visit, UrlOutcome& outcome) {
  const UrlTask& task = task_of(visit);
  if (!visit.is_conditional || is_only_checked(task.purpose) || task.purpose == Purpose::sitemap) return false;
  const UrlRecord& before = *visit.before;
  const bool is_whole = before.status_code >= 200 && before.status_code < 300 && before.error.empty() &&
                        (before.reason == UrlReason::none || task.purpose == Purpose::requisite);
  if (before.state != UrlState::failed && !is_whole) return false;
  if (before.etag.empty() && before.last_modified.empty()) return false;
  outcome.content_type = before.content_type;
  outcome.size = before.size;
  outcome.etag = before.etag;
  outcome.last_modified = before.last_modified;
  outcome.digest = before.digest;
  return true;
}

// --- answers ---------------------------------------------------------------------------------------------------------

void Crawler::Shard::Settler::on_response(Visit& visit, VisitStep step, std::string handler_error, TimePoint now) {
  const UrlTask& task = task_of(visit);
  const HttpResponse& response = visit.page->response;
  VisitOutcome taken{.is_list = shared_.reads_sitemaps && sitemaps_.is_sitemap(visit), .now = now};
  count_oddities(response);
  if (is_redirect(response.status) || visit.is_led_away() || is_style_sheet(response.headers.content_type))
    recall_way(task_of(visit));
  UrlBatch& batch = taken.batch;
  UrlOutcome outcome = outcome_of(visit);
  ++outcome.attempts;
  outcome.state = UrlState::done;
  outcome.status_code = response.status;
  if (step == VisitStep::fail) {
    outcome.state = UrlState::failed;
    outcome.limit = task.given_up + 1;
    outcome.error = response.status == 304 ? std::string(kUnaskedNotModified) : fmt::format("HTTP {}", response.status);
    shared_.failures.count("http");
  }
  outcome.not_modified = response.status == 304 && step != VisitStep::fail;
  if (!outcome.not_modified) {
    outcome.content_type = response.headers.content_type;
    outcome.size = static_cast<std::int64_t>(response.body.size());
    outcome.etag = response.headers.etag;
    outcome.last_modified = response.headers.last_modified;
    if (!response.body.empty()) outcome.digest = content_digest(response.body);
    if (!is_only_checked(task.purpose) && visit.is_unwanted()) {
      note_unwanted(response, outcome);
      if (shared_.requisites.is_used()) shared_.requisites.refuse(task.fingerprint);
    }
    if (response.truncated && outcome.state != UrlState::failed) {
      outcome.error = fmt::format("cut off at {} bytes", options_.size_limit);
      note_part(outcome, UrlReason::cut_off, options_.size_limit);
      if (task.purpose == Purpose::requisite) outcome.limit = static_cast<std::int64_t>(options_.size_limit);
    }
  }
  if (outcome.error.empty()) outcome.error = note_on(response);
  // An error of a redirect says that it leads nowhere.
  if (outcome.error.empty() && !is_redirect(response.status)) outcome.error = std::move(handler_error);
  if (response.status >= 400) ShardCounters::add(counters_.errors);
  if (visit.rendered != nullptr) RenderDesk::note_rendered(visit, outcome);
  taken.keeps_last = outcome.state == UrlState::failed && keep_last_answer(visit, outcome);
  batch.outcomes.push_back(std::move(outcome));
  if (taken.is_list) {
    if (!sitemaps_.on_sitemap(visit, batch) && is_page_after_all(visit, batch, now)) return;
  } else if (is_redirect(response.status) || visit.is_led_away()) {
    on_redirect(visit, batch);
    sitemaps_.pass_on_sitemap(visit, task, batch);
  }
  reader_.take(visit, taken);
  notes_.take(visit, taken);
  if (visit.before) note_change(visit, batch);
  settle(visit, std::move(batch), now);
}

void Crawler::Shard::Settler::count_oddities(const HttpResponse& response) {
  if (response.oddities == 0) return;
  for (std::size_t i = 0; i < kHttpOddities; ++i) {
    if ((response.oddities >> i & 1) != 0) ShardCounters::add(counters_.odd[i]);
  }
}

// The remark that is stored with a page that was read in spite of something.
std::string Crawler::Shard::Settler::note_on(const HttpResponse& response) {
  if (!response.damage.empty()) return "cut short: " + response.damage;
  return response.oddities == 0 ? std::string{} : "odd: " + describe_oddities(response.oddities);
}

// Answered, and left out for its type.
void Crawler::Shard::Settler::note_unwanted(const HttpResponse& response, UrlOutcome& outcome) {
  count(Exclusion::content_type);
  shared_.count_left_out(UrlReason::content_type);
  outcome.state = UrlState::excluded;
  outcome.reason = UrlReason::content_type;
  if (const auto length = response.headers.content_length) {
    outcome.size = static_cast<std::int64_t>(std::min<std::uint64_t>(*length, kLargestSize));
  }
}

// Its URL is a page's after all, if its place is that of one: as it was, where it was fetched before, or else asked
// for as such. False: it is none.
bool Crawler::Shard::Settler::is_page_after_all(Visit& visit, UrlBatch& batch, TimePoint now) {
  UrlTask& task = task_of(visit);
  const bool is_page = visit.page->view.is_html() && shared_.place_of(task.url.href(), task.depth) == Exclusion::none;
  if (!is_page) return false;
  if (visit.before && visit.before->state == UrlState::done && visit.before->reason != UrlReason::sitemap) {
    batch.outcomes.front() = as_it_was(*visit.before);
    settle(visit, std::move(batch), now);
    return true;
  }
  task.purpose = Purpose::page;
  task.revisit = false;
  end_page(visit);
  UrlOutcome& waits = batch.outcomes.front();
  waits = UrlOutcome{};
  waits.url_id = task.id;
  waits.state = UrlState::queued;
  shared_.store.submit(std::move(batch));
  frontier_.retry(visit.ticket, now, now);
  return true;
}

void Crawler::Shard::Settler::on_redirect(Visit& visit, UrlBatch& batch) {
  const UrlTask& task = task_of(visit);
  UrlOutcome& outcome = batch.outcomes.front();
  auto target = Url::parse(visit.page->response.headers.location, &visit.request.url);
  if (visit.page->response.headers.location.empty() || !target) {
    outcome.error = fmt::format("redirect to {}, which is no URL",
                                in_quotes(without_credentials(visit.page->response.headers.location)));
    return;
  }
  target->strip_fragment();
  target->strip_credentials();
  outcome.redirect_to = target->href();
  if (task.redirects >= options_.max_redirects) {
    outcome.error = fmt::format("more than {} redirects", options_.max_redirects);
    note_part(outcome, UrlReason::redirects, options_.max_redirects);
    return;
  }
  if (task.purpose == Purpose::requisite) {
    if (!goes_back(visit, *target, batch)) {
      discovery_.discover_requisite(task, *target, static_cast<std::uint8_t>(task.redirects + 1), batch);
    }
    return;
  }
  shared_.follow_seed(task.url.href(), *target);
  if (goes_back(visit, *target, batch)) return;
  discovery_.discover(task, *target, task.depth, true, batch);
  discovery_.store_links(task, true, batch);
}

// The redirects and files that led to the URL may be of an earlier run.
void Crawler::Shard::Settler::recall_way(UrlTask& task) {
  if (!std::exchange(task.is_stored, false)) return;
  const std::uint32_t hops = redirects_to(shared_.store, task.id, options_.max_redirects);
  task.redirects = std::max(task.redirects, static_cast<std::uint8_t>(std::min(hops, 255u)));
  if (is_of_pages(task.purpose)) {
    const std::uint32_t files = requisites_to(shared_.store, task.id, kMostNestedRequisites);
    task.nesting = std::max(task.nesting, static_cast<std::uint8_t>(files));
  }
}

// Back to where the chain of redirects began, which has got cookies by now: that is asked again.
bool Crawler::Shard::Settler::goes_back(const Visit& visit, const Url& target, UrlBatch& batch) {
  const UrlTask& from = task_of(visit);
  const bool new_cookies = visit.page->response.new_cookies;
  UrlTask task;
  task.fingerprint = shared_.fingerprint_of(target.href());
  task.id = shared_.session.comes_back(from.fingerprint, from.id, task.fingerprint, new_cookies);
  // The chain may have begun in an earlier run.
  if (task.id == 0 && new_cookies) {
    task.id = redirects_from(shared_.store, target.href(), from.id, options_.max_redirects);
  }
  if (task.id == 0) return false;
  task.url = target;
  task.depth = from.depth;
  task.redirects = static_cast<std::uint8_t>(from.redirects + 1);
  task.counted = true;
  task.purpose = is_only_checked(from.purpose) ? Purpose::link : from.purpose;
  task.ask = from.ask == UrlAsk::body ? UrlAsk::get : from.ask;
  UrlOutcome waits;
  waits.url_id = task.id;
  waits.state = UrlState::queued;
  waits.mtime = wall();
  waits.limit = -std::int64_t{task.redirects};
  waits.reason = reason_of(task.purpose);
  batch.outcomes.push_back(std::move(waits));
  shared_.ending.begin(1);
  if (task.purpose == Purpose::requisite) shared_.ending.begin_part();
  discovery_.queue(std::move(task));
  return true;
}

// --- what is dealt with ----------------------------------------------------------------------------------------------

void Crawler::Shard::Settler::settle(Visit& visit, UrlBatch batch, TimePoint now) {
  const bool was_requisite = task_of(visit).purpose == Purpose::requisite;
  const bool is_page_too = has_other_part(visit, batch);
  if (is_page_too && task_of(visit).purpose == Purpose::requisite) shared_.ending.begin_part();
  if (was_requisite && !visit.has_page) shared_.ending.end_part();
  end_page(visit);
  recount(visit, batch);
  std::optional<TimePoint> again;
  if (is_page_too) {
    again = now;
  } else if (shared_.plans_visits) {
    again = plan_next_visit(visit, batch, now);
  }
  shared_.store.submit(std::move(batch));
  shared_.note_settled();
  again ? frontier_.retry(visit.ticket, *again, now) : frontier_.done(visit.ticket, now);
  discovery_.hand_out(now);
  if (!again) shared_.ending.end(1);
}

void Crawler::Shard::Settler::end_page(Visit& visit) {
  if (std::exchange(visit.has_spare, false)) shared_.ending.give_pages_back(1);
  if (std::exchange(visit.has_page, false)) shared_.ending.end_part();
}

// Whether the URL has turned out to be something else than it was asked for, and is asked for again.
bool Crawler::Shard::Settler::has_other_part(Visit& visit, UrlBatch& batch) {
  const UrlTask& task = task_of(visit);
  const bool is_unwanted = !batch.outcomes.empty() && batch.outcomes.front().reason == UrlReason::content_type;
  const bool may_change = task.purpose == Purpose::requisite || is_only_checked(task.purpose) || is_unwanted;
  if (may_change && shared_.requisites.is_used() && settle_requisite(visit, batch)) return true;
  return is_only_checked(task.purpose) && shared_.checks.is_used() && settle_check(visit, batch);
}

// A URL that was only checked is dealt with. True: it was taken for an asset, a link to it was found meanwhile, and
// it is to be fetched as a page.
bool Crawler::Shard::Settler::settle_check(Visit& visit, UrlBatch& batch) {
  UrlTask& task = task_of(visit);
  const bool is_linked = !shared_.checks.settle(task.fingerprint).is_asset;
  if (!is_linked || !is_asset(task.purpose)) return false;
  for (UrlOutcome& outcome : batch.outcomes) {
    if (outcome.reason != UrlReason::asset && task.purpose != Purpose::part) continue;
    outcome.reason = outcome.state == UrlState::excluded ? UrlReason::off_scope : UrlReason::checked;
  }
  const bool is_in_scope = shared_.place_of(task.url.href(), task.depth) == Exclusion::none;
  task.purpose = purpose_among_checks(task.purpose, is_linked, is_in_scope);
  if (!is_in_scope) return false;
  begin_as(task.purpose, task);
  return true;
}

// The URL is dealt with. True: it has turned out to be more meanwhile, and is asked for as that.
bool Crawler::Shard::Settler::settle_requisite(Visit& visit, UrlBatch& batch) {
  UrlTask& task = task_of(visit);
  const auto known = shared_.requisites.settle(task.fingerprint);
  const Purpose purpose = known ? purpose_among_requisites(task.purpose, *known) : task.purpose;
  if (purpose == task.purpose) return false;
  discovery_.queue_anew(task.id, reason_of(purpose), batch);
  begin_as(purpose, task);
  task.revisit = false;
  return true;
}

void Crawler::Shard::Settler::note_change(const Visit& visit, UrlBatch& batch) {
  if (auto change = change_between(*visit.before, batch.outcomes.front())) batch.changes.push_back(std::move(*change));
}

// URLs that are left out are counted as they are in the end. The reason of this visit was counted where it was found.
void Crawler::Shard::Settler::recount(const Visit& visit, const UrlBatch& batch) {
  if (!visit.before || visit.before->reason == UrlReason::none || visit.before->state == UrlState::failed) return;
  const bool stays = batch.outcomes.empty() ||
                     (batch.outcomes.front().not_modified && batch.outcomes.front().state != UrlState::failed);
  const bool was_counted = task_of(visit).settled;
  if (stays != was_counted) shared_.count_left_out(visit.before->reason, stays ? 1 : -1);
}

// The task of a URL that was settled begins anew, when it is due.
std::optional<TimePoint> Crawler::Shard::Settler::plan_next_visit(Visit& visit, UrlBatch& batch, TimePoint now) {
  UrlTask& task = task_of(visit);
  const bool is_one =
      !batch.outcomes.empty() && batch.outcomes.front().url_id == task.id && !is_only_checked(task.purpose) &&
      (batch.outcomes.front().state == UrlState::done || batch.outcomes.front().state == UrlState::failed);
  if (!is_one) {
    if (std::exchange(task.rotates, false)) shared_.rotating.fetch_sub(1, std::memory_order_relaxed);
    return std::nullopt;
  }
  UrlOutcome& outcome = batch.outcomes.front();
  const bool failed = outcome.state == UrlState::failed;
  const bool was_answered = visit.before && visit.before->status_code != 0;
  const auto found = !visit.before            ? RevisitPlan::Visit::first
                     : failed                 ? RevisitPlan::Visit::failed
                     : !batch.changes.empty() ? RevisitPlan::Visit::changed
                     : was_answered           ? RevisitPlan::Visit::same
                                              : RevisitPlan::Visit::failed;
  const TimePoint due = saturating_add(now, shared_.plan.next(visit.before.get(), found));
  outcome.due = frontier_.stored_time(due);
  // By the same clock, whose jumps change no interval.
  outcome.mtime = frontier_.stored_time(now);
  if (!options_.forever) return std::nullopt;  // what has failed is tried again by the next run in any case
  if (!std::exchange(task.rotates, true)) shared_.rotating.fetch_add(1, std::memory_order_relaxed);
  task.attempts = task.challenges = task.redirects = 0;
  task.ask.reset();
  task.counted = task.settled = true;
  task.revisit = !failed;
  return due;
}

}  // namespace argiope
