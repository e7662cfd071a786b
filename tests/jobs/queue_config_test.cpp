#include <gtest/gtest.h>

#include "argiope/jobs/job_queue.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

Errc error_of(std::string_view json) {
  const auto parsed = parse_queue_config(json);
  EXPECT_FALSE(parsed) << json;
  return parsed ? Errc::internal : parsed.error().code;
}

TEST(QueueConfig, SurvivesJson) {
  QueueConfig config;
  EXPECT_EQ(to_json(*parse_queue_config(to_json(config))), to_json(config));
  config.limits = {2.5, 4, 7, true};
  config.paused_until = WallTime{1'800'000'000'500ms};
  config.key_limits = {kUnlimitedRate, 1, 3, 1500ms};
  config.retry = {5, 2s, 1.5, 1min, 0.5, {1s, 2s}};
  config.lease_time = 30s;
  config.max_lease_expiries = 9;
  config.capacity = 1000;
  config.at_capacity = CapacityPolicy::wait;
  config.max_payload_bytes = 7;
  config.keep_done = Duration::max();
  config.keep_buried = 1h;
  config.ageing = 10s;
  config.weight = 3;
  const auto back = parse_queue_config(to_json(config));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(to_json(*back), to_json(config));
  EXPECT_EQ(back->retry.table, config.retry.table);
  EXPECT_EQ(back->keep_done, Duration::max());
  EXPECT_EQ(back->at_capacity, CapacityPolicy::wait);
  EXPECT_EQ(back->key_limits.delay, Duration(1500ms));
  EXPECT_TRUE(back->limits.paused);
  EXPECT_EQ(back->paused_until, config.paused_until);
}

TEST(QueueConfig, MissingMembersKeepTheBase) {
  QueueConfig base;
  base.weight = 5;
  base.limits.rate = 3;
  const auto parsed = parse_queue_config(R"({"rate": "unlimited", "lease_time_ms": 5})", base);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->weight, 5u);
  EXPECT_EQ(parsed->limits.rate, kUnlimitedRate);
  EXPECT_EQ(parsed->lease_time, Duration(5ms));
}

TEST(QueueConfig, NamesTheMemberThatIsWrong) {
  for (const char* json :
       {R"({"wieght": 1})", R"({"weight": 0})", R"({"weight": "1"})", R"({"weight": 1.5})", R"({"paused": 1})",
        R"({"paused_until": 1})", R"({"paused_until": "soon"})", R"({"burst": 0.5})", R"({"rate": -1})",
        R"({"rate": "none"})", R"({"at_capacity": "drop"})", R"({"retry_table_ms": [1, "x"]})",
        R"({"lease_time_ms": 0})", R"({"keep_done_ms": -1})", R"({"ageing_ms": 99999999999999})"}) {
    const auto parsed = parse_queue_config(json);
    ASSERT_FALSE(parsed) << json;
    EXPECT_EQ(parsed.error().code, Errc::invalid_input);
    const std::string text = json;
    const std::string member = text.substr(2, text.find('"', 2) - 2);
    EXPECT_NE(parsed.error().message.find(member), std::string::npos) << parsed.error().message;
  }
  EXPECT_EQ(parse_queue_config(R"({"weight": 0})").error().message,
            "queue configuration: weight 0: a whole number from 1 to 1000");
  EXPECT_EQ(parse_queue_config(R"({"retry_table_ms": [1, "x"]})")
                .error()
                .message.find("queue configuration: retry_table_ms[1] \"x\": "),
            0u);
  EXPECT_EQ(parse_queue_config(R"({"lease_time": "0s"})").error().message,
            "queue configuration: lease_time \"0s\": 1ms to 100 years");
  EXPECT_EQ(error_of("[]"), Errc::invalid_input);
  EXPECT_EQ(error_of("{"), Errc::invalid_input);
  EXPECT_EQ(error_of(""), Errc::invalid_input);
}

TEST(QueueConfig, SpansAreReadUnderTheirNamesWithoutMilliseconds) {
  const auto parsed = parse_queue_config(
      R"({"retry_first":"100ms","keep_done":"1d","keep_buried":"unlimited","lease_time":90,"key_delay":0.5,
          "retry_table":["1s",90,"1h"],"ageing":"0"})");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->retry.first, Duration{100ms});
  EXPECT_EQ(parsed->keep_done, Duration{24h});
  EXPECT_EQ(parsed->keep_buried, Duration::max());
  EXPECT_EQ(parsed->lease_time, Duration{90s});
  EXPECT_EQ(parsed->key_limits.delay, Duration{500ms});
  EXPECT_EQ(parsed->retry.table, (std::vector<Duration>{1s, 90s, 1h}));
  EXPECT_EQ(parse_queue_config(to_json(*parsed))->keep_done, Duration{24h});
  for (const char* json : {R"({"retry_first":"soon"})", R"({"retry_first":-1})", R"({"retry_first":"nan"})",
                           R"({"retry_first":null})", R"({"weight_ms":1})", R"({"retry_factor":"2s"})"}) {
    EXPECT_FALSE(parse_queue_config(json)) << json;
  }
  EXPECT_EQ(parse_queue_config(R"({"retry_first":"soon"})").error().message,
            "queue configuration: retry_first: duration \"soon\": a time such as 90s, 1h30m or 500ms, or a number of "
            "seconds, up to 200 years");
  EXPECT_NE(parse_queue_config(R"({"lease_time":"0s"})").error().message.find("lease_time"), std::string::npos);
}

TEST(RankedPriority, IsThePriorityWithoutAgeing) {
  EXPECT_EQ(ranked_priority(7, WallTime{1s}, Duration{}), 7);
  EXPECT_EQ(ranked_priority(7, WallTime{1s}, -1s), 7);
}

TEST(RankedPriority, FallsByOneForEachSpanThatAJobIsReadyLater) {
  const WallTime at{1'800'000'000s};
  EXPECT_EQ(ranked_priority(7, at, 10s) - ranked_priority(7, at + 10s, 10s), 1);
  EXPECT_EQ(ranked_priority(8, at + 10s, 10s), ranked_priority(7, at, 10s));
}

TEST(RankedPriority, NeverOverflows) {
  for (const WallTime at : {WallTime::min(), WallTime{}, WallTime{1'800'000'000s}, WallTime::max()}) {
    for (const Duration ageing : {Duration{1}, Duration(1s), Duration::max()}) {
      const auto low = ranked_priority(std::numeric_limits<std::int32_t>::min(), at, ageing);
      const auto high = ranked_priority(std::numeric_limits<std::int32_t>::max(), at, ageing);
      EXPECT_LE(low, high);
    }
  }
}

}  // namespace
}  // namespace argiope
