// What every request is held to, whatever it asks for.
#include <fmt/format.h>

#include "serve/api_fixture.hpp"

namespace argiope {
namespace {

using ApiStrict = ApiTest;

TEST_F(ApiStrict, AMemberThatIsThereTwiceIsRefusedAndNothingIsDone) {
  put_job(R"({"queue":"mail"})");
  EXPECT_EQ(put("/v1/schedules/s", R"({"trigger":"@every 1h","job":{"queue":"mail"}})").status, 201);
  struct Request {
    HttpMethod method;
    const char* path;
    const char* body;
    const char* pointer;
  };
  constexpr HttpMethod kPost = HttpMethod::post, kPut = HttpMethod::put, kPatch = HttpMethod::patch;
  const Request kRequests[] = {
      {kPost, "/v1/leases", R"({"queues":["x"],"queues":["mail"]})", "/queues"},
      {kPost, "/v1/leases", R"({"queues":["mail"],"most":1,"most":2})", "/most"},
      {kPost, "/v1/leases", R"({"queues":["mail"],"wait_ms":0,"wait_ms":1})", "/wait_ms"},
      {kPost, "/v1/leases", R"({"queues":["mail"],"worker":"a","worker":"b"})", "/worker"},
      {kPost, "/v1/leases", R"({"queues":["mail"],"settle":[],"settle":[]})", "/settle"},
      {kPost, "/v1/leases/settle", R"({"settlements":[],"settlements":[]})", "/settlements"},
      {kPost, "/v1/jobs", R"({"jobs":[{"queue":"mail"}],"atomic":true,"atomic":false})", "/atomic"},
      {kPost, "/v1/jobs", R"({"jobs":[],"jobs":[{"queue":"mail"}]})", "/jobs"},
      {kPost, "/v1/jobs", R"({"jobs":[],"completion":{"queue":"m"},"completion":{"queue":"mail"}})", "/completion"},
      {kPost, "/v1/jobs", R"({"jobs":[],"completion":{"queue":"m","queue":"mail"}})", "/completion/queue"},
      {kPatch, "/v1/schedules/s", R"({"job":{"queue":"m","queue":"n"}})", "/job/queue"},
      {kPut, "/v1/schedules/s", R"({"trigger":"@every 1h","job":{"queue":"m","queue":"n"}})", "/job/queue"},
      {kPut, "/v1/queues/mail", R"({"paused":true,"paused":false})", "/paused"},
  };
  for (const auto& [method, path, body, pointer] : kRequests) {
    const Answered answered = ask(method, path, body);
    EXPECT_EQ(answered.problem(), "invalid_input") << body;
    EXPECT_EQ(answered.text("/errors/0/pointer"), pointer) << body;
    EXPECT_THAT(answered.text("/detail"), ::testing::HasSubstr("is there twice")) << body;
  }
  EXPECT_EQ(get("/v1/jobs").at("/jobs").as_array().size(), 1u);
  EXPECT_EQ(get("/v1/jobs/1").text("/state"), "ready");
  const Answered schedule = get("/v1/schedules/s");
  EXPECT_EQ(schedule.text("/schedule/job/queue"), "mail") << schedule.body;
}

TEST_F(ApiStrict, OfManyJobsOneWithAMemberTwiceIsRefusedByItself) {
  const Answered answered = post("/v1/jobs", R"({"jobs":[{"queue":"mail","queue":"m"},{"queue":"mail"}]})");
  EXPECT_EQ(answered.status, 200);
  EXPECT_EQ(answered.text("/replies/0/error/errors/0/pointer"), "/jobs/0/queue");
  EXPECT_EQ(answered.text("/replies/1/outcome"), "added");
}

TEST_F(ApiStrict, APayloadIsItsOwnersJsonAndMaySayANameTwice) {
  const char* const kPayload = R"({"a":1,"a":[{"b":1,"b":2}]})";
  EXPECT_EQ(post("/v1/jobs", fmt::format(R"({{"queue":"mail","payload":{}}})", kPayload)).status, 201);
  EXPECT_EQ(get("/v1/jobs/1").text("/payload"), kPayload);
  EXPECT_EQ(post("/v1/jobs", fmt::format(R"({{"jobs":[{{"queue":"mail","payload":{0}}}],
                                              "completion":{{"queue":"mail","payload":{0}}}}})",
                                         kPayload))
                .status,
            200);
  EXPECT_EQ(put("/v1/schedules/s",
                fmt::format(R"({{"trigger":"@every 1h","job":{{"queue":"mail","payload":{}}}}})", kPayload))
                .status,
            201);
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string all;
  all.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST_F(ApiStrict, MoreThanTwoMillionValuesAreTooMany) {
  constexpr std::size_t kMany = 2'000'001;
  for (const std::string& body : {R"({"jobs":[)" + repeated("{},", kMany) + "{}]}",
                                  R"({"queue":"mail","payload":[)" + repeated("1,", kMany) + "1]}"}) {
    const Answered answered = post("/v1/jobs", body);
    EXPECT_EQ(answered.status, 413);
    EXPECT_EQ(answered.problem(), "too_large");
    EXPECT_THAT(answered.text("/detail"), ::testing::HasSubstr("2000000 values"));
  }
  EXPECT_EQ(post("/v1/leases", R"({"queues":[)" + repeated("{},", kMany) + "{}]}").status, 413);
  const std::string line = R"({"queue":"mail","payload":[)" + repeated("1,", 1'500'000) + "1]}\n";
  EXPECT_EQ(ask(HttpMethod::post, "/v1/jobs", line + line, {{"Content-Type", "application/x-ndjson"}}).status, 413);
  EXPECT_EQ(get("/v1/jobs").text("/jobs"), "[]");
  EXPECT_EQ(post("/v1/jobs", R"({"queue":"mail","payload":")" + repeated("[,", 20'000) + R"("})").status, 201)
      << "text is one value";
}

TEST_F(ApiStrict, AChangeUnderAConditionIsRefusedAndNotDone) {
  EXPECT_EQ(put("/v1/queues/mail", R"({"rate":5})").status, 200);
  for (const char* const condition : {"If-Match", "If-None-Match", "If-Unmodified-Since"}) {
    for (const char* const value : {"*", R"("1")", "Sun, 29 Nov 2026 11:00:00 GMT"}) {
      for (const auto& [method, path, body] : {std::tuple(HttpMethod::put, "/v1/queues/mail", R"({"rate":6})"),
                                               std::tuple(HttpMethod::patch, "/v1/queues/mail", R"({"rate":6})"),
                                               std::tuple(HttpMethod::delete_, "/v1/queues/mail", ""),
                                               std::tuple(HttpMethod::post, "/v1/jobs", R"({"queue":"mail"})")}) {
        const Answered answered = ask(method, path, body, {{condition, value}});
        EXPECT_EQ(answered.problem(), "invalid_input") << condition;
        EXPECT_EQ(answered.text("/errors/0/header"), condition);
      }
    }
    EXPECT_EQ(ask(HttpMethod::get, "/v1/queues/mail", "", {{condition, "*"}}).status, 200) << "which changes nothing";
  }
  EXPECT_EQ(get("/v1/queues/mail").at("/config/rate").to_number<double>(), 5);
  EXPECT_EQ(get("/v1/jobs").text("/jobs"), "[]");
}

TEST_F(ApiStrict, ANumberInAPathOrAQueryHasOneSpelling) {
  put_job(R"({"queue":"mail"})");
  EXPECT_EQ(put("/v1/schedules/s", R"({"trigger":"@every 1h"})").status, 201);
  for (const char* const number :
       {"01", "%2B1", "+1", "%201", "1%20", "1.0", "1e0", "0x1", "-1", "18446744073709551617", "%D9%A1", ""}) {
    EXPECT_GE(get(fmt::format("/v1/jobs/{}", number)).status, 400) << number;
    for (const char* const path :
         {"/v1/jobs?after={}", "/v1/jobs?limit={}", "/v1/queues?limit={}", "/v1/schedules?after={}",
          "/v1/audit?after={}", "/v1/schedules/s/next?count={}", "/v1/history?from={}", "/v1/jobs/1/output?after={}",
          "/v1/jobs/1/output?after=0&run={}"}) {
      EXPECT_EQ(get(fmt::format(fmt::runtime(path), number)).problem(), "invalid_input") << path << " " << number;
    }
  }
  EXPECT_EQ(get("/v1/jobs?after=0").status, 200);
}

TEST_F(ApiStrict, BlankLinesAreNoJobs) {
  const Answered answered =
      ask(HttpMethod::post, "/v1/jobs", "\n \t\r\n{\"queue\":\"mail\"}\n\n  {\"queue\":\"mail\"}\n \n",
          {{"Content-Type", "application/x-ndjson"}});
  EXPECT_EQ(answered.at("/replies").as_array().size(), 2u) << answered.body;
  EXPECT_EQ(
      ask(HttpMethod::post, "/v1/jobs", std::string(100'000, '\n'), {{"Content-Type", "application/x-ndjson"}}).body,
      "{\"replies\":[]}\n");
}

}  // namespace
}  // namespace argiope
