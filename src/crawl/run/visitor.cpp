#include "crawl/run/visitor.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/internal/printable.hpp"
#include "crawl/hosts/internal/host_question.hpp"
#include "crawl/run/answer_notes.hpp"
#include "crawl/run/discovery.hpp"
#include "crawl/run/host_desk.hpp"
#include "crawl/run/host_questions.hpp"
#include "crawl/run/page_reader.hpp"
#include "crawl/run/render_desk.hpp"
#include "crawl/run/settler.hpp"
#include "crawl/run/sitemap_desk.hpp"
#include "crawl/scope/failure_rest.hpp"
#include "crawl/scope/url_filter.hpp"
#include "crawl/urls/internal/requeue.hpp"
#include "web/html/internal/sitemap.hpp"
#include "web/http/internal/validators.hpp"
#include "web/text/internal/content_type.hpp"
#include "web/text/internal/media_type_names.hpp"

namespace argiope {
namespace {

constexpr std::size_t kSitemapBytes = SitemapLimits{}.most_bytes;
constexpr std::size_t kCheckedBytes = 16 * 1024;  // read of what is only checked, for the sake of the connection

ExchangeKind exchange_kind_of(Purpose purpose) noexcept {
  switch (purpose) {
    case Purpose::page: break;
    case Purpose::requisite: return ExchangeKind::requisite;
    case Purpose::sitemap: return ExchangeKind::sitemap;
    case Purpose::link:
    case Purpose::asset:
    case Purpose::part: return ExchangeKind::check;
  }
  return ExchangeKind::page;
}

}  // namespace

bool Crawler::Shard::Visit::is_unwanted() const noexcept {
  const HttpResponse& response = page->response;
  if (response.status < 200 || response.status >= 300) return false;
  if (ask != UrlAsk::head) return response.unwanted;
  const std::string& type = response.headers.content_type;
  return !parse_content_type(type).type.empty() && !has_media_type(type, request.wanted_types);
}

Crawler::Shard::Visitor::Visitor(Core& core, HostDesk& desk, HostQuestions& questions, RenderDesk& render,
                                 Discovery& discovery, SitemapDesk& sitemaps, PageReader& reader, AnswerNotes& notes,
                                 Settler& settler)
    : Part(core),
      desk_(desk),
      questions_(questions),
      render_(render),
      discovery_(discovery),
      sitemaps_(sitemaps),
      reader_(reader),
      notes_(notes),
      settler_(settler) {}

// Not now: the URL goes back to its place, and its host waits for let_go().
void Crawler::Shard::Visitor::put_back(Visit& visit, TimePoint now) {
  frontier_.hold(*visit.ticket.host, now);
  frontier_.put_back(visit.ticket, now);
}

Coro<void> Crawler::Shard::Visitor::visit_now(Visit& visit) {
  Host& host = *visit.ticket.host;
  const TimePoint now = loop().time();
  if (host.lost && now >= host.lost_until) questions_.revive(host, now);
  if (host.lost) co_return pass_over(visit, now);
  if (host.is_held()) co_return put_back(visit, now);
  const HostLanes::Lane lane = HostLanes::lane_of(host.health);
  if (!desk_.lanes().enter(lane, host)) {
    ++host.pins;
    co_return put_back(visit, now);
  }
  const Leaving place([&] { desk_.lanes().leave(lane); });
  if (questions_.are_due(host, now)) {
    put_back(visit, now);
    co_await questions_.ask(host);
    co_return;
  }
  const Url& url = task_of(visit).url;
  if (url.href().empty()) co_return on_error(visit, {Errc::invalid_input, "not a URL"}, now);
  if (host.robots && !host.robots->allowed(url.path_and_query())) {
    co_return settler_.exclude(visit, Exclusion::robots, "robots.txt", now);
  }
  if (shared_.duplicates && !is_only_checked(task_of(visit).purpose) && discovery_.is_in_trap(url.href())) {
    co_return settler_.exclude(visit, Exclusion::trap, {}, now);
  }
  visit.request.url = url;
  if (task_of(visit).purpose != Purpose::sitemap) {
    co_await fetch(visit);
  } else if (sitemaps_.enter(visit)) {
    const Leaving turn([this] { sitemaps_.leave(loop().time()); });
    co_await fetch(visit);
  } else {
    put_back(visit, now);
  }
}

// Deals with a URL of a host of which nothing more is asked. One URL of it fails with the host's cause; and so does
// each link that is only checked, for it leads to nothing. The others have not been asked, and the next run asks
// them.
void Crawler::Shard::Visitor::pass_over(Visit& visit, TimePoint now) {
  HostLoss& loss = *visit.ticket.host->lost;
  if (options_.forever && task_of(visit).revisit) loss.owes_failure = false;
  const bool leads_nowhere =
      is_only_checked(task_of(visit).purpose) && loss.unreachable && !visit.ticket.host->health.answered();
  if (std::exchange(loss.owes_failure, false) || leads_nowhere) {
    ++task_of(visit).attempts;
    return settler_.give_up(visit, loss.cause, now);
  }
  ShardCounters::add(counters_.not_asked);
  shared_.failures.count_not_asked(visit.ticket.host->site);
  if (options_.forever) return wait_with_host(visit, now);
  UrlBatch batch;
  if (const UrlTask& task = task_of(visit); task.revisit || task.known) {
    // Of a page that is known nothing changes.
    batch.moves.push_back(
        {task.id, std::nullopt, 0, crawl_priority(options_, task.depth, task.url.href()), task.depth});
  } else {
    UrlOutcome outcome = settler_.outcome_of(visit);
    outcome.state = UrlState::queued;
    outcome.limit = task_of(visit).given_up;
    outcome.error = fmt::format("not asked: {}: {}", to_string(loss.cause.code), loss.cause.message);
    batch.outcomes.push_back(std::move(outcome));
  }
  settler_.settle(visit, std::move(batch), now);
}

// Nothing changes about its URL, which waits with the host.
void Crawler::Shard::Visitor::wait_with_host(Visit& visit, TimePoint now) {
  Host& host = *visit.ticket.host;
  put_page_off(visit);
  task_of(visit).attempts = 0;
  frontier_.rest(host, host.lost_until, now);
  frontier_.put_back(visit.ticket, now);
}

Coro<void> Crawler::Shard::Visitor::fetch(Visit& visit) {
  Host& host = *visit.ticket.host;
  TimePoint now = loop().time();
  if (render_.is_open() && host.rest_until > now) {
    // Requests of a page that is rendered come first.
    co_return frontier_.put_back(visit.ticket, now);
  }
  std::optional<Leaving> leaves_address = desk_.enter_address(host);
  if (!leaves_address) co_return put_back(visit, now);
  visit.ask = ask_of(task_of(visit));
  if (task_of(visit).purpose != Purpose::requisite) {
    const bool is_under_way = task_of(visit).has_place;
    if (!take_page(visit)) {
      shared_.ending.stop_at_max_pages();
      // It stays queued in the store, and makes way for what is still fetched.
      if (!shared_.ending.stopping()) frontier_.done(visit.ticket, now);
      co_return;
    }
    if (!is_under_way) shared_.ending.begin_part();
  }
  build_request(visit);
  // Until a host has answered, one question at a time is enough.
  std::optional<Leaving> ends_question;
  if (!host.health.proven()) {
    ends_question.emplace(desk_.begin_question(host));
    visit.request.timeout = desk_.patience_with(host);
  }
  visit.rendered.reset();
  if (render_.is_open()) desk_.take_turn(host, now);
  visit.page->response.connected = false;
  visit.is_asked = true;
  const Result<void> sent = co_await desk_.send(host, visit.request, visit.page->response);
  leaves_address.reset();
  now = loop().time();
  core_.last_fetch = now;
  if (host.throttled) desk_.note_latency(visit, sent.has_value(), now);
  desk_.be_polite(host, visit.page->response.sent_at, now);
  if (!sent) co_return on_error(visit, sent.error(), now);
  visit.page->begin(visit.request.url);
  std::optional<Error> unrendered;
  if (render_.is_open() && render_.is_worth_rendering(visit)) {
    // It has answered: what the page asks for may be asked of it.
    host.health.page_answered();
    ends_question.reset();
    unrendered = co_await render_.render(visit);
    now = loop().time();
    if (shared_.ending.is_quota_used_up()) {
      // Some of the files that its page asked for may be missing.
      count_bytes(visit.page->response);
      co_return cut_by_quota(visit, now);
    }
  }
  reader_.begin(visit);
  // An answer that no sink took stays queued in the store.
  const ExchangeKind kind = exchange_kind_of(task_of(visit).purpose);
  if (!show(kind, visit, unrendered.has_value())) co_return;
  const VisitStep step = take_answer(visit, unrendered, now);
  if (step != VisitStep::settle && step != VisitStep::fail) co_return;
  if (visit.rendered != nullptr) {
    RenderDesk::take_rendered(visit);
    reader_.begin(visit);
  }
  std::string handler_error;
  if (options_.on_page && visit.request.method == HttpMethod::get && visit.page->response.status != 304 &&
      !visit.page->response.unwanted && kind == ExchangeKind::page) {
    handler_error = co_await hand_over(visit);
    now = loop().time();
  }
  settler_.on_response(visit, step, std::move(handler_error), now);
}

// --- the request -----------------------------------------------------------------------------------------------------

// Whether its name says that it is of a type that is not accepted. Names may be wrong: it is asked by HEAD.
bool Crawler::Shard::Visitor::looks_unwanted(const UrlTask& task) const {
  if (options_.accept_types.empty() || task.revisit) return false;
  const std::string_view path = path_in(task.url.href());
  const std::string_view type = media_type_of_extension(extension_of(path.substr(path.rfind('/') + 1)));
  return !type.empty() && !has_media_type(type, options_.accept_types);
}

UrlAsk Crawler::Shard::Visitor::ask_of(const UrlTask& task) const {
  return task.ask ? *task.ask : first_ask(task.purpose, looks_unwanted(task));
}

bool Crawler::Shard::Visitor::take_page(Visit& visit) {
  UrlTask& task = task_of(visit);
  visit.page->response.connected = false;
  visit.page->response.challenged = HttpChallenged::none;
  visit.has_spare = options_.max_pages > 1 && visit.ask == UrlAsk::head;
  const bool is_taken = std::exchange(task.has_place, false) || shared_.ending.take_pages(visit.has_spare ? 2 : 1);
  if (!is_taken) visit.has_spare = false;
  return visit.has_page = is_taken;
}

void Crawler::Shard::Visitor::put_page_off(Visit& visit) {
  const bool counts = visit.page->response.connected && visit.page->response.challenged != HttpChallenged::again &&
                      task_of(visit).purpose != Purpose::sitemap;
  if (visit.has_page && !counts) shared_.ending.give_pages_back(1);
  settler_.end_page(visit);
}

void Crawler::Shard::Visitor::build_request(Visit& visit) {
  const UrlTask& task = task_of(visit);
  HttpRequest& request = visit.request;
  request.method = visit.ask == UrlAsk::head ? HttpMethod::head : HttpMethod::get;
  const bool in_part = is_only_checked(task.purpose) && visit.ask != UrlAsk::body;
  request.body_limit = in_part ? std::min(options_.size_limit, kCheckedBytes) : options_.size_limit;
  request.wanted_types = {};
  if (task.purpose == Purpose::page) request.wanted_types = options_.accept_types;
  if (task.purpose == Purpose::sitemap) request.body_limit = kSitemapBytes;
  request.timeout = task.host->policy->timeout;
  request.headers = task.host->policy->headers;
  request.keep_fields = options_.on_page || render_.is_open() || options_.duplicates.canonical || options_.keep_facts;
  desk_.prepare(request);
  visit.before.reset();
  visit.is_conditional = false;
  if (!task.revisit && !task.counted) return;
  auto record = shared_.store.get(task.id);
  if (!record || !*record) return;
  visit.before = std::make_unique<UrlRecord>(std::move(**record));
  const bool knows_answer = has_last_answer(*visit.before);
  if ((!task.revisit && !knows_answer) || shared_.demands.misses(*visit.before)) return;
  visit.is_conditional = true;
  // That a redirect or an error has not changed would leave nothing to go by.
  if (!knows_answer && (visit.before->status_code < 200 || visit.before->status_code >= 300)) return;
  if (!visit.before->etag.empty()) request.headers.emplace_back("If-None-Match", visit.before->etag);
  if (!visit.before->last_modified.empty())
    request.headers.emplace_back("If-Modified-Since", visit.before->last_modified);
}

// Of what has failed: whether its validators are those of the last whole answer, which all that is asked for has seen.
bool Crawler::Shard::Visitor::has_last_answer(const UrlRecord& record) const {
  if (record.state != UrlState::failed || (record.etag.empty() && record.last_modified.empty())) return false;
  return !shared_.sinks.lacks(record.url);
}

// --- the answer ------------------------------------------------------------------------------------------------------

bool Crawler::Shard::Visitor::show(ExchangeKind kind, Visit& visit, bool is_unrendered) {
  if (shared_.sinks.empty()) return true;
  const UrlTask& task = task_of(visit);
  Exchange exchange = desk_.exchange_of(kind, visit.request, visit.page->response);
  exchange.depth = task.depth;
  exchange.url_id = task.id;
  exchange.asked_again = is_unrendered || (!visit.page->response.damage.empty() && !is_last_attempt(task));
  exchange.fetched = visit.page.get();
  if (visit.rendered != nullptr) {
    exchange.rendered_page = visit.rendered->page.get();
    exchange.rendered = &exchange.rendered_page->response;
  }
  exchange.references = reader_.scan_early(visit);
  return shared_.show(exchange);
}

Coro<std::string> Crawler::Shard::Visitor::hand_over(Visit& visit) {
  std::string what;
  try {
    co_await options_.on_page({visit.request.url, visit.page->response, task_of(visit).depth, &visit.page->view});
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
    ShardCounters::add(counters_.handler_errors);
    what.insert(0, "the page handler has thrown: ");
    spdlog::error("{}: {}", task_of(visit).url.href(), printable(what));
  }
  co_return what;
}

void Crawler::Shard::Visitor::learn_from(Visit& visit) {
  const HttpResponse& response = visit.page->response;
  visit.ticket.host->health.page_answered();
  count_bytes(response);
  if (response.new_cookies || response.challenged != HttpChallenged::none) {
    shared_.session.note(visit.request, response, wall());
  }
}

// Of the answer of a URL, or of one attempt of several.
void Crawler::Shard::Visitor::count_answer(const Visit& visit) {
  const int status = visit.page->response.status;
  ShardCounters::add(counters_.fetched);
  if (task_of(visit).purpose == Purpose::requisite) ShardCounters::add(counters_.requisites);
  if (status >= 0 && status < static_cast<int>(counters_.statuses.size())) {
    ShardCounters::add(counters_.statuses[static_cast<std::size_t>(status)]);
  }
}

VisitRequest Crawler::Shard::Visitor::asked_of(const Visit& visit) const {
  const UrlTask& task = task_of(visit);
  return {task.purpose, visit.ask, task.challenges, is_last_attempt(task)};
}

VisitAnswer Crawler::Shard::Visitor::answer_of(const Visit& visit, const std::optional<Error>& unrendered) {
  const HttpResponse& response = visit.page->response;
  const bool wants_cookies = visit.rendered != nullptr && visit.rendered->wants_cookies;
  VisitAnswer answer{.status = response.status};
  if (unrendered) answer.failure = unrendered->code;
  answer.is_challenge = response.challenged == HttpChallenged::again || wants_cookies;
  answer.is_unwanted = visit.is_unwanted();
  answer.is_worth_reading = notes_.is_worth_reading(visit);
  answer.is_truncated = response.truncated;
  answer.is_damaged = !response.damage.empty();
  answer.is_unchanged = response.status == 304 && asks_whether_changed(visit.request);
  return answer;
}

bool Crawler::Shard::Visitor::is_last_attempt(const UrlTask& task) noexcept {
  constexpr std::uint32_t kMost = std::numeric_limits<decltype(task.attempts)>::max();
  return task.attempts + 1u >= std::min(task.host->policy->attempts, kMost);
}

VisitStep Crawler::Shard::Visitor::take_answer(Visit& visit, const std::optional<Error>& unrendered, TimePoint now) {
  const HttpResponse& response = visit.page->response;
  learn_from(visit);
  const NextStep next = next_step(asked_of(visit), answer_of(visit, unrendered));
  if (next.step == VisitStep::again || next.step == VisitStep::instead) return take_step(visit, next, {}, {}, now);
  count_answer(visit);
  Duration at_least{};
  if (is_temporary(response.status)) at_least = desk_.heed_retry_after(*visit.ticket.host, response, now);
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

VisitStep Crawler::Shard::Visitor::take_step(Visit& visit, const NextStep& next, const Error& why, Duration at_least,
                                             TimePoint now) {
  UrlTask& task = task_of(visit);
  if (next.ask != visit.ask) task.ask = next.ask;
  switch (next.step) {
    case VisitStep::again: ask_again(visit, now); break;
    case VisitStep::instead: ask_instead(visit, now); break;
    case VisitStep::retry: retry(visit, why, at_least, now); break;
    case VisitStep::give_up:
      ++task.attempts;
      settler_.give_up(visit, why, now);
      break;
    case VisitStep::settle:
    case VisitStep::fail: break;  // what has come says what becomes of it
  }
  return next.step;
}

void Crawler::Shard::Visitor::ask_again(Visit& visit, TimePoint now) {
  ++task_of(visit).challenges;
  put_page_off(visit);
  frontier_.retry(visit.ticket, now, now);
}

void Crawler::Shard::Visitor::ask_instead(Visit& visit, TimePoint now) {
  UrlTask& task = task_of(visit);
  // A budget of one page is overdrawn, or it would never be enough.
  task.has_place = visit.has_page && (std::exchange(visit.has_spare, false) || options_.max_pages == 1);
  if (task.has_place) shared_.ending.begin_part();
  put_page_off(visit);
  frontier_.retry(visit.ticket, now, now);
}

void Crawler::Shard::Visitor::retry(Visit& visit, const Error& error, Duration at_least, TimePoint now) {
  UrlTask& task = task_of(visit);
  ++task.attempts;
  const Duration delay = desk_.wait_after(*task.host, task.attempts).value_or(Duration::zero());
  ShardCounters::add(counters_.retries);
  put_page_off(visit);
  spdlog::debug("{}: {}; attempt {} of {}", task.url.href(), error.message, task.attempts, task.host->policy->attempts);
  const TimePoint due = saturating_add(now, std::max(delay, at_least));
  UrlBatch batch;
  UrlOutcome outcome = waiting_outcome(visit);
  outcome.due = frontier_.stored_time(due);
  if (shared_.plan.is_adaptive()) outcome.mtime = shared_.plan.visit_before(outcome.due, visit.before.get());
  outcome.error = fmt::format("{}: {}", to_string(error.code), error.message);
  batch.outcomes.push_back(std::move(outcome));
  shared_.store.submit(std::move(batch));
  frontier_.retry(visit.ticket, due, now);
}

// --- no answer -------------------------------------------------------------------------------------------------------

void Crawler::Shard::Visitor::on_error(Visit& visit, const Error& error, TimePoint now) {
  Host& host = *visit.ticket.host;
  const HttpResponse& response = visit.page->response;
  const auto go_on = [&] { take_step(visit, next_step(asked_of(visit), {.failure = error.code}), error, {}, now); };
  if (!is_of_server(error.code)) return go_on();
  if (response.connected) count_bytes(response);
  if (shared_.ending.is_quota_used_up()) return cut_by_quota(visit, now);
  if (host.health.is_new() && error.code == Errc::timeout && visit.request.timeout < host.policy->timeout) {
    put_page_off(visit);
    note_asked(visit);  // the run may end while the host rests
    questions_.question_failed(host, error, visit.request.timeout, now);
    return frontier_.put_back(visit.ticket, now);
  }
  if (!response.connected) {
    // The host's trouble, and no attempt of the URL's.
    if (!questions_.host_failed(host, error, false, now)) {
      // Nothing is known to be wrong with a page that was there.
      if (options_.forever && task_of(visit).revisit) return pass_over(visit, now);
      ++task_of(visit).attempts;
      return settler_.give_up(visit, error, now);
    }
    put_page_off(visit);
    return frontier_.put_back(visit.ticket, now);
  }
  if (says_something(error, response)) {
    host.health.page_answered();
  } else if (task_of(visit).attempts == 0) {
    host.health.url_failed(now);
  }
  go_on();
}

// An answer that is not whole when the quota is used up stays queued. One that was too much for it by itself fails:
// it would use up each run's.
void Crawler::Shard::Visitor::cut_by_quota(Visit& visit, TimePoint now) {
  const std::uint64_t came = visit.page->response.wire_bytes;
  if (visit.page->response.connected && came > options_.quota / 2) {
    const auto text = fmt::format("not whole after {} bytes, when the quota of {} was used up", came, options_.quota);
    return settler_.give_up(visit, {Errc::too_large, text}, now);
  }
  put_page_off(visit);
  note_asked(visit);
  frontier_.put_back(visit.ticket, now);
}

// A run that ends is no failure of the URL's: its attempts stay as many as they are.
void Crawler::Shard::Visitor::note_asked(const Visit& visit) {
  if (!has_limit(options_) || !visit.is_asked || !visit.page->response.connected) return;
  const UrlTask& task = task_of(visit);
  UrlBatch batch;
  UrlOutcome outcome = waiting_outcome(visit);
  if (task.redirects > 0) outcome.limit = -std::int64_t{task.redirects};
  if (shared_.plan.is_adaptive()) {
    outcome.due = outcome.mtime;
    outcome.mtime = shared_.plan.visit_before(outcome.due, visit.before.get());
  }
  outcome.error = "not answered before the run ended";
  batch.outcomes.push_back(std::move(outcome));
  shared_.store.submit(std::move(batch));
}

// Of a URL that is tried again. The last answer that is known stays, to be asked about; without validators, where it
// was asked without.
UrlOutcome Crawler::Shard::Visitor::waiting_outcome(const Visit& visit) const {
  const bool is_known = visit.before && visit.before->status_code != 0;
  const UrlOutcome now = settler_.outcome_of(visit);
  UrlOutcome outcome = is_known && !visit.is_conditional ? queued_anew(*visit.before) : now;
  outcome.mtime = now.mtime;
  outcome.attempts = now.attempts;
  outcome.reason = now.reason;
  outcome.state = UrlState::queued;
  outcome.limit = task_of(visit).given_up;
  if (is_known && visit.is_conditional) {
    outcome.not_modified = true;
    outcome.redirect_to = visit.before->redirect_to;
  }
  return outcome;
}

}  // namespace argiope
