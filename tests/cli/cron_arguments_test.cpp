// What is asked about a cron expression: its dialect, rules of its own, and the zone.
#include "cli/cron_arguments.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/typed_words.hpp"

namespace argiope {
namespace {

CronArguments typed(std::vector<std::string> words) {
  CronArguments arguments;
  type_into(arguments, words);
  return arguments;
}
std::string refusal(std::vector<std::string> words) { return refused(typed(std::move(words)).options()); }

TEST(CronArguments, ADialectBringsItsOwnRules) {
  for (const CronDialect dialect : {CronDialect::argiope, CronDialect::vixie, CronDialect::quartz,
                                    CronDialect::apscheduler, CronDialect::systemd}) {
    const auto options = typed({"--dialect", std::string(to_string(dialect))}).options();
    ASSERT_TRUE(options) << options.error().message;
    EXPECT_EQ(*options, CronOptions::of(dialect));
  }
  EXPECT_EQ(typed({}).options()->dialect, CronDialect::argiope) << "where nothing is said";
}

TEST(CronArguments, ARuleThatIsSaidReplacesThatOfTheDialectAndNoOther) {
  CronOptions expected = CronOptions::of(CronDialect::quartz);
  expected.dst_gap = DstGap::skip;
  EXPECT_EQ(typed({"--dialect", "quartz", "--dst-gap", "skip"}).options(), expected);
  const auto others = typed({"--dst-overlap", "both", "--dom-dow", "and"}).options();
  ASSERT_TRUE(others);
  EXPECT_EQ(others->dst_overlap, DstOverlap::both);
  EXPECT_EQ(others->dom_dow, DomDow::both);
}

TEST(CronArguments, WhatIsNotKnownIsRefusedByName) {
  EXPECT_TRUE(refusal({"--dialect", "crontab"}).contains("\"crontab\""));
  EXPECT_TRUE(refusal({"--dst-gap", "jump"}).contains("\"jump\""));
  EXPECT_TRUE(refusal({"--dst-overlap", "twice"}).contains("\"twice\""));
  EXPECT_TRUE(refusal({"--dom-dow", "xor"}).contains("\"xor\""));
  const auto zone = typed({"--zone", "Europe/Berlln"}).zone();
  ASSERT_FALSE(zone);
  EXPECT_TRUE(zone.error().message.contains("Europe/Berlln")) << zone.error().message;
}

TEST(CronArguments, TheZoneIsUtcUnlessOneIsNamed) {
  EXPECT_EQ(typed({}).zone()->name(), "UTC");
  EXPECT_EQ(typed({"--zone", "Europe/Berlin"}).zone()->name(), "Europe/Berlin");
}

}  // namespace
}  // namespace argiope
