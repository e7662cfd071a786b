// Sinks that fill tables, with a server of PostgreSQL that each suite starts for itself. Skipped where none is
// installed.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "project/feed_store.hpp"
#include "project/results/internal/result_sinks.hpp"
#include "project/results/sink_copy_text.hpp"
#include "support/loop_fixture.hpp"
#include "support/postgres_server.hpp"

namespace argiope {
namespace {

using ::testing::HasSubstr;

TEST(SinkCopyTextTest, EscapesWhatSeparates) {
  const auto copied = [](std::string_view text) {
    std::string out;
    append_copy_text(out, text);
    return out;
  };
  EXPECT_EQ(copied("a\tb\nc\rd\\e"), "a\\tb\\nc\\rd\\\\e");
  EXPECT_EQ(copied(std::string_view("a\0b", 3)),
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(copied("\xff\xc3"), "\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(copied("ü"), "ü");
  EXPECT_EQ(copied("\\N"), "\\\\N");
}

TEST(SinkCopyTextTest, HasNoCharactersThatJsonbRefuses) {
  EXPECT_EQ(without_null_characters(R"("a\u0000b")"), R"("a\ufffdb")");
  EXPECT_EQ(without_null_characters(R"("\\u0000")"), R"("\\u0000")");
  EXPECT_EQ(without_null_characters(R"("\\\u0000")"), R"("\\\ufffd")");
  EXPECT_EQ(without_null_characters(R"("\ud83d\ude00 \ud83d \ude00\ud83d")"), R"("\ud83d\ude00 \ufffd \ufffd\ufffd")");
  EXPECT_EQ(without_null_characters(R"("\n\u00e4)"), R"("\n\u00e4)");
  EXPECT_EQ(without_null_characters("\"\\"), "\"\\");
  EXPECT_EQ(without_null_characters("\"\\u00"), "\"\\u00");
}

class TableSinksTest : public OnVirtualLoop {
 protected:
  void SetUp() override {
    if (server == nullptr) GTEST_SKIP() << PostgresServer::kNotThere;
    definition.name = "shop";
    definition.sinks = {
        {.kind = ProjectSink::Kind::postgresql, .name = "it", .target = server->connection(), .table = "results"}};
    server->query("drop table if exists results");
  }

  template <class Body>
  void with_sinks(Body body) {
    loop_.run_until_complete(keeping([&]() -> Coro<void> {
      sinks.emplace(
          loop_, store, [this](SinkRow row) { store.submit({.sinks = {std::move(row)}}); }, 1, definition, SinkMeans{});
      EXPECT_TRUE(sinks->start());
      co_await body();
      co_await sinks->stop();
      sinks.reset();
    }));
  }
  void deliver_all() {
    with_sinks([&]() -> Coro<void> {
      do {
        co_await sleep(1ms);
      } while (!sinks->has_all());
    });
  }
  std::string trouble() { return sinks->rows().at(0).trouble; }

  PostgresServer* const server = PostgresServer::shared();
  FeedStore store;
  ProjectDefinition definition;
  std::optional<ResultSinks> sinks;
};

TEST_F(TableSinksTest, FillATableThatTheyMake) {
  FeedRow odd = FeedStore::event(7, R"({"a":"tab\t null\u0000 \\u0000","b":[1,2.5,null]})");
  odd.page_name = "a\tname\\N\xff";
  odd.url.clear();
  odd.part = "p\n1";
  odd.news = ResultNews::gone;
  store.feed = {FeedStore::event(3, "1"), odd, FeedStore::event(8, "")};
  deliver_all();
  EXPECT_EQ(server->query(
                "select number, project, page, rule, news, at at time zone 'UTC', value from results where number = 3"),
            "3|shop|http://shop.test/3|item|added|2026-11-23 00:00:00.003|1");
  EXPECT_EQ(server->query("select page = E'a\\\\tname\\\\\\\\N\xef\xbf\xbd', part = E'p\\\\n1', news, value->>'b', "
                          "value->>'a' = E'tab\\\\t null\xef\xbf\xbd \\\\\\\\u0000' "
                          "from results where number = 7"),
            "t|t|gone|[1, 2.5, null]|t");
  EXPECT_EQ(server->query("select value is null from results where number = 8"), "t");
}

TEST_F(TableSinksTest, HaveEachEventOnce) {
  store.add(1, 2'500, "{\"a\":1}");
  deliver_all();
  store.add(2'501, 2'600);
  store.rows.clear();  // as if no cursor had been committed
  deliver_all();
  EXPECT_EQ(server->query("select count(*), min(number), max(number) from results"), "2600|1|2600");
  // Another store of pages, whose numbers begin anew.
  store.feed.clear();
  store.feed.push_back(FeedStore::event(1));
  store.feed[0].at += 1h;
  store.rows.clear();
  deliver_all();
  EXPECT_EQ(server->query("select count(*) from results"), "2601");
}

TEST_F(TableSinksTest, SayWhatTheServerHasAgainstIt) {
  store.add(1, 1);
  server->query("create table results (number bigint)");
  with_sinks([&]() -> Coro<void> {
    co_await sleep(10ms);
    EXPECT_THAT(trouble(), HasSubstr("table results: "));
    EXPECT_THAT(trouble(), HasSubstr("ERROR"));
    server->query("drop table results");
    co_await sleep(10s);
    EXPECT_EQ(trouble(), "");
  });
  definition.sinks[0].target = "host=/nowhere dbname=none";
  store.add(2, 2);
  with_sinks([&]() -> Coro<void> {
    co_await sleep(10ms);
    EXPECT_THAT(trouble(), HasSubstr("/nowhere"));
  });
  definition.sinks[0].target = "host=x none";
  with_sinks([&]() -> Coro<void> {
    co_await sleep(10ms);
    EXPECT_THAT(trouble(), HasSubstr("missing \"=\""));
  });
}

TEST_F(TableSinksTest, GoOnWhenTheServerIsBack) {
  store.add(1, 5);
  with_sinks([&]() -> Coro<void> {
    while (!sinks->has_all()) co_await sleep(1ms);
    server->stop();
    store.add(6, 9);
    sinks->wake();
    co_await sleep(1min);
    EXPECT_NE(trouble(), "");
    server->start();
    co_await sleep(10min);
    EXPECT_EQ(trouble(), "");
  });
  EXPECT_EQ(server->query("select count(*), count(distinct number) from results"), "9|9");
}

TEST_F(TableSinksTest, WaitNoLongerThanTheirTimeLimit) {
  store.add(1, 1);
  deliver_all();
  definition.sinks[0].time_limit = 1s;
  store.add(2, 2);
  server->hold("lock table results");
  with_sinks([&]() -> Coro<void> {
    co_await sleep(10ms);
    // A busy machine may not come as far as to the lock in that time: then when it is tried again.
    for (int i = 0; i < 1'000 && !trouble().contains("statement timeout"); ++i) co_await sleep(1s);
    EXPECT_THAT(trouble(), HasSubstr("statement timeout"));
    EXPECT_FALSE(sinks->has_all());
    server->release();
    while (!sinks->has_all()) co_await sleep(1s);
  });
  EXPECT_EQ(server->query("select count(*) from results"), "2");
}

TEST_F(TableSinksTest, AreStoppedWhileTheServerIsSlow) {
  store.add(1, 1);
  deliver_all();
  store.add(2, 2);
  server->hold("lock table results");
  const auto before = std::chrono::steady_clock::now();
  {
    // In real time, since virtual time waits for the thread.
    RealTime world;
    EventLoop loop(world.backend);
    world.run(loop, keeping([&]() -> Coro<void> {
                ResultSinks slow(
                    loop, store, [](SinkRow) {}, 1, definition, SinkMeans{});
                EXPECT_TRUE(slow.start());
                co_await sleep(200ms);
                co_await slow.stop(50ms);
              }));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - before, 5min) << "it waits for the lock";
  server->release();
}

}  // namespace
}  // namespace argiope
