// Jobs that are there: looked at and changed.
#include <fmt/format.h>

#include "argiope/web/url.hpp"
#include "serve/api_fixture.hpp"

namespace argiope {
namespace {

using ApiJobs = ApiTest;

TEST_F(ApiJobs, AJobIsFoundByItsIdOrItsName) {
  put_job(R"({"queue":"mail","id":"order 7/ü","payload":"p"})");
  EXPECT_EQ(get("/v1/jobs/1").text("/name"), "order 7/ü");
  EXPECT_EQ(get("/v1/jobs/order%207%2F%C3%BC").text("/id"), "1");
  EXPECT_EQ(get("/v1/jobs/2").problem(), "not_found");
  EXPECT_EQ(get("/v1/jobs/nobody").problem(), "not_found");
  EXPECT_EQ(get("/v1/jobs/0").problem(), "invalid_input");
  EXPECT_EQ(get("/v1/jobs/99999999999999999999").problem(), "invalid_input");
  EXPECT_EQ(get("/v1/jobs/%ff%00").problem(), "not_found");
}

TEST_F(ApiJobs, BehindAnEqualsSignEveryNameCanBeSaid) {
  for (const char* name : {".", "..", "change", "=", "=x", "a/b", "plain"}) {
    const std::string id = put_job(fmt::format(R"({{"queue":"mail","id":"{}"}})", name));
    const std::string path = "/v1/jobs/=" + percent_encode(name);
    EXPECT_EQ(get(path).text("/id"), id) << name;
    EXPECT_EQ(patch(path, R"({"priority":3})").text("/outcome"), "changed") << name;
    EXPECT_EQ(get(path + "/explain").text("/id"), id) << name;
  }
  EXPECT_EQ(get("/v1/jobs/=1").text("/id"), "1");
  EXPECT_EQ(get("/v1/jobs/change").problem(), "method_not_allowed");
  EXPECT_EQ(get("/v1/jobs/=").problem(), "not_found");
  put("/v1/queues/=..", "{}");
  EXPECT_EQ(get("/v1/queues/%3D..").text("/name"), "..");
  EXPECT_EQ(put("/v1/queues/=", "{}").problem(), "invalid_input");
}

TEST_F(ApiJobs, APageGoesOnWhereTheOneBeforeEnded) {
  std::string lines;
  for (int i = 0; i < 2500; ++i)
    lines += fmt::format("{{\"queue\":\"{}\",\"key\":\"k{}\"}}\n", i % 2 ? "odd" : "even", i % 5);
  ask(HttpMethod::post, "/v1/jobs", lines, {{"Content-Type", "application/x-ndjson"}});
  std::size_t seen = 0, pages = 0;
  std::string after = "0";
  for (; after != "null"; ++pages) {
    const Answered page = get("/v1/jobs?limit=1000&queue=odd&after=" + after);
    seen += page.at("/jobs").as_array().size();
    after = page.text("/next");
  }
  EXPECT_EQ(seen, 1250u);
  EXPECT_EQ(pages, 2u);
  EXPECT_EQ(get("/v1/jobs").at("/jobs").as_array().size(), 100u);
  EXPECT_EQ(get("/v1/jobs?limit=1000&queue=odd&key=k1&after=0").at("/jobs").as_array().size(), 250u);
  EXPECT_EQ(get("/v1/jobs?limit=250&queue=odd&key=k1").text("/next"), "null");
}

TEST_F(ApiJobs, PayloadsAreInAListWhenTheyAreAskedFor) {
  put_job(R"({"queue":"mail","payload":"hello"})");
  EXPECT_EQ(get("/v1/jobs").text("/jobs/0/payload"), "");
  EXPECT_EQ(get("/v1/jobs?payloads=1").text("/jobs/0/payload"), "hello");
}

// The ids of a page, with commas between.
std::string ids_in(const Answered& page) {
  std::string ids;
  for (std::size_t i = 0; i < page.at("/jobs").as_array().size(); ++i) {
    ids += fmt::format("{}{}", ids.empty() ? "" : ",", page.text(fmt::format("/jobs/{}/id", i)));
  }
  return ids;
}

TEST_F(ApiJobs, APageMayBeginWithTheNewestAndGoDown) {
  for (int i = 0; i < 5; ++i) put_job(R"({"queue":"mail"})");
  const Answered page = get("/v1/jobs?order=newest&limit=2");
  EXPECT_EQ(ids_in(page), "5,4");
  EXPECT_EQ(page.text("/next"), "4");
  EXPECT_EQ(ids_in(get("/v1/jobs?order=newest&limit=2&after=4")), "3,2");
  const Answered last = get("/v1/jobs?order=newest&limit=2&after=2");
  EXPECT_EQ(ids_in(last), "1");
  EXPECT_EQ(last.text("/next"), "null");
  EXPECT_EQ(get("/v1/jobs?order=best").problem(), "invalid_input");
}

TEST_F(ApiJobs, JobsAreFoundByAWordInThem) {
  put_job(R"({"queue":"mail","payload":"dear Ann, …"})");
  put_job(R"({"queue":"mail","payload":"dear Ben, …","key":"ANN"})");
  put_job(R"({"queue":"mail","payload":"dear Cy"})");
  const Answered page = get("/v1/jobs?word=ann");
  EXPECT_EQ(ids_in(page), "1,2");
  EXPECT_EQ(page.text("/jobs/0/payload"), "") << "it was only searched";
  EXPECT_EQ(page.text("/next"), "null");
  EXPECT_EQ(ids_in(get("/v1/jobs?word=dear&order=newest&limit=2")), "3,2");
  EXPECT_EQ(ids_in(get("/v1/jobs?word=dora")), "");
  EXPECT_EQ(get("/v1/jobs?word=" + std::string(201, 'x')).problem(), "invalid_input");
}

TEST_F(ApiJobs, BeginningsOfPayloadsAreInAListWhenTheyAreAskedFor) {
  put_job(R"({"queue":"mail","payload":"short"})");
  put_job(fmt::format(R"({{"queue":"mail","payload":"{}ü{}"}})", std::string(199, 'x'), std::string(500, 'y')));
  const Answered page = get("/v1/jobs?beginnings=1");
  EXPECT_EQ(page.text("/jobs/0/payload"), "short");
  EXPECT_EQ(page.text("/jobs/1/payload"), std::string(199, 'x')) << "no character is cut in two";
}

TEST_F(ApiJobs, APageOfLargePayloadsEndsEarlyAndNoneIsLeftOut) {
  const std::string large(900'000, 'x');
  for (int i = 0; i < 30; ++i) put_job(fmt::format(R"({{"queue":"mail","payload":"{}"}})", large));
  std::size_t seen = 0, pages = 0;
  for (std::string after = "0"; after != "null"; ++pages) {
    const Answered page = get("/v1/jobs?payloads&limit=1000&after=" + after);
    EXPECT_LT(page.body.size(), 12'000'000u);
    seen += page.at("/jobs").as_array().size();
    after = page.text("/next");
  }
  EXPECT_EQ(seen, 30u);
  EXPECT_GT(pages, 2u);
}

TEST_F(ApiJobs, WhatAQueryAsksIsReadStrictly) {
  for (const char* query : {"limit=0", "limit=1001", "limit=x", "limit=5&limit=6", "state=sleeping", "after=-1",
                            "colour=red", "payloads=maybe", "after=9007199254740992"}) {
    EXPECT_EQ(get(fmt::format("/v1/jobs?{}", query)).problem(), "invalid_input") << query;
  }
  EXPECT_THAT(get("/v1/jobs?limit=x").text("/detail"), ::testing::HasSubstr("limit \"x\""));
  EXPECT_EQ(get("/v1/jobs?&&state=ready&").status, 200);
  EXPECT_EQ(get("/v1/jobs?queue=a%20b+c").status, 200);
}

TEST_F(ApiJobs, ListsByState) {
  put_job(R"({"queue":"mail"})");
  put_job(R"({"queue":"mail","delay_ms":60000})");
  EXPECT_EQ(get("/v1/jobs?state=ready").text("/jobs/0/id"), "1");
  EXPECT_EQ(get("/v1/jobs?state=delayed").text("/jobs/0/id"), "2");
  EXPECT_EQ(get("/v1/jobs?state=done").text("/jobs"), "[]");
}

TEST_F(ApiJobs, PriorityAndTimeAreChanged) {
  put_job(R"({"queue":"mail"})");
  EXPECT_EQ(patch("/v1/jobs/1", R"({"priority":7,"delay_ms":60000})").body, "{\"id\":1,\"outcome\":\"changed\"}\n");
  EXPECT_EQ(get("/v1/jobs/1").text("/priority"), "7");
  EXPECT_EQ(get("/v1/jobs/1").text("/state"), "delayed");
  EXPECT_EQ(patch("/v1/jobs/1", R"({"due_at":"1970-01-01T00:00:01Z"})").status, 200);
  EXPECT_EQ(get("/v1/jobs/1").text("/state"), "ready");
  for (const char* body : {"{}", R"({"state":"done"})", R"({"priority":"high"})", R"({"due_at":"soon"})",
                           R"({"due_at":1,"delay_ms":1})", R"({"priority":1,"priority":2})"}) {
    EXPECT_EQ(patch("/v1/jobs/1", body).problem(), "invalid_input") << body;
  }
  EXPECT_EQ(patch("/v1/jobs/9", R"({"priority":1})").problem(), "not_found");
}

TEST_F(ApiJobs, AJobIsForgottenUnlessItRuns) {
  put_job(R"({"queue":"mail"})");
  put_job(R"({"queue":"mail"})");
  lease();
  EXPECT_EQ(erase("/v1/jobs/1").problem(), "wrong_state");
  const Answered gone = erase("/v1/jobs/2");
  EXPECT_EQ(gone.status, 204);
  EXPECT_EQ(gone.body, "");
  EXPECT_EQ(erase("/v1/jobs/2").problem(), "not_found");
}

TEST_F(ApiJobs, AJobThatWaitsIsCancelledAndOneThatRunsIsAskedToStop) {
  put("/v1/queues/mail", R"({"keep_cancelled_ms":60000})");
  put_job(R"({"queue":"mail"})");
  put_job(R"({"queue":"mail"})");
  lease();
  EXPECT_EQ(post("/v1/jobs/2/cancel", R"({"why":"not wanted"})").text("/outcome"), "changed");
  EXPECT_EQ(get("/v1/jobs/2").text("/error"), "not wanted");
  EXPECT_EQ(post("/v1/jobs/1/cancel").text("/outcome"), "asked");
  EXPECT_EQ(post("/v1/jobs/2/cancel").problem(), "wrong_state");
  EXPECT_EQ(post("/v1/jobs/1/cancel", R"({"because":"x"})").problem(), "invalid_input");
}

TEST_F(ApiJobs, ADelayedJobIsKickedAndAReadyOneIsNot) {
  put_job(R"({"queue":"mail","delay_ms":60000})");
  EXPECT_EQ(post("/v1/jobs/1/kick").text("/outcome"), "changed");
  EXPECT_EQ(get("/v1/jobs/1").text("/state"), "ready");
  EXPECT_EQ(post("/v1/jobs/1/kick").problem(), "wrong_state");
}

TEST_F(ApiJobs, ManyAreChangedEachByItself) {
  for (int i = 0; i < 3; ++i) put_job(R"({"queue":"mail"})");
  lease();
  const Answered answered = post("/v1/jobs/change", R"({"change":"erase","ids":[1,2,9,3]})");
  EXPECT_EQ(answered.text("/replies/0/error/type"), "urn:argiope:problem:wrong_state");
  EXPECT_EQ(answered.text("/replies/1/outcome"), "changed");
  EXPECT_EQ(answered.text("/replies/2/error/status"), "404");
  EXPECT_EQ(answered.text("/replies/3/id"), "3");
  put_job(R"({"queue":"mail"})");
  EXPECT_EQ(post("/v1/jobs/change", R"({"change":"set_priority","ids":[4],"priority":9})").text("/replies/0/outcome"),
            "changed");
  EXPECT_EQ(post("/v1/jobs/change", R"({"change":"set_due","ids":[4],"delay_ms":1000})").text("/replies/0/outcome"),
            "changed");
  EXPECT_EQ(post("/v1/jobs/change", R"({"change":"cancel","ids":[4],"why":"x"})").text("/replies/0/outcome"),
            "changed");
  for (const char* body : {"{}", R"({"change":"paint","ids":[1]})", R"({"change":"set_priority","ids":[1]})",
                           R"({"change":"set_due","ids":[1]})", R"({"change":"kick","ids":["x"]})",
                           R"({"change":"kick","ids":[1],"why":"x"})"}) {
    EXPECT_EQ(post("/v1/jobs/change", body).problem(), "invalid_input") << body;
  }
}

TEST_F(ApiJobs, SaysWhyAJobDoesNotRunNow) {
  put_job(R"({"queue":"mail","delay_ms":60000})");
  const Answered why = get("/v1/jobs/1/explain");
  EXPECT_EQ(why.text("/reason"), "not due");
  EXPECT_EQ(why.text("/attempts"), "0");
  EXPECT_NE(why.text("/sentence"), "");
  EXPECT_EQ(get("/v1/jobs/2/explain").problem(), "not_found");
}

TEST_F(ApiJobs, TellsOfItsAttemptsAndWhatTheyHaveLeft) {
  put("/v1/queues/mail", R"({"keep_done_ms":60000})");
  put_job(R"({"queue":"mail"})");
  EXPECT_EQ(get("/v1/jobs/1/history").body, "{\"attempts\":[]}\n");
  EXPECT_EQ(get("/v1/jobs/1/output").problem(), "not_found");
  EXPECT_EQ(get("/v1/jobs/2/history").problem(), "not_found");
  std::string token = lease().text("/leases/0/token");
  post("/v1/leases/settle",
       fmt::format(R"({{"settlements":[{{"token":{},"outcome":"retry","error":"no","delay_ms":0}}]}})", token));
  EXPECT_EQ(get("/v1/jobs/1/history").text("/attempts/0/error"), "no");
  EXPECT_EQ(get("/v1/jobs/1/history").text("/attempts/0/worker"), "w");
  token = lease().text("/leases/0/token");
  post("/v1/leases/settle",
       fmt::format(R"({{"settlements":[{{"token":{},"outcome":"done","result_base64":"/wA="}}]}})", token));
  const Answered output = get("/v1/jobs/1/output");
  EXPECT_EQ(output.body, std::string("\xff\0", 2));
  EXPECT_EQ(output.header("Content-Type"), "application/octet-stream");
}

TEST_F(ApiJobs, OutputIsFollowedWhileTheJobRuns) {
  put_job(R"({"queue":"mail"})");
  const std::string token = lease().text("/leases/0/token");
  const auto print = [&](std::string_view what) {
    patch("/v1/leases", fmt::format(R"({{"leases":[{{"token":{},{}}}]}})", token, what));
  };
  EXPECT_EQ(get("/v1/jobs/1/output?after=0").text("/run"), "1");
  Task<Answered> poll = start(HttpMethod::get, "/v1/jobs/1/output?after=0&run=1&wait_ms=30000");
  pass(1s);
  EXPECT_FALSE(poll.done());
  print(R"("output":"f\u00fcr")");
  pass(1ms);
  ASSERT_TRUE(poll.done());
  EXPECT_EQ(poll.result().text("/output"), "f\u00fcr");
  EXPECT_EQ(poll.result().text("/next"), "4");
  EXPECT_EQ(poll.result().text("/more"), "true");
  EXPECT_EQ(get("/v1/jobs/1/output").body, "f\u00fcr");
  print(R"("output_base64":"ZsO8csM=")");
  const Answered half = get("/v1/jobs/1/output?after=4&run=1");
  EXPECT_EQ(half.text("/next"), "5") << "a character that has not come whole stands alone";
  Task<Answered> last = start(HttpMethod::get, "/v1/jobs/1/output?after=5&run=1&wait_ms=30000");
  pass(1s);
  post("/v1/leases/settle",
       fmt::format(R"({{"settlements":[{{"token":{},"outcome":"bury","error":"no","result":"f\u00fcr all"}}]}})",
                   token));
  pass(1ms);
  ASSERT_TRUE(last.done());
  EXPECT_EQ(last.result().text("/output"), "all");
  EXPECT_EQ(last.result().text("/state"), "buried");
  EXPECT_EQ(last.result().text("/error"), "no");
  EXPECT_EQ(last.result().text("/more"), "false");
  EXPECT_EQ(get("/v1/jobs/1/output?after=3&run=7").text("/after"), "0") << "of another run all is given";
  EXPECT_EQ(get("/v1/jobs/1/output?run=1").problem(), "invalid_input");
  EXPECT_EQ(patch("/v1/leases", R"({"leases":[{"token":1,"output":"a","output_base64":"YQ=="}]})").problem(),
            "invalid_input");
}

TEST_F(ApiJobs, NoMoreFollowOutputThanMayWait) {
  open({.most_pollers = 2});
  put_job(R"({"queue":"mail"})");
  lease();
  const std::string known = "/v1/jobs/1/output?after=0&run=1";
  Task<Answered> one = start(HttpMethod::get, known + "&wait_ms=20000");
  Task<Answered> two = start(HttpMethod::post, "/v1/leases", R"({"queues":["other"],"wait_ms":20000})");
  pass(1s);
  const Answered third = get(known + "&wait_ms=20000");
  EXPECT_EQ(third.status, 429);
  EXPECT_EQ(third.problem(), "too_many");
  EXPECT_EQ(third.header("Retry-After"), "1");
  EXPECT_EQ(third.text("/detail"), "2 requests wait already, as many as may");
  EXPECT_EQ(get(known).status, 200) << "it does not wait";
  EXPECT_EQ(get("/v1/jobs/1/output?after=0&run=0&wait_ms=20000").text("/run"), "1") << "what is new is told at once";
  EXPECT_EQ(post("/v1/leases", R"({"queues":["other"],"wait_ms":20000})").problem(), "too_many");
  EXPECT_FALSE(one.done() || two.done());
  pass(20s);
  ASSERT_TRUE(one.done() && two.done());
  EXPECT_EQ(one.result().text("/output"), "");
  Task<Answered> fourth = start(HttpMethod::get, known + "&wait_ms=20000");
  pass(1s);
  EXPECT_FALSE(fourth.done()) << "there is room again";
  fourth.cancel();
}

TEST_F(ApiJobs, StoppingAnswersThoseWhoFollowOutputAndRefusesThoseWhoWouldWait) {
  put_job(R"({"queue":"mail"})");
  lease();
  const std::string known = "/v1/jobs/1/output?after=0&run=1";
  Task<Answered> poll = start(HttpMethod::get, known + "&wait_ms=30000");
  pass(1s);
  run([&]() -> Coro<void> {
    api_->stop();
    co_await sleep(1ms);
  });
  ASSERT_TRUE(poll.done());
  EXPECT_EQ(poll.result().text("/more"), "true");
  const Answered refused = get(known + "&wait_ms=30000");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.problem(), "draining");
  EXPECT_EQ(refused.header("Retry-After"), "1");
  EXPECT_EQ(get(known).status, 200);
}

TEST_F(ApiJobs, OtherPathsAndMethodsAreAnsweredInTheWordsOfTheApi) {
  EXPECT_EQ(get("/v1/nothing").problem(), "not_found");
  EXPECT_EQ(post("/v1/jobs/1/paint").problem(), "not_found");
  const Answered wrong = put("/v1/jobs", "{}");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.problem(), "method_not_allowed");
  EXPECT_EQ(wrong.header("Allow"), "GET, HEAD, POST, OPTIONS");
  EXPECT_EQ(wrong.text("/request_id"), wrong.header("X-Request-Id"));
  EXPECT_EQ(ask(HttpMethod::head, "/v1/jobs").status, 200);
  const Answered asked = ask(HttpMethod::options, "/v1/jobs");
  EXPECT_EQ(asked.status, 204);
  EXPECT_EQ(asked.header("Allow"), "GET, HEAD, POST, OPTIONS");
}

TEST_F(ApiJobs, AParameterOrABodyThatARequestDoesNotTakeIsRefusedAndNothingIsDone) {
  put_job(R"({"queue":"mail","id":"a","delay_ms":60000})");
  const Answered unknown = post("/v1/jobs/a/kick?force=1");
  EXPECT_EQ(unknown.problem(), "invalid_input");
  EXPECT_EQ(unknown.text("/errors/0/parameter"), "force");
  EXPECT_EQ(post("/v1/jobs/a/kick", R"({"force":true})").text("/errors/0/pointer"), "/force");
  EXPECT_EQ(erase("/v1/jobs/a?really").problem(), "invalid_input");
  EXPECT_EQ(ask(HttpMethod::delete_, "/v1/jobs/a", R"({"why":"x"})").problem(), "invalid_input");
  EXPECT_EQ(ask(HttpMethod::get, "/v1/jobs/a", R"({"why":"x"})").problem(), "invalid_input");
  EXPECT_EQ(get("/v1/jobs?limit=0").text("/errors/0/parameter"), "limit");
  EXPECT_EQ(get("/v1/jobs/a").text("/state"), "delayed");
  EXPECT_EQ(post("/v1/jobs/a/kick?", "{}").status, 200);
}

TEST_F(ApiJobs, AnIdOfTheClientsComesBackWithTheAnswer) {
  EXPECT_EQ(ask(HttpMethod::get, "/v1/jobs", "", {{"X-Request-Id", "abc-1"}}).header("X-Request-Id"), "abc-1");
  EXPECT_NE(ask(HttpMethod::get, "/v1/jobs", "", {{"X-Request-Id", "a b"}}).header("X-Request-Id"), "a b");
}

}  // namespace
}  // namespace argiope
