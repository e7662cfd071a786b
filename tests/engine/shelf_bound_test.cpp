// How far a shelf is in memory, while it is read on and rows come and go. First by hand, then against a shelf and a
// memory that a random owner works on.
#include "engine/internal/shelf_bound.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using Ready = ShelfBound<Rank>;

TEST(ShelfBoundTest, BeginsWithNothingReadAndEndsWithAll) {
  Ready bound;
  EXPECT_FALSE(bound.has_read_all());
  EXPECT_FALSE(bound.has_read({9, 1}));
  EXPECT_EQ(bound.begin_read(), (Rank{}));
  bound.read_up_to(Rank{5, 7});
  EXPECT_TRUE(bound.has_read({9, 1}));
  EXPECT_TRUE(bound.has_read({5, 7}));
  EXPECT_FALSE(bound.has_read({5, 8}));
  EXPECT_FALSE(bound.has_read({4, 1}));
  EXPECT_EQ(bound.begin_read(), (Rank{5, 7})) << "what follows it is read next";
  bound.read_up_to(std::nullopt);
  EXPECT_TRUE(bound.has_read_all());
  EXPECT_TRUE(bound.has_read({-1'000'000, kMostJobId}));
}

TEST(ShelfBoundTest, OfAnEmptyShelfAllIsReadUntilSomethingIsLeftThere) {
  Ready bound = Ready::at_end();
  EXPECT_TRUE(bound.has_read_all());
  bound.pass_by({3, 3});
  EXPECT_EQ(bound.first_unread(), (Rank{3, 3}));
  EXPECT_TRUE(bound.has_read({3, 2}));
  EXPECT_FALSE(bound.has_read({3, 3}));
  bound.pass_by({2, 1});
  EXPECT_EQ(bound.first_unread(), (Rank{3, 3})) << "the first counts";
}

TEST(ShelfBoundTest, ARowPassedByDuringAReadStaysUnreadWhateverTheAnswer) {
  for (const bool to_the_end : {false, true}) {
    Ready bound;
    bound.begin_read();
    bound.pass_by({7, 2});
    bound.read_up_to(to_the_end ? std::nullopt : std::optional(Rank{5, 5}));
    EXPECT_EQ(bound.first_unread(), (Rank{7, 2}));
    bound.begin_read();
    bound.read_up_to(to_the_end ? std::nullopt : std::optional(Rank{5, 5}));
    EXPECT_TRUE(bound.has_read({5, 5})) << "the next read found it";
  }
}

TEST(ShelfBoundTest, WhatIsDelayedIsOrderedByItsTime) {
  ShelfBound<DueRank> bound;
  EXPECT_FALSE(bound.has_read({WallTime{}, 1}));
  bound.begin_read();
  bound.read_up_to(DueRank{WallTime{5s}, 9});
  EXPECT_TRUE(bound.has_read({WallTime{4s}, 100}));
  EXPECT_FALSE(bound.has_read({WallTime{5s}, 10}));
  EXPECT_EQ(bound.first_unread(), (DueRank{WallTime{5s}, 10}));
}

struct MostImportantFirst {
  bool operator()(const Rank& a, const Rank& b) const { return more_important(a, b); }
};
using Rows = std::set<Rank, MostImportantFirst>;

// Rows are put on a shelf, leave it, are let go of; reads see the shelf as it was when they were asked for, and are
// answered after other things have happened, in part, or never.
TEST(ShelfBoundTest, AllThatIsSaidToHaveBeenReadIsInMemory) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    Rows shelf, memory;
    Ready bound;
    JobId last = 0;
    for (int i = 0; i < 20; ++i) shelf.insert({static_cast<std::int32_t>(random.below(4)), ++last});
    const auto draw = [&](const Rows& rows) {
      return *std::next(rows.begin(), static_cast<std::ptrdiff_t>(random.below(rows.size())));
    };
    const auto happen = [&] {
      switch (random.below(3)) {
        case 0: {  // a new one
          const Rank rank{static_cast<std::int32_t>(random.below(4)), ++last};
          shelf.insert(rank);
          if (bound.has_read(rank)) {
            memory.insert(rank);
          } else {
            bound.pass_by(rank);
          }
          break;
        }
        case 1: {  // one is over
          if (shelf.empty()) break;
          const Rank rank = draw(shelf);
          shelf.erase(rank);
          memory.erase(rank);
          break;
        }
        default: {  // one is let go of
          if (memory.empty()) break;
          const Rank rank = draw(memory);
          memory.erase(rank);
          bound.pass_by(rank);
        }
      }
    };
    for (int step = 0; step < 100; ++step) {
      happen();
      const Rank after = bound.begin_read();
      std::vector<Rank> found;
      const std::size_t limit = 1 + random.below(5);
      for (auto it = shelf.upper_bound(after); it != shelf.end() && found.size() < limit; ++it) found.push_back(*it);
      for (auto n = random.below(4); n > 0; --n) happen();
      if (random.chance(0.1)) continue;  // the answer never comes
      bound.read_up_to(found.size() < limit ? std::nullopt : std::optional(found.back()));
      for (const Rank& rank : found) {
        if (shelf.contains(rank)) memory.insert(rank);  // the owner forgets what was over meanwhile
      }
      for (const Rank& rank : shelf) {
        ASSERT_TRUE(!bound.has_read(rank) || memory.contains(rank))
            << "seed " << seed << ", step " << step << ": " << rank.priority << '/' << rank.id;
      }
    }
    // Left alone, all of it is read.
    while (!bound.has_read_all()) {
      const auto next = shelf.upper_bound(bound.begin_read());
      bound.read_up_to(next == shelf.end() ? std::nullopt : std::optional(*next));
      if (next != shelf.end()) memory.insert(*next);
    }
    EXPECT_EQ(memory, shelf);
  }
}

}  // namespace
}  // namespace argiope
