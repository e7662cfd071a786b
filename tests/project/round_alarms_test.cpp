// What a round's counts make of a project's alarms.
#include "project/run/internal/round_alarms.hpp"

#include <gmock/gmock.h>

namespace argiope {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> alarm_texts(const RoundCounts& counts, const ProjectAlarm& alarm) {
  std::vector<std::string> texts;
  for (const RoundAlarm& one : round_alarms(counts, alarm)) texts.push_back(one.text);
  return texts;
}

RuleReading reading_of(std::size_t results, std::size_t dropped, std::vector<std::uint32_t> found) {
  RuleReading reading;
  reading.results.emplace(results);
  reading.dropped = dropped;
  reading.found = std::move(found);
  return reading;
}

TEST(RoundAlarmsTest, AddUpPagesByFieldOfTheRulesThatHaveIt) {
  RoundCounts counts;
  const std::vector<std::string> item = {"title", "price"}, list = {"title"};
  counts.add(reading_of(2, 0, {2, 1}), item);
  counts.add(reading_of(1, 1, {2, 0}), item);
  counts.add(reading_of(3, 0, {3}), list);
  counts.add(reading_of(0, 0, {0, 0}), item);
  counts.add(RuleReading{}, item);
  EXPECT_EQ(counts.results, 6u);
  EXPECT_THAT(counts.fields, ElementsAre(FieldCount{"title", 7, 1, 7}, FieldCount{"price", 4, 1, 1}));
}

TEST(RoundAlarmsTest, SayInWordsWhatIsMissing) {
  const RoundCounts counts{.visits = 2'000,
                           .failed = 700,
                           .results = 1'200,
                           .fields = {{"title", 1'200, 0, 1'200}, {"price", 1'200, 0, 744}}};
  ProjectAlarm alarm{.coverage = {{"price", 0.9}, {"title", 1.0}}, .least_results = 1'500, .most_failures = 0.1};
  EXPECT_THAT(alarm_texts(counts, alarm), ElementsAre("price is in 62% of 1,200 results, at least 90% is wanted",
                                                      "the round has 1,200 results, at least 1,500 are wanted",
                                                      "35% of 2,000 visits failed, at most 10% may"));
  const auto alarms = round_alarms(counts, alarm);
  EXPECT_EQ(alarms[0].kind, RoundAlarm::Kind::coverage);
  EXPECT_EQ(alarms[0].field, "price");
  EXPECT_DOUBLE_EQ(alarms[0].measured, 0.62);
  EXPECT_EQ(to_string(alarms[2].kind), "most_failures");
}

TEST(RoundAlarmsTest, ArisesBelowTheBoundAndNotAtIt) {
  const RoundCounts counts{.visits = 10, .failed = 1, .results = 10, .fields = {{"price", 10, 0, 9}}};
  EXPECT_THAT(alarm_texts(counts, {.coverage = {{"price", 0.9}}, .least_results = 10, .most_failures = 0.1}),
              IsEmpty());
  EXPECT_EQ(alarm_texts(counts, {.coverage = {{"price", 0.91}}, .least_results = 11, .most_failures = 0.09}).size(),
            3u);
}

TEST(RoundAlarmsTest, CountWhatWasDroppedForALackingField) {
  const RoundCounts counts{.results = 60, .fields = {{"price", 100, 40, 60}}};
  EXPECT_THAT(alarm_texts(counts, {.coverage = {{"price", 0.9}}}),
              ElementsAre("price is in 60% of 100 results (40 dropped), at least 90% is wanted"));
}

TEST(RoundAlarmsTest, OfAllFieldsNamesEachThatLacks) {
  const RoundCounts counts{.results = 4, .fields = {{"a", 4, 0, 1}, {"b", 4, 0, 4}, {"c", 4, 0, 0}, {"d", 0, 0, 0}}};
  EXPECT_THAT(alarm_texts(counts, {.coverage = {{"", 0.5}}}),
              ElementsAre("a is in 25% of 4 results, at least 50% is wanted",
                          "c is in 0% of 4 results, at least 50% is wanted"));
}

TEST(RoundAlarmsTest, NeverShowTwoEqualShares) {
  const RoundCounts counts{
      .visits = 10'000, .failed = 1'001, .results = 10'000, .fields = {{"price", 10'000, 0, 8'996}}};
  EXPECT_THAT(alarm_texts(counts, {.coverage = {{"price", 0.9}}, .most_failures = 0.1}),
              ElementsAre("price is in 89.96% of 10,000 results, at least 90% is wanted",
                          "10.01% of 10,000 visits failed, at most 10% may"));
}

TEST(RoundAlarmsTest, OfAnEmptyRoundAreTheLackOfResultsAlone) {
  const ProjectAlarm alarm{.coverage = {{"price", 0.9}, {"", 0.1}}, .least_results = 1, .most_failures = 0.0};
  EXPECT_THAT(alarm_texts({}, alarm), ElementsAre("the round has 0 results, at least 1 is wanted"));
  EXPECT_THAT(alarm_texts({.visits = 1, .failed = 1, .results = 1}, alarm),
              ElementsAre("100% of 1 visit failed, at most 0% may"));
  EXPECT_THAT(alarm_texts({.visits = 5, .failed = 5}, {}), IsEmpty());
}

}  // namespace
}  // namespace argiope
