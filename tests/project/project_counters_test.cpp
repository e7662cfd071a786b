// Counts of the last 5 minutes, hour and day: held against a list of all that was counted.
#include "project/rules/internal/project_counters.hpp"

#include <gmock/gmock.h>

#include <map>
#include <numeric>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using Count = ProjectCounters::Count;
using Span = ProjectCounters::Span;
using Time = ProjectCounters::Time;

constexpr WallTime kNoon = std::chrono::sys_days{std::chrono::year{2026} / 11 / 23} + 12h;

std::string written(const CountRing& ring) {
  std::string json;
  JsonWriter out(json);
  ring.write(out);
  return json;
}

TEST(CountRingTest, ForgetsWhatIsOlderThanItself) {
  CountRing ring(30, 10s);
  EXPECT_EQ(ring.sum(kNoon), 0u);
  ring.add(2, kNoon);
  ring.add(3, kNoon + 10s);
  EXPECT_EQ(ring.sum(kNoon), 2u);  // what comes later is left out
  EXPECT_EQ(ring.sum(kNoon + 299s), 5u);
  EXPECT_EQ(ring.sum(kNoon + 300s), 3u);
  EXPECT_EQ(ring.sum(kNoon + 310s), 0u);
  EXPECT_EQ(ring.values(kNoon + 10s).back(), 3u);
}

TEST(CountRingTest, CountsAsAListOfAllCountsDoes) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const auto slots = static_cast<std::int64_t>(1 + random.below(40));
    CountRing ring(static_cast<std::size_t>(slots), 10s);
    std::map<std::int64_t, std::uint64_t> model;  // by slot
    std::int64_t latest = 0;
    std::int64_t slot = random.between(-1000, 1000);
    for (int step = 0; step < 500; ++step) {
      // Mostly forward; now and then the clock is set, also far.
      slot += random.chance(0.02) ? random.between(-3 * slots, 3 * slots) : random.between(0, 2);
      const WallTime now = WallTime{slot * 10s} + std::chrono::milliseconds{random.between(0, 9999)};
      if (random.chance(0.7)) {
        const std::uint64_t count = 1 + random.below(9);
        if (model.empty() || slot <= latest - slots) model.clear(), latest = slot;
        latest = std::max(latest, slot);
        model[slot] += count;
        std::erase_if(model, [&](const auto& entry) { return entry.first <= latest - slots; });
        ring.add(count, now);
      }
      const auto in_ring = [&](std::uint64_t sum, const auto& entry) {
        return entry.first <= slot && entry.first > slot - slots ? sum + entry.second : sum;
      };
      ASSERT_EQ(ring.sum(now), std::accumulate(model.begin(), model.end(), std::uint64_t{0}, in_ring))
          << seed << " " << step;
      if (!random.chance(0.05)) continue;
      CountRing read(static_cast<std::size_t>(slots), 10s);
      JsonErrors errors;
      const std::string json = written(ring);
      const auto text = JsonText::parse(json);
      read.read(text->root(errors));
      ASSERT_FALSE(errors) << errors.error().message;
      ASSERT_EQ(written(read), json);
      ASSERT_EQ(read.sum(now), ring.sum(now));
    }
  }
}

TEST(CountRingTest, DoesNotOverflow) {
  CountRing ring(2, 10s);
  ring.add(~std::uint64_t{0}, kNoon);
  ring.add(~std::uint64_t{0}, kNoon);
  EXPECT_EQ(ring.sum(kNoon), static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  ring.add(1, WallTime::max());
  ring.add(1, WallTime::min());
  EXPECT_EQ(ring.sum(WallTime::min()), 1u);
}

TEST(ProjectCountersTest, CountsOverFiveMinutesAnHourADayAndInAll) {
  ProjectCounters counters;
  counters.count(Count::success, kNoon);
  counters.count(Count::success, kNoon + 30min, 2);
  counters.count(Count::retry, kNoon + 30min);
  const WallTime now = kNoon + 32min;
  EXPECT_EQ(counters.sum(Count::success, Span::m5, now), 2u);
  EXPECT_EQ(counters.sum(Count::success, Span::h1, now), 3u);
  EXPECT_EQ(counters.sum(Count::success, Span::d1, now), 3u);
  EXPECT_EQ(counters.sum(Count::retry, Span::m5, now), 1u);
  EXPECT_EQ(counters.sum(Count::success, Span::h1, now + 1h), 0u);
  EXPECT_EQ(counters.sum(Count::success, Span::d1, now + 25h), 0u);
  counters.add_page(Count::pending, 3);
  counters.move_page(Count::pending, Count::success);
  counters.move_page(Count::failed, Count::pending);  // none was known to have failed: nothing goes below zero
  EXPECT_EQ(counters.all(Count::pending), 3);
  EXPECT_EQ(counters.all(Count::success), 1);
  EXPECT_EQ(counters.all(Count::failed), 0);
  counters.took(Time::fetch, 100ms, kNoon);
  counters.took(Time::fetch, 300ms, kNoon + 1min);
  EXPECT_EQ(counters.mean(Time::fetch, kNoon + 1min), 200ms);
  EXPECT_EQ(counters.mean(Time::fetch, now), Duration{});
  EXPECT_EQ(counters.mean(Time::process, kNoon), Duration{});
}

TEST(ProjectCountersTest, AreStoredInAFewBytesAndReadBack) {
  EXPECT_LT(ProjectCounters().stored().size(), 400u);
  Random random(1);
  ProjectCounters counters;
  WallTime now = kNoon;
  for (int i = 0; i < 20'000; ++i) {
    now += std::chrono::milliseconds{random.between(0, 9000)};
    counters.count(static_cast<Count>(random.below(4)), now, 1 + random.below(10'000));
    counters.took(Time::process, std::chrono::microseconds{random.between(0, 100'000)}, now);
  }
  counters.add_page(Count::success, 1'000'000'000);
  const std::string stored = counters.stored();
  EXPECT_LT(stored.size(), 20'000u);
  const auto read = ProjectCounters::read(stored);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->stored(), stored);
  EXPECT_EQ(read->sum(Count::failed, Span::d1, now), counters.sum(Count::failed, Span::d1, now));
  EXPECT_EQ(read->mean(Time::process, now), counters.mean(Time::process, now));
}

TEST(ProjectCountersTest, RefusesWhatItHasNotWritten) {
  for (const char* text :
       {"", "[]", "{\"5m\":1}", "{\"5m\":{\"success\":[]}}", "{\"5m\":{\"success\":{\"at\":1,\"counts\":[-1]}}}",
        "{\"6m\":{}}", "{\"all\":{\"pending\":1.5}}",
        "{\"5m\":{\"retry\":{\"at\":0,\"counts\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}}}"}) {
    EXPECT_FALSE(ProjectCounters::read(text)) << text;
  }
  EXPECT_TRUE(ProjectCounters::read("{}"));
}

}  // namespace
}  // namespace argiope
