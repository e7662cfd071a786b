// Simulations: what the report says is what the schedules, queues and jobs of the configuration come to.
#include "simulate/internal/simulation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "argiope/base/random.hpp"
#include "argiope/time/time_zone.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::string_view kDay = "2026-03-02T00:00:00Z";  // a Monday

SimulationReport simulated(std::string_view text, std::string_view from = kDay, Duration span = 24h) {
  const auto configuration = parse_configuration(text, "test");
  EXPECT_TRUE(configuration) << configuration.error().message;
  if (!configuration) return {};
  const auto report = simulate(*configuration, {.from = parse_timestamp(from).value(), .span = span});
  EXPECT_TRUE(report) << report.error().message;
  return report.value_or(SimulationReport{});
}

TEST(Lateness, KnowsPercentilesToOnePercentAndTheMaximumExactly) {
  Lateness lateness;
  EXPECT_EQ(lateness.percentile(0.5), 0s);
  std::vector<Duration> all;
  Random random(3);
  for (int i = 0; i < 10'000; ++i) all.push_back(Duration{random.between(0, std::int64_t{1} << random.below(50))});
  for (const Duration late : all) lateness.add(late);
  std::ranges::sort(all);
  for (const double share : {0.0, 0.1, 0.5, 0.9, 0.99}) {
    const Duration exact = all[static_cast<std::size_t>(share * 10'000)];
    EXPECT_LE(lateness.percentile(share), exact);
    EXPECT_GE(to_seconds(lateness.percentile(share)), to_seconds(exact) * 0.99) << share;
  }
  EXPECT_EQ(lateness.max(), all.back());
  EXPECT_EQ(lateness.percentile(1), all.back());
}

TEST(Simulation, CountsTheRunsOfTheTimeAskedForAndNoOthers) {
  const SimulationReport report = simulated(R"(
[[schedule]]
name = "hourly"
trigger = "0 * * * *"
[simulate]
duration = "1m"
)");
  const ScheduleFindings& hourly = report.schedules.at(0);
  EXPECT_EQ(hourly.runs, 24u);  // midnight at the begin, and not that at the end
  EXPECT_EQ(hourly.done, 24u);
  EXPECT_EQ(hourly.first, parse_timestamp("2026-03-02T00:00:00Z").value());
  EXPECT_EQ(hourly.last, parse_timestamp("2026-03-02T23:00:00Z").value());
  EXPECT_EQ(hourly.next, parse_timestamp("2026-03-03T00:00:00Z").value());
  EXPECT_EQ(hourly.lateness.count(), 24u);
  EXPECT_EQ(hourly.lateness.max(), 0s);
  EXPECT_EQ(report.at_once.most, 1u);
  EXPECT_EQ(report.in_a_second.most, 1u);
  EXPECT_EQ(report.in_an_hour.most, 1u);
  EXPECT_EQ(std::accumulate(report.fires.begin(), report.fires.end(), 0u), 24u);
  EXPECT_TRUE(report.assumed.empty());
}

TEST(Simulation, SkipsWhatItsOverlapPolicySkips) {
  const SimulationReport report = simulated(R"(
[[schedule]]
name = "slow"
trigger = "*/10 * * * *"
[simulate]
duration = "15m"
)");
  // Each run takes up the time of one more.
  EXPECT_EQ(report.schedules.at(0).runs, 72u);
  EXPECT_EQ(report.schedules.at(0).skipped, 72u);
  EXPECT_EQ(report.schedules.at(0).most_running, 1);
  EXPECT_EQ(report.queues.at(0).trend, Trend::keeps_up);
}

TEST(Simulation, SeesAQueuePileUpAndHowFast) {
  const SimulationReport report = simulated(R"(
[[queue]]
name = "default"
workers = 1
[[schedule]]
name = "slow"
trigger = "*/10 * * * *"
overlap = "queue_all"
[simulate]
duration = "20m"
)",
                                            kDay, std::chrono::days{10});
  const QueueFindings& queue = report.queues.at(0);
  EXPECT_EQ(queue.put, 1440u);
  EXPECT_EQ(queue.trend, Trend::piles_up);
  EXPECT_NEAR(queue.growth_per_day, 72, 1);
  EXPECT_EQ(queue.most_running, 1);
  EXPECT_NEAR(queue.mean_running, 1, 0.001);
  EXPECT_EQ(queue.done + 1 + static_cast<std::uint64_t>(queue.waiting), 1440u);
  EXPECT_EQ(report.schedules.at(0).waiting, static_cast<std::uint64_t>(queue.waiting));
  EXPECT_EQ(queue.lateness.count(), 1440u);  // those that wait are late, too
  EXPECT_GT(queue.lateness.max(), 4 * 24h);
}

TEST(Simulation, TellsBurstsThatAreWorkedOffFromWhatPilesUp) {
  const SimulationReport report = simulated(R"(
[[queue]]
name = "default"
workers = 1
[[schedule]]
name = "burst"
trigger = "* 8 * * *"
overlap = "queue_all"
[simulate]
duration = "10m"
)",
                                            kDay, std::chrono::days{10});
  EXPECT_EQ(report.queues.at(0).trend, Trend::keeps_up);
  EXPECT_GT(report.queues.at(0).most_waiting, 50);
  EXPECT_EQ(report.queues.at(0).waiting, 0);
}

TEST(Simulation, SaysWhatNobodyWorksOff) {
  const SimulationReport report = simulated(R"(
[[queue]]
name = "default"
workers = 0
[[schedule]]
name = "a"
trigger = "0 * * * *"
max_instances = 1000
)");
  EXPECT_EQ(report.queues.at(0).trend, Trend::not_worked);
  EXPECT_EQ(report.queues.at(0).waiting, 24);
  EXPECT_EQ(report.schedules.at(0).done, 0u);
}

TEST(Simulation, RetriesAndBuriesWhatFails) {
  const SimulationReport report = simulated(R"(
[[queue]]
name = "default"
max_attempts = 2
retry_first_ms = 1000
retry_jitter = 0
[[schedule]]
name = "a"
trigger = "0 * * * *"
[simulate]
failures = [1, 3, 4]
)");
  const ScheduleFindings& found = report.schedules.at(0);
  // The first run fails once, the second run twice.
  EXPECT_EQ(found.runs, 24u);
  EXPECT_EQ(found.failed, 1u);
  EXPECT_EQ(found.done, 23u);
  EXPECT_EQ(found.retries, 2u);
}

TEST(Simulation, SaysWhyASchedulesNeverRuns) {
  const SimulationReport report = simulated(R"(
[[schedule]]
name = "impossible"
trigger = "0 0 30 2 *"
[[schedule]]
name = "paused"
trigger = "* * * * *"
paused = true
[[schedule]]
name = "later"
trigger = "0 0 1 4 *"
)");
  EXPECT_EQ(report.runs, 0u);
  EXPECT_NE(report.schedules.at(0).why.find("never"), std::string::npos) << report.schedules[0].why;
  EXPECT_NE(report.schedules.at(1).why.find("paused"), std::string::npos) << report.schedules[1].why;
  EXPECT_NE(report.schedules.at(2).why.find("2026-04-01"), std::string::npos) << report.schedules[2].why;
}

TEST(Simulation, CountsWhichSchedulesMeetInOneSecond) {
  const SimulationReport report = simulated(R"(
[[schedule]]
name = "a"
trigger = "0 * * * *"
[[schedule]]
name = "b"
trigger = "0 */2 * * *"
[[schedule]]
name = "c"
trigger = "0 0 * * *"
[[schedule]]
name = "d"
trigger = "30 * * * *"
)");
  ASSERT_EQ(report.collisions.size(), 2u);
  EXPECT_EQ(report.collisions[0].schedules, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(report.collisions[0].seconds, 11u);
  EXPECT_EQ(report.collisions[1].schedules, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(report.collisions[1].seconds, 1u);
  EXPECT_EQ(report.seconds_shared, 12u);
  EXPECT_EQ(report.schedules.at(0).together, 12u);
  EXPECT_EQ(report.schedules.at(3).together, 0u);
  EXPECT_EQ(report.in_a_second.most, 3u);
}

TEST(Simulation, FindsTimesThatDoNotExistOrComeTwice) {
  const SimulationReport report = simulated(R"(
[[schedule]]
name = "cron"
trigger = { type = "cron", expression = "*/30 2 * * *", zone = "Europe/Berlin" }
[[schedule]]
name = "skipping"
trigger = { type = "cron", expression = "30 2 * * *", zone = "Europe/Berlin", dst_gap = "skip", dst_overlap = "both" }
[[schedule]]
name = "calendar"
trigger = { type = "calendar", months = 1, hour = 2, minute = 15, start_date = 2026-01-29, zone = "Europe/Berlin" }
[[schedule]]
name = "elsewhere"
trigger = "30 2 * * *"
)",
                                            "2026-03-01T00:00:00Z", std::chrono::days{300});
  const auto find = [&](std::string_view schedule, bool gap) -> const DaylightSurprise* {
    const auto found = std::ranges::find_if(
        report.daylight, [&](const DaylightSurprise& each) { return each.schedule == schedule && each.gap == gap; });
    return found == report.daylight.end() ? nullptr : &*found;
  };
  ASSERT_NE(find("cron", true), nullptr);
  EXPECT_EQ(find("cron", true)->times, 2u);
  EXPECT_EQ(find("cron", true)->change, parse_timestamp("2026-03-29T03:00:00+02:00").value());
  EXPECT_EQ(find("cron", true)->policy, "next");
  ASSERT_NE(find("cron", false), nullptr);
  EXPECT_EQ(find("cron", false)->change, parse_timestamp("2026-10-25T02:00:00+01:00").value());
  EXPECT_EQ(find("cron", false)->effect, "runs both times");
  ASSERT_NE(find("skipping", true), nullptr);
  EXPECT_EQ(find("skipping", true)->effect, "does not run");
  ASSERT_NE(find("calendar", true), nullptr);  // the 29th of March
  EXPECT_EQ(find("calendar", true)->times, 1u);
  EXPECT_EQ(find("calendar", false), nullptr);
  EXPECT_EQ(find("elsewhere", true), nullptr);
  // 300 days, one of which has the time not at all and one twice.
  EXPECT_EQ(report.schedules.at(1).runs, 300u);
}

TEST(Simulation, EndsEarlyWhenMoreJobsPileUpThanAllowed) {
  const auto configuration = parse_configuration(R"(
[[schedule]]
name = "many"
trigger = "@every 1s"
max_instances = 1000000
[simulate]
duration = "10d"
)",
                                                 "test");
  ASSERT_TRUE(configuration);
  const auto report = simulate(
      *configuration, {.from = parse_timestamp(kDay).value(), .span = std::chrono::days{5}, .most_jobs = 1000});
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->stopped.empty());
  EXPECT_LT(report->until - report->from, 20min);
  EXPECT_LT(report->runs, 1100u);
}

constexpr std::string_view kDrawn = R"(
[[queue]]
name = "default"
workers = 2
retry_first_ms = 1000
[[schedule]]
name = "a"
trigger = "*/7 * * * *"
max_instances = 5
[[schedule]]
name = "b"
trigger = { type = "interval", every = "11m", jitter = "3m", seed = "5" }
max_instances = 5
[simulate]
seed = 1
failures = 0.2
duration = { distribution = "exponential", mean = "8m" }
)";

TEST(Simulation, GivesTheSameReportForTheSameSeed) {
  const std::string once = json_report(simulated(kDrawn));
  EXPECT_EQ(once, json_report(simulated(kDrawn)));
  std::string other(kDrawn);
  other.replace(other.find("seed = 1"), 8, "seed = 2");
  EXPECT_NE(once, json_report(simulated(other)));
}

TEST(Simulation, ShowsWhatItFoundAsHtmlWithoutScriptsOrOthersFiles) {
  std::string text(kDrawn);
  text.replace(text.find("\"a\""), 3, "\"<b>&\\\"a\"");
  const std::string html = html_report(simulated(text), "x<y");
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("http:"), std::string::npos);
  EXPECT_EQ(html.find("https:"), std::string::npos);
  EXPECT_EQ(html.find("<b>&\"a"), std::string::npos);
  EXPECT_NE(html.find("&lt;b&gt;&amp;&quot;a"), std::string::npos);
  EXPECT_NE(html.find("x&lt;y"), std::string::npos);
  EXPECT_NE(html.find("prefers-color-scheme:dark"), std::string::npos);
  EXPECT_NE(html.find("<svg"), std::string::npos);
  // For narrow windows: each plot a second time, and cells that name their columns.
  const auto count = [&](std::string_view what) {
    std::size_t found = 0;
    for (std::size_t at = html.find(what); at != std::string::npos; at = html.find(what, at + 1)) ++found;
    return found;
  };
  EXPECT_GT(count("<svg class=\"wide\""), 0u);
  EXPECT_EQ(count("<svg class=\"wide\""), count("<svg class=\"narrow\""));
  EXPECT_EQ(count("<svg"), 2 * count("<svg class=\"narrow\""));
  EXPECT_GT(count("<td"), 0u);
  EXPECT_EQ(count("<td"), count("data-label=\""));
  EXPECT_EQ(count("data-label=\"\""), 0u) << "each column has a name";
  EXPECT_NE(html.find("@media(max-width:760px)"), std::string::npos);
  EXPECT_EQ(html.find("overflow-x:hidden"), std::string::npos);
}

// --- what if

// With `question` on a clock that stands still.
std::string answered(const WhatIf& question) {
  const ManualClock clock;
  const auto answer = argiope::answer(question, clock, 1min);
  EXPECT_TRUE(answer) << answer.error().message;
  return answer.value_or("");
}

WhatIf what_if() {
  WhatIf question;
  question.from = parse_timestamp(kDay).value();
  return question;
}

TEST(WhatIf, SaysWhenAQueueWillBeEmptyAndHowLongItsJobsWait) {
  WhatIf question = what_if();
  WhatIfQueue& mail = question.queues.emplace_back(WhatIfQueue{.name = "mail", .workers = 2});
  mail.jobs.waiting.resize(3);
  mail.jobs.more_waiting = 7;
  const std::string report = answered(question);
  // Ten jobs of a second by two workers: the last two begin after four seconds.
  EXPECT_THAT(report, HasSubstr(R"("empty_at":"2026-03-02T00:00:04Z")")) << report;
  EXPECT_THAT(report, HasSubstr(R"("lateness":{"count":10,"p50_ms":)"));
  EXPECT_THAT(report, HasSubstr(R"("p95_ms":39)")) << "39 and two digits: to within 1 %";
  EXPECT_THAT(report, HasSubstr(R"("max_ms":4000.0})"));
  EXPECT_THAT(report, HasSubstr(R"("done":10)"));
  mail.workers = 10;
  EXPECT_THAT(answered(question), HasSubstr(R"("max_ms":0.0)"));
}

TEST(WhatIf, PutsTheJobsThatAreExpected) {
  WhatIf question = what_if();
  WhatIfQueue& mail = question.queues.emplace_back(WhatIfQueue{.name = "mail", .workers = 4});
  mail.jobs.arrivals_per_second = 0.1;
  mail.mean_duration = 5s;
  Configuration configuration;
  configuration.queues.push_back({.name = "mail", .workers = 4});
  const auto report =
      simulate(configuration, {.from = question.from, .span = 24h, .expected = {{"mail", mail.jobs}}}).value();
  const QueueFindings& found = report.queues.at(0);
  EXPECT_NEAR(static_cast<double>(found.put), 8'640, 300);
  EXPECT_EQ(found.lateness.count(), found.put);
  EXPECT_EQ(answered(question), answered(question));
}

TEST(WhatIf, HoldsTheRateOfTheQueueAndOfItsKeys) {
  WhatIf question = what_if();
  WhatIfQueue& mail = question.queues.emplace_back(WhatIfQueue{.name = "mail", .workers = 100});
  mail.config.limits.rate = 1;
  mail.jobs.more_waiting = 61;
  EXPECT_THAT(answered(question), HasSubstr(R"("empty_at":"2026-03-02T00:01:00Z")"));
  mail.config.limits = {};
  mail.config.key_limits.concurrency = 1;
  mail.jobs = {.waiting = {{.key = "a"}, {.key = "b"}}, .more_waiting = 4};
  EXPECT_THAT(answered(question), HasSubstr(R"("empty_at":"2026-03-02T00:00:02Z")"));
}

TEST(WhatIf, TellsOfAQueueThatNobodyWorksOff) {
  WhatIf question = what_if();
  question.queues.push_back({.name = "mail", .jobs = {.more_waiting = 3}});
  const std::string report = answered(question);
  EXPECT_THAT(report, HasSubstr(R"("trend":"not_worked")"));
  EXPECT_THAT(report, HasSubstr(R"("empty_at":null)"));
}

TEST(WhatIf, RefusesWhatAFullQueueWouldRefuse) {
  WhatIf question = what_if();
  WhatIfQueue& mail = question.queues.emplace_back(WhatIfQueue{.name = "mail", .jobs = {.more_waiting = 5}});
  mail.config.capacity = 2;
  EXPECT_THAT(answered(question), HasSubstr(R"("refused":3)"));
}

TEST(WhatIf, EndsWhenItHasTakenTooLongThoughTimeDoesNotGetOn) {
  // Each look at the clock takes a second; jobs fail at once, and for ever.
  class SlowClock final : public Clock {
   public:
    TimePoint now() const noexcept override { return TimePoint{} + std::chrono::seconds{++looks_}; }
    WallTime wall_now() const noexcept override { return {}; }

   private:
    mutable std::int64_t looks_ = 0;
  } clock;
  WhatIf question = what_if();
  WhatIfQueue& mail = question.queues.emplace_back(WhatIfQueue{.name = "mail", .workers = 1});
  mail.config.retry = {.max_attempts = 1'000'000, .first = 0s, .factor = 1, .longest = 0s, .jitter = 0};
  mail.jobs.more_waiting = 10;
  mail.mean_duration = 0s;
  mail.failures = 1;
  const auto answer = argiope::answer(question, clock, 20s);
  ASSERT_TRUE(answer);
  EXPECT_THAT(*answer, HasSubstr(R"("stopped":"it has taken more than 20s")"));
  EXPECT_THAT(*answer, HasSubstr(R"("until":"2026-03-02T00:00:00)"));
}

TEST(WhatIf, EndsWhenTooManyJobsWaitOrNobodyDoes) {
  WhatIf question = what_if();
  question.most_jobs = 1'000;
  question.queues.push_back({.name = "mail", .jobs = {.more_waiting = 5'000}});
  EXPECT_THAT(answered(question), HasSubstr("more than 1000 jobs have not ended"));
  question.most_jobs = 100'000;
  question.abandoned = [] { return true; };
  EXPECT_THAT(answered(question), HasSubstr("nobody waits for it any more"));
}

}  // namespace
}  // namespace argiope
