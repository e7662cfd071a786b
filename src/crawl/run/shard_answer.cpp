// What an answer comes to: the outcome that is stored, and the links that are followed.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "argiope/web/detail/robots_meta.hpp"
#include "argiope/web/http_client.hpp"
#include "base/internal/printable.hpp"
#include "crawl/hosts/internal/host_question.hpp"
#include "crawl/page/internal/refresh_field.hpp"
#include "crawl/page/page_in_utf8.hpp"
#include "crawl/run/shard.hpp"
#include "crawl/run/stored_redirects.hpp"
#include "web/http/internal/http_date.hpp"
#include "web/http/internal/validators.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {
namespace {

constexpr std::uint64_t kLargestSize = std::uint64_t{1} << 53;  // that a server may claim

}  // namespace

void Crawler::Shard::exclude(Visit& visit, Exclusion why, std::string detail, TimePoint now) {
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

UrlOutcome Crawler::Shard::outcome_of(const Visit& visit) {
  UrlOutcome outcome;
  outcome.url_id = task_of(visit).id;
  outcome.attempts = task_of(visit).attempts;
  outcome.mtime = wall();
  outcome.reason = reason_of(task_of(visit).purpose);
  return outcome;
}

void Crawler::Shard::learn_from(Visit& visit) {
  const HttpResponse& response = visit.response;
  visit.ticket.host->health.page_answered();
  count_bytes(response);
  if (response.new_cookies || response.challenged != HttpChallenged::none) {
    shared_.session.note(visit.request, response, wall());
  }
}

VisitAnswer Crawler::Shard::answer_of(const Visit& visit, const std::optional<Error>& unrendered) {
  const HttpResponse& response = visit.response;
  const bool wants_cookies = visit.rendered != nullptr && visit.rendered->wants_cookies;
  VisitAnswer answer{.status = response.status};
  if (unrendered) answer.failure = unrendered->code;
  answer.is_challenge = response.challenged == HttpChallenged::again || wants_cookies;
  answer.is_unwanted = is_unwanted(visit);
  answer.is_worth_reading = is_worth_reading(visit);
  answer.is_truncated = response.truncated;
  answer.is_damaged = !response.damage.empty();
  answer.is_unchanged = response.status == 304 && asks_whether_changed(visit.request);
  return answer;
}

// What has come is its answer, or is one attempt of several.
void Crawler::Shard::count_answer(const Visit& visit) {
  const int status = visit.response.status;
  ShardCounters::add(counters.fetched);
  if (task_of(visit).purpose == Purpose::requisite) ShardCounters::add(counters.requisites);
  if (status >= 0 && status < static_cast<int>(counters.statuses.size())) {
    ShardCounters::add(counters.statuses[static_cast<std::size_t>(status)]);
  }
}

VisitStep Crawler::Shard::take_answer(Visit& visit, const std::optional<Error>& unrendered, TimePoint now) {
  const HttpResponse& response = visit.response;
  learn_from(visit);
  const NextStep next = next_step(asked_of(visit), answer_of(visit, unrendered));
  if (next.step == VisitStep::again || next.step == VisitStep::instead) return take_step(visit, next, {}, {}, now);
  count_answer(visit);
  Duration at_least{};
  if (is_temporary(response.status)) at_least = heed_retry_after(*visit.ticket.host, response, now);
  Error why;
  if (next.step == VisitStep::retry || next.step == VisitStep::give_up) {
    if (is_temporary(response.status)) {
      why = {Errc::protocol, fmt::format("HTTP {}", response.status)};
    } else {
      why = unrendered ? *unrendered : Error{Errc::network, response.damage};
    }
  }
  return take_step(visit, next, why, at_least, now);
}

VisitStep Crawler::Shard::take_step(Visit& visit, const NextStep& next, const Error& why, Duration at_least,
                                    TimePoint now) {
  UrlTask& task = task_of(visit);
  if (next.ask != visit.ask) task.ask = next.ask;
  switch (next.step) {
    case VisitStep::again: ask_again(visit, now); break;
    case VisitStep::instead: ask_instead(visit, now); break;
    case VisitStep::retry: retry(visit, why, at_least, now); break;
    case VisitStep::give_up:
      ++task.attempts;
      give_up(visit, why, now);
      break;
    case VisitStep::settle:
    case VisitStep::fail: break;  // what has come says what becomes of it
  }
  return next.step;
}

// Of a good answer: whether its body was, or would be, of a type that is not accepted.
bool Crawler::Shard::is_unwanted(const Visit& visit) const noexcept {
  const HttpResponse& response = visit.response;
  if (response.status < 200 || response.status >= 300) return false;
  if (visit.ask != UrlAsk::head) return response.unwanted;
  const std::string& type = response.headers.content_type;
  return !parse_content_type(type).type.empty() && !has_media_type(type, visit.request.wanted_types);
}

Coro<std::string> Crawler::Shard::hand_over(Visit& visit) {
  std::string what;
  try {
    co_await options_.on_page({visit.request.url, visit.response, task_of(visit).depth});
  } catch (const CancelledError&) {
    // The handler's own, of a task it awaited, is a failure of the handler: nothing would end this visit.
    if (visit.task.cancelling() > 0) throw;
    what = "what it awaited was cancelled";
  } catch (const std::exception& error) {
    what = error.what();
    if (what.empty()) what = "an exception";
  } catch (...) {
    what = "an exception of an unknown type";
  }
  if (!what.empty()) {
    ShardCounters::add(counters.handler_errors);
    what.insert(0, "the page handler has thrown: ");
    spdlog::error("{}: {}", task_of(visit).url, printable(what));
  }
  co_return what;
}

void Crawler::Shard::on_response(Visit& visit, VisitStep step, std::string handler_error, TimePoint now) {
  const UrlTask& task = task_of(visit);
  const HttpResponse& response = visit.response;
  const bool reads_list = shared_.reads_sitemaps && is_sitemap(visit);
  count_oddities(response);
  if (is_redirect(response.status) || is_led_away(visit) || is_style_sheet(response)) recall_way(task_of(visit));
  UrlBatch batch;
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
    if (!is_only_checked(task.purpose) && is_unwanted(visit)) {
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
  if (response.status >= 400) ShardCounters::add(counters.errors);
  if (visit.rendered != nullptr) note_rendered(visit, outcome);
  const bool keeps_answer = outcome.state == UrlState::failed && keep_last_answer(visit, outcome);
  batch.outcomes.push_back(std::move(outcome));
  if (reads_list) {
    if (!on_sitemap(visit, batch, now)) return;
  } else if (is_redirect(response.status) || is_led_away(visit)) {
    on_redirect(visit, batch);
    pass_on_sitemap(visit, task, batch);
  } else if (response.status == 200 && task.purpose == Purpose::page && !response.unwanted) {
    on_page(visit, batch);
  }
  if (!reads_list) find_requisites(visit, batch);
  if (shared_.keeps_notes && !reads_list && !keeps_answer) note_answer(visit, batch, now);
  if (visit.before) note_change(visit, batch);
  settle(visit, std::move(batch), now);
}

void Crawler::Shard::count_oddities(const HttpResponse& response) {
  if (response.oddities == 0) return;
  for (std::size_t i = 0; i < kHttpOddities; ++i) {
    if ((response.oddities >> i & 1) != 0) ShardCounters::add(counters.odd[i]);
  }
}

// What is stored with a page that was read in spite of something.
std::string Crawler::Shard::note_on(const HttpResponse& response) {
  if (!response.damage.empty()) return "cut short: " + response.damage;
  return response.oddities == 0 ? std::string{} : "odd: " + describe_oddities(response.oddities);
}

void Crawler::Shard::on_redirect(Visit& visit, UrlBatch& batch) {
  const UrlTask& task = task_of(visit);
  UrlOutcome& outcome = batch.outcomes.front();
  auto target = Url::parse(visit.response.headers.location, &visit.request.url);
  if (visit.response.headers.location.empty() || !target) {
    outcome.error =
        fmt::format("redirect to {}, which is no URL", in_quotes(without_credentials(visit.response.headers.location)));
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
      discover_requisite(task, *target, static_cast<std::uint8_t>(task.redirects + 1), batch);
    }
    return;
  }
  shared_.follow_seed(task.url, *target);
  if (goes_back(visit, *target, batch)) return;
  discover(task, *target, task.depth, true, batch);
  store_links(task, true, batch);
}

// What has led to the URL may have done so in an earlier run.
void Crawler::Shard::recall_way(UrlTask& task) {
  if (!std::exchange(task.is_stored, false)) return;
  const std::uint32_t hops = redirects_to(shared_.store, task.id, options_.max_redirects);
  task.redirects = std::max(task.redirects, static_cast<std::uint8_t>(std::min(hops, 255u)));
  if (is_of_pages(task.purpose)) {
    const std::uint32_t files = requisites_to(shared_.store, task.id, kMostNestedRequisites);
    task.nesting = std::max(task.nesting, static_cast<std::uint8_t>(files));
  }
}

// Back to where the chain of redirects began, which has got cookies by now: that is asked again.
bool Crawler::Shard::goes_back(const Visit& visit, const Url& target, UrlBatch& batch) {
  const UrlTask& from = task_of(visit);
  const bool new_cookies = visit.response.new_cookies;
  UrlTask task;
  task.fingerprint = shared_.fingerprint_of(target.href());
  task.id = shared_.session.comes_back(from.fingerprint, from.id, task.fingerprint, new_cookies);
  // The chain may have begun in an earlier run.
  if (task.id == 0 && new_cookies) {
    task.id = redirects_from(shared_.store, target.href(), from.id, options_.max_redirects);
  }
  if (task.id == 0) return false;
  task.url = target.href();
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
  found_[shared_.shard_of(target)].push_back(std::move(task));
  return true;
}

void Crawler::Shard::on_page(Visit& visit, UrlBatch& batch) {
  const UrlTask& task = task_of(visit);
  const HttpResponse& response = visit.response;
  const bool is_page = is_html_page(response.headers.content_type, response.body);
  if (is_page) ShardCounters::add(counters.pages);
  const bool is_read = is_page || is_xml(response.headers.content_type);
  if (!is_read && response.headers.refresh.empty()) return;
  said_.reset();
  const HostPolicy& policy = *visit.ticket.host->policy;
  if (parse_robots_tag(response.headers.robots_tag, policy.product_token).nofollow) return count(Exclusion::nofollow);
  if (!is_read) {
    follow_refresh(visit, batch);
    return store_links(task, false, batch);
  }
  if (options_.feeds) add_feeds_of(visit, batch);
  // Where each page leads is stored whole, or not at all.
  const std::uint64_t context = shared_.keeps_links ? mix64(static_cast<std::uint64_t>(task.id)) : 0;
  auto summary = scan_page(visit);
  if (shared_.duplicates && !summary.nofollow && is_copy(visit, batch)) return store_links(task, false, batch);
  const auto discover_link = [&](const LinkHarvester::Link& link) -> std::uint64_t {
    if (link.nofollow) {
      count(Exclusion::nofollow);
      return 0;
    }
    if (!follow_link(task, link.url, batch)) return 0;
    // No link makes what is linked from a seed nearer.
    return linked_here_.empty() || task.depth == 0 ? 0 : linked_here_.back();
  };
  harvester_.follow(visit.request.url, summary, context, discover_link, [&](std::uint64_t target) { linked_here_.push_back(target); });
  if (!summary.nofollow) follow_refresh(visit, batch);
  if (visit.rendered != nullptr) discover_own_urls(visit, batch);
  store_links(task, false, batch);
  if (summary.nofollow) count(Exclusion::nofollow);
  if (summary.dropped > 0) {
    ShardCounters::add(counters.excluded[static_cast<std::size_t>(Exclusion::links_per_page)], summary.dropped);
    note_part(batch.outcomes.front(), UrlReason::links_per_page, options_.max_links_per_page);
  }
  if (summary.other_scheme > 0) {
    ShardCounters::add(counters.excluded[static_cast<std::size_t>(Exclusion::scheme)], summary.other_scheme);
  }
}

// False: another URL is followed in its place.
bool Crawler::Shard::follow_link(const UrlTask& from, const Url& url, UrlBatch& batch) {
  if (shared_.duplicates && discover_stripped(from, url, batch)) return false;
  discover(from, url, from.depth + 1, false, batch);
  return true;
}

// A link of the page's, whatever the answer is.
void Crawler::Shard::follow_refresh(const Visit& visit, UrlBatch& batch) {
  if (find_refresh(visit.request.url, visit.response.headers.refresh, noted_)) follow_link(*visit.ticket.task, noted_, batch);
}

// Answered, and left out for its type.
void Crawler::Shard::note_unwanted(const HttpResponse& response, UrlOutcome& outcome) {
  count(Exclusion::content_type);
  shared_.count_left_out(UrlReason::content_type);
  outcome.state = UrlState::excluded;
  outcome.reason = UrlReason::content_type;
  if (const auto length = response.headers.content_length) {
    outcome.size = static_cast<std::int64_t>(std::min<std::uint64_t>(*length, kLargestSize));
  }
}

// The URL is done, but only in part; the first reason counts.
void Crawler::Shard::note_part(UrlOutcome& outcome, UrlReason reason, std::uint64_t limit) {
  if (outcome.reason != UrlReason::none) return;
  shared_.count_left_out(reason);
  outcome.reason = reason;
  outcome.limit = static_cast<std::int64_t>(limit);
}

void Crawler::Shard::store_links(const UrlTask& from, bool redirect, UrlBatch& batch) {
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

void Crawler::Shard::discover(const UrlTask& from, const Url& url, std::uint32_t depth, bool redirect,
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
    // What is only checked is stored as a link out of scope, so that no other run takes it for one of its own.
    const UrlReason reason = off_scope ? UrlReason::off_scope : reason_of(place);
    batch.discovered.push_back({id, std::string(url.href()), depth, crawl_priority(options_, depth, url.href()),
                                from.id, wall(), reason});
    if (options_.requisites != Requisites::none && (reason != UrlReason::none || !options_.accept_types.empty())) {
      const auto part = reason == UrlReason::none ? RequisiteBook::Part::page : RequisiteBook::Part::link;
      shared_.requisites.add(url_fingerprint, id, part, place != Exclusion::none);
    }
    if (place != Exclusion::none) return shared_.count_left_out(reason);
    task.id = id;
    task.url = url.href();
    task.redirects = redirect ? static_cast<std::uint8_t>(from.redirects + 1) : 0;
    if (off_scope) task.purpose = Purpose::link;
    shared_.ending.begin(1);
    if (off_scope && options_.check_foreign_fragments) shared_.checks.add(url_fingerprint, {.id = id});
  } else {
    const bool may_turn = shared_.requisites.is_used() && scope_place == Exclusion::none;
    const bool turns = may_turn && link_to_requisite(task, url, batch);
    if (shared_.checks.is_used()) turns ? void(shared_.checks.link(url_fingerprint)) : link_to_asset(task, url, scope_place, batch);
    if (!shared_.limits_depth || place != Exclusion::none) return;  // nothing about a known URL can change
  }
  found_[shared_.shard_of(url)].push_back(std::move(task));
}

// Whether the URL has turned out to be something else than it was asked for, and is asked for again.
bool Crawler::Shard::has_other_part(Visit& visit, UrlBatch& batch) {
  const UrlTask& task = task_of(visit);
  const bool is_unwanted = !batch.outcomes.empty() && batch.outcomes.front().reason == UrlReason::content_type;
  const bool may_change = task.purpose == Purpose::requisite || is_only_checked(task.purpose) || is_unwanted;
  if (may_change && shared_.requisites.is_used() && settle_requisite(visit, batch)) return true;
  return is_only_checked(task.purpose) && shared_.checks.is_used() && settle_check(visit, batch);
}

void Crawler::Shard::begin_as(Purpose purpose, UrlTask& task) noexcept {
  task.purpose = purpose;
  task.ask.reset();
  task.attempts = 0;
}

void Crawler::Shard::settle(Visit& visit, UrlBatch batch, TimePoint now) {
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
  hand_out_found(now);
  if (!again) shared_.ending.end(1);
}

void Crawler::Shard::hand_out_found(TimePoint now) {
  for (std::size_t owner = 0; owner < found_.size(); ++owner) {
    if (found_[owner].empty()) continue;
    if (owner != index_) {
      shared_.shards[owner]->post(std::exchange(found_[owner], {}));
      continue;
    }
    take_found(found_[owner], now);
  }
}

}  // namespace argiope
