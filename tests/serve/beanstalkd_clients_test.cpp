// Clients that are fast, slow, rude or gone: each harms at most itself.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "support/beanstalkd_fixture.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using Client = BeanstalkdClient;
class BeanstalkdClients : public BeanstalkdTest {
 protected:
  Coro<void> let_pass() {
    pass(10ms);
    co_await yield_now();
  }
};

std::string put(std::string_view body, int pri = 0) {
  return "put " + std::to_string(pri) + " 0 100 " + std::to_string(body.size()) + "\r\n" + std::string(body) + "\r\n";
}

TEST_F(BeanstalkdClients, RepliesKeepTheOrderOfTheCommands) {
  with_client([](Client& a) -> Coro<void> {
    a.send(put("a") + "use t\r\n" + put("b") + "peek 1\r\n" + put("c") +
           "nonsense\r\nlist-tube-used\r\nreserve\r\ndelete 1\r\n" +
           "delete 1\r\ndelete 2\r\nreserve-with-timeout 0\r\n");
    co_await a.expect(
        "INSERTED 1\r\nUSING t\r\nINSERTED 2\r\nFOUND 1 1\r\na\r\nINSERTED 3\r\nUNKNOWN_COMMAND\r\nUSING t\r\n"
        "RESERVED 1 1\r\na\r\nDELETED\r\nNOT_FOUND\r\nDELETED\r\nTIMED_OUT\r\n");
  });
}

// fetch(url, {method: "POST", mode: "no-cors", body}) of any page reaches a port of this machine.
TEST_F(BeanstalkdClients, AWebPagePutsNoJob) {
  with_server([&](Beanstalkd&) -> Coro<void> {
    const std::string commands = "use cmd\r\n" + put("hello") + "quit\r\n";
    for (const bool in_pieces : {false, true}) {
      Client page = co_await connect();
      page.send("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n\r\n" + (in_pieces ? "" : commands));
      co_await page.expect("UNKNOWN_COMMAND\r\n");
      if (in_pieces) page.send(commands);
      co_await page.expect_end();
    }
    Client client = co_await connect();
    EXPECT_EQ(co_await client.member("stats\r\n", "total-jobs"), "0");
    EXPECT_EQ(co_await client.member("stats\r\n", "cmd-use"), "0");
  });
}

TEST_F(BeanstalkdClients, TenThousandCommandsAtOnceAreAllAnswered) {
  with_client([](Client& a) -> Coro<void> {
    std::string commands, answers;
    for (int i = 1; i <= 10'000; ++i) {
      commands += put("job");
      answers += "INSERTED " + std::to_string(i) + "\r\n";
    }
    a.send(commands);
    co_await a.expect(answers);
    commands = answers = "";
    for (int i = 1; i <= 10'000; ++i) {
      commands += "reserve\r\n";
      answers += "RESERVED " + std::to_string(i) + " 3\r\njob\r\n";
    }
    a.send(commands);
    co_await a.expect(answers);
    commands = answers = "";
    for (int i = 1; i <= 10'000; ++i) {
      commands += (i % 3 == 0 ? "release " : "delete ") + std::to_string(i) + (i % 3 == 0 ? " 0 0\r\n" : "\r\n");
      answers += i % 3 == 0 ? "RELEASED\r\n" : "DELETED\r\n";
    }
    a.send(commands);
    co_await a.expect(answers);
    EXPECT_EQ(co_await a.member("stats\r\n", "current-jobs-ready"), "3333");
  });
}

TEST_F(BeanstalkdClients, CommandsMayComeByteByByte) {
  with_client([](Client& a) -> Coro<void> {
    for (const char c : put("hello") + "reserve\r\nbury 1 0\r\nstats-job 2\r\n") {
      a.send({&c, 1});
      co_await yield_now();
    }
    co_await a.expect("INSERTED 1\r\nRESERVED 1 5\r\nhello\r\nBURIED\r\nNOT_FOUND\r\n");
  });
}

TEST_F(BeanstalkdClients, AConnectionThatEndsGivesItsLeasesBack) {
  with_server([&](Beanstalkd&) -> Coro<void> {
    std::optional<Client> a = co_await connect();
    Client b = co_await connect();
    co_await a->ask(put("a") + put("b"), "INSERTED 1\r\nINSERTED 2\r\n");
    co_await a->ask("reserve\r\nreserve\r\n", "RESERVED 1 1\r\na\r\nRESERVED 2 1\r\nb\r\n");
    b.send("reserve\r\nreserve\r\n");
    a->leave();
    co_await b.expect("RESERVED 1 1\r\na\r\nRESERVED 2 1\r\nb\r\n");
    EXPECT_EQ(co_await b.member("stats-job 1\r\n", "timeouts"), "0");
    EXPECT_EQ(co_await b.member("stats-job 1\r\n", "reserves"), "2");
  });
}

TEST_F(BeanstalkdClients, AClientThatVanishesWhileItWaitsTakesNoJob) {
  with_server([&](Beanstalkd&) -> Coro<void> {
    std::optional<Client> a = co_await connect();
    Client b = co_await connect();
    a->send("reserve\r\n");
    while (co_await waiting_now() == "0") co_await yield_now();
    a->leave();
    while (co_await waiting_now() == "1") co_await yield_now();
    co_await b.ask(put("a"), "INSERTED 1\r\n");
    co_await b.ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
  });
}

TEST_F(BeanstalkdClients, AClientThatHasSaidItsLastIsAnsweredBeforeTheEnd) {
  with_client([](Client& a) -> Coro<void> {
    a.send(put("a") + put("b") + "reserve\r\nreserve\r\nreserve\r\n");
    a.end_of_commands();
    co_await a.expect("INSERTED 1\r\nINSERTED 2\r\nRESERVED 1 1\r\na\r\nRESERVED 2 1\r\nb\r\nTIMED_OUT\r\n");
    co_await a.expect_end();
  });
}

TEST_F(BeanstalkdClients, HalfACommandPutsNothing) {
  for (const char* half :
       {"pu", "put 0 0 1 5", "put 0 0 1 5\r\nhel", "put 0 0 1 5\r\nhello", "put 0 0 1 5\r\nhello\r"}) {
    with_server([&](Beanstalkd&) -> Coro<void> {
      Client a = co_await connect();
      a.send(half);
      a.end_of_commands();
      co_await a.expect_end();
      Client b = co_await connect();
      EXPECT_EQ(co_await b.member("stats\r\n", "total-jobs"), "0") << half;
    });
  }
}

TEST_F(BeanstalkdClients, ABodyThatIsTooBigIsNotKept) {
  options.max_job_bytes = 1000;
  with_client([](Client& a) -> Coro<void> {
    a.send("put 0 0 1 20000000\r\n");
    for (int i = 0; i < 200; ++i) {
      a.send(std::string(100'000, 'x'));
      co_await a.stream().drain();
    }
    co_await a.ask("\r\n" + put("a"), "JOB_TOO_BIG\r\nINSERTED 1\r\n");
  });
}

TEST_F(BeanstalkdClients, ALargeJobPassesWhole) {
  options.max_job_bytes = 20'000'000;
  with_client([](Client& a) -> Coro<void> {
    const std::string body(15'000'000, 'x');
    a.send("put 0 0 1 15000000\r\n");
    co_await a.stream().drain();
    for (int i = 0; i < 15; ++i) {
      a.send(std::string_view(body).substr(0, 1'000'000));
      co_await a.stream().drain();
    }
    co_await a.ask("\r\n", "INSERTED 1\r\n");
    co_await a.ask("reserve\r\n", "RESERVED 1 15000000\r\n" + body + "\r\n");
    co_await a.ask("peek 1\r\n", "FOUND 1 15000000\r\n" + body + "\r\n");
  });
}

// The server reads no more commands of it until it takes its answers.
TEST_F(BeanstalkdClients, WhatManyDoNotReadIsBoundedAndTheWorstIsLetGo) {
  options.room = std::make_shared<AnswerRoom>(2'000'000);
  with_server([&](Beanstalkd& server) -> Coro<void> {
    const std::string body(60'000, 'x');
    Client good = co_await connect();
    co_await good.ask(put(body), "INSERTED 1\r\n");
    std::vector<Client> silent;
    // More than the system's own buffers hold of each.
    for (int i = 0; i < 20; ++i) {
      silent.push_back(co_await connect());
      for (int peek = 0; peek < 200; ++peek) silent.back().send("peek 1\r\n");
      co_await good.ask("peek 1\r\n", "FOUND 1 60000\r\n" + body + "\r\n");
      EXPECT_LE(options.room->bytes(), 1'100'000u);
    }
    while (server.connections() == 21) co_await good.ask("peek 1\r\n", "FOUND 1 60000\r\n" + body + "\r\n");
    for (Client& client : silent) client.leave();
    co_await good.ask("peek 1\r\n", "FOUND 1 60000\r\n" + body + "\r\n");
  });
  EXPECT_EQ(options.room->bytes(), 0u);
}

TEST_F(BeanstalkdClients, AClientThatReadsSlowlyHoldsUpItself) {
  with_server([&](Beanstalkd&) -> Coro<void> {
    Client slow = co_await connect();
    Client other = co_await connect();
    const std::string body(60'000, 'x');
    co_await slow.ask(put(body), "INSERTED 1\r\n");
    constexpr int kPeeks = 2000;  // 120 MB of answers
    for (int i = 0; i < kPeeks; ++i) slow.send("peek 1\r\n");
    for (int i = 0; i < 100; ++i) co_await other.ask("peek-delayed\r\n", "NOT_FOUND\r\n");
    EXPECT_NE(co_await other.member("stats\r\n", "cmd-peek"), std::to_string(kPeeks));
    for (int i = 0; i < kPeeks; ++i) co_await slow.expect("FOUND 1 60000\r\n" + body + "\r\n");
    EXPECT_EQ(co_await other.member("stats\r\n", "cmd-peek"), std::to_string(kPeeks));
  });
}

TEST_F(BeanstalkdClients, TwoConnectionsAndOneJob) {
  with_server([&](Beanstalkd&) -> Coro<void> {
    Client a = co_await connect();
    Client b = co_await connect();
    co_await a.ask(put("a"), "INSERTED 1\r\n");
    co_await a.ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
    for (const char* command : {"delete 1\r\n", "release 1 0 0\r\n", "bury 1 0\r\n", "touch 1\r\n", "kick-job 1\r\n"}) {
      co_await b.ask(command, "NOT_FOUND\r\n");
    }
    co_await b.ask("reserve-with-timeout 0\r\n", "TIMED_OUT\r\n");
    co_await a.ask("release 1 0 0\r\n", "RELEASED\r\n");
    co_await b.ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
    co_await a.ask("touch 1\r\n", "NOT_FOUND\r\n");
  });
}

TEST_F(BeanstalkdClients, TheFirstWhoWaitsIsServedFirst) {
  with_server([&](Beanstalkd&) -> Coro<void> {
    std::vector<Client> clients;
    for (int i = 0; i < 3; ++i) {
      clients.push_back(co_await connect());
      clients.back().send("reserve\r\n");
      while (co_await waiting_now() != std::to_string(i + 1)) co_await yield_now();
    }
    Client producer = co_await connect();
    co_await producer.ask(put("a") + put("b") + put("c"), "INSERTED 1\r\nINSERTED 2\r\nINSERTED 3\r\n");
    co_await clients[0].expect("RESERVED 1 1\r\na\r\n");
    co_await clients[1].expect("RESERVED 2 1\r\nb\r\n");
    co_await clients[2].expect("RESERVED 3 1\r\nc\r\n");
  });
}

TEST_F(BeanstalkdClients, TheMostUrgentJobOfAllWatchedTubesComesFirst) {
  with_client([](Client& a) -> Coro<void> {
    for (const char* tube : {"x", "y", "z"}) {
      co_await a.ask("use " + std::string(tube) + "\r\nwatch " + tube + "\r\nlist-tube-used\r\n",
                     "USING " + std::string(tube) + "\r\nWATCHING " +
                         (*tube == 'x'   ? "2"
                          : *tube == 'y' ? "3"
                                         : "4") +
                         "\r\nUSING " + tube + "\r\n");
      for (const int pri : {9 - (*tube - 'x'), 5, 1 + (*tube - 'x')})
        a.send(put(std::string(tube) + std::to_string(pri), pri));
      co_await a.expect("INSERTED " + std::to_string((*tube - 'x') * 3 + 1) + "\r\nINSERTED " +
                        std::to_string((*tube - 'x') * 3 + 2) + "\r\nINSERTED " +
                        std::to_string((*tube - 'x') * 3 + 3) + "\r\n");
    }
    const std::pair<int, const char*> order[] = {{3, "x1"}, {6, "y2"}, {9, "z3"}, {2, "x5"}, {5, "y5"},
                                                 {8, "z5"}, {7, "z7"}, {4, "y8"}, {1, "x9"}};
    for (const auto& [id, body] : order) {
      co_await a.ask("reserve\r\n", "RESERVED " + std::to_string(id) + " 2\r\n" + body + "\r\n");
    }
  });
}

TEST_F(BeanstalkdClients, AJobPutByOthersShowsItsMapping) {
  with_client([&](Client& a) -> Coro<void> {
    NewJob job;
    job.queue = "mail";
    job.payload = "letter";
    value_or_throw(co_await engine->book().put(job));
    co_await a.ask("watch mail\r\n", "WATCHING 2\r\n");
    EXPECT_EQ(co_await a.member("stats-job 1\r\n", "pri"), "2147483647");
    EXPECT_EQ(co_await a.member("stats-job 1\r\n", "ttr"), "60");
    co_await a.ask("reserve\r\n", "RESERVED 1 6\r\nletter\r\n");
    co_await a.ask("delete 1\r\n", "DELETED\r\n");
  });
}

// --- the queues of tubes ---------------------------------------------------------------------------------------------

TEST_F(BeanstalkdClients, AnEmptyTubeThatNobodyRefersToLeavesNoQueue) {
  with_server([&](Beanstalkd& server) -> Coro<void> {
    std::optional<Client> a = co_await connect();
    co_await a->ask("use t\r\n" + put("a") + "watch u\r\n", "USING t\r\nINSERTED 1\r\nWATCHING 2\r\n");
    a->send("reserve\r\n");
    while (co_await waiting_now() == "0") co_await yield_now();
    EXPECT_EQ(engine->queue_names(), (std::vector<std::string>{"default", "t", "u"}));
    a->leave();
    while (server.connections() > 0 || engine->config("u")) co_await yield_now();
    EXPECT_EQ(engine->queue_names(), (std::vector<std::string>{"default", "t"})) << "a job is in it";
    Client b = co_await connect();
    co_await b.ask("watch t\r\nreserve\r\ndelete 1\r\n", "WATCHING 2\r\nRESERVED 1 1\r\na\r\nDELETED\r\n");
    b.send("quit\r\n");
    co_await b.expect_end();
    while (engine->config("t")) co_await yield_now();
  });
}

TEST_F(BeanstalkdClients, TubesThatOneConnectionUsesInTurnLeaveNoQueues) {
  with_client([&](Client& a) -> Coro<void> {
    for (int i = 1; i <= 20; ++i) {
      const std::string tube = "t" + std::to_string(i), id = std::to_string(i);
      co_await a.ask("use " + tube + "\r\n" + put("a"), "USING " + tube + "\r\nINSERTED " + id + "\r\n");
      co_await a.ask("delete " + id + "\r\n", "DELETED\r\n");
    }
    while (engine->queue_names() != std::vector<std::string>{"t20"}) co_await let_pass();
  });
}

TEST_F(BeanstalkdClients, AQueueGoesWhenAnotherConnectionDeletesItsLastJob) {
  with_client([&](Client& a) -> Coro<void> {
    {
      Client b = co_await connect();
      co_await b.ask("use t\r\n" + put("a") + "quit\r\n", "USING t\r\nINSERTED 1\r\n");
      co_await b.expect_end();
    }
    co_await a.ask("delete 1\r\n", "DELETED\r\n");
    while (engine->config("t")) co_await let_pass();
  });
}

TEST_F(BeanstalkdClients, AnEmptyQueueThatAnEarlierDaemonHasLeftGoes) {
  with_client([&](Client& a) -> Coro<void> {
    co_await a.ask("use t\r\n" + put("a"), "USING t\r\nINSERTED 1\r\n");
    value_or_throw(co_await engine->book().configure("left", *engine->config("t")));
    value_or_throw(co_await engine->book().configure("mine", {.lease_time = 5s}));
    Beanstalkd next(*engine, options);
    next.listen("127.0.0.1", 0);
    while (engine->config("left")) co_await let_pass();
    EXPECT_TRUE(engine->config("mine"));
    co_await next.stop(1s);
  });
}

TEST_F(BeanstalkdClients, AQueueThatWasConfiguredStays) {
  with_server([&](Beanstalkd& server) -> Coro<void> {
    value_or_throw(co_await engine->book().configure("mail", {.lease_time = 5s}));
    Client a = co_await connect();
    co_await a.ask("watch mail\r\nreserve-with-timeout 0\r\nquit\r\n", "WATCHING 2\r\nTIMED_OUT\r\n");
    co_await a.expect_end();
    while (server.connections() > 0) co_await yield_now();
    EXPECT_EQ(engine->config("mail")->lease_time, 5s);
  });
}

// With the policy of tubes, under which it is not buried.
TEST_F(BeanstalkdClients, ATubeThatComesBackHasAQueueAgain) {
  with_server([&](Beanstalkd& server) -> Coro<void> {
    for (int i = 1; i <= 3; ++i) {
      Client a = co_await connect();
      const std::string id = std::to_string(i);
      co_await a.ask("use t\r\n" + put("a"), "USING t\r\nINSERTED " + id + "\r\n");
      EXPECT_GT(engine->config("t")->max_lease_expiries, 1'000'000u);
      co_await a.ask("delete " + id + "\r\nquit\r\n", "DELETED\r\n");
      co_await a.expect_end();
      while (server.connections() > 0) co_await yield_now();
    }
  });
}

TEST_F(BeanstalkdClients, AQueueThatIsFullIsOutOfMemory) {
  with_client([&](Client& a) -> Coro<void> {
    QueueConfig config;
    config.capacity = 1;
    config.max_payload_bytes = 5;
    value_or_throw(co_await engine->book().configure("default", config));
    co_await a.ask(put("a"), "INSERTED 1\r\n");
    co_await a.ask(put("b"), "OUT_OF_MEMORY\r\n");
    co_await a.ask("delete 1\r\n", "DELETED\r\n");
    co_await a.ask(put("letter"), "JOB_TOO_BIG\r\n");
  });
}

TEST_F(BeanstalkdClients, WhatTheEngineCannotDoIsAnInternalError) {
  run([&]() -> Coro<void> {
    engine = co_await open_engine(*store);
    Beanstalkd server(*engine, options);
    port = server.listen("127.0.0.1", 0);
    Client a = co_await connect();
    co_await a.ask(put("a"), "INSERTED 1\r\n");
    EXPECT_TRUE(co_await engine->close());
    co_await a.ask(put("a"), "INTERNAL_ERROR\r\n");
    EXPECT_TRUE(co_await server.stop(kPlenty));
  });
}

TEST_F(BeanstalkdClients, StoppingEndsReservesAndGivesLeasesBack) {
  run([&]() -> Coro<void> {
    engine = co_await open_engine(*store);
    Beanstalkd server(*engine, options);
    port = server.listen("127.0.0.1", 0);
    Client a = co_await connect();
    Client b = co_await connect();
    Client idle = co_await connect();
    co_await a.ask(put("a"), "INSERTED 1\r\n");
    co_await a.ask("reserve\r\n", "RESERVED 1 1\r\na\r\n");
    b.send("reserve\r\n");
    while (co_await waiting_now() == "0") co_await yield_now();
    EXPECT_TRUE(co_await server.stop(kPlenty));
    co_await a.expect_end();
    co_await b.expect_end();
    co_await idle.expect_end();
    EXPECT_EQ(value_or_throw(co_await engine->book().get(1)).state, JobState::ready);
    EXPECT_THROW(server.listen("127.0.0.1", 0), std::logic_error);
    EXPECT_TRUE(co_await engine->close());
  });
}

TEST_F(BeanstalkdClients, SpeaksOverAUnixSocket) {
  const TemporaryFolder folder;
  with_server([&](Beanstalkd& server) -> Coro<void> {
    const std::string path = folder.file("beanstalkd.sock");
    server.listen_unix(path);
    Client a(co_await open_unix_connection(path));
    co_await a.ask(put("a"), "INSERTED 1\r\n");
  });
}

}  // namespace
}  // namespace argiope
