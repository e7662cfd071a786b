// A schedule as JSON, and the bounds it keeps.
#include "argiope/jobs/schedule.hpp"

#include <fmt/format.h>
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
  EXPECT_EQ(why(R"({"name":"s","trigger":"@daily","job":{"jar":1}})"), "job: member \"jar\": a job has none");
  EXPECT_EQ(why(R"({"name":"s","trigger":"@daily","overlap":"both"})"),
            "overlap \"both\": skip, queue_one, queue_all, cancel_running");
  EXPECT_EQ(why(R"({"name":"s","trigger":"@daily","max_instances":0})"),
            "max_instances \"0\": a whole number, 1 to 1000000");
  EXPECT_THAT(why(R"({"name":"s","trigger":"@daily","misfire_grace":"soon"})"), HasSubstr("soon"));
  EXPECT_THAT(why("[1]"), HasSubstr("no JSON object"));
  EXPECT_THAT(why("{\"name\":"), HasSubstr("no JSON object"));
  EXPECT_EQ(check({.name = std::string(513, 'x'), .trigger = Trigger::at({})}).error().code, Errc::invalid_input);
  EXPECT_EQ(check({.name = "\xff", .trigger = Trigger::at({})}).error().code, Errc::invalid_input);
}

TEST(ScheduleJson, AnErrorNamesTheMembersThatLeadToIt) {
  const auto why = [](std::string_view json) { return parse_schedule(json).error().message; };
  EXPECT_EQ(why(R"({"name":"s","trigger":"61 3 * * *"})"), R"(trigger: minute "61": 0 to 59)");
  EXPECT_EQ(why(R"({"name":"s","trigger":5})"), R"(trigger "5": an object or a string)");
  EXPECT_EQ(why(R"({"name":"s","trigger":{"type":"cron","expression":"61 3 * * *"}})"),
            R"(trigger.expression: minute "61": 0 to 59)");
  EXPECT_EQ(why(R"({"name":"s","trigger":{"type":"or","triggers":[{"type":"cron","expression":"@daily"},
                   {"type":"interval","hours":-1}]}})"),
            R"(trigger.triggers[1].hours "-1": a whole number, 0 to 350400)");
  EXPECT_EQ(
      why(R"({"name":"s","trigger":{"type":"or","triggers":[{"type":"cron","expression":"@daily","zome":"UTC"}]}})"),
      R"(trigger.triggers[0]: member "zome": a trigger of type cron has none)");
  EXPECT_EQ(why(R"({"name":"s","trigger":{"type":"cron","expression":"@daily","dst_gap":"jump"}})"),
            R"(trigger.dst_gap "jump": next, shift or skip)");
  EXPECT_EQ(why(R"({"name":"s","trigger":"@daily","job":{"priority":1.5}})").substr(0, 20), R"(job.priority "1.5": )");
  EXPECT_EQ(why(R"({"name":"s","trigger":"@daily","job":{"queue":""}})"), R"(job.queue "": 1 to 512 bytes)");
  EXPECT_EQ(why(R"({"name":"s","trigger":"@daily","job":[]})"), R"(job "[]": an object)");
  EXPECT_EQ(why(R"({"name":"s","trigger":"@daily","misfire_grace":"soon"})").substr(0, 32),
            R"(misfire_grace: duration "soon": )");
  EXPECT_EQ(parse_schedule(R"({"name":"s","trigger":{"type":"date","time":"2026-01-01","zone":"Mars/Olympus"}})")
                .error()
                .code,
            Errc::not_found);
}

TEST(ScheduleJson, IsWrittenTheSameForEver) {
  Schedule schedule{.name = "a\n\"b\"", .trigger = Trigger::parse("@hourly").value()};
  schedule.job = {.queue = "q", .function = "f", .key = "k", .payload = "x\ty\x01", .fill_in = true, .priority = -2};
  schedule.job.max_attempts = 4;
  schedule.misfire_grace = 90min;
  schedule.coalesce = Coalesce::all;
  schedule.most_catch_up = 7;
  schedule.max_instances = 2;
  schedule.overlap = Overlap::queue_one;
  schedule.max_runs = 9;
  schedule.paused = true;
  EXPECT_EQ(to_json(schedule),
            R"({"name":"a\n\"b\"","trigger":{"type":"cron","expression":"@hourly","zone":"UTC"},"job":{"queue":"q",)"
            R"("function":"f","key":"k","payload":"x\ty\u0001","fill_in":true,"priority":-2,"max_attempts":4},)"
            R"("misfire_grace":"1h30m","coalesce":"all","most_catch_up":7,"max_instances":2,"overlap":"queue_one",)"
            R"("max_runs":9,"paused":true})");
}

TEST(ScheduleJson, APayloadThatIsNoStringIsKeptAsJson) {
  const auto payload = [](std::string_view json) {
    return parse_schedule(fmt::format(R"({{"name":"s","trigger":"@daily","job":{{"payload":{}}}}})", json))
        .value()
        .job.payload;
  };
  EXPECT_EQ(payload(R"([ 1, {"a" : 0.5, "b":"\u00e9\n"}, null ])"), R"([1,{"a":0.5,"b":"é\n"},null])");
  EXPECT_EQ(payload("true"), "true");
  EXPECT_EQ(payload(R"("text")"), "text");
}

}  // namespace
}  // namespace argiope
