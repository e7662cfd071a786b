#include "crawl/hosts/internal/host_lanes.hpp"

#include <gtest/gtest.h>

#include "crawl/hosts/host.hpp"

namespace argiope {
namespace {

using Lane = HostLanes::Lane;

std::size_t places(HostLanes& lanes, Lane lane) {
  static Host host;
  std::size_t count = 0;
  while (count < 1000 && lanes.enter(lane, host)) ++count;
  return count;
}

TEST(HostLanes, LeaveAQuarterToThoseWhoAreKnownToAnswer) {
  HostLanes lanes(256);
  EXPECT_EQ(places(lanes, Lane::slow), 32u);
  EXPECT_EQ(places(lanes, Lane::fresh), 160u);
  EXPECT_EQ(places(lanes, Lane::open), 1000u);
}

TEST(HostLanes, LetSomebodyThroughHoweverFewConnectionsThereAre) {
  for (const std::size_t connections : {1, 2, 3, 4}) {
    HostLanes fresh(connections);
    EXPECT_GE(places(fresh, Lane::fresh), 1u);
    HostLanes slow(connections);
    EXPECT_EQ(places(slow, Lane::slow), 1u);
  }
}

TEST(HostLanes, WakeAsManyAsThereArePlacesTheNewOnesFirst) {
  HostLanes lanes(4);  // three for those nobody knows
  Host inside, slow, fresh;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(lanes.enter(Lane::fresh, inside));
  EXPECT_FALSE(lanes.enter(Lane::slow, slow));
  EXPECT_FALSE(lanes.enter(Lane::fresh, fresh));
  std::vector<Host*> woken;
  const auto wake = [&] { lanes.wake([&](Host& host) { woken.push_back(&host); }); };
  wake();
  EXPECT_TRUE(woken.empty());
  lanes.leave(Lane::fresh);
  wake();
  ASSERT_FALSE(woken.empty());
  EXPECT_EQ(woken.front(), &fresh);
  woken.clear();
  wake();
  EXPECT_TRUE(woken.empty());
}

}  // namespace
}  // namespace argiope
