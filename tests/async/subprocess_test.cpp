// Child processes: starting, their pipes, their end, signals, and that nothing of them is ever left behind.
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "argiope/async/stream.hpp"
#include "support/descriptors.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

// Neither running nor a zombie, of ours.
bool is_gone(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
}

const SubprocessOptions kAllPiped{.in = Stdio::pipe, .out = Stdio::pipe, .err = Stdio::pipe};

class SubprocessTest : public InSomeWorld {
 public:
  static Process shell(const std::string& command, const SubprocessOptions& options = kAllPiped) {
    return create_subprocess_shell(command, options);
  }
  // What a shell command writes to its stdout.
  static Coro<std::string> output_of(std::string command, SubprocessOptions options) {
    options.out = Stdio::pipe;
    Process process = create_subprocess_shell(command, options);
    co_return (co_await process.communicate()).out;
  }
};
INSTANTIATE_TEST_SUITE_P(RealWorlds, SubprocessTest, kRealWorlds, world_name);

// --- starting ----------------------------------------------------------------------------------------------------

TEST_P(SubprocessTest, AProgramRunsAndItsStatusIsReturned) {
  this->run([&]() -> Coro<void> {
    Process good = create_subprocess_exec({"true"});
    Process bad = create_subprocess_exec({"sh", "-c", "exit 7"});
    EXPECT_GT(good.pid(), 0);
    EXPECT_EQ(good.returncode(), std::nullopt);
    EXPECT_EQ(co_await good.wait(), 0);
    EXPECT_EQ(co_await bad.wait(), 7);
    EXPECT_EQ(bad.returncode(), 7);
    EXPECT_EQ(co_await bad.wait(), 7) << "as often as one likes";
  });
}

TEST_P(SubprocessTest, ArgumentsArriveAsTheyAre) {
  this->run([&]() -> Coro<void> {
    Process process = create_subprocess_exec({"printf", "%s|", "a b", "", "$HOME", "\n"}, {.out = Stdio::pipe});
    EXPECT_EQ((co_await process.communicate()).out, "a b||$HOME|\n|");
  });
}

TEST_P(SubprocessTest, WhatCannotBeStartedIsAnErrorThatNamesIt) {
  this->run([&]() -> Coro<void> {
    try {
      create_subprocess_exec({"no-such-program"}, kAllPiped);
      ADD_FAILURE();
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), std::errc::no_such_file_or_directory);
      EXPECT_NE(std::string(error.what()).find("no-such-program"), std::string::npos);
    }
    try {
      create_subprocess_exec({"true"}, {.working_directory = "/no/such/place"});
      ADD_FAILURE();
    } catch (const std::system_error& error) {
      EXPECT_NE(std::string(error.what()).find("/no/such/place"), std::string::npos);
    }
    EXPECT_THROW(create_subprocess_exec({"/etc/passwd"}), std::system_error);
    EXPECT_THROW(create_subprocess_exec({}), std::invalid_argument);
    EXPECT_THROW(create_subprocess_exec({"true", std::string("a\0b", 3)}), std::invalid_argument);
    EXPECT_THROW(create_subprocess_exec({"true"}, {.environment = {{std::string("a\0b", 3)}}}), std::invalid_argument);
    EXPECT_THROW(create_subprocess_exec({"true"}, {.working_directory = std::string("/\0b", 3)}),
                 std::invalid_argument);
    EXPECT_THROW(create_subprocess_exec({"true"}, {.out = Stdio::to_stdout}), std::invalid_argument);
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
    co_return;
  });
}

TEST_P(SubprocessTest, EnvironmentAndDirectoryAreWhatTheOptionsSay) {
  ::setenv("ARGIOPE_TEST", "inherited", 1);
  this->run([&]() -> Coro<void> {
    EXPECT_EQ(co_await this->output_of("echo $ARGIOPE_TEST", {}), "inherited\n");
    EXPECT_EQ(co_await this->output_of("echo $ARGIOPE_TEST$OTHER", {.environment = {{"OTHER=given"}}}), "given\n");
    EXPECT_EQ(co_await this->output_of("pwd", {.working_directory = "/usr"}), "/usr\n");
  });
  ::unsetenv("ARGIOPE_TEST");
}

TEST_P(SubprocessTest, TheChildHasOnlyItsThreeDescriptorsAndNoSignalHeldBack) {
  auto [ours, theirs] = make_socket_pair();
  ::fcntl(ours.get(), F_SETFD, 0);  // would be inherited
  sigset_t usr1;
  ::sigemptyset(&usr1);
  ::sigaddset(&usr1, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
  ::signal(SIGUSR2, SIG_IGN);
  this->run([&]() -> Coro<void> {
    Process process = create_subprocess_exec({"ls", "/proc/self/fd"}, kAllPiped);
    EXPECT_EQ((co_await process.communicate()).out, "0\n1\n2\n3\n") << "3 is how ls reads the directory";
    const auto has = [](const std::string& mask, int signal_number) {
      return (std::stoull(mask, nullptr, 16) >> (signal_number - 1) & 1) != 0;
    };
    EXPECT_FALSE(has(co_await this->output_of("sed -n 's/^SigBlk://p' /proc/self/status", {}), SIGUSR1));
    EXPECT_FALSE(has(co_await this->output_of("sed -n 's/^SigIgn://p' /proc/self/status", {}), SIGUSR2));
  });
  ::signal(SIGUSR2, SIG_DFL);
  ::pthread_sigmask(SIG_UNBLOCK, &usr1, nullptr);
}

TEST_P(SubprocessTest, ANewSessionIsLedByTheChild) {
  this->run([&]() -> Coro<void> {
    Process process = this->shell("cut -d' ' -f6 /proc/$$/stat", {.out = Stdio::pipe, .new_session = true});
    EXPECT_EQ((co_await process.communicate()).out, std::to_string(process.pid()) + "\n");
  });
}

TEST_P(SubprocessTest, StdioMayBeNullOrShared) {
  this->run([&]() -> Coro<void> {
    Process shared = this->shell("echo out; echo err >&2", {.out = Stdio::pipe, .err = Stdio::to_stdout});
    EXPECT_EQ((co_await shared.communicate()).out, "out\nerr\n");
    Process quiet = this->shell("cat; echo out; echo err >&2",
                                {.in = Stdio::devnull, .out = Stdio::devnull, .err = Stdio::devnull});
    EXPECT_THROW(quiet.in(), std::logic_error);
    EXPECT_THROW(quiet.out(), std::logic_error);
    EXPECT_THROW(quiet.err(), std::logic_error);
    EXPECT_EQ(co_await quiet.wait(), 0);
  });
}

// --- pipes -------------------------------------------------------------------------------------------------------

TEST_P(SubprocessTest, PipesAreStreams) {
  this->run([&]() -> Coro<void> {
    Process process = this->shell("read line; echo got $line; read line; echo got $line >&2");
    process.in().write("one\n");
    EXPECT_EQ(co_await process.out().read_line(), "got one\n");
    process.in().write("two\n");
    EXPECT_EQ(co_await process.err().read_line(), "got two\n");
    EXPECT_EQ(co_await process.out().read_line(), "");
    EXPECT_EQ(co_await process.wait(), 0);
  });
}

TEST_P(SubprocessTest, CommunicateMovesMoreThanThePipesHold) {
  this->run([&]() -> Coro<void> {
    const std::string input(3'000'000, 'x');
    Process process = this->shell("tee /dev/stderr");
    const ProcessOutput output = co_await process.communicate(input);
    EXPECT_EQ(output.out, input);
    EXPECT_EQ(output.err, input);
    EXPECT_EQ(process.returncode(), 0);
  });
}

TEST_P(SubprocessTest, AChildThatDoesNotReadItsInputIsNoError) {
  this->run([&]() -> Coro<void> {
    Process process = this->shell("exec <&-; echo enough");
    EXPECT_EQ((co_await process.communicate(std::string(3'000'000, 'x'))).out, "enough\n");
  });
}

TEST_P(SubprocessTest, OutputIsLimited) {
  this->run([&]() -> Coro<void> {
    Process process = this->shell("yes >&2");
    bool overrun = false;
    try {
      co_await process.communicate("", 100'000);
    } catch (const LimitOverrunError&) {
      overrun = true;
    }
    EXPECT_TRUE(overrun);
    EXPECT_EQ(process.returncode(), std::nullopt) << "what to do with it is the caller's to say";
    process.kill();
    EXPECT_EQ(co_await process.wait(), -SIGKILL);
  });
}

TEST_P(SubprocessTest, InputWithoutAPipeIsRefused) {
  this->run([&]() -> Coro<void> {
    Process process = create_subprocess_exec({"true"}, {.in = Stdio::devnull});
    bool refused = false;
    try {
      co_await process.communicate("something");
    } catch (const std::logic_error&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
    const ProcessOutput output = co_await process.communicate();
    EXPECT_EQ(output.out + output.err, "");
  });
}

// --- its end -----------------------------------------------------------------------------------------------------

TEST_P(SubprocessTest, SignalsReachItAndAreItsReturncode) {
  this->run([&]() -> Coro<void> {
    for (const int signal_number : {SIGTERM, SIGKILL, SIGUSR1}) {
      Process process = create_subprocess_exec({"sleep", "1000"});
      if (signal_number == SIGTERM) {
        process.terminate();
      } else if (signal_number == SIGKILL) {
        process.kill();
      } else {
        process.send_signal(signal_number);
      }
      EXPECT_EQ(co_await process.wait(), -signal_number);
      EXPECT_TRUE(is_gone(process.pid()));
      try {
        process.terminate();
        ADD_FAILURE();
      } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), std::errc::no_such_process);
      }
    }
    Process process = create_subprocess_exec({"sleep", "1000"});
    EXPECT_THROW(process.send_signal(1000), std::system_error);
  });
}

TEST_P(SubprocessTest, SeveralTasksMayWait) {
  this->run([&]() -> Coro<void> {
    Process process = this->shell("read line; exit 3");
    auto first = this->loop.create_task(process.wait());
    auto second = this->loop.create_task(process.wait());
    co_await sleep(1ms);
    EXPECT_FALSE(first.done() || second.done());
    process.in().close();
    EXPECT_EQ(co_await first, 3);
    EXPECT_EQ(co_await second, 3);
  });
}

TEST_P(SubprocessTest, AChildIsReapedThoughNobodyWaits) {
  this->run([&]() -> Coro<void> {
    Process process = create_subprocess_exec({"true"});
    while (!process.returncode()) co_await yield_now();
    EXPECT_EQ(process.returncode(), 0);
    EXPECT_TRUE(is_gone(process.pid()));
  });
}

TEST_P(SubprocessTest, CancellingAWaitLeavesTheChild) {
  this->run([&]() -> Coro<void> {
    Process process = this->shell("cat");
    auto waiting = this->loop.create_task(process.wait());
    co_await sleep(1ms);
    waiting.cancel();
    while (!waiting.done()) co_await yield_now();
    EXPECT_TRUE(waiting.cancelled());
    bool timed_out = false;
    try {
      co_await wait_for(process.wait(), 1ms);
    } catch (const TimeoutError&) {
      timed_out = true;
    }
    EXPECT_TRUE(timed_out);
    EXPECT_EQ(process.returncode(), std::nullopt);
    EXPECT_EQ((co_await process.communicate("still there")).out, "still there");
  });
}

TEST_P(SubprocessTest, CancellingCommunicateLeavesTheChildAndWhatItWrote) {
  this->run([&]() -> Coro<void> {
    Process process = this->shell("trap 'echo late; kill $!; exit 4' USR1; sleep 1000 & echo early; wait");
    for (int turns = 0; turns < 8; ++turns) {
      auto talking = this->loop.create_task(process.communicate());
      for (int i = 0; i < turns; ++i) co_await yield_now();
      talking.cancel();
      while (!talking.done()) co_await yield_now();
      EXPECT_TRUE(talking.cancelled());
    }
    bool early = false;
    try {
      co_await process.out().read_all(5);
    } catch (const LimitOverrunError&) {
      early = true;  // and its six bytes are still there
    }
    EXPECT_TRUE(early);
    process.send_signal(SIGUSR1);
    EXPECT_EQ((co_await process.communicate()).out, "early\nlate\n");
    EXPECT_EQ(process.returncode(), 4);
  });
}

TEST_P(SubprocessTest, DestroyingKillsAndReapsAndEndsWhatWaits) {
  this->run([&]() -> Coro<void> {
    Process process = this->shell("exec sleep 1000");
    const pid_t pid = process.pid();
    auto waiting = this->loop.create_task(process.wait());
    auto reading = this->loop.create_task(process.out().read(1));
    co_await sleep(1ms);
    process = create_subprocess_exec({"true"});
    EXPECT_TRUE(is_gone(pid));
    EXPECT_EQ(co_await waiting, -SIGKILL);
    EXPECT_EQ(co_await reading, "");
    EXPECT_EQ(co_await process.wait(), 0);
  });
}

TEST_P(SubprocessTest, AProcessThatWasMovedFromSaysSo) {
  this->run([&]() -> Coro<void> {
    Process process = create_subprocess_exec({"true"});
    Process taken = std::move(process);
    EXPECT_THROW(process.pid(), std::logic_error);
    EXPECT_THROW(static_cast<void>(process.wait()), std::logic_error);
    EXPECT_EQ(co_await taken.wait(), 0);
  });
}

TEST_P(SubprocessTest, ALoopMayBeDestroyedWithAChildRunning) {
  pid_t pid = 0;
  {
    EventLoop doomed(this->world.backend);
    static_cast<void>(doomed.create_task(keeping([&]() -> Coro<void> {
      Process process = this->shell("exec sleep 1000");
      pid = process.pid();
      co_await process.communicate("x");
    })));
    for (int i = 0; i < 5; ++i) doomed.run_once(TimePoint::min());
    ASSERT_GT(pid, 0);
    EXPECT_FALSE(is_gone(pid));
  }
  EXPECT_TRUE(is_gone(pid));
}

TEST_P(SubprocessTest, AStatusThatSomebodyElseTookIs255) {
  this->run([&]() -> Coro<void> {
    Process process = create_subprocess_exec({"true"});
    EXPECT_EQ(::waitpid(process.pid(), nullptr, 0), process.pid());
    EXPECT_EQ(co_await process.wait(), 255);
  });
}

TEST_P(SubprocessTest, ManyChildrenRunAtOnceAndNoDescriptorIsLeft) {
  this->run([&]() -> Coro<void> {
    const int lowest_free = ::dup(0);
    ::close(lowest_free);
    std::vector<Coro<std::string>> all;
    for (int i = 0; i < 20; ++i) all.push_back(this->output_of("cat; echo " + std::to_string(i), {.in = Stdio::pipe}));
    const std::vector<std::string> outputs = co_await gather(std::move(all));
    for (int i = 0; i < 20; ++i) EXPECT_EQ(outputs[static_cast<std::size_t>(i)], std::to_string(i) + "\n");
    const int lowest_now = ::dup(0);
    ::close(lowest_now);
    EXPECT_EQ(lowest_now, lowest_free);
  });
}

TEST(SubprocessSweep, AProcessCancelledAtAnyTurnIsGoneAndLeavesNoDescriptor) {
  const SystemClock clock;
  AsioBackend backend(clock);
  const auto lowest_free = [] { return detail::UniqueFd(::dup(STDERR_FILENO)).get(); };
  const int free_before = lowest_free();
  bool complete = false;
  for (int turns = 0; !complete; ++turns) {
    EventLoop loop(backend);
    shuffle_if_asked(loop);
    auto task = loop.create_task([]() -> Coro<ProcessOutput> {
      Process process = create_subprocess_shell("cat; echo done >&2", kAllPiped);
      co_return co_await process.communicate(std::string(500'000, 'x'));
    }());
    for (int i = 0; i < turns && !task.done(); ++i) loop.run_once(loop.time() + 10ms);
    complete = task.done();
    if (complete) {
      EXPECT_EQ(task.result().out.size(), 500'000u);
      EXPECT_EQ(task.result().err, "done\n");
    } else {
      loop.cancel_all_tasks();
    }
    while (loop.task_count() > 0) loop.run_once(loop.time() + 1s);
    EXPECT_EQ(task.cancelled(), !complete);
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left after " << turns << " turns";
    ASSERT_EQ(lowest_free(), free_before) << "after " << turns << " turns";
  }
}

TEST_F(OnVirtualLoop, ASubprocessNeedsABackendWithIoAndStartsNothingWithout) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    EXPECT_THROW(create_subprocess_exec({"true"}, {.out = Stdio::pipe}), std::logic_error);
    EXPECT_THROW(create_subprocess_exec({"true"}), std::logic_error);
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
    co_return;
  }));
}

}  // namespace
}  // namespace argiope
