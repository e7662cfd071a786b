// The shapes of URLs, and which of them are traps.
#include "crawl/duplicates/trap_watch.hpp"

#include <gtest/gtest.h>

namespace argiope {
namespace {

TEST(UrlShape, HasNumbersValuesAndRepeatsApart) {
  EXPECT_EQ(shape_of("http://h/"), "http://h/");
  EXPECT_EQ(shape_of("http://h:8080/calendar/2026-05"), "http://h:8080/calendar/#-#");
  EXPECT_EQ(shape_of("http://h/calendar/2027-11"), "http://h/calendar/#-#");
  EXPECT_EQ(shape_of("http://h/a/b/a/b/a/"), "http://h/a/b/");
  EXPECT_EQ(shape_of("http://h/a/b/"), "http://h/a/b/");
  EXPECT_EQ(shape_of("http://h/level-1/level-22/x"), "http://h/level-#/x");
  EXPECT_EQ(shape_of("http://h/s?y=1&x=2&y=3&z10"), "http://h/s?x&y&z#");
  EXPECT_EQ(shape_of("http://h/s?"), "http://h/s");
  EXPECT_EQ(shape_of("http://h/s?x=a/b"), "http://h/s?x");
  EXPECT_NE(shape_of("http://h/a/"), shape_of("http://h/a"));
  EXPECT_NE(shape_of("http://h1/a"), shape_of("http://h2/a")) << "hosts are as they are";
}

TEST(TrapWatch, IsARowOfCopiesOfOneShape) {
  TrapWatch watch(3);
  EXPECT_FALSE(watch.note("http://h/c/1", false));
  EXPECT_FALSE(watch.note("http://h/c/2", true));
  EXPECT_FALSE(watch.note("http://h/c/3", true));
  EXPECT_FALSE(watch.note("http://h/c/4", false)) << "one that is none";
  EXPECT_FALSE(watch.note("http://h/d/1", true));
  EXPECT_FALSE(watch.note("http://h/c/5", true));
  EXPECT_FALSE(watch.note("http://h/c/6", true));
  EXPECT_FALSE(watch.is_trap("http://h/c/7"));
  EXPECT_TRUE(watch.note("http://h/c/7", true));
  EXPECT_FALSE(watch.note("http://h/c/8", true)) << "it is told once";
  EXPECT_TRUE(watch.is_trap("http://h/c/9"));
  EXPECT_FALSE(watch.is_trap("http://h/c/x"));
  EXPECT_TRUE(watch.leave_out("http://h/c/9"));
  EXPECT_FALSE(watch.leave_out("http://h/d/9"));
  const auto traps = watch.traps();
  ASSERT_EQ(traps.size(), 1u);
  EXPECT_EQ(traps[0].shape, "http://h/c/#");
  EXPECT_EQ(traps[0].example, "http://h/c/7");
  EXPECT_EQ(traps[0].pages, 7u);
  EXPECT_EQ(traps[0].left_out, 1u);
}

TEST(TrapWatch, KnowsThoseOfAnotherRun) {
  TrapWatch watch(3);
  watch.restore("http://h/c/#", 3, "http://h/c/3");
  EXPECT_TRUE(watch.is_trap("http://h/c/12"));
}

}  // namespace
}  // namespace argiope
