// A store on Redis whose server restarts, is emptied, loses what it had acknowledged, has no memory, or refuses what it
// is asked, and one whose keys others have written.
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/redis_store_fixture.hpp"
#include "store/socket_proxy.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST_F(RedisStoreTest, GoesOnAfterARestartOfTheServer) {
  use_own_server();
  auto store = open();
  for (JobId id = 1; id <= 6; ++id) {
    ASSERT_EQ(put(*store).value(), id);
    if (id % 2 != 0) continue;
    server_->stop(id % 4 == 0 ? SIGKILL : SIGTERM);
    server_->start();
  }
  ASSERT_TRUE(lease(*store, 1, 1));
  EXPECT_TRUE(settle(*store, 1, 1));
  EXPECT_EQ(kept(), 5u);
}

TEST_F(RedisStoreTest, DoesABatchOnceWhoseAnswerOrRequestIsLost) {
  SocketProxy proxy(server_->folder(), RedisServer::kSocket);
  use(proxy);
  auto owner = open();
  auto beside = open(StoreAccess::share);
  for (JobId id = 1; id <= 12; ++id) {
    id % 3 == 0 ? proxy.lose_next_request() : proxy.lose_next_answer();
    ASSERT_EQ(put(id % 2 == 0 ? *owner : *beside).value(), id);
    EXPECT_TRUE(proxy.has_lost());
  }
  EXPECT_EQ(kept(), 12u);
  for (JobId id = 1; id <= 12; ++id) {
    proxy.lose_next_answer();
    ASSERT_TRUE(lease(*owner, id, id));
    proxy.lose_next_answer();
    EXPECT_TRUE(settle(*owner, id, id));
  }
  EXPECT_EQ(kept(), 0u);
  EXPECT_EQ(ask(owner->counts())->at(0).ended, 12u);
}

TEST_F(RedisStoreTest, SaysThatTheServerHasBeenEmptied) {
  use_own_server();
  auto store = open();
  ASSERT_TRUE(put(*store));
  server_->ask("FLUSHALL");
  const auto late = put(*store);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::io);
  EXPECT_THAT(late.error().message, HasSubstr("its keys are gone from the server"));
  EXPECT_EQ(kept(), 0u);
  EXPECT_FALSE(store->close());
  EXPECT_EQ(server_->ask("EXISTS", prefix_ + "meta"), "0");
}

TEST_F(RedisStoreTest, SaysThatTheServerHasLostWhatItHadAcknowledged) {
  auto store = open();
  ASSERT_TRUE(put(*store));
  const std::string before = server_->ask("HGET", prefix_ + "meta", "batch");
  const std::string version = server_->ask("HGET", prefix_ + "meta", "version");
  ASSERT_TRUE(put(*store));
  // As a server that comes back with its state of a second ago.
  server_->ask("HSET", prefix_ + "meta", "batch", before, "version", version);
  const auto late = put(*store);
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message, HasSubstr("has lost batches that it had acknowledged"));
}

TEST_F(RedisStoreTest, WaitsForAServerWithoutMemoryAndThenAnswersThatNothingWasDone) {
  use_own_server();
  auto store = open();
  ASSERT_TRUE(put(*store));
  auto beside = open_hasty(StoreAccess::share);
  server_->ask("CONFIG", "SET", "maxmemory", "1");
  Result<JobId> refused;
  do {
    refused = put(*beside);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::network);
  } while (!refused.error().message.contains("OOM"));  // a slow server has not said so yet
  EXPECT_EQ(kept(), 1u);
  server_->ask("CONFIG", "SET", "maxmemory", "0");
  server_->ask("DEL", prefix_ + "lock");  // it ends by itself, some seconds after the refused one took it
  EXPECT_EQ(put(*store).value(), 2u);
  EXPECT_FALSE(beside->failure());
}

TEST_F(RedisStoreTest, NoTokenOrIdIsGivenAgainThatTheServerHasLost) {
  std::uint64_t token = 0;
  for (const char* name : {"", "looked-for"}) {  // with it the loss is read before it is found
    auto store = open();
    const JobId first = put(*store).value();
    auto beside = open(StoreAccess::share);
    server_->ask("COPY", prefix_ + "meta", prefix_ + "before", "REPLACE");
    const JobId lost = put(*store).value();
    ASSERT_TRUE(lease(*store, first, token += 7));
    server_->ask("COPY", prefix_ + "before", prefix_ + "meta", "REPLACE");
    EXPECT_FALSE(put(*store, {.name = name}));
    EXPECT_FALSE(store->close());
    EXPECT_GT(put(*beside).value(), lost);
    let_lease_run_out();
    store = open();
    EXPECT_EQ(store->last_token(), token);
    EXPECT_GT(put(*store).value(), lost);
    ASSERT_TRUE(store->close());
  }
}

TEST_F(RedisStoreTest, AServerWithoutMemoryIsEmptied) {
  use_own_server();
  auto store = open();
  const auto step = [&](JobId id) {
    ASSERT_TRUE(lease(*store, id, id));
    EXPECT_TRUE(settle(*store, id, id));
  };
  for (JobId id = 1; id <= 4; ++id) ASSERT_TRUE(put(*store, {.payload = "p"}));
  server_->ask("CONFIG", "SET", "maxmemory", "1");
  step(1);
  ASSERT_TRUE(store->close());
  store = open();
  step(2);
  auto beside = open(StoreAccess::share);
  ASSERT_TRUE(ask(beside->change({{.id = 3, .kind = ChangeKind::erase, .at = kNow}})));
  step(4);
  EXPECT_EQ(kept(), 0u);
  server_->ask("CONFIG", "SET", "maxmemory", "0");
  EXPECT_EQ(put(*store).value(), 5u);
}

TEST_F(RedisStoreTest, WaitsForAServerThatTakesNoWritesForAWhile) {
  use_own_server();
  auto store = open();
  ASSERT_TRUE(put(*store));
  server_->ask("CONFIG", "SET", "min-replicas-to-write", "1");
  std::thread mended([&] { server_->ask("CONFIG", "SET", "min-replicas-to-write", "0"); });
  EXPECT_EQ(put(*store).value(), 2u);
  mended.join();
}

TEST_F(RedisStoreTest, ALeaseWhoseCommitFailsForAWhileIsMadeUnderItsToken) {
  use_own_server();
  const SocketProxy proxy(server_->folder(), RedisServer::kSocket);
  use(proxy);
  ASSERT_TRUE(put(*open()));
  auto store = open_hasty();
  server_->ask("CONFIG", "SET", "min-replicas-to-write", "1");
  // Each try is a connection; there are some 8 in the time that a call has.
  std::thread mended([&, before = proxy.connections()] {
    while (proxy.connections() < before + 24) std::this_thread::yield();
    server_->ask("CONFIG", "SET", "min-replicas-to-write", "0");
  });
  EXPECT_TRUE(lease(*store, 1, 7));
  mended.join();
  EXPECT_TRUE(settle(*store, 1, 7));
  EXPECT_EQ(store->last_token(), 7u);
}

TEST_F(RedisStoreTest, RefusesAReplica) {
  use_own_server();
  server_->ask("REPLICAOF", "127.0.0.1", "1");
  const auto refused = try_to_open();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("READONLY"));
}

TEST_F(RedisStoreTest, WritesNothingWhereAKeyIsOfAnotherKind) {
  auto store = open();
  server_->ask("SET", prefix_ + "payloads", "mine");
  const auto refused = put(*store, {.payload = "p"});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("payloads"));
  EXPECT_EQ(kept(), 0u);
  EXPECT_EQ(server_->ask("EXISTS", prefix_ + "ids"), "0");
}

TEST_F(RedisStoreTest, WritesNothingWhereACountIsNoNumber) {
  auto store = open();
  ASSERT_TRUE(put(*store));
  const std::string version = server_->ask("HGET", prefix_ + "meta", "version");
  for (const char* count : {"many", "1.5", "99999999999999999999", ""}) {
    server_->ask("HSET", prefix_ + "counts", "1:ready", count);
    const auto refused = put(*store, {.payload = "p"});
    ASSERT_FALSE(refused) << count;
    EXPECT_THAT(refused.error().message, HasSubstr("counts 1:ready"));
    EXPECT_EQ(kept(), 1u);
    EXPECT_EQ(server_->ask("HGET", prefix_ + "meta", "version"), version);
    ASSERT_FALSE(store->close());
    let_lease_run_out();
    server_->ask("HSET", prefix_ + "counts", "1:ready", "1");
    store = open();
  }
  EXPECT_EQ(put(*store).value(), 2u);
}

TEST_F(RedisStoreTest, WritesNothingWhileItsUserMayNotDoAllOfIt) {
  use_own_server();
  // Those of docs/stores.md.
  server_->ask("ACL", "SETUSER", "u", "on", ">x", "~{p:0}:*", "+@connection", "+@read", "+@hash", "+@string",
               "+@sortedset", "+@keyspace", "+@scripting", "+info", "+config|get", "+time");
  const SocketProxy proxy(server_->folder(), RedisServer::kSocket);
  where_ = RedisServer::url_at(proxy.folder(), "prefix=p", "u:x@");
  auto store = open();
  for (const char* command : {"hincrby", "zadd"}) {
    const JobId last = put(*store).value();
    const std::string version = server_->ask("HGET", prefix_ + "meta", "version");
    server_->ask("ACL", "SETUSER", "u", "-" + std::string(command));
    std::thread granted([&, before = proxy.connections()] {
      while (proxy.connections() < before + 3) std::this_thread::yield();  // each try is one
      EXPECT_EQ(kept(), last) << command;
      EXPECT_EQ(server_->ask("HGET", prefix_ + "counts", "1:ready"), std::to_string(last)) << command;
      EXPECT_EQ(server_->ask("HGET", prefix_ + "meta", "version"), version) << command;
      server_->ask("ACL", "SETUSER", "u", "+" + std::string(command));
    });
    const auto added = put(*store, {.payload = "p"});
    granted.join();
    EXPECT_EQ(added.value(), last + 1) << command;
  }
  EXPECT_FALSE(store->failure());
}

TEST_F(RedisStoreTest, WaitsForALockWhoseHolderIsGone) {
  auto store = open();
  server_->ask("SET", prefix_ + "lock", "999", "PX", "200");
  EXPECT_EQ(put(*store).value(), 1u);
}

TEST_F(RedisStoreTest, ALeaseWaitsLongerForALockThanACallMay) {
  const SocketProxy proxy(server_->folder(), RedisServer::kSocket);
  use(proxy);
  ASSERT_TRUE(put(*open()));
  auto store = open_hasty();
  server_->ask("SET", prefix_ + "lock", "another");
  // It is asked for each 16 ms, so some 25 times in the time that a call has.
  std::thread given_back([&, before = proxy.requests()] {
    while (proxy.requests() < before + 60) std::this_thread::yield();
    server_->ask("DEL", prefix_ + "lock");
  });
  EXPECT_TRUE(lease(*store, 1, 7));
  given_back.join();
}

TEST_F(RedisStoreTest, SaysWhichRowsAreNotAsItWritesThem) {
  auto store = open();
  ASSERT_TRUE(put(*store));
  ASSERT_TRUE(store->close());
  const std::string row = server_->ask("HGET", prefix_ + "queues", "1");
  for (const auto& [number, its_row] : {std::pair{"many", row}, std::pair{"3", row}, std::pair{"0", row},
                                        std::pair{"2", std::string("4:mail")}, std::pair{"2", std::string()}}) {
    server_->ask("HSET", prefix_ + "queues", number, its_row);
    const auto refused = try_to_open();
    ASSERT_FALSE(refused) << number;
    EXPECT_EQ(refused.error().code, Errc::corrupt) << refused.error().message;
    server_->ask("HDEL", prefix_ + "queues", number);
  }
  store = open();
  server_->ask("HSET", prefix_ + "touched", "", "", "x", "", "j1", "", "s", "");
  EXPECT_EQ(ask(store->changed_elsewhere()), (ChangedElsewhere{.jobs = {1}, .schedules = {0}}));
  EXPECT_EQ(server_->ask("EXISTS", prefix_ + "touched"), "0");
  server_->ask("ZADD", prefix_ + "request_order", "0", "x");
  EXPECT_TRUE(ask(store->prune_requests(kNow, 0, 10)));
}

TEST_F(RedisStoreTest, LoadsItsScriptsAgain) {
  auto store = open();
  ASSERT_TRUE(put(*store));
  server_->ask("SCRIPT", "FLUSH");
  EXPECT_EQ(put(*store).value(), 2u);
}

}  // namespace
}  // namespace argiope
