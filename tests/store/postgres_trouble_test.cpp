// A store in PostgreSQL whose server is lost, silent, away or another one than before.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "store/postgres_store_fixture.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Two suites, which may run at the same time: they wait much.
class PostgresTroubleTest : public PostgresStoreTest {};
class PostgresWaitTest : public PostgresStoreTest {};

// --- what becomes of what was said -----------------------------------------------------------------------------------

TEST_F(PostgresTroubleTest, GoesOnWhenItsConnectionIsCut) {
  auto store = open();
  ASSERT_TRUE(put(*store));
  for (JobId id = 2; id < 6; ++id) {
    cut_connections();
    ASSERT_EQ(put(*store).value(), id);
    cut_connections();
    ASSERT_TRUE(ask(store->get(id))->has_value());
  }
  EXPECT_EQ(count("jobs"), "5");
}

TEST_F(PostgresTroubleTest, NeitherLosesNorDoublesWhatWasBeingCommitted) {
  SocketProxy proxy(server_->path(), "/.s.PGSQL.5432");
  auto store = open_at(PostgresServer::store_at(proxy.folder(), schema_));
  ASSERT_NE(store, nullptr);
  std::uint64_t token = 0;
  for (JobId id = 1; id <= 8; ++id) {
    id % 2 == 0 ? proxy.lose_next_answer() : proxy.lose_next_request();
    const auto added = put(*store);
    ASSERT_TRUE(added) << added.error().message;
    EXPECT_EQ(*added, id);
    EXPECT_TRUE(proxy.has_lost());
    id % 2 == 0 ? proxy.lose_next_answer() : proxy.lose_next_request();
    ASSERT_TRUE(lease(*store, id, ++token));
    proxy.lose_next_answer();
    ASSERT_TRUE(settle(*store, id, token));
  }
  EXPECT_EQ(count("jobs"), "0");
  EXPECT_EQ(ask(store->counts())->at(0).ended, 8u);
}

TEST_F(PostgresTroubleTest, ACommitInDoubtIsWaitedForAndThoseBehindItAreAnsweredInTime) {
  SocketProxy proxy(server_->path(), "/.s.PGSQL.5432");
  auto store = open_hasty(PostgresServer::store_at(proxy.folder(), schema_));
  ASSERT_TRUE(put(*store));
  std::atomic<bool> is_under_way = false;
  proxy.before_request(1, [&] {
    proxy.fall_silent();
    is_under_way = true;
  });
  const auto added = loop_.run_until_complete([&]() -> Coro<Result<std::vector<Result<PutReply>>>> {
    std::vector<PutRequest> requests(1);
    requests[0].job.queue = "q";
    auto putting = loop_.create_task(store->put(std::move(requests), kNow));
    while (!is_under_way) co_await sleep(0s);  // time stands still while a call is under way
    const auto behind = co_await store->get(1);
    EXPECT_EQ(behind ? Errc{} : behind.error().code, Errc::network);
    EXPECT_FALSE(putting.done());
    proxy.speak_again();
    co_return co_await putting;
  }());
  ASSERT_TRUE(added) << added.error().message;
  EXPECT_EQ(added->at(0)->id, 2u);
  EXPECT_EQ(count("jobs"), "2");
}

TEST_F(PostgresTroubleTest, WhoSharesItGoesOnWhenWhatWasToldToHaveFailedWasWritten) {
  SocketProxy proxy(server_->path(), "/.s.PGSQL.5432");
  auto other = open_hasty(PostgresServer::store_at(proxy.folder(), schema_), StoreAccess::share);
  ASSERT_TRUE(put(*other));
  const std::size_t before = proxy.requests();
  ASSERT_TRUE(put(*other));
  proxy.before_request(proxy.requests() - before, [&] {  // its commit
    proxy.lose_next_answer();
    proxy.before_request(1, [&] { proxy.fall_silent(); });
  });
  EXPECT_FALSE(put(*other));
  proxy.speak_again();
  EXPECT_EQ(count("jobs"), "3");
  EXPECT_EQ(put(*other).value(), 4u);
}

// As after a failover to a standby that did not have them.
TEST_F(PostgresTroubleTest, AnOwnerWritesNothingMoreWhenTheServerHasLostWhatItAcknowledged) {
  for (const char* lost : {"delete from writers", "update partitions set version = version - 1"}) {
    auto store = open();
    ASSERT_TRUE(put(*store));
    ASSERT_TRUE(put(*store));
    server_->query("set search_path to " + schema_ + "; " + lost);
    cut_connections();
    const auto refused = put(*store);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("has lost transactions"));
    EXPECT_TRUE(store->failure());
    EXPECT_FALSE(store->close());
    server_->query("update " + schema_ + ".partitions set node = null");  // its lease is over
  }
  EXPECT_TRUE(put(*open())) << "the next one goes on with what is there";
}

TEST_F(PostgresTroubleTest, KeepsItsOldLeasesWhenTheyCannotBeReadAgainAtOnce) {
  auto store = open();
  ASSERT_TRUE(put(*store));
  ASSERT_TRUE(lease(*store, 1, 1));
  ASSERT_TRUE(store->close());
  SocketProxy proxy(server_->path(), "/.s.PGSQL.5432");
  store = open_at(PostgresServer::store_at(proxy.folder(), schema_));
  ASSERT_EQ(ask(store->old_leases())->size(), 1u);
  proxy.lose_answer_to("FROM leases l JOIN");
  cut_connections();
  ASSERT_TRUE(put(*store));
  EXPECT_EQ(ask(store->old_leases())->size(), 1u);
}

// Whatever of it the server has not answered, or has not done.
TEST_F(PostgresTroubleTest, ALeaseThatIsDoneAgainHasItsToken) {
  SocketProxy proxy(server_->path(), "/.s.PGSQL.5432");
  auto store = open_hasty(PostgresServer::store_at(proxy.folder(), schema_));
  for (JobId id = 1; id <= 4; ++id) ASSERT_EQ(put(*store).value(), id);
  // The first request reads the job, the second commits the lease, or reads another job.
  proxy.before_request(2, [&] { proxy.lose_next_request(); });
  EXPECT_TRUE(lease(*store, 1, 1)) << "its commit was lost";
  proxy.before_request(2, [&] { server_->query("update " + schema_ + ".partitions set version = version + 1"); });
  EXPECT_TRUE(lease(*store, 2, 2)) << "it was made from an outdated version";
  proxy.before_request(2, [&] { proxy.fall_silent(); });
  loop_.run_until_complete([](Store& its, SocketProxy& between) -> Coro<void> {
    auto& loop = EventLoop::current();
    std::vector<Task<Result<std::vector<std::optional<JobRecord>>>>> leasing;
    for (const JobId id : {3, 4}) leasing.push_back(loop.create_task(its.lease({{id, id, kNow + 60s, "w"}})));
    co_await sleep(0s);
    EXPECT_FALSE(co_await its.get(1)) << "the server is silent";
    between.speak_again();
    for (auto& one : leasing) {
      const auto leased = co_await one;
      EXPECT_TRUE(leased && leased->at(0)) << (leased ? "" : leased.error().message);
    }
  }(*store, proxy));
}

// --- how long it is waited for ---------------------------------------------------------------------------------------

TEST_F(PostgresWaitTest, WaitsForAServerThatIsStartedAgain) {
  auto store = open();
  ASSERT_TRUE(put(*store));
  server_->stop();
  std::thread starting([this] { server_->start(); });
  const auto added = put(*store);
  starting.join();
  ASSERT_TRUE(added) << added.error().message;
  EXPECT_EQ(*added, 2u);
  EXPECT_EQ(count("jobs"), "2");
}

TEST_F(PostgresWaitTest, AnswersWhenItHasWaitedLongEnough) {
  auto store = open_hasty(where_);
  ASSERT_TRUE(put(*store));
  server_->stop();
  const auto refused = put(*store);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::network);
  EXPECT_FALSE(store->failure()) << "it can be written again when the server is back";
  server_->start();
  EXPECT_EQ(put(*store).value(), 2u);
}

TEST_F(PostgresWaitTest, WaitsForASilentServerNoLongerThanItMay) {
  SocketProxy proxy(server_->path(), "/.s.PGSQL.5432");
  auto store = open_hasty(PostgresServer::store_at(proxy.folder(), schema_));
  ASSERT_TRUE(put(*store));
  const int connections = proxy.connections();
  proxy.fall_silent();
  const auto refused = ask(store->get(1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::network);
  EXPECT_LE(proxy.connections(), connections + 1) << "one wait has taken all of the time";
}

TEST_F(PostgresWaitTest, WaitsWhileTheServerIsReadOnly) {
  auto store = open_hasty(where_);
  ASSERT_TRUE(put(*store));
  server_->query("alter role argiope set default_transaction_read_only = on");
  cut_connections();
  const auto refused = put(*store);
  server_->query("begin read write; alter role argiope reset default_transaction_read_only; commit");
  cut_connections();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("read-only"));
  EXPECT_EQ(put(*store).value(), 2u);
}

TEST_F(PostgresWaitTest, PatientCallsWaitForTheServerAndOthersFail) {
  auto store = open_hasty(where_);
  const JobId id = put(*store).value(), running = put(*store).value();
  ASSERT_TRUE(lease(*store, running, 1));
  server_->stop();
  loop_.run_until_complete([](Store& its, JobId job, JobId ended, PostgresServer& server) -> Coro<void> {
    auto& loop = EventLoop::current();
    auto leasing = loop.create_task(its.lease({{job, 2, kNow + 60s, "w"}}));
    auto ending = loop.create_task(
        its.once({.key = {"k", "digest"}, .now = kNow, .settlements = {{.id = ended, .token = 1, .at = kNow}}}));
    std::vector<PutRequest> requests(1);
    requests[0].job.queue = "q";
    EXPECT_EQ((co_await its.put(std::move(requests), kNow)).error().code, Errc::network);
    EXPECT_FALSE(leasing.done() || ending.done());
    server.start();
    const auto leased = co_await leasing;
    EXPECT_TRUE(leased && leased->at(0));
    const auto answered = co_await ending;
    EXPECT_TRUE(answered && answered->settlements.at(0).settled);
  }(*store, id, running, *server_));
}

TEST_F(PostgresWaitTest, ClosesAlthoughTheServerIsSilent) {
  SocketProxy proxy(server_->path(), "/.s.PGSQL.5432");
  auto opened =
      open_store(PostgresServer::store_at(proxy.folder(), schema_) + "&store_timeout=86400", {.busy_limit = 1ms});
  ASSERT_TRUE(opened);
  const std::shared_ptr<Store> store = std::move(*opened);
  proxy.fall_silent();
  const auto refused = loop_.run_until_complete([](Store& its) -> Coro<Result<void>> {
    auto& loop = EventLoop::current();
    auto remembering = loop.create_task(its.remember("x", 1));
    co_await sleep(0s);
    EXPECT_TRUE(its.close());
    co_return co_await remembering;
  }(*store));
  EXPECT_EQ(refused.error().code, Errc::network);
}

TEST_F(PostgresWaitTest, AClientThatFallsSilentInATransactionKeepsOthersForSecondsOnly) {
  auto owner = open();
  ASSERT_TRUE(put(*owner));
  SocketProxy proxy(server_->path(), "/.s.PGSQL.5432");
  auto other = open_hasty(PostgresServer::store_at(proxy.folder(), schema_), StoreAccess::share);
  proxy.fall_silent_after_next_answer();  // its transaction has begun, and has locked the row
  EXPECT_FALSE(put(*other));
  EXPECT_EQ(put(*owner).value(), 2u);
}

TEST_F(PostgresWaitTest, WaitsForASilentHostNoLongerThanForItsConnection) {
  SocketProxy silent(server_->path(), "/.s.PGSQL.5432");
  silent.fall_silent();
  auto store = open_at("postgresql:///postgres?host=" + silent.folder() + "," + server_->path() +
                       "&user=argiope&connect_timeout=2&schema=" + schema_);
  ASSERT_NE(store, nullptr);
  EXPECT_TRUE(put(*store));
  EXPECT_GE(silent.connections(), 1);
}

TEST_F(PostgresWaitTest, ASilentHostLeavesTheOthersTheirPartOfTheTime) {
  ASSERT_TRUE(open()->close());
  SocketProxy silent(server_->path(), "/.s.PGSQL.5432");
  silent.fall_silent();
  auto store = open_at("postgresql:///postgres?host=" + silent.folder() + "," + server_->path() +
                       "&user=argiope&connect_timeout=60&store_timeout=10&schema=" + schema_);
  ASSERT_NE(store, nullptr);
  EXPECT_TRUE(put(*store));
}

TEST_F(PostgresWaitTest, WritesOnTheHostThatLetsIt) {
  PostgresServer standby(PostgresServer::installed_programs());
  ASSERT_TRUE(standby.is_up());
  standby.query("alter role argiope set default_transaction_read_only = on");
  auto store = open_at("postgresql:///postgres?host=" + standby.path() + "," + server_->path() +
                       "&user=argiope&schema=" + schema_);
  ASSERT_NE(store, nullptr);
  EXPECT_TRUE(put(*store));
  EXPECT_EQ(count("jobs"), "1");
}

}  // namespace
}  // namespace argiope
