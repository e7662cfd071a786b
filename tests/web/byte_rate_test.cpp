// How fast bytes may come, by a clock that the test moves.
#include "argiope/web/detail/byte_rate.hpp"

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <thread>
#include <vector>

namespace argiope {
namespace {

using namespace std::chrono_literals;

TEST(ByteRate, LetsAQuarterOfASecondsBytesComeAtOnceAndThenHoldsTheRate) {
  ByteRate rate(1000);
  TimePoint now{1h};
  EXPECT_LE(rate.pay(250, now), now);
  EXPECT_EQ(rate.pay(100, now), now + 100ms);
  EXPECT_EQ(rate.pay(100, now), now + 200ms) << "behind who came before";
  now += 200ms;
  EXPECT_EQ(rate.pay(1, now), now + 1ms);
  now += 1h;
  EXPECT_LE(rate.pay(250, now), now);
  EXPECT_GT(rate.pay(1, now), now) << "more than that is not saved up";
}

TEST(ByteRate, IsExactInTheLongRunAndFairToAllWhoRead) {
  ByteRate rate(100'000);
  TimePoint now{};
  const TimePoint start = now;
  std::multimap<TimePoint, int> reads;  // when each may read on
  std::map<int, std::size_t> got;
  for (int reader = 0; reader < 7; ++reader) reads.emplace(now, reader);
  std::size_t all = 0;
  while (all < 5'000'000) {
    const auto [when, reader] = *reads.begin();
    reads.erase(reads.begin());
    now = std::max(now, when);
    all += rate.piece();
    got[reader] += rate.piece();
    reads.emplace(rate.pay(rate.piece(), now), reader);
  }
  const double seconds = to_seconds(now - start);
  EXPECT_NEAR(static_cast<double>(all) / seconds, 100'000, 2000);
  // Who came first had what was saved up.
  for (const auto& [reader, bytes] : got)
    EXPECT_NEAR(static_cast<double>(bytes), 5e6 / 7, 0.25 * 100'000 + 12'500) << reader;
}

TEST(ByteRate, ReadsInPiecesThatSuitIt) {
  EXPECT_EQ(ByteRate(1).piece(), 1024u);
  EXPECT_EQ(ByteRate(160'000).piece(), 10'000u);
  EXPECT_EQ(ByteRate(std::uint64_t{1} << 60).piece(), 65'536u);
  EXPECT_THROW(ByteRate(0), std::invalid_argument);
  ByteRate slow(1);
  EXPECT_GT(slow.pay(std::size_t{1} << 62, TimePoint{}), TimePoint{1h}) << "and nothing overflows";
  EXPECT_EQ(slow.pay(std::size_t{1} << 62, TimePoint{}), slow.pay(std::size_t{1} << 62, TimePoint{}));
}

TEST(ByteRate, CountsWhatSeveralThreadsPay) {
  ByteRate rate(1000);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int j = 0; j < 1000; ++j) rate.pay(1, TimePoint{});
      });
    }
  }
  EXPECT_EQ(rate.pay(1, TimePoint{}), TimePoint{4001ms - ByteRate::kBurst});
}

}  // namespace
}  // namespace argiope
