// What every command of the protocol is answered, byte for byte as beanstalkd 1.12 does.
#include <gmock/gmock.h>

#include <string>

#include "serve/gate/audit_log.hpp"
#include "support/beanstalkd_fixture.hpp"

namespace argiope {
namespace {

using Client = BeanstalkdClient;
class BeanstalkdCommands : public BeanstalkdTest {};

// --- producers -------------------------------------------------------------------------------------------------------

TEST_F(BeanstalkdCommands, AJobIsPutReservedAndDeleted) {
  with_client([](Client& a) -> Coro<void> {
    co_await a.ask("put 0 0 1 5\r\nhello\r\n", "INSERTED 1\r\n");
    co_await a.ask("reserve\r\n", "RESERVED 1 5\r\nhello\r\n");
    co_await a.ask("delete 1\r\n", "DELETED\r\n");
    co_await a.ask("delete 1\r\n", "NOT_FOUND\r\n");
  });
}

TEST_F(BeanstalkdCommands, ABodyMayBeEmptyAndHoldAnyByte) {
  with_client([](Client& a) -> Coro<void> {
    const std::string body("\r\n\0\xff quit\r\n", 11);
    co_await a.ask("put 0 0 1 0\r\n\r\n", "INSERTED 1\r\n");
    co_await a.ask("put 0 0 1 11\r\n" + body + "\r\n", "INSERTED 2\r\n");
    co_await a.ask("peek 1\r\n", "FOUND 1 0\r\n\r\n");
    co_await a.ask("peek 2\r\n", "FOUND 2 11\r\n" + body + "\r\n");
  });
}

TEST_F(BeanstalkdCommands, LessIsMoreUrgentOverAllPrioritiesThereAre) {
  with_client([](Client& a) -> Coro<void> {
    for (const char* pri : {"4294967295", "2147483648", "0", "2147483647", "1", "1"}) {
      a.send("put " + std::string(pri) + " 0 10 10\r\n" + std::string(10, 'x') + "\r\n");
    }
    co_await a.expect("INSERTED 1\r\nINSERTED 2\r\nINSERTED 3\r\nINSERTED 4\r\nINSERTED 5\r\nINSERTED 6\r\n");
    for (const char* id : {"3", "5", "6", "4", "2", "1"}) {
      co_await a.ask("reserve\r\n", "RESERVED " + std::string(id) + " 10\r\nxxxxxxxxxx\r\n");
    }
    EXPECT_EQ(co_await a.member("stats-job 1\r\n", "pri"), "4294967295");
    EXPECT_EQ(co_await a.member("stats-job 2\r\n", "pri"), "2147483648");
    EXPECT_EQ(co_await a.member("stats-job 3\r\n", "pri"), "0");
  });
}

TEST_F(BeanstalkdCommands, WhatIsWrongWithAPutIsSaid) {
  options.max_job_bytes = 10;
  with_client([](Client& a) -> Coro<void> {
    co_await a.ask("put 0 0 1 11\r\n12345678901\r\n", "JOB_TOO_BIG\r\n");
    co_await a.ask("put 0 0 1 5\r\nhelloxx", "EXPECTED_CRLF\r\n");
    co_await a.ask("put 0 0 1\r\n", "BAD_FORMAT\r\n");
    co_await a.ask("putt\r\n", "UNKNOWN_COMMAND\r\n");
    co_await a.ask("put 0 0 1 10\r\n1234567890\r\n", "INSERTED 1\r\n");
  });
}

TEST_F(BeanstalkdCommands, AServerThatDrainsTakesNoJobs) {
  with_server([&](Beanstalkd& server) -> Coro<void> {
    Client a = co_await connect();
    co_await a.ask("put 0 0 1 1\r\na\r\n", "INSERTED 1\r\n");
    server.drain();
    co_await a.ask("put 0 0 1 1\r\na\r\n", "DRAINING\r\n");
    co_await a.ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
    EXPECT_EQ(co_await a.member("stats\r\n", "draining"), "true");
  });
}

TEST_F(BeanstalkdCommands, UseChoosesTheTubeOfPuts) {
  with_client([](Client& a) -> Coro<void> {
    co_await a.ask("list-tube-used\r\n", "USING default\r\n");
    co_await a.ask("use mail\r\n", "USING mail\r\n");
    co_await a.ask("list-tube-used\r\n", "USING mail\r\n");
    co_await a.ask("put 0 0 1 1\r\na\r\n", "INSERTED 1\r\n");
    co_await a.ask("reserve-with-timeout 0\r\n", "TIMED_OUT\r\n");
    co_await a.ask("watch mail\r\n", "WATCHING 2\r\n");
    co_await a.ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
    EXPECT_EQ(co_await a.member("stats-job 1\r\n", "tube"), "mail");
    const std::string longest(200, 'x');
    co_await a.ask("use " + longest + "\r\n", "USING " + longest + "\r\n");
    co_await a.ask("use " + longest + "x\r\n", "BAD_FORMAT\r\n");
  });
}

TEST_F(BeanstalkdCommands, ADelayedJobIsReadyWhenItsTimeHasCome) {
  with_client([&](Client& a) -> Coro<void> {
    co_await a.ask("put 0 5 1 1\r\na\r\n", "INSERTED 1\r\n");
    co_await a.ask("peek-ready\r\n", "NOT_FOUND\r\n");
    co_await a.ask("peek-delayed\r\n", "FOUND 1 1\r\na\r\n");
    EXPECT_EQ(co_await a.member("stats-job 1\r\n", "state"), "delayed");
    EXPECT_EQ(co_await a.member("stats-job 1\r\n", "delay"), "5");
    a.send("reserve\r\n");
    pass(6s);
    co_await a.expect("RESERVED 1 1\r\na\r\n");
  });
}

// --- workers ---------------------------------------------------------------------------------------------------------

TEST_F(BeanstalkdCommands, AReserveWaitsForAJob) {
  with_server([&](Beanstalkd&) -> Coro<void> {
    Client a = co_await connect();
    Client b = co_await connect();
    a.send("reserve\r\n");
    while (co_await waiting_now() == "0") co_await yield_now();
    EXPECT_EQ(co_await b.member("stats-tube default\r\n", "current-waiting"), "1");
    co_await b.ask("put 0 0 1 1\r\na\r\n", "INSERTED 1\r\n");
    co_await a.expect("RESERVED 1 1\r\na\r\n");
  });
}

TEST_F(BeanstalkdCommands, AReserveWithATimeoutGivesUp) {
  with_client([&](Client& a) -> Coro<void> {
    co_await a.ask("reserve-with-timeout 0\r\n", "TIMED_OUT\r\n");
    a.send("reserve-with-timeout 3\r\n");
    while (co_await waiting_now() == "0") co_await yield_now();
    pass(3s);
    co_await a.expect("TIMED_OUT\r\n");
    co_await a.ask("reserve-with-timeout 99999999999999999999\r\n", "BAD_FORMAT\r\n");
  });
}

TEST_F(BeanstalkdCommands, AJobWhoseTimeIsUpIsGivenToTheNext) {
  with_server([&](Beanstalkd&) -> Coro<void> {
    Client a = co_await connect();
    Client b = co_await connect();
    co_await a.ask("put 0 0 2 1\r\na\r\n", "INSERTED 1\r\n");
    co_await a.ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
    EXPECT_EQ(co_await b.member("stats-job 1\r\n", "time-left"), "2");
    b.send("reserve\r\n");
    pass(3s);
    co_await b.expect("RESERVED 1 1\r\na\r\n");
    co_await a.ask("delete 1\r\n", "NOT_FOUND\r\n");
    co_await a.ask("touch 1\r\n", "NOT_FOUND\r\n");
    co_await a.ask("release 1 0 0\r\n", "NOT_FOUND\r\n");
    co_await a.ask("bury 1 0\r\n", "NOT_FOUND\r\n");
    EXPECT_EQ(co_await b.member("stats-job 1\r\n", "timeouts"), "1");
    EXPECT_EQ(co_await b.member("stats-job 1\r\n", "reserves"), "2");
    EXPECT_EQ(co_await b.member("stats\r\n", "job-timeouts"), "1");
  });
}

TEST_F(BeanstalkdCommands, TimeoutsNeverBuryAJob) {
  with_client([&](Client& a) -> Coro<void> {
    co_await a.ask("put 0 0 1 1\r\na\r\n", "INSERTED 1\r\n");
    for (int i = 0; i < 10; ++i) {
      co_await a.ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
      pass(2s);
    }
    EXPECT_EQ(co_await a.member("stats-job 1\r\n", "buries"), "0");
    co_await a.ask("delete 1\r\n", "DELETED\r\n");
  });
}

TEST_F(BeanstalkdCommands, AReserveIsToldThatALeaseEndsSoon) {
  with_client([&](Client& a) -> Coro<void> {
    co_await a.ask("put 0 0 1 1\r\na\r\n", "INSERTED 1\r\n");
    co_await a.ask("put 0 0 5 1\r\nb\r\n", "INSERTED 2\r\n");
    co_await a.ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
    co_await a.ask("reserve-with-timeout 0\r\n", "RESERVED 2 1\r\nb\r\n");
    co_await a.ask("reserve\r\n", "DEADLINE_SOON\r\n");
    co_await a.ask("delete 1\r\n", "DELETED\r\n");
    a.send("reserve-with-timeout 10\r\n");
    while (co_await waiting_now() == "0") co_await yield_now();
    pass(4s);
    co_await a.expect("DEADLINE_SOON\r\n");
    co_await a.ask("touch 2\r\n", "TOUCHED\r\n");
    co_await a.ask("reserve-with-timeout 0\r\n", "TIMED_OUT\r\n");
  });
}

TEST_F(BeanstalkdCommands, TouchGivesTheWholeTimeAgain) {
  with_client([&](Client& a) -> Coro<void> {
    co_await a.ask("put 0 0 3 1\r\na\r\n", "INSERTED 1\r\n");
    co_await a.ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
    for (int i = 0; i < 5; ++i) {
      pass(2s);
      co_await a.ask("touch 1\r\n", "TOUCHED\r\n");
    }
    co_await a.ask("delete 1\r\n", "DELETED\r\n");
    co_await a.ask("touch 1\r\n", "NOT_FOUND\r\n");
    co_await a.ask("touch x\r\n", "BAD_FORMAT\r\n");
  });
}

TEST_F(BeanstalkdCommands, AReleasedJobIsReadyAgainOrLater) {
  with_client([&](Client& a) -> Coro<void> {
    co_await a.ask("put 7 0 9 1\r\na\r\n", "INSERTED 1\r\n");
    co_await a.ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
    co_await a.ask("release 1 9 0\r\n", "RELEASED\r\n");
    EXPECT_EQ(co_await a.member("stats-job 1\r\n", "pri"), "9");
    EXPECT_EQ(co_await a.member("stats-job 1\r\n", "releases"), "1");
    co_await a.ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
    co_await a.ask("release 1 9 4\r\n", "RELEASED\r\n");
    EXPECT_EQ(co_await a.member("stats-job 1\r\n", "state"), "delayed");
    EXPECT_EQ(co_await a.member("stats-job 1\r\n", "delay"), "4");
    co_await a.ask("reserve-with-timeout 0\r\n", "TIMED_OUT\r\n");
    a.send("reserve\r\n");
    pass(5s);
    co_await a.expect("RESERVED 1 1\r\na\r\n");
    co_await a.ask("release 2 0 0\r\n", "NOT_FOUND\r\n");
    co_await a.ask("release 1 0\r\n", "BAD_FORMAT\r\n");
  });
}

TEST_F(BeanstalkdCommands, ABuriedJobWaitsForAKick) {
  with_client([](Client& a) -> Coro<void> {
    co_await a.ask("put 7 0 9 1\r\na\r\n", "INSERTED 1\r\n");
    co_await a.ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
    co_await a.ask("bury 1 3\r\n", "BURIED\r\n");
    co_await a.ask("bury 1 3\r\n", "NOT_FOUND\r\n");
    co_await a.ask("peek-buried\r\n", "FOUND 1 1\r\na\r\n");
    EXPECT_EQ(co_await a.member("stats-job 1\r\n", "state"), "buried");
    EXPECT_EQ(co_await a.member("stats-job 1\r\n", "pri"), "3");
    EXPECT_EQ(co_await a.member("stats-job 1\r\n", "buries"), "1");
    co_await a.ask("reserve-with-timeout 0\r\n", "TIMED_OUT\r\n");
    co_await a.ask("kick 10\r\n", "KICKED 1\r\n");
    co_await a.ask("peek-buried\r\n", "NOT_FOUND\r\n");
    co_await a.ask("peek-ready\r\n", "FOUND 1 1\r\na\r\n");
    EXPECT_EQ(co_await a.member("stats-job 1\r\n", "kicks"), "1");
    EXPECT_EQ(co_await a.member("stats-job 1\r\n", "reserves"), "1");
  });
}

TEST_F(BeanstalkdCommands, KickTakesDelayedJobsOnlyWhereNoneIsBuried) {
  with_client([](Client& a) -> Coro<void> {
    for (int i = 0; i < 4; ++i) a.send("put 0 " + std::to_string(9 - i) + " 9 1\r\na\r\n");
    co_await a.expect("INSERTED 1\r\nINSERTED 2\r\nINSERTED 3\r\nINSERTED 4\r\n");
    co_await a.ask("put 0 0 9 1\r\nb\r\n", "INSERTED 5\r\n");
    co_await a.ask("reserve\r\n", "RESERVED 5 1\r\nb\r\n");
    co_await a.ask("bury 5 0\r\n", "BURIED\r\n");
    co_await a.ask("kick 3\r\n", "KICKED 1\r\n");
    co_await a.ask("kick 2\r\n", "KICKED 2\r\n");
    co_await a.ask("peek-delayed\r\n", "FOUND 2 1\r\na\r\n");
    co_await a.ask("kick 0\r\n", "KICKED 0\r\n");
    co_await a.ask("kick 4294967295\r\n", "KICKED 2\r\n");
    co_await a.ask("kick 1\r\n", "KICKED 0\r\n");
    co_await a.ask("use empty\r\n", "USING empty\r\n");
    co_await a.ask("kick 1\r\n", "KICKED 0\r\n");
    co_await a.ask("kick one\r\n", "BAD_FORMAT\r\n");
  });
}

TEST_F(BeanstalkdCommands, TheFirstThatWereBuriedAreKickedFirst) {
  with_client([&](Client& a) -> Coro<void> {
    for (int i = 0; i < 3; ++i) a.send("put 0 0 9 1\r\na\r\n");
    co_await a.expect("INSERTED 1\r\nINSERTED 2\r\nINSERTED 3\r\n");
    for (const char* id : {"3", "1", "2"}) {
      co_await a.ask("reserve-job " + std::string(id) + "\r\n", "RESERVED " + std::string(id) + " 1\r\na\r\n");
      co_await a.ask("bury " + std::string(id) + " 0\r\n", "BURIED\r\n");
      pass(10ms);
    }
    co_await a.ask("peek-buried\r\n", "FOUND 3 1\r\na\r\n");
    co_await a.ask("kick 2\r\n", "KICKED 2\r\n");
    co_await a.ask("peek-buried\r\n", "FOUND 2 1\r\na\r\n");
  });
}

TEST_F(BeanstalkdCommands, OneJobIsKicked) {
  with_client([](Client& a) -> Coro<void> {
    co_await a.ask("put 0 9 9 1\r\na\r\n", "INSERTED 1\r\n");
    co_await a.ask("kick-job 1\r\n", "KICKED\r\n");
    co_await a.ask("kick-job 1\r\n", "NOT_FOUND\r\n");
    co_await a.ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
    co_await a.ask("kick-job 1\r\n", "NOT_FOUND\r\n");
    co_await a.ask("bury 1 0\r\n", "BURIED\r\n");
    co_await a.ask("kick-job 1\r\n", "KICKED\r\n");
    co_await a.ask("kick-job 2\r\n", "NOT_FOUND\r\n");
    co_await a.ask("kick-job x\r\n", "BAD_FORMAT\r\n");
  });
}

TEST_F(BeanstalkdCommands, OneJobIsReservedWhateverItWaitsFor) {
  with_server([&](Beanstalkd&) -> Coro<void> {
    Client a = co_await connect();
    Client b = co_await connect();
    co_await a.ask("put 0 9 9 1\r\na\r\n", "INSERTED 1\r\n");
    co_await a.ask("reserve-job 1\r\n", "RESERVED 1 1\r\na\r\n");
    co_await b.ask("reserve-job 1\r\n", "NOT_FOUND\r\n");
    co_await a.ask("bury 1 0\r\n", "BURIED\r\n");
    co_await b.ask("reserve-job 1\r\n", "RESERVED 1 1\r\na\r\n");
    co_await b.ask("release 1 0 0\r\n", "RELEASED\r\n");
    co_await b.ask("reserve-job 1\r\n", "RESERVED 1 1\r\na\r\n");
    co_await b.ask("reserve-job 1\r\n", "NOT_FOUND\r\n");
    co_await b.ask("delete 1\r\n", "DELETED\r\n");
    co_await b.ask("reserve-job 1\r\n", "NOT_FOUND\r\n");
    co_await b.ask("reserve-job\r\n", "BAD_FORMAT\r\n");
  });
}

TEST_F(BeanstalkdCommands, WatchAndIgnoreChooseTheTubesOfReserves) {
  with_client([](Client& a) -> Coro<void> {
    co_await a.ask("ignore default\r\n", "NOT_IGNORED\r\n");
    co_await a.ask("ignore other\r\n", "WATCHING 1\r\n");
    co_await a.ask("watch a\r\n", "WATCHING 2\r\n");
    co_await a.ask("watch a\r\n", "WATCHING 2\r\n");
    co_await a.ask("watch b\r\n", "WATCHING 3\r\n");
    co_await a.ask("ignore default\r\n", "WATCHING 2\r\n");
    co_await a.ask("list-tubes-watched\r\n", "OK 12\r\n---\n- b\n- a\n\r\n");
    co_await a.ask("put 0 0 1 1\r\na\r\n", "INSERTED 1\r\n");
    co_await a.ask("reserve-with-timeout 0\r\n", "TIMED_OUT\r\n");
  });
}

// --- anyone ----------------------------------------------------------------------------------------------------------

TEST_F(BeanstalkdCommands, AnyoneMayDeleteAJobThatNobodyRuns) {
  with_server([&](Beanstalkd&) -> Coro<void> {
    Client a = co_await connect();
    Client b = co_await connect();
    co_await a.ask("put 0 0 9 1\r\na\r\nput 0 9 9 1\r\nb\r\nput 1 0 9 1\r\nc\r\n",
                   "INSERTED 1\r\nINSERTED 2\r\nINSERTED 3\r\n");
    co_await b.ask("delete 1\r\n", "DELETED\r\n");
    co_await b.ask("delete 2\r\n", "DELETED\r\n");
    co_await a.ask("reserve\r\n", "RESERVED 3 1\r\nc\r\n");
    co_await b.ask("delete 3\r\n", "NOT_FOUND\r\n");
    co_await a.ask("bury 3 0\r\n", "BURIED\r\n");
    co_await b.ask("delete 3\r\n", "DELETED\r\n");
    co_await b.ask("delete x\r\n", "BAD_FORMAT\r\n");
    co_await b.ask("delete 18446744073709551615\r\n", "NOT_FOUND\r\n");
  });
}

TEST_F(BeanstalkdCommands, PeekShowsAJobAndTakesNothing) {
  with_client([](Client& a) -> Coro<void> {
    co_await a.ask("peek 1\r\n", "NOT_FOUND\r\n");
    co_await a.ask("peek-ready\r\n", "NOT_FOUND\r\n");
    co_await a.ask("peek-delayed\r\n", "NOT_FOUND\r\n");
    co_await a.ask("peek-buried\r\n", "NOT_FOUND\r\n");
    co_await a.ask("put 5 0 9 1\r\na\r\nput 2 0 9 1\r\nb\r\n", "INSERTED 1\r\nINSERTED 2\r\n");
    co_await a.ask("peek-ready\r\n", "FOUND 2 1\r\nb\r\n");
    co_await a.ask("peek 1\r\n", "FOUND 1 1\r\na\r\n");
    co_await a.ask("reserve\r\n", "RESERVED 2 1\r\nb\r\n");
    co_await a.ask("peek 2\r\n", "FOUND 2 1\r\nb\r\n");
    co_await a.ask("peek-ready\r\n", "FOUND 1 1\r\na\r\n");
    co_await a.ask("use other\r\n", "USING other\r\n");
    co_await a.ask("peek-ready\r\n", "NOT_FOUND\r\n");
    co_await a.ask("peek one\r\n", "BAD_FORMAT\r\n");
  });
}

TEST_F(BeanstalkdCommands, ATubeIsThereWhileItIsUsedWatchedOrHoldsJobs) {
  with_client([](Client& a) -> Coro<void> {
    co_await a.ask("list-tubes\r\n", "OK 14\r\n---\n- default\n\r\n");
    co_await a.ask("use a\r\nwatch b\r\n", "USING a\r\nWATCHING 2\r\n");
    co_await a.ask("list-tubes\r\n", "OK 22\r\n---\n- default\n- a\n- b\n\r\n");
    co_await a.ask("put 0 0 9 1\r\na\r\n", "INSERTED 1\r\n");
    co_await a.ask("use default\r\nignore b\r\n", "USING default\r\nWATCHING 1\r\n");
    co_await a.ask("list-tubes\r\n", "OK 18\r\n---\n- default\n- a\n\r\n");
    co_await a.ask("stats-tube b\r\n", "NOT_FOUND\r\n");
    co_await a.ask("pause-tube b 1\r\n", "NOT_FOUND\r\n");
    co_await a.ask("delete 1\r\n", "DELETED\r\n");
    co_await a.ask("list-tubes\r\n", "OK 14\r\n---\n- default\n\r\n");
  });
}

TEST_F(BeanstalkdCommands, APausedTubeGivesNothing) {
  with_client([&](Client& a) -> Coro<void> {
    co_await a.ask("put 0 0 9 1\r\na\r\n", "INSERTED 1\r\n");
    co_await a.ask("pause-tube default 5\r\n", "PAUSED\r\n");
    co_await a.ask("reserve-with-timeout 0\r\n", "TIMED_OUT\r\n");
    EXPECT_EQ(co_await a.member("stats-tube default\r\n", "pause"), "5");
    EXPECT_EQ(co_await a.member("stats-tube default\r\n", "pause-time-left"), "5");
    EXPECT_EQ(co_await a.member("stats-tube default\r\n", "cmd-pause-tube"), "1");
    a.send("reserve\r\n");
    while (co_await waiting_now() == "0") co_await yield_now();
    pass(6s);
    co_await a.expect("RESERVED 1 1\r\na\r\n");
    EXPECT_EQ(co_await a.member("stats-tube default\r\n", "pause"), "0");
    co_await a.ask("pause-tube default 0\r\n", "PAUSED\r\n");
    co_await a.ask("pause-tube default\r\n", "BAD_FORMAT\r\n");
  });
}

TEST_F(BeanstalkdCommands, WhatAnOperatorChangesIsToldInTheAuditAndDeletesAreNot) {
  using testing::HasSubstr;
  AuditLog audit({});
  options.audit = &audit;
  with_client([&](Client& a) -> Coro<void> {
    const std::string peer = a.stream().local_name();
    co_await a.ask("use t\r\n", "USING t\r\n");
    co_await a.ask("put 0 0 9 1\r\na\r\n", "INSERTED 1\r\n");
    co_await a.ask("kick 5\r\n", "KICKED 0\r\n");
    co_await a.ask("pause-tube none 5\r\n", "NOT_FOUND\r\n");
    co_await a.ask("reserve-job 1\r\nbury 1 0\r\n", "RESERVED 1 1\r\na\r\nBURIED\r\n");
    EXPECT_TRUE(audit.entries().empty());
    co_await a.ask("kick 5\r\n", "KICKED 1\r\n");
    co_await a.ask("pause-tube t 60\r\n", "PAUSED\r\n");
    co_await a.ask("delete 1\r\n", "DELETED\r\n");
    EXPECT_EQ(audit.entries().size(), 2u);
    const std::string kicked = audit.entries().front().json;
    EXPECT_THAT(kicked, HasSubstr("\"who\":\"beanstalkd " + peer + "\",\"from\":\"" + peer + "\""));
    EXPECT_THAT(kicked, HasSubstr(R"("method":"kick","path":"/v1/queues/t","request":"{\"bound\":5}","status":200)"));
    EXPECT_THAT(audit.entries().back().json,
                HasSubstr(R"("method":"pause-tube","path":"/v1/queues/t","request":"{\"delay\":60}")"));
  });
}

TEST_F(BeanstalkdCommands, StatsOfATube) {
  with_client([](Client& a) -> Coro<void> {
    co_await a.ask("use t\r\n", "USING t\r\n");
    co_await a.ask("put 5 0 9 1\r\na\r\nput 2000 0 9 1\r\nb\r\nput 2 9 9 1\r\nc\r\nput 1 0 9 1\r\nd\r\n",
                   "INSERTED 1\r\nINSERTED 2\r\nINSERTED 3\r\nINSERTED 4\r\n");
    co_await a.ask("reserve-job 4\r\ndelete 4\r\n", "RESERVED 4 1\r\nd\r\nDELETED\r\n");
    co_await a.ask("reserve-job 1\r\nbury 1 5\r\n", "RESERVED 1 1\r\na\r\nBURIED\r\n");
    EXPECT_EQ(co_await a.text("stats-tube t\r\n"),
              "---\nname: t\ncurrent-jobs-urgent: 0\ncurrent-jobs-ready: 1\ncurrent-jobs-reserved: 0\n"
              "current-jobs-delayed: 1\ncurrent-jobs-buried: 1\ntotal-jobs: 4\ncurrent-using: 1\ncurrent-watching: 0\n"
              "current-waiting: 0\ncmd-delete: 1\ncmd-pause-tube: 0\npause: 0\npause-time-left: 0\n");
    co_await a.ask("stats-tube none\r\n", "NOT_FOUND\r\n");
    co_await a.ask("stats-tube *\r\n", "BAD_FORMAT\r\n");
  });
}

TEST_F(BeanstalkdCommands, StatsOfAJob) {
  with_client([&](Client& a) -> Coro<void> {
    co_await a.ask("put 5 0 0 1\r\na\r\n", "INSERTED 1\r\n");
    pass(3s);
    EXPECT_EQ(co_await a.text("stats-job 1\r\n"),
              "---\nid: 1\ntube: default\nstate: ready\npri: 5\nage: 3\ndelay: 0\nttr: 1\ntime-left: 0\nfile: 0\n"
              "reserves: 0\ntimeouts: 0\nreleases: 0\nburies: 0\nkicks: 0\n");
    co_await a.ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
    EXPECT_EQ(co_await a.member("stats-job 1\r\n", "state"), "reserved");
    EXPECT_EQ(co_await a.member("stats-job 1\r\n", "reserves"), "1");
    co_await a.ask("stats-job 2\r\n", "NOT_FOUND\r\n");
    co_await a.ask("stats-job x\r\n", "BAD_FORMAT\r\n");
  });
}

TEST_F(BeanstalkdCommands, StatsCountWhatWasAsked) {
  options.instance_id = 0x1234;
  with_server([&](Beanstalkd&) -> Coro<void> {
    Client a = co_await connect();
    Client b = co_await connect();
    co_await a.ask("put 5 0 9 1\r\na\r\nput 5 0 9 1\r\nabcuse x\r\n", "INSERTED 1\r\nEXPECTED_CRLF\r\nUSING x\r\n");
    co_await b.ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
    const std::string text = co_await a.text("stats\r\n");
    for (const char* line : {"current-jobs-reserved: 1", "cmd-put: 2", "cmd-reserve: 1", "cmd-use: 1", "cmd-stats: 1",
                             "total-jobs: 1", "max-job-size: 65535", "current-tubes: 2", "current-connections: 2",
                             "current-producers: 1", "current-workers: 1", "current-waiting: 0", "total-connections: 2",
                             "version: \"1.12\"", "uptime: 0", "draining: false", "id: 0000000000001234"}) {
      EXPECT_NE(text.find("\n" + std::string(line) + "\n"), std::string::npos) << line;
    }
    co_await a.ask("stats x\r\n", "BAD_FORMAT\r\n");
  });
}

TEST_F(BeanstalkdCommands, QuitEndsTheConnection) {
  with_client([](Client& a) -> Coro<void> {
    a.send("put 0 0 1 1\r\na\r\nquit\r\nput 0 0 1 1\r\na\r\n");
    co_await a.expect("INSERTED 1\r\n");
    co_await a.expect_end();
  });
}

}  // namespace
}  // namespace argiope
