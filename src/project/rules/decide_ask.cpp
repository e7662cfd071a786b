#include "project/rules/internal/decide_ask.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "base/internal/wall_time.hpp"
#include "crawl/scope/internal/revisit_intervals.hpp"

namespace argiope {
namespace {

constexpr WallTime kNoTime{};

// A clock that was set back leaves times in the future: what is farther ahead than the span has passed, too, so that
// nothing waits longer than the span and the step.
bool has_passed(WallTime since, Duration span, WallTime now) noexcept {
  if (since == kNoTime) return true;
  return since > now ? since - now > span : now - since > span;
}

// The rule, what was said for the page and what was learned of it as one.
class Terms {
 public:
  // `interval`: the last of the page, if it has had one.
  Terms(const PageTerms& rule, const OwnTerms& own, std::optional<Duration> interval)
      : rule_(rule),
        own_(own),
        intervals_(own.age                        ? std::nullopt
                   : rule.age >= Duration::zero() ? std::optional(rule.age)
                                                  : std::nullopt,
                   own.age ? std::nullopt : rule.adaptive),
        interval_(interval) {}

  std::int32_t priority() const { return own_.priority.value_or(rule_.priority); }
  Duration age() const { return intervals_.is_adaptive() ? intervals_.of(interval_) : own_.age.value_or(rule_.age); }
  bool grows_old() const { return age() >= Duration::zero(); }
  std::uint32_t retries() const { return own_.retries.value_or(rule_.retries); }
  // Without an age there is no time at which it would be due.
  bool recrawls() const { return own_.auto_recrawl.value_or(rule_.auto_recrawl) && grows_old(); }

  // The page's interval after a visit, with which the terms go on.
  std::optional<Duration> next_interval(RevisitIntervals::Visit visit) {
    if (intervals_.is_adaptive()) interval_ = intervals_.next(interval_, visit);
    return interval_;
  }

  // How long after the failure number `retried` (from 0) of a row; never longer than a fetched page stays fresh.
  Duration wait_after(std::uint32_t retried, Random& random) const {
    RetryPolicy policy = rule_.retry_delay;
    policy.max_attempts = std::numeric_limits<std::uint32_t>::max();
    return at_most_age(policy.delay_after(std::min(retried, policy.max_attempts - 2) + 1, random).value_or(Duration{}));
  }
  // How long a page that was given up rests before an ask counts: the longest wait between its retries.
  Duration rest() const {
    const RetryPolicy& policy = rule_.retry_delay;
    return at_most_age(std::max(Duration::zero(), policy.table.empty() ? policy.longest : policy.table.back()));
  }

 private:
  Duration at_most_age(Duration wait) const { return grows_old() ? std::min(wait, age()) : wait; }

  const PageTerms& rule_;
  const OwnTerms& own_;
  const RevisitIntervals intervals_;
  std::optional<Duration> interval_;
};

// Of a page that waits: what is said last counts, but a priority only if it is higher.
OwnTerms merged(const KnownPage& page, const OwnTerms& said) {
  OwnTerms own = page.own;
  if (said.priority && *said.priority > page.priority) own.priority = said.priority;
  if (said.age) own.age = said.age;
  if (said.retries) own.retries = said.retries;
  if (said.auto_recrawl) own.auto_recrawl = said.auto_recrawl;
  return own;
}

// One that is past is no time at all.
WallTime due_of(const Ask& ask, WallTime now) { return ask.exetime && *ask.exetime > now ? *ask.exetime : kNoTime; }

class AskJudge {
 public:
  AskJudge(const KnownPage& known, const Ask& ask, const PageTerms& rule, WallTime now)
      : known_(known), ask_(ask), rule_(rule), now_(now), tag_(ask.tag != 0 ? ask.tag : rule.tag) {}

  AskDecision decide() const {
    if (ask_.cancel) return cancel();
    switch (known_.state) {
      case PageState::visiting: return known_.again ? change() : beside_visit();
      case PageState::waiting: return known_.wait == PageWait::recrawl ? before_recrawl() : change();
      case PageState::done:
      case PageState::failed:
      case PageState::cancelled: break;
    }
    return at_rest();
  }

 private:
  AskDecision drop(AskReason reason, WallTime until = {}) const {
    return {.verdict = AskVerdict::drop, .reason = reason, .page = known_, .until = until};
  }
  bool is_other_tag() const { return tag_ != 0 && tag_ != known_.tag; }

  AskDecision cancel() const {
    if (known_.state != PageState::waiting && known_.state != PageState::visiting) return drop(AskReason::is_at_rest);
    AskDecision decision{.verdict = AskVerdict::cancel, .reason = AskReason::cancelled, .page = known_};
    decision.page.state = PageState::cancelled;
    decision.page.again = false;
    decision.page.due = kNoTime;
    decision.page.retried = 0;
    return decision;
  }

  // A visit of its own, on the terms of the ask alone.
  AskDecision visit(AskVerdict verdict, AskReason reason) const {
    AskDecision decision{.verdict = verdict, .reason = reason, .page = known_, .takes_request = true};
    KnownPage& page = decision.page;
    if (page.state == PageState::visiting) {
      page.again = true;
    } else {
      page.state = PageState::waiting;
      page.wait = PageWait::visit;
      page.retried = 0;
    }
    page.own = ask_.own;
    page.priority = Terms(rule_, page.own, page.interval).priority();
    page.due = due_of(ask_, now_);
    if (tag_ != 0) page.tag = tag_;
    return decision;
  }

  AskDecision beside_visit() const {
    if (is_other_tag()) return visit(AskVerdict::after, AskReason::tag_changed);
    if (ask_.force_update) return visit(AskVerdict::after, AskReason::forced);
    return drop(AskReason::is_visited);
  }

  AskDecision at_rest() const {
    if (is_other_tag()) return visit(AskVerdict::again, AskReason::tag_changed);
    const Terms terms(rule_, ask_.own, known_.interval);
    if (known_.state == PageState::failed) {
      if (ask_.force_update) return visit(AskVerdict::again, AskReason::forced);
      if (has_passed(known_.ended_at, terms.rest(), now_)) return visit(AskVerdict::again, AskReason::has_failed);
      return drop(AskReason::has_rested_too_little, saturating_add(known_.ended_at, terms.rest()));
    }
    if (is_old(terms)) return visit(AskVerdict::again, AskReason::too_old);
    if (ask_.force_update) return visit(AskVerdict::again, AskReason::forced);
    if (known_.succeeded_at == kNoTime) return drop(AskReason::was_cancelled);
    return drop_fresh(terms);
  }
  bool is_old(const Terms& terms) const {
    return terms.grows_old() && has_passed(known_.succeeded_at, terms.age(), now_);
  }
  AskDecision drop_fresh(const Terms& terms) const {
    return drop(AskReason::is_fresh,
                terms.grows_old() ? saturating_add(known_.succeeded_at, terms.age()) : WallTime::max());
  }

  // It is at rest but for its recrawl. Terms that are given from now on count for that, too.
  AskDecision before_recrawl() const {
    if (is_other_tag()) return visit(AskVerdict::change, AskReason::tag_changed);
    const OwnTerms own = merged(known_, ask_.own);
    const Terms terms(rule_, own, known_.interval);
    if (is_old(terms)) return visit(AskVerdict::change, AskReason::too_old);
    if (ask_.force_update) return visit(AskVerdict::change, AskReason::forced);
    AskDecision decision{.verdict = AskVerdict::change, .reason = AskReason::terms_changed, .page = known_};
    decision.page.own = own;
    decision.page.priority = std::max(known_.priority, terms.priority());
    decision.page = under_rule(decision.page, rule_);
    if (decision.page == known_) return drop_fresh(terms);
    if (decision.page.priority > known_.priority) decision.reason = AskReason::raised;
    return decision;
  }

  // It waits for a visit: the higher priority, the earlier time, the newer tag. A retry waits for its time unless one
  // is named.
  AskDecision change() const {
    AskDecision decision{.verdict = AskVerdict::change, .reason = AskReason::waits, .page = known_};
    KnownPage& page = decision.page;
    page.own = merged(known_, ask_.own);
    if (page.own != known_.own) decision.reason = AskReason::terms_changed;
    page.priority = std::max(known_.priority, Terms(rule_, ask_.own, known_.interval).priority());
    if (page.priority > known_.priority) decision.reason = AskReason::raised;
    if (ask_.exetime || ask_.force_update) page.due = std::min(known_.due, due_of(ask_, now_));
    if (page.due < known_.due) decision.reason = AskReason::hastened;
    if (is_other_tag()) {
      page.tag = tag_;
      decision.reason = AskReason::tag_changed;
      decision.takes_request = true;
    }
    if (ask_.force_update) {
      if (page.state == PageState::waiting) page.wait = PageWait::visit;
      page.retried = 0;
      decision.reason = AskReason::forced;
      decision.takes_request = true;
    }
    return decision.reason == AskReason::waits ? drop(AskReason::waits) : decision;
  }

  const KnownPage& known_;
  const Ask& ask_;
  const PageTerms& rule_;
  const WallTime now_;
  const PageTag tag_;
};

}  // namespace

AskDecision decide_ask(const KnownPage* known, const Ask& ask, const PageTerms& rule, WallTime now) {
  if (known != nullptr) return AskJudge(*known, ask, rule, now).decide();
  if (ask.cancel) return {.verdict = AskVerdict::drop, .reason = AskReason::is_unknown};
  AskDecision decision{.verdict = AskVerdict::add, .reason = AskReason::is_new, .takes_request = true};
  decision.page = {.priority = Terms(rule, ask.own, std::nullopt).priority(),
                   .due = due_of(ask, now),
                   .tag = ask.tag != 0 ? ask.tag : rule.tag,
                   .own = ask.own};
  return decision;
}

std::vector<AskDecision> decide_asks(std::span<const PageAsk> asks, const FindPage& find, WallTime now) {
  std::map<std::pair<std::string_view, std::string_view>, std::optional<KnownPage>> pages;
  std::vector<AskDecision> decisions;
  decisions.reserve(asks.size());
  for (const PageAsk& one : asks) {
    const auto [found, is_first] = pages.try_emplace({one.project, one.name});
    std::optional<KnownPage>& known = found->second;
    if (is_first) known = find(one.project, one.name);
    AskDecision decision = decide_ask(known ? &*known : nullptr, one.ask, *one.rule, now);
    if (decision.verdict != AskVerdict::drop) known = decision.page;
    decisions.push_back(std::move(decision));
  }
  return decisions;
}

void use_up_retries(KnownPage& page) noexcept { page.retried = std::numeric_limits<std::uint32_t>::max() - 1; }

VisitDecision decide_visit_end(const KnownPage& known, VisitEnd end, const PageTerms& rule, WallTime now,
                               Random& random) {
  VisitDecision decision{.page = known};
  if (known.state != PageState::visiting && known.state != PageState::cancelled) return decision;
  KnownPage& page = decision.page;
  page.ended_at = now;
  const bool succeeded = end != VisitEnd::failure;
  const bool is_first = known.succeeded_at == kNoTime;
  if (succeeded) page.succeeded_at = now;
  if (known.state != PageState::visiting) return decision;
  Terms terms(rule, page.own, page.interval);
  if (succeeded) {
    using enum RevisitIntervals::Visit;
    page.interval = terms.next_interval(is_first ? first : end == VisitEnd::unchanged ? same : changed);
  }
  const std::uint32_t failures = known.retried;
  page.retried = 0;
  if (known.again) {
    page.state = PageState::waiting;
    page.wait = PageWait::visit;
    page.again = false;
    return decision;
  }
  page.due = kNoTime;
  const auto wait_for = [&](PageWait wait, Duration span) {
    page.state = PageState::waiting;
    page.wait = wait;
    page.due = saturating_add(now, span);
  };
  if (succeeded) {
    page.state = PageState::done;
    if (terms.recrawls()) wait_for(PageWait::recrawl, terms.age());
    page.priority = terms.priority();
    return decision;
  }
  if (failures < terms.retries()) {
    wait_for(PageWait::retry, terms.wait_after(failures, random));
    page.retried = failures + 1;
    return decision;
  }
  decision.gave_up = true;
  page.state = PageState::failed;
  if (terms.recrawls()) wait_for(PageWait::retry, terms.wait_after(failures, random));
  return decision;
}

KnownPage under_rule(KnownPage page, const PageTerms& rule) {
  if (page.state != PageState::waiting || page.wait != PageWait::recrawl) return page;
  const Terms terms(rule, page.own, page.interval);
  if (terms.recrawls()) {
    page.due = saturating_add(page.succeeded_at, terms.age());
  } else {
    page.state = PageState::done;
    page.wait = PageWait::visit;
    page.due = kNoTime;
  }
  return page;
}

std::string_view to_string(AskVerdict verdict) noexcept {
  constexpr std::string_view kNames[] = {"drop", "add", "again", "after", "change", "cancel"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::string_view to_string(AskReason reason) noexcept {
  constexpr std::string_view kNames[] = {
      "new",       "tag_changed", "too_old", "forced", "has_failed", "raised",  "hastened", "terms_changed",
      "cancelled", "fresh",       "resting", "waits",  "visited",    "unknown", "at_rest",  "was_cancelled"};
  return kNames[static_cast<std::size_t>(reason)];
}

}  // namespace argiope
