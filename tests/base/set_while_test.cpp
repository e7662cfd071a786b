#include "base/internal/set_while.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace argiope {
namespace {

TEST(SetWhile, AFlagIsAsBeforeHoweverItsTimeEnds) {
  bool flag = false;
  {
    const SetWhile setting(flag);
    EXPECT_TRUE(flag);
    { const SetWhile again(flag); }
    EXPECT_TRUE(flag);
  }
  EXPECT_FALSE(flag);
  try {
    const SetWhile setting(flag);
    throw std::runtime_error("no");
  } catch (const std::runtime_error&) {
  }
  EXPECT_FALSE(flag);
}

}  // namespace
}  // namespace argiope
