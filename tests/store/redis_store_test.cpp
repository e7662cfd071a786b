// What a store on Redis does that others do not: share a server, be taken over, say what its server promises. That it
// is a store like the others is in store_conformance_test.cpp, store_schedules_test.cpp and
// store_sequences_test.cpp; what it does in trouble, in redis_trouble_test.cpp; while others write and while the server
// says nothing, in redis_moments_test.cpp.
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
  const std::string bytes("\0\r\n{}\xff 1:", 9);
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
