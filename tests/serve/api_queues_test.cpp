// Queues.
#include <fmt/format.h>

#include "serve/api_fixture.hpp"

namespace argiope {
namespace {

using ApiQueues = ApiTest;

TEST_F(ApiQueues, AQueueIsMadeShownAndChanged) {
  EXPECT_EQ(get("/v1/queues/mail").problem(), "not_found");
  const Answered made = put("/v1/queues/mail", R"({"rate":10,"concurrency":4})");
  EXPECT_EQ(made.status, 200);
  EXPECT_EQ(made.text("/name"), "mail");
  EXPECT_EQ(made.text("/config/concurrency"), "4");
  EXPECT_EQ(made.text("/counts/ready"), "0");
  EXPECT_EQ(made.text("/locked"), "false");
  const Answered changed = patch("/v1/queues/mail", R"({"retry_first":"2s"})");
  EXPECT_EQ(changed.text("/config/retry_first_ms"), "2000");
  EXPECT_EQ(changed.text("/config/concurrency"), "4");
  EXPECT_EQ(put("/v1/queues/mail", "{}").text("/config/concurrency"), "unlimited");
  EXPECT_EQ(patch("/v1/queues/other", "{}").problem(), "not_found");
}

TEST_F(ApiQueues, WhatIsWrongInAPolicyIsToldWithItsPlace) {
  const Answered wrong = put("/v1/queues/mail", R"({"rate":"fast"})");
  EXPECT_EQ(wrong.problem(), "invalid_input");
  EXPECT_EQ(wrong.text("/errors/0/pointer"), "/rate");
  for (const char* body : {"[]", "{", R"({"colour":"red"})", R"({"rate":1,"rate":2})", R"({"weight":0})"}) {
    EXPECT_EQ(put("/v1/queues/mail", body).problem(), "invalid_input") << body;
  }
  EXPECT_EQ(get("/v1/queues").text("/queues"), "[]");
}

TEST_F(ApiQueues, ListsAllByName) {
  put_job(R"({"queue":"b"})");
  put_job(R"({"queue":"a","delay_ms":60000})");
  put("/v1/queues/c", "{}");
  const Answered all = get("/v1/queues");
  EXPECT_EQ(all.text("/queues/0/name"), "a");
  EXPECT_EQ(all.text("/queues/0/counts/delayed"), "1");
  EXPECT_EQ(all.text("/queues/1/counts/ready"), "1");
  EXPECT_EQ(all.text("/queues/2/counts/ready"), "0");
}

TEST_F(ApiQueues, AListComesInPages) {
  for (int i = 0; i < 5; ++i) put_job(fmt::format(R"({{"queue":"q{}"}})", i));
  const Answered first = get("/v1/queues?limit=2");
  EXPECT_EQ(first.text("/queues/1/name"), "q1");
  EXPECT_EQ(first.text("/next"), "q1");
  const Answered last = get("/v1/queues?limit=3&after=q1");
  EXPECT_EQ(last.text("/queues/0/name"), "q2");
  EXPECT_EQ(last.text("/queues/2/name"), "q4");
  EXPECT_EQ(last.text("/next"), "null");
  EXPECT_EQ(get("/v1/queues?limit=0").problem(), "invalid_input");
}

TEST_F(ApiQueues, NoMoreAreMadeThanMayBe) {
  open({}, {.most_queues = 2});
  put_job(R"({"queue":"a"})");
  put("/v1/queues/b", "{}");
  EXPECT_EQ(post("/v1/jobs", R"({"queue":"c"})").status, 429);
  EXPECT_GE(put("/v1/queues/c", "{}").status, 400);
  EXPECT_EQ(post("/v1/jobs", R"({"queue":"a"})").status, 201) << "those that are there go on";
  EXPECT_EQ(erase("/v1/queues/b").status, 204);
  EXPECT_EQ(post("/v1/jobs", R"({"queue":"c"})").status, 201);
}

class ApiQueueShares : public ApiQueues {
 protected:
  void open_with_tokens() {
    open({}, {.most_queues = 8, .is_free_queue = [](std::string_view name) { return name.starts_with("free."); }},
         {.tokens = {token_named("ann", TokenScope::admin, {"ann."}), token_named("bob", TokenScope::work, {"bob."}),
                     token_named("all", TokenScope::work), token_named("ops", TokenScope::admin)}});
  }
  int put_as(const std::string& who, const std::string& queue) {
    return ask_as(who, HttpMethod::post, "/v1/jobs", fmt::format(R"({{"queue":"{}"}})", queue)).status;
  }
};

TEST_F(ApiQueueShares, OneTokenMakesHalfOfTheQueues) {
  open_with_tokens();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(put_as("bob", fmt::format("bob.{}", i)), 201);
  EXPECT_EQ(put_as("bob", "bob.4"), 429);
  EXPECT_EQ(put_as("bob", "bob.3"), 201) << "those that are there go on";
  const Answered several = ask(HttpMethod::post, "/v1/jobs", R"({"jobs":[{"queue":"bob.5"},{"queue":"bob.0"}]})",
                               {{"Authorization", "Bearer bob"}});
  EXPECT_EQ(several.text("/replies/0/error/status"), "429");
  EXPECT_THAT(several.text("/replies/0/error/detail"),
              testing::HasSubstr(R"(4 of those that are there were made for "bob")"));
  EXPECT_EQ(several.text("/replies/1/outcome"), "added");
  EXPECT_EQ(put_as("ann", "ann.0"), 201);
  EXPECT_EQ(ask(HttpMethod::put, "/v1/queues/ann.1", "{}", {{"Authorization", "Bearer ann"}}).status, 200);
  EXPECT_EQ(put_as("all", "ann.2"), 201);
  EXPECT_EQ(put_as("ops", "last"), 201);
  EXPECT_EQ(put_as("ops", "one too many"), 429);
  EXPECT_EQ(put_as("ops", "free.1"), 201) << "the daemon's own count for nothing";
}

TEST_F(ApiQueueShares, OfACallCountThoseThatTheLimitIsFor) {
  open_with_tokens();
  const auto put_all = [&](const std::string& name, int count, const std::string& more) {
    std::string jobs;
    for (int i = 0; i < count; ++i) jobs += fmt::format(R"({{"queue":"{0}{1}"}},{{"queue":"{0}{1}"}},)", name, i);
    return ask(HttpMethod::post, "/v1/jobs",
               fmt::format(R"({{"jobs":[{}{{"queue":"{}"}}],"atomic":true}})", jobs, more),
               {{"Authorization", "Bearer ops"}})
        .status;
  };
  EXPECT_EQ(put_all("free.", 20, "a"), 200) << "the daemon's own leave room for the other";
  EXPECT_EQ(put_all("b.", 7, "c"), 429) << "eight, and one is there";
  EXPECT_EQ(put_all("b.", 6, "c"), 200);
  EXPECT_EQ(put_as("ops", "d"), 429);
}

TEST_F(ApiQueueShares, AfterARestartWhatATokenMayUseCountsForIt) {
  run([&]() -> Coro<void> {
    auto before = co_await open_engine(store_);
    for (int i = 0; i < 4; ++i) (void)co_await before->book().put({.queue = fmt::format("bob.{}", i)});
    (void)co_await before->close();
  });
  open_with_tokens();
  EXPECT_EQ(put_as("bob", "bob.4"), 429);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(put_as("all", fmt::format("all.{}", i)), 201) << "it is not known who has made the others";
  EXPECT_EQ(put_as("ops", "ops"), 429);
}

TEST_F(ApiQueues, WhatIsDueIsLookedUpInTheQueuesOfThePageAlone) {
  for (const char* name : {"a", "b", "c"}) put_job(fmt::format(R"({{"queue":"{}","delay_ms":1000}})", name));
  pass(2s);
  run([&]() -> Coro<void> {
    const auto some = value_or_throw(co_await engine_->book().counts_of({"c", "a", "not there"}));
    EXPECT_EQ(some.size(), 2u);
    if (some.size() != 2) co_return;
    EXPECT_EQ(some[0].first, "a");
    EXPECT_EQ(some[1].first, "c");
    EXPECT_EQ(some[1].second.ready, 1u);
  });
  EXPECT_EQ(get("/v1/queues?limit=1").text("/queues/0/counts/ready"), "1");
}

TEST_F(ApiQueues, NamesAreDecodedAndHostileOnesRefused) {
  EXPECT_EQ(put("/v1/queues/a%2Fb%20%3Cscript%3E", "{}").text("/name"), "a/b <script>");
  EXPECT_EQ(get("/v1/queues/a%2Fb%20%3Cscript%3E").status, 200);
  EXPECT_EQ(put("/v1/queues/%ff%fe", "{}").problem(), "invalid_input");
  EXPECT_EQ(put("/v1/queues/" + std::string(513, 'x'), "{}").problem(), "invalid_input");
  EXPECT_EQ(put("/v1/queues/" + std::string(512, 'x'), "{}").status, 200);
}

TEST_F(ApiQueues, APausedQueueGivesOutNothingUntilItIsResumed) {
  put_job(R"({"queue":"mail"})");
  EXPECT_EQ(post("/v1/queues/mail/pause").text("/config/paused"), "true");
  EXPECT_EQ(lease().text("/leases"), "[]");
  EXPECT_EQ(post("/v1/queues/mail/resume").text("/config/paused"), "false");
  EXPECT_EQ(lease().text("/leases/0/job/id"), "1");
  EXPECT_EQ(post("/v1/queues/other/pause").problem(), "not_found");
}

TEST_F(ApiQueues, APauseMayEndByItself) {
  put_job(R"({"queue":"mail"})");
  EXPECT_EQ(post("/v1/queues/mail/pause", R"({"until":"2026-01-01T00:01:00Z"})").text("/config/paused"), "true");
  pass(30s);
  EXPECT_EQ(lease().text("/leases"), "[]");
  EXPECT_EQ(lease(R"(,"wait_ms":60000)").text("/leases/0/job/id"), "1");
  EXPECT_EQ(post("/v1/queues/mail/pause", R"({"until":"soon"})").text("/errors/0/pointer"), "/until");
}

TEST_F(ApiQueues, AnEmptyQueueIsDeleted) {
  put_job(R"({"queue":"mail"})");
  EXPECT_EQ(erase("/v1/queues/mail").problem(), "wrong_state");
  erase("/v1/jobs/1");
  EXPECT_EQ(erase("/v1/queues/mail").status, 204);
  EXPECT_EQ(get("/v1/queues/mail").problem(), "not_found");
  EXPECT_EQ(erase("/v1/queues/mail").problem(), "not_found");
}

TEST_F(ApiQueues, KicksWhatIsBuriedAndDelayedJobsWhereNothingIs) {
  for (int i = 0; i < 3; ++i) put_job(R"({"queue":"mail"})");
  lease(R"(,"most":2)");
  post("/v1/leases/settle", R"({"settlements":[{"token":1,"outcome":"bury"},{"token":2,"outcome":"bury"}]})");
  put_job(R"({"queue":"mail","delay_ms":60000})");
  EXPECT_EQ(post("/v1/queues/mail/kick", R"({"limit":1})").body, "{\"kicked\":1}\n");
  EXPECT_EQ(post("/v1/queues/mail/kick").body, "{\"kicked\":1}\n");
  EXPECT_EQ(post("/v1/queues/mail/kick").body, "{\"kicked\":1}\n");
  EXPECT_EQ(post("/v1/queues/mail/kick").body, "{\"kicked\":0}\n");
  EXPECT_EQ(get("/v1/queues/mail").text("/counts/ready"), "4");
  EXPECT_EQ(post("/v1/queues/other/kick").problem(), "not_found");
  EXPECT_EQ(post("/v1/queues/mail/kick", R"({"limit":0})").problem(), "invalid_input");
}

TEST_F(ApiQueues, WhatTheConfigurationFileNamesIsNotChangedHere) {
  open({.queue_is_locked = [](std::string_view name) { return name == "mail"; },
        .queue_line = [](std::string_view) { return std::string("argiope.toml:4"); }});
  put_job(R"({"queue":"mail"})");
  EXPECT_EQ(get("/v1/queues/mail").text("/locked"), "true");
  EXPECT_EQ(get("/v1/queues/mail").text("/locked_by"), "argiope.toml:4") << "the line that decides";
  EXPECT_EQ(put("/v1/queues/mail", "{}").problem(), "locked");
  EXPECT_EQ(patch("/v1/queues/mail", "{}").status, 409);
  EXPECT_EQ(erase("/v1/queues/mail").problem(), "locked");
  EXPECT_EQ(post("/v1/queues/mail/pause").status, 200);
  EXPECT_EQ(put("/v1/queues/other", "{}").status, 200);
}

}  // namespace
}  // namespace argiope
