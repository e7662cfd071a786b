// What a store on Redis does that others do not: share a server, lose it, be taken over, see it emptied. That it is a
// store like the others is in store_conformance_test.cpp, store_schedules_test.cpp and store_sequences_test.cpp; what
// it does while others write and while the server says nothing, in redis_moments_test.cpp.
#include <boost/asio/ip/tcp.hpp>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "store/redis/redis_connection.hpp"
#include "store/redis/redis_rows.hpp"
#include "store/redis_store_fixture.hpp"
#include "store/socket_proxy.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

// --- who opens it ----------------------------------------------------------------------------------------------------

TEST_F(RedisStoreTest, KeepsAllForTheNextOpening) {
  auto store = open();
  ASSERT_EQ(put(*store, {.name = "a"}).value(), 1u);
  ASSERT_EQ(put(*store, {.name = "b"}).value(), 2u);
  ASSERT_TRUE(lease(*store, 2, 7));
  ASSERT_TRUE(ask(store->remember("offset", -5)));
  ASSERT_TRUE(ask(store->put_schedules({{.name = "s", .trigger = "t", .place = {.next = kNow}}})));
  const auto job = ask(store->get(1)).value();
  const auto schedule = ask(store->find_schedule("s")).value();
  ASSERT_TRUE(store->close());
  store = open();
  EXPECT_TRUE(ask(store->get(1)).value() == job);
  EXPECT_TRUE(ask(store->find_schedule("s")).value() == schedule);
  EXPECT_EQ(ask(store->recall("offset")).value(), std::optional<std::int64_t>{-5});
  const auto old = ask(store->old_leases());
  ASSERT_EQ(old->size(), 1u);
  EXPECT_EQ(old->at(0).token, 7u);
  EXPECT_EQ(store->last_token(), 7u);
  EXPECT_EQ(put(*store).value(), 3u);
}

TEST_F(RedisStoreTest, IsOwnedByOneWhoseNameTheOthersAreTold) {
  auto first = open();
  EXPECT_TRUE(has_owner(where_));
  // It waits until the owner renews its lease, as each batch does.
  auto trying = std::async(std::launch::async, [this] { return try_to_open(); });
  do {
    ASSERT_TRUE(put(*first));
  } while (trying.wait_for(0s) != std::future_status::ready);
  const auto refused = trying.get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::busy);
  EXPECT_THAT(refused.error().message, HasSubstr(":" + std::to_string(::getpid()) + " owns this store"));
  EXPECT_TRUE(put(*first));
  ASSERT_TRUE(first->close());
  EXPECT_FALSE(has_owner(where_));
  EXPECT_TRUE(try_to_open());
}

TEST_F(RedisStoreTest, AnOwnerThatHasLostItWritesNothingMore) {
  auto first = open();
  ASSERT_TRUE(put(*first));
  let_lease_run_out();
  auto second = open();
  const auto late = put(*first);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::io);
  EXPECT_THAT(late.error().message, HasSubstr("another process has become its owner"));
  EXPECT_TRUE(first->failure());
  EXPECT_EQ(kept(), 1u);
  EXPECT_EQ(put(*second).value(), 2u);
  EXPECT_FALSE(first->close());
  EXPECT_TRUE(has_owner(where_)) << "the one that lost it has taken nothing from its successor";
}

TEST_F(RedisStoreTest, AnOwnerThatHasDiedIsFollowedWhenItsLeaseIsOver) {
  open()->close();
  server_->ask("EVAL",
               "return redis.call('HSET', KEYS[1], 'owner', 'gone:1', 'until', redis.call('TIME')[1] * 1000 + 2000)",
               "1", prefix_ + "meta");
  EXPECT_TRUE(has_owner(where_));
  auto next = open();
  EXPECT_EQ(put(*next).value(), 1u);
}

// The server's clock may have been set back since, or be another server's.
TEST_F(RedisStoreTest, AnOwnerThatHasNotRenewedItsLeaseForSoLongIsFollowedWhateverTheServersClockSays) {
  open()->close();
  server_->ask("HSET", prefix_ + "meta", "owner", "gone:1", "until", "9000000000000");
  EXPECT_TRUE(has_owner(where_));
  RedisConnection connection(parse_redis_url(where_).value());
  RedisRows next(connection, StoreAccess::own, 100ms);
  EXPECT_TRUE(next.open("next:1"));
  EXPECT_EQ(server_->ask("HGET", prefix_ + "meta", "owner"), "next:1");
}

TEST_F(RedisStoreTest, WhoWaitsForItsOwnerAsksTheServerSeldom) {
  auto owner = open();
  SocketProxy proxy(server_->folder(), RedisServer::kSocket);
  use(proxy);
  EXPECT_FALSE(try_to_open());
  // The owner renews its lease within 3 s.
  EXPECT_LT(proxy.requests(), 100u);
}

// After a failover the server has forgotten who has opened the store.
TEST_F(RedisStoreTest, AnOwnerThatTheServerHasForgottenIsNotTakenForTheNextOne) {
  open()->close();
  server_->ask("COPY", prefix_ + "meta", prefix_ + "before");
  auto first = open();
  server_->ask("COPY", prefix_ + "before", prefix_ + "meta", "REPLACE");
  auto second = open();
  const auto late = put(*first);
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message, HasSubstr("another process has become its owner"));
  EXPECT_EQ(put(*second).value(), 1u);
}

TEST_F(RedisStoreTest, ABatchOfOneThatTheServerHasForgottenIsNotTakenForAnothers) {
  open()->close();
  server_->ask("COPY", prefix_ + "meta", prefix_ + "before");
  auto first = open(StoreAccess::share);
  server_->ask("COPY", prefix_ + "before", prefix_ + "meta", "REPLACE");
  auto second = open(StoreAccess::share);
  EXPECT_EQ(put(*first).value(), 1u);
  EXPECT_EQ(put(*second).value(), 2u);
  EXPECT_EQ(kept(), 2u);
}

TEST_F(RedisStoreTest, OthersPutAndChangeBesideItsOwner) {
  auto owner = open();
  ASSERT_EQ(put(*owner).value(), 1u);
  auto beside = open(StoreAccess::share);
  ASSERT_EQ(put(*beside, {.queue = "theirs"}).value(), 2u);
  EXPECT_EQ(put(*owner).value(), 3u) << "made anew from what is there now";
  EXPECT_EQ(ask(beside->lease({{1, 1, kNow + 1s, "w"}})).error().code, Errc::refused);
  EXPECT_EQ(ask(owner->changed_elsewhere())->jobs, (std::vector<JobId>{0, 2}));
  EXPECT_EQ(ask(owner->changed_elsewhere())->jobs, std::vector<JobId>{});
  ASSERT_TRUE(lease(*owner, 2, 1));
  const auto changed = ask(beside->change({{.id = 2, .kind = ChangeKind::cancel, .at = kNow}}));
  EXPECT_EQ(changed->at(0).outcome, ChangeOutcome::asked);
  EXPECT_TRUE(settle(*owner, 2, 1));
  ASSERT_EQ(ask(beside->counts())->size(), 2u);
  EXPECT_EQ(ask(owner->counts())->at(0).counts.ready, 2u);
  EXPECT_EQ(ask(owner->counts())->at(1).ended, 1u);
}

TEST_F(RedisStoreTest, AnOwnerIsToldOfManyChangesInParts) {
  auto owner = open();
  server_->ask("EVAL", "for id = 1, 50000 do redis.call('HSET', KEYS[1], 'j' .. id, '') end", "1", prefix_ + "touched");
  std::set<JobId> told;
  int parts = 0;
  for (bool more = true; more; ++parts) {
    const auto changed = ask(owner->changed_elsewhere());
    ASSERT_TRUE(changed) << changed.error().message;
    EXPECT_LT(changed->jobs.size(), 25'000u);
    told.insert(changed->jobs.begin(), changed->jobs.end());
    more = changed->more;
  }
  EXPECT_GT(parts, 2);
  EXPECT_EQ(told.size(), 50'000u);
  EXPECT_EQ(server_->ask("EXISTS", prefix_ + "touched"), "0");
}

TEST_F(RedisStoreTest, NobodyIsToldOfChangesWithoutAnOwner) {
  open()->close();
  auto beside = open(StoreAccess::share);
  ASSERT_TRUE(put(*beside));
  EXPECT_EQ(server_->ask("EXISTS", prefix_ + "touched"), "0");
  auto owner = open();
  ASSERT_TRUE(put(*beside));
  EXPECT_EQ(ask(owner->changed_elsewhere())->jobs, std::vector<JobId>{2});
}

TEST_F(RedisStoreTest, ManyWhoShareItLoseNoPutToEachOther) {
  auto owner = open();
  constexpr int kOthers = 4, kPuts = 100;
  std::vector<std::thread> others;
  for (int i = 0; i < kOthers; ++i) {
    others.emplace_back([this] {
      VirtualBackend backend;
      EventLoop loop{backend};
      auto store = open(StoreAccess::share);
      for (int n = 0; n < kPuts; ++n) {
        const auto put = loop.run_until_complete(store->put({{.job = {.queue = "q"}}}, kNow));
        EXPECT_TRUE(put) << (put ? "" : put.error().message);
      }
      EXPECT_TRUE(store->close());
    });
  }
  for (int n = 0; n < kPuts; ++n) EXPECT_TRUE(put(*owner));
  for (std::thread& other : others) other.join();
  EXPECT_EQ(kept(), std::size_t{(kOthers + 1) * kPuts});
  EXPECT_EQ(ask(owner->counts())->at(0).counts.ready, std::uint64_t{(kOthers + 1) * kPuts});
  EXPECT_EQ(put(*owner).value(), std::uint64_t{(kOthers + 1) * kPuts + 1});
}

TEST_F(RedisStoreTest, AnOwnerThatOnlyReadsStaysTheOwner) {
  auto store = open();
  server_->ask("HSET", prefix_ + "meta", "until", "1");
  EXPECT_FALSE(has_owner(where_));
  ASSERT_TRUE(ask(store->get(1)));
  EXPECT_TRUE(has_owner(where_));
}

TEST_F(RedisStoreTest, AnOwnerThatOnlyReadsHearsThatItIsNoneAnyMore) {
  auto first = open();
  let_lease_run_out();
  auto second = open();
  EXPECT_TRUE(ask(first->get(1))) << "what is there can be looked at";
  EXPECT_FALSE(ask(first->changed_elsewhere()));
  EXPECT_TRUE(first->failure());
}

TEST_F(RedisStoreTest, ReadingCreatesNothing) {
  const auto none = try_to_open(StoreAccess::read);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::not_found);
  EXPECT_EQ(server_->ask("EXISTS", prefix_ + "meta"), "0");
  auto owner = open();
  ASSERT_TRUE(put(*owner));
  auto reader = open(StoreAccess::read);
  EXPECT_TRUE(ask(reader->get(1))->has_value());
  EXPECT_EQ(put(*reader).error().code, Errc::refused);
}

// --- rows ------------------------------------------------------------------------------------------------------------

TEST_F(RedisStoreTest, KeepsAnyBytes) {
  auto store = open();
  const std::string bytes("\0\r\n{}\xff 1:", 11);
  ASSERT_TRUE(put(*store, {.name = bytes, .key = bytes, .unique = bytes, .function = bytes, .payload = bytes}));
  const auto job = *ask(store->get(1)).value();
  EXPECT_EQ(job.payload, bytes);
  EXPECT_EQ(job.name, bytes);
  EXPECT_EQ(job.key, bytes);
  EXPECT_EQ(job.function, bytes);
  EXPECT_EQ(ask(store->find_name(bytes)).value(), std::optional<JobId>{1});
  EXPECT_EQ(server_->ask("HGET", prefix_ + "payloads", "1"), bytes);
}

TEST_F(RedisStoreTest, WritesMoreAtOnceThanLuaTakesFromATable) {
  auto store = open();
  std::vector<PutRequest> many(20'000);
  for (PutRequest& one : many) one.job = {.queue = "q", .payload = "p"};
  ASSERT_TRUE(ask(store->put(std::move(many), kNow)));
  EXPECT_EQ(kept(), 20'000u);
  EXPECT_EQ(server_->ask("ZCARD", prefix_ + "ready:1"), "20000");
}

TEST_F(RedisStoreTest, LeavesNothingOfThoseWhoHaveSharedIt) {
  auto beside = open(StoreAccess::share);
  ASSERT_TRUE(put(*beside));
  const auto noted = [&] {
    return server_->ask("EVAL", "return #redis.call('KEYS', ARGV[1])", "0", prefix_ + "batch:*");
  };
  EXPECT_EQ(noted(), "1");
  ASSERT_TRUE(beside->close());
  EXPECT_EQ(noted(), "0");
  EXPECT_EQ(server_->ask("EXISTS", prefix_ + "lock"), "0");
}

TEST_F(RedisStoreTest, LeavesNothingOfJobsThatAreDone) {
  auto store = open();
  ASSERT_TRUE(put(*store, {.name = "n", .unique = "u", .payload = "p"}));
  ASSERT_TRUE(lease(*store, 1, 1));
  ASSERT_TRUE(settle(*store, 1, 1));
  for (const char* key : {"jobs", "leases", "payloads", "names", "uniques", "ids", "ready:1"}) {
    EXPECT_EQ(server_->ask("EXISTS", prefix_ + key), "0") << key;
  }
}

// --- trouble ---------------------------------------------------------------------------------------------------------

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

// --- what the server promises ----------------------------------------------------------------------------------------

TEST_F(RedisStoreTest, RefusesAServerThatKeepsNothingUnlessThatIsAskedFor) {
  where_ = server_->url("prefix=none");
  const auto refused = try_to_open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::refused);
  EXPECT_THAT(refused.error().message, HasSubstr("durability=none"));
  where_ += "&durability=none";
  EXPECT_TRUE(try_to_open());
}

TEST_F(RedisStoreTest, SaysWhatItsServerPromises) {
  EXPECT_THAT(open()->durability(), HasSubstr("all is lost when the server ends"));
  use_own_server();
  auto store = open();
  EXPECT_THAT(store->durability(), HasSubstr("appendfsync always: each write is on the disk"));
  ASSERT_TRUE(store->close());
  server_->ask("CONFIG", "SET", "appendfsync", "everysec");
  EXPECT_THAT(open(StoreAccess::read)->durability(), HasSubstr("may lose the last second"));
}

TEST_F(RedisStoreTest, SaysThatAFailoverMayLoseWhatAReplicaHasNotReceived) {
  use_own_server();
  EXPECT_THAT(open()->durability(), Not(HasSubstr("failover")));
  // Replicas come by TCP alone. A port that was free a moment ago.
  const std::string port = [] {
    boost::asio::io_context io;
    using boost::asio::ip::tcp;
    return std::to_string(tcp::acceptor(io, {boost::asio::ip::address_v4::loopback(), 0}).local_endpoint().port());
  }();
  server_->ask("CONFIG", "SET", "port", port, "repl-diskless-sync-delay", "0");
  const RedisServer replica("replicaof 127.0.0.1 " + port + "\n");
  ASSERT_EQ(server_->ask("WAIT", "1", "60000"), "1");
  EXPECT_THAT(open()->durability(), HasSubstr("a failover to a replica may lose"));
}

TEST_F(RedisStoreTest, RefusesAServerThatDeletesJobsUnlessThatIsAskedFor) {
  use_own_server();
  server_->ask("CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru");
  const auto refused = try_to_open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::refused);
  EXPECT_THAT(refused.error().message, HasSubstr("maxmemory-policy allkeys-lru"));
  for (const auto& [limit, policy] :
       {std::pair{"100mb", "volatile-lru"}, std::pair{"0", "allkeys-lru"}, std::pair{"100mb", "noeviction"}}) {
    server_->ask("CONFIG", "SET", "maxmemory", limit, "maxmemory-policy", policy);
    EXPECT_TRUE(try_to_open()) << limit << ' ' << policy;
  }
  server_->ask("CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru");
  where_ += "&durability=none";
  EXPECT_TRUE(try_to_open());
}

TEST_F(RedisStoreTest, OpensWhereConfigIsForbidden) {
  own_server_ = std::make_unique<RedisServer>("appendonly yes\nrename-command CONFIG \"\"\n");
  where_ = own_server_->url("prefix=p");
  auto store = open();
  EXPECT_EQ(put(*store).value(), 1u);
}

TEST_F(RedisStoreTest, TellsNoPassword) {
  own_server_ =
      std::make_unique<RedisServer>("appendonly yes\nuser a on >s3cret ~* +@all\nuser default on nopass ~* +@all\n");
  where_ = own_server_->url("prefix=p", "a:s3cret@");
  auto store = open();
  EXPECT_EQ(put(*store).value(), 1u);
  where_ = own_server_->url("prefix=q", "a:wr0ng@");
  const auto refused = try_to_open();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("WRONGPASS"));
  EXPECT_THAT(refused.error().message, Not(HasSubstr("wr0ng")));
}

TEST_F(RedisStoreTest, TellsNoPasswordThatTheServerRepeats) {
  own_server_ = std::make_unique<RedisServer>("appendonly yes\nrename-command AUTH \"\"\n");
  where_ = own_server_->url("prefix=p", "a:s3cret@");
  const auto refused = try_to_open();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("refuses user and password (ERR)"));
  EXPECT_THAT(refused.error().message, Not(HasSubstr("s3cret")));
}

// --- where it is -----------------------------------------------------------------------------------------------------

TEST(RedisAddress, IsReadFromAUrl) {
  const auto full =
      parse_redis_url("redis://me:p%40ss@[::1]:7000/3?prefix=jobs&durability=none&store_timeout=1.5").value();
  EXPECT_EQ(full.host, "::1");
  EXPECT_EQ(full.port, 7000);
  EXPECT_EQ(full.user, "me");
  EXPECT_EQ(full.password, "p@ss");
  EXPECT_EQ(full.database, 3u);
  EXPECT_EQ(full.prefix, "jobs");
  EXPECT_TRUE(full.keeps_nothing);
  EXPECT_EQ(full.store_timeout, 1500ms);
  const auto least = parse_redis_url("redis://h").value();
  EXPECT_EQ(least.host, "h");
  EXPECT_EQ(least.port, 6379);
  EXPECT_EQ(least.prefix, "argiope");
  EXPECT_EQ(parse_redis_url("redis://:pw@h/").value().password, "pw");
  EXPECT_EQ(parse_redis_url("redis://%2Frun%2Fr.sock/1").value().host, "/run/r.sock");
}

TEST(RedisAddress, IsRefusedWithoutItsPassword) {
  for (const char* url : {"redis://u:secret@h:port/0", "redis://u:secret@h/x", "redis://u:secret%4@h/0",
                          "redis://u:secret@h/0?secret=1", "redis://u:secret@h/0?prefix={a}", "redis://u:secret@h:0"}) {
    const auto refused = parse_redis_url(url);
    ASSERT_FALSE(refused) << url;
    EXPECT_EQ(refused.error().code, Errc::invalid_input);
    EXPECT_THAT(refused.error().message, Not(HasSubstr("secret"))) << url;
  }
  EXPECT_EQ(parse_redis_url("rediss://h").error().code, Errc::unsupported);
}

}  // namespace
}  // namespace argiope
