#include "crawl/scope/redirect_loops.hpp"

#include <gtest/gtest.h>

#include <string>

namespace argiope {
namespace {

using Ids = std::vector<std::int64_t>;

TEST(RedirectLoops, AreCirclesOfAnyLengthAndWhatLeadsIntoThem) {
  RedirectLoops loops;
  EXPECT_EQ(loops.find(), Ids());
  loops.add(1, "http://a/", "http://b/");
  loops.add(2, "http://b/", "http://c/");
  loops.add(3, "http://c/", "http://b/");
  loops.add(4, "http://self/", "http://self/");
  loops.add(5, "http://fine/", "http://page/");
  loops.add(6, "http://also-fine/", "http://fine/");
  EXPECT_EQ(loops.find(), Ids({1, 2, 3, 4}));
}

TEST(RedirectLoops, AreFoundAtTheEndOfALongChain) {
  RedirectLoops loops;
  const auto url = [](int number) { return "http://a/" + std::to_string(number); };
  for (int number = 0; number < 100'000; ++number) loops.add(number + 1, url(number), url(number + 1));
  EXPECT_EQ(loops.find(), Ids());
  loops.add(100'001, url(100'000), url(99'999));
  EXPECT_EQ(loops.find().size(), 100'001u);
}

}  // namespace
}  // namespace argiope
