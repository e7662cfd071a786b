#include "argiope/base/detail/ring_buffer.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

TEST(RingBuffer, GivesBackInTheOrderPushed) {
  RingBuffer<int> ring;
  for (int i = 0; i < 1000; ++i) ring.push_back(i);
  EXPECT_EQ(ring.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(ring.pop_front(), i);
  EXPECT_TRUE(ring.empty());
}

TEST(RingBuffer, IsAStackAtItsBack) {
  RingBuffer<int> ring;
  for (int i = 0; i < 100; ++i) ring.push_back(i);
  for (int i = 99; i >= 0; --i) EXPECT_EQ(ring.pop_back(), i);
}

TEST(RingBuffer, TakesItemsAtTheFrontOfAnEmptyRing) {
  RingBuffer<int> ring;
  for (int i = 0; i < 100; ++i) ring.emplace_front(i);
  EXPECT_EQ(ring.front(), 99);
  EXPECT_EQ(ring.back(), 0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ring.pop_back(), i);
}

TEST(RingBuffer, DoesNotGrowWhenItemsOnlyPassThrough) {
  RingBuffer<int> ring;
  ring.push_back(0);
  const std::size_t capacity = ring.capacity();
  for (int i = 1; i < 10'000; ++i) {
    ring.push_back(i);
    EXPECT_EQ(ring.pop_front(), i - 1);
  }
  EXPECT_EQ(ring.capacity(), capacity);
}

TEST(RingBuffer, ReserveMakesRoomInAdvance) {
  RingBuffer<int> ring;
  ring.reserve(100);
  const std::size_t capacity = ring.capacity();
  EXPECT_GE(capacity, 100u);
  for (int i = 0; i < 100; ++i) ring.push_back(i);
  EXPECT_EQ(ring.capacity(), capacity);
  EXPECT_EQ(ring[99], 99);
}

TEST(RingBuffer, HoldsItemsThatCanOnlyBeMoved) {
  RingBuffer<std::unique_ptr<int>> ring;
  for (int i = 0; i < 40; ++i) ring.push_back(std::make_unique<int>(i));
  EXPECT_EQ(*ring.pop_front(), 0);
  EXPECT_EQ(*ring.pop_back(), 39);
  RingBuffer<std::unique_ptr<int>> other = std::move(ring);
  EXPECT_EQ(other.size(), 38u);
}

TEST(RingBuffer, DestroysEachItemOnce) {
  const auto witness = std::make_shared<int>();
  {
    RingBuffer<std::shared_ptr<int>> ring;
    for (int i = 0; i < 100; ++i) ring.push_back(witness);
    for (int i = 0; i < 50; ++i) ring.pop_front();
    EXPECT_EQ(witness.use_count(), 51);
    ring.clear();
    EXPECT_EQ(witness.use_count(), 1);
    ring.push_back(witness);
  }
  EXPECT_EQ(witness.use_count(), 1);
}

TEST(RingBuffer, AgreesWithADequeUnderAnyMixOfCalls) {
  Random random(7);
  RingBuffer<std::string> ring;
  std::deque<std::string> deque;
  for (int i = 0; i < 100'000; ++i) {
    const std::string item = std::to_string(i);
    switch (random.below(deque.empty() ? 2 : 4)) {
      case 0: ring.push_back(item), deque.push_back(item); break;
      case 1: ring.emplace_front(item), deque.push_front(item); break;
      case 2:
        ASSERT_EQ(ring.pop_front(), deque.front());
        deque.pop_front();
        break;
      case 3:
        ASSERT_EQ(ring.pop_back(), deque.back());
        deque.pop_back();
        break;
    }
    ASSERT_EQ(ring.size(), deque.size());
    if (!deque.empty()) {
      const std::size_t at = random.below(deque.size());
      ASSERT_EQ(ring[at], deque[at]);
      ASSERT_EQ(ring.front(), deque.front());
      ASSERT_EQ(ring.back(), deque.back());
    }
  }
}

}  // namespace
}  // namespace argiope
