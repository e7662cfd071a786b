#include "argiope/base/ring_buffer.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

TEST(RingBuffer, AgreesWithADequeUnderRandomUse) {
  Random random(5);
  RingBuffer<std::unique_ptr<int>> ring;
  std::deque<int> model;
  for (int step = 0; step < 100'000; ++step) {
    const std::uint64_t what = random.below(4);
    if (what == 0) {
      ring.push_back(std::make_unique<int>(step));
      model.push_back(step);
    } else if (what == 1) {
      ring.emplace_front(std::make_unique<int>(step));
      model.push_front(step);
    } else if (!model.empty() && what == 2) {
      ASSERT_EQ(*ring.pop_front(), model.front());
      model.pop_front();
    } else if (!model.empty()) {
      ASSERT_EQ(*ring.pop_back(), model.back());
      model.pop_back();
    }
    ASSERT_EQ(ring.size(), model.size());
    if (!model.empty()) {
      ASSERT_EQ(*ring.front(), model.front());
      ASSERT_EQ(*ring.back(), model.back());
      ASSERT_EQ(*ring[model.size() / 2], model[model.size() / 2]);
    }
  }
}

TEST(RingBuffer, FreesWhatIsLeftInIt) {
  auto counted = std::make_shared<int>(1);
  {
    RingBuffer<std::shared_ptr<int>> ring;
    for (int i = 0; i < 100; ++i) ring.push_back(counted);
    for (int i = 0; i < 30; ++i) ring.pop_front();
    EXPECT_EQ(counted.use_count(), 71);
  }
  EXPECT_EQ(counted.use_count(), 1);
}

}  // namespace
}  // namespace argiope
