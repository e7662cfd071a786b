// The protocol text of beanstalkd, section by section, as conversations: what clients say and what they are answered.
// Every command and every answer of the text is in one of them.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "support/beanstalkd_fixture.hpp"

namespace argiope {
namespace {

// A line each. "a> reserve": client a says it. "a< TIMED_OUT": a is answered so. "a< OK name: x": with a text that has
// this line. "a body of 9": so many bytes. "a waits": its reserve has come to wait. "a leaves": without a word. "2s":
// so much time passes.
struct Transcript {
  std::string_view name, text;
  friend std::ostream& operator<<(std::ostream& out, const Transcript& its) { return out << its.name; }
};

constexpr Transcript kTranscripts[] = {
    {"AJobsTypicalLife", R"(
a> put 0 0 60 5
a> hello
a< INSERTED 1
b> reserve
b< RESERVED 1 5
b< hello
b> delete 1
b< DELETED
b> delete 1
b< NOT_FOUND
)"},
    {"ErrorsOfAnyCommand", R"(
a> list-tube-used
a< USING default
a> nonsense
a< UNKNOWN_COMMAND
a> PUT 0 0 60 5
a< UNKNOWN_COMMAND
a> put 0 0 60
a< BAD_FORMAT
a> put -1 0 60 5
a< BAD_FORMAT
a> put 0 -1 60 5
a< BAD_FORMAT
a> put 4294967296 0 60 5
a< BAD_FORMAT
a> put 0 0 60 4294967296
a< BAD_FORMAT
a> delete one
a< BAD_FORMAT
a> release 1 2
a< BAD_FORMAT
a> bury 1
a< BAD_FORMAT
a> touch
a< UNKNOWN_COMMAND
a> watch -a
a< BAD_FORMAT
a> use a*b
a< BAD_FORMAT
a> pause-tube default
a< BAD_FORMAT
a> reserve now
a< BAD_FORMAT
a> list-tubes 1
a< BAD_FORMAT
)"},
    {"WhatAPutMayBeAnswered", R"(
a> put 0 0 0 65536
a body of 65536
a< JOB_TOO_BIG
a> put 0 0 0 1
a> abc
a< EXPECTED_CRLF
a< UNKNOWN_COMMAND
drain
a> put 0 0 0 1
a> a
a< DRAINING
)"},
    {"APutMayHaveADelay", R"(
a> put 0 2 60 1
a> a
a< INSERTED 1
a> stats-job 1
a< OK state: delayed
a> reserve-with-timeout 0
a< TIMED_OUT
a> reserve
a waits
3s
a< RESERVED 1 1
a< a
)"},
    {"UseNamesTheTubeOfPuts", R"(
a> list-tube-used
a< USING default
a> use mail.v2+x/y;z$_(1)-
a< USING mail.v2+x/y;z$_(1)-
a> list-tube-used
a< USING mail.v2+x/y;z$_(1)-
)"},
    {"TheSmallestPriorityFirstAndThenTheOldest", R"(
a> put 4294967295 0 60 1
a> a
a< INSERTED 1
a> put 5 0 60 1
a> b
a< INSERTED 2
a> put 5 0 60 1
a> c
a< INSERTED 3
a> put 0 0 60 1
a> d
a< INSERTED 4
a> reserve
a< RESERVED 4 1
a< d
a> reserve
a< RESERVED 2 1
a< b
a> reserve
a< RESERVED 3 1
a< c
a> reserve
a< RESERVED 1 1
a< a
)"},
    {"TheLastSecondOfATtrIsASafetyMargin", R"(
a> put 0 0 5 1
a> a
a< INSERTED 1
a> reserve
a< RESERVED 1 1
a< a
a> reserve-with-timeout 60
a waits
4s
a< DEADLINE_SOON
a> reserve
a< DEADLINE_SOON
a> touch 1
a< TOUCHED
a> reserve-with-timeout 1
a waits
1s
a< TIMED_OUT
)"},
    {"ATtrThatIsOverMakesTheJobReady", R"(
a> put 0 0 0 1
a> a
a< INSERTED 1
a> reserve
a< RESERVED 1 1
a< a
2s
b> reserve
b< RESERVED 1 1
b< a
a> touch 1
a< NOT_FOUND
a> release 1 0 0
a< NOT_FOUND
a> bury 1 0
a< NOT_FOUND
b> stats-job 1
b< OK timeouts: 1
)"},
    {"AJobIsReservedByItsId", R"(
a> put 0 99 60 1
a> a
a< INSERTED 1
a> reserve-job 1
a< RESERVED 1 1
a< a
b> reserve-job 1
b< NOT_FOUND
a> bury 1 0
a< BURIED
b> reserve-job 1
b< RESERVED 1 1
b< a
b> reserve-job 2
b< NOT_FOUND
)"},
    {"WhatMayBeDeleted", R"(
a> put 0 0 60 1
a> a
a< INSERTED 1
a> put 0 9 60 1
a> b
a< INSERTED 2
b> reserve
b< RESERVED 1 1
b< a
a> delete 1
a< NOT_FOUND
a> delete 2
a< DELETED
b> bury 1 0
b< BURIED
a> delete 1
a< DELETED
)"},
    {"AReleaseGivesANewPriorityAndADelay", R"(
a> put 9 0 60 1
a> a
a< INSERTED 1
a> release 1 0 0
a< NOT_FOUND
a> reserve
a< RESERVED 1 1
a< a
a> release 1 7 3
a< RELEASED
a> stats-job 1
a< OK pri: 7
a> stats-job 1
a< OK state: delayed
a> stats-job 1
a< OK releases: 1
a> reserve
a waits
4s
a< RESERVED 1 1
a< a
)"},
    {"BuriedJobsWaitForAKick", R"(
a> put 0 0 60 1
a> a
a< INSERTED 1
a> bury 1 0
a< NOT_FOUND
a> reserve
a< RESERVED 1 1
a< a
a> bury 1 4
a< BURIED
a> stats-job 1
a< OK buries: 1
a> peek-buried
a< FOUND 1 1
a< a
a> kick 10
a< KICKED 1
a> kick 10
a< KICKED 0
a> stats-job 1
a< OK kicks: 1
a> kick-job 1
a< NOT_FOUND
a> reserve
a< RESERVED 1 1
a< a
a> bury 1 4
a< BURIED
a> kick-job 1
a< KICKED
)"},
    {"KickPrefersBuriedJobsToDelayedOnes", R"(
a> put 0 0 60 1
a> a
a< INSERTED 1
a> put 0 99 60 1
a> b
a< INSERTED 2
a> reserve
a< RESERVED 1 1
a< a
a> bury 1 0
a< BURIED
a> kick 10
a< KICKED 1
a> kick 10
a< KICKED 1
)"},
    {"TheTubesOfAReserve", R"(
a> watch mail
a< WATCHING 2
a> ignore default
a< WATCHING 1
a> ignore mail
a< NOT_IGNORED
a> list-tubes-watched
a< OK - mail
b> put 0 0 60 1
b> a
b< INSERTED 1
a> reserve-with-timeout 0
a< TIMED_OUT
b> use mail
b< USING mail
b> put 0 0 60 1
b> b
b< INSERTED 2
a> reserve
a< RESERVED 2 1
a< b
)"},
    {"PeekTakesNothing", R"(
a> peek 1
a< NOT_FOUND
a> peek-ready
a< NOT_FOUND
a> peek-delayed
a< NOT_FOUND
a> peek-buried
a< NOT_FOUND
a> put 0 0 60 1
a> a
a< INSERTED 1
a> put 0 9 60 1
a> b
a< INSERTED 2
a> peek 2
a< FOUND 2 1
a< b
a> peek-ready
a< FOUND 1 1
a< a
a> peek-delayed
a< FOUND 2 1
a< b
a> use other
a< USING other
a> peek-ready
a< NOT_FOUND
)"},
    {"StatsAreADictionary", R"(
a> stats-job 1
a< NOT_FOUND
a> stats-tube none
a< NOT_FOUND
a> stats-tube default
a< OK name: default
a> stats
a< OK cmd-stats-tube: 2
a> list-tubes
a< OK - default
)"},
    {"APausedTubeGivesNothingUntilItsTimeIsOver", R"(
a> put 0 0 60 1
a> a
a< INSERTED 1
a> pause-tube none 9
a< NOT_FOUND
a> pause-tube default 86400
a< PAUSED
a> stats-tube default
a< OK pause-time-left: 86400
b> reserve
b waits
a> pause-tube default 0
a< PAUSED
b< RESERVED 1 1
b< a
)"},
    {"AConnectionThatEndsGivesBackWhatItHasReserved", R"(
a> put 0 0 60 1
a> a
a< INSERTED 1
b> reserve
b< RESERVED 1 1
b< a
a> reserve
a waits
b> quit
a< RESERVED 1 1
a< a
c> reserve
c waits
a leaves
c< RESERVED 1 1
c< a
)"},
};

// What the text says that there is.
constexpr std::string_view kCommands[] = {"put",
                                          "use",
                                          "reserve",
                                          "reserve-with-timeout",
                                          "reserve-job",
                                          "delete",
                                          "release",
                                          "bury",
                                          "touch",
                                          "watch",
                                          "ignore",
                                          "peek",
                                          "peek-ready",
                                          "peek-delayed",
                                          "peek-buried",
                                          "kick",
                                          "kick-job",
                                          "stats-job",
                                          "stats-tube",
                                          "stats",
                                          "list-tubes",
                                          "list-tube-used",
                                          "list-tubes-watched",
                                          "quit",
                                          "pause-tube"};
// OUT_OF_MEMORY and INTERNAL_ERROR are in beanstalkd_clients_test.cpp.
constexpr std::string_view kAnswers[] = {
    "BAD_FORMAT", "UNKNOWN_COMMAND", "INSERTED",    "EXPECTED_CRLF", "JOB_TOO_BIG", "DRAINING", "USING",
    "RESERVED",   "DEADLINE_SOON",   "TIMED_OUT",   "DELETED",       "NOT_FOUND",   "RELEASED", "BURIED",
    "TOUCHED",    "WATCHING",        "NOT_IGNORED", "FOUND",         "KICKED",      "OK",       "PAUSED"};

class BeanstalkdTranscript : public BeanstalkdTest, public testing::WithParamInterface<Transcript> {
 protected:
  Coro<BeanstalkdClient*> client(char name) {
    const auto found = clients_.find(name);
    if (found != clients_.end()) co_return &found->second;
    co_return &clients_.emplace(name, co_await connect()).first->second;
  }
  Coro<void> follow(Beanstalkd& server, std::string line) {
    if (line == "drain") {
      server.drain();
    } else if (line.ends_with('s') && line.find(' ') == std::string::npos) {
      pass(std::chrono::seconds{std::stoi(line)});
    } else {
      co_await follow(*co_await client(line[0]), line.substr(1));
    }
  }
  Coro<void> follow(BeanstalkdClient& its, std::string line) {
    constexpr std::string_view kText = "< OK ";
    if (line == " leaves") {
      its.leave();
    } else if (line == " waits") {
      while (co_await waiting_now() == "0") co_await yield_now();
    } else if (line.starts_with(" body of ")) {
      its.send(std::string(std::stoul(line.substr(9)), 'x') + "\r\n");
    } else if (line.starts_with(kText)) {
      const std::string text = "\n" + co_await its.text("");
      EXPECT_NE(text.find("\n" + line.substr(kText.size()) + "\n"), std::string::npos) << text;
    } else if (line.starts_with("< ")) {
      co_await its.expect(line.substr(2) + "\r\n");
    } else {
      its.send(line.substr(2) + "\r\n");
    }
  }

  std::map<char, BeanstalkdClient> clients_;
};

TEST_P(BeanstalkdTranscript, IsFollowed) {
  with_server([&](Beanstalkd& server) -> Coro<void> {
    std::istringstream lines{std::string(GetParam().text)};
    for (std::string line; std::getline(lines, line) && !HasFailure();) {
      SCOPED_TRACE(line);
      if (!line.empty()) co_await follow(server, line);
    }
    clients_.clear();
  });
}

INSTANTIATE_TEST_SUITE_P(Protocol, BeanstalkdTranscript, testing::ValuesIn(kTranscripts),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(BeanstalkdTranscripts, HaveEveryCommandAndEveryAnswerOfTheProtocol) {
  std::set<std::string> said;
  for (const Transcript& transcript : kTranscripts) {
    std::istringstream lines{std::string(transcript.text)};
    for (std::string line; std::getline(lines, line);) {
      if (line.size() > 3) said.insert(line.substr(1, line.find(' ', 3) - 1));
    }
  }
  for (const std::string_view command : kCommands) EXPECT_TRUE(said.contains("> " + std::string(command))) << command;
  for (const std::string_view answer : kAnswers) EXPECT_TRUE(said.contains("< " + std::string(answer))) << answer;
}

}  // namespace
}  // namespace argiope
