#include "argiope/async/detail/frame_pool.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace argiope::detail {
namespace {

template <class Run>
void on_a_thread(Run run) {
  std::thread(run).join();
}

TEST(FramePool, BlocksOfAllSizesAreAlignedAndApart) {
  on_a_thread([] {
    struct Block {
      unsigned char* begin;
      std::size_t bytes;
    };
    std::vector<Block> blocks;
    for (int round = 0; round < 50; ++round) {
      for (std::size_t bytes = 1; bytes <= kPooledBytes + 100; bytes += 37) {
        blocks.push_back({static_cast<unsigned char*>(allocate_frame(bytes)), bytes});
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().begin) % 16, 0u);
        std::memset(blocks.back().begin, static_cast<int>(blocks.size() % 251), bytes);
      }
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const auto expected = static_cast<unsigned char>((i + 1) % 251);
      EXPECT_EQ(blocks[i].begin[0], expected);
      EXPECT_EQ(blocks[i].begin[blocks[i].bytes - 1], expected);
    }
    for (const Block& block : blocks) free_frame(block.begin, block.bytes);
  });
}

#ifndef ARGIOPE_NO_FRAME_POOL

std::vector<void*> allocate_many(std::size_t count, std::size_t bytes) {
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < count; ++i) {
    blocks.push_back(allocate_frame(bytes));
    std::memset(blocks.back(), static_cast<int>(i), bytes);
  }
  return blocks;
}
void free_all(const std::vector<void*>& blocks, std::size_t bytes) {
  for (void* block : blocks) free_frame(block, bytes);
}

TEST(FramePool, GivesTheLastBlockThatWasFreedFirst) {
  void* const block = allocate_frame(80);
  free_frame(block, 80);
  void* const again = allocate_frame(65);
  EXPECT_EQ(again, block) << "65 to 80 bytes take the same room";
  free_frame(again, 65);
}

TEST(FramePool, ThreadsThatComeAndGoShareTheMemoryOfOne) {
  std::set<void*> seen;
  for (int i = 0; i < 20; ++i) {
    on_a_thread([&] {
      for (const std::size_t bytes : {48, 336, 1008}) {
        const std::vector<void*> blocks = allocate_many(500, bytes);
        seen.insert(blocks.begin(), blocks.end());
        free_all(blocks, bytes);
      }
    });
  }
  // Slabs that other tests' threads have left may be used first, which one time or another are used up.
  EXPECT_LE(seen.size(), 2u * 3 * 500);
}

TEST(FramePool, WhatAThreadThatNeverAllocatedFreesIsUsedAgain) {
  constexpr std::size_t kBytes = 1984;
  std::set<void*> seen;
  for (int i = 0; i < 20; ++i) {
    std::vector<void*> blocks;
    on_a_thread([&] {
      blocks = allocate_many(200, kBytes);
      seen.insert(blocks.begin(), blocks.end());
    });
    on_a_thread([&] { free_all(blocks, kBytes); });
  }
  EXPECT_LE(seen.size(), 3u * 200);
}

// Two threads that take turns: what the first makes the second frees.
std::size_t blocks_taken_in_turns(std::size_t rounds, std::size_t count, std::size_t bytes) {
  std::set<void*> seen;
  std::vector<void*> blocks;
  std::barrier turn(2);
  std::thread frees([&] {
    free_frame(allocate_frame(bytes), bytes);
    for (std::size_t i = 0; i < rounds; ++i) {
      turn.arrive_and_wait();
      free_all(blocks, bytes);
      turn.arrive_and_wait();
    }
  });
  on_a_thread([&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      blocks = allocate_many(count, bytes);
      seen.insert(blocks.begin(), blocks.end());
      EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), count) << "no block is given out twice";
      turn.arrive_and_wait();
      turn.arrive_and_wait();
    }
  });
  frees.join();
  return seen.size();
}

TEST(FramePool, AMillionBlocksMadeOnOneThreadAndFreedOnAnotherTakeTheMemoryOfFew) {
  EXPECT_LE(blocks_taken_in_turns(1'000, 1'000, 1'200), 3'000u);
  EXPECT_LE(blocks_taken_in_turns(50, 20'000, 16), 60'000u) << "the smallest";
  EXPECT_LE(blocks_taken_in_turns(100, 300, kPooledBytes), 900u) << "the largest";
}

TEST(FramePool, WhatManyThreadsHandToEachOtherIsUsedAgain) {
  constexpr std::size_t kBytes = 1'504, kThreads = 4, kRounds = 300, kCount = 250;
  std::vector<std::vector<void*>> made(kThreads);
  std::vector<std::set<void*>> seen(kThreads);
  std::barrier turn(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t self = 0; self < kThreads; ++self) {
    threads.emplace_back([&, self] {
      for (std::size_t round = 0; round < kRounds; ++round) {
        made[self] = allocate_many(kCount, kBytes);
        seen[self].insert(made[self].begin(), made[self].end());
        turn.arrive_and_wait();
        // Mostly the first thread's lot; now and then another's.
        const std::size_t heir = round % 10 == 0 ? (round / 10) % kThreads : 0;
        if (self == heir) {
          for (const auto& blocks : made) free_all(blocks, kBytes);
        }
        turn.arrive_and_wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<void*> all;
  for (const auto& blocks : seen) all.insert(blocks.begin(), blocks.end());
  EXPECT_LE(all.size(), 3 * kThreads * kCount);
}

TEST(FramePool, WhatAThreadThatHasEndedHeldIsUsedByThoseThatRun) {
  constexpr std::size_t kBytes = 1'712;
  std::set<void*> seen;
  on_a_thread([&] {
    for (int i = 0; i < 20; ++i) {
      const std::vector<void*> blocks = allocate_many(500, kBytes);
      seen.insert(blocks.begin(), blocks.end());
      on_a_thread([&] {
        free_frame(allocate_frame(kBytes), kBytes);
        free_all(blocks, kBytes);
      });
    }
  });
  EXPECT_LE(seen.size(), 3u * 500);
}

// Destroyed after the thread's lists have been left to others, for it was made before them.
struct LateUser {
  void* early = nullptr;
  ~LateUser() {
    free_frame(early, 96);
    const std::vector<void*> blocks = allocate_many(50, 96);
    EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), 50u);
    free_all(blocks, 96);
  }
};

TEST(FramePool, ServesAThreadUntilItsVeryEnd) {
  for (int i = 0; i < 3; ++i) {
    on_a_thread([] {
      static thread_local LateUser user;
      user.early = nullptr;
      user.early = allocate_frame(96);
    });
  }
}

#endif

}  // namespace
}  // namespace argiope::detail
