#include "jobs/internal/request_memory.hpp"

#include <gtest/gtest.h>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

OnceReply sample() {
  OnceReply reply;
  reply.puts.emplace_back(PutReply{PutOutcome::added, 1, {}});
  reply.puts.emplace_back(PutReply{PutOutcome::cancelled, kMostJobId, {}});
  reply.puts.emplace_back(std::unexpected(Error{Errc::refused, std::string("queue \"q\" is full\0!", 19)}));
  reply.settlements.push_back(
      {.settled = true, .outcome = Outcome::expire, .follow_ups = {PutReply{PutOutcome::kept, 300, {}}}});
  reply.settlements.push_back({.refused = Error{Errc::internal, ""}});
  reply.settlements.push_back({});
  reply.changes.push_back({.outcome = ChangeOutcome::asked});
  return reply;
}

TEST(RequestMemory, GivesBackOutcomesIdsAndErrors) {
  const auto again = recalled(remembered(sample()));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->how, Repetition::repeated);
  EXPECT_EQ(again->puts.at(1)->id, kMostJobId);
  EXPECT_EQ(again->puts.at(1)->outcome, PutOutcome::cancelled);
  EXPECT_EQ(again->puts.at(2).error().code, Errc::refused);
  EXPECT_EQ(again->puts.at(2).error().message.size(), 19u);
  EXPECT_EQ(again->settlements.at(0).outcome, Outcome::expire);
  EXPECT_EQ(again->settlements.at(0).follow_ups.at(0).id, 300u);
  EXPECT_TRUE(again->settlements.at(1).refused);
  EXPECT_FALSE(again->settlements.at(2).settled);
  EXPECT_EQ(again->changes.at(0).outcome, ChangeOutcome::asked);
  EXPECT_EQ(remembered(*again), remembered(sample()));
}

TEST(RequestMemory, TakesAFewBytesAJob) {
  OnceReply reply;
  for (JobId id = 1'000'000; id < 1'010'000; ++id) reply.puts.emplace_back(PutReply{PutOutcome::added, id, {}});
  EXPECT_LE(remembered(reply).size(), 40'010u);
}

TEST(RequestMemory, WhatIsCutOrChangedIsRefusedOrSomethingElseButNeverMore) {
  const std::string whole = remembered(sample());
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(recalled(whole.substr(0, size))) << size;
  EXPECT_FALSE(recalled(whole + '\0'));
  Random random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = whole;
    for (auto n = 1 + random.below(3); n > 0; --n)
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    if (const auto read = recalled(bytes)) EXPECT_LE(read->puts.size() + read->settlements.size(), bytes.size());
  }
}

}  // namespace
}  // namespace argiope
