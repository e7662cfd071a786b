// POST /v1/jobs.
#include <fmt/format.h>

#include "serve/api_fixture.hpp"

namespace argiope {
namespace {

using ApiPuts = ApiTest;

TEST_F(ApiPuts, OneJobIsAddedAndAnsweredWithItsId) {
  const Answered answered = post("/v1/jobs", R"({"queue":"mail","payload":"hello"})");
  EXPECT_EQ(answered.status, 201);
  EXPECT_EQ(answered.body, "{\"id\":1,\"outcome\":\"added\"}\n");
  EXPECT_EQ(answered.header("Content-Type"), "application/json");
  EXPECT_NE(answered.header("X-Request-Id"), "");
  EXPECT_EQ(get("/v1/jobs/1").text("/payload"), "hello");
}

TEST_F(ApiPuts, WhatCurlSendsByItselfIsTakenForJson) {
  EXPECT_EQ(
      ask(HttpMethod::post, "/v1/jobs", R"({"queue":"mail"})", {{"content-type", "application/x-www-form-urlencoded"}})
          .status,
      201);
  EXPECT_EQ(
      ask(HttpMethod::post, "/v1/jobs", R"({"queue":"mail"})", {{"Content-Type", "application/json; charset=utf-8"}})
          .status,
      201);
  const Answered other = ask(HttpMethod::post, "/v1/jobs", R"({"queue":"mail"})", {{"Content-Type", "text/html"}});
  EXPECT_EQ(other.status, 415);
  EXPECT_EQ(other.problem(), "unsupported_media_type");
  EXPECT_EQ(other.header("Accept-Encoding"), "");
  EXPECT_THAT(other.text("/detail"), ::testing::HasSubstr("application/json is wanted"));
}

TEST_F(ApiPuts, ABodyInACodingIsRefused) {
  for (const char* type : {"application/json", "application/x-ndjson"}) {
    const Answered coded = ask(HttpMethod::post, "/v1/jobs", R"({"queue":"mail"})",
                               {{"Content-Type", type}, {"Content-Encoding", "gzip"}});
    EXPECT_EQ(coded.status, 415);
    EXPECT_EQ(coded.problem(), "unsupported_coding");
    EXPECT_EQ(coded.header("Accept-Encoding"), "identity");
  }
  EXPECT_EQ(ask(HttpMethod::post, "/v1/jobs", R"({"queue":"mail"})", {{"Content-Encoding", "Identity"}}).status, 201);
}

TEST_F(ApiPuts, AWrongNameOfAnotherJobIsToldWithItsPlace) {
  const char* const kWrong = R"({"queue":"mail","waits_for":["none"]})";
  EXPECT_EQ(post("/v1/jobs", kWrong).text("/errors/0/pointer"), "/waits_for");
  EXPECT_EQ(post("/v1/jobs", R"({"queue":"mail","waits_for":[99]})").text("/errors/0/pointer"), "/waits_for");
  EXPECT_EQ(post("/v1/jobs", R"({"queue":"mail","batch":"none"})").text("/errors/0/pointer"), "/batch");
  EXPECT_EQ(post("/v1/jobs", R"({"queue":"mail","batch":99})").text("/errors/0/pointer"), "/batch");
  const std::string second = fmt::format(R"({{"jobs":[{{"queue":"mail"}},{}]}})", kWrong);
  EXPECT_EQ(post("/v1/jobs", second).text("/replies/1/error/errors/0/pointer"), "/jobs/1/waits_for");
  const std::string atomic = fmt::format(R"({{"atomic":true,"jobs":[{{"queue":"mail"}},{}]}})", kWrong);
  EXPECT_EQ(post("/v1/jobs", atomic).text("/errors/0/pointer"), "/jobs/1/waits_for");
}

TEST_F(ApiPuts, ThatAreRefusedLeaveNoQueueBehind) {
  put("/v1/queues/small", R"({"max_payload_bytes":3,"capacity":1,"at_capacity":"refuse"})");
  put_job(R"({"queue":"small","id":"first"})");
  const auto queues = [&] { return get("/v1/queues").body; };
  const std::string before = queues();
  const std::string wrong[] = {R"({"queue":"new","waits_for":[99]})",
                               R"({"queue":"new","waits_for":["none"]})",
                               R"({"queue":"new","batch":99})",
                               R"({"queue":"new","batch":"none"})",
                               R"({"queue":"new","waits_for":[99],"batch":1})",
                               R"({"queue":"small","payload":"1234"})",
                               R"({"queue":"small"})",
                               R"({"queue":"small","batch":99})"};
  for (const std::string& job : wrong) {
    const std::string whole[] = {
        job, fmt::format(R"({{"jobs":[{{"queue":"other"}},{}],"atomic":true}})", job),
        fmt::format(R"({{"jobs":[{{"queue":"other"}},{{"queue":"third"}}],"completion":{}}})", job),
        fmt::format(R"({{"jobs":[{}],"completion":{{"queue":"other"}}}})", job)};
    for (const std::string& body : whole) {
      EXPECT_GE(post("/v1/jobs", body).status, 400) << body;
      EXPECT_GE(ask(HttpMethod::post, "/v1/jobs", body, {{"Idempotency-Key", "once"}}).status, 400) << body;
      EXPECT_EQ(queues(), before) << body;
    }
    EXPECT_EQ(post("/v1/jobs", fmt::format(R"({{"jobs":[{}]}})", job)).status, 200) << job;
    EXPECT_EQ(queues(), before) << job;
  }
}

TEST_F(ApiPuts, OfNewQueuesMayNameThoseBeforeThem) {
  int id = 1000;
  for (const std::string key : {"", "once"}) {
    for (const std::string more : {"", R"(,"atomic":true)"}) {
      const std::string body =
          fmt::format(R"({{"jobs":[{{"queue":"a{0}","id":{0}}},{{"queue":"b{0}","waits_for":[{0}]}}]{1}}})", id, more);
      const Answered answered =
          key.empty() ? post("/v1/jobs", body)
                      : ask(HttpMethod::post, "/v1/jobs", body, {{"Idempotency-Key", fmt::format("{}{}", key, id)}});
      EXPECT_LT(answered.status, 300) << answered.body;
      EXPECT_THAT(answered.body, testing::Not(testing::HasSubstr("error"))) << body;
      EXPECT_EQ(get(fmt::format("/v1/queues/b{}", id)).status, 200);
      ++id;
    }
  }
}

TEST_F(ApiPuts, ACompletionThatIsRefusedIsToldWithItsPlace) {
  EngineOptions options;
  options.create_queues = false;
  open({}, options);
  put("/v1/queues/mail", "{}");
  EXPECT_EQ(post("/v1/jobs", R"({"jobs":[{"queue":"mail"}],"completion":{"queue":"none"}})").text("/errors/0/pointer"),
            "/completion/queue");
}

TEST_F(ApiPuts, WhatIsThereAlreadyIsAnsweredWithWhatBecameOfIt) {
  EXPECT_EQ(post("/v1/jobs", R"({"queue":"mail","id":"order 7"})").status, 201);
  const Answered again = post("/v1/jobs", R"({"queue":"mail","id":"order 7"})");
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.body, "{\"id\":1,\"outcome\":\"kept\"}\n");
  post("/v1/jobs", R"({"queue":"mail","unique":"u"})");
  EXPECT_EQ(
      post("/v1/jobs", R"({"queue":"mail","unique":"u","unique_policy":"replace","priority":3})").text("/outcome"),
      "changed");
}

TEST_F(ApiPuts, WhatIsWrongIsToldWithItsPlaceAndNothingIsDone) {
  const Answered wrong = post("/v1/jobs", R"({"queue":"mail","priority":"high"})");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_EQ(wrong.problem(), "invalid_input");
  EXPECT_EQ(wrong.text("/errors/0/pointer"), "/priority");
  EXPECT_EQ(wrong.text("/errors/0/detail"), "a whole number from -2147483648 to 2147483647");
  EXPECT_EQ(wrong.text("/request_id"), wrong.header("X-Request-Id"));
  for (const char* body : {"", "{}", "[]", "7", "{", "\xff", R"({"queue":""})", R"({"queue":"mail","colour":"red"})",
                           R"({"queue":"mail","queue":"mail"})", R"({"queue":"mail","due_at":1,"delay_ms":1})",
                           R"({"queue":"mail","payload_base64":"?"})", R"({"queue":"mail"} x)"}) {
    EXPECT_EQ(post("/v1/jobs", body).problem(), "invalid_input") << body;
  }
  EXPECT_EQ(get("/v1/jobs").text("/jobs"), "[]");
}

TEST_F(ApiPuts, APayloadIsKeptAsItWasWritten) {
  put_job(R"({"queue":"mail","payload":{ "a": [1.0, "x\"}"] }})");
  EXPECT_EQ(get("/v1/jobs/1").text("/payload"), R"({ "a": [1.0, "x\"}"] })");
  put_job(R"({"queue":"mail","payload_base64":"/wA="})");
  EXPECT_EQ(get("/v1/jobs/2").text("/payload_base64"), "/wA=");
  put_job(R"({"queue":"mail","payload":"a\u0000b\u001b[2J"})");
  EXPECT_EQ(get("/v1/jobs/3").text("/payload"), std::string("a\0b\x1b[2J", 7));
}

TEST_F(ApiPuts, AJobTooLargeForItsQueueOrBeyondItsCapacityIsRefused) {
  put("/v1/queues/small", R"({"max_payload_bytes":4,"capacity":1})");
  const Answered large = post("/v1/jobs", R"({"queue":"small","payload":"12345"})");
  EXPECT_EQ(large.status, 413);
  EXPECT_EQ(large.text("/errors/0/pointer"), "/payload");
  EXPECT_EQ(post("/v1/jobs", R"({"queue":"small"})").status, 201);
  const Answered full = post("/v1/jobs", R"({"queue":"small"})");
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(full.problem(), "queue_full");
  EXPECT_EQ(full.header("Retry-After"), "1");
}

TEST_F(ApiPuts, WhereQueuesAreMadeByNobodyElseAnUnknownOneIsNotFound) {
  open({}, {.create_queues = false});
  EXPECT_EQ(post("/v1/jobs", R"({"queue":"mail"})").problem(), "not_found");
  EXPECT_EQ(put("/v1/queues/mail", "{}").status, 200);
  EXPECT_EQ(post("/v1/jobs", R"({"queue":"mail"})").status, 201);
}

TEST_F(ApiPuts, OfManyEachIsPutOrRefusedByItself) {
  const Answered answered = post("/v1/jobs", R"({"jobs":[{"queue":"mail"},{"queue":"mail","priority":1.5},
      {"queue":"mail","payload":[1, 2]},{"name":"x"}]})");
  EXPECT_EQ(answered.status, 200);
  EXPECT_EQ(answered.text("/replies/0/id"), "1");
  EXPECT_EQ(answered.text("/replies/1/error/type"), "urn:argiope:problem:invalid_input");
  EXPECT_EQ(answered.text("/replies/1/error/errors/0/pointer"), "/jobs/1/priority");
  EXPECT_EQ(answered.text("/replies/2/outcome"), "added");
  EXPECT_EQ(answered.text("/replies/3/error/errors/0/pointer"), "/jobs/3/name");
  EXPECT_EQ(get("/v1/jobs/2").text("/payload"), "[1, 2]");
  EXPECT_EQ(get("/v1/jobs").at("/jobs").as_array().size(), 2u);
}

TEST_F(ApiPuts, AJobALineIsAJobEach) {
  const Answered answered =
      ask(HttpMethod::post, "/v1/jobs",
          "{\"queue\":\"mail\",\"payload\":{\"n\": 1}}\r\n\n  \n{\"queue\":1}\nno json\n{\"queue\":\"mail\"}",
          {{"Content-Type", "application/x-ndjson"}});
  EXPECT_EQ(answered.status, 200);
  EXPECT_EQ(answered.text("/replies/0/id"), "1");
  EXPECT_EQ(answered.text("/replies/1/error/errors/0/pointer"), "/jobs/1/queue");
  EXPECT_EQ(answered.text("/replies/2/error/errors/0/pointer"), "/jobs/2");
  EXPECT_EQ(answered.text("/replies/3/id"), "2");
  EXPECT_EQ(get("/v1/jobs/1").text("/payload"), "{\"n\": 1}");
}

TEST_F(ApiPuts, AtomicPutsAllOrNone) {
  const Answered wrong =
      post("/v1/jobs", R"({"atomic":true,"jobs":[{"queue":"mail"},{"queue":"mail","due_at":true}]})");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_EQ(wrong.text("/errors/0/pointer"), "/jobs/1/due_at");
  put("/v1/queues/small", R"({"max_payload_bytes":4})");
  const Answered large =
      post("/v1/jobs", R"({"atomic":true,"jobs":[{"queue":"mail"},{"queue":"small","payload":"12345"}]})");
  EXPECT_EQ(large.status, 413);
  EXPECT_EQ(large.text("/errors/0/pointer"), "/jobs/1/payload");
  EXPECT_EQ(get("/v1/jobs").text("/jobs"), "[]");
  EXPECT_EQ(post("/v1/jobs", R"({"atomic":true,"jobs":[{"queue":"mail"},{"queue":"mail"}]})").body,
            "{\"replies\":[{\"id\":1,\"outcome\":\"added\"},{\"id\":2,\"outcome\":\"added\"}]}\n");
}

TEST_F(ApiPuts, ACompletionWaitsForAllOthers) {
  const Answered answered =
      post("/v1/jobs", R"({"jobs":[{"queue":"mail"},{"queue":"mail"}],"completion":{"queue":"done","payload":"all"}})");
  EXPECT_EQ(answered.text("/replies/1/id"), "2");
  EXPECT_EQ(answered.text("/completion/id"), "3");
  EXPECT_EQ(get("/v1/jobs/3").text("/pending"), "2");
}

TEST_F(ApiPuts, AJobMayWaitForOneThatIsNamedBeforeIt) {
  const Answered answered = post(
      "/v1/jobs",
      R"({"jobs":[{"queue":"mail","id":"first"},{"queue":"mail","waits_for":["first"]},{"queue":"mail","waits_for":["x"]}]})");
  EXPECT_EQ(answered.text("/replies/1/id"), "2");
  EXPECT_EQ(get("/v1/jobs/2").text("/pending"), "1");
  EXPECT_EQ(answered.text("/replies/2/error/status"), "404");
}

TEST_F(ApiPuts, MoreThanARequestMayHoldIsRefusedWhole) {
  open({.most_jobs = 2});
  const std::string three = R"({"queue":"mail"},{"queue":"mail"},{"queue":"mail"})";
  EXPECT_EQ(post("/v1/jobs", "{\"jobs\":[" + three + "]}").text("/errors/0/pointer"), "/jobs");
  EXPECT_EQ(ask(HttpMethod::post, "/v1/jobs", "{\"queue\":\"a\"}\n{\"queue\":\"a\"}\n{\"queue\":\"a\"}\n",
                {{"Content-Type", "application/x-ndjson"}})
                .problem(),
            "invalid_input");
  EXPECT_EQ(post("/v1/jobs", R"({"jobs":[],"atomic":1})").text("/errors/0/pointer"), "/atomic");
  EXPECT_EQ(post("/v1/jobs", R"({"jobs":[],"queue":"a"})").problem(), "invalid_input");
  EXPECT_EQ(post("/v1/jobs", R"({"jobs":[]})").body, "{\"replies\":[]}\n");
}

TEST_F(ApiPuts, TheJobsOfARequestWaitForTenThousandOthersTogether) {
  put_job(R"({"queue":"mail"})");
  const auto waiting = [](int count) {
    std::string ids = "1";
    for (int i = 1; i < count; ++i) ids += ",1";
    return R"({"queue":"mail","waits_for":[)" + ids + "]}";
  };
  EXPECT_EQ(post("/v1/jobs", waiting(10'000)).status, 201);
  const std::string two = waiting(5'000) + "," + waiting(5'001);
  for (const char* more : {"", R"(,"atomic":true)"}) {
    const Answered refused = post("/v1/jobs", R"({"jobs":[)" + two + "]" + more + "}");
    EXPECT_EQ(refused.status, 413) << refused.body;
    EXPECT_EQ(refused.problem(), "too_large");
    EXPECT_THAT(refused.text("/detail"), ::testing::HasSubstr("put them in several requests"));
  }
  EXPECT_EQ(post("/v1/jobs", R"({"jobs":[)" + waiting(5'000) + R"(],"completion":)" + waiting(5'001) + "}").status,
            413);
  EXPECT_EQ(ask(HttpMethod::post, "/v1/jobs", waiting(5'000) + "\n" + waiting(5'001) + "\n",
                {{"Content-Type", "application/x-ndjson"}})
                .status,
            413);
  EXPECT_EQ(get("/v1/jobs").at("/jobs").as_array().size(), 2u) << "nothing was put";
  EXPECT_EQ(post("/v1/jobs", R"({"jobs":[)" + waiting(5'000) + "," + waiting(5'000) + "]}").text("/replies/1/outcome"),
            "added");
}

TEST_F(ApiPuts, ThousandsOfJobsOfOneRequestKeepTheirOrder) {
  std::string body = "{\"jobs\":[";
  for (int i = 0; i < 3000; ++i)
    body += fmt::format("{}{{\"queue\":\"q{}\",\"payload\":{{\"n\":{}}}}}", i ? "," : "", i % 3, i);
  const Answered answered = post("/v1/jobs", body + "]}");
  EXPECT_EQ(answered.at("/replies").as_array().size(), 3000u);
  for (const int i : {0, 1, 1499, 2999}) {
    const std::string id = answered.text(fmt::format("/replies/{}/id", i));
    EXPECT_EQ(get("/v1/jobs/" + id).text("/payload"), fmt::format("{{\"n\":{}}}", i));
  }
}

}  // namespace
}  // namespace argiope
