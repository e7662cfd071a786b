// Schedules, and the times of triggers.
#include <fmt/format.h>

#include "serve/api_fixture.hpp"

namespace argiope {
namespace {

using ApiSchedules = ApiTest;

constexpr const char* kBackup =
    R"({"name":"backup","trigger":{"type":"cron","expression":"0 3 * * *","zone":"Europe/Berlin"},"job":{"queue":"mail","payload":{"a":1},"priority":3}})";

TEST_F(ApiSchedules, AScheduleIsAddedShownAndRemoved) {
  const Answered added = post("/v1/schedules", kBackup);
  EXPECT_EQ(added.status, 201);
  EXPECT_EQ(added.text("/outcome"), "added");
  const Answered shown = get("/v1/schedules/backup");
  EXPECT_EQ(shown.text("/name"), "backup");
  EXPECT_EQ(shown.text("/schedule/job/priority"), "3");
  EXPECT_EQ(shown.text("/locked"), "false");
  EXPECT_THAT(shown.text("/next"), ::testing::HasSubstr("T03:00:00+01:00"));
  EXPECT_EQ(erase("/v1/schedules/backup").status, 204);
  EXPECT_EQ(get("/v1/schedules/backup").problem(), "not_found");
  EXPECT_EQ(erase("/v1/schedules/backup").problem(), "not_found");
}

TEST_F(ApiSchedules, WhatHappensToOneOfThatNameIsTheCallersChoice) {
  post("/v1/schedules", kBackup);
  const Answered exists = post("/v1/schedules", kBackup);
  EXPECT_EQ(exists.status, 409);
  EXPECT_EQ(exists.problem(), "conflict");
  EXPECT_EQ(post("/v1/schedules?conflict=keep", kBackup).text("/outcome"), "kept");
  EXPECT_EQ(post("/v1/schedules?conflict=replace", kBackup).text("/outcome"), "replaced");
  EXPECT_EQ(post("/v1/schedules?conflict=fight", kBackup).problem(), "invalid_input");
}

TEST_F(ApiSchedules, ManyAreAddedTogether) {
  post("/v1/schedules", kBackup);
  const std::string both = fmt::format(R"({{"schedules":[{},{{"name":"new","trigger":"@every 1h"}}]}})", kBackup);
  const Answered kept = post("/v1/schedules?conflict=keep", both);
  EXPECT_EQ(kept.status, 200);
  EXPECT_EQ(kept.body, "{\"replies\":[{\"id\":1,\"outcome\":\"kept\"},{\"id\":2,\"outcome\":\"added\"}]}\n");
  EXPECT_EQ(post("/v1/schedules?conflict=replace", both).text("/replies/1/outcome"), "replaced");
  EXPECT_EQ(post("/v1/schedules", both).text("/replies/0/outcome"), "exists");
  EXPECT_EQ(get("/v1/schedules/backup").text("/schedule/job/payload"), R"({"a":1})");
  EXPECT_EQ(post("/v1/schedules", R"({"schedules":[]})").body, "{\"replies\":[]}\n");
}

TEST_F(ApiSchedules, OfManyNoneIsChangedWhereOneIsWrong) {
  open({.schedule_is_locked = [](std::string_view name) { return name == "fixed"; }});
  post("/v1/schedules", R"({"name":"a","trigger":"@every 1h"})");
  const auto replace = [&](std::string_view second) {
    return post("/v1/schedules?conflict=replace",
                fmt::format(R"({{"schedules":[{{"name":"a","trigger":"@every 2h"}},{}]}})", second));
  };
  EXPECT_EQ(replace(R"({"name":"fixed","trigger":"@every 1h"})").problem(), "locked");
  EXPECT_EQ(replace(R"({"name":"b","trigger":"@every 1h","job":{"priority":"high"}})").text("/errors/0/pointer"),
            "/schedules/1/job/priority");
  for (const char* wrong : {"7", "[]", R"({"name":"b"})", R"({"name":"b","name":"c","trigger":"@every 1h"})",
                            R"({"name":"b","trigger":"@every 1h","colour":"red"})"}) {
    EXPECT_EQ(replace(wrong).problem(), "invalid_input") << wrong;
  }
  for (const char* body :
       {R"({"schedules":1})", R"({"schedules":[],"name":"a"})", R"({"schedules":[],"schedules":[]})"}) {
    EXPECT_EQ(post("/v1/schedules", body).problem(), "invalid_input") << body;
  }
  EXPECT_EQ(get("/v1/schedules").at("/schedules").as_array().size(), 1u);
  EXPECT_EQ(get("/v1/schedules/a").text("/schedule/trigger/every"), "1h");
}

TEST_F(ApiSchedules, OfManyNoneIsChangedWhereTheTokenMayNotUseOne) {
  open({}, {}, {.tokens = {token_named("secret", TokenScope::admin, {"mine"})}});
  const auto add = [&](std::string_view second) {
    return ask(HttpMethod::post, "/v1/schedules",
               fmt::format(R"({{"schedules":[{{"name":"mine.a","trigger":"@every 1h","job":{{"queue":"mine"}}}},{}]}})",
                           second),
               {{"Authorization", "Bearer secret"}});
  };
  EXPECT_EQ(add(R"({"name":"theirs","trigger":"@every 1h","job":{"queue":"mine"}})").problem(), "forbidden");
  EXPECT_EQ(add(R"({"name":"mine.b","trigger":"@every 1h","job":{"queue":"theirs"}})").problem(), "forbidden");
  EXPECT_EQ(add(R"({"name":"mine.b","trigger":"@every 1h","job":{"queue":"mine"}})").text("/replies/0/id"), "1");
}

TEST_F(ApiSchedules, WhatIsWrongIsToldWithItsPlace) {
  EXPECT_EQ(post("/v1/schedules", R"({"name":"x","trigger":{"type":"cron","expression":"0 99 * * *"}})")
                .text("/errors/0/pointer"),
            "/trigger/expression");
  EXPECT_EQ(post("/v1/schedules", R"({"name":"x","trigger":"@every 1h","job":{"priority":"high"}})")
                .text("/errors/0/pointer"),
            "/job/priority");
  for (const char* body :
       {"{}", "[]", R"({"name":"x"})", R"({"name":"","trigger":"@every 1h"})",
        R"({"name":"x","trigger":"@every 1h","colour":"red"})", R"({"name":"x","name":"y","trigger":"@every 1h"})"}) {
    EXPECT_EQ(post("/v1/schedules", body).problem(), "invalid_input") << body;
  }
}

TEST_F(ApiSchedules, PutAddsOrReplacesUnderTheNameOfThePath) {
  EXPECT_EQ(put("/v1/schedules/nightly%2F1", R"({"trigger":"@every 1h"})").status, 201);
  EXPECT_EQ(put("/v1/schedules/nightly%2F1", R"({"name":"nightly/1","trigger":"@every 2h"})").status, 200);
  EXPECT_EQ(get("/v1/schedules/nightly%2F1").text("/schedule/trigger/every"), "2h");
  EXPECT_EQ(put("/v1/schedules/a", R"({"name":"b","trigger":"@every 2h"})").text("/errors/0/pointer"), "/name");
}

TEST_F(ApiSchedules, ANullIsNoMemberOfAWholeSchedule) {
  for (const char* member : {R"("overlap":null)", R"("job":null)", R"("job":{"queue":null})",
                             R"("job":{"priority":null})", R"("max_instances":null)"}) {
    const std::string body = fmt::format(R"({{"trigger":"@every 1h",{}}})", member);
    EXPECT_EQ(put("/v1/schedules/s", body).problem(), "invalid_input") << body;
    EXPECT_EQ(post("/v1/schedules", fmt::format(R"({{"name":"s",{})", body.substr(1))).problem(), "invalid_input")
        << body;
  }
  EXPECT_EQ(get("/v1/schedules/s").problem(), "not_found");
}

TEST_F(ApiSchedules, PatchChangesWhatItNamesAndLeavesTheRest) {
  post("/v1/schedules", kBackup);
  const Answered changed =
      patch("/v1/schedules/backup", R"({"overlap":"queue_one","job":{"priority":7},"misfire_grace":"1h"})");
  EXPECT_EQ(changed.status, 200) << changed.body;
  EXPECT_EQ(changed.text("/schedule/overlap"), "queue_one");
  EXPECT_EQ(changed.text("/schedule/job/priority"), "7");
  EXPECT_EQ(changed.text("/schedule/job/queue"), "mail");
  EXPECT_EQ(changed.text("/schedule/trigger/zone"), "Europe/Berlin");
  EXPECT_EQ(patch("/v1/schedules/backup", R"({"overlap":null})").text("/schedule/overlap"), "null");
  EXPECT_EQ(patch("/v1/schedules/backup", R"({"overlaps":null})").problem(), "invalid_input");
  EXPECT_EQ(patch("/v1/schedules/backup", R"({"job":{"keys":null}})").problem(), "invalid_input");
  EXPECT_EQ(patch("/v1/schedules/backup", R"({"job":{"priority":null}})").text("/schedule/job/priority"), "null");
  EXPECT_EQ(patch("/v1/schedules/backup", R"({"max_instances":0})").text("/errors/0/pointer"), "/max_instances");
  EXPECT_EQ(patch("/v1/schedules/backup", R"({"name":"other"})").problem(), "invalid_input");
  EXPECT_EQ(patch("/v1/schedules/nobody", "{}").problem(), "not_found");
}

TEST_F(ApiSchedules, PagesGoOnWhereTheOneBeforeEnded) {
  for (int i = 0; i < 25; ++i) put(fmt::format("/v1/schedules/s{}", i), R"({"trigger":"@every 1h"})");
  std::size_t seen = 0;
  for (std::string after = "0"; after != "null";) {
    const Answered page = get("/v1/schedules?limit=10&after=" + after);
    seen += page.at("/schedules").as_array().size();
    after = page.text("/next");
  }
  EXPECT_EQ(seen, 25u);
}

TEST_F(ApiSchedules, IsPausedByWhoAsksAndResumed) {
  post("/v1/schedules", kBackup);
  EXPECT_EQ(post("/v1/schedules/backup/pause").text("/paused_by"), "local");
  EXPECT_EQ(post("/v1/schedules/backup/resume").text("/paused"), "false");
  EXPECT_EQ(post("/v1/schedules/backup/pause", R"({"by":"ann"})").text("/paused_by"), "ann");
  EXPECT_EQ(get("/v1/schedules/backup/explain").text("/reason"), "paused");
  EXPECT_EQ(post("/v1/schedules/backup/resume", R"({"from":"now"})").text("/paused"), "false");
  EXPECT_EQ(post("/v1/schedules/backup/resume", R"({"from":"then"})").text("/errors/0/pointer"), "/from");
}

TEST_F(ApiSchedules, ARunIsPutAndShowsInTheHistory) {
  post("/v1/schedules", kBackup);
  EXPECT_EQ(get("/v1/schedules/backup/history").text("/runs"), "[]");
  EXPECT_EQ(get("/v1/schedules/backup/output").problem(), "not_found");
  EXPECT_EQ(post("/v1/schedules/backup/run").text("/job"), "1");
  EXPECT_EQ(get("/v1/schedules/backup/history").text("/runs/0/outcome"), "running");
  const std::string token = lease().text("/leases/0/token");
  post("/v1/leases/settle",
       fmt::format(R"({{"settlements":[{{"token":{},"outcome":"done","result":"saved"}}]}})", token));
  EXPECT_EQ(get("/v1/schedules/backup/history?limit=1").text("/runs/0/outcome"), "done");
  EXPECT_EQ(get("/v1/schedules/backup/output").body, "saved");
  EXPECT_EQ(get("/v1/schedules/backup/history?limit=21").problem(), "invalid_input");
  EXPECT_EQ(get("/v1/schedules/nobody/history").problem(), "not_found");
}

TEST_F(ApiSchedules, TheNextTimesOfATriggerAreToldWithWhatDaylightSavingDoes) {
  const Answered times = post(
      "/v1/next",
      R"({"trigger":{"type":"cron","expression":"30 2 * * *","zone":"Europe/Berlin"},"count":3,"after":"2026-03-28T00:00:00Z"})");
  EXPECT_EQ(times.at("/times").as_array().size(), 3u);
  EXPECT_EQ(times.text("/times/0/local"), "2026-03-28T02:30:00+01:00");
  EXPECT_EQ(times.text("/times/0/at"), "2026-03-28T01:30:00Z");
  EXPECT_EQ(times.text("/times/0/note"), "");
  EXPECT_NE(times.text("/times/1/note"), "");
  EXPECT_EQ(times.text("/zone"), "Europe/Berlin");
  post("/v1/schedules", kBackup);
  EXPECT_EQ(get("/v1/schedules/backup/next").at("/times").as_array().size(), 10u);
  EXPECT_EQ(get("/v1/schedules/backup/next?count=101").problem(), "invalid_input");
  EXPECT_EQ(post("/v1/next", "{}").problem(), "invalid_input");
  EXPECT_EQ(post("/v1/next", R"({"trigger":"99 * * * *"})").text("/errors/0/pointer"), "/trigger");
  EXPECT_EQ(post("/v1/next", R"({"trigger":{"type":"date","time":"1970-01-01T00:00:00Z"}})").text("/times"), "[]");
}

TEST_F(ApiSchedules, WhatTheConfigurationFileNamesIsNotChangedHere) {
  open({.schedule_is_locked = [](std::string_view name) { return name == "backup"; }});
  run([&]() -> Coro<void> { (void)co_await engine_->book().schedules().add(value_or_throw(parse_schedule(kBackup))); });
  EXPECT_EQ(get("/v1/schedules/backup").text("/locked"), "true");
  EXPECT_EQ(post("/v1/schedules?conflict=replace", kBackup).problem(), "locked");
  EXPECT_EQ(put("/v1/schedules/backup", R"({"trigger":"@every 1h"})").problem(), "locked");
  EXPECT_EQ(patch("/v1/schedules/backup", "{}").problem(), "locked");
  EXPECT_EQ(erase("/v1/schedules/backup").problem(), "locked");
  EXPECT_EQ(post("/v1/schedules/backup/pause").status, 200);
}

}  // namespace
}  // namespace argiope
