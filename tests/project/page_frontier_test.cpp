// Which page is visited next: the order, the limits, and that nothing is passed over, lost or kept out by a flood,
// though little of what waits is in the queue. A model test holds it to a plain list of all that waits.
#include "project/index/internal/page_frontier.hpp"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "argiope/base/random.hpp"
#include "project/rules/internal/decide_ask.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using PageNumber = PageIndex::Number;

constexpr WallTime kFrontierStart = std::chrono::sys_days{std::chrono::year{2026} / 11 / 23};

// A project of pages with one rule, in a time of its own.
class FrontierTest : public testing::Test {
 public:
  explicit FrontierTest(std::size_t most = 10'000)
      : frontier(
            index, [this](RuleNumber) -> const PageTerms& { return rule; }, most) {
    frontier.set_clock(now, wall());
  }
  WallTime wall() const { return kFrontierStart + step + now.time_since_epoch(); }

  PageNumber add(std::uint32_t host, std::int32_t priority = 0, WallTime due = {}) {
    const PageNumber page = index.add(mix64(index.last() + 1), host, 0, {.priority = priority, .due = due});
    frontier.changed(page, now);
    return page;
  }
  // Not told of, as what a project has when it is opened.
  void load(PageNumber pages, std::uint32_t host, std::int32_t priority = 0, WallTime due = {}) {
    for (PageNumber i = 0; i < pages; ++i)
      index.add(mix64(index.last() + 1), host, 0, {.priority = priority, .due = due});
  }
  void set(PageNumber page, const KnownPage& known) {
    index.set(page, known);
    frontier.changed(page, now);
  }
  std::optional<PageFrontier::Ticket> visit() {
    const auto ticket = frontier.next(now);
    if (ticket) {
      KnownPage known = index.known(ticket->page);
      known.state = PageState::visiting;
      index.set(ticket->page, known);
    }
    return ticket;
  }
  void end(const PageFrontier::Ticket& ticket) {
    index.set(ticket.page, {.state = PageState::done, .succeeded_at = wall(), .ended_at = wall()});
    frontier.done(ticket, now);
  }
  // The page that is visited next, and is then done; 0: none.
  PageNumber take() {
    const auto ticket = visit();
    if (ticket) end(*ticket);
    return ticket ? ticket->page : 0;
  }
  void sweep_to_the_end() {
    for (int i = 0; i < 100'000 && !frontier.is_certain(now); ++i) {
      frontier.sweep(now);
      now += 1ms;
    }
    ASSERT_TRUE(frontier.is_certain(now));
  }
  // Goes on as the frontier says, until it gives a page or `until` has come.
  PageNumber take_by(TimePoint until) {
    for (;;) {
      frontier.sweep(now);
      if (const PageNumber page = take()) return page;
      const TimePoint next = frontier.next_wakeup(now);
      if (next > until) {
        now = std::max(now, until);
        return 0;
      }
      now = std::max(now, next);
    }
  }

  PageTerms rule;
  PageIndex index;
  TimePoint now{1h};
  Duration step{};
  PageFrontier frontier;
};

class SmallFrontierTest : public FrontierTest {
 public:
  SmallFrontierTest() : FrontierTest(64) {}
};

// --- order ----------------------------------------------------------------------------------------------------------

TEST_F(FrontierTest, GivesHigherPrioritiesFirstAndThenEarlierNumbers) {
  EXPECT_EQ(frontier.next_wakeup(now), kNever);
  const PageNumber a = add(1), b = add(2, 5), c = add(1, 5), d = add(3, -1);
  EXPECT_EQ(frontier.next_wakeup(now), now);
  EXPECT_EQ(take(), b);
  EXPECT_EQ(take(), c);
  EXPECT_EQ(take(), a);
  EXPECT_EQ(take(), d);
  EXPECT_EQ(take(), 0u);
}

TEST_F(FrontierTest, FindsWhatWasThereBefore) {
  load(100, 1);
  load(1, 2, 9);
  EXPECT_FALSE(frontier.is_certain(now));
  EXPECT_EQ(frontier.next_wakeup(now), now);
  sweep_to_the_end();
  EXPECT_EQ(frontier.sweeps(), 1u);
  EXPECT_EQ(take(), 101u);
  EXPECT_EQ(take(), 1u);
}

TEST_F(FrontierTest, AChangedPageMovesToItsNewPlace) {
  const PageNumber a = add(1), b = add(1), c = add(1);
  set(c, {.priority = 7});
  set(a, {.state = PageState::cancelled});
  EXPECT_EQ(take(), c);
  set(b, {.due = wall() + 1h});
  EXPECT_EQ(take_by(now), 0u);
  set(b, {.due = wall() + 10s});
  EXPECT_EQ(frontier.next_wakeup(now), now + 10s);
  now += 10s;
  EXPECT_EQ(take(), b);
  EXPECT_EQ(take(), 0u);
}

TEST_F(FrontierTest, APageThatWaitsAgainAfterItsVisitIsQueuedAgain) {
  const PageNumber a = add(1);
  const auto ticket = visit();
  ASSERT_TRUE(ticket);
  set(a, {.state = PageState::visiting, .again = true, .priority = 3});
  EXPECT_FALSE(frontier.next(now)) << "while it is visited";
  EXPECT_EQ(frontier.explain(a, now).reason, WaitReason::running);
  index.set(a, {.priority = 3, .due = wall() + 30s, .ended_at = wall(), .retried = 1});
  frontier.done(*ticket, now);
  frontier.done(*ticket, now);
  frontier.put_back(*ticket, now);
  EXPECT_EQ(frontier.in_queue(), 1u);
  EXPECT_EQ(take_by(now + 29s), 0u);
  EXPECT_EQ(take_by(now + 30s), a);
}

TEST_F(FrontierTest, WhatIsPutBackIsWhereItWasWithThePermitsItTook) {
  frontier.set_limits({.rate = 1}, now);
  const PageNumber a = add(1), b = add(2);
  const auto ticket = frontier.next(now);
  ASSERT_TRUE(ticket);
  EXPECT_FALSE(frontier.next(now)) << "the rate's permit is taken";
  frontier.put_back(*ticket, now);
  frontier.rest(1, now + 5s, now);
  EXPECT_EQ(take(), b);
  EXPECT_EQ(take_by(now + 4s), 0u);
  EXPECT_EQ(take_by(now + 5s), a);
}

TEST_F(FrontierTest, APageThatWaitsNoMoreIsNotPutBack) {
  const PageNumber a = add(1);
  const auto ticket = frontier.next(now);
  set(a, {.state = PageState::cancelled});
  frontier.put_back(*ticket, now);
  EXPECT_EQ(frontier.in_queue(), 0u);
  EXPECT_EQ(take(), 0u);
}

// --- hosts that rest ------------------------------------------------------------------------------------------------

TEST_F(FrontierTest, AHostThatRestsHoldsUpNoOther) {
  const PageNumber a = add(1, 9), b = add(2);
  frontier.rest(1, now + 1min, now);
  frontier.rest(1, now + 10s, now);
  EXPECT_EQ(take_by(now), b);
  EXPECT_EQ(frontier.explain(a, now).reason, WaitReason::key_resting);
  EXPECT_EQ(frontier.next_wakeup(now), now + 1min) << "a rest is not shortened";
  frontier.rest(1, kNever, now);
  EXPECT_EQ(frontier.next_wakeup(now), kNever);
  now += 1h;
  EXPECT_EQ(take(), 0u);
  frontier.wake(1, now);
  EXPECT_EQ(take(), a);
  frontier.wake(77, now);
}

TEST_F(SmallFrontierTest, AFloodOfOneHostThatRestsKeepsNoOtherOut) {
  load(50'000, 1, 9);
  load(1, 2);
  load(50'000, 1, 9);
  load(1, 3);
  frontier.rest(1, now + 1h, now);
  const TimePoint began = now;
  EXPECT_EQ(take_by(now + 1min), 50'001u);
  EXPECT_EQ(take_by(now + 1min), 100'002u);
  EXPECT_LT(now - began, 1s);
  EXPECT_EQ(take_by(now + 1min), 0u);
  const PageNumber told = add(4);
  EXPECT_EQ(take(), told) << "at once, whatever waits";
  EXPECT_LE(frontier.in_queue(), 64u);
  EXPECT_EQ(take_by(began + 1h), 1u);
  EXPECT_EQ(now, began + 1h);
}

TEST_F(SmallFrontierTest, ManyHostsThatRestKeepNoOtherOut) {
  for (std::uint32_t host = 1; host <= 1000; ++host) {
    load(3, host, 9);
    frontier.rest(host, kNever, now);
  }
  load(2, 2000);
  EXPECT_EQ(take_by(now + 1s), 3001u);
  EXPECT_EQ(take_by(now + 1s), 3002u);
  EXPECT_EQ(take_by(now + 1h), 0u);
  frontier.wake(700, now);
  EXPECT_EQ(take_by(now + 1s), 2098u);
}

TEST_F(SmallFrontierTest, AFloodOfOneHostThatMayBeAskedKeepsNoOtherOut) {
  load(10'000, 1);
  load(1, 2);
  sweep_to_the_end();
  EXPECT_EQ(frontier.explain(10'001, now).reason, WaitReason::more_important_jobs) << "in the queue, or just behind it";
  // The host is asked once a second; the other one at once.
  EXPECT_EQ(take(), 1u);
  frontier.rest(1, now + 1s, now);
  EXPECT_EQ(take_by(now + 500ms), 10'001u);
}

TEST_F(SmallFrontierTest, HostsThatAreAskedOnceASecondAreAllAsked) {
  for (int round = 0; round < 5; ++round) {
    for (std::uint32_t host = 1; host <= 500; ++host) load(1, host);
  }
  std::map<std::uint32_t, int> visits;
  const TimePoint began = now;
  while (now < began + 10s) {
    frontier.sweep(now);
    if (const auto ticket = visit()) {
      ++visits[ticket->host];
      frontier.rest(ticket->host, now + 1s, now);
      end(*ticket);
      continue;
    }
    const TimePoint next = frontier.next_wakeup(now);
    if (next == kNever) break;
    now = std::max(now, next);
  }
  EXPECT_EQ(visits.size(), 500u);
  for (const auto& [host, count] : visits) EXPECT_EQ(count, 5) << "host " << host;
}

// --- the choice -----------------------------------------------------------------------------------------------------

TEST_F(SmallFrontierTest, AnImportantPageThatIsToldOfGoesFirstHoweverFullTheQueueIs) {
  load(5000, 1);
  sweep_to_the_end();
  const PageNumber late = add(1, 3), later = add(9, 5);
  EXPECT_EQ(take(), later);
  EXPECT_EQ(take(), late);
  EXPECT_EQ(take(), 1u);
}

TEST_F(SmallFrontierTest, GivesPagesInTheirOrderThoughMostOfThemAreNotInTheQueue) {
  Random random(7);
  std::vector<std::pair<std::int32_t, PageNumber>> order;
  for (int i = 0; i < 5000; ++i) {
    const auto priority = static_cast<std::int32_t>(random.below(100));
    load(1, static_cast<std::uint32_t>(1 + random.below(3)), priority);
    order.emplace_back(-priority, index.last());
  }
  std::ranges::sort(order);
  for (const auto& [priority, page] : order) {
    sweep_to_the_end();
    ASSERT_EQ(take(), page);
    ASSERT_LE(frontier.in_queue(), 64u);
  }
  EXPECT_LT(frontier.sweeps(), 500u);
}

TEST_F(SmallFrontierTest, SweepsOnlyForWhatWouldGoFirst) {
  for (int round = 0; round < 20; ++round) {
    for (std::uint32_t host = 1; host <= 500; ++host) load(1, host);
  }
  frontier.set_limits({.rate = 1}, now);
  for (PageNumber page = 1; page <= 300; ++page) ASSERT_EQ(take_by(now + 1s), page);
  EXPECT_LT(frontier.sweeps(), 40u) << "a part of the queue is used up between two of them";
}

// --- time ------------------------------------------------------------------------------------------------------------

TEST_F(SmallFrontierTest, WhatIsDueLaterComesWhenItIsDueThoughItIsNotInTheQueue) {
  Random random(3);
  std::vector<WallTime> due;
  for (int i = 0; i < 3000; ++i) {
    due.push_back(kFrontierStart + 2h + std::chrono::seconds{random.below(3600)});
    load(1, static_cast<std::uint32_t>(1 + random.below(20)), 0, due.back());
  }
  std::size_t taken = 0;
  while (const PageNumber page = take_by(now + 2h)) {
    ++taken;
    ASSERT_LE(due[page - 1], wall());
    ASSERT_LE(wall() - due[page - 1], 1s) << "with a pause between sweeps of 4 times 5 ms";
    ASSERT_LE(frontier.in_queue(), 64u);
  }
  EXPECT_EQ(taken, due.size());
}

TEST_F(SmallFrontierTest, DueTimesFollowTheCalendarWhenTheClockIsSet) {
  const PageNumber soon = add(1, 0, wall() + 10min), late = add(1, 0, wall() + 70min);
  const PageNumber at_once = add(2), was_due = add(3, 0, wall() - 10min);
  step += 1h;
  frontier.set_clock(now, wall());
  EXPECT_EQ(take(), soon);
  step -= 2h;
  frontier.set_clock(now, wall());
  EXPECT_EQ(take(), at_once);
  EXPECT_EQ(take(), 0u);
  EXPECT_EQ(frontier.explain(was_due, now).until, now + 50min);
  EXPECT_EQ(take_by(now + 3h), was_due);
  EXPECT_EQ(take_by(now + 3h), late);
  EXPECT_EQ(wall(), kFrontierStart + 1h + 70min);
  // The same for what is not in the queue.
  load(1000, 5, 0, wall() + 2h);
  frontier.terms_changed(now);
  sweep_to_the_end();
  EXPECT_EQ(take(), 0u);
  step += 3h;
  frontier.set_clock(now, wall());
  for (int i = 0; i < 1000; ++i) ASSERT_NE(take_by(now + 1s), 0u) << i;
}

TEST_F(SmallFrontierTest, ChangedTermsReachWhatWaitsForItsRecrawl) {
  rule = {.age = 1h, .auto_recrawl = true};
  KnownPage recrawl{.wait = PageWait::recrawl, .due = wall() + 1h, .succeeded_at = wall(), .ended_at = wall()};
  for (int i = 0; i < 1000; ++i) index.add(mix64(static_cast<std::uint64_t>(i)), 1, 0, recrawl);
  sweep_to_the_end();
  EXPECT_EQ(take_by(now + 59min), 0u);
  rule.age = 30min;
  frontier.terms_changed(now);
  EXPECT_EQ(take_by(now + 1s), 1u);
  rule.age = 24h;
  frontier.terms_changed(now);
  EXPECT_EQ(take_by(now + 22h), 0u);
  rule.auto_recrawl = false;
  frontier.terms_changed(now);
  sweep_to_the_end();
  EXPECT_EQ(frontier.in_queue(), 0u);
  EXPECT_EQ(frontier.next_wakeup(now), kNever);
}

// --- limits ----------------------------------------------------------------------------------------------------------

TEST_F(FrontierTest, ARateOfNothingStartsNothing) {
  load(5, 1);
  frontier.set_limits({.rate = 0, .burst = 5}, now);
  EXPECT_EQ(take_by(now + 10h), 0u);
  EXPECT_EQ(frontier.next_wakeup(now), kNever);
  EXPECT_EQ(frontier.explain(1, now).ahead, 0u);
  frontier.set_limits({.rate = 1, .burst = 5}, now);
  EXPECT_NE(take_by(now), 0u);
}

TEST_F(FrontierTest, ABurstBelowOneIsOne) {
  load(3, 1);
  frontier.set_limits({.rate = 2, .burst = 0.1}, now);
  const TimePoint began = now;
  for (int i = 0; i < 3; ++i) EXPECT_NE(take_by(began + 1s), 0u);
  EXPECT_EQ(now, began + 1s);
  frontier.set_limits({.rate = 2, .burst = std::numeric_limits<double>::quiet_NaN()}, now);
}

TEST_F(FrontierTest, ALowerBurstForgetsThePermitsThatWereSaved) {
  load(100, 1);
  frontier.set_limits({.rate = 1, .burst = 50}, now);
  frontier.sweep(now);
  EXPECT_NE(take(), 0u);
  now += 1h;
  frontier.set_limits({.rate = 1, .burst = 3}, now);
  for (int i = 0; i < 3; ++i) EXPECT_NE(take(), 0u);
  EXPECT_EQ(take(), 0u);
  EXPECT_EQ(frontier.next_wakeup(now), now + 1s);
}

TEST_F(FrontierTest, NoMoreAreVisitedAtOnceThanItMay) {
  load(5, 1);
  frontier.set_limits({.concurrency = 2}, now);
  frontier.sweep(now);
  const auto one = visit(), two = visit();
  ASSERT_TRUE(one && two);
  EXPECT_FALSE(visit());
  EXPECT_EQ(frontier.next_wakeup(now), kNever);
  end(*one);
  EXPECT_TRUE(visit());
}

TEST_F(FrontierTest, APauseStartsNothingAndSweepsNothing) {
  load(5, 1);
  frontier.set_limits({.paused = true}, now);
  EXPECT_EQ(take_by(now + 1h), 0u);
  EXPECT_EQ(frontier.next_wakeup(now), kNever);
  EXPECT_EQ(frontier.in_queue(), 0u);
  EXPECT_EQ(frontier.explain(3, now).reason, WaitReason::queue_paused);
  frontier.set_limits({}, now);
  EXPECT_EQ(take_by(now), 1u);
}

TEST_F(FrontierTest, SaysWhyAPageWaits) {
  const PageNumber a = add(1), b = add(1), c = add(2, 0, wall() + 1min);
  EXPECT_EQ(frontier.explain(a, now).reason, WaitReason::none);
  EXPECT_EQ(frontier.explain(b, now).reason, WaitReason::more_important_jobs);
  EXPECT_EQ(frontier.explain(b, now).ahead, 1u);
  EXPECT_EQ(frontier.explain(c, now).reason, WaitReason::not_due);
  EXPECT_EQ(frontier.explain(c, now).until, now + 1min);
  EXPECT_EQ(frontier.explain(99, now).reason, WaitReason::not_found);
}

// --- against a plain list -------------------------------------------------------------------------------------------

struct FrontierModelSize {
  std::uint64_t seed;
  std::size_t most;
  std::uint32_t hosts;
  std::size_t pages;
};
std::ostream& operator<<(std::ostream& out, const FrontierModelSize& size) {
  return out << "seed " << size.seed << ", " << size.most << " in the queue, " << size.hosts << " hosts, " << size.pages
             << " pages";
}

class FrontierModel : public testing::TestWithParam<FrontierModelSize> {
 protected:
  struct Known {
    std::uint32_t host = 0;
    KnownPage page;
  };

  FrontierModel()
      : size_(GetParam()),
        random_(size_.seed),
        frontier_(
            index_, [this](RuleNumber) -> const PageTerms& { return rule_; }, size_.most) {
    frontier_.set_clock(now_, wall());
  }
  WallTime wall() const { return kFrontierStart + step_ + now_.time_since_epoch(); }
  WallTime whole_seconds(WallTime time) const { return std::chrono::ceil<std::chrono::seconds>(time); }
  std::uint32_t some_host() {
    return static_cast<std::uint32_t>(1 + (random_.chance(0.3) ? 0 : random_.below(size_.hosts)));
  }
  std::int32_t some_priority() { return static_cast<std::int32_t>(random_.chance(0.5) ? 0 : random_.below(10)); }
  WallTime some_due() {
    if (random_.chance(0.6)) return {};
    return whole_seconds(wall() + std::chrono::seconds{random_.between(-60, random_.chance(0.5) ? 20 : 5000)});
  }

  KnownPage some_page() {
    KnownPage page{.priority = some_priority(), .due = some_due()};
    if (random_.chance(0.2)) {
      page.wait = PageWait::recrawl;
      page.succeeded_at = page.ended_at = whole_seconds(wall() - std::chrono::seconds{random_.below(4000)});
      page.due = page.ended_at + rule_.age;
    }
    return page;
  }
  void set(PageNumber page, const KnownPage& known) {
    known_[page - 1].page = known;
    index_.set(page, known);
  }
  std::optional<WallTime> due_of(const Known& known) const {
    const KnownPage page = under_rule(known.page, rule_);
    return page.state == PageState::waiting ? std::optional(page.due) : std::nullopt;
  }
  bool rests(std::uint32_t host) const {
    const auto rest = rests_.find(host);
    return rest != rests_.end() && rest->second > now_;
  }
  bool is_visitable(PageNumber page) const {
    const Known& known = known_[page - 1];
    if (leased_.contains(page) || rests(known.host)) return false;
    const auto due = due_of(known);
    return due && *due <= wall();
  }
  // What goes first of all that waits; 0: none.
  PageNumber best() const {
    PageNumber first = 0;
    for (PageNumber page = 1; page <= known_.size(); ++page) {
      if (!is_visitable(page)) continue;
      if (first == 0 || known_[page - 1].page.priority > known_[first - 1].page.priority) first = page;
    }
    return first;
  }

  void add() {
    known_.push_back({some_host(), some_page()});
    const Known& known = known_.back();
    const PageNumber page = index_.add(mix64(known_.size()), known.host, 0, known.page);
    ASSERT_EQ(page, known_.size());
    frontier_.changed(page, now_);
  }
  void change() {
    const PageNumber page = 1 + random_.below(known_.size());
    if (known_[page - 1].page.state == PageState::visiting) return;
    KnownPage known = random_.chance(0.2) ? KnownPage{.state = PageState::cancelled} : some_page();
    set(page, known);
    frontier_.changed(page, now_);
  }
  void next() {
    const bool is_certain = frontier_.is_certain(now_);
    const PageNumber first = best();
    const auto ticket = frontier_.next(now_);
    certain_ += is_certain ? 1 : 0;
    if (is_certain) {
      ASSERT_EQ(ticket ? ticket->page : 0, first);
    }
    if (!ticket) {
      // It says when to come again.
      if (first != 0) {
        ASSERT_LE(frontier_.next_wakeup(now_), now_ + 1s);
      }
      return;
    }
    ASSERT_TRUE(is_visitable(ticket->page)) << "page " << ticket->page;
    ASSERT_EQ(ticket->host, known_[ticket->page - 1].host);
    leased_.emplace(ticket->page, *ticket);
    if (random_.chance(0.7)) {
      KnownPage page = known_[ticket->page - 1].page;
      page.state = PageState::visiting;
      set(ticket->page, page);
    }
  }
  void give_back(bool ends) {
    if (leased_.empty()) return;
    auto one = leased_.begin();
    std::advance(one, static_cast<std::ptrdiff_t>(random_.below(leased_.size())));
    const PageFrontier::Ticket ticket = one->second;
    leased_.erase(one);
    KnownPage page = known_[ticket.page - 1].page;
    if (ends && (is_draining_ || random_.chance(0.6))) {
      page = {.state = PageState::done, .succeeded_at = whole_seconds(wall()), .ended_at = whole_seconds(wall())};
    } else if (ends) {
      page = some_page();
    } else if (page.state == PageState::visiting) {
      page.state = PageState::waiting;
    }
    set(ticket.page, page);
    if (ends) {
      frontier_.done(ticket, now_);
    } else {
      frontier_.put_back(ticket, now_);
    }
    if (random_.chance(0.5) && !is_draining_) rest(ticket.host);
  }
  void rest(std::uint32_t host) {
    const std::uint64_t longest_ms = random_.chance(0.8) ? 2000 : 100'000;
    const TimePoint until = random_.chance(0.1) ? kNever : now_ + std::chrono::milliseconds{random_.below(longest_ms)};
    TimePoint& rest = rests_[host];
    rest = std::max(rest, until);
    frontier_.rest(host, until, now_);
  }
  void wake(std::uint32_t host) {
    rests_.erase(host);
    frontier_.wake(host, now_);
  }
  void set_clock() {
    step_ += random_.chance(0.5) ? 1h : -1h;
    frontier_.set_clock(now_, wall());
  }
  void change_rule() {
    rule_.age = std::chrono::seconds{random_.below(4000)};
    rule_.auto_recrawl = random_.chance(0.8);
    frontier_.terms_changed(now_);
  }

  void act() {
    const std::uint64_t what = random_.below(1000);
    if (what < 200 && known_.size() < size_.pages) return add();
    if (what < 300 && !known_.empty()) return change();
    if (what < 600) return next();
    if (what < 750) return give_back(true);
    if (what < 800) return give_back(false);
    if (what < 830) return rest(some_host());
    if (what < 850) return wake(some_host());
    if (what < 950) return frontier_.sweep(now_);
    if (what < 996) {
      now_ += std::chrono::milliseconds{random_.below(random_.chance(0.9) ? 20 : 10'000)};
      return;
    }
    if (what < 998) return set_clock();
    change_rule();
  }

  const FrontierModelSize size_;
  Random random_;
  PageTerms rule_{.age = 1h, .auto_recrawl = true};
  PageIndex index_;
  TimePoint now_{2h};
  Duration step_{};
  PageFrontier frontier_;
  std::vector<Known> known_;  // by number, less one
  std::map<std::uint32_t, TimePoint> rests_;
  std::map<PageNumber, PageFrontier::Ticket> leased_;
  std::uint64_t certain_ = 0;
  bool is_draining_ = false;
};

TEST_P(FrontierModel, GivesWhatAPlainListGivesAndLosesNothing) {
  for (int i = 0; i < 12'000; ++i) {
    act();
    ASSERT_FALSE(HasFatalFailure()) << size_ << ", act " << i;
    ASSERT_LE(frontier_.in_queue(), std::max<std::size_t>(size_.most, 16)) << size_;
  }
  EXPECT_GT(certain_, 400u);
  // In the end all that waits is given, as the frontier's own wakeups say.
  is_draining_ = true;
  for (std::uint32_t host = 1; host <= size_.hosts; ++host) wake(host);
  const TimePoint began = now_;
  std::size_t turns = 0;
  while (true) {
    while (!leased_.empty()) give_back(true);
    frontier_.sweep(now_);
    next();
    ASSERT_FALSE(HasFatalFailure()) << size_;
    ASSERT_LT(++turns, 2'000'000u);
    if (!leased_.empty()) continue;
    const TimePoint wakeup = frontier_.next_wakeup(now_);
    if (wakeup == kNever) break;
    ASSERT_LT(wakeup, began + 48h);
    now_ = std::max(now_, wakeup);
  }
  for (PageNumber page = 1; page <= known_.size(); ++page)
    ASSERT_FALSE(due_of(known_[page - 1])) << "page " << page << " was lost";
  EXPECT_EQ(frontier_.in_queue(), 0u);
}

std::vector<FrontierModelSize> frontier_model_sizes() {
  const char* given = std::getenv("ARGIOPE_SEED");
  const std::uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  const char* more = std::getenv("ARGIOPE_SEEDS");
  const std::uint64_t rounds = more != nullptr ? std::strtoull(more, nullptr, 10) : 1;
  const std::size_t pages = more != nullptr ? 1500 : 500;
  std::vector<FrontierModelSize> sizes;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (const std::size_t most : {16u, 64u, 10'000u}) {
      for (const std::uint32_t hosts : {1u, 4u, 60u, 700u}) sizes.push_back({first + sizes.size(), most, hosts, pages});
    }
  }
  return sizes;
}
INSTANTIATE_TEST_SUITE_P(Sizes, FrontierModel, testing::ValuesIn(frontier_model_sizes()));

// --- figures ---------------------------------------------------------------------------------------------------------

double frontier_ms_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
}

TEST(PageFrontierFigures, FiveHundredIdleProjectsTakeLittle) {
  struct Idle {
    PageTerms rule;
    PageIndex index;
    PageFrontier frontier{index, [this](RuleNumber) -> const PageTerms& { return rule; }};
  };
  const auto used_before = mallinfo2().uordblks;
  std::vector<std::unique_ptr<Idle>> projects;
  std::size_t told = 0;
  const TimePoint now{1h};
  for (int i = 0; i < 500; ++i) {
    Idle& project = *projects.emplace_back(std::make_unique<Idle>());
    project.frontier.set_clock(now, kFrontierStart);
    const KnownPage done{.state = PageState::done, .succeeded_at = kFrontierStart, .ended_at = kFrontierStart};
    for (std::uint64_t page = 1; page <= 100; ++page) project.index.add(mix64(page), 1, 0, done);
    project.frontier.sweep(now);
    EXPECT_EQ(project.frontier.next_wakeup(now), kNever);
    told += project.index.memory_bytes() + project.frontier.memory_bytes();
  }
  const auto used = mallinfo2().uordblks - used_before;
  std::printf("500 idle projects of 100 pages: %.1f KiB each told, %.1f KiB each taken\n",
              static_cast<double>(told) / 500 / 1024, static_cast<double>(used) / 500 / 1024);
  EXPECT_LT(told, 500u * 64 * 1024);
}

void print_sweep(const char* what, PageFrontier& frontier, TimePoint& now) {
  const auto began = std::chrono::steady_clock::now();
  const std::uint64_t before = frontier.sweeps();
  double longest = 0;
  std::size_t stretches = 0;
  while (frontier.sweeps() == before) {
    const auto stretch = std::chrono::steady_clock::now();
    frontier.sweep(now);
    longest = std::max(longest, frontier_ms_since(stretch));
    ++stretches;
    ASSERT_LT(stretches, 1'000'000u);
  }
  std::printf("%s: %.0f ms in %zu stretches, the longest %.2f ms; %zu in the queue, %.1f MiB\n", what,
              frontier_ms_since(began), stretches, longest, frontier.in_queue(),
              static_cast<double>(frontier.memory_bytes()) / (1 << 20));
}

// ARGIOPE_PAGES=10000000 for the large run.
TEST(PageFrontierFigures, SweepsOfManyPages) {
  const char* given = std::getenv("ARGIOPE_PAGES");
  const std::uint64_t pages = given != nullptr ? std::strtoull(given, nullptr, 10) : 100'000;
  PageTerms rule{.age = 24h, .auto_recrawl = true};
  PageIndex index;
  PageFrontier frontier(index, [&](RuleNumber) -> const PageTerms& { return rule; });
  TimePoint now{1h};
  frontier.set_clock(now, kFrontierStart);
  auto began = std::chrono::steady_clock::now();
  double longest = 0;
  for (std::uint64_t i = 0; i < pages; ++i) {
    const auto one = std::chrono::steady_clock::now();
    const auto host = static_cast<std::uint32_t>(1 + (i % 2 == 0 ? 0 : i % 5000));
    index.add(mix64(i), host, 0, {.priority = static_cast<std::int32_t>(i / 1000 % 1000)});
    longest = std::max(longest, frontier_ms_since(one));
  }
  std::printf("%llu pages: %.0f ns each added, the longest %.2f ms; %.2f bytes each\n",
              static_cast<unsigned long long>(pages), frontier_ms_since(began) * 1e6 / static_cast<double>(pages),
              longest, static_cast<double>(index.memory_bytes()) / static_cast<double>(pages));
  EXPECT_LE(index.memory_bytes(), 28 * pages + 100'000);
  print_sweep("all ready, priorities ascending", frontier, now);
  EXPECT_LE(frontier.in_queue(), 10'000u);
  frontier.rest(1, now + 24h, now);
  now += 10min;
  frontier.terms_changed(now);
  print_sweep("half of them of a host that rests", frontier, now);
  KnownPage recrawl{.wait = PageWait::recrawl};
  for (std::uint64_t i = 0; i < pages; ++i) {
    recrawl.succeeded_at = recrawl.ended_at = kFrontierStart - std::chrono::seconds{mix64(i) % 80'000};
    recrawl.due = recrawl.ended_at + 24h;
    index.set(i + 1, recrawl);
  }
  frontier.terms_changed(now);
  print_sweep("all due later", frontier, now);
  EXPECT_LE(frontier.in_queue(), 10'000u);
  now += 2h;
  frontier.terms_changed(now);
  print_sweep("some due", frontier, now);
  began = std::chrono::steady_clock::now();
  std::size_t found = 0;
  for (std::uint64_t i = 0; i < pages; ++i) found += index.find(mix64(i)) == i + 1;
  std::printf("found in %.0f ns each\n", frontier_ms_since(began) * 1e6 / static_cast<double>(pages));
  EXPECT_EQ(found, pages);
}

}  // namespace
}  // namespace argiope
