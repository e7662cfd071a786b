#include "crawl/books/id_set.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

TEST(IdSet, HoldsWhatASetWould) {
  Random random(11);
  IdSet ids;
  std::set<std::int64_t> expected;
  for (int step = 0; step < 100'000; ++step) {
    const std::int64_t id = random.chance(0.01) ? std::numeric_limits<std::int64_t>::max() - random.between(0, 100)
                                                : random.between(1, 20'000);
    if (random.chance(0.6)) {
      ids.insert(id);
      expected.insert(id);
    } else {
      ids.erase(id);
      expected.erase(id);
    }
    ASSERT_EQ(ids.size(), expected.size());
  }
  for (std::int64_t id = 0; id <= 25'000; ++id) ASSERT_EQ(ids.contains(id), expected.contains(id));
  EXPECT_FALSE(ids.contains(std::int64_t{1} << 60));
}

}  // namespace
}  // namespace argiope
