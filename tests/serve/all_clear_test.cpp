// That a trouble is over: told once, after the trouble, to those who were told of it, over reloads and restarts.
#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "serve/notifier_fixture.hpp"

namespace argiope {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AllClears : public Notifiers {
 protected:
  // A schedule whose runs wait in the queue "night", the first of them after an hour.
  void add_schedule(std::string_view more = "") {
    post(
        "/v1/schedules",
        fmt::format(R"({{"name":"links","trigger":"@every 1h","max_instances":9,"job":{{"queue":"night"}}{}}})", more));
  }
  void end_run(Verdict how) {
    run([&]() -> Coro<void> {
      const auto leased = co_await engine_->lease_now({.queues = {"night"}, .worker = "w"});
      EXPECT_TRUE(leased && leased->size() == 1);
      if (leased && !leased->empty()) EXPECT_TRUE(co_await engine_->settle(leased->front().token, how));
    });
  }
  void run_finds(std::string text) { end_run({.error = std::move(text), .is_finding = true}); }
  void run_fails() { end_run({.outcome = Outcome::bury, .error = "disk full"}); }
  void run_goes_well(std::string remark = "") { end_run({.error = std::move(remark)}); }
  void next_hour() { pass(1h); }

  std::vector<std::string> sentences(std::string_view rule = "ops") {
    std::vector<std::string> all;
    for (const auto& message : messages(rule)) {
      for (const auto& notice : message.at("notices").as_array()) {
        all.push_back(fmt::format("{}: {}", std::string_view(notice.at("status").as_string()),
                                  std::string_view(notice.at("sentence").as_string())));
      }
    }
    return all;
  }
  std::size_t lasting() const { return notifier_->statuses().front().lasting; }

  static constexpr std::string_view kAtOnce = R"(,"wait":0,"interval":0)";
};

TEST_F(AllClears, TellOnceThatFindingsAreOver) {
  watch(kAtOnce);
  add_schedule();
  pass(61min);
  run_finds("2 broken links");
  next_hour();
  run_finds("1 broken link");
  next_hour();
  EXPECT_EQ(lasting(), 1u);
  run_goes_well("nothing was due");
  next_hour();
  run_goes_well();
  pass(1min);
  EXPECT_THAT(sentences(), ElementsAre(R"(trouble: "links" has found something: 2 broken links)",
                                       R"(trouble: "links" has found something: 1 broken link)",
                                       R"(well: "links" is well again: its run 3 has found nothing)"));
  EXPECT_EQ(messages().back().at("status"), "well");
  EXPECT_EQ(lasting(), 0u);
}

TEST_F(AllClears, TellThatAScheduleIsWellAfterARunThatHasFailedAndNotWhileOneIsTriedAgain) {
  watch(R"(,"on":["failed"],"wait":0,"interval":0)");
  put("/v1/queues/night", R"({"retry_first_ms":600000})");
  add_schedule();
  pass(61min);
  run_fails();
  next_hour();
  end_run({.outcome = Outcome::retry, .error = "disk full"});
  pass(5min);
  EXPECT_EQ(sentences().size(), 1u);
  pass(10min);
  run_goes_well();
  pass(1min);
  EXPECT_THAT(sentences(), ElementsAre(R"(trouble: schedule "links" has failed: disk full)",
                                       R"(well: schedule "links" is well again: its run 2 has gone well)"));
}

TEST_F(AllClears, TellThatAScheduleIsWellWhenTheJobOfItsFailedRunWasKicked) {
  watch(R"(,"on":["failed"],"wait":0,"interval":0)");
  add_schedule();
  pass(61min);
  run_fails();
  pass(1min);
  post("/v1/queues/night/kick", "{}");
  EXPECT_EQ(sentences().size(), 1u);
  run_goes_well();
  pass(1min);
  EXPECT_THAT(sentences(),
              ElementsAre(HasSubstr("has failed"), R"(well: schedule "links" is well again: its run 1 has gone well)"));
}

// The queue has room for one run, so the times in between are too late when there is room again.
TEST_F(AllClears, TellThatAScheduleIsWellAfterMissedTimesWhenARunHasGoneWell) {
  watch(R"(,"on":["missed"],"wait":0,"interval":0)");
  put("/v1/queues/night", R"({"capacity":1})");
  add_schedule(R"(,"misfire_grace":"10m")");
  pass(3h + 5min);
  run_goes_well();
  pass(1min);
  const auto troubles = sentences();
  ASSERT_THAT(troubles, Each(R"(trouble: schedule "links" has missed a run)")) << "the next run is not over yet";
  EXPECT_EQ(get("/v1/schedules/links").text("/active"), "1");
  run_goes_well();
  pass(1min);
  const auto all = sentences();
  ASSERT_EQ(all.size(), troubles.size() + 1);
  EXPECT_THAT(all.back(), HasSubstr(R"(well: schedule "links" is well again: its run )"));
}

TEST_F(AllClears, TellThatTheNextRoundOfAProjectRaisedNoAlarm) {
  watch(kAtOnce);
  const auto ends = [&](std::vector<std::string> alarms) {
    last_rounds_["shop"] = alarms;
    run([&]() -> Coro<void> {
      notifier_->tell_alarms("shop", alarms);
      co_return;
    });
    pass(1min);
  };
  ends({});
  EXPECT_TRUE(messages().empty());
  ends({"too few results", "no prices"});
  ends({"no prices"});
  ends({});
  ends({});
  EXPECT_THAT(sentences(), ElementsAre(R"(trouble: project "shop" has raised 2 alarms: too few results; no prices)",
                                       R"(trouble: project "shop" has raised an alarm: no prices)",
                                       R"(well: project "shop" is well again)"));
}

TEST_F(AllClears, TellThatAProjectIsGoneWhoseAlarmWasTold) {
  watch(kAtOnce);
  last_rounds_["shop"] = {"no prices"};
  run([&]() -> Coro<void> {
    notifier_->tell_alarms("shop", {"no prices"});
    co_return;
  });
  pass(1min);
  EXPECT_EQ(sentences().size(), 1u);
  last_rounds_.clear();
  pass(12s);
  EXPECT_THAT(sentences(), ElementsAre(HasSubstr("has raised an alarm"), R"(well: project "shop": it is gone)"));
}

TEST_F(AllClears, FollowTheTroubleAlsoWhereTheRateHoldsItBack) {
  watch(R"(,"on":["failed"],"wait":"90m","interval":"10m")");
  add_schedule();
  pass(61min);
  run_fails();
  next_hour();
  run_goes_well();
  pass(1min);
  EXPECT_TRUE(messages().empty());
  EXPECT_EQ(notifier_->statuses().front().gathered, 1u);
  pass(30min);
  EXPECT_THAT(sentences(), ElementsAre(R"(trouble: schedule "links" has failed: disk full)"));
  pass(91min);
  EXPECT_THAT(sentences(),
              ElementsAre(HasSubstr("has failed"), R"(well: schedule "links" is well again: its run 2 has gone well)"));
}

TEST_F(AllClears, AreDeliveredAfterTheMessageThatToldOfTheTrouble) {
  watch(R"(,"on":["failed"],"wait":0,"interval":0)");
  add_schedule();
  pass(61min);
  run_fails();
  next_hour();
  run_goes_well();
  pass(1min);
  ASSERT_EQ(messages().size(), 2u);
  settle_message({.outcome = Outcome::retry, .error = "503", .delay = 1h});
  run([this]() -> Coro<void> {
    const auto leased = co_await engine_->lease_now({.queues = {"argiope.notify.ops"}, .worker = "target"});
    EXPECT_TRUE(leased && leased->empty()) << "the trouble was not delivered yet";
  });
  pass(61min);
  settle_message({});
  settle_message({});
}

TEST_F(AllClears, GoToThoseWhoWereToldOfTheTrouble) {
  watch();
  set_rules(
      {{"ops", R"(,"on":["failed"],"wait":0,"interval":0)"}, {"dev", R"(,"on":["findings"],"wait":0,"interval":0)"}});
  add_schedule();
  pass(61min);
  run_finds("2 broken links");
  pass(1min);
  set_rules({{"ops", R"(,"wait":0,"interval":0)"}, {"dev", R"(,"on":["findings"],"wait":0,"interval":0)"}});
  next_hour();
  run_goes_well();
  pass(1min);
  EXPECT_TRUE(messages("ops").empty()) << "it asks for findings since, and was not told of this one";
  EXPECT_EQ(sentences("dev").size(), 2u);
}

TEST_F(AllClears, AreNotToldToWhoDoesNotWantThem) {
  watch(R"(,"on":["failed"],"wait":0,"interval":0,"resolved":false)");
  add_schedule();
  pass(61min);
  run_fails();
  next_hour();
  run_goes_well();
  pass(1min);
  EXPECT_EQ(messages().size(), 1u);
  EXPECT_EQ(lasting(), 0u);
}

TEST_F(AllClears, AreLeftOutWhereTheNextRunFailsBeforeTheyAreTold) {
  watch(R"(,"on":["failed"],"wait":0,"interval":"150m")");
  add_schedule();
  pass(61min);
  run_fails();
  next_hour();
  run_goes_well();
  next_hour();
  run_fails();
  pass(1h);
  EXPECT_THAT(sentences(), ElementsAre(HasSubstr("has failed"), HasSubstr("has failed")));
  EXPECT_EQ(lasting(), 1u);
  run_goes_well();
  pass(3h);
  EXPECT_EQ(sentences().size(), 3u);
}

TEST_F(AllClears, AreKeptByARuleThatAReloadHasChanged) {
  watch(kAtOnce);
  add_schedule();
  pass(61min);
  run_finds("2 broken links");
  pass(1min);
  set(R"(,"on":["buried"],"only":["mail"],"wait":0,"interval":0)");
  next_hour();
  run_goes_well();
  pass(1min);
  EXPECT_EQ(sentences().size(), 2u) << "it was told of them, whatever it asks for now";
}

TEST_F(AllClears, AreDroppedWithTheirRule) {
  file_ = folder_.file("notify.jsonl");
  watch(kAtOnce);
  add_schedule();
  pass(61min);
  run_finds("2 broken links");
  pass(1min);
  set_rules({});
  set(kAtOnce);
  EXPECT_EQ(lasting(), 0u);
  next_hour();
  run_goes_well();
  pass(1min);
  EXPECT_EQ(messages().size(), 1u);
}

TEST_F(AllClears, AreDroppedWithARuleThatIsGoneAfterARestart) {
  file_ = folder_.file("notify.jsonl");
  watch(kAtOnce);
  add_schedule();
  pass(61min);
  run_finds("2 broken links");
  pass(5s);
  restart_with({});
  set(kAtOnce);
  EXPECT_EQ(lasting(), 0u);
}

TEST_F(AllClears, AreToldByTheNextProcess) {
  file_ = folder_.file("notify.jsonl");
  watch(kAtOnce);
  add_schedule();
  pass(61min);
  run_finds("2 broken links");
  next_hour();
  restart(kAtOnce);
  EXPECT_EQ(lasting(), 1u);
  run_goes_well();
  pass(1min);
  restart(kAtOnce);
  next_hour();
  run_goes_well();
  pass(1min);
  EXPECT_THAT(sentences(), ElementsAre(HasSubstr("has found something"),
                                       R"(well: "links" is well again: its run 2 has found nothing)"));
}

TEST_F(AllClears, AreToldOfRunsAndRoundsThatEndedWhileNobodyListened) {
  file_ = folder_.file("notify.jsonl");
  watch(kAtOnce);
  add_schedule();
  pass(61min);
  run_fails();
  last_rounds_["shop"] = {"no prices"};
  run([&]() -> Coro<void> {
    notifier_->tell_alarms("shop", {"no prices"});
    co_return;
  });
  next_hour();
  const std::size_t told = sentences().size();
  run([this]() -> Coro<void> { co_await notifier_->stop(); });
  last_rounds_["shop"].clear();
  run_goes_well();
  watch_again(kAtOnce);
  pass(1min);
  const auto all = sentences();
  ASSERT_EQ(all.size(), told + 2);
  EXPECT_EQ(all[told], R"(well: schedule "links" is well again: its run 2 has gone well)");
  EXPECT_EQ(all[told + 1], R"(well: project "shop" is well again)");
}

TEST_F(AllClears, AreToldOfARunThatEndedWhileNobodyListenedThoughTheCalendarWasSetBack) {
  file_ = folder_.file("notify.jsonl");
  const std::string_view of_failures = R"(,"on":["failed"],"wait":0,"interval":0)";
  watch(of_failures);
  add_schedule();
  pass(61min);
  run_fails();
  next_hour();
  EXPECT_EQ(sentences().size(), 1u);
  run([this]() -> Coro<void> { co_await notifier_->stop(); });
  // As a process had it whose calendar was ahead by decades.
  std::stringstream lines;
  lines << std::ifstream(file_).rdbuf();
  std::string text = lines.str();
  const std::string_view since = R"("since":"20)";
  ASSERT_NE(text.find(since), std::string::npos) << text;
  text.replace(text.find(since) + since.size(), 2, "99");
  std::ofstream(file_) << text;
  run_goes_well();
  watch_again(of_failures);
  pass(1min);
  EXPECT_THAT(sentences(),
              ElementsAre(HasSubstr("has failed"), R"(well: schedule "links" is well again: its run 2 has gone well)"));
}

TEST_F(AllClears, FollowATroubleThatWasNotPutWhenItsProcessWasKilled) {
  file_ = folder_.file("notify.jsonl");
  const std::string_view slowly = R"(,"on":["failed"],"wait":"3h","interval":0)";
  watch(slowly);
  add_schedule();
  pass(61min);
  run_fails();
  next_hour();
  run_goes_well();
  pass(1min);
  restart(slowly);
  const std::size_t before = sentences().size();
  pass(7h);
  const auto all = sentences();
  ASSERT_EQ(all.size(), before + 2);
  EXPECT_THAT(all[before], HasSubstr("has failed"));
  EXPECT_THAT(all[before + 1], HasSubstr("is well again"));
}

TEST_F(AllClears, AreOfAFailureThatOneMessageTellsWithItsBuriedJob) {
  watch(kAtOnce);
  add_schedule();
  pass(61min);
  run_fails();
  pass(1min);
  ASSERT_EQ(messages().size(), 1u);
  EXPECT_THAT(sentences(), ElementsAre(R"(trouble: a job of queue "night" was buried, the first is job 1: disk full)",
                                       R"(trouble: schedule "links" has failed: disk full)"));
}

TEST_F(AllClears, TellThatAScheduleIsGone) {
  watch(kAtOnce);
  add_schedule();
  pass(61min);
  run_finds("2 broken links");
  pass(1min);
  erase("/v1/schedules/links");
  pass(12s);
  EXPECT_THAT(sentences(), ElementsAre(HasSubstr("has found something"), R"(well: "links": it is gone)"));
}

TEST_F(AllClears, SayNothingOfFindingsOfAJobThatIsNoSchedules) {
  watch(kAtOnce);
  put_job(R"({"queue":"night"})");
  run_finds("2 broken links");
  put_job(R"({"queue":"night"})");
  run_goes_well();
  pass(1min);
  EXPECT_EQ(sentences().size(), 1u) << "the other job is another matter";
  EXPECT_EQ(lasting(), 0u);
}

}  // namespace
}  // namespace argiope
