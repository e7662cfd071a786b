#include "argiope/jobs/job.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

namespace argiope {
namespace {

using enum JobState;

constexpr JobState kStates[] = {delayed, ready, running, done, cancelled, buried};

TEST(JobState, MovesAlongTheArrowsOfTheDrawingAndNoOthers) {
  const std::set<std::pair<JobState, JobState>> arrows = {
      {delayed, ready},   {delayed, cancelled}, {ready, running},     {ready, delayed},
      {ready, cancelled}, {running, done},      {running, cancelled}, {running, delayed},
      {running, ready},   {running, buried},    {buried, ready},      {buried, cancelled},
  };
  for (const JobState from : kStates) {
    for (const JobState to : kStates) {
      EXPECT_EQ(may_move(from, to), arrows.contains({from, to})) << to_string(from) << " to " << to_string(to);
    }
  }
}

TEST(JobState, NamesEachStateAndReasonDifferently) {
  std::set<std::string_view> states, reasons;
  for (const JobState state : kStates) states.insert(to_string(state));
  EXPECT_EQ(states.size(), std::size(kStates));
  const int last = static_cast<int>(WaitReason::more_important_jobs);
  for (int reason = 0; reason <= last; ++reason) reasons.insert(to_string(static_cast<WaitReason>(reason)));
  EXPECT_EQ(reasons.size(), static_cast<std::size_t>(last) + 1);
  EXPECT_EQ(to_string(WaitReason::more_important_jobs), "more important jobs ahead");
}

}  // namespace
}  // namespace argiope
