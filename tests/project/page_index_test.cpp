// What the index gives back of the pages it was given, in how little memory, and that whoever decides on what it gives
// back decides as on what it was given.
#include "project/index/internal/page_index.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "argiope/base/random.hpp"
#include "project/rules/internal/decide_ask.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kIndexNow = std::chrono::sys_days{std::chrono::year{2026} / 11 / 23};
constexpr std::uint64_t kIndexSeed = 20261123;

KnownPage done_in_index(WallTime at, PageTag tag = 0) {
  return {.state = PageState::done, .succeeded_at = at, .ended_at = at, .tag = tag};
}

const PageTerms& usual_index_terms(RuleNumber) {
  static const PageTerms kTerms{};
  return kTerms;
}

std::vector<PageIndex::Waiting> all_waiting(const PageIndex& index, const PageIndex::TermsOf& terms,
                                            std::size_t steps = 7) {
  std::vector<PageIndex::Waiting> found;
  PageIndex::Number from = 1;
  do {
    from = index.collect(from, steps, terms, [&](const PageIndex::Waiting& one) { found.push_back(one); });
  } while (from != 0);
  return found;
}

TEST(PageIndex, KnowsAPageByItsFingerprint) {
  PageIndex index;
  EXPECT_EQ(index.find(17), 0u);
  EXPECT_EQ(index.last(), 0u);
  EXPECT_EQ(index.add(17, 3, 5, {.priority = 9}), 1u);
  EXPECT_EQ(index.add(0, 4, 6, done_in_index(kIndexNow, 77)), 2u);
  EXPECT_EQ(index.find(17), 1u);
  EXPECT_EQ(index.find(0), 2u);
  EXPECT_EQ(index.find(18), 0u);
  EXPECT_EQ(index.size(), 2u);
  EXPECT_EQ(index.host(1), 3u);
  EXPECT_EQ(index.rule(2), 6u);
  EXPECT_EQ(index.state(1), PageState::waiting);
  EXPECT_EQ(index.state(2), PageState::done);
  EXPECT_EQ(index.known(1), (KnownPage{.priority = 9}));
  EXPECT_EQ(index.known(2), done_in_index(kIndexNow, 77));
  index.set_rule(2, 65'535);
  EXPECT_EQ(index.rule(2), 65'535u);
  EXPECT_EQ(index.beside(), 0u);
}

TEST(PageIndex, HasNoPageUnderANumberThatWasSkipped) {
  PageIndex index;
  index.skip_to(3);
  EXPECT_EQ(index.add(1, 1, 0, {}), 3u);
  index.skip_to(2);
  index.skip_to(4);
  EXPECT_EQ(index.add(2, 1, 0, {}), 4u);
  index.skip_to(5000);
  EXPECT_EQ(index.last(), 4999u);
  EXPECT_EQ(index.add(3, 1, 0, {}), 5000u);
  EXPECT_EQ(index.size(), 3u);
  EXPECT_EQ(index.find(2), 4u);
  const auto waiting = all_waiting(index, usual_index_terms);
  ASSERT_EQ(waiting.size(), 3u);
  EXPECT_EQ(waiting[2].page, 5000u);
  EXPECT_FALSE(index.waiting(1, usual_index_terms));
  EXPECT_FALSE(index.waiting(1000, usual_index_terms));
  EXPECT_FALSE(index.waiting(0, usual_index_terms));
  EXPECT_FALSE(index.waiting(5001, usual_index_terms));
  EXPECT_TRUE(index.waiting(5000, usual_index_terms));
  EXPECT_THROW(index.skip_to(PageIndex::Number{1} << 40), std::length_error);
  EXPECT_EQ(index.last(), 5000u);
}

TEST(PageIndex, KeepsAPageThatIsVisitedWhole) {
  PageIndex index;
  index.add(1, 1, 0, {});
  const KnownPage visited{.state = PageState::visiting,
                          .again = true,
                          .priority = -3,
                          .due = kIndexNow + 1ns,
                          .succeeded_at = kIndexNow - 3ns,
                          .ended_at = kIndexNow - 2ns,
                          .interval = 5min + 1ns,
                          .retried = 2,
                          .tag = ~PageTag{0},
                          .own = {.priority = 4, .age = 3s, .retries = 7, .auto_recrawl = true}};
  index.set(1, visited);
  EXPECT_EQ(index.known(1), visited);
  EXPECT_EQ(index.state(1), PageState::visiting);
  EXPECT_EQ(index.beside(), 1u);
  EXPECT_TRUE(all_waiting(index, usual_index_terms).empty());
  index.set(1, done_in_index(kIndexNow));
  EXPECT_EQ(index.known(1), done_in_index(kIndexNow));
  EXPECT_EQ(index.beside(), 0u);
}

TEST(PageIndex, RoundsSoThatNothingIsDueEarlyAndNothingStaysFreshTooLong) {
  PageIndex index;
  index.add(1, 1, 0, {.due = kIndexNow + 1ns});
  index.add(2, 1, 0, done_in_index(kIndexNow + 999'999'999ns));
  index.add(3, 1, 0, {.state = PageState::failed, .ended_at = kIndexNow + 1ns});
  EXPECT_EQ(index.known(1).due, kIndexNow + 1s);
  EXPECT_EQ(index.known(2).succeeded_at, kIndexNow);
  EXPECT_EQ(index.known(3).ended_at, kIndexNow + 1s);
  EXPECT_EQ(index.beside(), 0u);
  // Times that are none but for the rounding stay what they are.
  index.add(4, 1, 0, done_in_index(WallTime{} + 1ns));
  index.add(5, 1, 0, done_in_index(WallTime{} - 1h));
  index.add(6, 1, 0, {.due = WallTime::max()});
  EXPECT_EQ(index.known(4), done_in_index(WallTime{} + 1ns));
  EXPECT_EQ(index.known(5), done_in_index(WallTime{} - 1h));
  EXPECT_EQ(index.known(6).due, WallTime::max());
  EXPECT_EQ(index.beside(), 3u);
}

TEST(PageIndex, GivesPagesThatWaitAsTheirRuleHasThemNow) {
  PageIndex index;
  PageTerms rule{.age = 1h, .auto_recrawl = true};
  const auto terms = [&](RuleNumber) -> const PageTerms& { return rule; };
  KnownPage recrawl{.state = PageState::waiting, .wait = PageWait::recrawl, .due = kIndexNow + 1h + 1ns};
  recrawl.succeeded_at = recrawl.ended_at = kIndexNow + 1ns;
  index.add(1, 7, 0, recrawl);
  index.add(2, 8, 0, {.priority = 3, .due = kIndexNow + 5s});
  index.add(3, 9, 0, done_in_index(kIndexNow));
  EXPECT_EQ(index.beside(), 0u);
  auto waiting = all_waiting(index, terms);
  ASSERT_EQ(waiting.size(), 2u);
  EXPECT_EQ(waiting[0], (PageIndex::Waiting{.page = 1, .due = kIndexNow + 1h + 1s, .host = 7}))
      << "not before its success and an hour";
  EXPECT_EQ(waiting[1], (PageIndex::Waiting{.page = 2, .priority = 3, .due = kIndexNow + 5s, .host = 8}));
  rule.age = 2h;
  EXPECT_EQ(index.waiting(1, terms)->due, kIndexNow + 2h + 1s);
  rule.auto_recrawl = false;
  EXPECT_FALSE(index.waiting(1, terms));
  EXPECT_EQ(index.state(1), PageState::waiting) << "until it is told otherwise";
  // An ask that finds nothing new finds the page as it was.
  rule = {.age = 1h, .auto_recrawl = true};
  const KnownPage known = index.known(1);
  EXPECT_EQ(decide_ask(&known, {}, rule, kIndexNow + 1min).verdict, AskVerdict::drop);
}

TEST(PageIndex, TakesHostsOfAnyNumber) {
  PageIndex index;
  const std::uint32_t hosts[] = {0, 1, 0xffff, 0x10000, 0xfffffe, 0xffffff, 0x1000000, ~0u};
  for (const std::uint32_t host : hosts) index.add(host, host, 0, {});
  for (PageIndex::Number page = 1; page <= std::size(hosts); ++page) EXPECT_EQ(index.host(page), hosts[page - 1]);
}

TEST(PageIndex, KeepsBesideWhatNoCodeIsLeftFor) {
  PageIndex index;
  constexpr std::uint32_t kPages = 70'000;
  for (std::uint32_t i = 0; i < kPages; ++i) index.add(i, 1, 0, done_in_index(kIndexNow, i + 1));
  for (std::uint32_t i = 0; i < kPages; ++i) ASSERT_EQ(index.known(i + 1).tag, i + 1);
  EXPECT_EQ(index.beside(), 0u) << "tags have a map of their own";
  // Codes that are in use no more are free for others.
  for (std::uint32_t i = 0; i < kPages; ++i) index.set(i + 1, done_in_index(kIndexNow, 5));
  for (std::uint32_t i = 0; i < kPages; ++i) ASSERT_EQ(index.known(i + 1), done_in_index(kIndexNow, 5));
  for (std::uint32_t i = 0; i < kPages; ++i) index.set(i + 1, {.priority = static_cast<std::int32_t>(i) - 1000});
  for (std::uint32_t i = 0; i < kPages; ++i)
    ASSERT_EQ(index.known(i + 1).priority, static_cast<std::int32_t>(i) - 1000);
  EXPECT_EQ(index.beside(), kPages - 65'535);
}

TEST(PageIndex, KeepsTheLastSuccessOfAPageThatHasFailedSince) {
  PageIndex index;
  KnownPage failed{.state = PageState::failed, .succeeded_at = kIndexNow - 24h, .ended_at = kIndexNow, .tag = 3};
  KnownPage retry{.wait = PageWait::retry,
                  .due = kIndexNow + 1h,
                  .succeeded_at = kIndexNow - 24h,
                  .ended_at = kIndexNow,
                  .retried = 2};
  index.add(1, 1, 0, failed);
  index.add(2, 1, 0, retry);
  EXPECT_EQ(index.beside(), 0u);
  EXPECT_EQ(index.known(1), failed);
  EXPECT_EQ(index.known(2), retry);
  EXPECT_EQ(index.waiting(2, usual_index_terms)->due, kIndexNow + 1h);
  index.set(1, done_in_index(kIndexNow));
  index.set(2, failed);
  EXPECT_EQ(index.known(1), done_in_index(kIndexNow));
  EXPECT_EQ(index.known(2), failed);
}

TEST(PageIndex, KeepsTermsThatManyPagesShareInTheirRecords) {
  PageIndex index;
  const OwnTerms own{.priority = 9, .age = 24h, .retries = 5};
  KnownPage retry{
      .wait = PageWait::retry, .priority = 9, .due = kIndexNow + 30s, .ended_at = kIndexNow, .retried = 1, .own = own};
  KnownPage adaptive = done_in_index(kIndexNow);
  adaptive.interval = 36h + 1ns;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    index.add(2 * i, 1, 0, retry);
    index.add(2 * i + 1, 1, 0, adaptive);
  }
  EXPECT_EQ(index.beside(), 0u);
  EXPECT_EQ(index.known(1), retry);
  EXPECT_EQ(index.known(2), adaptive);
}

// --- at random -------------------------------------------------------------------------------------------------------

class RandomIndexPages {
 public:
  explicit RandomIndexPages(std::uint64_t seed) : random_(seed) {}

  Random& random() { return random_; }
  template <class Value>
  Value one_of(std::initializer_list<Value> values) {
    return *(values.begin() + random_.below(values.size()));
  }
  // Near now, long ago, and ahead; `fine`: with parts of a second.
  WallTime time(bool fine) {
    const Duration away = one_of<Duration>({1min, 1h, 24h, 240h});
    const auto whole = std::chrono::seconds{random_.between(-away / 1s, away / 1s / 4)};
    return kIndexNow + whole +
           (fine ? Duration{static_cast<std::int64_t>(random_.below(1'000'000'000))} : Duration::zero());
  }
  OwnTerms own() {
    OwnTerms own;
    if (random_.chance(0.6)) return own;
    if (random_.chance(0.5)) own.priority = one_of({-5, 0, 5, 9});
    if (random_.chance(0.3)) own.age = one_of<Duration>({kNeverOld, 0s, 1h, 24h});
    if (random_.chance(0.3)) own.retries = one_of({0u, 1u, 5u});
    if (random_.chance(0.3)) own.auto_recrawl = random_.chance(0.5);
    return own;
  }
  PageTerms rule() {
    PageTerms rule{.priority = one_of({0, 0, 3}),
                   .age = one_of<Duration>({kNeverOld, 0s, 1h, 24h}),
                   .tag = one_of<PageTag>({0, 0, 1, 2})};
    rule.retries = one_of({0u, 3u});
    rule.auto_recrawl = random_.chance(0.5);
    if (random_.chance(0.2)) rule.adaptive = RevisitBounds{1h, 240h};
    return rule;
  }
  Ask ask(bool fine) {
    Ask ask{.own = own(), .tag = one_of<PageTag>({0, 0, 1, 2, 3})};
    if (random_.chance(0.3)) ask.exetime = time(fine);
    ask.force_update = random_.chance(0.15);
    ask.cancel = random_.chance(0.1);
    return ask;
  }
  // Any page at all.
  KnownPage any(bool fine) {
    KnownPage page{.state = one_of({PageState::waiting, PageState::visiting, PageState::done, PageState::failed,
                                    PageState::cancelled})};
    page.wait = one_of({PageWait::visit, PageWait::retry, PageWait::recrawl});
    page.again = page.state == PageState::visiting && random_.chance(0.3);
    page.priority = one_of({-5, 0, 0, 3, 9});
    if (random_.chance(0.5)) page.due = time(fine);
    if (random_.chance(0.5)) page.ended_at = time(fine);
    if (random_.chance(0.5)) page.succeeded_at = random_.chance(0.8) ? page.ended_at : time(fine);
    if (random_.chance(0.2)) page.interval = one_of<Duration>({1h, 36h, 100h + 1ns});
    page.retried = one_of({0u, 0u, 1u, 3u});
    page.tag = one_of<PageTag>({0, 0, 1, 2});
    page.own = own();
    return page;
  }
  // One that asks and visits have made.
  KnownPage lived(const PageTerms& rule, bool fine) {
    AskDecision asked = decide_ask(nullptr, {.own = own()}, rule, kIndexNow - 2000h);
    KnownPage page = asked.page;
    WallTime at = time(fine) - 500h;
    for (std::uint64_t turns = random_.below(6); turns > 0; --turns) {
      at += std::chrono::seconds{random_.below(100 * 3600)};
      if (page.state == PageState::waiting && random_.chance(0.8)) {
        page.state = PageState::visiting;
        const VisitEnd end = one_of({VisitEnd::success, VisitEnd::success, VisitEnd::unchanged, VisitEnd::failure});
        page = decide_visit_end(page, end, rule, at, random_).page;
      } else {
        page = decide_ask(&page, ask(fine), rule, at).page;
      }
    }
    return page;
  }

 private:
  Random random_;
};

bool is_within_a_second(WallTime a, WallTime b) { return a == b || (a < b ? b - a : a - b) < 1s; }

bool is_within_a_second(const KnownPage& a, const KnownPage& b) {
  KnownPage rest = a;
  rest.due = b.due;
  rest.succeeded_at = b.succeeded_at;
  rest.ended_at = b.ended_at;
  constexpr WallTime kNone{};
  const bool same_kinds =
      (a.due == kNone) == (b.due == kNone) && (a.succeeded_at == kNone) == (b.succeeded_at == kNone);
  return rest == b && same_kinds && is_within_a_second(a.due, b.due) &&
         is_within_a_second(a.succeeded_at, b.succeeded_at) && is_within_a_second(a.ended_at, b.ended_at);
}

// Of pages whose times are whole seconds nothing at all is lost, and so every verdict is the same to the last bit.
TEST(PageIndex, OfWholeSecondsEveryVerdictIsTheSame) {
  std::printf("seed %llu\n", static_cast<unsigned long long>(kIndexSeed));
  RandomIndexPages pages(kIndexSeed);
  PageIndex index;
  std::size_t in_records = 0;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    const PageTerms rule = pages.rule();
    const KnownPage page = pages.random().chance(0.5) ? pages.any(false) : pages.lived(rule, false);
    PageIndex::Number number = 1 + pages.random().below(1000);
    if (number > index.last()) {
      number = index.add(i, 1, 0, page);
    } else {
      const std::size_t before = index.beside();
      index.set(number, page);
      in_records += index.beside() <= before ? 1 : 0;
    }
    const KnownPage known = index.known(number);
    ASSERT_EQ(known, page) << "page " << i;
    ASSERT_EQ(index.state(number), page.state) << "page " << i;
    const Ask ask = pages.ask(false);
    const WallTime now = pages.time(true);
    ASSERT_EQ(decide_ask(&known, ask, rule, now), decide_ask(&page, ask, rule, now)) << "page " << i;
    ASSERT_EQ(under_rule(known, rule), under_rule(page, rule)) << "page " << i;
    const std::uint64_t chance = pages.random().next();
    Random one(chance), other(chance);
    ASSERT_EQ(decide_visit_end(known, VisitEnd::failure, rule, now, one).page,
              decide_visit_end(page, VisitEnd::failure, rule, now, other).page);
    const KnownPage ruled = under_rule(page, rule);
    const auto waiting = index.waiting(number, [&](RuleNumber) -> const PageTerms& { return rule; });
    ASSERT_EQ(waiting.has_value(), ruled.state == PageState::waiting) << "page " << i;
    if (waiting) {
      ASSERT_EQ(*waiting, (PageIndex::Waiting{number, ruled.priority, ruled.due, 1})) << "page " << i;
    }
  }
  EXPECT_GT(in_records, 50'000u);
}

// With parts of a second, a verdict is that of now or that of some time within the next second.
TEST(PageIndex, OfPartsOfSecondsEveryVerdictIsThatOfTheSameSecond) {
  const std::uint64_t seed = kIndexSeed + 1;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  RandomIndexPages pages(seed);
  PageIndex index;
  index.add(1, 1, 0, {});
  std::size_t others = 0;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    const PageTerms rule = pages.rule();
    const KnownPage page = pages.random().chance(0.5) ? pages.any(true) : pages.lived(rule, true);
    index.set(1, page);
    const KnownPage known = index.known(1);
    ASSERT_TRUE(is_within_a_second(known, page)) << "page " << i;
    const bool waits_for_recrawl = page.state == PageState::waiting && page.wait == PageWait::recrawl;
    if (!waits_for_recrawl) {
      ASSERT_GE(known.due, page.due) << "page " << i;
    }
    ASSERT_LE(known.succeeded_at, page.succeeded_at) << "page " << i;
    const KnownPage ruled = under_rule(page, rule);
    const auto waiting = index.waiting(1, [&](RuleNumber) -> const PageTerms& { return rule; });
    ASSERT_EQ(waiting.has_value(), ruled.state == PageState::waiting) << "page " << i;
    if (waiting) {
      ASSERT_GE(waiting->due, ruled.due) << "page " << i;
      ASSERT_LE(waiting->due - ruled.due, 1s) << "page " << i;
      ASSERT_EQ(waiting->priority, ruled.priority);
    }
    const Ask ask = pages.ask(true);
    const WallTime now = pages.time(true);
    const AskDecision given = decide_ask(&known, ask, rule, now);
    const auto is_like = [&](const AskDecision& other) {
      return given.verdict == other.verdict && given.reason == other.reason &&
             given.takes_request == other.takes_request && is_within_a_second(given.page, other.page);
    };
    const bool is_same = is_like(decide_ask(&page, ask, rule, now));
    others += is_same ? 0 : 1;
    if (is_same || (ask.exetime && is_within_a_second(*ask.exetime, page.due))) continue;
    // What is a second off is off no farther than a clock that is.
    Ask sooner = ask, later = ask;
    if (ask.exetime) sooner.exetime = *ask.exetime - 1s;
    if (ask.exetime) later.exetime = *ask.exetime + 1s;
    ASSERT_TRUE(is_like(decide_ask(&page, ask, rule, now + 1s)) || is_like(decide_ask(&page, ask, rule, now - 1s)) ||
                is_like(decide_ask(&page, later, rule, now + 1s)) || is_like(decide_ask(&page, sooner, rule, now - 1s)))
        << "page " << i << ": " << to_string(given.reason) << ", not "
        << to_string(decide_ask(&page, ask, rule, now).reason);
  }
  EXPECT_LT(others, 2000u);
}

TEST(PageIndex, FindsEveryPageWhileItGrows) {
  const std::uint64_t seed = kIndexSeed + 2;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  Random random(seed);
  PageIndex index(seed);
  std::vector<std::uint64_t> fingerprints;
  for (int i = 0; i < 300'000; ++i) {
    fingerprints.push_back(random.next());
    if (random.chance(0.001)) index.skip_to(index.last() + 1 + random.below(3));
    const PageIndex::Number number = index.add(fingerprints.back(), 1, 0, {});
    ASSERT_EQ(index.find(fingerprints.back()), number);
    ASSERT_NE(index.find(fingerprints[random.below(fingerprints.size())]), 0u);
  }
  std::vector<PageIndex::Number> numbers;
  for (const std::uint64_t fingerprint : fingerprints) numbers.push_back(index.find(fingerprint));
  EXPECT_EQ(index.size(), fingerprints.size());
  EXPECT_TRUE(std::ranges::is_sorted(numbers));
  EXPECT_EQ(std::ranges::adjacent_find(numbers), numbers.end());
  EXPECT_EQ(numbers.back(), index.last());
  for (int i = 0; i < 100'000; ++i) ASSERT_EQ(index.find(random.next()), 0u);
}

// --- memory ----------------------------------------------------------------------------------------------------------

void fill_index(PageIndex& index, std::uint64_t pages) {
  for (std::uint64_t i = index.size(); i < pages; ++i) {
    KnownPage page = done_in_index(kIndexNow - std::chrono::seconds{i % 1'000'000} - 1ns, 1 + i % 3);
    if (i % 4 == 0) page = {.priority = static_cast<std::int32_t>(i % 10)};
    if (i % 4 == 1) page.state = PageState::waiting, page.wait = PageWait::recrawl, page.due = page.ended_at + 24h;
    index.add(mix64(i), static_cast<std::uint32_t>(1 + i % 50'000), static_cast<RuleNumber>(i % 7), page);
  }
}

TEST(PageIndex, AMillionPagesTakeLessThan28BytesEach) {
  PageIndex index;
  double most = 0;
  for (std::uint64_t pages = 100'000; pages <= 1'000'000; pages += 20'000) {
    fill_index(index, pages);
    most = std::max(most, static_cast<double>(index.memory_bytes()) / static_cast<double>(pages));
  }
  std::printf("%.2f bytes a page, %.2f at most on the way\n", static_cast<double>(index.memory_bytes()) / 1e6, most);
  EXPECT_LE(index.memory_bytes(), 28'000'000u);
  EXPECT_LE(most, 28.0);
  PageIndex reserved;
  reserved.reserve(1'000'000);
  const std::size_t before = reserved.memory_bytes();
  fill_index(reserved, 1'000'000);
  EXPECT_LE(reserved.memory_bytes(), 28'000'000u);
  EXPECT_LE(reserved.memory_bytes() - before, 23'000'000u) << "the table has not grown";
  EXPECT_EQ(reserved.find(mix64(999'999)), 1'000'000u);
}

}  // namespace
}  // namespace argiope
