// Command lines as jobs, where processes die, leave others behind, or cannot be started: real ones, so in real time.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/stream.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/calls/calls.hpp"
#include "engine/broker_fixture.hpp"
#include "support/needs_descriptors.hpp"
#include "support/processes.hpp"

namespace argiope {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

// A command that starts a grandchild in a session of its own, which outlives whoever started it and says its pid.
std::string leaves_behind(const std::string& file) {
  return "setsid sh -c 'echo $$ > " + file + ".new; mv " + file + ".new " + file +
         "; exec sleep 300' >/dev/null 2>&1 </dev/null & ";
}
// The same forked twice, so that it is nobody's child any more.
std::string leaves_orphan_behind(const std::string& file) { return "( ( " + leaves_behind(file) + ") & ); "; }
std::string wait_for(const std::string& file) { return "while [ ! -e " + file + " ]; do sleep 0.01; done; "; }

class CommandTest : public testing::Test {
 protected:
  struct Ended {
    JobRecord record;
    Result<void> worker;
  };
  Ended run(CommandOptions options, std::string payload = {}) {
    Ended ended;
    loop_.run_until_complete(keeping([&]() -> Coro<void> {
      MemoryStore store;
      auto opened = co_await Engine::open(store);
      Engine& engine = *opened;
      QueueConfig config;
      config.keep_done = 1h;
      config.retry.max_attempts = 1;
      value_or_throw(co_await engine.book().configure("q", config));
      NewJob job;
      job.queue = "q";
      job.payload = payload;
      const JobId id = (co_await engine.book().put(job))->id;
      Worker worker(engine, {.queues = {"q"}, .until_empty = true});
      worker.add("q", as_command(options));
      ended.worker = co_await worker.run();
      ended.record = *co_await engine.book().get(id);
      EXPECT_TRUE(co_await engine.close());
    }));
    return ended;
  }
  // In a folder whose files may be run, which /dev/shm often is not.
  CommandTest() { ::mkdtemp(folder_.data()); }
  ~CommandTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_ = (std::filesystem::temp_directory_path() / "argiope-command-XXXXXX").string();
  SystemClock clock_;
  AsioBackend backend_{clock_};
  EventLoop loop_{backend_};
};

// --- starting --------------------------------------------------------------------------------------------------------

TEST_F(CommandTest, AProgramThatIsNotThereIsRefusedBeforeAnyJobIsTaken) {
  EXPECT_THROW(as_command({.args = {"/nowhere/at-all"}}), std::system_error);
  EXPECT_THROW(as_command({.args = {"no-such-program-anywhere"}}), std::system_error);
  EXPECT_THROW(as_command({.args = {"./here"}, .directory = folder_}), std::system_error);
}

TEST_F(CommandTest, AProgramThatTheJobItselfNamesIsTheJobsFailure) {
  const auto [record, worker] = run({.args = {"/nowhere/at-all"}, .is_from_job = true});
  EXPECT_TRUE(worker);
  EXPECT_EQ(record.state, JobState::buried);
  EXPECT_EQ(record.error, "cannot run \"/nowhere/at-all\": No such file or directory");
}

TEST_F(CommandTest, WhatIsWrongWithAProgramIsSaid) {
  std::ofstream(file("plain")) << "#!/bin/sh\n";
  EXPECT_THAT(find_program(file("plain")).error().message, HasSubstr("not executable"));
  EXPECT_THAT(find_program(folder_).error().message, HasSubstr("directory"));
  EXPECT_THAT(find_program("./none", folder_).error().message, HasSubstr("\"./none\" in "));
  EXPECT_THAT(find_program("no-such-program-anywhere").error().message, HasSubstr("PATH"));
  EXPECT_THAT(find_program("sh").value_or(""), testing::EndsWith("/sh"));
  EXPECT_FALSE(find_program(""));
}

TEST_F(CommandTest, ARelativeProgramCountsFromItsDirectory) {
  std::ofstream(file("where")) << "#!/bin/sh\npwd\n";
  std::filesystem::permissions(file("where"), std::filesystem::perms::owner_all);
  EXPECT_EQ(run({.args = {"./where"}, .directory = folder_}).record.result, folder_ + "\n");
}

TEST_F(CommandTest, AScriptThatDoesNotSayWhatRunsItIsRunByTheShell) {
  std::ofstream(file("script")) << "echo \"$1 from $0\"\n";
  std::filesystem::permissions(file("script"), std::filesystem::perms::owner_all);
  EXPECT_EQ(run({.args = {file("script"), "hello"}}).record.result, "hello from " + file("script") + "\n");
}

TEST_F(CommandTest, WhereNothingCanBeStartedTheWorkerStopsAndTheJobHasLostNothing) {
  ARGIOPE_NEEDS_DESCRIPTORS;
  // So few descriptors that no pipe can be made, and none is given back.
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  JobRecord record;
  Result<void> worked;
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    MemoryStore store;
    auto opened = co_await Engine::open(store);
    Engine& engine = *opened;
    NewJob job;
    job.queue = "q";
    job.max_attempts = 1;
    const JobId id = (co_await engine.book().put(job))->id;
    Worker worker(engine, {.queues = {"q"}});
    worker.add("q", as_command({.args = {"true"}, .patience = 200ms}));
    rlimit few = before;
    few.rlim_cur = 3;
    ::setrlimit(RLIMIT_NOFILE, &few);
    worked = co_await worker.run();
    ::setrlimit(RLIMIT_NOFILE, &before);
    record = *co_await engine.book().get(id);
    EXPECT_TRUE(co_await engine.close());
  }));
  EXPECT_FALSE(worked);
  if (!worked) EXPECT_THAT(worked.error().message, HasSubstr("Too many open files"));
  EXPECT_EQ(record.state, JobState::ready);
  EXPECT_EQ(record.attempts, 0u);
}

TEST_F(CommandTest, WhatCouldNotBeStartedForAMomentIsStartedAfterwards) {
  ARGIOPE_NEEDS_DESCRIPTORS;
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit few = before;
  few.rlim_cur = 3;
  ::setrlimit(RLIMIT_NOFILE, &few);
  loop_.call_later(300ms, [&] { ::setrlimit(RLIMIT_NOFILE, &before); });
  const auto [record, worker] = run({.args = {"echo", "hello"}});
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(worker);
  EXPECT_EQ(record.result, "hello\n");
}

TEST_F(CommandTest, CommandsHaveTheLimitOfOpenFilesThatWeWereGiven) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  if (before.rlim_max < 300) GTEST_SKIP() << "the hard limit is too low";
  rlimit low = before;
  low.rlim_cur = 256;
  ::setrlimit(RLIMIT_NOFILE, &low);
  EXPECT_GE(raise_open_files_limit(), 300u);
  EXPECT_EQ(run({.args = {"sh", "-c", "ulimit -Sn"}}).record.result, "256\n");
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(CommandTest, HasNoDescriptorsButItsThree) {
  EXPECT_EQ(run({.args = {"sh", "-c", "ls /proc/$$/fd"}}).record.result, "0\n1\n2\n");
}

TEST_F(CommandTest, TellsItTheTokenOfItsRun) {
  EXPECT_THAT(run({.args = {"sh", "-c", "echo $ARGIOPE_JOB_TOKEN"}}).record.result, MatchesRegex("[1-9][0-9]*\n"));
}

// --- what is left ----------------------------------------------------------------------------------------------------

TEST_F(CommandTest, AFailedRunKeepsWhatItPrinted) {
  const JobRecord record = run({.args = {"sh", "-c", "echo out; echo first >&2; echo last >&2; exit 3"}}).record;
  EXPECT_EQ(record.state, JobState::buried);
  EXPECT_EQ(record.error, "last");
  EXPECT_EQ(record.result, "out\nfirst\nlast\n");
}

TEST_F(CommandTest, OfLongErrorsTheEndIsKept) {
  const JobRecord record = run({.args = {"sh", "-c", "seq 100000 >&2; exit 3"}}).record;
  EXPECT_LE(record.result.size(), 16u * 1024);
  EXPECT_THAT(record.result, testing::EndsWith("99999\n100000\n"));
  EXPECT_THAT(record.result, MatchesRegex("[0-9]+\n(.|\n)*"));
}

TEST_F(CommandTest, AtTheTimeoutAllThatDescendsFromItIsKilled) {
  for (const bool orphan : {false, true}) {
    const std::string mark = file(orphan ? "orphan" : "session");
    pid_t left = 0;
    // On a busy machine the time may be over before it has left anything behind: then with more of it.
    for (int seconds = 1; left == 0 && seconds < 100; seconds *= 3) {
      const JobRecord record =
          run({.args = {"sh", "-c",
                        (orphan ? leaves_orphan_behind(mark) : leaves_behind(mark)) + wait_for(mark) + "sleep 300"},
               .timeout = std::chrono::seconds{seconds},
               .grace = 1s})
              .record;
      EXPECT_EQ(record.error, "out of time after " + format_duration(std::chrono::seconds{seconds}));
      left = read_pid(mark);
    }
    ASSERT_GT(left, 0);
    EXPECT_TRUE(comes_true([&] { return !is_alive(left); })) << (orphan ? "forked twice" : "in its own session");
  }
}

TEST_F(CommandTest, WhatACommandLeavesBehindWhenItEndsWellMayStay) {
  const std::string mark = file("daemon");
  EXPECT_EQ(run({.args = {"sh", "-c", leaves_behind(mark) + wait_for(mark) + "echo done"}}).record.result, "done\n");
  const pid_t left = read_pid(mark);
  ASSERT_GT(left, 0);
  EXPECT_TRUE(is_alive(left));
  ::kill(left, SIGKILL);
}

TEST_F(CommandTest, ASignalThatEndsItIsSeenThroughItsSupervisor) {
  EXPECT_EQ(run({.args = {"sh", "-c", "kill -9 $$"}}).record.error, "ended by signal 9");
  EXPECT_EQ(run({.args = {"sh", "-c", "kill -15 $$"}}).record.error, "ended by signal 15");
  EXPECT_EQ(run({.args = {"sh", "-c", "exit 77"}}).record.error, "exit status 77");
}

// --- supervised processes --------------------------------------------------------------------------------------------

class SupervisedTest : public CommandTest {
 protected:
  Process start(const std::string& line) {
    return create_subprocess_exec({"sh", "-c", line}, {.out = Stdio::pipe, .supervised = true});
  }
};

TEST_F(SupervisedTest, WaitsForAllThatDescendFromIt) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    const std::string mark = file("left");
    Process process = start(leaves_behind(mark) + wait_for(mark) + "exit 5");
    EXPECT_TRUE(comes_true([&] { return read_pid(mark) > 0; }));
    auto waiting = EventLoop::current().create_task(process.wait());
    co_await sleep(50ms);
    EXPECT_FALSE(waiting.done());
    ::kill(read_pid(mark), SIGKILL);
    EXPECT_EQ(co_await waiting, 5);
  }));
}

TEST_F(SupervisedTest, EndsGentlyAndThenKillsWhatIsLeft) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    const std::string mark = file("left");
    Process process = start(leaves_orphan_behind(mark) + "trap 'echo bye; exit 3' TERM; " + wait_for(mark) +
                            "echo ready; while :; do sleep 0.01; done");
    EXPECT_EQ(co_await process.out().read_line(), "ready\n");
    process.terminate();
    EXPECT_EQ(co_await process.wait(), 3);
    EXPECT_FALSE(is_alive(read_pid(mark)));
  }));
}

TEST_F(SupervisedTest, KillsEveryGenerationAtOnce) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    const std::string mark = file("left");
    std::string line = "sleep 300";
    for (int i = 0; i < 5; ++i)
      line = leaves_behind(mark + std::to_string(i)) + wait_for(mark + std::to_string(i)) + line;
    Process process = start(line);
    EXPECT_TRUE(comes_true([&] { return read_pid(mark + "0") > 0 && read_pid(mark + "4") > 0; }));
    process.kill();
    EXPECT_EQ(co_await process.wait(), -SIGKILL);
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(is_alive(read_pid(mark + std::to_string(i)))) << i;
  }));
}

TEST_F(SupervisedTest, DestroyingItEndsTheTree) {
  const std::string mark = file("left");
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    Process process = start(leaves_orphan_behind(mark) + wait_for(mark) + "sleep 300");
    EXPECT_TRUE(comes_true([&] { return read_pid(mark) > 0; }));
    co_return;
  }));
  EXPECT_FALSE(is_alive(read_pid(mark)));
}

TEST_F(SupervisedTest, NothingOfTheTreeOutlivesAProcessThatIsKilled) {
  const std::string mark = file("left"), other = file("other");
  const pid_t worker = ::fork();
  if (worker == 0) {
    SystemClock clock;
    AsioBackend backend(clock);
    EventLoop loop(backend);
    loop.run_until_complete([](std::string line) -> Coro<void> {
      Process process = create_subprocess_exec({"sh", "-c", line}, {.supervised = true});
      co_await process.wait();
    }(leaves_behind(mark) + leaves_orphan_behind(other) + wait_for(mark) + wait_for(other) + "sleep 300"));
    ::_exit(0);
  }
  ASSERT_TRUE(comes_true([&] { return read_pid(mark) > 0 && read_pid(other) > 0; }));
  ::kill(worker, SIGKILL);
  ::waitpid(worker, nullptr, 0);
  EXPECT_TRUE(comes_true([&] { return !is_alive(read_pid(mark)) && !is_alive(read_pid(other)); }));
}

TEST_F(SupervisedTest, ItsPidIsTheCommandsOwn) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    Process process = start("echo $$; exec sleep 300");
    EXPECT_EQ(co_await process.out().read_line(), std::to_string(process.pid()) + "\n");
    EXPECT_EQ(::getsid(process.pid()), process.pid());
    process.kill();
    co_await process.wait();
  }));
}

TEST_F(SupervisedTest, WhatCannotBeRunIsAnErrorAtOnce) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    std::ofstream(file("bad")) << "#!/nowhere/at-all\n";
    std::filesystem::permissions(file("bad"), std::filesystem::perms::owner_all);
    try {
      create_subprocess_exec({file("bad")}, {.supervised = true});
      ADD_FAILURE() << "it was started";
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code().value(), ENOENT);
    }
    EXPECT_THROW(create_subprocess_exec({"true"}, {.working_directory = "/nowhere/at-all", .supervised = true}),
                 std::system_error);
    co_return;
  }));
}

}  // namespace
}  // namespace argiope
