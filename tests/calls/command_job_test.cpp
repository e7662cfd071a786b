// What a command that runs as a job gets, and what becomes of its output, its errors and its end: real processes, so
// real time.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "argiope/async/asio_backend.hpp"
#include "argiope/calls/calls.hpp"
#include "engine/broker_fixture.hpp"
#include "support/processes.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

class CommandJobTest : public testing::Test {
 protected:
  JobRecord run(CommandOptions options, std::string payload = {}, QueueConfig config = {}) {
    config.keep_done = 1h;
    config.retry.max_attempts = 1;
    JobRecord record;
    loop_.run_until_complete(keeping([&]() -> Coro<void> {
      MemoryStore store;
      auto opened = co_await Engine::open(store);
      Engine& engine = *opened;
      value_or_throw(co_await engine.book().configure("q", config));
      NewJob job;
      job.queue = "q";
      job.key = "the key";
      job.payload = payload;
      const JobId id = (co_await engine.book().put(job))->id;
      Worker worker(engine, {.queues = {"q"}, .until_empty = true});
      worker.add("q", as_command(options));
      EXPECT_TRUE(co_await worker.run());
      record = *co_await engine.book().get(id);
      EXPECT_TRUE(co_await engine.close());
    }));
    return record;
  }
  SystemClock clock_;
  AsioBackend backend_{clock_};
  EventLoop loop_{backend_};
};

TEST_F(CommandJobTest, GivesItThePayloadAndTakesItsOutput) {
  const JobRecord record = run({.args = {"tr", "a-z", "A-Z"}}, "hello");
  EXPECT_EQ(record.state, JobState::done);
  EXPECT_EQ(record.result, "HELLO");
}

TEST_F(CommandJobTest, TellsItWhichJobItRuns) {
  const JobRecord record =
      run({.args = {"sh", "-c", "echo $ARGIOPE_JOB_ID $ARGIOPE_JOB_QUEUE $ARGIOPE_JOB_KEY $ARGIOPE_JOB_ATTEMPT"}});
  EXPECT_EQ(record.result, "1 q the key 1\n");
}

TEST_F(CommandJobTest, AFailureHasTheLastLineOfItsErrors) {
  const JobRecord record = run({.args = {"sh", "-c", "echo first >&2; echo last >&2; exit 3"}});
  EXPECT_EQ(record.state, JobState::buried);
  EXPECT_EQ(record.error, "last");
  EXPECT_EQ(run({.args = {"sh", "-c", "exit 4"}}).error, "exit status 4");
  EXPECT_EQ(run({.args = {"sh", "-c", "kill -9 $$"}}).error, "ended by signal 9");
}

TEST_F(CommandJobTest, ExitStatusesThatAreGoodEndItWithARemark) {
  const std::vector<int> ok{0, 1, 65};
  const JobRecord found = run({.args = {"sh", "-c", "echo out; echo '2 broken links' >&2; exit 1"}, .ok_status = ok});
  EXPECT_EQ(found.state, JobState::done);
  EXPECT_EQ(found.error, "2 broken links");
  EXPECT_EQ(found.result, "out\n");
  EXPECT_EQ(run({.args = {"sh", "-c", "exit 65"}, .ok_status = ok}).error, "exit status 65");
  EXPECT_EQ(run({.args = {"sh", "-c", "echo said >&2"}, .ok_status = ok}).error, "");
  EXPECT_EQ(run({.args = {"sh", "-c", "exit 2"}, .ok_status = ok}).state, JobState::buried);
  EXPECT_EQ(run({.args = {"true"}, .ok_status = {1}}).state, JobState::buried);
}

TEST_F(CommandJobTest, KnowsTheFindingsOfACrawl) {
  TemporaryFolder folder;
  const std::string argiope = folder.file("argiope");
  std::ofstream(argiope) << "#!/bin/sh\nprintf '\\nFinished after 2 s: 12 pages\\n  status  200: 12\\n'\n"
                            "echo 'argiope: 1 error' >&2; exit $2\n";
  std::filesystem::permissions(argiope, std::filesystem::perms::owner_all);
  const auto crawl = [&](const char* what, const char* status) { return run({.args = {argiope, what, status}}); };
  EXPECT_EQ(crawl("crawl", "0").error, "Finished after 2 s: 12 pages");
  EXPECT_EQ(crawl("crawl", "1").error, "argiope: 1 error");
  EXPECT_EQ(crawl("crawl", "1").state, JobState::done);
  EXPECT_EQ(crawl("crawl", "3").state, JobState::buried);
  EXPECT_EQ(crawl("serve", "1").state, JobState::buried);
}

TEST_F(CommandJobTest, ThatACrawlHadNothingToAskIsItsRemark) {
  TemporaryFolder folder;
  const std::string argiope = folder.file("argiope");
  std::ofstream(argiope)
      << "#!/bin/sh\necho 'Finished after 0 s: 0 pages'; echo 'argiope: nothing was due, and so on' >&2\n";
  std::filesystem::permissions(argiope, std::filesystem::perms::owner_all);
  EXPECT_EQ(run({.args = {argiope, "crawl"}}).error, "argiope: nothing was due, and so on");
}

TEST_F(CommandJobTest, OfAQuietCrawlTheSummaryInJsonIsTheRemarkInWords) {
  TemporaryFolder folder;
  const std::string argiope = folder.file("argiope");
  std::ofstream(argiope) << "#!/bin/sh\necho \"$2\"\n";
  std::filesystem::permissions(argiope, std::filesystem::perms::owner_all);
  const auto remark = [&](const std::string& summary) { return run({.args = {argiope, "crawl", summary}}).error; };
  EXPECT_EQ(
      remark(
          R"({"pages":1,"fetched":612,"links":4311,"findings":{"broken":0},"findings_errors":0,"findings_new":0,"finished":true})"),
      "612 URLs asked, 4,311 links, nothing new");
  EXPECT_EQ(remark(R"({"fetched":1,"links":1,"broken":7,"findings_errors":3,"findings_new":2})"),
            "1 URL asked, 1 link, 3 errors, 2 new");
  EXPECT_EQ(remark(R"({"fetched":9,"broken":1,"finished":false,"stopped_by":"max_pages"})"),
            "9 URLs asked, 1 broken link, stopped by max_pages");
  EXPECT_EQ(remark("{\"fetched\":9,\"traps\":[" + std::string(3000, ' ') + "]}"), "9 URLs asked")
      << "however long it is";
  EXPECT_EQ(remark("no object"), "");
  EXPECT_EQ(remark("[1]"), "");
  EXPECT_EQ(remark(R"({"fetched":"many"})"), "");
}

TEST_F(CommandJobTest, OfACrawlThatSaysNothingBesidesItsReportTheSummaryIsTheRemark) {
  TemporaryFolder folder;
  const std::string argiope = folder.file("argiope");
  std::ofstream(argiope) << "#!/bin/sh\nprintf 'error broken: 404\\n\\n1 error in 2 links\\n'; exit 1\n";
  std::filesystem::permissions(argiope, std::filesystem::perms::owner_all);
  EXPECT_EQ(run({.args = {argiope, "crawl", "check"}}).error, "1 error in 2 links");
  EXPECT_EQ(run({.args = {argiope, "serve"}}).error, "exit status 1");
}

TEST_F(CommandJobTest, AProgramThatIsNotThereIsAnError) {
  EXPECT_THAT(run({.args = {"/nowhere/at-all"}, .is_from_job = true}).error, testing::HasSubstr("/nowhere/at-all"));
}

TEST_F(CommandJobTest, IsKilledWithItsChildrenAtTheTimeout) {
  TemporaryFolder folder;
  const std::string mark = folder.file("grandchild");
  pid_t grandchild = 0;
  // On a busy machine the time may be over before the grandchild has said its pid: then with more of it.
  for (Duration timeout = 50ms; grandchild == 0 && timeout < 20s; timeout *= 2) {
    const JobRecord record =
        run({.args = {"sh", "-c", "sh -c 'echo $$ > " + mark + "; exec sleep 300' & sleep 300"}, .timeout = timeout});
    EXPECT_THAT(record.error, testing::HasSubstr("out of time"));
    grandchild = read_pid(mark);
  }
  ASSERT_NE(grandchild, 0);
  EXPECT_TRUE(comes_true([&] { return !is_alive(grandchild); }));
}

TEST_F(CommandJobTest, WhatItHasPrintedIsKeptWhenItIsOutOfTime) {
  // On a busy machine the time may be over before it has printed: then with more of it.
  JobRecord record;
  for (Duration timeout = 100ms; record.result.empty() && timeout < 20s; timeout *= 2) {
    record = run({.args = {"sh", "-c", "echo so far; exec sleep 300"}, .timeout = timeout});
    EXPECT_THAT(record.error, testing::HasSubstr("out of time"));
  }
  EXPECT_EQ(record.result, "so far\n");
}

TEST_F(CommandJobTest, OutputWithoutEndIsAnError) {
  const JobRecord record = run({.args = {"yes"}, .most_output = 1000});
  EXPECT_THAT(record.error, testing::HasSubstr("longer than 1000 bytes"));
}

}  // namespace
}  // namespace argiope
