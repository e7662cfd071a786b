#include "crawl/hosts/internal/host_health.hpp"

#include <gtest/gtest.h>

namespace argiope {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint since_start(Duration since) { return TimePoint{since}; }

TEST(HostHealth, AHostThatNeverAnsweredGetsAsManyAttemptsAsAUrl) {
  HostHealth health;
  EXPECT_TRUE(health.is_new());
  EXPECT_EQ(health.failed(Errc::dns, 3), 500ms);
  EXPECT_FALSE(health.is_new());
  EXPECT_EQ(health.failed(Errc::network, 3), 1s);
  EXPECT_EQ(health.failed(Errc::timeout, 3), std::nullopt);
}

TEST(HostHealth, WhatWillNotPassIsNotTriedTwice) {
  EXPECT_EQ(HostHealth().failed(Errc::tls, 3), std::nullopt);
  EXPECT_EQ(HostHealth().failed(Errc::refused, 3), std::nullopt);
}

TEST(HostHealth, AHostThatHasAnsweredGetsMorePatience) {
  HostHealth health;
  health.page_answered();
  Duration rests{};
  for (std::uint32_t i = 1; i < HostHealth::kMostFailures; ++i) {
    const auto rest = health.failed(Errc::tls, 1);
    ASSERT_TRUE(rest) << i;
    EXPECT_LE(*rest, HostHealth::kLongestRest);
    rests += *rest;
  }
  EXPECT_GT(rests, 3min);  // as long as a server takes to come back
  EXPECT_EQ(health.failed(Errc::network, 1), std::nullopt);
}

TEST(HostHealth, AnAnswerEndsEveryTrouble) {
  HostHealth health;
  EXPECT_TRUE(health.failed(Errc::network, 3));
  EXPECT_TRUE(health.is_slow());
  health.page_answered();
  EXPECT_TRUE(health.known_to_answer());
  EXPECT_EQ(health.failures(), 0u);
}

TEST(HostHealth, UrlsThatFailMakeTheirHostSuspectedAndAProbeClearsIt) {
  HostHealth health;
  health.page_answered();
  for (std::uint32_t i = 1; i < HostHealth::kSuspectedAfter; ++i) {
    health.url_failed(since_start(1s));
    EXPECT_FALSE(health.suspected());
    EXPECT_TRUE(health.known_to_answer());
  }
  health.url_failed(since_start(1s));
  EXPECT_TRUE(health.suspected());
  EXPECT_FALSE(health.known_to_answer());
  const auto rest = health.probe_answered(since_start(2s));
  ASSERT_TRUE(rest);
  EXPECT_LE(*rest, HostHealth::kLongestRestAfterProbe);
  EXPECT_FALSE(health.suspected());
}

TEST(HostHealth, AHostThatAnswersNothingButProbesIsLostAfterAnHour) {
  HostHealth health;
  health.page_answered();
  TimePoint now = since_start(1min);
  for (int round = 0; round < 100; ++round, now += 30s) {
    for (std::uint32_t i = 0; i < HostHealth::kSuspectedAfter; ++i) health.url_failed(now);
    ASSERT_TRUE(health.probe_answered(now)) << round;
  }
  now = since_start(1min + HostHealth::kPatience);
  for (std::uint32_t i = 0; i < HostHealth::kSuspectedAfter; ++i) health.url_failed(now);
  EXPECT_FALSE(health.probe_answered(now));
}

}  // namespace
}  // namespace argiope
