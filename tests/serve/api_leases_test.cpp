// Leases and workers.
#include <fmt/format.h>

#include "serve/api_fixture.hpp"

namespace argiope {
namespace {

class ApiLeases : public ApiTest {
 protected:
  Answered settle(std::string settlement) {
    return post("/v1/leases/settle", "{\"settlements\":[" + settlement + "]}");
  }
  std::string token_of(std::string more = "") { return lease(std::move(more)).text("/leases/0/token"); }
};

TEST_F(ApiLeases, AJobIsLeasedWithAllThatAWorkerNeeds) {
  put_job(R"({"queue":"mail","payload":"hello"})");
  const Answered answered = lease();
  EXPECT_EQ(answered.text("/leases/0/job/payload"), "hello");
  EXPECT_EQ(answered.text("/leases/0/job/id"), "1");
  EXPECT_EQ(answered.text("/leases/0/job/state"), "running");
  EXPECT_EQ(answered.text("/leases/0/token"), "1");
  EXPECT_EQ(answered.text("/leases/0/attempt"), "1");
  EXPECT_EQ(answered.text("/leases/0/lease_ms"), "60000");
  EXPECT_NE(answered.text("/leases/0/until"), "null");
  EXPECT_EQ(lease().body, "{\"leases\":[]}\n");
  EXPECT_EQ(get("/v1/jobs/1").text("/worker"), "w");
}

TEST_F(ApiLeases, UpToSoManyAreLeasedTheMostImportantFirst) {
  for (int i = 0; i < 5; ++i) put_job(fmt::format(R"({{"queue":"mail","priority":{}}})", i));
  put_job(R"({"queue":"other"})");
  const Answered answered = post("/v1/leases", R"({"queues":["mail","other","mail"],"most":4})");
  EXPECT_EQ(answered.at("/leases").as_array().size(), 4u);
  EXPECT_EQ(lease().text("/leases/0/job/priority"), "1");
}

TEST_F(ApiLeases, WhatIsWrongIsToldAndNothingIsLeased) {
  put_job(R"({"queue":"mail"})");
  for (const char* body :
       {"{}", R"({"queues":[]})", R"({"queues":"mail"})", R"({"queues":[""]})", R"({"queues":["mail"],"most":-1})",
        R"({"queues":["mail"],"most":1001})", R"({"queues":["mail"],"wait_ms":60001})",
        R"({"queues":["mail"],"wait_ms":-1})", R"({"queues":["mail"],"worker":""})", R"({"queues":["mail"],"wait":1})",
        R"({"queues":["mail"],"settle":{}})", R"({"queues":["mail"],"settle":[],"settle":[]})"}) {
    EXPECT_EQ(post("/v1/leases", body).problem(), "invalid_input") << body;
  }
  EXPECT_EQ(get("/v1/jobs/1").text("/state"), "ready");
}

// --- waiting

TEST_F(ApiLeases, APollThatWaitsIsWokenByAPut) {
  Task<Answered> poll = start(HttpMethod::post, "/v1/leases", R"({"queues":["mail"],"wait_ms":30000,"worker":"w"})");
  pass(5s);
  EXPECT_FALSE(poll.done());
  EXPECT_EQ(get("/v1/workers").text("/workers/0/waiting"), "true");
  put_job(R"({"queue":"mail"})");
  pass(1ms);
  ASSERT_TRUE(poll.done());
  EXPECT_EQ(poll.result().text("/leases/0/job/id"), "1");
  EXPECT_EQ(get("/v1/workers").text("/workers/0/waiting"), "false");
}

TEST_F(ApiLeases, APollEndsWithNothingWhenItsTimeIsUp) {
  Task<Answered> poll = start(HttpMethod::post, "/v1/leases", R"({"queues":["mail"],"wait_ms":30000})");
  pass(29s);
  EXPECT_FALSE(poll.done());
  pass(1s + 1ms);
  ASSERT_TRUE(poll.done());
  EXPECT_EQ(poll.result().status, 200);
  EXPECT_EQ(poll.result().body, "{\"leases\":[]}\n");
}

TEST_F(ApiLeases, AClientThatLeavesWhileItWaitsLosesNoJob) {
  // Cancelled at every turn between the put and the answer.
  for (int turns = 0; turns < 12; ++turns) {
    Task<Answered> poll =
        start(HttpMethod::post, "/v1/leases", R"({"queues":["mail"],"wait_ms":30000,"worker":"gone"})");
    pass(1s);
    Task<Answered> put = start(HttpMethod::post, "/v1/jobs", R"({"queue":"mail"})");
    for (int i = 0; i < turns; ++i) loop_.run_once(TimePoint::min());
    poll.cancel();
    pass(1s);
    ASSERT_TRUE(poll.done() && put.done());
    const std::string id = put.result().text("/id");
    if (poll.cancelled()) {
      EXPECT_EQ(get("/v1/jobs/" + id).text("/state"), "ready") << turns;
      EXPECT_EQ(get("/v1/jobs/" + id).text("/attempts"), "0") << turns;
      EXPECT_EQ(lease().text("/leases/0/job/id"), id) << turns;
    } else {
      EXPECT_EQ(poll.result().text("/leases/0/job/id"), id) << turns;
    }
    EXPECT_EQ(get("/v1/workers").text("/workers/0/waiting"), "false");
  }
}

TEST_F(ApiLeases, StoppingEndsPollsAndRefusesNewOnes) {
  Task<Answered> poll = start(HttpMethod::post, "/v1/leases", R"({"queues":["mail"],"wait_ms":30000})");
  pass(1s);
  run([&]() -> Coro<void> {
    api_->stop();
    api_->stop();
    co_await sleep(1ms);
  });
  ASSERT_TRUE(poll.done());
  EXPECT_EQ(poll.result().body, "{\"leases\":[]}\n");
  const Answered refused = lease(R"(,"wait_ms":30000)");
  EXPECT_EQ(refused.problem(), "draining");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("Retry-After"), "1");
}

TEST_F(ApiLeases, NoMorePollsThanMayWait) {
  open({.most_pollers = 2});
  const char* const kPoll = R"({"queues":["mail"],"wait_ms":30000})";
  Task<Answered> one = start(HttpMethod::post, "/v1/leases", kPoll);
  Task<Answered> two = start(HttpMethod::post, "/v1/leases", kPoll);
  pass(1s);
  const Answered third = post("/v1/leases", kPoll);
  EXPECT_EQ(third.status, 429);
  EXPECT_EQ(third.problem(), "too_many");
  EXPECT_EQ(lease().status, 200);  // does not wait
  pass(30s);
  EXPECT_TRUE(one.done() && two.done());
}

// --- renewing

TEST_F(ApiLeases, ALeaseIsRenewedForItsWholeTime) {
  put_job(R"({"queue":"mail"})");
  const std::string token = token_of();
  for (int i = 0; i < 5; ++i) {
    pass(50s);
    const Answered renewed = patch("/v1/leases", fmt::format(R"({{"leases":[{{"token":{}}}],"worker":"w"}})", token));
    EXPECT_EQ(renewed.text("/leases/0/lease_ms"), "60000");
    EXPECT_EQ(renewed.text("/leases/0/cancel"), "false");
  }
  EXPECT_EQ(settle(fmt::format(R"({{"token":{},"outcome":"done"}})", token)).text("/replies/0/outcome"), "ok");
}

TEST_F(ApiLeases, ALeaseThatRanOutIsLost) {
  put_job(R"({"queue":"mail"})");
  const std::string token = token_of();
  pass(61s);
  EXPECT_EQ(patch("/v1/leases", fmt::format(R"({{"leases":[{{"token":{}}}]}})", token)).body,
            fmt::format("{{\"leases\":[{{\"token\":{},\"lease_lost\":true}}]}}\n", token));
  EXPECT_EQ(settle(fmt::format(R"({{"token":{},"outcome":"done"}})", token)).text("/replies/0/outcome"), "lease_lost");
  EXPECT_EQ(get("/v1/workers").text("/workers/0/leases"), "0");
  EXPECT_EQ(lease().text("/leases/0/attempt"), "2");
}

TEST_F(ApiLeases, AWorkerHearsThatItsJobIsToStopAndTellsHowFarItIs) {
  put_job(R"({"queue":"mail"})");
  const std::string token = token_of();
  post("/v1/jobs/1/cancel", R"({"why":"not wanted"})");
  const Answered renewed =
      patch("/v1/leases",
            fmt::format(R"({{"leases":[{{"token":{},"progress":0.5,"message":"half"}},{{"token":99}}]}})", token));
  EXPECT_EQ(renewed.text("/leases/0/cancel"), "true");
  EXPECT_EQ(renewed.text("/leases/1/lease_lost"), "true");
  EXPECT_EQ(get("/v1/jobs/1/explain").text("/progress_message"), "half");
  settle(fmt::format(R"({{"token":{},"outcome":"cancel","error":"stopped"}})", token));
  EXPECT_EQ(get("/v1/jobs/1").problem(), "not_found");
  for (const char* body :
       {"{}", R"({"leases":1})", R"({"leases":[1]})", R"({"leases":[{"token":0}]})", R"({"leases":[{}]})",
        R"({"leases":[{"token":1,"progress":2}]})", R"({"leases":[{"token":1,"x":2}]})"}) {
    EXPECT_EQ(patch("/v1/leases", body).problem(), "invalid_input") << body;
  }
}

TEST_F(ApiLeases, ARequestThatWaitsEndsWhenAJobOfItsWorkerIsToStop) {
  for (const char* most : {"0", "5"}) {
    const std::string id = put_job(R"({"queue":"mail"})");
    const std::string token = token_of();
    Task<Answered> poll = start(HttpMethod::post, "/v1/leases",
                                fmt::format(R"({{"queues":["mail"],"most":{},"wait_ms":30000,"worker":"w"}})", most));
    Task<Answered> other =
        start(HttpMethod::post, "/v1/leases", R"({"queues":["mail"],"most":0,"wait_ms":30000,"worker":"x"})");
    pass(1s);
    post("/v1/jobs/" + id + "/cancel");
    pass(1ms);
    ASSERT_TRUE(poll.done());
    EXPECT_FALSE(other.done()) << "it is no affair of another worker's";
    EXPECT_EQ(poll.result().body, fmt::format("{{\"leases\":[],\"cancel\":[{}]}}\n", token));
    EXPECT_EQ(lease().body, "{\"leases\":[]}\n") << "it is told once";
    settle(fmt::format(R"({{"token":{},"outcome":"cancel"}})", token));
    pass(30s);
    EXPECT_EQ(other.result().body, "{\"leases\":[]}\n");
  }
}

TEST_F(ApiLeases, WhatIsToStopIsToldByTheNextRequestWhereNoneWaits) {
  for (int i = 0; i < 3; ++i) put_job(R"({"queue":"mail"})");
  lease(R"(,"most":2)");
  post("/v1/jobs/1/cancel");
  post("/v1/jobs/2/cancel");
  const Answered renewed = patch("/v1/leases", R"({"leases":[{"token":1}],"worker":"w"})");
  EXPECT_EQ(renewed.text("/leases/0/cancel"), "true");
  EXPECT_EQ(renewed.text("/cancel"), "[2]");
  const Answered next = lease(R"(,"wait_ms":30000,"most":0)");
  EXPECT_EQ(next.body, "{\"leases\":[],\"cancel\":[2]}\n");
  EXPECT_EQ(lease().text("/leases/0/job/id"), "3");
  settle(R"({"token":1,"outcome":"cancel"},{"token":2,"outcome":"cancel"})");
  EXPECT_EQ(patch("/v1/leases", R"({"leases":[],"worker":"w"})").body, "{\"leases\":[]}\n");
}

TEST_F(ApiLeases, AWorkerIsToldOnlyOfQueuesThatItsTokenMayUse) {
  open({}, {},
       {.tokens = {token_named("mails", TokenScope::work, {"mail"}), token_named("mine", TokenScope::work, {"mine"})}});
  const auto as = [&](std::string_view name, std::string body) {
    return ask_as(name, HttpMethod::post, "/v1/leases", std::move(body));
  };
  run([&]() -> Coro<void> { (void)co_await engine_->book().put({.queue = "mail"}); });
  EXPECT_EQ(as("mails", R"({"queues":["mail"],"worker":"w"})").text("/leases/0/token"), "1");
  run([&]() -> Coro<void> { (void)co_await engine_->book().cancel(1); });
  EXPECT_EQ(as("mine", R"({"queues":["mine"],"most":0,"worker":"w"})").body, "{\"leases\":[]}\n");
  EXPECT_EQ(as("mails", R"({"queues":["mail"],"most":0,"worker":"w"})").text("/cancel"), "[1]");
}

// --- a request for leases that is sent again

TEST_F(ApiLeases, ARequestThatIsRepeatedIsGivenTheSameLeasesAgain) {
  for (int i = 0; i < 4; ++i) put_job(fmt::format(R"({{"queue":"mail","payload":"{}"}})", i));
  const auto again = [&](std::string_view key = "k") {
    return ask(HttpMethod::post, "/v1/leases", R"({"queues":["mail"],"most":2,"worker":"w"})",
               {{"Idempotency-Key", key}});
  };
  const Answered first = again();
  pass(40s);
  const Answered second = again();
  EXPECT_EQ(second.text("/leases/0/token"), first.text("/leases/0/token"));
  EXPECT_EQ(second.text("/leases/1/job/payload"), "1");
  EXPECT_EQ(second.text("/leases/1/job/state"), "running");
  EXPECT_EQ(second.text("/leases/1/lease_ms"), "60000");
  pass(40s);  // they have been renewed
  settle(R"({"token":1,"outcome":"done"})");
  EXPECT_EQ(again().at("/leases").as_array().size(), 1u) << "of those that have ended, none";
  EXPECT_EQ(again("other").text("/leases/0/job/id"), "3");
  EXPECT_EQ(ask(HttpMethod::post, "/v1/leases", R"({"queues":["mail"]})", {{"Idempotency-Key", "k"}}).problem(),
            "idempotency_mismatch");
}

TEST_F(ApiLeases, ARequestThatWasGivenNothingIsANewOneWhenItIsRepeated) {
  const auto again = [&] {
    return ask(HttpMethod::post, "/v1/leases", R"({"queues":["mail"]})", {{"Idempotency-Key", "k"}});
  };
  EXPECT_EQ(again().body, "{\"leases\":[]}\n");
  put_job(R"({"queue":"mail"})");
  EXPECT_EQ(again().text("/leases/0/job/id"), "1");
  EXPECT_EQ(again().text("/leases/0/token"), "1");
}

TEST_F(ApiLeases, ARequestThatIsRepeatedTakesTheFirstOnesPlaceWhileThatWaits) {
  open();
  const auto poll = [&] {
    return loop_.create_task(asking(HttpMethod::post, "/v1/leases",
                                    R"({"queues":["mail"],"wait_ms":60000,"worker":"w"})", {{"Idempotency-Key", "k"}}));
  };
  Task<Answered> first = poll();
  pass(1s);
  Task<Answered> second = poll();
  pass(1ms);
  ASSERT_TRUE(first.done() && second.done());
  EXPECT_EQ(second.result().problem(), "busy");
  Task<Answered> third = poll();
  put_job(R"({"queue":"mail"})");
  pass(1ms);
  ASSERT_TRUE(third.done());
  EXPECT_EQ(third.result().text("/leases/0/job/id"), "1");
}

TEST_F(ApiLeases, AJobsOwnLeaseTimeIsToldAndKept) {
  put_job(R"({"queue":"mail","lease_time_ms":5000})");
  const Answered leased = lease();
  EXPECT_EQ(leased.text("/leases/0/lease_ms"), "5000");
  EXPECT_EQ(patch("/v1/leases", fmt::format(R"({{"leases":[{{"token":{}}}]}})", leased.text("/leases/0/token")))
                .text("/leases/0/lease_ms"),
            "5000");
  pass(6s);
  EXPECT_EQ(lease().text("/leases/0/attempt"), "2");
}

TEST_F(ApiLeases, TheLeasesOfOtherWorkersAreNoneOfItsBusiness) {
  put_job(R"({"queue":"mail"})");
  std::uint64_t token = 0;
  run([&]() -> Coro<void> {
    token = value_or_throw(co_await engine_->lease({.queues = {"mail"}, .worker = "inside"})).at(0).token;
  });
  EXPECT_EQ(settle(fmt::format(R"({{"token":{},"outcome":"done"}})", token)).text("/replies/0/error/type"),
            "urn:argiope:problem:forbidden");
  EXPECT_EQ(patch("/v1/leases", fmt::format(R"({{"leases":[{{"token":{}}}]}})", token)).text("/leases/0/lease_lost"),
            "true");
  EXPECT_EQ(get("/v1/workers").text("/workers"), "[]");
  EXPECT_EQ(erase("/v1/workers/inside").problem(), "not_found");
}

// --- settling

TEST_F(ApiLeases, AResultThatNoAnswerCouldHaveIsRefused) {
  put_job(R"({"queue":"mail"})");
  const std::string token = token_of(), long_text(16 * 1024 * 1024 + 1, 'x');
  for (const std::string& result : {"\"" + long_text + "\"", "[\"" + long_text + "\"]"}) {
    const Answered answered = settle(fmt::format(R"({{"token":{},"outcome":"done","result":{}}})", token, result));
    EXPECT_EQ(answered.text("/replies/0/error/errors/0/pointer"), "/settlements/0/result");
    EXPECT_THAT(answered.text("/replies/0/error/detail"), ::testing::HasSubstr("16777216 bytes"));
  }
  EXPECT_EQ(get("/v1/jobs/1").text("/state"), "running");
  const std::string longest = long_text.substr(1);
  EXPECT_EQ(settle(fmt::format(R"({{"token":{},"outcome":"done","result":"{}"}})", token, longest))
                .text("/replies/0/outcome"),
            "ok");
}

TEST_F(ApiLeases, EachOutcomeDoesWhatItSays) {
  put("/v1/queues/mail", R"({"keep_done_ms":60000,"keep_cancelled_ms":60000})");
  const auto after = [&](const char* outcome) {
    const std::string id = put_job(R"({"queue":"mail"})");
    const Answered settled = settle(fmt::format(R"({{"token":{},{}}})", token_of(), outcome));
    EXPECT_EQ(settled.text("/replies/0/outcome"), "ok") << settled.body;
    const Answered job = get("/v1/jobs/" + id);
    post("/v1/jobs/" + id + "/cancel");
    return job.text("/state") + " " + job.text("/attempts") + " " + job.text("/result") + job.text("/error");
  };
  EXPECT_EQ(after(R"("outcome":"done","result":{"n": 1})"), "done 0 {\"n\": 1}");
  EXPECT_EQ(after(R"("outcome":"retry","error":"no")"), "delayed 1 no");
  EXPECT_EQ(after(R"("outcome":"retry","error":"no","delay_ms":0,"priority":4)"), "ready 1 no");
  EXPECT_EQ(after(R"("outcome":"bury","error":"never","result":"half")"), "buried 1 halfnever");
  EXPECT_EQ(after(R"("outcome":"cancel","error":"gone")"), "cancelled 0 gone");
  EXPECT_EQ(after(R"("outcome":"release")"), "ready 0 ");
  EXPECT_EQ(after(R"("outcome":"release","delay_ms":1000,"priority":9)"), "delayed 0 ");
}

TEST_F(ApiLeases, OfManySettlementsOneThatIsWrongKeepsNoOtherBack) {
  put_job(R"({"queue":"mail"})");
  put_job(R"({"queue":"mail"})");
  lease(R"(,"most":2)");
  const Answered settled = settle(
      R"({"token":1,"outcome":"done","error":"x"},{"token":1,"outcome":"done"},{"token":1,"outcome":"done"},7,
         {"token":2,"outcome":"retry","delay_ms":"x"},{"outcome":"done"},{"token":3},{"token":2,"outcome":"done","result":1,"result_base64":""})");
  EXPECT_EQ(settled.text("/replies/0/error/errors/0/pointer"), "/settlements/0");
  EXPECT_EQ(settled.text("/replies/1/outcome"), "ok");
  EXPECT_EQ(settled.text("/replies/2/outcome"), "lease_lost");
  EXPECT_EQ(settled.text("/replies/3/error/status"), "400");
  EXPECT_EQ(settled.text("/replies/4/error/errors/0/pointer"), "/settlements/4/delay_ms");
  EXPECT_EQ(settled.text("/replies/4/token"), "2");
  for (int i = 5; i < 8; ++i) EXPECT_EQ(settled.text(fmt::format("/replies/{}/error/status", i)), "400") << i;
  EXPECT_EQ(post("/v1/leases/settle", "{}").problem(), "invalid_input");
  EXPECT_EQ(post("/v1/leases/settle", R"({"settlements":[],"x":1})").problem(), "invalid_input");
  EXPECT_EQ(post("/v1/leases/settle", R"({"settlements":[]})").body, "{\"replies\":[]}\n");
}

TEST_F(ApiLeases, FollowUpsArePutWithTheSettlement) {
  put_job(R"({"queue":"mail"})");
  const Answered settled = settle(fmt::format(
      R"({{"token":{},"outcome":"done","follow_ups":[{{"queue":"new","payload":[ 1 ]}},{{"queue":"mail"}}]}})",
      token_of()));
  EXPECT_EQ(settled.text("/replies/0/outcome"), "ok");
  EXPECT_EQ(settled.text("/replies/0/follow_ups/1/id"), "3");
  EXPECT_EQ(get("/v1/jobs/2").text("/payload"), "[ 1 ]");
  const Answered wrong =
      settle(fmt::format(R"({{"token":{},"outcome":"done","follow_ups":[{{"queue":1}}]}})", token_of()));
  EXPECT_EQ(wrong.text("/replies/0/error/errors/0/pointer"), "/settlements/0/follow_ups/0/queue");
}

TEST_F(ApiLeases, TwoWorkersOfOneNameEachKeepTheirJobsAndHearOfTheirStops) {
  for (int i = 0; i < 2; ++i) put_job(R"({"queue":"mail"})");
  const std::string first = token_of(), second = token_of();
  EXPECT_NE(first, second);
  EXPECT_EQ(get("/v1/workers").text("/workers/0/leases"), "2");
  EXPECT_EQ(post("/v1/jobs/2/cancel", "{}").text("/outcome"), "asked");
  EXPECT_EQ(lease(R"(,"most":0,"wait_ms":1000)").text("/cancel/0"), second) << "whichever of them asks";
  const auto renewed = [&](const std::string& token) {
    return patch("/v1/leases", fmt::format(R"({{"worker":"w","leases":[{{"token":{}}}]}})", token))
        .text("/leases/0/cancel");
  };
  EXPECT_EQ(renewed(first), "false");
  EXPECT_EQ(renewed(second), "true") << "its own worker hears of it, too";
  EXPECT_EQ(settle(fmt::format(R"({{"token":{},"outcome":"cancel"}})", second)).text("/replies/0/outcome"), "ok");
  EXPECT_EQ(settle(fmt::format(R"({{"token":{},"outcome":"done"}})", first)).text("/replies/0/outcome"), "ok");
}

TEST_F(ApiLeases, FollowUpsThatAreRefusedLeaveNoQueueBehind) {
  put("/v1/queues/mail", R"({"max_attempts":1})");
  for (const char* const wrong :
       {R"({"queue":"new","waits_for":[99]})", R"({"queue":"new","batch":99})", R"({"queue":"mail","batch":99})"}) {
    put_job(R"({"queue":"mail"})");
    const Answered settled = settle(
        fmt::format(R"({{"token":{},"outcome":"done","follow_ups":[{{"queue":"other"}},{}]}})", token_of(), wrong));
    EXPECT_THAT(settled.text("/replies/0/error/detail"), testing::HasSubstr("99")) << "and not that there is no queue";
    EXPECT_THAT(get("/v1/queues").body, testing::Not(testing::ContainsRegex("\"(new|other)\""))) << wrong;
  }
}

TEST_F(ApiLeases, FollowUpsInNewQueuesMayNameWhatTheirRequestEndsAndPuts) {
  for (int i = 0; i < 3; ++i) put_job(R"({"queue":"mail"})");
  const std::string own = token_of();
  const Answered completes =
      settle(fmt::format(R"({{"token":{},"outcome":"release","follow_ups":[{{"queue":"new","batch":1}}]}})", own));
  EXPECT_EQ(completes.text("/replies/0/outcome"), "ok") << completes.body;
  const std::string first = token_of(), second = token_of();
  const Answered both =
      settle(fmt::format(R"({{"token":{},"outcome":"done","follow_ups":[{{"queue":"mail","id":9000}}]}},)"
                         R"({{"token":{},"outcome":"done","follow_ups":[{{"queue":"newer","waits_for":[9000]}}]}})",
                         first, second));
  EXPECT_EQ(both.text("/replies/0/outcome"), "ok") << both.body;
  EXPECT_EQ(both.text("/replies/1/outcome"), "ok") << both.body;
  EXPECT_EQ(get("/v1/queues/newer").status, 200);
}

TEST_F(ApiLeases, FollowUpsWaitForTenThousandOthersTogether) {
  for (int i = 0; i < 3; ++i) put_job(R"({"queue":"mail"})");
  std::string ids = "3";
  for (int i = 1; i < 6'000; ++i) ids += ",3";
  const auto with_follow_up = [&] {
    return fmt::format(R"({{"token":{},"outcome":"done","follow_ups":[{{"queue":"new","waits_for":[{}]}}]}})",
                       token_of(), ids);
  };
  const std::string first = with_follow_up();
  const std::string second = with_follow_up();
  const Answered settled = settle(first + "," + second);
  EXPECT_EQ(settled.text("/replies/0/outcome"), "ok");
  EXPECT_EQ(settled.text("/replies/1/error/type"), "urn:argiope:problem:too_large");
  EXPECT_EQ(settled.text("/replies/1/error/errors/0/pointer"), "/settlements/1/follow_ups");
  EXPECT_EQ(settle(second).text("/replies/0/outcome"), "ok") << "alone";
}

TEST_F(ApiLeases, ARequestSettlesAndLeasesAtOnce) {
  put_job(R"({"queue":"mail"})");
  put_job(R"({"queue":"mail"})");
  const std::string token = token_of();
  const Answered both = lease(fmt::format(R"(,"settle":[{{"token":{},"outcome":"done"}}])", token));
  EXPECT_EQ(both.text("/settled/0/outcome"), "ok");
  EXPECT_EQ(both.text("/leases/0/job/id"), "2");
  EXPECT_EQ(get("/v1/workers").text("/workers/0/leases"), "1");
}

TEST_F(ApiLeases, ARequestLeasesWhatItsSettlementsHaveBrought) {
  put_job(R"({"queue":"mail"})");
  const Answered followed = lease(
      fmt::format(R"(,"settle":[{{"token":{},"outcome":"done","follow_ups":[{{"queue":"mail"}}]}}])", token_of()));
  EXPECT_EQ(followed.text("/settled/0/outcome"), "ok");
  EXPECT_EQ(followed.text("/leases/0/job/id"), "2");
  const Answered given_back =
      lease(fmt::format(R"(,"settle":[{{"token":{},"outcome":"release"}}])", followed.text("/leases/0/token")));
  EXPECT_EQ(given_back.text("/settled/0/outcome"), "ok");
  EXPECT_EQ(given_back.text("/leases/0/job/id"), "2");
  put_job(R"({"queue":"mail"})");
  put_job(R"({"queue":"mail","waits_for":[3]})");
  const Answered unblocked = lease(fmt::format(R"(,"settle":[{{"token":{},"outcome":"done"}}])", token_of()));
  EXPECT_EQ(unblocked.text("/settled/0/outcome"), "ok");
  EXPECT_EQ(unblocked.text("/leases/0/job/id"), "4");
}

TEST_F(ApiLeases, AStoreThatDoesNotKeepUpGetsAWholeBatch) {
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += "{\"queue\":\"mail\"}\n";
  ask(HttpMethod::post, "/v1/jobs", lines, {{"Content-Type", "application/x-ndjson"}});
  const Answered leased = lease(R"(,"most":1000)");
  std::string settlements;
  for (const auto& one : leased.at("/leases").as_array()) {
    settlements += fmt::format("{}{{\"token\":{},\"outcome\":\"done\"}}", settlements.empty() ? "" : ",",
                               boost::json::serialize(one.at("token")));
  }
  const Answered settled = settle(settlements);
  EXPECT_EQ(settled.at("/replies").as_array().size(), 1000u);
  EXPECT_EQ(settled.body.find("lease_lost"), std::string::npos);
  EXPECT_EQ(get("/v1/jobs").text("/jobs"), "[]");
}

// --- workers

TEST_F(ApiLeases, TheLeasesOfAWorkerThatIsGoneEnd) {
  for (int i = 0; i < 3; ++i) put_job(R"({"queue":"mail"})");
  lease(R"(,"most":2)");
  post("/v1/leases", R"({"queues":["mail"],"worker":"a/b"})");
  EXPECT_EQ(get("/v1/workers").text("/workers/0/name"), "a/b");
  EXPECT_EQ(get("/v1/workers").text("/workers/1/leases"), "2");
  EXPECT_EQ(erase("/v1/workers/w").body, "{\"ended\":2}\n");
  EXPECT_EQ(erase("/v1/workers/a%2Fb").body, "{\"ended\":1}\n");
  EXPECT_EQ(erase("/v1/workers/nobody").problem(), "not_found");
  EXPECT_EQ(lease(R"(,"most":3)").at("/leases").as_array().size(), 3u);
}

TEST_F(ApiLeases, AWorkerThatIsEndedWaitsForNoMoreJobs) {
  Task<Answered> poll = start(HttpMethod::post, "/v1/leases", R"({"queues":["mail"],"wait_ms":60000,"worker":"w"})");
  pass(1s);
  EXPECT_EQ(erase("/v1/workers/w").body, "{\"ended\":0}\n");
  pass(1ms);
  ASSERT_TRUE(poll.done());
  EXPECT_EQ(poll.result().body, "{\"leases\":[]}\n");
  EXPECT_EQ(get("/v1/workers").text("/workers"), "[]");
}

TEST_F(ApiLeases, EndingAWorkerEndsNoLeasesOfWorkersInTheDaemonThatHaveItsName) {
  put_job(R"({"queue":"mail"})");
  put_job(R"({"queue":"mail"})");
  std::uint64_t token = 0;
  run([&]() -> Coro<void> {
    token = value_or_throw(co_await engine_->lease({.queues = {"mail"}, .worker = "w"})).at(0).token;
  });
  lease();
  EXPECT_EQ(erase("/v1/workers/w").body, "{\"ended\":1}\n");
  EXPECT_TRUE(engine_->running(token));
  EXPECT_EQ(get("/v1/queues/mail").text("/counts/ready"), "1");
}

TEST_F(ApiLeases, AskingForJobsMakesNoQueue) {
  EXPECT_EQ(lease().text("/leases"), "[]");
  Task<Answered> poll = start(HttpMethod::post, "/v1/leases", R"({"queues":["mail"],"wait_ms":60000})");
  pass(1s);
  EXPECT_EQ(get("/v1/queues").text("/queues"), "[]");
  put_job(R"({"queue":"mail"})");
  pass(1ms);
  ASSERT_TRUE(poll.done());
  EXPECT_EQ(poll.result().text("/leases/0/job/id"), "1");
}

TEST_F(ApiLeases, OfAQueueThatIsNotThereAndIsNotMadeNothingIsLeased) {
  open({}, {.create_queues = false});
  EXPECT_EQ(lease().problem(), "not_found");
  EXPECT_EQ(lease(R"(,"wait_ms":60000)").problem(), "not_found");
  EXPECT_EQ(get("/v1/queues").text("/queues"), "[]");
}

// --- workers of one name under different tokens

class ApiWorkers : public ApiLeases {
 protected:
  void open_with_tokens() {
    open({}, {},
         {.tokens = {token_named("ann", TokenScope::work), token_named("bob", TokenScope::work),
                     token_named("eve", TokenScope::work, {"eve"}), token_named("ops", TokenScope::admin)}});
  }
  Answered as(std::string_view who, HttpMethod method, std::string path, std::string body = "") {
    const std::string bearer = fmt::format("Bearer {}", who);
    return ask(method, std::move(path), std::move(body), {{"Authorization", bearer}});
  }
  std::string lease_as(std::string_view who) {
    return as(who, HttpMethod::post, "/v1/leases", R"({"queues":["mail"],"worker":"w"})").text("/leases/0/token");
  }
  Task<Answered> poll_as(std::string_view bearer) {
    return loop_.create_task(asking(HttpMethod::post, "/v1/leases",
                                    R"({"queues":["mail"],"wait_ms":60000,"worker":"w"})",
                                    {{"Authorization", bearer}}));
  }
  Answered end_as(std::string_view who, std::string query = "") {
    return as(who, HttpMethod::delete_, "/v1/workers/w" + query);
  }
  void put_jobs(int count) {
    run([&]() -> Coro<void> {
      for (int i = 0; i < count; ++i) (void)co_await engine_->book().put({.queue = "mail"});
    });
  }
  bool runs(const std::string& token) { return engine_->running(std::stoull(token)).has_value(); }
};

TEST_F(ApiWorkers, AreTwoWhereTwoTokensUseOneName) {
  open_with_tokens();
  put_jobs(3);
  lease_as("bob");
  lease_as("ann");
  lease_as("ann");
  const Answered told = as("ops", HttpMethod::get, "/v1/workers");
  ASSERT_EQ(told.at("/workers").as_array().size(), 2u);
  EXPECT_EQ(told.text("/workers/0/name") + told.text("/workers/0/who") + told.text("/workers/0/leases"), "wann2");
  EXPECT_EQ(told.text("/workers/1/name") + told.text("/workers/1/who") + told.text("/workers/1/leases"), "wbob1");
}

TEST_F(ApiWorkers, AreNotToldWhetherARunThatTheyMayNotSeeIsThere) {
  open_with_tokens();
  put_jobs(1);
  const std::string token = lease_as("ann");
  const auto settle_with_key = [&](const std::string& of, const std::string& key) {
    const std::string body =
        fmt::format(R"({{"settlements":[{{"token":{},"outcome":"done",)"
                    R"("follow_ups":[{{"queue":"eve.next"}}]}},{{"token":999,"outcome":"done"}}]}})",
                    of);
    return ask(HttpMethod::post, "/v1/leases/settle", body,
               {{"Authorization", "Bearer eve"}, {"Idempotency-Key", key}});
  };
  const std::string told = settle_with_key(token, "runs").body;
  const std::string of_none = settle_with_key("998", "none").body;
  EXPECT_EQ(told, fmt::format(R"({{"replies":[{{"token":{},"outcome":"lease_lost"}},{{"token":999,)"
                              R"("outcome":"lease_lost"}}]}})"
                              "\n",
                              token));
  EXPECT_TRUE(runs(token));
  as("ann", HttpMethod::post, "/v1/leases/settle",
     fmt::format(R"({{"settlements":[{{"token":{},"outcome":"done"}}]}})", token));
  EXPECT_FALSE(runs(token));
  EXPECT_EQ(settle_with_key(token, "runs").body, told) << "its end changes nothing for who may not see it";
  EXPECT_EQ(settle_with_key("998", "none").body, of_none);
}

TEST_F(ApiWorkers, AreListedInPagesThatEndBehindAName) {
  open_with_tokens();
  for (const char* name : {"a", "b", "c"}) {
    const std::string body = fmt::format(R"({{"queues":["mail"],"worker":"{}"}})", name);
    as("ann", HttpMethod::post, "/v1/leases", body);
    as("bob", HttpMethod::post, "/v1/leases", body);
  }
  const Answered first = as("ops", HttpMethod::get, "/v1/workers?limit=1");
  EXPECT_EQ(first.at("/workers").as_array().size(), 2u) << "all of one name";
  EXPECT_EQ(first.text("/next"), "a");
  const Answered second = as("ops", HttpMethod::get, "/v1/workers?limit=3&after=a");
  EXPECT_EQ(second.at("/workers").as_array().size(), 4u);
  EXPECT_EQ(second.text("/workers/0/name"), "b");
  EXPECT_EQ(second.text("/next"), "null");
  EXPECT_EQ(as("ops", HttpMethod::get, "/v1/workers?after=c").text("/workers"), "[]");
  EXPECT_EQ(as("ops", HttpMethod::get, "/v1/workers?limit=0").problem(), "invalid_input");
}

TEST_F(ApiWorkers, AreEndedByTheirOwnTokenAndByNoOtherThatKnowsTheName) {
  open_with_tokens();
  put_jobs(2);
  const std::string anns = lease_as("ann");
  EXPECT_EQ(end_as("bob").problem(), "forbidden");
  EXPECT_EQ(end_as("eve").problem(), "not_found") << "it may not use the queue";
  const std::string bobs = lease_as("bob");
  Task<Answered> poll = poll_as("Bearer ann");
  pass(1s);
  EXPECT_EQ(end_as("bob", "?who=ann").problem(), "forbidden");
  EXPECT_FALSE(poll.done());
  EXPECT_EQ(end_as("bob").body, "{\"ended\":1}\n");
  pass(1ms);
  EXPECT_FALSE(runs(bobs));
  EXPECT_TRUE(runs(anns));
  ASSERT_TRUE(poll.done()) << "it was given the job that has come back";
  EXPECT_EQ(poll.result().text("/leases/0/job/id"), "2");
  EXPECT_EQ(end_as("ann").body, "{\"ended\":2}\n");
  EXPECT_EQ(end_as("ann").problem(), "not_found");
}

TEST_F(ApiWorkers, WaitOnWhenOneOfTheirNameIsEnded) {
  open_with_tokens();
  Task<Answered> anns = poll_as("Bearer ann");
  Task<Answered> bobs = poll_as("Bearer bob");
  pass(1s);
  EXPECT_EQ(end_as("bob").body, "{\"ended\":0}\n");
  pass(1ms);
  EXPECT_TRUE(bobs.done());
  EXPECT_FALSE(anns.done());
  EXPECT_EQ(end_as("ops").body, "{\"ended\":0}\n");
  pass(1ms);
  EXPECT_TRUE(anns.done());
}

TEST_F(ApiWorkers, AreEndedByAnAdminAllOrTheOneThatIsMeant) {
  open_with_tokens();
  put_jobs(3);
  const std::string anns = lease_as("ann");
  const std::string bobs = lease_as("bob");
  EXPECT_EQ(end_as("ops", "?who=carl").problem(), "not_found");
  EXPECT_EQ(end_as("ops", "?who=bob").body, "{\"ended\":1}\n");
  EXPECT_FALSE(runs(bobs));
  EXPECT_TRUE(runs(anns));
  lease_as("bob");
  EXPECT_EQ(end_as("ops").body, "{\"ended\":2}\n");
  EXPECT_EQ(as("ops", HttpMethod::get, "/v1/workers").text("/workers"), "[]");
}

TEST_F(ApiWorkers, HearOnlyOfTheirOwnJobsThatAreToStop) {
  open_with_tokens();
  put_jobs(1);
  const std::string token = lease_as("ann");
  run([&]() -> Coro<void> { (void)co_await engine_->book().cancel(1); });
  const std::string body = R"({"queues":["mail"],"most":0,"worker":"w"})";
  EXPECT_EQ(as("bob", HttpMethod::post, "/v1/leases", body).body, "{\"leases\":[]}\n");
  EXPECT_EQ(as("ann", HttpMethod::post, "/v1/leases", body).text("/cancel"), "[" + token + "]");
}

TEST_F(ApiWorkers, WhoseLeaseHasOutlivedADaemonIsEndedByAnAdmin) {
  open_with_tokens();
  put_jobs(1);
  // As the owner before this one has left it: who had asked for it is not in the store.
  run([&]() -> Coro<void> { (void)co_await engine_->lease({.queues = {"mail"}, .worker = "w", .remote = true}); });
  EXPECT_EQ(as("ops", HttpMethod::get, "/v1/workers").text("/workers/0/who"), "");
  lease_as("ann");
  const Answered told = as("ops", HttpMethod::get, "/v1/workers");
  EXPECT_EQ(told.at("/workers").as_array().size(), 1u) << "it is told of the only worker of that name";
  EXPECT_EQ(told.text("/workers/0/who") + told.text("/workers/0/leases"), "ann1");
  EXPECT_EQ(end_as("ann").body, "{\"ended\":0}\n");
  EXPECT_EQ(end_as("ann").problem(), "forbidden");
  EXPECT_EQ(end_as("ops").body, "{\"ended\":1}\n");
}

// --- tokens

TEST_F(ApiLeases, OnlyAnAdminPutsWhatTheDaemonItselfWouldRun) {
  open({}, {}, {.tokens = {token_named("secret", TokenScope::work)}});
  const auto as_t = [&](std::string path, std::string body) {
    return ask_as("secret", HttpMethod::post, std::move(path), std::move(body));
  };
  const std::string job = R"({"queue":"q","function":"command","payload":{"args":["id"]}})";
  EXPECT_EQ(as_t("/v1/jobs", job).problem(), "forbidden");
  EXPECT_EQ(as_t("/v1/jobs", R"({"queue":"q","function":"http"})").problem(), "forbidden");
  EXPECT_EQ(as_t("/v1/jobs", R"({"jobs":[)" + job + "]}").text("/replies/0/error/errors/0/pointer"),
            "/jobs/0/function");
  EXPECT_EQ(as_t("/v1/jobs", R"({"jobs":[],"completion":)" + job + "}").problem(), "forbidden");
  EXPECT_EQ(as_t("/v1/jobs", R"({"queue":"q","function":"other"})").status, 201);
  const std::string token = as_t("/v1/leases", R"({"queues":["q"]})").text("/leases/0/token");
  EXPECT_EQ(as_t("/v1/leases/settle",
                 R"({"settlements":[{"token":)" + token + R"(,"outcome":"done","follow_ups":[)" + job + "]}]}")
                .text("/replies/0/error/type"),
            "urn:argiope:problem:forbidden");
}

TEST_F(ApiLeases, ATokenBoundToSomeQueuesReachesNoOther) {
  open({}, {}, {.tokens = {token_named("secret", TokenScope::work, {"mine"})}});
  EXPECT_EQ(get("/v1/jobs").problem(), "unauthorized");
  const auto as_t = [&](HttpMethod method, std::string path, std::string body = "") {
    return ask_as("secret", method, std::move(path), std::move(body));
  };
  run([&]() -> Coro<void> {
    (void)co_await engine_->book().put({.queue = "theirs"});
    (void)co_await engine_->book().put({.queue = "mine"});
  });
  EXPECT_EQ(as_t(HttpMethod::post, "/v1/jobs", R"({"queue":"theirs"})").problem(), "forbidden");
  EXPECT_EQ(as_t(HttpMethod::post, "/v1/jobs", R"({"jobs":[{"queue":"theirs"},{"queue":"mine.a"}]})")
                .text("/replies/0/error/type"),
            "urn:argiope:problem:forbidden");
  EXPECT_EQ(as_t(HttpMethod::get, "/v1/jobs").at("/jobs").as_array().size(), 2u);
  EXPECT_EQ(as_t(HttpMethod::get, "/v1/jobs?queue=theirs").problem(), "forbidden");
  EXPECT_EQ(as_t(HttpMethod::get, "/v1/jobs/1").problem(), "not_found");
  EXPECT_EQ(as_t(HttpMethod::delete_, "/v1/jobs/1").problem(), "not_found");
  EXPECT_EQ(
      as_t(HttpMethod::post, "/v1/jobs/change", R"({"change":"erase","ids":[1]})").text("/replies/0/error/status"),
      "404");
  EXPECT_EQ(as_t(HttpMethod::get, "/v1/queues").at("/queues").as_array().size(), 2u);
  EXPECT_EQ(as_t(HttpMethod::get, "/v1/queues/theirs").problem(), "forbidden");
  EXPECT_EQ(as_t(HttpMethod::put, "/v1/queues/mine", "{}").problem(), "forbidden");  // its scope
  EXPECT_EQ(as_t(HttpMethod::post, "/v1/leases", R"({"queues":["mine","theirs"]})").text("/errors/0/pointer"),
            "/queues/1");
  const std::string token = as_t(HttpMethod::post, "/v1/leases", R"({"queues":["mine"]})").text("/leases/0/token");
  EXPECT_EQ(
      as_t(HttpMethod::post, "/v1/leases/settle",
           fmt::format(R"({{"settlements":[{{"token":{},"outcome":"done","follow_ups":[{{"queue":"theirs"}}]}}]}})",
                       token))
          .text("/replies/0/error/type"),
      "urn:argiope:problem:forbidden");
  EXPECT_EQ(as_t(HttpMethod::post, "/v1/leases/settle",
                 fmt::format(R"({{"settlements":[{{"token":{},"outcome":"done"}},{{"token":999,"outcome":"done"}}]}})",
                             token))
                .text("/replies/0/outcome"),
            "ok");
}

TEST_F(ApiLeases, AnIdThatAJobOfAnotherHasIsAConflictWhereverItIsSaid) {
  open({}, {}, {.tokens = {token_named("secret", TokenScope::work, {"mine"})}});
  const auto as_t = [&](std::string path, std::string body, std::string_view key = "") {
    Fields fields = {{"Authorization", "Bearer secret"}};
    if (!key.empty()) fields.emplace_back("Idempotency-Key", key);
    return ask(HttpMethod::post, std::move(path), std::move(body), fields);
  };
  run([&]() -> Coro<void> { (void)co_await engine_->book().put({.name = "taken", .queue = "theirs"}); });
  for (const std::string id : {R"("taken")", "1"}) {
    const std::string job = R"({"queue":"mine","id":)" + id + "}";
    const std::string batch = R"({"jobs":[{"queue":"mine"},)" + job + "]";
    const std::pair<Answered, std::string> refused[] = {
        {as_t("/v1/jobs", job), "/id"},
        {as_t("/v1/jobs", job, "key " + id), "/id"},
        {as_t("/v1/jobs", batch + R"(,"atomic":true})"), "/jobs/1/id"},
        {as_t("/v1/jobs", batch + R"(,"atomic":true})", "all " + id), "/jobs/1/id"},
        {as_t("/v1/jobs", R"({"jobs":[{"queue":"mine"}],"completion":)" + job + "}"), "/completion/id"},
    };
    for (const auto& [answered, pointer] : refused) {
      EXPECT_EQ(answered.status, 409) << answered.body;
      EXPECT_EQ(answered.problem(), "conflict") << answered.body;
      EXPECT_EQ(answered.text("/errors/0/pointer"), pointer) << answered.body;
    }
    const Answered each = as_t("/v1/jobs", batch + "}", "each " + id);
    EXPECT_EQ(each.text("/replies/1/error/type"), "urn:argiope:problem:conflict");
    EXPECT_EQ(each.text("/replies/1/error/errors/0/pointer"), "/jobs/1/id");
    // A settlement that is refused is a failed attempt.
    as_t("/v1/jobs", R"({"queue":"mine","priority":1000})");
    const std::string token = as_t("/v1/leases", R"({"queues":["mine"]})").text("/leases/0/token");
    const std::string settlement = fmt::format(
        R"([{{"token":999,"outcome":"done"}},{{"token":{},"outcome":"done","follow_ups":[{{"queue":"mine"}},{}]}}])",
        token, job);
    const Answered settled = as_t("/v1/leases/settle", R"({"settlements":)" + settlement + "}");
    EXPECT_EQ(settled.text("/replies/1/error/type"), "urn:argiope:problem:conflict") << settled.body;
    EXPECT_EQ(settled.text("/replies/1/error/errors/0/pointer"), "/settlements/1/follow_ups/1/id");
  }
}

TEST_F(ApiLeases, LargeJobsAreLeasedAFewAtATime) {
  const std::string payload(1'000'000, 'x');
  for (int i = 0; i < 40; ++i) put_job(fmt::format(R"({{"queue":"mail","payload":"{}"}})", payload));
  std::size_t all = 0;
  for (int asked = 0; all < 40 && asked < 40; ++asked) {
    const Answered leased = lease(R"(,"most":1000)");
    EXPECT_LT(leased.body.size(), kMostLeasedBytes + 100'000);
    EXPECT_GT(leased.at("/leases").as_array().size(), 1u);
    all += leased.at("/leases").as_array().size();
  }
  EXPECT_EQ(all, 40u);
  EXPECT_EQ(get("/v1/queues/mail").text("/counts/running"), "40");
}

TEST_F(ApiLeases, WhereThereIsNoRoomForTheAnswerTheJobsGoBack) {
  ApiOptions options;
  options.room = std::make_shared<AnswerRoom>(1'000'000);
  open(options);
  put_job(fmt::format(R"({{"queue":"mail","payload":"{}"}})", std::string(100'000, 'x')));
  auto unread = options.room->take("local", 450'000);
  EXPECT_EQ(lease().problem(), "busy");
  EXPECT_EQ(get("/v1/queues/mail").text("/counts/ready"), "1");
  EXPECT_EQ(get("/v1/jobs/1").problem(), "busy") << "so it is with what is looked at";
  unread.reset();
  EXPECT_EQ(lease().text("/leases/0/job/id"), "1");
}

}  // namespace
}  // namespace argiope
