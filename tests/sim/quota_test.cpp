// A crawl that may receive so many bytes and no more, in virtual time.
#include <gtest/gtest.h>

#include "support/simulated_web.hpp"

namespace argiope {
namespace {

TEST(Quota, StopsARunWhenSoMuchHasComeAndTheNextRunGoesOn) {
  Simulation sim({.hosts = 1, .pages = 100, .seed = 7, .features = 0});
  const std::uint64_t all = sim.run().stats.bytes;
  Simulation again({.hosts = 1, .pages = 100, .seed = 7, .features = 0});
  again.options.quota = all / 5;
  std::uint64_t received = 0;
  int runs = 0;
  for (bool finished = false; !finished && runs < 20; ++runs) {
    const CrawlReport report = again.run();
    received += report.stats.bytes;
    finished = report.finished;
    EXPECT_EQ(report.stopped_by, finished ? "" : "quota");
    // What is under way when it stops is let end.
    EXPECT_LT(report.stats.bytes, all / 5 + all / 20);
    if (!finished) EXPECT_GE(report.stats.bytes, all / 5);
  }
  EXPECT_GE(runs, 4);
  EXPECT_LE(runs, 6);
  EXPECT_GE(received, all) << "robots.txt comes once a run";
}

TEST(Quota, OfNothingIsNoLimit) {
  Simulation sim({.hosts = 1, .pages = 20, .seed = 7, .features = 0});
  EXPECT_TRUE(sim.run().finished);
}

}  // namespace
}  // namespace argiope
