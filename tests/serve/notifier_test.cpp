// Who is told of what: gathered into few messages, told again when it is over, and never of the messages themselves.
#include "serve/notify/notifier.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "argiope/engine/worker.hpp"
#include "serve/notifier_fixture.hpp"
#include "serve/notify/notice.hpp"

namespace argiope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string trouble_with(std::string_view json) {
  const auto text = JsonText::parse(json);
  JsonErrors errors;
  (void)read_notify_rule(text->root(errors));
  return errors ? errors.error().message : "";
}

TEST_F(Notifiers, AreToldOfWhatAGoodRunHasFoundAndNotOfItsOtherRemarks) {
  watch(R"(,"wait":0,"interval":0)");
  for (const bool is_finding : {false, true}) {
    put_job(R"({"queue":"links"})");
    run([&]() -> Coro<void> {
      const auto leased = co_await engine_->lease_now({.queues = {"links"}, .worker = "w"});
      EXPECT_TRUE(leased && leased->size() == 1);
      if (leased && !leased->empty()) {
        EXPECT_TRUE(
            co_await engine_->settle(leased->front().token, {.error = "2 broken links", .is_finding = is_finding}));
      }
    });
  }
  pass(1s);
  ASSERT_EQ(messages().size(), 1u);
  EXPECT_EQ(sentence(messages().front()), "\"links\" has found something: 2 broken links");
}

TEST_F(Notifiers, AreToldOnceOfAStateThatOutlivesTheProcessAndWhenItIsOver) {
  file_ = folder_.file("notify.jsonl");
  const std::string_view rule = R"(,"depth":2,"wait":0,"interval":0)";
  watch(rule);
  for (int i = 0; i < 3; ++i) put_job(R"({"queue":"mail"})");
  unwell_ = {{"the daemon", "the loop stands still"}};
  pass(12s);
  const std::size_t told = messages().size();
  EXPECT_GE(told, 1u);
  restart(rule);
  pass(30s);
  EXPECT_EQ(messages().size(), told) << "both were told already";
  unwell_.clear();
  restart(rule);
  settle_one(R"("outcome":"done")");
  pass(12s);
  std::string all;
  for (const auto& message : messages()) all += boost::json::serialize(message);
  EXPECT_THAT(all, HasSubstr("is well again: 2 jobs are ready"));
  EXPECT_EQ(notifier_->statuses().front().lasting, 0u);
}

TEST_F(Notifiers, SendAfterAKillWhatWasGatheredBefore) {
  file_ = folder_.file("notify.jsonl");
  watch(R"(,"wait":"1m")");
  bury();
  pass(5s);
  const std::string left = folder_.file("left.jsonl");
  std::filesystem::copy_file(file_, left);
  run([this]() -> Coro<void> { co_await notifier_->stop(); });
  const std::size_t told = messages().size();
  std::filesystem::rename(left, file_);
  watch_again(R"(,"wait":"1m")");
  pass(50s);
  EXPECT_EQ(messages().size(), told);
  pass(15s);
  ASSERT_EQ(messages().size(), told + 1);
  EXPECT_EQ(sentence(messages().back()), R"(a job of queue "mail" was buried, the first is job 1: no such address)");
}

TEST_F(Notifiers, TheAgeOfAQueueIsThatOfItsOldestReadyJob) {
  watch(R"(,"age":"5m","wait":0,"interval":0)");
  put_job(R"({"queue":"mail","priority":-1})");
  for (int i = 0; i < 6; ++i) {
    pass(1min);
    put_job(R"({"queue":"mail"})");
    settle_one(R"("outcome":"done")");
  }
  ASSERT_EQ(messages().size(), 1u) << "others go before it all the time";
  EXPECT_THAT(sentence(messages()[0]), HasSubstr("jobs wait for 5m"));
  settle_one(R"("outcome":"done")");
  pass(25s);
  EXPECT_EQ(messages().back().at("status"), "well");
}

TEST_F(Notifiers, TellOfManyTroublesInOneMessageAfterAWait) {
  watch();
  bury();
  bury();
  bury("film");
  pass(9s);
  EXPECT_TRUE(messages().empty());
  pass(2s);
  ASSERT_EQ(messages().size(), 1u);
  const auto message = messages()[0];
  EXPECT_EQ(message.at("status"), "trouble");
  EXPECT_EQ(message.at("from"), "host:1");
  EXPECT_EQ(message.at("notices").as_array().size(), 2u);
  EXPECT_EQ(sentence(message, 0), R"(a job of queue "film" was buried, the first is job 3: no such address)");
  EXPECT_EQ(sentence(message, 1), R"(2 jobs of queue "mail" were buried, the first is job 1: no such address)");
}

TEST_F(Notifiers, SendTheNextMessageNotSoonerThanTheInterval) {
  watch(R"(,"wait":"1s","interval":"10m")");
  bury();
  pass(2s);
  EXPECT_EQ(messages().size(), 1u);
  for (int i = 0; i < 5; ++i) {
    bury();
    pass(1min);
  }
  EXPECT_EQ(messages().size(), 1u);
  pass(5min);
  ASSERT_EQ(messages().size(), 2u);
  EXPECT_EQ(messages()[1].at("notices").as_array().at(0).at("count"), 5);
  pass(1h);
  EXPECT_EQ(messages().size(), 2u);
}

TEST_F(Notifiers, TellOfADeepQueueOnceAndWhenItIsOver) {
  watch(R"(,"depth":2,"wait":0,"interval":0)");
  for (int i = 0; i < 3; ++i) put_job(R"({"queue":"mail"})");
  pass(1min);
  ASSERT_EQ(messages().size(), 1u);
  EXPECT_EQ(sentence(messages()[0]), R"(queue "mail": 3 jobs are ready, the limit is 2)");
  settle_one(R"("outcome":"done")");
  pass(1min);
  ASSERT_EQ(messages().size(), 2u);
  EXPECT_EQ(messages()[1].at("status"), "well");
  EXPECT_EQ(sentence(messages()[1]), R"(queue "mail" is well again: 2 jobs are ready, the limit is 2)");
}

TEST_F(Notifiers, SayNothingOfAStateThatWasOverBeforeItWasTold) {
  watch(R"(,"depth":2,"wait":"1m")");
  for (int i = 0; i < 3; ++i) put_job(R"({"queue":"mail"})");
  pass(15s);
  settle_one(R"("outcome":"done")");
  pass(10min);
  EXPECT_TRUE(messages().empty());
}

TEST_F(Notifiers, SayNothingWhenItIsOverToWhoDoesNotWantIt) {
  watch(R"(,"depth":2,"wait":0,"interval":0,"resolved":false)");
  for (int i = 0; i < 3; ++i) put_job(R"({"queue":"mail"})");
  pass(1min);
  settle_one(R"("outcome":"done")");
  pass(1min);
  EXPECT_EQ(messages().size(), 1u);
  put_job(R"({"queue":"mail"})");
  pass(1min);
  EXPECT_EQ(messages().size(), 2u) << "it is told anew";
}

TEST_F(Notifiers, TellOfJobsThatWaitTooLong) {
  watch(R"(,"age":"5m","wait":0,"interval":0)");
  put_job(R"({"queue":"mail"})");
  pass(4min);
  EXPECT_TRUE(messages().empty());
  pass(90s);
  ASSERT_EQ(messages().size(), 1u);
  EXPECT_THAT(sentence(messages()[0]), HasSubstr("jobs wait for 5m"));
  settle_one(R"("outcome":"done")");
  pass(1min);
  ASSERT_EQ(messages().size(), 2u);
  EXPECT_EQ(messages()[1].at("status"), "well");
}

TEST_F(Notifiers, TellOfSchedulesThatMissAndFail) {
  watch(R"(,"wait":0,"interval":0)");
  run([&]() -> Coro<void> {
    EXPECT_TRUE(co_await engine_->scheduler().add_executor("night"));
    EXPECT_TRUE(engine_->scheduler().add_function("night", "fail", [](JobContext&) -> Coro<void> {
      throw BuryJob("disk full");
      co_return;
    }));
  });
  post("/v1/schedules", R"({"name":"backup","trigger":"@every 1h","job":{"queue":"night","function":"fail"}})");
  pass(61min);
  ASSERT_FALSE(messages().empty());
  std::string all;
  for (const auto& message : messages()) all += boost::json::serialize(message);
  EXPECT_THAT(all, HasSubstr(R"(schedule \"backup\" has failed: disk full)"));
  EXPECT_THAT(all, HasSubstr(R"(a job of queue \"night\" was buried)"));
}

// A schedule whose queue has room for one job, and holds that of its first run when the second is due.
TEST_F(Notifiers, TellThatAScheduleCanRunAgainOnlyWhenARunThatBeganSinceHasGoneWell) {
  file_ = folder_.file("notify.jsonl");
  const std::string_view rule = R"(,"on":["failed"],"wait":0,"interval":0)";
  watch(rule);
  put("/v1/queues/mail", R"({"capacity":1})");
  post("/v1/schedules", R"({"name":"backup","trigger":"@every 1h","max_instances":9,"job":{"queue":"mail"}})");
  pass(121min);
  ASSERT_EQ(messages().size(), 1u);
  EXPECT_THAT(sentence(messages()[0]), HasSubstr(R"(schedule "backup" has failed)"));

  // Nothing keeps it now, until its new time comes.
  patch("/v1/schedules/backup", R"({"trigger":"@every 2h"})");
  restart(rule);
  pass(1min);
  EXPECT_EQ(get("/v1/schedules/backup/explain").text("/reason"), "not_due");
  EXPECT_EQ(messages().size(), 1u) << "no time of it has come since";
  pass(2h);
  EXPECT_EQ(get("/v1/schedules/backup/explain").text("/reason"), "queue_full");
  restart(rule);

  settle_one(R"("outcome":"done")");
  pass(1min);
  EXPECT_EQ(get("/v1/schedules/backup").text("/active"), "1") << "its next run waits for a worker";
  EXPECT_EQ(messages().size(), 1u) << "the run that has gone well is one from before";
  settle_one(R"("outcome":"done")");
  pass(12s);
  ASSERT_EQ(messages().size(), 2u);
  EXPECT_EQ(messages()[1].at("status"), "well");
  EXPECT_EQ(sentence(messages()[1]), R"(schedule "backup" can run again)");
  EXPECT_EQ(notifier_->statuses().front().lasting, 0u);
}

TEST_F(Notifiers, WaitForARunThatGoesWellAfterOneThatHasFailed) {
  watch(R"(,"on":["failed"],"wait":0,"interval":0)");
  put("/v1/queues/mail", R"({"capacity":1})");
  post("/v1/schedules", R"({"name":"backup","trigger":"@every 1h","max_instances":9,"job":{"queue":"mail"}})");
  pass(121min);
  settle_one(R"("outcome":"done")");
  pass(5s);
  settle_one(R"("outcome":"bury","error":"disk full")");
  pass(1min);
  ASSERT_EQ(messages().size(), 2u);
  EXPECT_THAT(sentence(messages()[1]), HasSubstr("has failed: disk full"));
  EXPECT_EQ(notifier_->statuses().front().lasting, 1u);
  pass(1h);
  settle_one(R"("outcome":"done")");
  pass(12s);
  ASSERT_EQ(messages().size(), 3u);
  EXPECT_EQ(messages()[2].at("status"), "well");
}

TEST_F(Notifiers, SayNothingOfAScheduleThatCouldRunAgainBeforeItWasTold) {
  watch(R"(,"on":["failed"],"wait":"1m","interval":0)");
  put("/v1/queues/mail", R"({"capacity":1})");
  post("/v1/schedules", R"({"name":"backup","trigger":"@every 1h","max_instances":9,"job":{"queue":"mail"}})");
  pass(1h + 10s);
  settle_one(R"("outcome":"done")");
  pass(10min);
  EXPECT_TRUE(messages().empty());
}

TEST_F(Notifiers, TellThatAScheduleThatCouldNotRunIsGone) {
  watch(R"(,"on":["failed"],"wait":0,"interval":0)");
  put("/v1/queues/mail", R"({"capacity":1})");
  post("/v1/schedules", R"({"name":"backup","trigger":"@every 1h","max_instances":9,"job":{"queue":"mail"}})");
  pass(121min);
  erase("/v1/schedules/backup");
  pass(12s);
  ASSERT_EQ(messages().size(), 2u);
  EXPECT_EQ(sentence(messages()[1]), R"(schedule "backup": it is gone)");
}

TEST_F(Notifiers, TellOfTheDaemonAndThatItIsWellAgain) {
  watch(R"(,"wait":0,"interval":0)");
  unwell_ = {{"the daemon", "the loop stands still"}};
  pass(30s);
  unwell_.clear();
  pass(30s);
  ASSERT_EQ(messages().size(), 2u);
  EXPECT_EQ(sentence(messages()[0]), "the daemon: the loop stands still");
  EXPECT_EQ(sentence(messages()[1]), "the daemon is well again");
}

TEST_F(Notifiers, TellOnlyOfWhatIsAskedFor) {
  watch(R"(,"on":["buried"],"only":["film"],"wait":0)");
  bury("mail");
  unwell_ = {{"the daemon", "it is unwell"}};
  pass(1min);
  EXPECT_TRUE(messages().empty());
  bury("film.big");
  pass(1min);
  EXPECT_EQ(messages().size(), 1u);
}

TEST_F(Notifiers, TellNothingOfMessagesThatCannotBeDelivered) {
  watch(R"(,"wait":0,"interval":0,"only":[])");
  bury();
  pass(1s);
  ASSERT_EQ(messages().size(), 1u);
  settle_message({.outcome = Outcome::bury, .error = "404"});
  pass(1h);
  EXPECT_EQ(messages().size(), 1u);
}

TEST_F(Notifiers, BoundWhatAMessageSays) {
  watch();
  for (int i = 0; i < 120; ++i) bury(fmt::format("q{:03}", i));
  pass(11s);
  ASSERT_EQ(messages().size(), 1u);
  EXPECT_EQ(messages()[0].at("notices").as_array().size(), 100u);
  EXPECT_EQ(messages()[0].at("left_out"), 20);
}

TEST_F(Notifiers, KeepWhatTheyHaveToTellWhileTheirQueueIsFull) {
  watch(R"(,"wait":0,"interval":"1m")");
  patch("/v1/queues/argiope.notify.ops", R"({"capacity":1})");
  bury();
  pass(1s);
  bury();
  pass(5min);
  EXPECT_EQ(messages().size(), 1u);
  EXPECT_EQ(notifier_->statuses().at(0).gathered, 1u);
  settle_message({});
  pass(2min);
  EXPECT_EQ(notifier_->statuses().at(0).messages, 2u);
}

TEST_F(Notifiers, PutWhatIsGatheredWhenTheDaemonStops) {
  watch();
  bury();
  run([this]() -> Coro<void> { co_await notifier_->stop(); });
  EXPECT_EQ(messages().size(), 1u);
}

TEST_F(Notifiers, SendATest) {
  watch();
  run([this]() -> Coro<void> {
    EXPECT_TRUE(co_await notifier_->test("ops"));
    EXPECT_EQ((co_await notifier_->test("dev")).error().code, Errc::not_found);
  });
  ASSERT_EQ(messages().size(), 1u);
  EXPECT_EQ(messages()[0].at("status"), "test");
}

TEST_F(Notifiers, AreToldOfAndTriedByTheApi) {
  open();
  EXPECT_EQ(get("/v1/notify").text("/notify"), "[]");
  EXPECT_EQ(post("/v1/notify/ops/test").problem(), "not_found");
}

// --- what a message looks like

Notices notices() {
  Notices all;
  all.add({.trouble = Trouble::buried,
           .subject = "mail\nTo: eve@example.org",
           .text = "<!channel> & \"@here\"",
           .jobs = {7}});
  return all;
}

TEST(Messages, ForChatsCallNobodyAndHaveNoMarkup) {
  const NotifyRule rule = rule_of(R"({"name":"chat","format":"text","push":"https://chat.example/hook"})");
  const std::string text = write_message(rule, {.from = "host:1"}, notices());
  EXPECT_TRUE(text.starts_with(R"({"text":"argiope at host:1: 1 trouble\u000a• a job of queue)")) << text;
  EXPECT_THAT(text, HasSubstr("&lt;!channel&gt; &amp; "));
  EXPECT_THAT(text, Not(HasSubstr("@here")));
}

TEST(Messages, AsMailHaveOnlyHeadersOfTheConfiguration) {
  const NotifyRule rule =
      rule_of(R"({"name":"mail","format":"mail","to":"ann@example.org","from":"argiope@example.org"})");
  ASSERT_TRUE(rule.command);
  EXPECT_EQ(rule.command->args.front(), "/usr/sbin/sendmail");
  const std::string mail =
      write_message(rule, {.from = "host:1", .at = WallTime{std::chrono::seconds{1'790'000'000}}}, notices());
  EXPECT_TRUE(
      mail.starts_with("From: argiope@example.org\nTo: ann@example.org\nSubject: argiope: 1 trouble\n"
                       "Date: Mon, 21 Sep 2026 14:13:20 +0000\n"))
      << mail;
  const std::string head = mail.substr(0, mail.find("\n\n"));
  EXPECT_THAT(head, Not(HasSubstr("eve")));
  EXPECT_THAT(mail, Not(HasSubstr("\nTo: eve")));
}

TEST(NotifyRules, SayWhatIsWrongWithThem) {
  EXPECT_THAT(trouble_with(R"({"name":"a"})"), HasSubstr("it needs a `push` or a `command`"));
  EXPECT_THAT(trouble_with(R"({"name":"a","push":"https://x.example","command":["true"]})"), HasSubstr("one of them"));
  EXPECT_THAT(trouble_with(R"({"name":"a","push":"https://x.example","on":["weather"]})"),
              HasSubstr("on[0] \"weather\""));
  EXPECT_THAT(trouble_with(R"({"name":"a","push":"https://x.example","on":["depth"]})"), HasSubstr("say beyond which"));
  EXPECT_THAT(trouble_with(R"({"name":"a","push":"ftp://x.example"})"), HasSubstr("push"));
  EXPECT_THAT(trouble_with(R"({"name":"a","format":"mail"})"), HasSubstr("mail needs a `to`"));
  EXPECT_THAT(trouble_with(R"({"name":"a","format":"mail","to":"a@b.example\nBcc: eve"})"),
              HasSubstr("one line of ASCII"));
  EXPECT_THAT(trouble_with(R"({"name":"a","push":"https://x.example","speed":1})"), HasSubstr("speed"));
}

}  // namespace
}  // namespace argiope
