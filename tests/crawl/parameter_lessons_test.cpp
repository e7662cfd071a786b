// What is learned of parameters from pages that were met under several URLs.
#include "crawl/duplicates/parameter_lessons.hpp"

#include <gtest/gtest.h>

#include <string>

namespace argiope {
namespace {

const std::string kSite = "http://h";

// Observes `/p{i}` with two values of the parameter, saying `first` and `second`; what was learned.
std::string meet_twice(ParameterLessons& lessons, int i, const std::string& name, std::uint64_t first,
                       std::uint64_t second) {
  std::string learned;
  const std::string url = kSite + "/p" + std::to_string(i) + "?x=1&" + name + "=";
  for (const auto& news : lessons.observe(url + "a", kSite, first)) learned += news.name + (news.learned ? "+" : "-");
  for (const auto& news : lessons.observe(url + "b", kSite, second)) learned += news.name + (news.learned ? "+" : "-");
  return learned;
}

TEST(ParameterLessons, LearnWhatChangesNoPageOfTwenty) {
  ParameterLessons lessons;
  for (int i = 1; i < 20; ++i) EXPECT_EQ(meet_twice(lessons, i, "s", 100 + i, 100 + i), "") << i;
  EXPECT_FALSE(lessons.is_learned(kSite, "s"));
  EXPECT_TRUE(lessons.is_empty());
  EXPECT_EQ(meet_twice(lessons, 20, "s", 120, 120), "s+");
  EXPECT_TRUE(lessons.is_learned(kSite, "s"));
  EXPECT_FALSE(lessons.is_learned("http://other", "s"));
  EXPECT_FALSE(lessons.is_learned(kSite, "x")) << "it was never seen with another value";
  lessons.count_stripped(kSite, "s");
  const auto learned = lessons.learned();
  ASSERT_EQ(learned.size(), 1u);
  EXPECT_EQ(learned[0].name, "s");
  EXPECT_EQ(learned[0].site, kSite);
  EXPECT_EQ(learned[0].pages, 20u);
  EXPECT_EQ(learned[0].stripped, 1u);
}

TEST(ParameterLessons, AreEndedForGoodByOnePageThatSaysSomethingElse) {
  ParameterLessons lessons;
  EXPECT_EQ(meet_twice(lessons, 0, "s", 1, 2), "");
  for (int i = 1; i <= 50; ++i) EXPECT_EQ(meet_twice(lessons, i, "s", 7, 7), "");
  EXPECT_FALSE(lessons.is_learned(kSite, "s"));
}

TEST(ParameterLessons, AreTakenBackWhenAPageSaysSomethingElseLater) {
  ParameterLessons lessons;
  for (int i = 1; i <= 20; ++i) meet_twice(lessons, i, "s", 7, 7);
  EXPECT_TRUE(lessons.is_learned(kSite, "s"));
  EXPECT_EQ(meet_twice(lessons, 21, "s", 7, 8), "s-");
  EXPECT_FALSE(lessons.is_learned(kSite, "s"));
  EXPECT_TRUE(lessons.is_empty());
  for (int i = 22; i <= 60; ++i) EXPECT_EQ(meet_twice(lessons, i, "s", 7, 7), "");
}

TEST(ParameterLessons, CountEachPageOnce) {
  ParameterLessons lessons;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(lessons.observe(kSite + "/p?s=" + std::to_string(i), kSite, 7).empty());
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(lessons.observe(kSite + "/same?s=1", kSite, 7).empty()) << "met again, it teaches nothing";
  EXPECT_TRUE(lessons.learned().empty());
}

TEST(ParameterLessons, SeeAParameterThatIsNotThere) {
  ParameterLessons lessons;
  for (int i = 1; i <= 20; ++i) {
    const std::string url = kSite + "/p" + std::to_string(i);
    lessons.observe(url, kSite, 100 + i);
    lessons.observe(url + ";s=1", kSite, 100 + i);
  }
  EXPECT_TRUE(lessons.is_learned(kSite, "s"));
  ParameterLessons others;
  others.observe(kSite + "/p", kSite, 1);
  others.observe(kSite + "/p?lang=de", kSite, 2);
  for (int i = 1; i <= 50; ++i) meet_twice(others, i, "lang", 7, 7);
  EXPECT_FALSE(others.is_learned(kSite, "lang"));
}

TEST(ParameterLessons, GoOnFromAnotherRun) {
  ParameterLessons lessons;
  lessons.restore(kSite, "s", true);
  lessons.restore(kSite, "lang", false);
  EXPECT_TRUE(lessons.is_learned(kSite, "s"));
  for (int i = 1; i <= 50; ++i) EXPECT_EQ(meet_twice(lessons, i, "lang", 7, 7), "");
  EXPECT_EQ(meet_twice(lessons, 1, "s", 1, 2), "s-");
}

}  // namespace
}  // namespace argiope
