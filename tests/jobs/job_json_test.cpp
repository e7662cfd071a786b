#include "jobs/internal/job_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr WallTime kNow{1'000'000ms};

NewJob good(std::string_view json) {
  auto job = parse_new_job(json, kNow);
  EXPECT_TRUE(job) << json << ": " << job.error().message;
  return job ? std::move(*job) : NewJob{};
}

std::string message_of(std::string_view json) {
  const auto job = parse_new_job(json, kNow);
  EXPECT_FALSE(job) << json;
  if (job) return {};
  EXPECT_EQ(job.error().code, Errc::invalid_input);
  return job.error().message;
}

TEST(ParseNewJob, NeedsNothingButAQueue) {
  const NewJob job = good(R"({"queue":"mail"})");
  EXPECT_EQ(job.queue, "mail");
  EXPECT_EQ(job.id, 0u);
  EXPECT_EQ(job.due_at, WallTime{});
  EXPECT_EQ(job.payload, "");
  EXPECT_EQ(job.if_failed, DependencyPolicy::cancel);
}

TEST(ParseNewJob, TakesEveryMember) {
  const NewJob job = good(R"( { "queue": "mail", "id": 12, "key": "ö", "unique": "u", "unique_policy": "merge",
      "run_again": true, "priority": -5, "due_at": "2026-01-01T00:00:00.5Z", "function": "send", "payload": "hello\n",
      "max_attempts": 7, "lease_time_ms": 1500, "waits_for": [1, 9007199254740991, "3"], "if_failed": "run", "batch": 4 } )");
  EXPECT_EQ(job.id, 12u);
  EXPECT_EQ(job.name, "");
  EXPECT_EQ(job.key, "ö");
  EXPECT_EQ(job.unique, "u");
  EXPECT_EQ(job.unique_policy, UniquePolicy::merge);
  EXPECT_TRUE(job.run_again);
  EXPECT_EQ(job.priority, -5);
  EXPECT_EQ(job.due_at, WallTime{1767225600500ms});
  EXPECT_EQ(job.function, "send");
  EXPECT_EQ(job.payload, "hello\n");
  EXPECT_EQ(job.max_attempts, 7u);
  EXPECT_EQ(job.lease_time, 1500ms);
  EXPECT_THAT(job.waits_for, ElementsAre(1u, kMostJobId, 3u));
  EXPECT_EQ(job.if_failed, DependencyPolicy::run);
  EXPECT_EQ(job.batch, 4u);
}

TEST(ParseNewJob, TellsIdsFromNames) {
  EXPECT_EQ(good(R"({"queue":"q","id":"17"})").id, 17u);
  EXPECT_EQ(good(R"({"queue":"q","id":"0017"})").name, "0017");
  EXPECT_EQ(good(R"({"queue":"q","id":"order-17"})").name, "order-17");
  EXPECT_EQ(good(R"({"queue":"q","id":"-17"})").name, "-17");
  for (const char* id : {"0", "-1", "1.0", "1e3", "9007199254740992", "\"9007199254740992\"", "\"0\"", "\"\"", "null",
                         "\"99999999999999999999999\"", "[1]", "\"a\\nb\"", "\"a\\u0000\""}) {
    EXPECT_THAT(message_of(std::string(R"({"queue":"q","id":)") + id + "}"), HasSubstr("id ")) << id;
  }
}

TEST(ParseNewJob, KeepsAPayloadThatIsNoStringAsItIsWritten) {
  EXPECT_EQ(good(R"({"queue":"q","payload": {"a" : [1.0, 2e3, "x,}\"]"], "b":{}} })").payload,
            R"({"a" : [1.0, 2e3, "x,}\"]"], "b":{}})");
  EXPECT_EQ(good(R"({"payload":[ ],"queue":"q"})").payload, "[ ]");
  EXPECT_EQ(good(R"({"payload":  -0.50 ,"queue":"q"})").payload, "-0.50");
  EXPECT_EQ(good(R"({"queue":"q","payload":null})").payload, "null");
  EXPECT_EQ(good(R"({"queue":"q","payload":true})").payload, "true");
  EXPECT_EQ(good(R"({"queue":"q\u0022,","p\u0061yload":[1]})").payload, "[1]");
  EXPECT_EQ(good(R"({"queue":"q","payload":"a\u0000b"})").payload, std::string("a\0b", 3));
}

TEST(ParseNewJob, CountsADelayFromNow) {
  EXPECT_EQ(good(R"({"queue":"q","delay_ms":1500})").due_at, kNow + 1500ms);
  EXPECT_EQ(good(R"({"queue":"q","delay_ms":0})").due_at, WallTime{});
  EXPECT_EQ(good(R"({"queue":"q","due_at":1500})").due_at, WallTime{1500ms});
  EXPECT_THAT(message_of(R"({"queue":"q","due_at":1500,"delay_ms":1})"), HasSubstr("not both"));
  EXPECT_EQ(parse_new_job(R"({"queue":"q","delay_ms":3153600000000})", WallTime::max() - 1s)->due_at, WallTime::max());
}

TEST(ParseNewJob, NamesTheMemberThatIsWrongAndWhatIsAllowed) {
  EXPECT_EQ(message_of(R"({"queue":"q","priority":9999999999})"),
            "priority 9999999999: a whole number from -2147483648 to 2147483647");
  EXPECT_EQ(message_of(R"({"queue":"q","priority":"9999999999"})"),
            "priority \"9999999999\": a whole number from -2147483648 to 2147483647");
  EXPECT_THAT(message_of(R"({"queue":"q","prioritiy":1})"), HasSubstr("\"prioritiy\"; there are queue, id"));
  EXPECT_THAT(message_of(R"({"queue":"q","a\nb":1})"), HasSubstr("\"a\\nb\"; there are"));  // in one line
  EXPECT_THAT(message_of(R"({"queue":"q","key":"a","key":"a"})"), HasSubstr("\"key\" is there twice"));
  EXPECT_THAT(message_of(R"({"payload":"x"})"), HasSubstr("\"queue\" is missing"));
  EXPECT_THAT(message_of(R"({"queue":""})"), HasSubstr("queue \"\": a string of 1 to 512 bytes"));
  EXPECT_THAT(message_of(R"({"queue":7})"), HasSubstr("queue 7"));
  EXPECT_THAT(message_of(R"({"queue":"q","key":")" + std::string(513, 'k') + "\"}"), HasSubstr("at most 512 bytes"));
  EXPECT_THAT(message_of(R"({"queue":"q","unique_policy":"drop"})"), HasSubstr("\"keep\", \"replace\" or \"merge\""));
  EXPECT_THAT(message_of(R"({"queue":"q","if_failed":1})"), HasSubstr("\"run\" or \"cancel\""));
  EXPECT_THAT(message_of(R"({"queue":"q","run_again":"yes"})"), HasSubstr("true or false"));
  EXPECT_THAT(message_of(R"({"queue":"q","delay_ms":-1})"), HasSubstr("delay_ms -1"));
  EXPECT_THAT(message_of(R"({"queue":"q","delay_ms":0.5})"), HasSubstr("delay_ms 0.5"));
  EXPECT_THAT(message_of(R"({"queue":"q","due_at":"soon"})"), HasSubstr("due_at \"soon\": a time like"));
  EXPECT_THAT(message_of(R"({"queue":"q","due_at":99999999999999999})"), HasSubstr("due_at"));
  EXPECT_THAT(message_of(R"({"queue":"q","max_attempts":-1})"), HasSubstr("max_attempts"));
  EXPECT_THAT(message_of(R"({"queue":"q","waits_for":7})"), HasSubstr("waits_for 7: a list"));
  EXPECT_THAT(message_of(R"({"queue":"q","waits_for":["a"]})"), HasSubstr("waits_for[0] \"a\""));
}

TEST(ParseNewJob, RefusesWhatIsNotOneObject) {
  for (const std::string json :
       {"", " ", "7", "[]", "\"queue\"", "{", R"({"queue":"q"}})", R"({"queue":"q"} {})", R"({"queue":"q",})",
        R"({queue:"q"})", R"({"queue":'q'})", R"({"queue":"q"} x)", R"({"queue":"q","payload":01})",
        R"({"queue":"q","payload":nul})", R"({"queue":"q","payload":[1,]})", "{\"queue\":\"a\nb\"}",
        R"({"queue":"\x"})", R"({"queue":"q","payload":1e999})", "\xef\xbb\xbf{}x"}) {
    EXPECT_NE(message_of(json), "") << json;
  }
  EXPECT_THAT(message_of("{\"queue\":\"\xff\"}"), HasSubstr("UTF-8"));
  EXPECT_THAT(message_of("{\"queue\":\"\xed\xa0\x80\"}"), HasSubstr("UTF-8"));
}

TEST(ParseNewJob, IsBoundedInDepthAndSize) {
  const auto nested = [](std::size_t depth) {
    return R"({"queue":"q","payload":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_EQ(good(nested(50)).payload.size(), 100u);
  EXPECT_THAT(message_of(nested(70)), HasSubstr("deeper than 64"));
  EXPECT_THAT(message_of(nested(1'000'000)), HasSubstr("deeper than 64"));
  EXPECT_EQ(good(R"({"queue":"q","payload":")" + std::string(5'000'000, 'x') + "\"}").payload.size(), 5'000'000u);
  EXPECT_THAT(message_of(nested(70)), HasSubstr("deeper than 64"));  // with a parser that has grown, too
  EXPECT_EQ(parse_new_job(std::string(kMostJobJsonBytes + 1, ' '), kNow).error().code, Errc::too_large);
}

TEST(JobRecordToJson, WritesTimesAsTextAndMissingOnesAsNull) {
  JobRecord record{.id = 3, .queue = "q\"", .payload = "a\nb"};
  record.state = JobState::buried;
  record.created_at = kNow;
  EXPECT_EQ(
      to_json(record),
      R"({"id":3,"queue":"q\"","state":"buried","key":"","priority":0,"due_at":null,"payload":"a\u000ab","attempts":0,)"
      R"("max_attempts":0,"expiries":0,"pending":0,"if_failed":"cancel","created_at":"1970-01-01T00:16:40Z",)"
      R"("ended_at":null,"result":"","error":"","worker":"","lease_until":null})");
}

TEST(JobRecordToJson, TellsALeaseTimeOfItsOwn) {
  EXPECT_THAT(to_json(JobRecord{.id = 3, .queue = "q", .lease_time = 2s}), HasSubstr(R"("lease_time_ms":2000,)"));
}

TEST(ParseJobId, LeavesNamesAlone) {
  EXPECT_EQ(*parse_job_id("12"), 12u);
  EXPECT_EQ(*parse_job_id("x12"), std::nullopt);
  for (const char* name : {"00123", "0123", "00", "01"}) EXPECT_EQ(*parse_job_id(name), std::nullopt) << name;
  EXPECT_EQ(*parse_job_id(""), std::nullopt);
  for (const char* name : {"00123", "0123", "007", "00"})
    EXPECT_EQ(*parse_job_id(name), std::nullopt) << "else it would be the job 123";
  EXPECT_FALSE(parse_job_id("0"));
  EXPECT_FALSE(parse_job_id("9007199254740992"));
}

TEST(ParseDue, TakesTimesAndMilliseconds) {
  EXPECT_EQ(parse_due("--due-at", "1500"), WallTime{1500ms});
  EXPECT_EQ(parse_due("--due-at", "2026-01-01T01:00:00+01:00"), WallTime{1767225600s});
  EXPECT_THAT(parse_due("--due-at", "tomorrow").error().message, HasSubstr("--due-at \"tomorrow\""));
}

TEST(JobJson, BytesThatAreNoTextComeAndGoAsBase64) {
  const auto job = parse_new_job(R"({"queue":"q","payload_base64":"//4AYQ=="})", WallTime{});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->payload, std::string("\xff\xfe\0a", 4));
  JobRecord record;
  record.payload = job->payload;
  record.result = "\xc3\xa4";
  const std::string json = to_json(record);
  EXPECT_NE(json.find(R"("payload_base64":"//4AYQ==")"), std::string::npos) << json;
  EXPECT_EQ(json.find("result_base64"), std::string::npos) << json;
  record.result = "\xff";
  EXPECT_NE(to_json(record).find(R"("result_base64":"/w==")"), std::string::npos);
  for (const char* text : {R"({"queue":"q","payload_base64":"a"})", R"({"queue":"q","payload_base64":7})",
                           R"({"queue":"q","payload":"x","payload_base64":"eA=="})"}) {
    EXPECT_FALSE(parse_new_job(text, WallTime{})) << text;
  }
}

TEST(JobJson, OthersMayBeNamedWhereSomebodyLooksThemUp) {
  const char* const text = R"({"queue":"q","waits_for":[3,"7","order-1","order-2"],"batch":"all of them"})";
  JobNames names;
  const auto job = parse_new_job(text, WallTime{}, &names);
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->waits_for, (std::vector<JobId>{3, 7}));
  EXPECT_EQ(names.waits_for, (std::vector<std::string>{"order-1", "order-2"}));
  EXPECT_EQ(names.batch, "all of them");
  EXPECT_TRUE(parse_new_job(R"({"queue":"q","waits_for":[3]})", WallTime{}, &names));
  EXPECT_TRUE(names.empty());
  EXPECT_FALSE(parse_new_job(text, WallTime{}));
  EXPECT_FALSE(parse_new_job(R"({"queue":"q","batch":""})", WallTime{}, &names));
}

}  // namespace
}  // namespace argiope
