// A schedule as JSON, and the bounds it keeps.
#include "argiope/jobs/schedule.hpp"

#include <gmock/gmock.h>

namespace argiope {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(ScheduleJson, IsReadAndWrittenStrictly) {
  const auto schedule = parse_schedule(R"({"name":"s","trigger":"0 3 * * *","job":{"payload":{"a":1},"priority":-2},
      "misfire_grace":"1h","coalesce":"all","overlap":"queue_one","max_runs":7,"paused":true})");
  ASSERT_TRUE(schedule) << schedule.error().message;
  EXPECT_EQ(schedule->job.payload, R"({"a":1})");
  EXPECT_EQ(schedule->misfire_grace, 1h);
  EXPECT_EQ(parse_schedule(to_json(*schedule)).value(), *schedule);
  const auto why = [](std::string_view json) { return parse_schedule(json).error().message; };
  EXPECT_THAT(why(R"({"name":"s","trigger":"61 3 * * *"})"), HasSubstr("minute \"61\""));
  EXPECT_EQ(why(R"({"name":"s"})"), "a schedule needs a trigger");
  EXPECT_EQ(why(R"({"name":"","trigger":"@daily"})"), "name \"\": 1 to 512 bytes");
  EXPECT_EQ(why(R"({"name":"s","trigger":"@daily","colaesce":"all"})"), "member \"colaesce\": a schedule has none");
  EXPECT_EQ(why(R"({"name":"s","trigger":"@daily","job":{"jar":1}})"), "member \"jar\": a job has none");
  EXPECT_EQ(why(R"({"name":"s","trigger":"@daily","overlap":"both"})"),
            "overlap \"both\": skip, queue_one, queue_all, cancel_running");
  EXPECT_EQ(why(R"({"name":"s","trigger":"@daily","max_instances":0})"),
            "max_instances \"0\": a whole number, 1 to 1000000");
  EXPECT_THAT(why(R"({"name":"s","trigger":"@daily","misfire_grace":"soon"})"), HasSubstr("soon"));
  EXPECT_THAT(why("[1]"), HasSubstr("no JSON object"));
  EXPECT_EQ(check({.name = std::string(513, 'x'), .trigger = Trigger::at({})}).error().code, Errc::invalid_input);
  EXPECT_EQ(check({.name = "\xff", .trigger = Trigger::at({})}).error().code, Errc::invalid_input);
}

}  // namespace
}  // namespace argiope
