// What becomes of an ask: the table of docs/projects.md, and pyspider's faults F1 to F5, F13 and F14.
#include "project/rules/internal/decide_ask.hpp"

#include <gmock/gmock.h>

#include <string>

namespace argiope {
namespace {

using namespace std::chrono_literals;
using enum AskVerdict;
using enum PageState;
using testing::ElementsAre;
using testing::Field;

constexpr WallTime kNow = std::chrono::sys_days{std::chrono::year{2026} / 11 / 23};
constexpr PageTag kOld = 11, kNew = 12;

PageTerms rule_of(Duration age = kNeverOld) { return {.age = age}; }

KnownPage page_in(PageState state, Duration ago = 1h) {
  KnownPage page{.state = state};
  if (state == done) page.succeeded_at = kNow - ago;
  if (state == done || state == failed) page.ended_at = kNow - ago;
  return page;
}
KnownPage waits_for(PageWait wait, WallTime due = {}) {
  KnownPage page{.state = waiting, .wait = wait, .due = due};
  if (wait != PageWait::visit) page.ended_at = kNow - 1h;
  if (wait == PageWait::recrawl) page.succeeded_at = kNow - 1h;
  if (wait == PageWait::retry) page.retried = 2;
  return page;
}
KnownPage tagged(KnownPage page, PageTag tag) {
  page.tag = tag;
  return page;
}

struct AskCase {
  std::string name;
  std::optional<KnownPage> known;
  Ask ask;
  PageTerms rule;
  AskVerdict verdict;
  AskReason reason;
};

std::vector<AskCase> ask_cases() {
  const Ask plain, forced{.force_update = true}, cancelled_by_force{.force_update = true, .cancel = true},
      takes_back{.cancel = true};
  const Ask new_tag{.tag = kNew};
  const PageTerms never = rule_of(), hour = rule_of(1h), day = rule_of(24h), always = rule_of(0s);
  PageTerms versioned = never;
  versioned.tag = kNew;
  PageTerms recrawled = day;
  recrawled.auto_recrawl = true;
  const KnownPage recrawl = waits_for(PageWait::recrawl, kNow + 23h);
  KnownPage cancelled_new = page_in(cancelled);
  KnownPage cancelled_old = page_in(cancelled);
  cancelled_old.succeeded_at = kNow - 48h;
  return {
      // A page of which nothing is known.
      {"unknown", std::nullopt, plain, never, add, AskReason::is_new},
      {"unknown, forced", std::nullopt, forced, never, add, AskReason::is_new},
      {"unknown, cancelled", std::nullopt, takes_back, never, drop, AskReason::is_unknown},
      {"unknown, cancelled by force", std::nullopt, cancelled_by_force, never, drop, AskReason::is_unknown},
      // Fetched an hour ago.
      {"done, no age", page_in(done), plain, never, drop, AskReason::is_fresh},
      {"done, younger than its age", page_in(done), plain, day, drop, AskReason::is_fresh},
      {"done, exactly its age", page_in(done), plain, hour, drop, AskReason::is_fresh},
      {"done, older than its age", page_in(done, 1h + 1ns), plain, hour, again, AskReason::too_old},
      {"done, age 0", page_in(done), plain, always, again, AskReason::too_old},
      {"done, the ask's age before the rule's", page_in(done), {.own = {.age = 30min}}, day, again, AskReason::too_old},
      {"done, the ask says never", page_in(done), {.own = {.age = kNeverOld}}, always, drop, AskReason::is_fresh},
      {"done, forced", page_in(done), forced, never, again, AskReason::forced},
      {"done, first tag", page_in(done), new_tag, never, again, AskReason::tag_changed},
      {"done, another tag", tagged(page_in(done), kOld), new_tag, never, again, AskReason::tag_changed},
      {"done, the same tag", tagged(page_in(done), kNew), new_tag, never, drop, AskReason::is_fresh},
      {"done, the same tag but old", tagged(page_in(done, 25h), kNew), new_tag, day, again, AskReason::too_old},
      {"done, no tag any more", tagged(page_in(done), kOld), plain, never, drop, AskReason::is_fresh},
      {"done, the rule's tag raised", tagged(page_in(done), kOld), plain, versioned, again, AskReason::tag_changed},
      {"done, cancelled", page_in(done), takes_back, never, drop, AskReason::is_at_rest},
      {"done, a later time changes nothing", page_in(done), {.exetime = kNow + 1h}, never, drop, AskReason::is_fresh},
      {"done, the clock was set back a little", page_in(done, -30min), plain, hour, drop, AskReason::is_fresh},
      {"done, the clock was set back far", page_in(done, -48h), plain, hour, again, AskReason::too_old},
      // Given up an hour ago: it does not count as fresh (F14), but it rests.
      {"failed, no age, an hour ago", page_in(failed), plain, never, drop, AskReason::has_rested_too_little},
      {"failed, no age, yesterday", page_in(failed, 25h), plain, never, again, AskReason::has_failed},
      {"failed, a longer age, yesterday", page_in(failed, 25h), plain, rule_of(240h), again, AskReason::has_failed},
      {"failed, a shorter age", page_in(failed), plain, rule_of(30min), again, AskReason::has_failed},
      {"failed, forced", page_in(failed), forced, never, again, AskReason::forced},
      {"failed, another tag", page_in(failed), new_tag, never, again, AskReason::tag_changed},
      {"failed, cancelled", page_in(failed), takes_back, never, drop, AskReason::is_at_rest},
      // Cancelled.
      {"cancelled, never fetched, no age", cancelled_new, plain, never, drop, AskReason::was_cancelled},
      {"cancelled, never fetched, an age", cancelled_new, plain, day, again, AskReason::too_old},
      {"cancelled, fetched, no age", cancelled_old, plain, never, drop, AskReason::is_fresh},
      {"cancelled, fetched long ago", cancelled_old, plain, day, again, AskReason::too_old},
      {"cancelled, forced", cancelled_new, forced, never, again, AskReason::forced},
      {"cancelled twice", cancelled_new, takes_back, never, drop, AskReason::is_at_rest},
      // It waits for a visit. force and cancel work alone (F4); a raised priority and an earlier time reach it (F5).
      {"waits", waits_for(PageWait::visit), plain, always, drop, AskReason::waits},
      {"waits, cancelled", waits_for(PageWait::visit), takes_back, never, cancel, AskReason::cancelled},
      {"waits, cancelled by force", waits_for(PageWait::visit), cancelled_by_force, never, cancel,
       AskReason::cancelled},
      {"waits, forced", waits_for(PageWait::visit), forced, never, change, AskReason::forced},
      {"waits, a higher priority",
       waits_for(PageWait::visit),
       {.own = {.priority = 5}},
       never,
       change,
       AskReason::raised},
      {"waits, a lower priority", waits_for(PageWait::visit), {.own = {.priority = -5}}, never, drop, AskReason::waits},
      {"waits till later, an earlier time",
       waits_for(PageWait::visit, kNow + 2h),
       {.exetime = kNow + 1h},
       never,
       change,
       AskReason::hastened},
      {"waits till later, now by name",
       waits_for(PageWait::visit, kNow + 2h),
       {.exetime = kNow},
       never,
       change,
       AskReason::hastened},
      {"waits till later, a later time",
       waits_for(PageWait::visit, kNow + 2h),
       {.exetime = kNow + 3h},
       never,
       drop,
       AskReason::waits},
      {"waits till later, no time", waits_for(PageWait::visit, kNow + 2h), plain, never, drop, AskReason::waits},
      {"waits, another tag", waits_for(PageWait::visit), new_tag, never, change, AskReason::tag_changed},
      {"waits, other retries",
       waits_for(PageWait::visit),
       {.own = {.retries = 7}},
       never,
       change,
       AskReason::terms_changed},
      // It waits for a retry, which a link found again does not hasten.
      {"retry", waits_for(PageWait::retry, kNow + 6h), plain, always, drop, AskReason::waits},
      {"retry, forced", waits_for(PageWait::retry, kNow + 6h), forced, never, change, AskReason::forced},
      {"retry, cancelled", waits_for(PageWait::retry, kNow + 6h), takes_back, never, cancel, AskReason::cancelled},
      // It waits for its recrawl: fresh, till then.
      {"recrawl", recrawl, plain, recrawled, drop, AskReason::is_fresh},
      {"recrawl, forced", recrawl, forced, recrawled, change, AskReason::forced},
      {"recrawl, another tag", recrawl, new_tag, recrawled, change, AskReason::tag_changed},
      {"recrawl, a shorter age", recrawl, {.own = {.age = 30min}}, recrawled, change, AskReason::too_old},
      {"recrawl, a longer age", recrawl, {.own = {.age = 48h}}, recrawled, change, AskReason::terms_changed},
      {"recrawl, no more", recrawl, {.own = {.auto_recrawl = false}}, recrawled, change, AskReason::terms_changed},
      {"recrawl, cancelled", recrawl, takes_back, recrawled, cancel, AskReason::cancelled},
      // It is visited right now.
      {"visiting", page_in(visiting), plain, always, drop, AskReason::is_visited},
      {"visiting, a higher priority", page_in(visiting), {.own = {.priority = 5}}, never, drop, AskReason::is_visited},
      {"visiting, forced", page_in(visiting), forced, never, after, AskReason::forced},
      {"visiting, another tag", tagged(page_in(visiting), kOld), new_tag, never, after, AskReason::tag_changed},
      {"visiting, the same tag", tagged(page_in(visiting), kNew), new_tag, never, drop, AskReason::is_visited},
      {"visiting, cancelled", page_in(visiting), takes_back, never, cancel, AskReason::cancelled},
  };
}

TEST(DecideAskTest, FollowsTheTable) {
  for (const AskCase& one : ask_cases()) {
    const AskDecision decision = decide_ask(one.known ? &*one.known : nullptr, one.ask, one.rule, kNow);
    EXPECT_EQ(to_string(decision.verdict), to_string(one.verdict)) << one.name;
    EXPECT_EQ(to_string(decision.reason), to_string(one.reason)) << one.name;
    if (decision.verdict == drop && one.known) {
      EXPECT_EQ(decision.page, *one.known) << one.name;
    }
    EXPECT_EQ(decision.page.state == visiting, one.known && one.known->state == visiting && one.verdict != cancel)
        << one.name;
    // Asked once more, the same changes nothing, unless it is forced.
    if (one.ask.force_update || decision.verdict == drop) continue;
    const AskDecision second = decide_ask(&decision.page, one.ask, one.rule, kNow);
    EXPECT_EQ(to_string(second.verdict), "drop") << one.name << ": " << to_string(second.reason);
  }
}

TEST(DecideAskTest, SaysUntilWhenAPageIsFreshOrRests) {
  const Ask ask;
  KnownPage page = page_in(done);
  EXPECT_EQ(decide_ask(&page, ask, rule_of(24h), kNow).until, kNow + 23h);
  EXPECT_EQ(decide_ask(&page, ask, rule_of(), kNow).until, WallTime::max());
  EXPECT_EQ(decide_ask(&page, ask, rule_of(Duration::max()), kNow).until, WallTime::max());
  page = page_in(failed);
  EXPECT_EQ(decide_ask(&page, ask, rule_of(), kNow).until, kNow + 23h);
  EXPECT_EQ(decide_ask(&page, ask, rule_of(2h), kNow).until, kNow + 1h);
}

TEST(DecideAskTest, ANewPageHasTheTermsOfItsAskBeforeThoseOfItsRule) {
  PageTerms rule = rule_of(24h);
  rule.priority = 2;
  rule.tag = kOld;
  const Ask plain;
  EXPECT_EQ(decide_ask(nullptr, plain, rule, kNow).page, (KnownPage{.priority = 2, .tag = kOld}));
  const Ask said{.own = {.priority = 7, .age = 1h}, .tag = kNew, .exetime = kNow + 5min};
  EXPECT_EQ(decide_ask(nullptr, said, rule, kNow).page,
            (KnownPage{.priority = 7, .due = kNow + 5min, .tag = kNew, .own = {.priority = 7, .age = 1h}}));
  const Ask past{.exetime = kNow - 5min};
  EXPECT_EQ(decide_ask(nullptr, past, rule, kNow).page.due, WallTime{});
}

TEST(DecideAskTest, APageAskedAgainHasTheTermsOfTheAskAndItsRetriesAnew) {
  KnownPage page = page_in(failed, 48h);
  page.retried = 3;
  page.own = {.priority = 9, .retries = 3};
  page.tag = kOld;
  const Ask ask{.own = {.age = 1h}};
  const AskDecision decision = decide_ask(&page, ask, rule_of(), kNow);
  EXPECT_TRUE(decision.takes_request);
  EXPECT_EQ(decision.page.own, (OwnTerms{.age = 1h}));
  EXPECT_EQ(decision.page.priority, 0);
  EXPECT_EQ(decision.page.retried, 0u);
  EXPECT_EQ(decision.page.tag, kOld);  // an ask without a tag takes none away
}

TEST(DecideAskTest, ARaisedPriorityReachesWhatIsQueuedAndALowerOneDoesNot) {  // F5
  KnownPage page = waits_for(PageWait::visit);
  page.priority = 3;
  const Ask raises{.own = {.priority = 5}};
  AskDecision decision = decide_ask(&page, raises, rule_of(), kNow);
  EXPECT_EQ(decision.page.priority, 5);
  EXPECT_FALSE(decision.takes_request);
  const Ask lowers{.own = {.priority = 1}, .force_update = true};
  decision = decide_ask(&decision.page, lowers, rule_of(), kNow);
  EXPECT_EQ(decision.page.priority, 5);
  EXPECT_TRUE(decision.takes_request);
  PageTerms important = rule_of();
  important.priority = 8;
  EXPECT_EQ(decide_ask(&page, Ask{}, important, kNow).page.priority, 8);
}

TEST(DecideAskTest, ForceDuringAVisitHasThePageVisitedOnceMoreOnTheTermsOfTheLastAsk) {
  Random random(1);
  const KnownPage running = page_in(visiting);
  const Ask first{.own = {.priority = 1}, .exetime = kNow + 1h, .force_update = true};
  AskDecision decision = decide_ask(&running, first, rule_of(), kNow);
  EXPECT_TRUE(decision.page.again);
  const Ask second{.own = {.priority = 4}, .force_update = true};
  decision = decide_ask(&decision.page, second, rule_of(), kNow);
  EXPECT_EQ(decision.verdict, change);
  EXPECT_EQ(decision.page.priority, 4);
  EXPECT_EQ(decision.page.due, WallTime{});
  for (const VisitEnd end : {VisitEnd::success, VisitEnd::failure}) {
    const KnownPage after_it = decide_visit_end(decision.page, end, rule_of(), kNow + 1s, random).page;
    EXPECT_EQ(after_it.state, waiting);
    EXPECT_EQ(after_it.wait, PageWait::visit);
    EXPECT_FALSE(after_it.again);
    EXPECT_EQ(after_it.priority, 4);
    EXPECT_EQ(after_it.retried, 0u);
  }
  const Ask takes_back{.cancel = true};
  EXPECT_FALSE(decide_ask(&decision.page, takes_back, rule_of(), kNow).page.again);
}

TEST(DecideAskTest, ACancelledPageStaysCancelledHoweverItsVisitEnds) {
  Random random(1);
  PageTerms rule = rule_of(1h);
  rule.auto_recrawl = true;
  const KnownPage running = page_in(visiting);
  const KnownPage taken_back = decide_ask(&running, Ask{.cancel = true}, rule, kNow).page;
  for (const VisitEnd end : {VisitEnd::success, VisitEnd::failure}) {
    const VisitDecision decision = decide_visit_end(taken_back, end, rule, kNow + 1s, random);
    EXPECT_EQ(decision.page.state, cancelled);
    EXPECT_FALSE(decision.gave_up);
  }
}

TEST(DecideAskTest, TheEndOfAStaleVisitChangesNothing) {
  Random random(1);
  const KnownPage page = waits_for(PageWait::visit, kNow + 1h);
  EXPECT_EQ(decide_visit_end(page, VisitEnd::success, rule_of(), kNow, random).page, page);
}

// --- batches

TEST(DecideAsksTest, OneUrlOfTwoProjectsIsTwoPages) {  // F1
  const PageTerms rule = rule_of();
  const std::vector<PageAsk> asks = {{"a", "http://x.test/", {}, &rule}, {"b", "http://x.test/", {}, &rule}};
  const auto decisions = decide_asks(
      asks, [](auto, auto) { return std::nullopt; }, kNow);
  EXPECT_THAT(decisions, ElementsAre(Field(&AskDecision::verdict, add), Field(&AskDecision::verdict, add)));
}

TEST(DecideAsksTest, SeveralAsksForOnePageInABatchAddUp) {
  const PageTerms rule = rule_of();
  const std::vector<PageAsk> asks = {{"a", "p", {}, &rule},
                                     {"a", "p", {}, &rule},
                                     {"a", "p", {.own = {.priority = 3}}, &rule},
                                     {"a", "q", {}, &rule},
                                     {"a", "p", {.cancel = true}, &rule},
                                     {"a", "p", {.force_update = true}, &rule}};
  int looked = 0;
  const auto decisions = decide_asks(
      asks, [&](auto, auto) { return ++looked, std::nullopt; }, kNow);
  std::vector<AskVerdict> verdicts;
  for (const AskDecision& decision : decisions) verdicts.push_back(decision.verdict);
  EXPECT_THAT(verdicts, ElementsAre(add, drop, change, add, cancel, again));
  EXPECT_EQ(looked, 2);
  EXPECT_EQ(decisions[2].page.priority, 3);
}

// --- the end of a visit

KnownPage ended(KnownPage page, VisitEnd end, const PageTerms& rule, WallTime at = kNow) {
  Random random(1);
  page.state = visiting;
  return decide_visit_end(page, end, rule, at, random).page;
}

TEST(DecideVisitEndTest, FailuresAreRetriedAsLongAsTheTableSays) {
  Random random(1);
  KnownPage page;
  std::vector<Duration> waits;
  for (int i = 0; i < 3; ++i) {
    page = ended(page, VisitEnd::failure, rule_of());
    waits.push_back(page.due - kNow);
    EXPECT_EQ(page.wait, PageWait::retry);
  }
  EXPECT_THAT(waits, ElementsAre(30s, 1h, 6h));
  page.state = visiting;
  const VisitDecision last = decide_visit_end(page, VisitEnd::failure, rule_of(), kNow, random);
  EXPECT_TRUE(last.gave_up);
  EXPECT_EQ(last.page.state, failed);
  EXPECT_EQ(last.page.succeeded_at, WallTime{});  // F14: it was never fetched
  EXPECT_EQ(last.page.ended_at, kNow);
}

TEST(DecideVisitEndTest, NoAgeMeansNoRecrawlAndNotNoRetry) {  // F2
  KnownPage page;
  page.own.age = kNeverOld;
  EXPECT_EQ(ended(page, VisitEnd::failure, rule_of()).due, kNow + 30s);
}

TEST(DecideVisitEndTest, ARetryIsNotLaterThanTheAge) {
  KnownPage page;
  page.retried = 1;
  EXPECT_EQ(ended(page, VisitEnd::failure, rule_of(10min)).due, kNow + 10min);
}

TEST(DecideVisitEndTest, RetriesAreThePagesOwnBeforeTheRules) {
  KnownPage page;
  page.own.retries = 0;
  EXPECT_EQ(ended(page, VisitEnd::failure, rule_of()).state, failed);
  page.own.retries = 1'000'000;
  page.retried = 999'999;
  EXPECT_EQ(ended(page, VisitEnd::failure, rule_of()).due, kNow + 24h);
}

TEST(DecideVisitEndTest, AutoRecrawlIsDueAtSuccessAndAgeWithRetriesAnew) {  // F3
  PageTerms rule = rule_of(5h);
  rule.auto_recrawl = true;
  KnownPage page = ended({}, VisitEnd::failure, rule);
  page = ended(page, VisitEnd::failure, rule);
  EXPECT_EQ(page.retried, 2u);
  page = ended(page, VisitEnd::success, rule);
  EXPECT_EQ(page.state, waiting);
  EXPECT_EQ(page.wait, PageWait::recrawl);
  EXPECT_EQ(page.due, kNow + 5h);
  EXPECT_EQ(page.retried, 0u);
  EXPECT_EQ(ended(page, VisitEnd::failure, rule).due, kNow + 30s);
}

TEST(DecideVisitEndTest, AutoRecrawlIsNeverGivenUpAndNeedsAnAge) {
  Random random(1);
  PageTerms rule = rule_of(5h);
  rule.auto_recrawl = true;
  KnownPage page{.state = visiting, .retried = 3};
  const VisitDecision decision = decide_visit_end(page, VisitEnd::failure, rule, kNow, random);
  EXPECT_TRUE(decision.gave_up);
  EXPECT_EQ(decision.page.due, kNow + 5h);
  EXPECT_EQ(decision.page.retried, 0u);
  rule.age = kNeverOld;
  EXPECT_EQ(ended({}, VisitEnd::success, rule).state, done);
}

TEST(DecideVisitEndTest, AdaptiveIntervalsFollowThePage) {
  PageTerms rule = rule_of();
  rule.adaptive = RevisitBounds{1h, 64h};
  rule.auto_recrawl = true;
  KnownPage page = ended({}, VisitEnd::success, rule);
  EXPECT_EQ(page.due, kNow + 8h);  // the geometric middle
  page = ended(page, VisitEnd::unchanged, rule);
  EXPECT_EQ(page.due, kNow + 12h);
  page = ended(page, VisitEnd::success, rule);
  EXPECT_EQ(page.due, kNow + 6h);
  EXPECT_EQ(ended(page, VisitEnd::failure, rule).interval, 6h);
  EXPECT_EQ(ended(page, VisitEnd::failure, rule).due, kNow + 30s);
  // An ask goes by the same interval, and by its own age before that.
  const Ask plain, hourly{.own = {.age = 30min}};
  EXPECT_EQ(decide_ask(&page, plain, rule, kNow + 5h).until, kNow + 6h);
  EXPECT_EQ(decide_ask(&page, plain, rule, kNow + 7h).reason, AskReason::too_old);
  EXPECT_EQ(decide_ask(&page, hourly, rule, kNow + 1h).reason, AskReason::too_old);
  // Other bounds count at once (F13).
  rule.adaptive = RevisitBounds{1h, 2h};
  EXPECT_EQ(under_rule(page, rule).due, kNow + 2h);
}

// Whatever is asked in whatever state.
TEST(DecideAskTest, KeepsItsPromisesWhateverIsAsked) {
  Random random(7);
  const auto some_time = [&] {
    return random.chance(0.3) ? WallTime{} : kNow + std::chrono::minutes{random.between(-3000, 3000)};
  };
  const auto some_span = [&] {
    return random.chance(0.3) ? kNeverOld : Duration{std::chrono::minutes{random.between(0, 3000)}};
  };
  for (int i = 0; i < 200'000; ++i) {
    PageTerms rule{
        .priority = static_cast<std::int32_t>(random.between(-2, 2)), .age = some_span(), .tag = random.below(3)};
    rule.auto_recrawl = random.chance(0.5);
    if (random.chance(0.2)) rule.adaptive = RevisitBounds{1h, 24h};
    KnownPage known{.state = static_cast<PageState>(random.below(5)),
                    .wait = static_cast<PageWait>(random.below(3)),
                    .due = some_time(),
                    .succeeded_at = some_time(),
                    .ended_at = some_time(),
                    .retried = static_cast<std::uint32_t>(random.below(4)),
                    .tag = random.below(3)};
    known.priority = static_cast<std::int32_t>(random.between(-2, 2));
    known.again = known.state == visiting && random.chance(0.3);
    if (known.state == done && known.succeeded_at == WallTime{}) known.succeeded_at = kNow;
    Ask ask{.tag = random.chance(0.5) ? 0 : random.below(4),
            .force_update = random.chance(0.2),
            .cancel = random.chance(0.1)};
    if (random.chance(0.2)) ask.own.age = some_span();
    if (random.chance(0.2)) ask.own.priority = static_cast<std::int32_t>(random.between(-3, 3));
    if (random.chance(0.2)) ask.own.auto_recrawl = random.chance(0.5);
    if (random.chance(0.2)) ask.exetime = some_time();
    const AskDecision decision = decide_ask(&known, ask, rule, kNow);
    const std::string said = std::string(to_string(known.state)) + " " + std::string(to_string(decision.reason));
    ASSERT_NE(decision.verdict, add) << said;
    if (decision.verdict == drop) {
      ASSERT_EQ(decision.page, known) << said;
      ASSERT_FALSE(ask.force_update && !ask.cancel) << said;
    } else {
      ASSERT_TRUE(ask.force_update || decision.page != known) << said;
    }
    ASSERT_EQ(decision.page.state == visiting, known.state == visiting && decision.verdict != cancel) << said;
    ASSERT_EQ(decision.verdict == cancel, ask.cancel && (known.state == waiting || known.state == visiting)) << said;
    if (decision.verdict == change && known.wait != PageWait::recrawl) {
      ASSERT_GE(decision.page.priority, known.priority) << said;
      ASSERT_LE(decision.page.due, known.due) << said;
    }
    if (decision.reason == AskReason::is_fresh) {
      ASSERT_GT(decision.until, WallTime{}) << said;
    }
    if (ask.force_update || decision.verdict == drop) continue;
    const AskDecision second = decide_ask(&decision.page, ask, rule, kNow);
    ASSERT_EQ(second.verdict, drop) << said << ", then " << to_string(second.reason);
  }
}

TEST(UnderRuleTest, AChangedAgeReachesWhatWaits) {  // F13
  PageTerms rule = rule_of(24h);
  rule.auto_recrawl = true;
  const KnownPage page = ended({}, VisitEnd::success, rule);
  EXPECT_EQ(under_rule(page, rule), page);
  rule.age = 1h;
  EXPECT_EQ(under_rule(page, rule).due, kNow + 1h);
  KnownPage own = page;
  own.own.age = 2h;
  EXPECT_EQ(under_rule(own, rule).due, kNow + 2h);
  rule.auto_recrawl = false;
  EXPECT_EQ(under_rule(page, rule).state, done);
  const KnownPage retry = waits_for(PageWait::retry, kNow + 6h);
  EXPECT_EQ(under_rule(retry, rule), retry);
}

TEST(PageTagTest, TellsTextsApartAndKnowsNone) {
  EXPECT_EQ(page_tag(""), 0u);
  EXPECT_NE(page_tag("1"), 0u);
  EXPECT_NE(page_tag("1"), page_tag("2"));
}

}  // namespace
}  // namespace argiope
